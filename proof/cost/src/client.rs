//! A client that costs next to nothing: it is the server's stream itself.
//!
//! The server reads prepared requests straight from it, one at a time, and the next one as soon as it has answered the one
//! before. So nothing is counted that only carries bytes between two tasks. The client drives the connection: there is no
//! task besides, and a connection that waits for another thread is woken by that thread.
//! Promises: the status of every answer is checked, and the length of the last one.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Stands for a row key that is filled in later. That is possible because signatures do not cover payloads.
pub const HOLE: &str = "################";

pub struct Client {
    connection: Pin<Box<dyn Future<Output = ()> + Send>>,
    script: Arc<Mutex<Script>>,
    /// The last answer.
    answer: Vec<u8>,
}

impl Client {
    /// `serve` makes the future that serves this stream.
    pub fn new<F: Future<Output = ()> + Send + 'static>(serve: impl FnOnce(Stream) -> F) -> Client {
        let script = Arc::new(Mutex::new(Script::default()));
        let connection = Box::pin(serve(Stream(script.clone())));
        Client { connection, script, answer: Vec::new() }
    }

    /// Sends one request and returns its answer. Fails on a status other than the expected one.
    pub async fn exchange(&mut self, request: &[u8], status: u16) -> &[u8] {
        {
            let mut script = lock(&self.script);
            script.template.set(request);
            script.begin(status, 1);
        }
        self.play().await
    }

    /// Sends this request so often, each time with new row keys, and returns the last answer. Fails on a status other than
    /// the expected one.
    pub async fn repeat(&mut self, template: Template, status: u16, count: u64) -> &[u8] {
        {
            let mut script = lock(&self.script);
            script.template = template;
            script.begin(status, count);
        }
        self.play().await
    }

    /// Drives the connection until every request of the script is answered.
    async fn play(&mut self) -> &[u8] {
        let Client { connection, script, answer } = self;
        poll_fn(|context| {
            loop {
                let ended = connection.as_mut().poll(context).is_ready();
                let script = lock(script);
                assert!(!ended, "the server closes the connection after {}", script.shown_answer());
                if script.is_over() {
                    return Poll::Ready(());
                }
                // A server that asked for the next request before it answered is not woken by anybody else.
                if !script.is_answered() {
                    return Poll::Pending;
                }
            }
        })
        .await;
        std::mem::swap(answer, &mut lock(script).answer);
        assert!(is_whole(answer), "{}", String::from_utf8_lossy(answer));
        answer
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().expect("nothing panics while it holds the script")
}

/// What the server reads, and its answers.
#[derive(Default)]
struct Script {
    template: Template,
    /// How many requests follow the current one.
    rest: u64,
    /// How much of the current request the server has read.
    read: usize,
    /// The digits of the expected status.
    status: [u8; 3],
    /// What the server has written since it read the current request; only the beginning, while more requests follow.
    answer: Vec<u8>,
    /// Whether the server has asked for more than there is.
    is_exhausted: bool,
}

impl Script {
    fn begin(&mut self, status: u16, count: u64) {
        assert!((100..1000).contains(&status) && count > 0);
        self.status = [status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        self.rest = count;
        self.next();
    }

    fn next(&mut self) {
        self.rest -= 1;
        self.template.fill();
        self.read = 0;
        self.answer.clear();
        self.is_exhausted = false;
    }

    fn is_answered(&self) -> bool {
        self.read == self.template.bytes.len() && !self.answer.is_empty()
    }

    /// A server that asks for another request has nothing more to say about the last one.
    fn is_over(&self) -> bool {
        self.is_exhausted && self.is_answered()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let kept = if self.rest == 0 { bytes.len() } else { bytes.len().min(STATUS_END) };
        self.answer.extend_from_slice(&bytes[..kept]);
    }

    fn shown_answer(&self) -> String {
        String::from_utf8_lossy(&self.answer).into_owned()
    }
}

/// Where the status stands in an answer.
const STATUS_START: usize = "HTTP/1.1 ".len();
const STATUS_END: usize = STATUS_START + 3;

fn is_whole(answer: &[u8]) -> bool {
    const HEAD_END: &[u8] = b"\r\n\r\n";
    const LENGTH: &[u8] = b"\r\ncontent-length: ";
    let Some(head_len) = memmem::find(answer, HEAD_END) else { return false };
    let body_len = answer.len() - head_len - HEAD_END.len();
    let Some(at) = memmem::find(&answer[..head_len], LENGTH) else { return body_len == 0 };
    let digits = answer[at + LENGTH.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    body_len == digits.fold(0, |len, digit| len * 10 + usize::from(digit - b'0'))
}

/// The server's end, which is the only one. It never makes the server wait, except when the script is over.
pub struct Stream(Arc<Mutex<Script>>);

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut script = lock(&self.0);
        if script.read == script.template.bytes.len() {
            if script.answer.is_empty() {
                return Poll::Pending;
            }
            if script.answer.get(STATUS_START..STATUS_END) != Some(&script.status) {
                return Poll::Ready(Err(io::Error::other("an answer has another status than expected")));
            }
            if script.rest == 0 {
                script.is_exhausted = true;
                return Poll::Pending;
            }
            script.next();
        }
        let unread = &script.template.bytes[script.read..];
        let count = unread.len().min(into.remaining());
        into.put_slice(&unread[..count]);
        script.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        lock(&self.0).keep(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut script = lock(&self.0);
        parts.iter().for_each(|part| script.keep(part));
        Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A request with holes for row keys. Each use fills them with new keys.
#[derive(Default)]
pub struct Template {
    bytes: Vec<u8>,
    holes: Vec<usize>,
    used: u64,
}

impl Template {
    pub fn new(bytes: Vec<u8>) -> Template {
        let holes = memmem::find_iter(&bytes, HOLE).collect();
        Template { bytes, holes, used: 0 }
    }

    /// Takes a request without holes.
    fn set(&mut self, request: &[u8]) {
        self.holes.clear();
        self.bytes.clear();
        self.bytes.extend_from_slice(request);
    }

    fn fill(&mut self) {
        for hole in &self.holes {
            // Far from the key before, like the keys of many clients. Hexadecimal, so that all 64 bits fit and no key
            // repeats.
            self.used += 1;
            let mut number = self.used.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for digit in &mut self.bytes[*hole..*hole + HOLE.len()] {
                *digit = b"0123456789abcdef"[(number >> 60) as usize];
                number <<= 4;
            }
        }
    }
}
