//! Types that a property can have in a program.
//!
//! Owns: [`Field`] and its implementations for every Edm type and the types that fit one of them. Promises: what a
//! field writes it reads back as the same value, except that instants keep only 100 ns; a value that its Edm type
//! cannot hold is an error, never cut off. Leaves to others: keys, and values inside a filter.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::{DateTime, EdmType, EntityError, Guid, Value};

/// Ticks are 100 ns long.
const NANOSECONDS_PER_TICK: u128 = 100;

/// A type of a struct's field that is stored as a property. `None` stands for a property that is absent.
///
/// | in the program | in the table |
/// |---|---|
/// | `String`, `Box<str>`, `Arc<str>`, `Cow<'static, str>` | Edm.String |
/// | an enum with [`Enumeration`](derive@crate::Enumeration) | Edm.String |
/// | `i32`, `i8`, `i16`, `u8`, `u16` | Edm.Int32 |
/// | `i64`, `u32`, and `u64` up to [`i64::MAX`] | Edm.Int64 |
/// | `f64`, `f32` | Edm.Double |
/// | `bool` | Edm.Boolean |
/// | [`DateTime`], [`SystemTime`] | Edm.DateTime |
/// | with the feature `chrono` its `DateTime<Utc>`, with `time` its `OffsetDateTime` | Edm.DateTime |
/// | [`Guid`], with the feature `uuid` its `Uuid` | Edm.Guid |
/// | `Vec<u8>`, `Box<[u8]>` | Edm.Binary |
/// | `Option<T>` | as `T`, and absent for `None` |
/// | [`Value`] | any of them |
///
/// Reading is a little wider than writing: an integer is read into any integer or floating-point type that holds it,
/// and a date, GUID, Int64 or special double also from its text, because an answer without metadata has only that.
///
/// A type of one's own becomes a property by writing it as one of these:
///
/// ```
/// use lazulite_client::{EntityError, Field, Value};
///
/// #[derive(PartialEq, Debug)]
/// struct Celsius(f64);
///
/// impl Field for Celsius {
///     type Compared = f64;
///
///     fn to_value(&self, name: &str) -> Result<Option<Value<'_>>, EntityError> {
///         self.0.to_value(name)
///     }
///
///     fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
///         f64::from_value(name, value).map(Celsius)
///     }
/// }
///
/// assert_eq!(Celsius::from_value("Inside", Some(Value::Double(21.5))), Ok(Celsius(21.5)));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as a property",
    label = "not a type of the Table service",
    note = "use a type that implements `Field`, or store it as text with `#[entity(json)]` or `#[entity(display)]`",
    note = "an enum without fields can `#[derive(Enumeration)]`"
)]
pub trait Field: Sized {
    /// What a [`Column`](crate::Column) of this type is compared with in filters: for an `Option<T>` what `T` is
    /// compared with, otherwise mostly the type itself.
    type Compared;

    /// The value to store. `name` is for the error.
    fn to_value(&self, name: &str) -> Result<Option<Value<'_>>, EntityError>;

    /// Reads a stored value. `name` is for the error.
    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError>;
}

pub(crate) fn refused(name: &str, reason: impl Into<Cow<'static, str>>) -> EntityError {
    EntityError { property: Cow::Owned(name.to_owned()), reason: reason.into() }
}

/// The error for a property that must be there.
pub(crate) fn absent(name: &str) -> EntityError {
    refused(name, "the entity does not have this property")
}

/// The error for a value of the wrong type, or an absent one.
fn unexpected(name: &str, expected: EdmType, found: Option<&Value<'_>>) -> EntityError {
    match found {
        None => absent(name),
        Some(value) => {
            refused(name, format!("expected {}, found {}", expected.name(), value.edm_type().name()))
        }
    }
}

fn out_of_range(name: &str, value: impl std::fmt::Display, type_name: &str) -> EntityError {
    refused(name, format!("{value} is out of the range of {type_name}"))
}

