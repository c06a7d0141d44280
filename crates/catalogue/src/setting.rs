//! Settings: small rows in the engine's settings table, and their keys.
//!
//! Policies are keyed by the container's identity, so a container that is created again starts without any, and policies that a
//! crash leaves behind after their container's deletion are never seen. Both kinds of setting are stored as the XML
//! documents that the service answers with. They describe themselves, and every existing store has them in this form. The
//! other kinds are the program's own.

use std::ops::Bound::Unbounded;

use engine::{Commit, CommitError, Effect, Engine, Expect, Key, KeyRange, Op, OwnedKey, TableId};

const POLICIES_PARTITION: &str = "table acl";
const PROPERTIES_PARTITION: &str = "service properties";
const ACCOUNTS_PARTITION: &str = "accounts";
/// No account has this name.
const ACCOUNTS_CHANGE_ROW: &str = "!change";
const UNFINISHED_PARTITION: &str = "unfinished";
const METRICS_PARTITION: &str = "metrics writer";
const CONTENTS_PARTITION: &str = "contents";

/// What a row of the settings table is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// The stored access policies of a container.
    Policies(TableId),
    /// A service's properties for an account, by the partition of the account's namespace. In the first family that is
    /// the account's name alone.
    ServiceProperties(Box<str>),
    /// An account and its keys, sealed; for servers that have no directory of their own.
    Account(Box<str>),
    /// Written with every change of an account: who sees its version unchanged need not read the accounts again.
    AccountsChange,
    /// The store is being filled: nobody may serve it.
    Unfinished,
    /// What this writer of metrics has written last.
    MetricsWriter(Box<str>),
    /// Where what is too large for rows is kept; for servers that have no directory of their own.
    Contents,
}

impl Setting {
    /// Where all accounts are.
    pub fn accounts_range() -> KeyRange {
        KeyRange::rows(ACCOUNTS_PARTITION, Unbounded, Unbounded)
    }

    /// Where the marks of all writers of metrics are.
    pub fn metrics_writers_range() -> KeyRange {
        KeyRange::rows(METRICS_PARTITION, Unbounded, Unbounded)
    }

    /// Whether it belongs to the data of the accounts, and so into a copy of the store.
    pub fn is_data(&self) -> bool {
        matches!(self, Setting::Policies(_) | Setting::ServiceProperties(_))
    }

    /// `None` if the key is not that of a setting.
    pub fn read(key: Key<'_>) -> Option<Setting> {
        match key.partition {
            POLICIES_PARTITION => {
                u64::from_str_radix(key.row, 16).ok().map(|id| Setting::Policies(TableId(id)))
            }
            PROPERTIES_PARTITION => Some(Setting::ServiceProperties(key.row.into())),
            ACCOUNTS_PARTITION if key.row == ACCOUNTS_CHANGE_ROW => Some(Setting::AccountsChange),
            ACCOUNTS_PARTITION => Some(Setting::Account(key.row.into())),
            UNFINISHED_PARTITION => Some(Setting::Unfinished),
            METRICS_PARTITION => Some(Setting::MetricsWriter(key.row.into())),
            CONTENTS_PARTITION => Some(Setting::Contents),
            _ => None,
        }
    }

    pub fn key(&self) -> OwnedKey {
        match self {
            Setting::Policies(id) => Key::new(POLICIES_PARTITION, &format!("{:016x}", id.0)).into(),
            Setting::ServiceProperties(namespace) => Key::new(PROPERTIES_PARTITION, namespace).into(),
            Setting::Account(name) => Key::new(ACCOUNTS_PARTITION, name).into(),
            Setting::AccountsChange => Key::new(ACCOUNTS_PARTITION, ACCOUNTS_CHANGE_ROW).into(),
            Setting::Unfinished => Key::new(UNFINISHED_PARTITION, "").into(),
            Setting::MetricsWriter(writer) => Key::new(METRICS_PARTITION, writer).into(),
            Setting::Contents => Key::new(CONTENTS_PARTITION, "").into(),
        }
    }
}

/// Writes one setting, if the expectation holds.
pub async fn write(
    engine: &dyn Engine,
    setting: &Setting,
    expect: Expect,
    effect: Effect,
) -> Result<(), CommitError> {
    let OwnedKey { partition, row } = setting.key();
    let commit = Commit::one(TableId::SETTINGS, &partition, Op { row, expect, effect });
    engine.commit(commit).await.map(|_| ())
}
