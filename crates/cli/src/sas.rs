//! `lazulite sas`: makes account and service SAS tokens and explains in words what each grants.
//!
//! Promises: standard output gets the token alone, and an option that would have no effect is refused. Fields and
//! signatures belong to `protocol::auth`.

use protocol::auth::{AccountKey, AccountScope, KeyBounds, MalformedSas, SasScope, SasTerms, ServiceScope};
use protocol::blob::{BlobName, ContainerName, new_scope};
use protocol::queue::QueueName;
use protocol::table::TableScope;
use protocol::table::model::TableName;

use crate::accounts_file::{AccountEntry, AccountsFile};
use crate::place::StoreChoice;
use crate::{account_source, engine_accounts, remote};

/// The newest version whose string-to-sign every current client writes.
const VERSION_DEFAULT: &str = "2019-02-02";
/// The letters of the services that this program serves.
const SERVICES_DEFAULT: &str = "tqb";
const ACCOUNT_LETTERS: &str = "rwdxylacuptfi";

/// Which tokens an option is for.
#[derive(Clone, Copy, PartialEq)]
enum For {
    Any,
    Account,
    /// A service SAS of any service.
    Service,
    Table,
    Container,
}

/// The options of `sas`, not yet checked.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct SasRequest {
    pub account: Option<String>,
    pub table: Option<String>,
    pub queue: Option<String>,
    pub container: Option<String>,
    pub blob: Option<String>,
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

pub fn run(request: &SasRequest, place: &StoreChoice) -> Result<(), String> {
    check(request)?;
    let account = request.account.as_deref().unwrap_or(server::EMULATOR_ACCOUNT);
    let key = find_key(account, place)?;
    let terms = terms(request)?;
    let token = terms.mint(account, &key).map_err(|error| refused(&error))?;
    eprintln!("{}", summary(account, request));
    println!("{token}");
    Ok(())
}

/// Refuses options that would have no effect, so that no token grants more than its options suggest.
fn check(request: &SasRequest) -> Result<(), String> {
    let fields = [
        ("--account", &request.account, For::Any),
        ("--table", &request.table, For::Any),
        ("--queue", &request.queue, For::Any),
        ("--container", &request.container, For::Any),
        ("--blob", &request.blob, For::Container),
        ("--permissions", &request.permissions, For::Any),
        ("--expiry", &request.expiry, For::Any),
        ("--start", &request.start, For::Any),
        ("--ip", &request.ip, For::Any),
        ("--protocol", &request.protocol, For::Any),
        ("--sas-version", &request.version, For::Any),
        ("--policy", &request.policy, For::Service),
        ("--start-pk", &request.start_partition_key, For::Table),
        ("--start-rk", &request.start_row_key, For::Table),
        ("--end-pk", &request.end_partition_key, For::Table),
        ("--end-rk", &request.end_row_key, For::Table),
        ("--services", &request.services, For::Account),
        ("--resource-types", &request.resource_types, For::Account),
    ];
    let resources = [&request.table, &request.queue, &request.container];
    let resource_count = resources.into_iter().flatten().count();
    if resource_count > 1 {
        return Err(
            "a service SAS is for one table, for one queue or for one container: name one of them".into()
        );
    }
    let is_service = resource_count == 1;
    for (name, value, what_for) in fields {
        match (value.as_deref(), what_for) {
            (Some(""), _) => return Err(format!("{name} is empty: give it a value or leave it out")),
            (Some(_), For::Table) if request.table.is_none() => {
                return Err(format!("{name} goes with --table"));
            }
            (Some(_), For::Container) if request.container.is_none() => {
                return Err(format!("{name} goes with --container"));
            }
            (Some(_), For::Service) if !is_service => {
                return Err(format!("{name} goes with --table, --queue or --container"));
            }
            (Some(_), For::Account) if is_service => {
                return Err(format!(
                    "{name} is for an account SAS: leave it or --table, --queue and --container out"
                ));
            }
            _ => {}
        }
    }
    check_letters(request)
}

/// A letter that grants nothing is a mistake.
fn check_letters(request: &SasRequest) -> Result<(), String> {
    let (what, letters) = match request {
        SasRequest { table: Some(_), .. } => ("a table", protocol::table::KIND.policy_letters),
        SasRequest { queue: Some(_), .. } => ("a queue", protocol::queue::KIND.policy_letters),
        SasRequest { blob: Some(_), .. } => ("a blob", protocol::blob::KIND.policy_letters),
        SasRequest { container: Some(_), .. } => ("a container", protocol::blob::KIND.policy_letters),
        _ => ("an account", ACCOUNT_LETTERS),
    };
    let given = request.permissions.as_deref().unwrap_or_default();
    match given.chars().find(|letter| !letters.contains(*letter)) {
        Some(letter) => Err(format!("{what} has no permission '{letter}', only {letters}")),
        None => Ok(()),
    }
}

