//! Literals: turns a token into a value of one of the property types.

use std::borrow::Cow;

use crate::ServiceError;
use crate::common::DateTime;
use crate::table::model::{EdmType, Guid, Value};

use super::lexer::{Token, TokenKind};
use super::refusal;

pub(crate) enum Literal {
    Value(Value<'static>),
    /// A number of a type that no property can have: Edm.Single or Edm.Decimal.
    Foreign(&'static str),
    Null,
}

impl Literal {
    /// `None` if the token is not a literal.
    pub(crate) fn from_token(token: Token<'_>, filter: &str) -> Option<Result<Literal, ServiceError>> {
        let text = token.text;
        let (edm_type, value) = match token.kind {
            TokenKind::Null => return Some(Ok(Literal::Null)),
            TokenKind::Single => return Some(Ok(Literal::Foreign("Edm.Single"))),
            TokenKind::Decimal => return Some(Ok(Literal::Foreign("Edm.Decimal"))),
            TokenKind::Boolean(value) => (EdmType::Boolean, Some(Value::Boolean(value))),
            TokenKind::String => (EdmType::String, string(text).map(Value::String)),
            TokenKind::Int32 => (EdmType::Int32, text.parse().ok().map(Value::Int32)),
            TokenKind::Int64 => (EdmType::Int64, text[..text.len() - 1].parse().ok().map(Value::Int64)),
            TokenKind::Double => (EdmType::Double, double(text).map(Value::Double)),
            TokenKind::DateTime => {
                (EdmType::DateTime, quoted(text).and_then(DateTime::parse).map(Value::DateTime))
            }
            TokenKind::Guid => (EdmType::Guid, quoted(text).and_then(Guid::parse).map(Value::Guid)),
            TokenKind::Binary => (EdmType::Binary, quoted(text).and_then(binary).map(Value::Binary)),
            _ => return None,
        };
        let literal = value.map(Literal::Value);
        Some(literal.ok_or_else(|| refusal::unrecognized_literal(filter, token.start, edm_type.name(), text)))
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Literal::Value(value) => value.edm_type().name(),
            Literal::Foreign(name) => name,
            Literal::Null => "<null>",
        }
    }
}

/// The text between the quotes.
fn quoted(text: &str) -> Option<&str> {
    text.split_once('\'')?.1.strip_suffix('\'')
}

fn string(text: &str) -> Option<Cow<'static, str>> {
    let inside = quoted(text)?;
    let value = if inside.contains('\'') { inside.replace("''", "'") } else { inside.to_owned() };
    Some(Cow::Owned(value))
}

/// Like the OData library, refuses a number too large for a Double. Rust would read it as infinity.
fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        number => number.trim_end_matches(['D', 'd']).parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

fn binary(hex: &str) -> Option<Cow<'static, [u8]>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else { return None };
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect();
    bytes.map(Cow::Owned)
}
