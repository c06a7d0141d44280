//! The names of the headers that most requests have, as most clients spell them.
//!
//! Promises: a name that is found here is a token and needs no copy in lower case. Leaves all other names to `parse`.

use super::parts::{hint, slot};

/// As most clients spell it, and in lower case.
type Spelling = (&'static str, &'static str);

const NAMES: [Spelling; 17] = [
    ("Accept", "accept"),
    ("Accept-Encoding", "accept-encoding"),
    ("Authorization", "authorization"),
    ("Connection", "connection"),
    ("Content-Length", "content-length"),
    ("Content-Type", "content-type"),
    ("DataServiceVersion", "dataserviceversion"),
    ("Date", "date"),
    ("Host", "host"),
    ("If-Match", "if-match"),
    ("If-None-Match", "if-none-match"),
    ("MaxDataServiceVersion", "maxdataserviceversion"),
    ("Prefer", "prefer"),
    ("User-Agent", "user-agent"),
    ("x-ms-client-request-id", "x-ms-client-request-id"),
    ("x-ms-date", "x-ms-date"),
    ("x-ms-version", "x-ms-version"),
];

static BY_SLOT: [Option<Spelling>; 64] = by_slot();

const fn by_slot() -> [Option<Spelling>; 64] {
    let mut by_slot = [None; 64];
    let mut at = 0;
    while at < NAMES.len() {
        let slot = slot(hint(NAMES[at].1.as_bytes()));
        assert!(by_slot[slot].is_none(), "each name has a slot of its own");
        by_slot[slot] = Some(NAMES[at]);
        at += 1;
    }
    by_slot
}

/// The name in lower case, if it is one of these.
pub(super) fn find(hint: u32, name: &[u8]) -> Option<&'static str> {
    let (usual, lower) = BY_SLOT[slot(hint)]?;
    (name == usual.as_bytes() || name == lower.as_bytes()).then_some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_spellings_are_found_and_no_others() {
        for (usual, lower) in NAMES {
            assert!(usual.eq_ignore_ascii_case(lower) && lower.to_ascii_lowercase() == lower);
            assert!(crate::http::parse::is_token(usual.as_bytes()), "{usual}");
            for spelt in [usual, lower] {
                assert_eq!(find(hint(spelt.as_bytes()), spelt.as_bytes()), Some(lower));
            }
        }
        for other in ["", "hOST", "hoSt", "hott", "x-ms-dat\u{e9}", "Content-Lenght"] {
            assert_eq!(find(hint(other.as_bytes()), other.as_bytes()), None, "{other}");
        }
    }
}
