//! The full form, which the Queue and Blob services use: it signs the standard headers, every `x-ms-` header, and every
//! query parameter.
//!
//! Promises: accepts the signatures of all official clients, which differ in how they sort headers and decode a `+`.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{AccountKey, SIGNATURE_BYTES, Scheme, any_path, decode_signature};
use crate::common::percent::percent_decode;
use crate::common::query::{self, Query};

/// From this version on, a `Content-Length` of zero is signed as an empty line.
const VERSION_EMPTY_LENGTH: &str = "2015-02-21";
/// From this version on, `x-ms-` headers without a value are signed too.
const VERSION_EMPTY_HEADERS: &str = "2016-05-31";

/// The parts of a request that the full form covers, exactly as they were sent.
#[derive(Clone, Copy, Debug)]
pub struct FullRequest<'a> {
    pub method: &'a str,
    /// Without `-secondary`.
    pub account: &'a str,
    /// The path of the request line, still percent-encoded.
    pub path: &'a str,
    pub query: &'a Query<'a>,
    /// The value of `x-ms-version`, if it was sent.
    pub version: Option<&'a str>,
    /// Every header, with its name in lower case.
    pub headers: &'a [(&'a str, &'a str)],
}

/// How header names are sorted: most clients compare bytes, some imitate the culture-aware order of .NET.
type Compare = fn(&str, &str) -> Ordering;

/// How query values are decoded: most clients keep a `+`, some read it as a space.
type Decode = for<'t> fn(&'t str) -> Option<Cow<'t, str>>;

impl FullRequest<'_> {
    /// Whether any of the keys made this signature.
    pub fn is_signed_by(&self, keys: &[AccountKey], scheme: Scheme, signature: &str) -> bool {
        let Some(bytes) = decode_signature(signature) else { return false };
        // Each variant costs a text and a hash for each key, so one that would give the same text is left out.
        let compares: &[Compare] = &[|left, right| left.cmp(right), compare_by_culture];
        let compares = &compares[..if self.is_sorted_alike() { 1 } else { 2 }];
        let has_plus = self.query.parameters().any(|(_, value)| value.contains('+'));
        let decodes: &[Decode] = &[percent_decode, query::decode];
        let decodes = &decodes[..if has_plus { 2 } else { 1 }];
        compares.iter().any(|compare| {
            decodes.iter().any(|decode| {
                any_path(self.account, self.path, |path| {
                    self.verify(path, *compare, *decode, keys, scheme, &bytes)
                })
            })
        })
    }

    /// The signature in Base64, for a client that sends this request. `None` when a query parameter is not
    /// percent-encoded UTF-8.
    pub fn sign(&self, key: &AccountKey, scheme: Scheme) -> Option<String> {
        Some(key.sign(&[&self.usual_string_to_sign(scheme)?]))
    }

    /// The text that the live service and current official clients sign, also for people who look for the mistake in
    /// theirs. `None` when a query parameter does not decode.
    pub fn usual_string_to_sign(&self, scheme: Scheme) -> Option<String> {
        self.string_to_sign(self.path, compare_by_culture, percent_decode, scheme)
    }

    /// Whether both ways to sort the headers agree.
    fn is_sorted_alike(&self) -> bool {
        let mut names: Vec<&str> =
            self.headers.iter().map(|(name, _)| *name).filter(|name| name.starts_with("x-ms-")).collect();
        names.sort_unstable();
        names.is_sorted_by(|left, right| compare_by_culture(left, right).is_le())
    }

    fn verify(
        &self,
        path: &str,
        compare: Compare,
        decode: Decode,
        keys: &[AccountKey],
        scheme: Scheme,
        signature: &[u8; SIGNATURE_BYTES],
    ) -> bool {
        let Some(text) = self.string_to_sign(path, compare, decode, scheme) else { return false };
        keys.iter().any(|key| key.verify(&[&text], signature))
    }

    /// `None` when a query parameter does not decode.
    fn string_to_sign(&self, path: &str, compare: Compare, decode: Decode, scheme: Scheme) -> Option<String> {
        let date = if self.header("x-ms-date").is_some() { "" } else { self.given("date") };
        let mut text = String::with_capacity(256);
        let mut line = |value: &str| {
            text.push_str(value);
            text.push('\n');
        };
        line(self.method);
        match scheme {
            Scheme::SharedKey => {
                for name in ["content-encoding", "content-language"] {
                    line(self.given(name));
                }
                line(self.length());
                for name in ["content-md5", "content-type"] {
                    line(self.given(name));
                }
                line(date);
                for name in ["if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"]
                {
                    line(self.given(name));
                }
            }
            Scheme::SharedKeyLite => {
                line(self.given("content-md5"));
                line(self.given("content-type"));
                line(date);
            }
        }
        self.push_headers(&mut text, compare);
        text.push('/');
        text.push_str(self.account);
        text.push_str(if path.is_empty() { "/" } else { path });
        match scheme {
            Scheme::SharedKey => self.push_parameters(&mut text, decode)?,
            Scheme::SharedKeyLite => {
                if let Some(comp) = self.query.raw("comp") {
                    text.push_str("?comp=");
                    text.push_str(&decode(comp)?);
                }
            }
        }
        Some(text)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
    }

    fn given(&self, name: &str) -> &str {
        self.header(name).unwrap_or_default()
    }

    fn length(&self) -> &str {
        let is_left_out = self.version.is_none_or(|version| version >= VERSION_EMPTY_LENGTH);
        match self.given("content-length") {
            "0" if is_left_out => "",
            length => length,
        }
    }

    /// Adds a line for each `x-ms-` header. Several values of one header are joined.
    fn push_headers(&self, text: &mut String, compare: Compare) {
        let takes_empty = self.version.is_none_or(|version| version >= VERSION_EMPTY_HEADERS);
        let mut signed: Vec<&(&str, &str)> =
            self.headers.iter().filter(|(name, _)| name.starts_with("x-ms-")).collect();
        signed.sort_by(|left, right| compare(left.0, right.0));
        let mut rest = &signed[..];
        while let Some((name, _)) = rest.first() {
            let count = rest.iter().take_while(|(other, _)| other == name).count();
            let values: Vec<String> = rest[..count].iter().map(|(_, value)| unfold(value)).collect();
            rest = &rest[count..];
            let value = values.join(",");
            if value.is_empty() && !takes_empty {
                continue;
            }
            for piece in [name, ":", &value, "\n"] {
                text.push_str(piece);
            }
        }
    }

    /// Adds a line for each parameter, sorted by lower-case name. Several values of one parameter are sorted and
    /// joined.
    fn push_parameters(&self, text: &mut String, decode: Decode) -> Option<()> {
        let mut parameters = Vec::new();
        for (name, value) in self.query.parameters() {
            parameters.push((name.to_ascii_lowercase(), decode(value)?));
        }
        parameters.sort();
        let mut last_name = None;
        for (name, value) in &parameters {
            if last_name == Some(name) {
                text.push(',');
            } else {
                text.push('\n');
                text.push_str(name);
                text.push(':');
            }
            text.push_str(value);
            last_name = Some(name);
        }
        Some(())
    }
}

