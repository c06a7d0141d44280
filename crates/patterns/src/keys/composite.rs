//! Several values in one key, sorted by the first, then by the second, and so on.
//!
//! The parts are [escaped](super::escape()) and joined with `!`. No character of an escaped part sorts below `!`, so the
//! order of keys is the order of tuples even if the parts have different lengths: `a!z` sorts before `ab!a`. A separator
//! such as `_` does that only for parts of a fixed width.

use std::ops::Range;

use super::{KeyError, escape, unescape};

/// Stands between the parts.
pub const SEPARATOR: char = '!';

/// Joins the parts to one key.
///
/// ```
/// use lazulite_patterns::keys::{compose, parts};
///
/// assert_eq!(compose(["000123", "2012"]), "000123!2012");
/// assert!(compose(["a", "z"]) < compose(["ab", "a"]));
/// assert_eq!(parts("000123!2012")?, ["000123", "2012"]);
/// # Ok::<(), lazulite_patterns::keys::KeyError>(())
/// ```
pub fn compose<T: AsRef<str>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut key = String::new();
    for (n, part) in parts.into_iter().enumerate() {
        if n > 0 {
            key.push(SEPARATOR);
        }
        key.push_str(&escape(part.as_ref()));
    }
    key
}

/// The parts of a key that [`compose`] wrote.
pub fn parts(key: &str) -> Result<Vec<String>, KeyError> {
    key.split(SEPARATOR).map(|part| unescape(part).map(|part| part.into_owned())).collect()
}

/// The keys that begin with these parts and have at least one more: from the start, up to but without the end.
///
/// ```
/// use lazulite_patterns::keys::{compose, part_range};
///
/// let reviews = part_range(["000123"]);
/// assert!(reviews.contains(&compose(["000123", "2012"])));
/// assert!(!reviews.contains(&compose(["000123"])));
/// assert!(!reviews.contains(&compose(["0001234", "2012"])));
/// ```
pub fn part_range<T: AsRef<str>>(parts: impl IntoIterator<Item = T>) -> Range<String> {
    let prefix = compose(parts);
    // `"` is the next character after `!`.
    format!("{prefix}{SEPARATOR}")..format!("{prefix}\"")
}
