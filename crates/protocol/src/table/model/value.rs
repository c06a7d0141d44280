//! The eight property types of the Table service, and a value of one of them.

use std::borrow::Cow;

use super::Guid;
use crate::common::DateTime;

/// The types that a property can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdmType {
    /// Text, at most 32,768 UTF-16 code units.
    String,
    /// A signed integer of 32 bits.
    Int32,
    /// A signed integer of 64 bits.
    Int64,
    /// A floating-point number of 64 bits.
    Double,
    /// True or false.
    Boolean,
    /// An instant, in units of 100 ns.
    DateTime,
    /// A GUID.
    Guid,
    /// At most 65,536 bytes.
    Binary,
}

impl EdmType {
    /// The name on the wire, as in `"x@odata.type":"Edm.Int64"`.
    pub fn name(self) -> &'static str {
        match self {
            EdmType::String => "Edm.String",
            EdmType::Int32 => "Edm.Int32",
            EdmType::Int64 => "Edm.Int64",
            EdmType::Double => "Edm.Double",
            EdmType::Boolean => "Edm.Boolean",
            EdmType::DateTime => "Edm.DateTime",
            EdmType::Guid => "Edm.Guid",
            EdmType::Binary => "Edm.Binary",
        }
    }

    /// The type with this name on the wire.
    pub fn from_name(name: &str) -> Option<EdmType> {
        Some(match name {
            "Edm.String" => EdmType::String,
            "Edm.Int32" => EdmType::Int32,
            "Edm.Int64" => EdmType::Int64,
            "Edm.Double" => EdmType::Double,
            "Edm.Boolean" => EdmType::Boolean,
            "Edm.DateTime" => EdmType::DateTime,
            "Edm.Guid" => EdmType::Guid,
            "Edm.Binary" => EdmType::Binary,
            _ => return None,
        })
    }
}

/// A property's value. It borrows where it can, from a request body or from stored bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum Value<'a> {
    /// Edm.String.
    String(Cow<'a, str>),
    /// Edm.Int32.
    Int32(i32),
    /// Edm.Int64.
    Int64(i64),
    /// Edm.Double.
    Double(f64),
    /// Edm.Boolean.
    Boolean(bool),
    /// Edm.DateTime.
    DateTime(DateTime),
    /// Edm.Guid.
    Guid(Guid),
    /// Edm.Binary.
    Binary(Cow<'a, [u8]>),
}

impl Value<'_> {
    /// Its type.
    pub fn edm_type(&self) -> EdmType {
        match self {
            Value::String(_) => EdmType::String,
            Value::Int32(_) => EdmType::Int32,
            Value::Int64(_) => EdmType::Int64,
            Value::Double(_) => EdmType::Double,
            Value::Boolean(_) => EdmType::Boolean,
            Value::DateTime(_) => EdmType::DateTime,
            Value::Guid(_) => EdmType::Guid,
            Value::Binary(_) => EdmType::Binary,
        }
    }

    /// The same value without a borrow.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::String(text) => Value::String(Cow::Owned(text.into_owned())),
            Value::Binary(bytes) => Value::Binary(Cow::Owned(bytes.into_owned())),
            Value::Int32(v) => Value::Int32(v),
            Value::Int64(v) => Value::Int64(v),
            Value::Double(v) => Value::Double(v),
            Value::Boolean(v) => Value::Boolean(v),
            Value::DateTime(v) => Value::DateTime(v),
            Value::Guid(v) => Value::Guid(v),
        }
    }
}

/// A value as stored. Strings are bytes here: they were UTF-8 when they were stored, so code that only copies them need
/// not check them again.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RawValue<'a> {
    String(&'a [u8]),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Boolean(bool),
    DateTime(DateTime),
    Guid(Guid),
    Binary(&'a [u8]),
}

impl<'a> RawValue<'a> {
    /// `None` when a string is not UTF-8.
    pub fn checked(self) -> Option<Value<'a>> {
        Some(match self {
            RawValue::String(text) => Value::String(Cow::Borrowed(std::str::from_utf8(text).ok()?)),
            RawValue::Int32(value) => Value::Int32(value),
            RawValue::Int64(value) => Value::Int64(value),
            RawValue::Double(value) => Value::Double(value),
            RawValue::Boolean(value) => Value::Boolean(value),
            RawValue::DateTime(value) => Value::DateTime(value),
            RawValue::Guid(value) => Value::Guid(value),
            RawValue::Binary(bytes) => Value::Binary(Cow::Borrowed(bytes)),
        })
    }
}

impl<'a> From<&'a Value<'_>> for RawValue<'a> {
    fn from(value: &'a Value<'_>) -> RawValue<'a> {
        match value {
            Value::String(text) => RawValue::String(text.as_bytes()),
            Value::Int32(value) => RawValue::Int32(*value),
            Value::Int64(value) => RawValue::Int64(*value),
            Value::Double(value) => RawValue::Double(*value),
            Value::Boolean(value) => RawValue::Boolean(*value),
            Value::DateTime(value) => RawValue::DateTime(*value),
            Value::Guid(value) => RawValue::Guid(*value),
            Value::Binary(bytes) => RawValue::Binary(bytes),
        }
    }
}