/// The account's first key. The environment is searched before the store, the emulator's account last.
fn find_key(account: &str, place: &StoreChoice) -> Result<AccountKey, String> {
    let of = |entry: &str| {
        let mut fields = entry.split(':').map(str::trim);
        (fields.next() == Some(account)).then(|| fields.next()).flatten().and_then(AccountKey::from_base64)
    };
    for (_, text) in account_source::from_environment() {
        if let Some(key) = text.split(';').find_map(of) {
            return Ok(key);
        }
    }
    let stored = stored_accounts(place)?;
    let key =
        stored.iter().find_map(|entry| of(&entry.to_text())).or_else(|| of(&account_source::emulator()));
    key.ok_or_else(|| {
        format!(
            "found no key for account '{account}': set {} or name the data directory with --location",
            account_source::OWN_VARIABLE
        )
    })
}

fn stored_accounts(place: &StoreChoice) -> Result<Vec<AccountEntry>, String> {
    match place {
        StoreChoice::Directory(location) => Ok(AccountsFile::read(location)?.accounts),
        StoreChoice::Engine(address) => remote::work_on(address, async |engine| {
            let stored = engine_accounts::read(&*engine, address.accounts_key.as_ref()).await?;
            Ok(stored.into_iter().map(|account| account.entry).collect())
        }),
    }
}

fn terms(request: &SasRequest) -> Result<SasTerms<'_>, String> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let version = request.version.as_deref().unwrap_or(VERSION_DEFAULT);
    let scope = match (&request.table, &request.queue) {
        (None, None) if request.container.is_some() => {
            let container = request.container.as_deref().unwrap_or_default();
            let container = ContainerName::parse(container)
                .map_err(|_| format!("'{container}' is not a container name"))?;
            let blob = request
                .blob
                .as_deref()
                .map(|blob| BlobName::parse(blob).map_err(|_| format!("'{blob}' is not a blob name")));
            let blob = blob.transpose()?;
            SasScope::Service(new_scope(version, &container, blob.as_ref(), text(&request.policy)))
        }
        (None, Some(queue)) => {
            let queue = QueueName::parse(queue).map_err(|_| format!("'{queue}' is not a queue name"))?;
            SasScope::Service(ServiceScope {
                label: protocol::queue::KIND.label,
                resource: queue.as_str().to_owned(),
                policy: text(&request.policy),
                parameters: Vec::new(),
                bounds: KeyBounds::default(),
            })
        }
        (Some(table), _) => {
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
        (None, None) => SasScope::Account(AccountScope {
            services: request.services.as_deref().unwrap_or(SERVICES_DEFAULT).into(),
            resource_types: request.resource_types.as_deref().unwrap_or("sco").into(),
            encryption_scope: "".into(),
        }),
    };
    let given = |field: &'_ Option<String>| field.clone().unwrap_or_default().into();
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
    lines.push(match (&request.table, &request.queue) {
        (Some(table), _) => format!("Grants on table {table} of {account}: {permissions}"),
        (None, Some(queue)) => format!("Grants on queue {queue} of {account}: {permissions}"),
        (None, None) if request.container.is_some() => {
            let container = request.container.as_deref().unwrap_or_default();
            match &request.blob {
                Some(blob) => format!("Grants on blob {container}/{blob} of {account}: {permissions}"),
                None => format!("Grants on container {container} of {account}: {permissions}"),
            }
        }
        (None, None) => {
            let letters = request.services.as_deref().unwrap_or(SERVICES_DEFAULT);
            let services: Vec<&str> = letters.chars().filter_map(service_word).collect();
            let services = match services.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
                _ => services.join(""),
            };
            format!("Grants on account {account}, its {services}: {permissions}")
        }
    });
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
        'l' => "list",
        'c' => "create",
        'p' => "process",
        'x' => "delete versions",
        'y' => "delete permanently",
        't' => "read and write tags",
        'f' => "find by tags",
        'm' => "move",
        'e' => "execute",
        'o' => "own",
        'i' => "set immutability",
        _ => return None,
    })
}

fn service_word(letter: char) -> Option<&'static str> {
    Some(match letter {
        't' => "tables",
        'q' => "queues",
        'b' => "blobs",
        'f' => "files",
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
        let both = SasRequest { table: some("people"), queue: some("jobs"), ..SasRequest::default() };
        assert!(check(&both).unwrap_err().contains("one table, for one queue"));
        let queue = |permissions: &str| SasRequest {
            queue: some("jobs"),
            permissions: some(permissions),
            ..SasRequest::default()
        };
        assert_eq!(check(&queue("raup")), Ok(()));
        assert_eq!(check(&queue("rd")), Err("a queue has no permission 'd', only raup".into()));
        let policy = SasRequest { policy: some("one"), ..SasRequest::default() };
        assert_eq!(check(&policy), Err("--policy goes with --table, --queue or --container".into()));
        assert_eq!(check(&SasRequest { queue: some("jobs"), ..policy }), Ok(()));
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
        let queue = SasRequest {
            queue: Some("jobs".into()),
            permissions: Some("rp".into()),
            ..SasRequest::default()
        };
        assert_eq!(summary("acc", &queue), "Grants on queue jobs of acc: read, process");
        let account = SasRequest { permissions: Some("rl".into()), ..SasRequest::default() };
        assert_eq!(
            summary("acc", &account),
            "Grants on account acc, its tables, queues and blobs: read, list"
        );
    }
}
