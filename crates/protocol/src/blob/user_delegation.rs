//! Get User Delegation Key: what a caller asks for, and the answer.

use crate::ServiceError;
use crate::auth::DelegationKey;
use crate::common::xml::{self, Element, invalid_value};
use crate::common::xml_write::XmlWriter;
use crate::common::{DateTime, parse_policy_time};

/// Seven days.
const LIFE_TICKS_MAX: u64 = 7 * 86_400 * 10_000_000;

/// From when until when a key is to be valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyInfo {
    pub start: DateTime,
    pub expiry: DateTime,
}

impl KeyInfo {
    /// Reads the body of the request. A key without a start is valid from now on.
    pub fn read(body: &[u8], now: DateTime) -> Result<KeyInfo, ServiceError> {
        let root = xml::read(body, "KeyInfo")?;
        let [start, expiry, _tenant] = root.fields(["Start", "Expiry", "DelegatedUserTid"])?;
        let time = |field: &Element| {
            parse_policy_time(field.leaf()?.trim()).ok_or_else(|| invalid_value("not a time"))
        };
        let start = start.filter(|field| !field.text.is_empty()).map(time).transpose()?.unwrap_or(now);
        let expiry = expiry.ok_or_else(|| invalid_value("no Expiry"))?;
        let expiry = time(expiry)?;
        let is_short = expiry.ticks().saturating_sub(now.ticks()) <= LIFE_TICKS_MAX;
        if expiry <= start || expiry <= now || !is_short {
            return Err(invalid_value("not within the next seven days"));
        }
        Ok(KeyInfo { start, expiry })
    }

    /// A time in the form in which tokens repeat it: without a fraction, which some clients would drop.
    pub fn text(time: DateTime) -> String {
        DateTime::from_ticks(time.whole_seconds() * 10_000_000).to_string()
    }
}

/// The answer: what tokens repeat, and the key itself in Base64.
pub fn write_key(key: &DelegationKey<'_>, value: &str) -> Vec<u8> {
    let mut out = XmlWriter::begin_unmarked(512);
    out.start("UserDelegationKey");
    for (name, text) in [
        ("SignedOid", &*key.object_id),
        ("SignedTid", &key.tenant_id),
        ("SignedStart", &key.start),
        ("SignedExpiry", &key.expiry),
        ("SignedService", &key.service),
        ("SignedVersion", &key.version),
        ("Value", value),
    ] {
        out.leaf(name, text);
    }
    out.end("UserDelegationKey");
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    fn now() -> DateTime {
        DateTime::parse("2026-06-26T12:00:00Z").unwrap()
    }

    #[test]
    fn keys_live_for_a_week_at_most() {
        let read = |fields: &str| {
            let info = KeyInfo::read(format!("<KeyInfo>{fields}</KeyInfo>").as_bytes(), now());
            info.map(|info| (KeyInfo::text(info.start), KeyInfo::text(info.expiry)))
                .map_err(|error| error.code)
        };
        let pair = |start: &str, expiry: &str| Ok((start.to_owned(), expiry.to_owned()));
        assert_eq!(
            read("<Start>2026-06-26T00:00:00.5Z</Start><Expiry>2026-06-27T00:00:00Z</Expiry>"),
            pair("2026-06-26T00:00:00Z", "2026-06-27T00:00:00Z")
        );
        assert_eq!(
            read("<Expiry>2026-07-03T12:00:00Z</Expiry>"),
            pair("2026-06-26T12:00:00Z", "2026-07-03T12:00:00Z")
        );
        for bad in [
            "",
            "<Expiry>soon</Expiry>",
            "<Expiry>2026-07-03T12:00:01Z</Expiry>",
            "<Expiry>2026-06-26T12:00:00Z</Expiry>",
            "<Start>2026-06-28T00:00:00Z</Start><Expiry>2026-06-27T00:00:00Z</Expiry>",
        ] {
            assert_eq!(read(bad), Err(ErrorCode::InvalidXmlNodeValue), "{bad}");
        }
        assert_eq!(read("<x/>"), Err(ErrorCode::InvalidXmlDocument));
    }

    #[test]
    fn the_answer_has_what_tokens_repeat() {
        let key = DelegationKey {
            object_id: "o".into(),
            tenant_id: "t".into(),
            start: "2026-06-26T00:00:00Z".into(),
            expiry: "2026-06-27T00:00:00Z".into(),
            service: "b".into(),
            version: "2025-11-05".into(),
        };
        assert_eq!(
            String::from_utf8(write_key(&key, "dmFsdWU=")).unwrap(),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid><SignedStart>2026-06-26T00:00:00Z</SignedStart><SignedExpiry>2026-06-27T00:00:00Z</SignedExpiry><SignedService>b</SignedService><SignedVersion>2025-11-05</SignedVersion><Value>dmFsdWU=</Value></UserDelegationKey>"
        );
    }
}
