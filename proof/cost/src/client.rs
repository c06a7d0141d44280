//! A client that costs next to nothing: it sends prepared bytes and reads one answer.

use memchr::memmem::Finder;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Stands for a row key that is filled in later. That is possible because signatures do not cover payloads.
pub const HOLE: &str = "################";

pub struct Client {
    stream: DuplexStream,
    answer: Vec<u8>,
    head_end: Finder<'static>,
    length: Finder<'static>,
}

const HEAD_END: &[u8] = b"\r\n\r\n";
const LENGTH: &[u8] = b"\r\ncontent-length: ";

impl Client {
    pub fn new(stream: DuplexStream) -> Client {
        let answer = Vec::with_capacity(1024 * 1024);
        Client { stream, answer, head_end: Finder::new(HEAD_END), length: Finder::new(LENGTH) }
    }

    /// Sends one request and reads its answer. Fails on a status other than the expected one.
    pub async fn exchange(&mut self, request: &[u8], status: u16) -> &[u8] {
        self.stream.write_all(request).await.expect("the server reads");
        self.answer.clear();
        while !self.is_whole() {
            let count = self.stream.read_buf(&mut self.answer).await.expect("the server writes");
            assert!(count > 0, "the server closes the connection");
        }
        let found = self.answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        assert_eq!(found, Some(status), "{}", String::from_utf8_lossy(&self.answer));
        &self.answer
    }

    fn is_whole(&self) -> bool {
        let Some(head_len) = self.head_end.find(&self.answer) else { return false };
        let Some(at) = self.length.find(&self.answer[..head_len]) else { return true };
        let digits = self.answer[at + LENGTH.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        let len = digits.fold(0, |len, digit| len * 10 + usize::from(digit - b'0'));
        self.answer.len() >= head_len + HEAD_END.len() + len
    }
}

/// A request with holes for row keys. Each use fills them with new keys.
pub struct Template {
    bytes: Vec<u8>,
    holes: Vec<usize>,
    next: u64,
}

impl Template {
    pub fn new(bytes: Vec<u8>) -> Template {
        let holes = memchr::memmem::find_iter(&bytes, HOLE).collect();
        Template { bytes, holes, next: 1 }
    }

    pub fn next(&mut self) -> &[u8] {
        for hole in &self.holes {
            // Far from the key before, like the keys of many clients. Hexadecimal, so that all 64 bits fit and no key
            // repeats.
            let mut number = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.next += 1;
            for digit in &mut self.bytes[*hole..*hole + HOLE.len()] {
                *digit = b"0123456789abcdef"[(number >> 60) as usize];
                number <<= 4;
            }
        }
        &self.bytes
    }
}
