//! Values that a filter compares with, and their text in `$filter`.
//!
//! Owns: which Rust values may stand beside a column of which type, and the escaping of literals. Promises: the text of
//! a literal reads back as the same value of the same Edm type, whatever characters it holds.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::SystemTime;

use protocol::table::filter::CompareOp;
use protocol::table::model::write_double;

use crate::field::from_system_time;
use crate::{DateTime, Guid, Value};

/// A value that a filter can compare with, and that a [`DynamicEntity`](crate::DynamicEntity) can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value of the Table service",
    label = "not text, a number, a boolean, an instant, a GUID or bytes"
)]
pub trait ToLiteral {
    /// The value, and whether it could be said exactly.
    fn to_literal(&self) -> Literal<'_>;
}

/// A value that can be compared with a column of type `C`.
///
/// A column of an `Option<T>` is compared like one of `T`; text with `&str`, `String` and their like; instants with any
/// of the types that hold one.
#[diagnostic::on_unimplemented(
    message = "a column of type `{C}` cannot be compared with `{Self}`",
    label = "this value has another type than the column"
)]
pub trait ComparesWith<C>: ToLiteral {}

/// A value for a filter. One that its Edm type cannot hold is the type's nearest, and a note on which side it lies.
#[derive(Clone, PartialEq, Debug)]
pub struct Literal<'a> {
    pub(crate) value: Value<'a>,
    pub(crate) fit: Fit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    Exact,
    /// Below everything that can be stored. The value is the least of its type.
    Below,
    /// Above everything that can be stored. The value is the greatest of its type.
    Above,
}

impl<'a> Literal<'a> {
    /// Exactly this value.
    pub fn exact(value: Value<'a>) -> Literal<'a> {
        Literal { value, fit: Fit::Exact }
    }
}

impl Fit {
    /// The comparison with the nearest value that holds exactly if `op` holds for the value itself.
    pub(crate) fn adjust(self, op: CompareOp) -> CompareOp {
        match (self, op) {
            (Fit::Exact, op) => op,
            (Fit::Above, CompareOp::Lt | CompareOp::Le | CompareOp::Ne) => CompareOp::Le,
            (Fit::Above, CompareOp::Gt | CompareOp::Ge | CompareOp::Eq) => CompareOp::Gt,
            (Fit::Below, CompareOp::Gt | CompareOp::Ge | CompareOp::Ne) => CompareOp::Ge,
            (Fit::Below, CompareOp::Lt | CompareOp::Le | CompareOp::Eq) => CompareOp::Lt,
        }
    }
}

impl<T: ToLiteral + ?Sized> ToLiteral for &T {
    fn to_literal(&self) -> Literal<'_> {
        T::to_literal(self)
    }
}

impl<C, T: ComparesWith<C> + ?Sized> ComparesWith<C> for &T {}

impl ToLiteral for Value<'_> {
    fn to_literal(&self) -> Literal<'_> {
        Literal::exact(crate::field::borrowed(self))
    }
}

/// A column without a declared type is compared with a value of any.
impl ComparesWith<Value<'static>> for Value<'_> {}

macro_rules! text_literals {
    ($($type:ty),*) => {$(
        impl ToLiteral for $type {
            fn to_literal(&self) -> Literal<'_> {
                Literal::exact(Value::String(Cow::Borrowed(self)))
            }
        }

        impl ComparesWith<String> for $type {}
    )*};
}

text_literals!(str, String, Box<str>, Arc<str>, Cow<'_, str>);

macro_rules! binary_literals {
    ($($type:ty),*) => {$(
        impl ToLiteral for $type {
            fn to_literal(&self) -> Literal<'_> {
                Literal::exact(Value::Binary(Cow::Borrowed(self)))
            }
        }

        impl ComparesWith<Vec<u8>> for $type {}
    )*};
}

binary_literals!([u8], Vec<u8>, Box<[u8]>, Cow<'_, [u8]>);

impl<const N: usize> ToLiteral for [u8; N] {
    fn to_literal(&self) -> Literal<'_> {
        Literal::exact(Value::Binary(Cow::Borrowed(self)))
    }
}

