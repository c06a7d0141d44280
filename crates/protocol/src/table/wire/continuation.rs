//! Continuation tokens: `1!` length `!` Base64 of the key, with `=` written as `-`.
//!
//! A token names the next entity (or table) to return. It is a key and nothing else, so it stays valid when the row is
//! deleted, after a restart, and on another front end. It is never empty and needs no escaping.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::{ErrorCode, ServiceError};

/// Two bytes of UTF-16 become at most three of UTF-8 and four of Base64; keys are far below this.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

pub fn encode(key: &str) -> String {
    // `+` and `/` would need escaping in a URL: they are written as `*` and `_`, which do not.
    let text: String = STANDARD
        .encode(key)
        .chars()
        .map(|character| match character {
            '=' => '-',
            '+' => '*',
            '/' => '_',
            other => other,
        })
        .collect();
    format!("1!{}!{text}", text.len())
}

pub fn decode(token: &str) -> Result<String, ServiceError> {
    decode_or_none(token).ok_or_else(|| ErrorCode::InvalidInput.into())
}

fn decode_or_none(token: &str) -> Option<String> {
    if token.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let (length, text) = token.strip_prefix("1!")?.split_once('!')?;
    if length.parse::<usize>().ok()? != text.len() {
        return None;
    }
    let bare = text.trim_end_matches('-');
    if text.len() - bare.len() > 2 || !text.len().is_multiple_of(4) {
        return None;
    }
    let url_safe: String = bare
        .chars()
        .map(|character| match character {
            '*' | '+' => '-',
            '/' => '_',
            // A `-` anywhere but at the end is invalid in our tokens.
            '-' => '!',
            other => other,
        })
        .collect();
    String::from_utf8(URL_SAFE_NO_PAD.decode(url_safe).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_look_as_the_service_writes_them() {
        assert_eq!(encode("Smith"), "1!8!U21pdGg-");
        assert_eq!(encode("001"), "1!4!MDAx");
        assert_eq!(encode("partition1-ô- -'-\"-%20-%27-pk"), "1!40!cGFydGl0aW9uMS3DtC0gLSctIi0lMjAtJTI3LXBr");
        assert_eq!(encode(""), "1!0!");
    }

    #[test]
    fn every_key_survives_the_round_trip() {
        for key in ["", "a", "ab", "abc", "\u{3ff}\u{3fe}~~~???>>>", "日本\u{1F600}", "\u{FFFD}"] {
            let token = encode(key);
            assert_eq!(decode(&token).unwrap(), key);
            assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b"!-*_".contains(&b)), "{token}");
        }
    }

    #[test]
    fn what_is_not_a_token_is_refused() {
        for token in
            ["", "1!", "1!!", "1!4!MDA", "2!4!MDAx", "1!4!M-Ax", "1!x!MDAx", "1!4!____", "abc", "1!4!-=!!"]
        {
            assert!(decode(token).is_err(), "{token}");
        }
    }
}
