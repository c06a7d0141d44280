//! The parser's refusals, in the words of the OData library.
//!
//! Positions in messages count UTF-16 code units, as in the library; `at` is a byte offset into `text`.

use crate::{ErrorCode, ServiceError};

fn invalid(message: impl Into<String>) -> ServiceError {
    ServiceError::with_detail(ErrorCode::InvalidInput, message.into())
}

fn position(text: &str, at: usize) -> usize {
    text[..at].encode_utf16().count()
}

pub(crate) fn syntax(text: &str, at: usize) -> ServiceError {
    invalid(format!("Syntax error at position {} in '{text}'.", position(text, at)))
}

pub(crate) fn expression_expected(text: &str, at: usize) -> ServiceError {
    invalid(format!("Expression expected at position {} in '{text}'.", position(text, at)))
}

pub(crate) fn close_or_operator_expected(text: &str, at: usize) -> ServiceError {
    invalid(format!("')' or operator expected at position {} in '{text}'.", position(text, at)))
}

pub(crate) fn close_or_comma_expected(text: &str, at: usize) -> ServiceError {
    invalid(format!("')' or ',' expected at position {} in '{text}'.", position(text, at)))
}

pub(crate) fn invalid_character(text: &str, at: usize, character: char) -> ServiceError {
    let position = position(text, at);
    invalid(format!("Syntax error: character '{character}' is not valid at position {position} in '{text}'."))
}

pub(crate) fn digit_expected(text: &str, at: usize) -> ServiceError {
    invalid(format!("A digit was expected at position {} in '{text}'.", position(text, at)))
}

pub(crate) fn unterminated_string(text: &str) -> ServiceError {
    let position = position(text, text.len());
    invalid(format!("There is an unterminated string literal at position {position} in '{text}'."))
}

pub(crate) fn unterminated_literal(text: &str) -> ServiceError {
    let position = position(text, text.len());
    invalid(format!("There is an unterminated literal at position {position} in '{text}'."))
}

pub(crate) fn unrecognized_literal(text: &str, at: usize, type_name: &str, literal: &str) -> ServiceError {
    let position = position(text, at);
    invalid(format!("Unrecognized '{type_name}' literal '{literal}' at '{position}' in '{text}'."))
}

pub(crate) fn too_deep() -> ServiceError {
    invalid("Recursion depth exceeded allowed limit.")
}

pub(crate) fn not_boolean() -> ServiceError {
    invalid("The $filter expression must evaluate to a single boolean value.")
}

pub(crate) fn incompatible_operand(found: &str, kind: &str) -> ServiceError {
    invalid(format!(
        "A unary operator with an incompatible type was detected. Found operand type '{found}' for operator kind '{kind}'."
    ))
}

pub(crate) fn incompatible_operands(left: &str, right: &str, kind: &str) -> ServiceError {
    invalid(format!(
        "A binary operator with incompatible types was detected. Found operand types '{left}' and '{right}' for operator kind '{kind}'."
    ))
}

pub(crate) fn unknown_function(name: &str) -> ServiceError {
    invalid(format!(
        "An unknown function with name '{name}' was found. This may also be a key lookup on a navigation property, which is not allowed."
    ))
}

/// Filters may not contain null.
pub fn null() -> ServiceError {
    ErrorCode::InvalidInput.into()
}

/// Legal OData that the service does not support.
pub(crate) fn not_implemented() -> ServiceError {
    ErrorCode::NotImplemented.into()
}
