//! Settings: small rows of the engine's settings table, and the keys under which they stand.
//!
//! Policies are kept by container id, so a container that is created again starts without any; policies that a crash
//! leaves behind after their container is gone are never seen. Both kinds of setting are stored as the XML documents that
//! the service answers with: they describe themselves, and every store that was ever written has them so.

use engine::{Commit, CommitError, Effect, Engine, Expect, Key, Op, OwnedKey, TableId};

const POLICIES_PARTITION: &str = "table acl";
const PROPERTIES_PARTITION: &str = "service properties";

/// What a row of the settings table is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// The stored access policies of a container.
    Policies(TableId),
    /// The properties of a service for an account, by the partition of its namespace: the account's name alone for the
    /// first family.
    ServiceProperties(Box<str>),
}

impl Setting {
    /// `None`: no row of ours.
    pub fn read(key: Key<'_>) -> Option<Setting> {
        match key.partition {
            POLICIES_PARTITION => {
                u64::from_str_radix(key.row, 16).ok().map(|id| Setting::Policies(TableId(id)))
            }
            PROPERTIES_PARTITION => Some(Setting::ServiceProperties(key.row.into())),
            _ => None,
        }
    }

    pub fn key(&self) -> OwnedKey {
        match self {
            Setting::Policies(id) => Key::new(POLICIES_PARTITION, &format!("{:016x}", id.0)).into(),
            Setting::ServiceProperties(namespace) => Key::new(PROPERTIES_PARTITION, namespace).into(),
        }
    }
}

/// Writes one setting, if it is as expected.
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
