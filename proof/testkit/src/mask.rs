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

/// The length of the text's start if it has this form, where `x` is a lower-case hex digit, `9` a digit, `a` a letter,
/// and every other character stands for itself.
pub(crate) fn form(text: &[u8], form: &str) -> Option<usize> {
    let fits = text.len() >= form.len()
        && form.bytes().zip(text).all(|(wanted, byte)| match wanted {
            b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
            b'9' => byte.is_ascii_digit(),
            b'a' => byte.is_ascii_alphabetic(),
            _ => wanted == *byte,
        });
    fits.then_some(form.len())
}

pub(crate) fn guid(bytes: &[u8]) -> Option<usize> {
    form(bytes, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

fn iso_time(bytes: &[u8]) -> Option<usize> {
    let mut length = form(bytes, "9999-99-99T99:99:99").or_else(|| form(bytes, "9999-99-99T99%3A99%3A99"))?;
    if bytes.get(length) == Some(&b'.') {
        length += 1;
        length += bytes[length..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    (bytes.get(length) == Some(&b'Z')).then_some(length + 1)
}

fn http_date(bytes: &[u8]) -> Option<usize> {
    form(bytes, "aaa, 99 aaa 9999 99:99:99 G").map(|length| length + 2)
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
