//! The eight property types of the Table service, and a value of one of them.

use std::borrow::Cow;

use super::Guid;
use crate::common::DateTime;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdmType {
    String,
    Int32,
    Int64,
    Double,
    Boolean,
    DateTime,
    Guid,
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
    String(Cow<'a, str>),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Boolean(bool),
    DateTime(DateTime),
    Guid(Guid),
    Binary(Cow<'a, [u8]>),
}

impl Value<'_> {
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
