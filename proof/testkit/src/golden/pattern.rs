//! Placeholders, `{{name}}`: filled in in requests, matched by form in responses.
//!
//! A suffix, as in `{{stamp.2}}`, tells two placeholders of a form apart. `stamp` (as in ETags, with escaped colons)
//! and `timestamp` (as in JSON) with the same suffix stand for the same time. `{{escaped receipt}}` is a receipt as a
//! query has it.

use std::collections::BTreeMap;

use crate::mask::{form, guid};
use crate::request::percent_encode;
use crate::sign::{Credentials, signature};

pub type Values = BTreeMap<String, String>;

/// Where pattern and text begin to differ: byte offsets into both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mismatch {
    pub expected_at: usize,
    pub actual_at: usize,
}

/// The text with every placeholder replaced. An error if the value of one is unknown.
pub fn fill(text: &str, values: &Values, credentials: &Credentials) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, after)) = next_placeholder(rest) {
        out.push_str(before);
        match value_of(name, values) {
            Some(value) => out.push_str(&value),
            None => match name.strip_prefix("account-sas ") {
                Some(choices) => out.push_str(&account_sas(choices, credentials)),
                None => return Err(format!("no value is known for {{{{{name}}}}}")),
            },
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Matches the whole text. Adds the values of placeholders to `seen`.
pub fn matches(pattern: &str, actual: &str, known: &Values, seen: &mut Values) -> Result<(), Mismatch> {
    let (mut rest, mut text) = (pattern, actual);
    let at = |rest: &str, text: &str| Mismatch {
        expected_at: pattern.len() - rest.len(),
        actual_at: actual.len() - text.len(),
    };
    loop {
        let (before, placeholder, after) = match next_placeholder(rest) {
            Some((before, name, after)) => (before, Some(name), after),
            None => (rest, None, ""),
        };
        let same = before.bytes().zip(text.bytes()).take_while(|(wanted, found)| wanted == found).count();
        if same < before.len() {
            return Err(at(&rest[floor(rest, same)..], &text[floor(text, same)..]));
        }
        (rest, text) = (&rest[before.len()..], &text[before.len()..]);
        let Some(name) = placeholder else {
            return if text.is_empty() { Ok(()) } else { Err(at("", text)) };
        };
        let length = match value_of(name, known).or_else(|| value_of(name, seen)) {
            Some(value) => text.starts_with(&value).then_some(value.len()),
            None => measure(name.split('.').next().unwrap_or_default(), text.as_bytes()),
        };
        let Some(length) = length else { return Err(at(rest, text)) };
        if value_of(name, known).is_none() {
            seen.insert(key_of(name), normal(name, &text[..length]));
        }
        (rest, text) = (after, &text[length..]);
    }
}

fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (name, after) = rest.split_once("}}")?;
    Some((before, name, after))
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The name under which a value is stored. A stamp is stored as the timestamp it stands for.
fn key_of(name: &str) -> String {
    match name.strip_prefix("stamp") {
        Some(suffix) if suffix.is_empty() || suffix.starts_with('.') => format!("timestamp{suffix}"),
        _ => name.to_owned(),
    }
}

fn normal(name: &str, text: &str) -> String {
    if key_of(name) == name { text.to_owned() } else { text.replace("%3A", ":") }
}

fn value_of(name: &str, values: &Values) -> Option<String> {
    if let Some(name) = name.strip_prefix("escaped ") {
        return value_of(name, values).map(|value| percent_encode(&value));
    }
    let key = key_of(name);
    let value = values.get(&key)?;
    Some(if key == name { value.clone() } else { value.replace(':', "%3A") })
}

/// The length of the text's start that has the form of this kind of placeholder.
fn measure(kind: &str, text: &[u8]) -> Option<usize> {
    let run = |is_part: fn(&u8) -> bool| {
        let length = text.iter().take_while(|byte| is_part(byte)).count();
        (length > 0).then_some(length)
    };
    match kind {
        "guid" | "request-id" | "batch" | "changeset" => guid(text),
        "stamp" => trimmed_time(text, "9999-99-99T99%3A99%3A99"),
        "timestamp" => trimmed_time(text, "9999-99-99T99:99:99"),
        "now" => form(text, "9999-99-99T99:99:99.9999999Z"),
        "http-date" => form(text, "aaa, 99 aaa 9999 99:99:99 GMT"),
        "version" => form(text, "9999-99-99"),
        "tenant" => run(|byte| byte.is_ascii_alphanumeric() || *byte == b'-'),
        "token" => run(u8::is_ascii_graphic),
        // The number is written with capitals, and `0x` in front of it.
        "etag" => run(|byte| byte.is_ascii_digit() || matches!(byte, b'A'..=b'F' | b'x')),
        "receipt" => run(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte)),
        _ => None,
    }
}

/// A time whose fraction, if any, has up to seven digits and no trailing zero.
fn trimmed_time(text: &[u8], seconds: &str) -> Option<usize> {
    let mut length = form(text, seconds)?;
    if text.get(length) == Some(&b'.') {
        let digits = text[length + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        length += 1 + digits;
        if digits == 0 || digits > 7 || text[length - 1] == b'0' {
            return None;
        }
    }
    (text.get(length) == Some(&b'Z')).then_some(length + 1)
}

/// The query string of an account SAS; `sp=… srt=…` choose what it allows. It is for tables unless `ss=…` names others.
fn account_sas(choices: &str, credentials: &Credentials) -> String {
    let choice = |name: &str| {
        choices.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
    };
    let (permissions, types) = (choice("sp"), choice("srt"));
    let services = Some(choice("ss")).filter(|services| !services.is_empty()).unwrap_or("t");
    let (version, expiry) = ("2019-02-02", "2099-01-01T00:00:00Z");
    let account = &credentials.account;
    let text = format!("{account}\n{permissions}\n{services}\n{types}\n\n{expiry}\n\n\n{version}\n");
    let signature = percent_encode(&signature(&credentials.key, &text));
    let expiry = percent_encode(expiry);
    format!("sv={version}&ss={services}&srt={types}&sp={permissions}&se={expiry}&sig={signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[track_caller]
    fn check(pattern: &str, actual: &str, expected: Result<&[(&str, &str)], (usize, usize)>) {
        let mut seen = Values::new();
        let outcome = matches(pattern, actual, &values(&[("table", "t1")]), &mut seen);
        let got = outcome.map(|()| seen).map_err(|mismatch| (mismatch.expected_at, mismatch.actual_at));
        assert_eq!(got, expected.map(values), "{pattern} against {actual}");
    }

    #[test]
    fn placeholders_match_by_form_and_by_equality() {
        let guid = "f60fc35a-b002-003e-4e82-ae3ae4000000";
        check("plain", "plain", Ok(&[]));
        check("plain", "plane", Err((3, 3)));
        check("plain", "plain!", Err((5, 5)));
        check("/{{table}}()", "/t1()", Ok(&[]));
        check("/{{table}}()", "/t2()", Err((1, 1)));
        check("Id:{{guid}}.", &format!("Id:{guid}."), Ok(&[("guid", guid)]));
        check("{{guid}} {{guid}}", &format!("{guid} {guid}"), Ok(&[("guid", guid)]));
        check("{{guid}} {{guid}}", &format!("{guid} {}", guid.replace('f', "e")), Err((9, 37)));
        check("{{guid}}", &guid.to_uppercase(), Err((0, 0)));
        check("{{now}}", "2021-09-21T00:50:21.0781290Z", Ok(&[("now", "2021-09-21T00:50:21.0781290Z")]));
        check("{{now}}", "2021-09-21T00:50:21.078129Z", Err((0, 0)));
        check("ü{{token}} é", "ü1!8!U21pdGg- è", Err((12, 15)));
    }

    #[test]
    fn stamps_are_timestamps_in_another_dress_and_have_no_zeros_at_their_end() {
        let time = "2020-11-07T01:23:15.492392Z";
        let pattern = "W/'{{stamp}}' {{timestamp}}";
        check(pattern, &format!("W/'2020-11-07T01%3A23%3A15.492392Z' {time}"), Ok(&[("timestamp", time)]));
        check(pattern, "W/'2020-11-07T01%3A23%3A15Z' 2020-11-07T01:23:15.5Z", Err((14, 29)));
        check("{{stamp}}", "2020-11-07T01%3A23%3A15.50Z", Err((0, 0)));
        check("{{stamp}}", "2020-11-07T01%3A23%3A15.Z", Err((0, 0)));
        check("{{timestamp}}", "2020-11-07T01%3A23%3A15Z", Err((0, 0)));
        let receipt = values(&[("receipt", "a+/=")]);
        check("<{{receipt}}>", "<a+/=>", Ok(&[("receipt", "a+/=")]));
        let escaped = fill("r={{escaped receipt}}", &receipt, &Credentials::emulator());
        assert_eq!(escaped.as_deref(), Ok("r=a%2B%2F%3D"));
        let captured = values(&[("timestamp.2", time)]);
        let filled = fill("{{stamp.2}}", &captured, &Credentials::emulator());
        assert_eq!(filled.as_deref(), Ok("2020-11-07T01%3A23%3A15.492392Z"));
    }

    #[test]
    fn an_account_sas_is_signed_as_published() {
        let sas = account_sas("sp=rwdlacu srt=sco", &Credentials::emulator());
        assert!(
            sas.starts_with("sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2099-01-01T00%3A00%3A00Z&sig="),
            "{sas}"
        );
        let text = "devstoreaccount1\nrwdlacu\nt\nsco\n\n2030-01-01T00:00:00Z\n\n\n2019-02-02\n";
        let published = "Sf6ztOvy1ckXMaWcI5xoOPCUz6txhdW+qY5V7MM9DMY=";
        assert_eq!(signature(crate::EMULATOR_KEY, text), published, "the form that account_sas fills in");
        assert!(fill("{{unknown}}", &Values::new(), &Credentials::emulator()).is_err());
        assert!(account_sas("ss=q sp=r srt=o", &Credentials::emulator()).contains("&ss=q&srt=o&sp=r&"));
    }
}
