//! Several kinds of entity in one table: what `#[derive(EntityKind)]` needs besides the kinds themselves.
//!
//! Promises: the property that tells kinds apart is written with every entity, and is what an entity is read by.

use std::borrow::Cow;

use crate::field::{absent, refused};
use crate::{EntityError, Property, Row, Value};

/// How long the union of these lists can be.
pub const fn union_len_max(lists: &[&[&str]]) -> usize {
    let (mut at, mut len) = (0, 0);
    while at < lists.len() {
        len += lists[at].len();
        at += 1;
    }
    len
}

/// Every name once, in the order of its first list; then how many names there are.
pub const fn union<const MAX: usize>(lists: &[&[&'static str]]) -> ([&'static str; MAX], usize) {
    let (mut names, mut len, mut list) = ([""; MAX], 0, 0);
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            let name = lists[list][at];
            if !contains(&names, len, name) {
                names[len] = name;
                len += 1;
            }
            at += 1;
        }
        list += 1;
    }
    (names, len)
}

const fn contains(names: &[&str], len: usize, name: &str) -> bool {
    let mut at = 0;
    while at < len {
        if is_same(names[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

/// `==` cannot be used in a constant.
const fn is_same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Whether every kind says which properties it has.
pub const fn all_are_known(lists: &[Option<&[&str]>]) -> bool {
    let mut at = 0;
    while at < lists.len() {
        if lists[at].is_none() {
            return false;
        }
        at += 1;
    }
    true
}

/// The list, or nothing for a kind that takes all properties.
pub const fn names_of(list: Option<&'static [&'static str]>) -> &'static [&'static str] {
    match list {
        Some(names) => names,
        None => &[],
    }
}

/// Adds the property that tells kinds apart. A kind that has it as a property of its own must give it this value.
pub fn write_kind<'a>(
    name: &'static str,
    kind: &'static str,
    out: &mut Vec<Property<'a>>,
    from: usize,
) -> Result<(), EntityError> {
    match out[from..].iter().find(|property| property.name == name) {
        None => {
            out.push(Property { name: Cow::Borrowed(name), value: Value::String(Cow::Borrowed(kind)) });
            Ok(())
        }
        Some(Property { value: Value::String(found), .. }) if found == kind => Ok(()),
        Some(_) => Err(refused(name, format!("an entity of this kind has the value {kind:?} here"))),
    }
}

/// The kind that a row names.
pub fn read_kind<'r>(name: &'static str, row: &'r Row<'_>) -> Option<&'r str> {
    match row.get(name) {
        Some(Value::String(kind)) => Some(kind),
        _ => None,
    }
}

/// Removes the property that tells kinds apart, unless the kind has it as a property of its own.
pub fn strip_kind(name: &'static str, columns: Option<&'static [&'static str]>, row: &mut Row<'_>) {
    if !columns.is_some_and(|columns| columns.contains(&name)) {
        row.take(name);
    }
}

/// The error for a row of no known kind.
pub fn unknown_kind(name: &'static str, row: &Row<'_>) -> EntityError {
    match row.get(name) {
        None => absent(name),
        Some(Value::String(kind)) => refused(name, format!("no kind of entity has the value {kind:?}")),
        Some(other) => refused(name, format!("expected Edm.String, found {}", other.edm_type().name())),
    }
}

/// The error for a row whose RowKey has no known prefix.
pub fn unknown_prefix(row: &Row<'_>) -> EntityError {
    refused("RowKey", format!("no kind of entity has a row key like {:?}", row.row_key))
}

/// Checks that an entity's own key makes it the kind that it is: it has the prefix, which is empty for the kind of all
/// others, and none of the longer ones that other kinds have.
pub fn check_prefix(prefix: &'static str, longer: &[&'static str], row_key: &str) -> Result<(), EntityError> {
    if !row_key.starts_with(prefix) {
        let reason =
            format!("an entity of this kind has a row key that starts with {prefix:?}, not {row_key:?}");
        return Err(refused("RowKey", reason));
    }
    match longer.iter().find(|other| row_key.starts_with(**other)) {
        None => Ok(()),
        Some(other) => {
            let reason = format!(
                "{row_key:?} would be read as another kind of entity, whose row keys start with {other:?}"
            );
            Err(refused("RowKey", reason))
        }
    }
}

/// Checks that an entity of the kind for all others does not name one of the kinds.
pub fn check_other_kind(
    name: &'static str,
    kinds: &[&'static str],
    written: &[Property<'_>],
) -> Result<(), EntityError> {
    let kind = written.iter().find(|property| property.name == name).map(|property| &property.value);
    match kind {
        Some(Value::String(kind)) if kinds.contains(&&**kind) => {
            Err(refused(name, format!("with the value {kind:?} it would be read as another kind of entity")))
        }
        _ => Ok(()),
    }
}
