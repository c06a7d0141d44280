//! The accounts that this server knows, and their keys.
//!
//! Promises: no error and no debug print shows a key.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::auth::AccountKey;
use protocol::common::AccountName;

/// The emulator's account, which every client library knows.
pub const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
/// The emulator account's published key. It protects nothing.
pub const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const KEY_COUNT_MAX: usize = 2;

/// An account has one or two keys, which are tried in turn.
#[derive(Clone, Debug)]
pub struct Account {
    pub name: AccountName,
    pub keys: Vec<AccountKey>,
    /// Its place among the accounts, by which its requests are counted.
    pub number: usize,
}

#[derive(Clone, Debug)]
pub struct Accounts {
    by_name: BTreeMap<Box<str>, Arc<Account>>,
    /// Whether anyone who has read the emulator's documentation can use one of the accounts.
    has_well_known_key: bool,
    /// The first account with a key that is easy to guess.
    weak: Option<AccountName>,
}

impl Accounts {
    /// Only the emulator's account.
    pub fn emulator() -> Accounts {
        Accounts::parse(&format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY}"))
            .expect("the emulator's account is well formed")
    }

    /// Reads `name:key1[:key2];...`: at least one account, each name only once.
    pub fn parse(text: &str) -> Result<Accounts, String> {
        let accounts = Accounts::read(text.split(';'))?;
        if accounts.by_name.is_empty() {
            return Err("no account is named: name:key1[:key2];...".into());
        }
        let mut names: Vec<&str> =
            entries(text.split(';')).map(|entry| entry.split(':').next().unwrap_or(entry)).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0].trim() == pair[1].trim()) {
            Some(pair) => Err(format!("account '{}' is named twice", pair[0].trim())),
            None => Ok(accounts),
        }
    }

    /// Reads entries of the form `name:key1[:key2]`. If a name is repeated, its first entry counts: callers list their
    /// sources in order of precedence. The error names the account that is wrong, and never shows a key.
    pub fn read<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Accounts, String> {
        let mut by_name = BTreeMap::new();
        let mut has_well_known_key = false;
        let mut weak = None;
        for entry in entries(texts) {
            let mut fields = entry.split(':').map(str::trim);
            let name = fields.next().unwrap_or_default();
            let name = AccountName::parse(name).ok_or_else(|| {
                format!("'{name}' is not an account name: 3 to 24 lower-case letters and digits")
            })?;
            let mut keys = Vec::new();
            for key in fields {
                has_well_known_key |= key == EMULATOR_KEY;
                let key = AccountKey::from_base64(key)
                    .ok_or_else(|| format!("a key of account '{name}' is not Base64 text"))?;
                if key.is_weak() {
                    weak.get_or_insert_with(|| name.clone());
                }
                keys.push(key);
            }
            if keys.is_empty() || keys.len() > KEY_COUNT_MAX {
                return Err(format!("account '{name}' needs one or two keys: name:key1[:key2]"));
            }
            let number = by_name.len();
            by_name
                .entry(name.as_str().into())
                .or_insert_with(|| Arc::new(Account { name: name.clone(), keys, number }));
        }
        Ok(Accounts { by_name, has_well_known_key, weak })
    }

    /// Not case-sensitive: an account's name may come from a host name.
    pub fn find(&self, name: &str) -> Option<&Arc<Account>> {
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return self.by_name.get(name.to_ascii_lowercase().as_str());
        }
        self.by_name.get(name)
    }

    /// Whether any account has the emulator's published key.
    pub fn have_well_known_key(&self) -> bool {
        self.has_well_known_key
    }

    /// An account with a key that is easy to guess, if there is one.
    pub fn weak(&self) -> Option<&AccountName> {
        self.weak.as_ref()
    }

    pub fn names(&self) -> Vec<&AccountName> {
        self.by_name.values().map(|account| &account.name).collect()
    }
}

fn entries<'a>(texts: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    texts.map(str::trim).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_accounts_with_one_name_counts() {
        let accounts = Accounts::read(["acc1:AAAA:BBBB", "acc2:AAAA", "acc1:CCCC", ""].into_iter()).unwrap();
        assert_eq!(accounts.find("acc1").unwrap().keys.len(), 2);
        assert!(Accounts::read([].into_iter()).unwrap().names().is_empty());
    }

    #[test]
    fn a_short_key_and_a_repeated_byte_are_weak() {
        let weak = |key: &str| {
            let accounts =
                Accounts::parse(&format!("good:{EMULATOR_KEY};acc1:{EMULATOR_KEY}:{key}")).unwrap();
            accounts.weak().map(ToString::to_string)
        };
        assert_eq!(weak(EMULATOR_KEY), None);
        assert_eq!(weak("AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="), None, "32 bytes");
        for key in ["eA==", "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw==", &format!("{}=", "A".repeat(43))] {
            assert_eq!(weak(key).as_deref(), Some("acc1"), "{key}");
        }
    }

    #[test]
    fn accounts_have_one_or_two_keys() {
        let accounts = Accounts::parse("acc1:AAAA; acc2:AAAA:BBBB;").unwrap();
        assert_eq!(accounts.find("acc1").unwrap().keys.len(), 1);
        assert_eq!(accounts.find("acc2").unwrap().keys.len(), 2);
        for (text, part) in [
            ("", "no account"),
            ("Acc:AAAA", "'Acc' is not an account name"),
            ("acc1", "needs one or two keys"),
            ("acc1:AAAA:BBBB:CCCC", "needs one or two keys"),
            ("acc1:secret!", "a key of account 'acc1' is not Base64"),
            ("acc1:AAAA;acc1:BBBB", "named twice"),
        ] {
            let error = Accounts::parse(text).unwrap_err();
            assert!(error.contains(part) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
