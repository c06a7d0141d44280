//! Heads and bodies, whole and cut in two at every place.

use bytes::{Buf, BytesMut};

use super::*;
use crate::http::body_decoder::{BodyDecoder, Decoded};

const HEADER_COUNT_MAX: usize = 100;

/// Reads requests one after the other, as a connection does.
#[derive(Default)]
struct Requests {
    parts: RequestParts,
    body: BodyDecoder,
    input: BytesMut,
    count: usize,
    is_refused: bool,
}

impl Requests {
    fn push(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while !self.is_refused {
            let outcome = match self.body == BodyDecoder::Done {
                true => self.parts.read(&self.input, HEADER_COUNT_MAX).map_err(|_| ()),
                false => match self.body.decode(&mut self.input) {
                    Ok(Decoded::More) => return,
                    Ok(_) => continue,
                    Err(_) => Err(()),
                },
            };
            match outcome {
                Err(()) => self.is_refused = true,
                Ok(None) => return,
                Ok(Some(len)) => {
                    self.input.advance(len);
                    self.body = BodyDecoder::new(self.parts.body);
                    self.parts.clear();
                    self.count += 1;
                }
            }
        }
    }

    fn is_between_requests(&self) -> bool {
        self.body == BodyDecoder::Done && self.input.iter().all(|byte| b"\r\n".contains(byte))
    }
}

/// Checks the bytes as a whole, and in two pieces cut at every place.
#[track_caller]
fn check(text: &str, is_right: bool) {
    for cut in 0..=text.len() {
        let mut requests = Requests::default();
        requests.push(&text.as_bytes()[..cut]);
        requests.push(&text.as_bytes()[cut..]);
        assert_eq!(requests.is_refused, !is_right, "{text:?} cut at {cut}");
        if is_right {
            assert!(requests.is_between_requests(), "{text:?} cut at {cut}");
        }
    }
}

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\n";

#[test]
fn plain_requests_pass_one_after_the_other() {
    let get = "GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\n\r\n";
    let sized = format!("{HEAD}Content-Length: 5\r\n\r\na\nb\n\n");
    let empty = format!("{HEAD}content-length:0\r\n\r\n");
    let chunks = "5;x=y\r\na\nb\n\n\r\n00A\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\nx: y\r\n\r\n";
    let chunked = format!("{HEAD}Transfer-Encoding: Chunked\r\n\r\n{chunks}");
    let bare = format!("{HEAD}transfer-encoding:chunked\r\n\r\n0\r\n\r\n");
    for text in [get, &sized, &empty, &chunked, &bare] {
        check(text, true);
        check(&format!("\r\n{text}{get}"), true);
    }
    let all = [get, &sized, &empty, &chunked, &bare, &sized, get].concat();
    check(&all, true);
    let mut requests = Requests::default();
    requests.push(all.as_bytes());
    assert_eq!(requests.count, 7);
}

