//! What tells the parts of one blob apart: snapshots, versions, and ids of blocks.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::DateTime;
use crate::common::percent::percent_decode;
use crate::common::query::{Query, invalid_parameter, missing_parameter, text};
use crate::{ErrorCode, ServiceError};

/// Before Base64.
const BLOCK_ID_BYTES_MAX: usize = 64;

/// Which state of a blob a request is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Revision {
    /// The blob itself.
    #[default]
    Base,
    /// `snapshot=`, the time at which it was taken.
    Snapshot(DateTime),
    /// `versionid=`, the time at which it was written.
    Version(DateTime),
}

impl Revision {
    pub fn read(query: &Query<'_>) -> Result<Revision, ServiceError> {
        let snapshot = read_moment(query, "snapshot")?;
        match (snapshot, read_moment(query, "versionid")?) {
            (None, None) => Ok(Revision::Base),
            (Some(taken), None) => Ok(Revision::Snapshot(taken)),
            (None, Some(written)) => Ok(Revision::Version(written)),
            (Some(_), Some(_)) => {
                let sent = text(query, "versionid")?.unwrap_or_default();
                Err(invalid_parameter("versionid", &sent, ""))
            }
        }
    }

    pub fn is_base(self) -> bool {
        self == Revision::Base
    }
}

/// A time in a parameter, in the form in which the service writes it. An empty parameter is an absent one.
pub(crate) fn read_moment(query: &Query<'_>, name: &'static str) -> Result<Option<DateTime>, ServiceError> {
    let Some(sent) = text(query, name)?.filter(|sent| !sent.is_empty()) else { return Ok(None) };
    let moment = Some(&*sent).filter(|sent| sent.ends_with(['Z', 'z'])).and_then(DateTime::parse);
    moment.map(Some).ok_or_else(|| invalid_parameter(name, &sent, ""))
}

/// The id of a block: 1 to 64 bytes, in Base64 on the wire.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlockId(Box<[u8]>);

impl BlockId {
    /// From Base64. `None` unless it is that of 1 to 64 bytes.
    pub fn parse(text: &str) -> Option<BlockId> {
        // Longer texts are refused unread.
        if text.len() > BLOCK_ID_BYTES_MAX * 2 {
            return None;
        }
        let bytes = STANDARD.decode(text).ok()?;
        BlockId::from_bytes(&bytes)
    }

    /// From the bytes behind the Base64, as they are stored.
    pub fn from_bytes(bytes: &[u8]) -> Option<BlockId> {
        (1..=BLOCK_ID_BYTES_MAX).contains(&bytes.len()).then(|| BlockId(bytes.into()))
    }

    /// The parameter `blockid` of Put Block.
    pub fn read(query: &Query<'_>) -> Result<BlockId, ServiceError> {
        let raw = query.raw("blockid").ok_or_else(|| missing_parameter("blockid"))?;
        // Base64 has no spaces, so an unescaped `+` can only mean itself.
        let sent = percent_decode(raw);
        let sent = sent.as_deref().unwrap_or(raw);
        if let Some(id) = BlockId::parse(sent) {
            return Ok(id);
        }
        match STANDARD.decode(sent) {
            Ok(bytes) if !bytes.is_empty() => Err(ErrorCode::OutOfRangeInput.into()),
            _ => Err(invalid_parameter("blockid", sent, "Not a valid base64 string.")),
        }
    }

    /// The staged blocks of one blob have ids of the same length.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// In Base64, as lists show it.
impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_about_the_base_a_snapshot_or_a_version() {
        let read = |query: &str| Revision::read(&Query::split(query)).map_err(|error| error.code);
        let moment = DateTime::parse("2019-08-28T17:07:35.2821851Z").unwrap();
        assert_eq!(read(""), Ok(Revision::Base));
        assert_eq!(read("snapshot="), Ok(Revision::Base));
        assert_eq!(read("snapshot=2019-08-28T17%3A07%3A35.2821851Z"), Ok(Revision::Snapshot(moment)));
        assert_eq!(read("versionid=2019-08-28T17:07:35.2821851Z"), Ok(Revision::Version(moment)));
        assert_eq!(moment.to_padded(), "2019-08-28T17:07:35.2821851Z");
        for bad in [
            "snapshot=yesterday",
            "snapshot=2019-08-28",
            "snapshot=2019-08-28T17:07:35",
            "snapshot=%zz",
            "snapshot=2019-08-28T17:07:35Z&versionid=2019-08-28T17:07:35Z",
        ] {
            assert_eq!(read(bad), Err(ErrorCode::InvalidQueryParameterValue), "{bad}");
        }
    }

    #[test]
    fn ids_of_blocks_are_base64_of_at_most_64_bytes() {
        let read = |query: &str| {
            let id = BlockId::read(&Query::split(query));
            id.map(|id| (id.as_bytes().len(), id.to_string())).map_err(|error| error.code)
        };
        assert_eq!(read("blockid=MQ%3D%3D"), Ok((1, "MQ==".to_owned())));
        assert_eq!(read("blockid=AAA+"), Ok((3, "AAA+".to_owned())));
        let longest = STANDARD.encode([7; 64]);
        assert_eq!(read(&format!("blockid={longest}")), Ok((64, longest)));
        assert_eq!(read(""), Err(ErrorCode::MissingRequiredQueryParameter));
        for bad in ["blockid=", "blockid=%21%21", "blockid=MQ", "blockid=%zz"] {
            assert_eq!(read(bad), Err(ErrorCode::InvalidQueryParameterValue), "{bad}");
        }
        let long = STANDARD.encode([7; 65]);
        assert_eq!(read(&format!("blockid={long}")), Err(ErrorCode::OutOfRangeInput));
        let longer = STANDARD.encode([7; 6500]);
        assert_eq!(read(&format!("blockid={longer}")), Err(ErrorCode::OutOfRangeInput));
    }
}
