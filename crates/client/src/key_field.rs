//! Types that a key can have in a program.
//!
//! Promises: a key is read only if writing it again gives the same text, so that an entity that was read and is then
//! updated stays where it is.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use crate::{DateTime, Guid};

/// A type of a struct's field that is a key: text, an integer, a [`Guid`], a [`DateTime`], or an enum with
/// [`Enumeration`](derive@crate::Enumeration). With `#[entity(display)]` any type that has [`Display`] and [`FromStr`]
/// will do.
///
/// Keys are ordered as text. `10` is before `9`, so numbers that are to be listed in order need a fixed width, for
/// example by the template `#[entity(row_key = "{number:010}")]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a type of a key",
    note = "use a `String`, an integer or a `Guid`, or mark the field `#[entity(display)]` to write it as text"
)]
pub trait KeyField: Sized {
    /// The key's text.
    fn to_key(&self) -> Cow<'_, str>;

    /// The value of which this is the text; `None` if there is none that [`KeyField::to_key`] writes exactly so.
    fn from_key(text: Cow<'_, str>) -> Option<Self>;
}

macro_rules! text_keys {
    ($($type:ty),*) => {$(
        impl KeyField for $type {
            fn to_key(&self) -> Cow<'_, str> {
                Cow::Borrowed(self)
            }

            fn from_key(text: Cow<'_, str>) -> Option<Self> {
                Some(text.into_owned().into())
            }
        }
    )*};
}

text_keys!(String, Box<str>, Arc<str>, Cow<'static, str>);

macro_rules! displayed_keys {
    ($($type:ty),*) => {$(
        impl KeyField for $type {
            fn to_key(&self) -> Cow<'_, str> {
                Cow::Owned(self.to_string())
            }

            fn from_key(text: Cow<'_, str>) -> Option<Self> {
                from_displayed(&text)
            }
        }
    )*};
}

displayed_keys!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, bool, char, Guid, DateTime);

#[cfg(feature = "uuid")]
displayed_keys!(uuid::Uuid);

/// Reads a text that its type would write exactly so.
pub(crate) fn from_displayed<T: Display + FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|value: &T| value.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_only_if_it_would_be_written_so() {
        assert_eq!(u32::from_key("42".into()), Some(42));
        for other in ["042", "+42", "", "x", "42 "] {
            assert_eq!(u32::from_key(other.into()), None, "{other}");
        }
        assert_eq!(Guid::from_key("00000000-0000-0000-0000-000000000000".into()), Some(Guid([0; 16])));
        assert_eq!(Guid::from_key("{00000000-0000-0000-0000-000000000000}".into()), None);
        assert_eq!(String::from_key("any/thing".into()).as_deref(), Some("any/thing"));
    }
}