#[test]
fn heads_that_can_be_read_in_two_ways_are_refused() {
    for text in [
        "GET / HTTP/1.1\nHost: a\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a\r\n\n".to_owned(),
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        format!("{HEAD}Host: a\r\n\r\n"),
        format!("{HEAD}hOST:b\r\n\r\n"),
        format!("{HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\na"),
        format!("{HEAD}Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
        format!("{HEAD}Content-Length: 1, 1\r\n\r\na"),
        format!("{HEAD}Content-Length: +1\r\n\r\na"),
        format!("{HEAD}Content-Length:\r\n\r\n"),
        format!("{HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: identity\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n0\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\nx: y\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n1;x\ny\r\na\r\n0\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\na"),
        format!("{HEAD}Content-Length: 2\r\n\r\n{{}}GET / HTTP/1.1\nHost: a\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\nHost: a\r\n\r\n"),
    ] {
        check(&text, false);
    }
}

#[test]
fn heads_that_are_none_are_refused() {
    for text in [
        "GET\r\n\r\n",
        "GET /\r\n\r\n",
        "GET HTTP/1.1\r\n\r\n",
        "GET  HTTP/1.1\r\n\r\n",
        "GET /  HTTP/1.1\r\n\r\n",
        "GET / a HTTP/1.1\r\n\r\n",
        " GET / HTTP/1.1\r\n\r\n",
        "G(T / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.2\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET / http/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET a/b HTTP/1.1\r\n\r\n",
        "GET a HTTP/1.1\r\n\r\n",
        "CONNECT a:80 HTTP/1.1\r\n\r\n",
        "GET ** HTTP/1.1\r\n\r\n",
        "GET http:// HTTP/1.1\r\n\r\n",
        "GET http:///a HTTP/1.1\r\n\r\n",
        "GET http://a@b/ HTTP/1.1\r\n\r\n",
        "GET http://a:b/ HTTP/1.1\r\n\r\n",
        "GET http://[a/ HTTP/1.1\r\n\r\n",
        "GET http://a b/ HTTP/1.1\r\n\r\n",
        "GET /<> HTTP/1.1\r\n\r\n",
        "GET /?a=\" HTTP/1.1\r\n\r\n",
        "GET /\u{7f} HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\n: a\r\n\r\n",
        "GET / HTTP/1.1\r\na : b\r\n\r\n",
        "GET / HTTP/1.1\r\n a: b\r\n\r\n",
        "GET / HTTP/1.1\r\na: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\na: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\na: b\0\r\n\r\n",
        "GET / HTTP/1.1\r\na: b\u{1b}\r\n\r\n",
        "GET / HTTP/1.1\r\n\u{e4}: b\r\n\r\n",
        "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        check(text, false);
    }
}

fn parsed(head: &[u8]) -> Result<RequestParts, HeadError> {
    let mut parts = RequestParts::default();
    let len = parts.read(head, HEADER_COUNT_MAX)?;
    assert_eq!(len, Some(head.len()));
    Ok(parts)
}

#[test]
fn a_request_line_has_a_method_and_a_target() {
    #[track_caller]
    fn check(target: &str, authority: Option<&str>, path: &str, query: Option<&str>) {
        let parts = parsed(format!("X-Y {target} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        assert_eq!(parts.method(), "X-Y");
        assert_eq!((parts.authority(), parts.path(), parts.query()), (authority, path, query), "{target}");
    }
    check("/", None, "/", None);
    check("*", None, "*", None);
    check("/a%20b'()?", None, "/a%20b'()", Some(""));
    check("/a?b=c&d=?/", None, "/a", Some("b=c&d=?/"));
    check("/{\"a\"}|~?{b}", None, "/{\"a\"}|~", Some("{b}"));
    check("//a//b", None, "//a//b", None);
    check("/\u{e4}?\u{e4}", None, "/\u{e4}", Some("\u{e4}"));
    check("/a#b?c", None, "/a", None);
    check("/a?b#c", None, "/a", Some("b"));
    for target in ["/a#b c", "/a#b\tc"] {
        assert!(parsed(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).is_err(), "{target}");
    }
    check("http://a.b:80/c?d", Some("a.b:80"), "/c", Some("d"));
    check("HTTPS://a", Some("a"), "/", None);
    check("http://a?b", Some("a"), "/", Some("b"));
    check("http://[::1]:80/", Some("[::1]:80"), "/", None);
    let long = |len: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(len - 1));
    assert!(parsed(long(TARGET_BYTES_MAX).as_bytes()).is_ok());
    assert_eq!(parsed(long(TARGET_BYTES_MAX + 1).as_bytes()).err(), Some(HeadError::TargetTooLong));
    assert_eq!(parsed(b"GET /\xe4 HTTP/1.1\r\n\r\n").map(|parts| parts.path().to_owned()).ok(), None);
}

#[test]
fn headers_are_found_whatever_their_case_and_spelt_as_they_were_sent() {
    let head =
        b"GET / HTTP/1.1\r\nX-Ms-Meta-MyName: \t a b \t\r\nx-ms-date:d\r\nEMPTY:\r\nempty: second\r\n\r\n";
    let parts = parsed(head).unwrap();
    assert_eq!(parts.header("x-ms-meta-myname"), Some("a b"));
    assert_eq!((parts.header("x-ms-date"), parts.header("empty")), (Some("d"), Some("")));
    assert_eq!(parts.values("empty").collect::<Vec<_>>(), ["", "second"]);
    assert!(!parts.has("x-ms-meta") && !parts.has("xxmsxdate"));
    let lower: Vec<&str> = parts.headers().map(|(name, _)| name).collect();
    assert_eq!(lower, ["x-ms-meta-myname", "x-ms-date", "empty", "empty"]);
    let spelt: Vec<&str> = parts.spelt_headers().map(|(name, _)| name).collect();
    assert_eq!(spelt, ["X-Ms-Meta-MyName", "x-ms-date", "EMPTY", "empty"]);
}

#[test]
fn values_are_utf_8_or_latin_1() {
    let parts = parsed(b"GET / HTTP/1.1\r\nA: \xe4\r\nB: \xc3\xa4\r\nC: c\r\n\r\n").unwrap();
    assert_eq!((parts.header("a"), parts.header("b")), (Some("\u{e4}"), Some("\u{e4}")));
    assert_eq!(parts.header("c"), Some("c"));
    let parts = parsed(b"GET /x HTTP/1.1\r\nB: \xc3\xa4\r\n\r\n").unwrap();
    assert_eq!((parts.header("b"), parts.path()), (Some("\u{e4}"), "/x"));
}

#[test]
fn a_connection_is_used_again_unless_somebody_says_otherwise() {
    let keeps = |version: &str, lines: &str| {
        parsed(format!("GET / HTTP/{version}\r\n{lines}\r\n").as_bytes()).unwrap().keeps_alive
    };
    assert!(keeps("1.1", "") && !keeps("1.0", ""));
    assert!(!keeps("1.1", "Connection: Close\r\n") && !keeps("1.1", "Connection: a, close\r\n"));
    assert!(!keeps("1.1", "Connection: close\r\nConnection: keep-alive\r\n"));
    assert!(keeps("1.0", "Connection: Keep-Alive\r\n") && !keeps("1.0", "Connection: keep-alive, close\r\n"));
    let expects = |version: &str| {
        let head = format!("PUT / HTTP/{version}\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n");
        parsed(head.as_bytes()).unwrap().expects_continue
    };
    assert!(expects("1.1") && !expects("1.0"));
}

#[test]
fn a_head_has_a_bounded_number_of_headers() {
    let head = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert!(parsed(head(HEADER_COUNT_MAX).as_bytes()).is_ok());
    assert_eq!(parsed(head(HEADER_COUNT_MAX + 1).as_bytes()).err(), Some(HeadError::TooLarge));
}

#[test]
fn lines_between_chunks_are_bounded() {
    let start = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    let refused = |rest: &str| {
        let mut requests = Requests::default();
        requests.push(format!("{start}{rest}").as_bytes());
        requests.is_refused
    };
    assert!(!refused(&format!("1;{}", "x".repeat(10_000))));
    assert!(refused(&format!("1;{}", "x".repeat(20_000))));
    assert!(refused(&format!("1;{}\r\na\r\n", "x".repeat(9_000)).repeat(2)));
    assert!(!refused(&format!("1;{}\r\na\r\n", "x".repeat(90)).repeat(2)));
    assert!(refused(&format!("0\r\n{}", "a: b\r\n".repeat(10_000))));
    assert!(refused(&format!("0\r\n{}", "x".repeat(20_000))));
    for odd in ["0\r\nno colon\r\n", "0\r\n: a\r\n", "0\r\na : b\r\n", "1 2\r\n", ";\r\n", "\r\n", "1\ra\r\n"]
    {
        assert!(refused(odd), "{odd:?}");
    }
}

#[test]
fn a_head_is_composed_only_of_parts_that_stay_apart() {
    let compose = |method: &str, target: &str, headers: &[(&str, &str)]| {
        RequestParts::compose(method, target, headers.iter().copied())
    };
    let parts = compose("DELETE", "/a?b", &[("Host", "h"), ("x-ms-date", "d e")]).unwrap();
    assert_eq!((parts.method(), parts.path(), parts.query()), ("DELETE", "/a", Some("b")));
    assert_eq!((parts.header("host"), parts.header("x-ms-date")), (Some("h"), Some("d e")));
    assert!(compose("GET", "/", &[]).is_some());
    for value in ["a\r\nb: c", "a\r\n\r\n", "a\r\n", "\n", "\r", "\0"] {
        assert!(compose("GET", "/", &[("x", value), ("y", "z")]).is_none(), "{value:?}");
        assert!(compose("GET", "/", &[(value, "v")]).is_none(), "{value:?}");
        assert!(compose("GET", value, &[("x", "y")]).is_none(), "{value:?}");
        assert!(compose(value, "/", &[("x", "y")]).is_none(), "{value:?}");
    }
    assert!(compose("GET", "/ HTTP/1.1\r\na: b\r\n\r\nGET /", &[]).is_none());
}

/// Another reader of HTTP, which is lenient where we are strict, agrees about everything that we accept.
#[test]
fn what_is_accepted_is_read_as_others_read_it() {
    let seeds: [&[u8]; 5] = [
        b"GET /a/b(c='d')?$filter=x%20eq%201&y HTTP/1.1\r\nHost: a.b:1\r\nAccept: */*\r\nx-ms-Date: d e\r\n\r\n",
        b"POST http://[::1]:80/a?b#c HTTP/1.0\r\nContent-Length: 12\r\nConnection: a, close\r\nE:\r\n\r\n",
        b"\r\n\r\nPUT * HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\nX:\t\xc3\xa4 \r\n\r\n",
        b"X-Y //?? HTTP/1.1\r\n!#$%&'*+-.^_`|~: ()<>@,;:\\\"/[]?={}\r\nL: \xe4\r\nl: \xff\x80\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ];
    let pieces: [&[u8]; 16] = [
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b" ",
        b"\t",
        b":",
        b": ",
        b"HTTP/1.1",
        b"\x7f",
        b"\x80",
        b"Host: x\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"/",
        b"GET / HTTP/1.1\r\n",
    ];
    let mut random = fastrand::Rng::with_seed(18);
    let mut accepted_count = 0;
    for round in 0..40_000 {
        let mut head = seeds[round % seeds.len()].to_vec();
        for _ in 0..random.usize(0..3) {
            let (start, piece) = (random.usize(0..=head.len()), pieces[random.usize(0..pieces.len())]);
            let end = (start + random.usize(0..3)).min(head.len());
            match random.u8(0..4) {
                0 => head.truncate(start),
                1 if start < head.len() => head[start] = random.u8(..),
                _ => drop(head.splice(start..end, piece.iter().copied())),
            }
        }
        let mut parts = RequestParts::default();
        let outcome = parts.read(&head, HEADER_COUNT_MAX);
        // However it arrives, the outcome is the same.
        let cut = random.usize(0..=head.len());
        let mut slow = RequestParts::default();
        let again = match slow.read(&head[..cut], HEADER_COUNT_MAX) {
            Ok(None) => slow.read(&head, HEADER_COUNT_MAX),
            decided => decided,
        };
        assert_eq!(again, outcome, "{:?} cut at {cut}", String::from_utf8_lossy(&head));
        let Ok(Some(len)) = outcome else { continue };
        accepted_count += 1;
        let mut headers = [httparse::EMPTY_HEADER; HEADER_COUNT_MAX];
        let mut other = httparse::Request::new(&mut headers);
        let shown = String::from_utf8_lossy(&head);
        assert_eq!(other.parse(&head), Ok(httparse::Status::Complete(len)), "{shown:?}");
        assert_eq!((Some(parts.method()), other.version), (other.method, Some(u8::from(!parts.is_http_10))));
        if parts.authority().is_none() {
            let target = match parts.query() {
                Some(query) => [parts.path(), "?", query].concat(),
                None => parts.path().to_owned(),
            };
            let without_fragment = other.path.and_then(|path| path.split('#').next());
            assert_eq!(Some(target.as_str()), without_fragment, "{shown:?}");
        }
        let ours: Vec<(&str, &str)> = parts.spelt_headers().collect();
        assert_eq!(ours.len(), other.headers.len(), "{shown:?}");
        for ((name, value), theirs) in ours.into_iter().zip(other.headers.iter()) {
            let latin = || theirs.value.iter().map(|byte| char::from(*byte)).collect::<String>();
            let expected = String::from_utf8(theirs.value.to_vec()).unwrap_or_else(|_| latin());
            assert_eq!((name, value), (theirs.name, expected.as_str()), "{shown:?}");
        }
    }
    assert!(accepted_count > 10_000, "{accepted_count}");
}

#[test]
fn a_colon_is_found_wherever_it_stands() {
    for len in 0..30 {
        assert_eq!(colon_in(&vec![b'a'; len]), None);
        for at in 0..len {
            for other in [b';', b'9', 0xBA, b':'] {
                // What stands before it differs from a colon by one, in either direction, or in its highest bit.
                let mut line = vec![other; len];
                line[at] = b':';
                let expected = line.iter().position(|byte| *byte == b':');
                assert_eq!(colon_in(&line), expected, "{at} of {len}");
            }
        }
    }
}

#[test]
fn control_characters_count_only_outside_of_line_ends() {
    for (head, line_count, expected) in [
        (&b"GET / HTTP/1.1\r\nA: b\r\n\r\n"[..], 3, true),
        (b"GET / HTTP/1.1\r\nA: b\tc\r\n\r\n", 3, true),
        ("GET / HTTP/1.1\r\nA: ü\r\n\r\n".as_bytes(), 3, true),
        (b"GET / HTTP/1.1\r\nA: b\0\r\n\r\n", 3, false),
        (b"GET / HTTP/1.1\r\nA: b\x7f\r\n\r\n", 3, false),
        (b"GET / HTTP/1.1\r\nA: \xff\x01\t\r\n\r\n", 3, false),
    ] {
        assert_eq!(has_controls_only_at_ends(head, line_count), expected, "{head:?}");
    }
}
