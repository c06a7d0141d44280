//! Integers as digits of a fixed width, so that 9 sorts before 10.

use super::KeyError;

/// The digits of a signed integer.
pub const SIGNED_WIDTH: usize = 20;

/// An unsigned integer with leading zeros, such as the guide's employee 000223.
///
/// ```
/// use lazulite_patterns::keys::{padded, parse_padded};
///
/// assert_eq!(padded(223, 6)?, "000223");
/// assert!(padded(9, 6)? < padded(10, 6)?);
/// assert_eq!(parse_padded("000223", 6)?, 223);
/// assert!(padded(1_000_000, 6).is_err());
/// # Ok::<(), lazulite_patterns::keys::KeyError>(())
/// ```
pub fn padded(value: u64, width: usize) -> Result<String, KeyError> {
    let text = format!("{value:0width$}");
    if text.len() > width {
        return Err(KeyError::new(format!("{value} has more than {width} digits")));
    }
    Ok(text)
}

/// Reads what [`padded`] wrote. Exactly `width` digits are accepted, so that one value has one key.
pub fn parse_padded(text: &str, width: usize) -> Result<u64, KeyError> {
    let is_number = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = is_number.then(|| text.parse().ok()).flatten();
    value.ok_or_else(|| KeyError::new(format!("'{text}' is not a number of {width} digits")))
}

/// A signed integer as 20 digits: the distance from the smallest one.
///
/// ```
/// use lazulite_patterns::keys::{parse_signed, signed};
///
/// assert!(signed(-2) < signed(-1) && signed(-1) < signed(0) && signed(0) < signed(i64::MAX));
/// assert_eq!(signed(0), "09223372036854775808");
/// assert_eq!(parse_signed(&signed(-40))?, -40);
/// # Ok::<(), lazulite_patterns::keys::KeyError>(())
/// ```
pub fn signed(value: i64) -> String {
    let distance = value.abs_diff(i64::MIN);
    format!("{distance:0SIGNED_WIDTH$}")
}

/// Reads what [`signed`] wrote.
pub fn parse_signed(text: &str) -> Result<i64, KeyError> {
    let distance = parse_padded(text, SIGNED_WIDTH)?;
    Ok(i64::MIN.wrapping_add_unsigned(distance))
}