/// Trims white space around a value, and turns every run of it inside into one space.
fn unfold(value: &str) -> String {
    let mut unfolded = String::with_capacity(value.len());
    for word in value.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty()) {
        if !unfolded.is_empty() {
            unfolded.push(' ');
        }
        unfolded.push_str(word);
    }
    unfolded
}

/// Characters in the order of their weight in .NET's culture-aware comparison. Dashes and apostrophes have no weight.
const WEIGHTS: &str = "!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";

fn compare_by_culture(left: &str, right: &str) -> Ordering {
    fn weights(name: &str) -> impl Iterator<Item = usize> {
        let weighty = name.chars().filter(|character| !matches!(character, '-' | '\''));
        weighty.map(|character| WEIGHTS.find(character).unwrap_or(WEIGHTS.len() + character as usize))
    }
    weights(left).cmp(weights(right)).then_with(|| {
        // On a tie, the name that has no dash at the first difference comes first.
        let difference = left.bytes().zip(right.bytes()).find(|(left, right)| left != right);
        match difference {
            Some((b'-' | b'\'', _)) => Ordering::Greater,
            Some((_, b'-' | b'\'')) => Ordering::Less,
            _ => left.cmp(right),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    const DATE: (&str, &str) = ("x-ms-date", "Fri, 26 Jun 2026 23:39:12 GMT");
    const VERSION: (&str, &str) = ("x-ms-version", "2025-11-05");

    /// The signature is right for this request, and wrong for any other.
    #[track_caller]
    fn check(scheme: Scheme, method: &str, url: &str, headers: &[(&str, &str)], signature: &str) {
        let keys = [AccountKey::from_base64("AAAA").unwrap(), AccountKey::from_base64(KEY).unwrap()];
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let query = Query::split(query);
        let headers = [headers, &[DATE, VERSION]].concat();
        let request = FullRequest {
            method,
            account: "devstoreaccount1",
            path,
            query: &query,
            version: Some(VERSION.1),
            headers: &headers,
        };
        assert!(request.is_signed_by(&keys, scheme, signature), "{request:?}");
        assert_eq!(request.sign(&keys[1], scheme).as_deref(), Some(signature));
        assert!(!request.is_signed_by(&keys[..1], scheme, signature));
        for other in [
            FullRequest { method: "DELETE", ..request },
            FullRequest { path: "/other", ..request },
            FullRequest { account: "other", ..request },
            FullRequest { headers: &headers[1..], ..request },
            FullRequest { query: &Query::split("comp=other&x=1"), ..request },
        ] {
            assert!(!other.is_signed_by(&keys, scheme, signature), "{other:?}");
        }
        let sorted_otherwise: Vec<_> = headers.iter().rev().copied().collect();
        let request = FullRequest { headers: &sorted_otherwise, ..request };
        assert!(request.is_signed_by(&keys, scheme, signature), "the order of headers does not matter");
    }

    /// The test vectors of the queue specification, section 3.3, and of the blob specification, section 6.
    #[test]
    fn the_published_vectors_verify() {
        use Scheme::*;
        check(
            SharedKey,
            "POST",
            "/devstoreaccount1/myqueue/messages?visibilitytimeout=0&messagettl=-1",
            &[("content-type", "application/xml"), ("content-length", "64")],
            "phTvgCQg1F0+/SgS5NqDdPcbXkLN1C5sDTBiKVCPkxY=",
        );
        check(
            SharedKey,
            "PUT",
            "/myqueue",
            &[("x-ms-meta-color", " red "), ("content-length", "0")],
            "TvmnyBLQoWjwpa1E2099HQ5r6UMUP795THUtV7DST1g=",
        );
        check(
            SharedKeyLite,
            "GET",
            "/devstoreaccount1/?comp=list",
            &[],
            "/inO/n6H9BO3hXNnt5YQZDaIyf32i/OINJdWCZnCBqw=",
        );
        check(
            SharedKey,
            "PUT",
            "/devstoreaccount1/mycontainer/hello.txt",
            &[
                ("content-type", "text/plain; charset=UTF-8"),
                ("content-length", "11"),
                ("x-ms-blob-type", "BlockBlob"),
                ("x-ms-meta-m2", "v2"),
                ("x-ms-meta-m1", "v1"),
            ],
            "IWUWZ4O0SXN8y1uaRGogvmsjQ/GRriatTriuqJf+iY0=",
        );
        check(
            SharedKey,
            "GET",
            "/mycontainer?restype=container&comp=list&include=snapshots&include=metadata&prefix=a%20b/c",
            &[],
            "/iPHXxvARjXX47EEUr/yUThvAhnjyuT0EXCHJeQEmX4=",
        );
        check(
            SharedKey,
            "GET",
            "/devstoreaccount1/mycontainer/hello.txt",
            &[("range", "bytes=0-3")],
            "UIMwM8BvVGVp0+7ZoERgoDhbYmbAUb4k0/bu5d72l9Q=",
        );
        check(
            SharedKeyLite,
            "PUT",
            "/devstoreaccount1/mycontainer/hello.txt",
            &[("content-type", "text/plain; charset=UTF-8"), ("x-ms-blob-type", "BlockBlob")],
            "DW+XNEnX/VsUZCeupGppxXOJ7dQHtJvThINXrYPv66Q=",
        );
    }

    #[test]
    fn a_query_that_does_not_decode_is_not_signed() {
        let key = AccountKey::from_base64(KEY).unwrap();
        let query = Query::split("prefix=%zz");
        let request = FullRequest {
            method: "GET",
            account: "acc",
            path: "/",
            query: &query,
            version: None,
            headers: &[],
        };
        assert_eq!(request.sign(&key, Scheme::SharedKey), None);
        assert!(request.sign(&key, Scheme::SharedKeyLite).is_some(), "the Lite scheme leaves the query out");
    }

    #[test]
    fn a_dash_has_no_weight_in_the_culture_order() {
        let mut names = ["x-ms-meta-b", "x-ms-meta-a-c", "x-ms-meta-ab", "x-ms-meta-a_c", "x-ms-meta-ac"];
        names.sort_by(|left, right| compare_by_culture(left, right));
        assert_eq!(names, ["x-ms-meta-a_c", "x-ms-meta-ab", "x-ms-meta-ac", "x-ms-meta-a-c", "x-ms-meta-b"]);
    }

    #[test]
    fn older_versions_sign_a_length_of_zero_and_no_empty_headers() {
        let headers = [("content-length", "0"), ("x-ms-meta-a", "")];
        let text = |version| {
            let query = Query::default();
            let request = FullRequest {
                method: "PUT",
                account: "acc",
                path: "/q",
                query: &query,
                version: Some(version),
                headers: &headers,
            };
            request.string_to_sign("/q", |a, b| a.cmp(b), percent_decode, Scheme::SharedKey).unwrap()
        };
        assert!(text("2014-02-14").starts_with("PUT\n\n\n0\n"));
        assert!(text("2015-02-21").starts_with("PUT\n\n\n\n"));
        assert!(!text("2015-12-11").contains("x-ms-meta-a") && text("2016-05-31").contains("x-ms-meta-a:\n"));
    }
}