/// A view of a value, to read from one that stays where it is.
pub(crate) fn borrowed<'a>(value: &'a Value<'_>) -> Value<'a> {
    match value {
        Value::String(text) => Value::String(Cow::Borrowed(text)),
        Value::Binary(bytes) => Value::Binary(Cow::Borrowed(bytes)),
        Value::Int32(value) => Value::Int32(*value),
        Value::Int64(value) => Value::Int64(*value),
        Value::Double(value) => Value::Double(*value),
        Value::Boolean(value) => Value::Boolean(*value),
        Value::DateTime(value) => Value::DateTime(*value),
        Value::Guid(value) => Value::Guid(*value),
    }
}

impl<T: Field> Field for Option<T> {
    type Compared = T::Compared;

    fn to_value(&self, name: &str) -> Result<Option<Value<'_>>, EntityError> {
        match self {
            Some(value) => value.to_value(name),
            None => Ok(None),
        }
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        match value {
            Some(value) => T::from_value(name, Some(value)).map(Some),
            None => Ok(None),
        }
    }
}

/// A property of any type, kept as it is.
impl Field for Value<'static> {
    type Compared = Value<'static>;

    fn to_value(&self, _name: &str) -> Result<Option<Value<'_>>, EntityError> {
        Ok(Some(borrowed(self)))
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        value.map(Value::into_owned).ok_or_else(|| absent(name))
    }
}

macro_rules! text_fields {
    ($($type:ty),*) => {$(
        impl Field for $type {
            type Compared = String;

            fn to_value(&self, _name: &str) -> Result<Option<Value<'_>>, EntityError> {
                Ok(Some(Value::String(Cow::Borrowed(self))))
            }

            fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
                match value {
                    Some(Value::String(text)) => Ok(text.into_owned().into()),
                    other => Err(unexpected(name, EdmType::String, other.as_ref())),
                }
            }
        }
    )*};
}

text_fields!(String, Box<str>, Arc<str>, Cow<'static, str>);

/// An integer from any value that can stand for one. Text counts because Int64 is text where there is no metadata.
fn integer(name: &str, expected: EdmType, value: Option<Value<'_>>) -> Result<i64, EntityError> {
    match value {
        Some(Value::Int32(value)) => Ok(i64::from(value)),
        Some(Value::Int64(value)) => Ok(value),
        Some(Value::String(text)) if expected == EdmType::Int64 => {
            text.parse().map_err(|_| unexpected(name, expected, Some(&Value::String(text))))
        }
        other => Err(unexpected(name, expected, other.as_ref())),
    }
}

macro_rules! integer_fields {
    ($($type:ty as $edm:ident of $stored:ty),*) => {$(
        impl Field for $type {
            type Compared = $type;

            fn to_value(&self, name: &str) -> Result<Option<Value<'_>>, EntityError> {
                // Only a u64 can fail.
                #[allow(clippy::useless_conversion, irrefutable_let_patterns)]
                match <$stored>::try_from(*self) {
                    Ok(value) => Ok(Some(Value::$edm(value))),
                    Err(_) => Err(out_of_range(name, self, EdmType::$edm.name())),
                }
            }

            fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
                let value = integer(name, EdmType::$edm, value)?;
                <$type>::try_from(value).map_err(|_| out_of_range(name, value, stringify!($type)))
            }
        }
    )*};
}

integer_fields!(
    i8 as Int32 of i32, u8 as Int32 of i32, i16 as Int32 of i32, u16 as Int32 of i32, i32 as Int32 of i32,
    u32 as Int64 of i64, i64 as Int64 of i64, u64 as Int64 of i64
);

impl Field for f64 {
    type Compared = f64;

    fn to_value(&self, _name: &str) -> Result<Option<Value<'_>>, EntityError> {
        Ok(Some(Value::Double(*self)))
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        match value {
            Some(Value::Double(value)) => Ok(value),
            // Some servers write 3.0 as 3.
            Some(Value::Int32(value)) => Ok(f64::from(value)),
            Some(Value::Int64(value)) if value as f64 as i128 == i128::from(value) => Ok(value as f64),
            Some(Value::String(text)) => match &*text {
                "NaN" => Ok(f64::NAN),
                "Infinity" => Ok(f64::INFINITY),
                "-Infinity" => Ok(f64::NEG_INFINITY),
                _ => Err(unexpected(name, EdmType::Double, Some(&Value::String(text)))),
            },
            other => Err(unexpected(name, EdmType::Double, other.as_ref())),
        }
    }
}

