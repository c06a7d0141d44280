//! Shared access signatures from code: build, narrow, sign, and use or give away.
//!
//! Owns: the builders, and the letters of permissions in their order.
//! Promises: what is signed is what was asked for; a builder cannot make a signature that the service would misread.
//! Leaves to others: the signed texts (`protocol::auth`).

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::BitOr;

use protocol::auth::{AccountScope, KeyBounds, SasScope, SasTerms, ServiceScope};
use protocol::queue::QueueName;
use protocol::table::TableScope;

use crate::account::table_name;
use crate::credential::Credential;
use crate::pipeline::{QUEUE_VERSION, TABLE_VERSION};
use crate::{DateTime, Error};

/// A set of letters, one bit each, with the order in which they are written.
macro_rules! letters {
    ($(#[$of:meta])* $name:ident { $($(#[$doc:meta])* $constant:ident = $letter:literal,)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(u16);

        impl $name {
            letters!(@constants $name 0; $($(#[$doc])* $constant = $letter,)*);
            const LETTERS: &'static [char] = &[$($letter),*];

            /// Every one of them.
            pub fn all() -> $name {
                $name((1 << $name::LETTERS.len()) - 1)
            }

            /// Whether all of these are in the set.
            pub fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl BitOr for $name {
            type Output = $name;

            fn bitor(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
        }

        /// The letters, in the order in which the service wants them.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                for (at, letter) in $name::LETTERS.iter().enumerate() {
                    if self.0 & (1 << at) != 0 {
                        fmt::Write::write_char(f, *letter)?;
                    }
                }
                Ok(())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    };
    (@constants $name:ident $bit:expr; $(#[$doc:meta])* $constant:ident = $letter:literal, $($rest:tt)*) => {
        $(#[$doc])*
        pub const $constant: $name = $name(1 << ($bit));
        letters!(@constants $name $bit + 1; $($rest)*);
    };
    (@constants $name:ident $bit:expr;) => {};
}

letters! {
    /// What a signature for a table allows.
    ///
    /// ```
    /// use lazulite_client::TablePermissions;
    ///
    /// assert_eq!((TablePermissions::DELETE | TablePermissions::READ).to_string(), "rd");
    /// ```
    TablePermissions {
        /// Read entities.
        READ = 'r',
        /// Insert entities.
        ADD = 'a',
        /// Change entities. Together with [`TablePermissions::ADD`] it allows upserts.
        UPDATE = 'u',
        /// Delete entities.
        DELETE = 'd',
    }
}

letters! {
    /// What a signature for a queue allows.
    QueuePermissions {
        /// Peek at messages, and read the queue's metadata.
        READ = 'r',
        /// Send messages.
        ADD = 'a',
        /// Change messages.
        UPDATE = 'u',
        /// Receive messages, and delete those that were received.
        PROCESS = 'p',
    }
}

letters! {
    /// What a signature for an account allows, in all its services.
    AccountPermissions {
        /// Read entities, messages and properties.
        READ = 'r',
        /// Create tables and queues, and set properties.
        WRITE = 'w',
        /// Delete tables, queues and entities.
        DELETE = 'd',
        /// List tables and queues.
        LIST = 'l',
        /// Insert entities, send messages.
        ADD = 'a',
        /// Create tables and queues.
        CREATE = 'c',
        /// Change entities and messages.
        UPDATE = 'u',
        /// Receive messages.
        PROCESS = 'p',
    }
}

letters! {
    /// The services that a signature for an account reaches.
    AccountServices {
        /// Blobs.
        BLOB = 'b',
        /// Queues.
        QUEUE = 'q',
        /// Tables.
        TABLE = 't',
        /// Files.
        FILE = 'f',
    }
}

letters! {
    /// The levels that a signature for an account reaches.
    AccountResources {
        /// The service itself: properties, statistics, lists.
        SERVICE = 's',
        /// Tables and queues as wholes.
        CONTAINER = 'c',
        /// Entities and messages.
        OBJECT = 'o',
    }
}

/// A signed token. Whoever has it may do what it says, so it is printed nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Sas(String);

impl Sas {
    /// The token as a query string, without `?`.
    pub fn as_query(&self) -> &str {
        &self.0
    }

    /// The URL of a service or a resource with the token as its query, to give away.
    pub fn url(&self, endpoint: &str) -> String {
        format!("{}/?{}", endpoint.trim_end_matches('/'), self.0)
    }
}

impl fmt::Debug for Sas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sas(..)")
    }
}

impl TryFrom<&Sas> for Credential {
    type Error = Error;

    fn try_from(sas: &Sas) -> Result<Credential, Error> {
        Credential::sas(&sas.0)
    }
}

/// The terms that every kind of signature has.
#[derive(Clone, Debug, Default)]
struct Terms {
    start: Option<DateTime>,
    expiry: Option<DateTime>,
    ips: Option<(Ipv4Addr, Ipv4Addr)>,
    https_only: bool,
}

impl Terms {
    fn sign(
        &self,
        version: &'static str,
        permissions: String,
        scope: SasScope<'_>,
        credential: &Credential,
    ) -> Result<Sas, Error> {
        let (account, key) = credential.key().ok_or_else(|| {
            Error::Refused("only an account key can sign a shared access signature".to_owned())
        })?;
        let terms = SasTerms {
            permissions: permissions.into(),
            start: self.start.map(time).unwrap_or_default(),
            expiry: self.expiry.map(time).unwrap_or_default(),
            ip: match self.ips {
                None => Cow::default(),
                Some((first, last)) if first == last => first.to_string().into(),
                Some((first, last)) => format!("{first}-{last}").into(),
            },
            protocol: if self.https_only { Cow::Borrowed("https") } else { Cow::default() },
            ..SasTerms::new(version, scope)
        };
        let minted = terms.mint(account, key);
        minted.map(Sas).map_err(|error| Error::Refused(format!("no such signature can be made: {error}")))
    }
}

/// To the second, which is as much as every service reads.
fn time(time: DateTime) -> Cow<'static, str> {
    let whole = DateTime::from_ticks(time.ticks() - time.ticks() % 10_000_000);
    let mut text = Vec::new();
    whole.write(&mut text);
    String::from_utf8_lossy(&text).into_owned().into()
}

/// The setters that every builder has.
macro_rules! common_terms {
    () => {
        /// When it begins to hold. Without this it holds at once; clocks differ, so do not say "now".
        pub fn start(mut self, start: DateTime) -> Self {
            self.terms.start = Some(start);
            self
        }

        /// When it ends.
        pub fn expiry(mut self, expiry: DateTime) -> Self {
            self.terms.expiry = Some(expiry);
            self
        }

        /// The addresses that may use it, first and last.
        pub fn ips(mut self, first: Ipv4Addr, last: Ipv4Addr) -> Self {
            self.terms.ips = Some((first, last));
            self
        }

        /// Refuses http.
        pub fn https_only(mut self) -> Self {
            self.terms.https_only = true;
            self
        }
    };
}

/// A signature for the entities of one table, or a range of them.
///
/// ```
/// use lazulite_client::{Credential, DateTime, TablePermissions, TableSas};
///
/// let key = Credential::shared_key("myaccount", "bXkga2V5")?;
/// let sas = TableSas::new("people", TablePermissions::READ)
///     .expiry(DateTime::parse("2030-01-01T00:00:00Z").expect("a time"))
///     .from_keys("Sales", Some("A"))
///     .to_keys("Sales", Some("M"))
///     .sign(&key)?;
/// assert!(sas.as_query().contains("spk=Sales&srk=A&epk=Sales&erk=M"));
/// let reader = Credential::try_from(&sas)?;
/// # Ok::<(), lazulite_client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TableSas {
    terms: Terms,
    table: String,
    permissions: TablePermissions,
    policy: String,
    start: Option<(String, Option<String>)>,
    end: Option<(String, Option<String>)>,
}

impl TableSas {
    /// A signature with terms of its own. It needs an expiry too.
    pub fn new(table: &str, permissions: TablePermissions) -> TableSas {
        TableSas {
            terms: Terms::default(),
            table: table.to_owned(),
            permissions,
            policy: String::new(),
            start: None,
            end: None,
        }
    }

    /// A signature on the terms of the table's stored policy. Terms that the policy leaves open may be added.
    pub fn with_policy(table: &str, policy_id: &str) -> TableSas {
        TableSas { policy: policy_id.to_owned(), ..TableSas::new(table, TablePermissions::default()) }
    }

    common_terms!();

    /// What it allows, where the stored policy does not say it.
    pub fn permissions(mut self, permissions: TablePermissions) -> TableSas {
        self.permissions = permissions;
        self
    }

    /// The first entity that it reaches: that of this RowKey, or the first of the partition.
    pub fn from_keys(mut self, partition_key: &str, row_key: Option<&str>) -> TableSas {
        self.start = Some((partition_key.to_owned(), row_key.map(str::to_owned)));
        self
    }

    /// The last entity that it reaches: that of this RowKey, or the last of the partition.
    pub fn to_keys(mut self, partition_key: &str, row_key: Option<&str>) -> TableSas {
        self.end = Some((partition_key.to_owned(), row_key.map(str::to_owned)));
        self
    }

    /// One partition and no other.
    pub fn only_partition(self, partition_key: &str) -> TableSas {
        self.from_keys(partition_key, None).to_keys(partition_key, None)
    }

    /// Signs with an account key; another credential cannot.
    pub fn sign(&self, credential: &Credential) -> Result<Sas, Error> {
        let (start, end) = (keys(&self.start), keys(&self.end));
        if start.0.is_empty() && !start.1.is_empty() {
            return Err(Error::Refused("a first RowKey needs a first PartitionKey".to_owned()));
        }
        // The service takes an empty key for no bound at all, which would widen the signature.
        let is_widened = self
            .end
            .as_ref()
            .is_some_and(|(partition, row)| partition.is_empty() || row.as_deref() == Some(""));
        if is_widened {
            return Err(Error::Refused("a signature cannot end at an empty key".to_owned()));
        }
        let scope = TableScope {
            policy: self.policy.clone(),
            start_partition_key: start.0.to_owned(),
            start_row_key: start.1.to_owned(),
            end_partition_key: end.0.to_owned(),
            end_row_key: end.1.to_owned(),
            ..TableScope::new(table_name(&self.table)?)
        };
        let scope = scope.into_scope().map_err(|error| Error::Refused(error.to_string()))?;
        self.terms.sign(TABLE_VERSION, self.permissions.to_string(), SasScope::Service(scope), credential)
    }
}

/// The keys of a bound, empty where there is none.
fn keys(bound: &Option<(String, Option<String>)>) -> (&str, &str) {
    match bound {
        Some((partition, row)) => (partition, row.as_deref().unwrap_or_default()),
        None => ("", ""),
    }
}

/// A signature for the messages of one queue.
///
/// ```
/// use lazulite_client::{Credential, DateTime, QueuePermissions, QueueSas};
///
/// let key = Credential::shared_key("myaccount", "bXkga2V5")?;
/// let expiry = DateTime::parse("2030-01-01T00:00:00Z").expect("a time");
/// let sas = QueueSas::new("orders", QueuePermissions::ADD).expiry(expiry).https_only().sign(&key)?;
/// assert!(sas.as_query().contains("sp=a&se=2030-01-01T00%3A00%3A00Z&spr=https"));
/// # Ok::<(), lazulite_client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct QueueSas {
    terms: Terms,
    queue: String,
    permissions: QueuePermissions,
    policy: String,
}

impl QueueSas {
    /// A signature with terms of its own. It needs an expiry too.
    pub fn new(queue: &str, permissions: QueuePermissions) -> QueueSas {
        QueueSas { terms: Terms::default(), queue: queue.to_owned(), permissions, policy: String::new() }
    }

    /// A signature on the terms of the queue's stored policy. Terms that the policy leaves open may be added.
    pub fn with_policy(queue: &str, policy_id: &str) -> QueueSas {
        QueueSas { policy: policy_id.to_owned(), ..QueueSas::new(queue, QueuePermissions::default()) }
    }

    common_terms!();

    /// What it allows, where the stored policy does not say it.
    pub fn permissions(mut self, permissions: QueuePermissions) -> QueueSas {
        self.permissions = permissions;
        self
    }

    /// Signs with an account key; another credential cannot.
    pub fn sign(&self, credential: &Credential) -> Result<Sas, Error> {
        if QueueName::parse(&self.queue).is_err() {
            return Err(Error::Refused(format!("{:?} is no name of a queue", self.queue)));
        }
        let scope = ServiceScope {
            label: protocol::queue::KIND.label,
            resource: self.queue.clone(),
            policy: self.policy.clone(),
            parameters: Vec::new(),
            bounds: KeyBounds::default(),
        };
        self.terms.sign(QUEUE_VERSION, self.permissions.to_string(), SasScope::Service(scope), credential)
    }
}

/// A signature for services of an account as wholes.
///
/// ```
/// use lazulite_client::{AccountPermissions, AccountResources, AccountSas, AccountServices, Credential, DateTime};
///
/// let key = Credential::shared_key("myaccount", "bXkga2V5")?;
/// let sas = AccountSas::new(
///     AccountServices::TABLE,
///     AccountResources::CONTAINER | AccountResources::OBJECT,
///     AccountPermissions::READ | AccountPermissions::LIST,
///     DateTime::parse("2030-01-01T00:00:00Z").expect("a time"),
/// )
/// .sign(&key)?;
/// assert!(sas.as_query().contains("ss=t&srt=co"));
/// # Ok::<(), lazulite_client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AccountSas {
    terms: Terms,
    services: AccountServices,
    resources: AccountResources,
    permissions: AccountPermissions,
}

impl AccountSas {
    /// Which services, which of their levels, what, and until when.
    pub fn new(
        services: AccountServices,
        resources: AccountResources,
        permissions: AccountPermissions,
        expiry: DateTime,
    ) -> AccountSas {
        let terms = Terms { expiry: Some(expiry), ..Terms::default() };
        AccountSas { terms, services, resources, permissions }
    }

    common_terms!();

    /// Signs with an account key; another credential cannot.
    pub fn sign(&self, credential: &Credential) -> Result<Sas, Error> {
        let scope = AccountScope {
            services: self.services.to_string().into(),
            resource_types: self.resources.to_string().into(),
            encryption_scope: Cow::default(),
        };
        // The version that both services know, so that one token serves both.
        self.terms.sign(TABLE_VERSION, self.permissions.to_string(), SasScope::Account(scope), credential)
    }
}

#[cfg(test)]
mod tests {
    use protocol::auth::{AccountKey, SasToken};
    use protocol::common::query::Query;

    use super::*;

    fn key() -> Credential {
        Credential::shared_key(testkit::EMULATOR_ACCOUNT, testkit::EMULATOR_KEY).unwrap()
    }

    fn at(text: &str) -> DateTime {
        DateTime::parse(text).unwrap()
    }

    /// The fields of a query string without the signature, and the signature decoded.
    fn split(sas: &Sas) -> (String, String) {
        let (fields, signature) = sas.as_query().split_once("&sig=").unwrap();
        let decoded = protocol::common::percent::percent_decode(signature).unwrap().into_owned();
        (protocol::common::percent::percent_decode(fields).unwrap().into_owned(), decoded)
    }

    /// The same fields, signed by the independent signer.
    #[track_caller]
    fn check(sas: Result<Sas, Error>, other: testkit::Sas, expected_fields: &str) {
        let (fields, signature) = split(&sas.unwrap());
        assert_eq!(fields, expected_fields);
        assert_eq!(signature, other.signature(&testkit::Credentials::emulator()));
    }

    #[test]
    fn signatures_equal_those_of_an_independent_signer() {
        let expiry = at("2030-01-01T00:00:00.5Z");
        check(
            TableSas::new("People", TablePermissions::READ | TablePermissions::ADD)
                .expiry(expiry)
                .sign(&key()),
            testkit::Sas::table("2019-02-02", "People").set("sp", "ra").set("se", "2030-01-01T00:00:00Z"),
            "sv=2019-02-02&sp=ra&se=2030-01-01T00:00:00Z&tn=People",
        );
        check(
            TableSas::new("people", TablePermissions::all())
                .start(at("2021-01-01T00:00:00Z"))
                .expiry(expiry)
                .ips(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9))
                .https_only()
                .from_keys("a", Some("1"))
                .to_keys("b", None)
                .sign(&key()),
            testkit::Sas::table("2019-02-02", "people")
                .set("st", "2021-01-01T00:00:00Z")
                .set("se", "2030-01-01T00:00:00Z")
                .set("sip", "10.0.0.1-10.0.0.9")
                .set("spr", "https")
                .set("spk", "a")
                .set("srk", "1")
                .set("epk", "b"),
            "sv=2019-02-02&sp=raud&st=2021-01-01T00:00:00Z&se=2030-01-01T00:00:00Z&sip=10.0.0.1-10.0.0.9&spr=https&tn=people&spk=a&srk=1&epk=b",
        );
        check(
            TableSas::with_policy("people", "readers").only_partition("é").sign(&key()),
            testkit::Sas::table("2019-02-02", "people")
                .without("sp")
                .without("se")
                .set("si", "readers")
                .set("spk", "é")
                .set("epk", "é"),
            "sv=2019-02-02&si=readers&tn=people&spk=é&epk=é",
        );
        check(
            QueueSas::new("orders", QueuePermissions::PROCESS | QueuePermissions::READ)
                .expiry(expiry)
                .sign(&key()),
            testkit::Sas::queue(QUEUE_VERSION, "orders").set("sp", "rp").set("se", "2030-01-01T00:00:00Z"),
            "sv=2025-11-05&sp=rp&se=2030-01-01T00:00:00Z",
        );
        let both = AccountServices::TABLE | AccountServices::QUEUE;
        check(
            AccountSas::new(both, AccountResources::all(), AccountPermissions::all(), expiry)
                .ips(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)
                .sign(&key()),
            testkit::Sas::account("2019-02-02")
                .set("ss", "qt")
                .set("sp", "rwdlacup")
                .set("se", "2030-01-01T00:00:00Z")
                .set("sip", "127.0.0.1"),
            "sv=2019-02-02&sp=rwdlacup&se=2030-01-01T00:00:00Z&sip=127.0.0.1&ss=qt&srt=sco",
        );
    }

    #[test]
    fn the_server_verifies_what_is_signed_here() {
        let sas = TableSas::new("people", TablePermissions::READ)
            .expiry(at("2030-01-01T00:00:00Z"))
            .only_partition("a b")
            .sign(&key())
            .unwrap();
        let query = Query::split(sas.as_query());
        let token = SasToken::read(&query, "people", &protocol::table::KIND).unwrap().unwrap();
        let keys = [AccountKey::from_base64(testkit::EMULATOR_KEY).unwrap()];
        assert!(token.verify(testkit::EMULATOR_ACCOUNT, &keys));
        assert!(Credential::try_from(&sas).is_ok());
        assert_eq!(sas.url("https://a.b/"), format!("https://a.b/?{}", sas.as_query()));
        assert_eq!(format!("{sas:?}"), "Sas(..)");
    }

    #[test]
    fn signatures_that_would_mean_something_else_are_refused() {
        let refused =
            |result: Result<Sas, Error>| assert!(matches!(result, Err(Error::Refused(_))), "{result:?}");
        let expiry = at("2030-01-01T00:00:00Z");
        let table = || TableSas::new("people", TablePermissions::READ).expiry(expiry);
        refused(TableSas::new("people", TablePermissions::READ).sign(&key()));
        refused(TableSas::new("people", TablePermissions::default()).expiry(expiry).sign(&key()));
        refused(TableSas::new("p-p", TablePermissions::READ).expiry(expiry).sign(&key()));
        refused(table().from_keys("", Some("a")).sign(&key()));
        refused(table().to_keys("", None).sign(&key()));
        refused(table().to_keys("a", Some("")).sign(&key()));
        refused(table().only_partition("").sign(&key()));
        refused(table().from_keys("a\nb", None).sign(&key()));
        refused(table().sign(&Credential::sas("sv=1&sig=x").unwrap()));
        refused(QueueSas::new("Not A Queue", QueuePermissions::ADD).expiry(expiry).sign(&key()));
        let nothing = AccountSas::new(
            AccountServices::default(),
            AccountResources::all(),
            AccountPermissions::READ,
            expiry,
        );
        refused(nothing.sign(&key()));
    }

    #[test]
    fn letters_have_an_order() {
        let set = TablePermissions::DELETE | TablePermissions::READ;
        assert_eq!((set.to_string().as_str(), format!("{set:?}").as_str()), ("rd", "TablePermissions(rd)"));
        assert!(set.contains(TablePermissions::READ) && !set.contains(TablePermissions::ADD));
        assert_eq!(AccountPermissions::all().to_string(), "rwdlacup");
        assert_eq!(AccountServices::all().to_string(), "bqtf");
    }
}