impl<const N: usize> ComparesWith<Vec<u8>> for [u8; N] {}

macro_rules! plain_literals {
    ($($type:ty as $edm:ident),*) => {$(
        impl ToLiteral for $type {
            fn to_literal(&self) -> Literal<'_> {
                Literal::exact(Value::$edm((*self).into()))
            }
        }

        impl ComparesWith<$type> for $type {}
    )*};
}

plain_literals!(
    i8 as Int32,
    u8 as Int32,
    i16 as Int32,
    u16 as Int32,
    i32 as Int32,
    u32 as Int64,
    i64 as Int64,
    f32 as Double,
    f64 as Double,
    bool as Boolean,
    DateTime as DateTime,
    Guid as Guid
);

impl ToLiteral for u64 {
    fn to_literal(&self) -> Literal<'_> {
        match i64::try_from(*self) {
            Ok(value) => Literal::exact(Value::Int64(value)),
            Err(_) => Literal { value: Value::Int64(i64::MAX), fit: Fit::Above },
        }
    }
}

impl ComparesWith<u64> for u64 {}

fn instant(found: Result<DateTime, std::cmp::Ordering>) -> Literal<'static> {
    match found {
        Ok(date) => Literal::exact(Value::DateTime(date)),
        Err(std::cmp::Ordering::Less) => {
            Literal { value: Value::DateTime(DateTime::from_ticks(0)), fit: Fit::Below }
        }
        Err(_) => Literal { value: Value::DateTime(DateTime::MAX), fit: Fit::Above },
    }
}

impl ToLiteral for SystemTime {
    fn to_literal(&self) -> Literal<'_> {
        instant(from_system_time(self))
    }
}

impl ComparesWith<DateTime> for SystemTime {}

#[cfg(feature = "chrono")]
impl ToLiteral for chrono::DateTime<chrono::Utc> {
    fn to_literal(&self) -> Literal<'_> {
        instant(crate::field::from_chrono(self))
    }
}

#[cfg(feature = "chrono")]
impl ComparesWith<DateTime> for chrono::DateTime<chrono::Utc> {}

#[cfg(feature = "time")]
impl ToLiteral for time::OffsetDateTime {
    fn to_literal(&self) -> Literal<'_> {
        instant(crate::field::from_offset_date_time(self))
    }
}

#[cfg(feature = "time")]
impl ComparesWith<DateTime> for time::OffsetDateTime {}

#[cfg(feature = "uuid")]
impl ToLiteral for uuid::Uuid {
    fn to_literal(&self) -> Literal<'_> {
        Literal::exact(Value::Guid(Guid(self.into_bytes())))
    }
}

#[cfg(feature = "uuid")]
impl ComparesWith<Guid> for uuid::Uuid {}

/// The text of a value in `$filter`.
pub(crate) struct LiteralText<'v>(pub &'v Value<'v>);

impl fmt::Display for LiteralText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) => {
                f.write_char('\'')?;
                let mut pieces = text.split('\'');
                f.write_str(pieces.next().unwrap_or_default())?;
                for piece in pieces {
                    f.write_str("''")?;
                    f.write_str(piece)?;
                }
                f.write_char('\'')
            }
            Value::Int32(value) => write!(f, "{value}"),
            Value::Int64(value) => write!(f, "{value}L"),
            Value::Boolean(value) => write!(f, "{value}"),
            Value::DateTime(value) => write!(f, "datetime'{value}'"),
            Value::Guid(value) => write!(f, "guid'{value}'"),
            Value::Binary(bytes) => {
                f.write_str("X'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_char('\'')
            }
            // The special numbers have other names here than in JSON.
            Value::Double(value) if *value == f64::INFINITY => f.write_str("INF"),
            Value::Double(value) if *value == f64::NEG_INFINITY => f.write_str("-INF"),
            Value::Double(value) => {
                let mut text = Vec::with_capacity(24);
                write_double(*value, &mut text);
                f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
            }
        }
    }
}
