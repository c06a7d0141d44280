//! The accounts this server answers for, and their keys.

use std::collections::HashMap;
use std::sync::Arc;

use protocol::auth::AccountKey;
use protocol::model::AccountName;

/// The emulator's account, known to every client library.
pub const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
/// Its published key: it protects nothing.
pub const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const KEY_COUNT_MAX: usize = 2;

/// Keys are tried in turn; an account has one or two.
#[derive(Clone, Debug)]
pub struct Account {
    pub name: AccountName,
    pub keys: Vec<AccountKey>,
}

#[derive(Clone, Debug)]
pub struct Accounts {
    by_name: HashMap<Box<str>, Arc<Account>>,
    /// Whether some account can be used by anyone who has read the emulator's documentation.
    has_well_known_key: bool,
}

impl Accounts {
    /// The emulator's account alone.
    pub fn emulator() -> Accounts {
        Accounts::parse(&format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY}"))
            .expect("the emulator's account is well formed")
    }

    /// Reads `name:key1[:key2];...`. The error says which account is wrong, and never shows a key.
    pub fn parse(text: &str) -> Result<Accounts, String> {
        let mut by_name = HashMap::new();
        let mut has_well_known_key = false;
        for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
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
                keys.push(key);
            }
            if keys.is_empty() || keys.len() > KEY_COUNT_MAX {
                return Err(format!("account '{name}' needs one or two keys: name:key1[:key2]"));
            }
            let key = name.as_str().into();
            if by_name.insert(key, Arc::new(Account { name: name.clone(), keys })).is_some() {
                return Err(format!("account '{name}' is named twice"));
            }
        }
        if by_name.is_empty() {
            return Err("no account is named: name:key1[:key2];...".into());
        }
        Ok(Accounts { by_name, has_well_known_key })
    }

    /// Hosts ignore case, and an account's name may come from one.
    pub fn find(&self, name: &str) -> Option<&Arc<Account>> {
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return self.by_name.get(name.to_ascii_lowercase().as_str());
        }
        self.by_name.get(name)
    }

    /// Whether the emulator's published key opens any of them.
    pub fn have_well_known_key(&self) -> bool {
        self.has_well_known_key
    }

    pub fn names(&self) -> Vec<&AccountName> {
        let mut names: Vec<_> = self.by_name.values().map(|account| &account.name).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