impl Field for f32 {
    type Compared = f32;

    fn to_value(&self, _name: &str) -> Result<Option<Value<'_>>, EntityError> {
        Ok(Some(Value::Double(f64::from(*self))))
    }

    /// Rounds to the nearest number that an `f32` has, but refuses one that would become infinite.
    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        let double = f64::from_value(name, value)?;
        let single = double as f32;
        if single.is_infinite() && double.is_finite() {
            return Err(out_of_range(name, double, "f32"));
        }
        Ok(single)
    }
}

impl Field for bool {
    type Compared = bool;

    fn to_value(&self, _name: &str) -> Result<Option<Value<'_>>, EntityError> {
        Ok(Some(Value::Boolean(*self)))
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        match value {
            Some(Value::Boolean(value)) => Ok(value),
            other => Err(unexpected(name, EdmType::Boolean, other.as_ref())),
        }
    }
}

macro_rules! binary_fields {
    ($($type:ty),*) => {$(
        impl Field for $type {
            type Compared = Vec<u8>;

            fn to_value(&self, _name: &str) -> Result<Option<Value<'_>>, EntityError> {
                Ok(Some(Value::Binary(Cow::Borrowed(self))))
            }

            /// Not from text, even where there is no metadata: nearly every short word is Base64 too.
            fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
                match value {
                    Some(Value::Binary(bytes)) => Ok(bytes.into_owned().into()),
                    other => Err(unexpected(name, EdmType::Binary, other.as_ref())),
                }
            }
        }
    )*};
}

binary_fields!(Vec<u8>, Box<[u8]>);

impl Field for DateTime {
    type Compared = DateTime;

    fn to_value(&self, _name: &str) -> Result<Option<Value<'_>>, EntityError> {
        Ok(Some(Value::DateTime(*self)))
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        match value {
            Some(Value::DateTime(value)) => Ok(value),
            Some(Value::String(text)) => DateTime::parse(&text)
                .ok_or_else(|| unexpected(name, EdmType::DateTime, Some(&Value::String(text)))),
            other => Err(unexpected(name, EdmType::DateTime, other.as_ref())),
        }
    }
}

impl Field for Guid {
    type Compared = Guid;

    fn to_value(&self, _name: &str) -> Result<Option<Value<'_>>, EntityError> {
        Ok(Some(Value::Guid(*self)))
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        match value {
            Some(Value::Guid(value)) => Ok(value),
            Some(Value::String(text)) => {
                Guid::parse(&text).ok_or_else(|| unexpected(name, EdmType::Guid, Some(&Value::String(text))))
            }
            other => Err(unexpected(name, EdmType::Guid, other.as_ref())),
        }
    }
}

/// An instant that was counted in nanoseconds from 1970: before the first, an instant that Edm.DateTime has, or after
/// the last. Fractions of a tick are dropped, towards the past.
pub(crate) fn ticks_from_unix(nanoseconds: i128) -> Result<DateTime, std::cmp::Ordering> {
    let ticks =
        nanoseconds.div_euclid(NANOSECONDS_PER_TICK as i128) + i128::from(DateTime::UNIX_EPOCH.ticks());
    match u64::try_from(ticks) {
        Ok(ticks) if ticks <= DateTime::MAX.ticks() => Ok(DateTime::from_ticks(ticks)),
        Ok(_) => Err(std::cmp::Ordering::Greater),
        Err(_) if ticks < 0 => Err(std::cmp::Ordering::Less),
        Err(_) => Err(std::cmp::Ordering::Greater),
    }
}

/// Nanoseconds from 1970; at most a few 10^20, so that they fit.
#[cfg(any(feature = "time", test))]
fn unix_nanoseconds(date: DateTime) -> i128 {
    (i128::from(date.ticks()) - i128::from(DateTime::UNIX_EPOCH.ticks())) * NANOSECONDS_PER_TICK as i128
}

