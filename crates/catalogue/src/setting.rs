//! Settings: small rows in the engine's settings table, and their keys.
//!
//! Policies are keyed by the container's identity, so a container that is created again starts without any, and policies that a
//! crash leaves behind after their container's deletion are never seen. Both kinds of setting are stored as the XML
//! documents that the service answers with. They describe themselves, and every existing store has them in this form.

use engine::{Commit, CommitError, Effect, Engine, Expect, Key, Op, OwnedKey, TableId};

const POLICIES_PARTITION: &str = "table acl";
const PROPERTIES_PARTITION: &str = "service properties";

/// What a row of the settings table is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// The stored access policies of a container.
    Policies(TableId),
    /// A service's properties for an account, by the partition of the account's namespace. In the first family that is
    /// the account's name alone.
    ServiceProperties(Box<str>),
}

impl Setting {
    /// `None` if the key is not that of a setting.
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
