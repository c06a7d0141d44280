//! `lazulite sas`: makes account and service SAS tokens and explains in words what each grants.
//!
//! Promises: standard output gets the token alone, and an option that would have no effect is refused. Fields and
//! signatures belong to `protocol::auth`.

use std::path::Path;

use protocol::auth::{AccountKey, AccountScope, MalformedSas, SasScope, SasTerms};
use protocol::table::TableScope;
use protocol::table::model::TableName;

use crate::account_source;
use crate::accounts_file::AccountsFile;

/// The newest version whose string-to-sign every current client writes.
const VERSION_DEFAULT: &str = "2019-02-02";

/// The options of `sas`, not yet checked.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct SasRequest {
    pub account: Option<String>,
    pub table: Option<String>,
    pub permissions: Option<String>,
    pub expiry: Option<String>,
    pub start: Option<String>,
    pub ip: Option<String>,
    pub protocol: Option<String>,
    pub policy: Option<String>,
    pub start_partition_key: Option<String>,
    pub start_row_key: Option<String>,
    pub end_partition_key: Option<String>,
    pub end_row_key: Option<String>,
    pub services: Option<String>,
    pub resource_types: Option<String>,
    pub version: Option<String>,
}

pub fn run(request: &SasRequest, location: &Path) -> Result<(), String> {
    check(request)?;
    let account = request.account.as_deref().unwrap_or(server::EMULATOR_ACCOUNT);
    let key = find_key(account, location)?;
    let terms = terms(request)?;
    let token = terms.mint(account, &key).map_err(|error| refused(&error))?;
    eprintln!("{}", summary(account, request));
    println!("{token}");
    Ok(())
}

/// Refuses options that would have no effect, so that no token grants more than its options suggest.
fn check(request: &SasRequest) -> Result<(), String> {
    let fields = [
        ("--account", &request.account, None),
        ("--table", &request.table, None),
        ("--permissions", &request.permissions, None),
        ("--expiry", &request.expiry, None),
        ("--start", &request.start, None),
        ("--ip", &request.ip, None),
        ("--protocol", &request.protocol, None),
        ("--sas-version", &request.version, None),
        ("--policy", &request.policy, Some(true)),
        ("--start-pk", &request.start_partition_key, Some(true)),
        ("--start-rk", &request.start_row_key, Some(true)),
        ("--end-pk", &request.end_partition_key, Some(true)),
        ("--end-rk", &request.end_row_key, Some(true)),
        ("--services", &request.services, Some(false)),
        ("--resource-types", &request.resource_types, Some(false)),
    ];
    for (name, value, with_table) in fields {
        match (value.as_deref(), with_table) {
            (Some(""), _) => return Err(format!("{name} is empty: give it a value or leave it out")),
            (Some(_), Some(true)) if request.table.is_none() => {
                return Err(format!("{name} goes with --table"));
            }
            (Some(_), Some(false)) if request.table.is_some() => {
                return Err(format!("{name} is for an account SAS: leave it or --table out"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The account's first key. The environment is searched before the data directory, the emulator's account last.
fn find_key(account: &str, location: &Path) -> Result<AccountKey, String> {
    let mut entries: Vec<String> = Vec::new();
    for (_, text) in account_source::from_environment() {
        entries.extend(text.split(';').map(str::to_owned));
    }
    entries.extend(AccountsFile::read(location)?.accounts.iter().map(|entry| entry.to_text()));
    entries.push(account_source::emulator());
    let key = entries.iter().find_map(|entry| {
        let mut fields = entry.split(':').map(str::trim);
        (fields.next() == Some(account)).then(|| fields.next()).flatten().and_then(AccountKey::from_base64)
    });
    key.ok_or_else(|| {
        format!(
            "found no key for account '{account}': set {} or name the data directory with --location",
            account_source::OWN_VARIABLE
        )
    })
}

fn terms(request: &SasRequest) -> Result<SasTerms<'_>, String> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let scope = match &request.table {
        Some(table) => {
            let table = TableName::parse(table).map_err(|_| format!("'{table}' is not a table name"))?;
            let scope = TableScope {
                policy: text(&request.policy),
                start_partition_key: text(&request.start_partition_key),
                start_row_key: text(&request.start_row_key),
                end_partition_key: text(&request.end_partition_key),
                end_row_key: text(&request.end_row_key),
                ..TableScope::new(table)
            };
            SasScope::Service(scope.into_scope().map_err(|error| refused(&error))?)
        }
        None => SasScope::Account(AccountScope {
            services: request.services.as_deref().unwrap_or("t").into(),
            resource_types: request.resource_types.as_deref().unwrap_or("sco").into(),
            encryption_scope: "".into(),
        }),
    };
    let given = |field: &'_ Option<String>| field.clone().unwrap_or_default().into();
    let version = request.version.as_deref().unwrap_or(VERSION_DEFAULT);
    Ok(SasTerms {
        permissions: given(&request.permissions),
        start: given(&request.start),
        expiry: given(&request.expiry),
        ip: given(&request.ip),
        protocol: given(&request.protocol),
        ..SasTerms::new(version, scope)
    })
}

fn refused(error: &MalformedSas) -> String {
    format!("the server would refuse such a token: {error}")
}

fn summary(account: &str, request: &SasRequest) -> String {
    let mut lines = Vec::new();
    let letters = request.permissions.as_deref().unwrap_or_default();
    let permissions: Vec<&str> = letters.chars().filter_map(permission_word).collect();
    let permissions =
        if permissions.is_empty() { "what its policy allows".into() } else { permissions.join(", ") };
    match &request.table {
        Some(table) => lines.push(format!("Grants on table {table} of {account}: {permissions}")),
        None => lines.push(format!("Grants on account {account}: {permissions}")),
    }
    for (label, value) in [
        ("by the stored policy", &request.policy),
        ("from PartitionKey", &request.start_partition_key),
        ("  and RowKey", &request.start_row_key),
        ("to PartitionKey", &request.end_partition_key),
        ("  and RowKey", &request.end_row_key),
        ("not before", &request.start),
        ("until", &request.expiry),
        ("only from", &request.ip),
        ("only over", &request.protocol),
    ] {
        if let Some(value) = value {
            lines.push(format!("  {label} {value}"));
        }
    }
    lines.join("\n")
}

fn permission_word(letter: char) -> Option<&'static str> {
    Some(match letter {
        'r' => "read",
        'a' => "add",
        'u' => "update",
        'd' => "delete",
        'w' => "write",
        'l' => "list tables",
        'c' => "create tables",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_would_say_nothing_are_refused() {
        let some = |text: &str| Some(text.to_owned());
        let range = SasRequest { start_partition_key: some("a"), ..SasRequest::default() };
        assert_eq!(check(&range), Err("--start-pk goes with --table".into()));
        let empty =
            SasRequest { table: some("people"), end_partition_key: some(""), ..SasRequest::default() };
        assert!(check(&empty).is_err());
        let mixed = SasRequest { table: some("people"), services: some("t"), ..SasRequest::default() };
        assert!(check(&mixed).is_err());
        assert_eq!(check(&SasRequest { table: some("people"), ..range }), Ok(()));
    }

    #[test]
    fn a_summary_says_what_is_granted() {
        let request = SasRequest {
            table: Some("people".into()),
            permissions: Some("ra".into()),
            expiry: Some("2030-01-01T00:00:00Z".into()),
            start_partition_key: Some("m".into()),
            ..SasRequest::default()
        };
        let expected =
            "Grants on table people of acc: read, add\n  from PartitionKey m\n  until 2030-01-01T00:00:00Z";
        assert_eq!(summary("acc", &request), expected);
    }
}
