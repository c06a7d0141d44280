//! Any text as a key: forbidden characters are written with allowed ones, and the order stays.
//!
//! Keys may not contain `/`, `\`, `#`, `?`, nor control characters (U+0000 to U+001F, U+007F to U+009F). A forbidden
//! character becomes two: the allowed character just below it in the order, and one more that tells it apart. That
//! allowed character is then written as two itself, or the two could not be told apart. Percent-encoding would not do: it
//! moves `/` to where `%` sorts.
//!
//! | written as | stands for |
//! |---|---|
//! | `"0` to `"Z` | U+0000 to `#`: base 36, so a space is `"W`, `!` is `"X`, `"` is `"Y`, `#` is `"Z` |
//! | `..` and `._` | `.` and `/` |
//! | `>>` and `>_` | `>` and `?` |
//! | `[[` and `[_` | `[` and `\` |
//! | `~-`, `~0` to `~W` | `~`, U+007F to U+009F |
//!
//! No character of an escaped text sorts below `"`. That leaves `!` as a separator that sorts below every part.

use std::borrow::Cow;

use super::KeyError;

/// The characters up to this one are written as [`LOW`] and a digit. There are 36 of them.
const LOW_LAST: char = '#';
const LOW: char = '"';
/// The character below a forbidden one, and the forbidden one.
const PAIRS: [(char, char); 3] = [('.', '/'), ('>', '?'), ('[', '\\')];
/// Follows the lower character of a pair when the upper one is meant. Sorts after all lower characters.
const UPPER: char = '_';
/// Stands before the digits of U+007F to U+009F.
const HIGH: char = '~';
const HIGH_RANGE: std::ops::RangeInclusive<char> = '\u{7F}'..='\u{9F}';
/// Follows [`HIGH`] when that character itself is meant. Sorts before all digits.
const HIGH_ITSELF: char = '-';
const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Writes a text with allowed characters only. Letters and digits stay as they are.
///
/// ```
/// use lazulite_patterns::keys::{escape, unescape};
///
/// assert_eq!(escape("jonesj@contoso"), "jonesj@contoso");
/// assert_eq!(escape("a/b c"), "a._b\"Wc");
/// assert_eq!(unescape("a._b\"Wc")?, "a/b c");
/// # Ok::<(), lazulite_patterns::keys::KeyError>(())
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_written_as_two) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str(&text[..first]);
    for character in text[first..].chars() {
        write(character, &mut out);
    }
    Cow::Owned(out)
}

/// Reads what [`escape`] wrote.
pub fn unescape(text: &str) -> Result<Cow<'_, str>, KeyError> {
    let Some(first) = text.find(is_written_as_two) else { return Ok(Cow::Borrowed(text)) };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = text[first..].chars();
    while let Some(character) = rest.next() {
        if !is_written_as_two(character) {
            out.push(character);
            continue;
        }
        let read = rest.next().and_then(|second| read(character, second));
        out.push(read.ok_or_else(|| KeyError::new(format!("'{text}' is not an escaped text")))?);
    }
    Ok(Cow::Owned(out))
}

fn is_written_as_two(character: char) -> bool {
    character <= LOW_LAST
        || PAIRS.iter().any(|(lower, upper)| character == *lower || character == *upper)
        || character == HIGH
        || HIGH_RANGE.contains(&character)
}

fn write(character: char, out: &mut String) {
    if character <= LOW_LAST {
        out.extend([LOW, digit(character as usize)]);
    } else if let Some((lower, upper)) = PAIRS.iter().find(|(low, up)| character == *low || character == *up)
    {
        out.extend([*lower, if character == *upper { UPPER } else { *lower }]);
    } else if character == HIGH {
        out.extend([HIGH, HIGH_ITSELF]);
    } else if HIGH_RANGE.contains(&character) {
        out.extend([HIGH, digit(character as usize - *HIGH_RANGE.start() as usize)]);
    } else {
        out.push(character);
    }
}

fn read(first: char, second: char) -> Option<char> {
    if first == LOW {
        return char::from_u32(value(second)?);
    }
    if first == HIGH {
        if second == HIGH_ITSELF {
            return Some(HIGH);
        }
        let character = char::from_u32(*HIGH_RANGE.start() as u32 + value(second)?)?;
        return HIGH_RANGE.contains(&character).then_some(character);
    }
    let (lower, upper) = PAIRS.iter().find(|(lower, _)| *lower == first)?;
    match second {
        UPPER => Some(*upper),
        second if second == *lower => Some(*lower),
        _ => None,
    }
}

fn digit(value: usize) -> char {
    char::from(DIGITS[value])
}

fn value(digit: char) -> Option<u32> {
    let place = DIGITS.iter().position(|byte| char::from(*byte) == digit)?;
    u32::try_from(place).ok()
}
