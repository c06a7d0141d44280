//! Continuation tokens: reads a token and writes it again, and encodes any key and decodes it again.

use protocol::table::wire::continuation::{decode, encode};

use crate::golden::distinct;
use crate::{Golden, Outcome, Target, as_text};

pub const TARGET: Target = Target {
    name: "continuation",
    run,
    input_bytes_max: 16 * 1024,
    tokens: &[
        b"1!",
        b"!",
        b"0!",
        b"1!0!",
        b"1!8!U21pdGg-",
        b"1!4!YQ--",
        b"4!",
        b"8!",
        b"-",
        b"--",
        b"---",
        b"*",
        b"_",
        b"+",
        b"/",
        b"=",
        b"YQ",
        b"AAAA",
        b"7oCA",
        b"8J-S",
        b"_w--",
        b"2!",
        b"+8!",
        b"08!",
        b"18446744073709551616!",
        b"\xC3\xA9",
        b"\xF0\x9F\x92\x8E",
        b"\x00",
        b"\xFF",
    ],
    seeds,
};

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let options = golden.requests().flat_map(|request| request.query().split('&'));
    let from_queries = options
        .filter_map(|pair| pair.strip_prefix("Next")?.split_once('='))
        .map(|(_, token)| token.to_owned());
    let headers = golden.responses().flat_map(|response| &response.headers);
    let from_headers = headers
        .filter(|(name, _)| name.to_ascii_lowercase().starts_with("x-ms-continuation"))
        .map(|(_, token)| token.clone());
    let keys = [
        "",
        "p",
        "Smith",
        "é",
        "\u{1F48E}",
        "\u{FFFF}\u{10FFFF}",
        "a key that is a good deal longer than most of them are",
    ];
    let encoded = keys.iter().map(|key| encode(key));
    distinct(from_queries.chain(from_headers).chain(encoded).map(String::into_bytes))
}

/// A key this long always fits a token.
const KEY_BYTES_MAX: usize = 8 * 1024;

pub fn run(input: &[u8]) -> Outcome {
    let text = match as_text(input) {
        Ok(text) => text,
        Err(outcome) => return outcome,
    };
    if text.len() <= KEY_BYTES_MAX {
        let token = encode(text);
        assert!(
            token.bytes().all(|byte| byte.is_ascii_graphic() && !b"%&=+/?#\"".contains(&byte)),
            "{token}"
        );
        assert_eq!(decode(&token).ok().as_deref(), Some(text));
    }
    match decode(text) {
        Ok(key) => {
            assert_eq!(decode(&encode(&key)).ok(), Some(key.clone()));
            Outcome::Accepted(if key.is_empty() { "empty key" } else { "key" })
        }
        Err(error) => error.into(),
    }
}