fn nanoseconds_of(time: &SystemTime) -> i128 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        // A Duration holds at most 2^64 seconds: far fewer nanoseconds than an i128.
        Ok(after) => after.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    }
}

/// The instant of a [`SystemTime`] in ticks, or on which side of all instants it lies.
pub(crate) fn from_system_time(time: &SystemTime) -> Result<DateTime, std::cmp::Ordering> {
    ticks_from_unix(nanoseconds_of(time))
}

/// Nothing but Edm.DateTime's own range limits the instants that are written.
fn instant(
    name: &str,
    found: Result<DateTime, std::cmp::Ordering>,
) -> Result<Option<Value<'static>>, EntityError> {
    match found {
        Ok(date) => Ok(Some(Value::DateTime(date))),
        Err(_) => Err(refused(name, "the instant is out of the range of Edm.DateTime")),
    }
}

impl Field for SystemTime {
    type Compared = DateTime;

    fn to_value(&self, name: &str) -> Result<Option<Value<'_>>, EntityError> {
        instant(name, from_system_time(self))
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        let date = DateTime::from_value(name, value)?;
        let (now, epoch) = (date.ticks(), DateTime::UNIX_EPOCH.ticks());
        let distance = now.abs_diff(epoch);
        let distance = Duration::new(distance / 10_000_000, (distance % 10_000_000) as u32 * 100);
        let found = if now >= epoch {
            SystemTime::UNIX_EPOCH.checked_add(distance)
        } else {
            SystemTime::UNIX_EPOCH.checked_sub(distance)
        };
        found.ok_or_else(|| out_of_range(name, date, "SystemTime"))
    }
}

#[cfg(feature = "chrono")]
pub(crate) fn from_chrono(time: &chrono::DateTime<chrono::Utc>) -> Result<DateTime, std::cmp::Ordering> {
    let nanoseconds = i128::from(time.timestamp()) * 1_000_000_000
        + i128::from(time.timestamp_subsec_nanos().min(999_999_999));
    ticks_from_unix(nanoseconds)
}

#[cfg(feature = "chrono")]
impl Field for chrono::DateTime<chrono::Utc> {
    type Compared = DateTime;

    fn to_value(&self, name: &str) -> Result<Option<Value<'_>>, EntityError> {
        instant(name, from_chrono(self))
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        let date = DateTime::from_value(name, value)?;
        let ticks = i128::from(date.ticks()) - i128::from(DateTime::UNIX_EPOCH.ticks());
        let (seconds, ticks) = (ticks.div_euclid(10_000_000), ticks.rem_euclid(10_000_000));
        chrono::DateTime::from_timestamp(seconds as i64, ticks as u32 * 100)
            .ok_or_else(|| out_of_range(name, date, "chrono::DateTime"))
    }
}

#[cfg(feature = "time")]
pub(crate) fn from_offset_date_time(time: &time::OffsetDateTime) -> Result<DateTime, std::cmp::Ordering> {
    ticks_from_unix(time.unix_timestamp_nanos())
}

#[cfg(feature = "time")]
impl Field for time::OffsetDateTime {
    type Compared = DateTime;

    fn to_value(&self, name: &str) -> Result<Option<Value<'_>>, EntityError> {
        instant(name, from_offset_date_time(self))
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        let date = DateTime::from_value(name, value)?;
        time::OffsetDateTime::from_unix_timestamp_nanos(unix_nanoseconds(date))
            .map_err(|_| out_of_range(name, date, "time::OffsetDateTime"))
    }
}

#[cfg(feature = "uuid")]
impl Field for uuid::Uuid {
    type Compared = Guid;

    fn to_value(&self, _name: &str) -> Result<Option<Value<'_>>, EntityError> {
        Ok(Some(Value::Guid(Guid(self.into_bytes()))))
    }

    fn from_value(name: &str, value: Option<Value<'_>>) -> Result<Self, EntityError> {
        Guid::from_value(name, value).map(|guid| uuid::Uuid::from_bytes(guid.0))
    }
}

#[cfg(test)]
mod tests;
