//! Masks the parts of a text that differ from run to run (ids, times, ETags, boundaries, ports), so that the rest can
//! be compared byte by byte.

/// Replaces GUIDs with `GUID`, ISO times (also as escaped in ETags) with `TIME`, HTTP dates with `DATE` and
/// `127.0.0.1:PORT` with `HOST`.
pub fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        if let Some(length) = guid(rest.as_bytes()) {
            out.push_str("GUID");
            at += length;
        } else if let Some(length) = iso_time(rest.as_bytes()) {
            out.push_str("TIME");
            at += length;
        } else if let Some(length) = http_date(rest.as_bytes()) {
            out.push_str("DATE");
            at += length;
        } else if let Some(length) = host(rest.as_bytes()) {
            out.push_str("HOST");
            at += length;
        } else {
            let next = rest.chars().next().expect("at is inside the text");
            out.push(next);
            at += next.len_utf8();
        }
    }
    out
}

/// Matches a pattern where `x` is a hex digit, `9` a decimal one, `a` a letter, and the rest stands for itself.
fn pattern(bytes: &[u8], pattern: &[u8]) -> bool {
    bytes.len() >= pattern.len()
        && pattern.iter().zip(bytes).all(|(wanted, byte)| match wanted {
            b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
            b'9' => byte.is_ascii_digit(),
            b'a' => byte.is_ascii_alphabetic(),
            other => other == byte,
        })
}

fn guid(bytes: &[u8]) -> Option<usize> {
    let form = b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    pattern(bytes, form).then_some(form.len())
}

fn iso_time(bytes: &[u8]) -> Option<usize> {
    let (plain, escaped) = (b"9999-99-99T99:99:99", b"9999-99-99T99%3A99%3A99");
    let mut length = if pattern(bytes, plain) {
        plain.len()
    } else if pattern(bytes, escaped) {
        escaped.len()
    } else {
        return None;
    };
    if bytes.get(length) == Some(&b'.') {
        length += 1;
        length += bytes[length..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    (bytes.get(length) == Some(&b'Z')).then_some(length + 1)
}

fn http_date(bytes: &[u8]) -> Option<usize> {
    let form = b"aaa, 99 aaa 9999 99:99:99 G";
    pattern(bytes, form).then_some(form.len() + 2)
}

fn host(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"127.0.0.1:")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then_some("127.0.0.1:".len() + digits)
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(mask(input), expected);
    }

    #[test]
    fn what_differs_from_run_to_run_is_masked_and_nothing_else() {
        check("--batchresponse_fb532701-4d40-4bf0-b009-0cd2a608ee14\r\n", "--batchresponse_GUID\r\n");
        check("W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"", "W/\"datetime'TIME'\"");
        check("Time:2021-09-21T00:50:21.0781298Z ô", "Time:TIME ô");
        check("Date: Tue, 21 Sep 2021 00:50:20 GMT!", "Date: DATE!");
        check("http://127.0.0.1:10002/a", "http://HOST/a");
        check("2021-09-21 1.5 12345678-1234", "2021-09-21 1.5 12345678-1234");
    }
}
