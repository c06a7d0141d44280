//! What the catalogue's row says of a container: its id, its identity, and the service's own bytes.
//!
//! The identity is the id that the container was created with. A container whose content was dropped at once has a new
//! id, but is the same container: what is filed by identity, such as its policies, stays. The bytes are
//! `identity, u64 · payload`, with an identity of zero for a container that still has its first id. Containers of the
//! first family have the payload alone, as in every store older than identities, and keep their id for life.

use bytes::Bytes;
use engine::{Family, Row, TableId, TableRecord, Version};

/// What the catalogue knows of a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Container {
    pub ids: ContainerIds,
    pub payload: Bytes,
    /// The version of this knowledge.
    pub version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContainerIds {
    /// Holds the content.
    pub id: TableId,
    pub identity: TableId,
}

const IDENTITY_SIZE_BYTES: usize = 8;

/// `None`: the row does not decode.
pub(crate) fn read(family: Family, row: &Row) -> Option<Container> {
    let (ids, payload) = read_value(family, &row.value)?;
    Some(Container { ids, payload: row.value.slice_ref(payload), version: row.version })
}

/// The ids and the service's own bytes. `None`: the value does not decode.
pub fn read_value(family: Family, value: &[u8]) -> Option<(ContainerIds, &[u8])> {
    let TableRecord { id, payload } = TableRecord::read(value)?;
    if family == Family::FIRST {
        return Some((ContainerIds { id, identity: id }, payload));
    }
    let (identity, payload) = payload.split_first_chunk::<IDENTITY_SIZE_BYTES>()?;
    let identity = match u64::from_be_bytes(*identity) {
        0 => id,
        identity => TableId(identity),
    };
    Some((ContainerIds { id, identity }, payload))
}

/// The engine's payload for a new container.
pub fn of_new(family: Family, payload: Bytes) -> Bytes {
    with_identity(family, 0, payload)
}

/// The engine's payload for a container that gets another payload, or another id.
pub(crate) fn of_existing(family: Family, identity: TableId, payload: Bytes) -> Bytes {
    with_identity(family, identity.0, payload)
}

fn with_identity(family: Family, identity: u64, payload: Bytes) -> Bytes {
    match family {
        Family::FIRST => payload,
        _ => [&identity.to_be_bytes()[..], &payload].concat().into(),
    }
}
