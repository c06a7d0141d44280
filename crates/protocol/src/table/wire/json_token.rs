//! JSON tokens, read from text that is known to be UTF-8. Strings without escapes are borrowed.
//!
//! Strict: everything that RFC 8259 does not allow is refused. Unlike most JSON libraries, it remembers whether a
//! number was written with a fraction or an exponent, because that is how an Int32 differs from a Double here.

use std::borrow::Cow;

use super::json_text::plain_len;

/// How deep objects and arrays may nest inside annotations, which are skipped.
const SKIPPED_DEPTH_MAX: usize = 64;

/// A value other than an object or an array.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Raw<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Has a fraction or an exponent, or is beyond 64 bits.
    Double(f64),
    String(Cow<'a, str>),
}

/// Every function skips white space first, and returns `None` where the text is not what it expects.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0 }
    }

    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    pub fn take(&mut self, byte: u8) -> Option<()> {
        self.take_if(byte).then_some(())
    }

    pub fn take_if(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn scalar(&mut self) -> Option<Raw<'a>> {
        match self.peek()? {
            b'"' => self.string().map(Raw::String),
            b'n' => self.word("null").map(|()| Raw::Null),
            b't' => self.word("true").map(|()| Raw::Boolean(true)),
            b'f' => self.word("false").map(|()| Raw::Boolean(false)),
            _ => self.number(),
        }
    }

    pub fn string(&mut self) -> Option<Cow<'a, str>> {
        self.take(b'"')?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += plain_len(&bytes[start..]);
        match *bytes.get(self.at)? {
            b'"' => {
                self.at += 1;
                Some(Cow::Borrowed(&self.text[start..self.at - 1]))
            }
            b'\\' => self.escaped_string(start).map(Cow::Owned),
            _ => None,
        }
    }

    /// Any value at all: checked, but not kept.
    pub(crate) fn skip_value(&mut self) -> Option<()> {
        self.skip_nested(0)
    }

    fn skip_nested(&mut self, depth: usize) -> Option<()> {
        let end = match self.peek()? {
            b'{' => b'}',
            b'[' => b']',
            _ => return self.scalar().map(|_| ()),
        };
        if depth == SKIPPED_DEPTH_MAX {
            return None;
        }
        self.at += 1;
        if self.take_if(end) {
            return Some(());
        }
        loop {
            if end == b'}' {
                self.string()?;
                self.take(b':')?;
            }
            self.skip_nested(depth + 1)?;
            if !self.take_if(b',') {
                return self.take(end);
            }
        }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<Raw<'a>> {
        let start = self.at;
        let byte = |at: usize| self.text.as_bytes().get(at).copied();
        let digits_end = |mut at: usize| {
            let first = at;
            while byte(at).is_some_and(|byte| byte.is_ascii_digit()) {
                at += 1;
            }
            (at > first).then_some(at)
        };
        let mut at = start + usize::from(byte(start) == Some(b'-'));
        let leads_with_zero = byte(at) == Some(b'0');
        let whole_end = digits_end(at)?;
        if leads_with_zero && whole_end > at + 1 {
            return None;
        }
        at = whole_end;
        if byte(at) == Some(b'.') {
            at = digits_end(at + 1)?;
        }
        if matches!(byte(at), Some(b'e' | b'E')) {
            at = digits_end(at + 1 + usize::from(matches!(byte(at + 1), Some(b'+' | b'-'))))?;
        }
        let text = &self.text[start..at];
        let integer = if at == whole_end { text.parse().ok() } else { None };
        self.at = at;
        match integer {
            Some(integer) => Some(Raw::Integer(integer)),
            // The service cannot store a number that is too large for a double.
            None => text.parse().ok().filter(|double: &f64| double.is_finite()).map(Raw::Double),
        }
    }

    /// Reads the rest of a string from its first escape on, after copying the text before it.
    fn escaped_string(&mut self, start: usize) -> Option<String> {
        let mut out = self.text[start..self.at].to_owned();
        let bytes = self.text.as_bytes();
        loop {
            let run = self.at;
            self.at += plain_len(&bytes[run..]);
            bytes.get(self.at)?;
            out.push_str(&self.text[run..self.at]);
            self.at += 1;
            match bytes[self.at - 1] {
                b'"' => return Some(out),
                b'\\' => out.push(self.escape()?),
                _ => return None,
            }
        }
    }

    /// Reads the part of an escape after its backslash.
    fn escape(&mut self) -> Option<char> {
        let byte = *self.text.as_bytes().get(self.at)?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => byte as char,
            b'b' => '\u{8}',
            b'f' => '\u{C}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.hex_unit()?;
                if !(0xD800..0xDC00).contains(&unit) {
                    // A lone low surrogate is not a character.
                    return char::from_u32(unit);
                }
                if !self.text.get(self.at..)?.starts_with("\\u") {
                    return None;
                }
                self.at += 2;
                let low = self.hex_unit().filter(|low| (0xDC00..0xE000).contains(low))?;
                char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))?
            }
            _ => return None,
        })
    }

    fn hex_unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits
            .bytes()
            .all(|digit| digit.is_ascii_hexdigit())
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value, if the whole text is one scalar.
    fn scalar(text: &str) -> Option<Raw<'_>> {
        let mut reader = Reader::new(text);
        let value = reader.scalar()?;
        reader.is_at_end().then_some(value)
    }

    #[test]
    fn numbers_keep_how_they_were_written() {
        let check = |text: &str, expected: Option<Raw<'static>>| assert_eq!(scalar(text), expected, "{text}");
        check("0", Some(Raw::Integer(0)));
        check("-0", Some(Raw::Integer(0)));
        check(" -12 ", Some(Raw::Integer(-12)));
        check("9223372036854775807", Some(Raw::Integer(i64::MAX)));
        check("9223372036854775808", Some(Raw::Double(9223372036854775808.0)));
        check("1.0", Some(Raw::Double(1.0)));
        check("1e2", Some(Raw::Double(100.0)));
        check("-1.5E-3", Some(Raw::Double(-0.0015)));
        for bad in ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "0x1", "1 2", "NaN", "1e999", "--1"] {
            check(bad, None);
        }
    }

    #[test]
    fn strings_borrow_until_an_escape() {
        assert!(matches!(scalar("\"plain é\""), Some(Raw::String(Cow::Borrowed("plain é")))));
        let check = |text: &str, expected: Option<&str>| {
            let found = scalar(text).map(|raw| match raw {
                Raw::String(text) => text.into_owned(),
                other => format!("{other:?}"),
            });
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check(r#""a\"\\\/\b\f\n\r\tz""#, Some("a\"\\/\u{8}\u{C}\n\r\tz"));
        check(r#""\u00e9\ud83d\ude00!""#, Some("é\u{1F600}!"));
        for bad in [
            r#"""#,
            r#""a"#,
            r#""\"#,
            r#""\x""#,
            r#""\u12""#,
            r#""\u+123""#,
            r#""\ud83d""#,
            r#""\ud83dx""#,
            r#""\ud83d\u0041""#,
            r#""\ude00""#,
            "\"\n\"",
            "\"\\u00é\"",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn everything_that_serde_reads_is_read_the_same() {
        let pieces = [
            "\"",
            "\\",
            "u",
            "d83d",
            "\\ude00",
            "a",
            "é",
            "\u{1F600}",
            "1",
            "-",
            ".",
            "e",
            "0",
            " ",
            "\n",
            "true",
            "null",
            "/",
        ];
        let mut seed = 1u64;
        for _ in 0..200_000 {
            let mut text = String::new();
            for _ in 0..(seed >> 60) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let expected = serde_json::from_str::<serde_json::Value>(&text).ok();
            let same = match (scalar(&text), expected) {
                (None, None) => true,
                (Some(Raw::Null), Some(serde_json::Value::Null)) => true,
                (Some(Raw::Boolean(ours)), Some(serde_json::Value::Bool(theirs))) => ours == theirs,
                (Some(Raw::String(ours)), Some(serde_json::Value::String(theirs))) => ours == theirs,
                (Some(Raw::Integer(ours)), Some(serde_json::Value::Number(theirs))) => {
                    theirs.as_f64() == Some(ours as f64)
                }
                (Some(Raw::Double(ours)), Some(serde_json::Value::Number(theirs))) => {
                    theirs.as_f64() == Some(ours)
                }
                _ => false,
            };
            assert!(same, "{text:?}");
        }
    }

    #[test]
    fn skipping_checks_what_it_skips() {
        let skips = |text: &str| {
            let mut reader = Reader::new(text);
            reader.skip_value().is_some() && reader.is_at_end()
        };
        assert!(skips(r#"{"a":[1,"x",{"b":[]}],"c":{}}"#));
        for bad in ["{", "[1,]", "{\"a\"}", "{\"a\":1,}", "[1 2]", &"[".repeat(100_000)] {
            assert!(!skips(bad), "{}", &bad[..bad.len().min(20)]);
        }
    }
}
