//! What the parser answers to filters that it does not take, in the words of the OData library.
//!
//! A position counts UTF-16 code units, as the library does; `at` is a byte offset into `text`.

use crate::{ErrorCode, ServiceError};

fn invalid(message: impl Into<String>) -> ServiceError {
    ServiceError::with_detail(ErrorCode::InvalidInput, message.into())
}

fn position(text: &str, at: usize) -> usize {
    text[..at].encode_utf16().count()
}

pub fn syntax(text: &str, at: usize) -> ServiceError {
    invalid(format!("Syntax error at position {} in '{text}'.", position(text, at)))
}

pub fn expression_expected(text: &str, at: usize) -> ServiceError {
    invalid(format!("Expression expected at position {} in '{text}'.", position(text, at)))
}

pub fn close_or_operator_expected(text: &str, at: usize) -> ServiceError {
    invalid(format!("')' or operator expected at position {} in '{text}'.", position(text, at)))
}

pub fn close_or_comma_expected(text: &str, at: usize) -> ServiceError {
    invalid(format!("')' or ',' expected at position {} in '{text}'.", position(text, at)))
}

pub fn invalid_character(text: &str, at: usize, character: char) -> ServiceError {
    let position = position(text, at);
    invalid(format!("Syntax error: character '{character}' is not valid at position {position} in '{text}'."))
}

pub fn digit_expected(text: &str, at: usize) -> ServiceError {
    invalid(format!("A digit was expected at position {} in '{text}'.", position(text, at)))
}

pub fn unterminated_string(text: &str) -> ServiceError {
    let position = position(text, text.len());
    invalid(format!("There is an unterminated string literal at position {position} in '{text}'."))
}

pub fn unterminated_literal(text: &str) -> ServiceError {
    let position = position(text, text.len());
    invalid(format!("There is an unterminated literal at position {position} in '{text}'."))
}

pub fn unrecognized_literal(text: &str, at: usize, type_name: &str, literal: &str) -> ServiceError {
    let position = position(text, at);
    invalid(format!("Unrecognized '{type_name}' literal '{literal}' at '{position}' in '{text}'."))
}

pub fn too_deep() -> ServiceError {
    invalid("Recursion depth exceeded allowed limit.")
}

pub fn not_boolean() -> ServiceError {
    invalid("The $filter expression must evaluate to a single boolean value.")
}

pub fn incompatible_operand(found: &str, kind: &str) -> ServiceError {
    invalid(format!(
        "A unary operator with an incompatible type was detected. Found operand type '{found}' for operator kind '{kind}'."
    ))
}

pub fn incompatible_operands(left: &str, right: &str, kind: &str) -> ServiceError {
    invalid(format!(
        "A binary operator with incompatible types was detected. Found operand types '{left}' and '{right}' for operator kind '{kind}'."
    ))
}

pub fn unknown_function(name: &str) -> ServiceError {
    invalid(format!(
        "An unknown function with name '{name}' was found. This may also be a key lookup on a navigation property, which is not allowed."
    ))
}

/// Filters may not contain null.
pub fn null() -> ServiceError {
    ErrorCode::InvalidInput.into()
}

/// Legal OData that the service does not offer.
pub fn not_implemented() -> ServiceError {
    ErrorCode::NotImplemented.into()
}
