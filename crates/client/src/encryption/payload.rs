//! A value as the bytes that are sealed: the value, then one byte for its Edm type.
//!
//! The type comes last, so that an opened string or binary is used where it lies.

use std::borrow::Cow;

use crate::{DateTime, Guid, Value};

const STRING: u8 = 1;
const INT32: u8 = 2;
const INT64: u8 = 3;
const DOUBLE: u8 = 4;
const BOOLEAN: u8 = 5;
const DATE_TIME: u8 = 6;
const GUID: u8 = 7;
const BINARY: u8 = 8;

/// How long the bytes of a value are.
pub(super) fn len(value: &Value<'_>) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::Binary(bytes) => bytes.len(),
        Value::Int32(_) => 4,
        Value::Int64(_) | Value::Double(_) | Value::DateTime(_) => 8,
        Value::Boolean(_) => 1,
        Value::Guid(_) => 16,
    }
}

pub(super) fn write(value: &Value<'_>, out: &mut Vec<u8>) {
    let edm_type = match value {
        Value::String(text) => {
            out.extend_from_slice(text.as_bytes());
            STRING
        }
        Value::Int32(value) => {
            out.extend_from_slice(&value.to_be_bytes());
            INT32
        }
        Value::Int64(value) => {
            out.extend_from_slice(&value.to_be_bytes());
            INT64
        }
        Value::Double(value) => {
            out.extend_from_slice(&value.to_bits().to_be_bytes());
            DOUBLE
        }
        Value::Boolean(value) => {
            out.push(u8::from(*value));
            BOOLEAN
        }
        Value::DateTime(value) => {
            out.extend_from_slice(&value.ticks().to_be_bytes());
            DATE_TIME
        }
        Value::Guid(value) => {
            out.extend_from_slice(&value.0);
            GUID
        }
        Value::Binary(bytes) => {
            out.extend_from_slice(bytes);
            BINARY
        }
    };
    out.push(edm_type);
}

/// `None` if [`write`] did not write these bytes.
pub(super) fn read(mut bytes: Vec<u8>) -> Option<Value<'static>> {
    let edm_type = bytes.pop()?;
    Some(match edm_type {
        STRING => Value::String(Cow::Owned(String::from_utf8(bytes).ok()?)),
        INT32 => Value::Int32(i32::from_be_bytes(exactly(&bytes)?)),
        INT64 => Value::Int64(i64::from_be_bytes(exactly(&bytes)?)),
        DOUBLE => Value::Double(f64::from_bits(u64::from_be_bytes(exactly(&bytes)?))),
        BOOLEAN => match bytes[..] {
            [0] => Value::Boolean(false),
            [1] => Value::Boolean(true),
            _ => return None,
        },
        DATE_TIME => {
            let ticks = u64::from_be_bytes(exactly(&bytes)?);
            Value::DateTime(Some(DateTime::from_ticks(ticks)).filter(|time| time.ticks() == ticks)?)
        }
        GUID => Value::Guid(Guid(exactly(&bytes)?)),
        BINARY => Value::Binary(Cow::Owned(bytes)),
        _ => return None,
    })
}

fn exactly<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}
