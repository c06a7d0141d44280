//! Shared Key and Shared Key Lite for the Queue service, written from the published string-to-sign.

use std::collections::BTreeMap;

use crate::sign::Scheme;

/// The headers whose values have a line of their own, before and after the date.
const BEFORE_DATE: [&str; 5] =
    ["Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type"];
const AFTER_DATE: [&str; 5] =
    ["If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"];

/// The text to sign with HMAC. `target` is the request target exactly as on the request line.
pub(crate) fn full_string_to_sign(
    scheme: Scheme,
    account: &str,
    method: &str,
    target: &str,
    headers: &[(String, String)],
) -> String {
    let value = |wanted: &str| {
        let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map_or("", |(_, value)| value.as_str())
    };
    let version = value("x-ms-version");
    let date = if value("x-ms-date").is_empty() { value("Date") } else { "" };
    let line = |name: &&str| match (*name, value(name)) {
        ("Content-Length", "0") if version.is_empty() || version >= "2015-02-21" => String::new(),
        (_, value) => value.to_owned(),
    };
    let mut lines = vec![method.to_owned()];
    match scheme {
        Scheme::SharedKey => {
            lines.extend(BEFORE_DATE.iter().map(line));
            lines.push(date.to_owned());
            lines.extend(AFTER_DATE.iter().map(line));
        }
        Scheme::SharedKeyLite => {
            lines.extend(["Content-MD5", "Content-Type"].iter().map(line));
            lines.push(date.to_owned());
        }
    }
    lines.push(canonicalized_headers(version, headers) + &resource(scheme, account, target));
    lines.join("\n")
}

/// Every `x-ms-` header, in ordinal order.
fn canonicalized_headers(version: &str, headers: &[(String, String)]) -> String {
    let mut signed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        if name.starts_with("x-ms-") {
            let words: Vec<&str> = value.split_whitespace().collect();
            signed.entry(name).or_default().push(words.join(" "));
        }
    }
    let takes_empty = version.is_empty() || version >= "2016-05-31";
    let lines = signed.into_iter().map(|(name, values)| (name, values.join(",")));
    let lines = lines.filter(|(_, value)| takes_empty || !value.is_empty());
    lines.map(|(name, value)| format!("{name}:{value}\n")).collect()
}

fn resource(scheme: Scheme, account: &str, target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = if path.is_empty() { "/" } else { path };
    let mut text = format!("/{account}{path}");
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        parameters.entry(percent_decode(name).to_lowercase()).or_default().push(percent_decode(value));
    }
    match scheme {
        Scheme::SharedKey => {
            for (name, mut values) in parameters {
                values.sort();
                text.push_str(&format!("\n{name}:{}", values.join(",")));
            }
        }
        Scheme::SharedKeyLite => {
            if let Some(comp) = parameters.get("comp").and_then(|values| values.first()) {
                text.push_str("?comp=");
                text.push_str(comp);
            }
        }
    }
    text
}

/// Text with a malformed escape stays as it is.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits =
            tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign::{EMULATOR_ACCOUNT, EMULATOR_KEY, signature};

    /// The vectors of the queue specification, section 3.3.
    #[test]
    fn the_published_vectors_verify() {
        let check = |scheme: Scheme, method: &str, target: &str, headers: &[(&str, &str)], expected: &str| {
            let common = [("x-ms-date", "Fri, 26 Jun 2026 23:39:12 GMT"), ("x-ms-version", "2025-11-05")];
            let headers: Vec<(String, String)> = headers
                .iter()
                .chain(&common)
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let text = full_string_to_sign(scheme, EMULATOR_ACCOUNT, method, target, &headers);
            assert_eq!(signature(EMULATOR_KEY, &text), expected, "{text}");
        };
        check(
            Scheme::SharedKey,
            "POST",
            "/devstoreaccount1/myqueue/messages?visibilitytimeout=0&messagettl=-1",
            &[("Content-Type", "application/xml"), ("Content-Length", "64")],
            "phTvgCQg1F0+/SgS5NqDdPcbXkLN1C5sDTBiKVCPkxY=",
        );
        check(
            Scheme::SharedKey,
            "PUT",
            "/myqueue",
            &[("x-ms-meta-color", "red"), ("Content-Length", "0")],
            "TvmnyBLQoWjwpa1E2099HQ5r6UMUP795THUtV7DST1g=",
        );
        check(
            Scheme::SharedKeyLite,
            "GET",
            "/devstoreaccount1/?comp=list",
            &[],
            "/inO/n6H9BO3hXNnt5YQZDaIyf32i/OINJdWCZnCBqw=",
        );
    }
}
