//! What is said on a connection, byte by byte, in memory.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::http::body::Pieces;
use crate::http::connections::Connections;
use crate::http::limits::Limits;
use crate::http::memory_pool::{Holder, MemoryPool};
use crate::http::response::HeaderList;

struct Script {
    limits: Limits,
    connections: Arc<Connections>,
}

impl Default for Script {
    fn default() -> Script {
        Script { limits: Limits::default(), connections: Connections::new(1) }
    }
}

struct Words(Vec<&'static str>);

impl Pieces for Words {
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self.0.is_empty() {
            true => Poll::Ready(None),
            false => Poll::Ready(Some(Ok(Bytes::from(self.0.remove(0))))),
        }
    }
}

fn words(len: Option<u64>, words: &[&'static str]) -> AnswerBody {
    AnswerBody::Stream(AnswerStream { len, pieces: Box::pin(Words(words.to_vec())) })
}

impl Handler for Script {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    fn head_memory(&self, _: IpAddr) -> Reservation {
        MemoryPool::new(1024 * 1024).small(Holder { account: 1, caller: 1 })
    }

    fn add_date(&self, headers: &mut HeaderList) {
        headers.put("date", "now");
    }

    async fn handle(&self, _: IpAddr, request: Incoming<'_>) -> Response {
        let Incoming { parts, body, spare, .. } = request;
        let (status, body) = match parts.path() {
            "/echo" => {
                let reserve = || self.head_memory([127, 0, 0, 1].into());
                match crate::http::body::read_whole(body, parts, &self.limits, reserve, true).await {
                    Ok((payload, _)) => (200, AnswerBody::whole(payload.bytes().to_vec())),
                    Err(error) => (400, AnswerBody::whole(format!("{error:?}").into_bytes())),
                }
            }
            "/chunks" => (200, words(None, &["abc", "", "defghijklmnop"])),
            "/sized" => (200, words(Some(5), &["abc", "def"])),
            "/broken" => (200, words(Some(5), &["abc"])),
            "/nothing" => (204, AnswerBody::Empty),
            "/same" => (304, AnswerBody::whole(Vec::new())),
            _ => (404, AnswerBody::Shared(Bytes::from_static(b"what?"))),
        };
        let mut head = ResponseHead::new(status, spare);
        if status == 204 {
            head.headers_mut().put("content-length", "0");
        }
        Response { head, body }
    }
}

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn start(script: Script) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(1024 * 1024);
    tokio::spawn(async move { serve(theirs, PEER, &script, &AtomicBool::new(false)).await });
    ours
}

/// Everything that is said to these bytes, when nothing follows them.
async fn said(bytes: &str) -> String {
    let mut stream = start(Script::default());
    stream.write_all(bytes.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[track_caller]
fn check(found: &str, expected: &str) {
    assert_eq!(found, expected.replace('\n', "\r\n"));
}

#[tokio::test]
async fn requests_are_answered_one_after_the_other() {
    let echo = "POST /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
    let get = "GET / HTTP/1.1\r\n\r\n";
    let chunks = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n2\r\nyz\r\n0\r\n\r\n";
    check(
        &said(&[echo, get, chunks].concat()).await,
        "HTTP/1.1 200 OK\ncontent-length: 3\n\nabcHTTP/1.1 404 Not Found\ncontent-length: 5\n\nwhat?\
         HTTP/1.1 200 OK\ncontent-length: 3\n\nxyz",
    );
    check(&said("").await, "");
    check(&said("GET / HT").await, "");
}

#[tokio::test]
async fn a_body_that_nobody_reads_does_not_become_the_next_request() {
    let unread = "POST / HTTP/1.1\r\nContent-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    let answer = "HTTP/1.1 404 Not Found\ncontent-length: 5\n\nwhat?";
    check(&said(&unread.repeat(2)).await, &answer.repeat(2));
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    check(&said(&chunked.repeat(2)).await, &answer.repeat(2));
    // Its sender waits to be asked, so nothing can follow but the end.
    let waiting = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    check(&said(waiting).await, "HTTP/1.1 404 Not Found\nconnection: close\ncontent-length: 5\n\nwhat?");
    // This one did not wait.
    check(&said(&[waiting, "abc", unread].concat()).await, &answer.repeat(2));
    let long = "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nabc";
    check(&said(long).await, "HTTP/1.1 404 Not Found\nconnection: close\ncontent-length: 5\n\nwhat?");
    let odd = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nodd\r\n\r\n";
    let refused = "HTTP/1.1 400 Bad Request\nconnection: close\ncontent-length: 6\n\nBroken";
    check(&said(&[odd, unread].concat()).await, refused);
}

#[tokio::test]
async fn a_client_is_asked_for_its_body_when_somebody_wants_it() {
    let mut stream = start(Script::default());
    let head = "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    check(&answer, "HTTP/1.1 200 OK\ncontent-length: 3\n\nabc");
}

#[tokio::test]
async fn a_response_says_where_its_body_ends() {
    let chunks = "3\nabc\nd\ndefghijklmnop\n0\n\n";
    check(
        &said("GET /chunks HTTP/1.1\r\n\r\n").await,
        &format!("HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n{chunks}"),
    );
    check(&said("GET /chunks HTTP/1.0\r\n\r\n").await, "HTTP/1.0 200 OK\n\nabcdefghijklmnop");
    check(&said("HEAD /chunks HTTP/1.1\r\n\r\n").await, "HTTP/1.1 200 OK\n\n");
    check(&said("GET /sized HTTP/1.1\r\n\r\n").await, "HTTP/1.1 200 OK\ncontent-length: 5\n\nabcde");
    check(&said("HEAD /sized HTTP/1.1\r\n\r\n").await, "HTTP/1.1 200 OK\ncontent-length: 5\n\n");
    check(&said("HEAD / HTTP/1.1\r\n\r\n").await, "HTTP/1.1 404 Not Found\ncontent-length: 5\n\n");
    check(&said("HEAD /echo HTTP/1.1\r\n\r\n").await, "HTTP/1.1 200 OK\n\n");
    check(&said("GET /echo HTTP/1.1\r\n\r\n").await, "HTTP/1.1 200 OK\ncontent-length: 0\n\n");
    check(&said("GET /nothing HTTP/1.1\r\n\r\n").await, "HTTP/1.1 204 No Content\ncontent-length: 0\n\n");
    check(&said("GET /same HTTP/1.1\r\n\r\n").await, "HTTP/1.1 304 Not Modified\n\n");
    // One that is not whole is not followed by another.
    let broken = said(&"GET /broken HTTP/1.1\r\n\r\n".repeat(2)).await;
    check(&broken, "HTTP/1.1 200 OK\ncontent-length: 5\n\nabc");
}

#[tokio::test]
async fn old_clients_and_last_requests_close_the_connection() {
    let answer = "404 Not Found\ncontent-length: 5\n\nwhat?";
    check(&said(&"GET / HTTP/1.0\r\n\r\n".repeat(2)).await, &format!("HTTP/1.0 {answer}"));
    let kept = "HTTP/1.0 404 Not Found\nconnection: keep-alive\ncontent-length: 5\n\nwhat?";
    check(&said(&"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".repeat(2)).await, &kept.repeat(2));
    let last = "HTTP/1.1 404 Not Found\nconnection: close\ncontent-length: 5\n\nwhat?";
    check(&said(&"GET / HTTP/1.1\r\nConnection: close\r\n\r\n".repeat(2)).await, last);
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_ends_the_connection() {
    let refused = "connection: close\ncontent-length: 0\ndate: now\n\n";
    let next = "GET / HTTP/1.1\r\n\r\n";
    check(
        &said(&format!("GET / HTTP/3.0\r\n\r\n{next}")).await,
        &format!("HTTP/1.1 400 Bad Request\n{refused}"),
    );
    let many = format!("GET / HTTP/1.1\r\n{}\r\n{next}", "a: b\r\n".repeat(101));
    let too_large = format!("HTTP/1.1 431 Request Header Fields Too Large\n{refused}");
    check(&said(&many).await, &too_large);
    let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(200_000));
    check(&said(&long).await, &too_large);
    let target = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000));
    check(&said(&target).await, &format!("HTTP/1.1 414 URI Too Long\n{refused}"));
}

#[tokio::test]
async fn slow_heads_and_slow_bodies_end_the_connection() {
    let short = Duration::from_millis(30);
    let limits = Limits { header_time_max: short, body_time_max: short, ..Limits::default() };
    for (sent, expected) in [
        ("GET / HT", ""),
        (
            "POST /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\na",
            "HTTP/1.1 400 Bad Request\nconnection: close\ncontent-length: 7\n\nTooSlow",
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na",
            "HTTP/1.1 404 Not Found\ncontent-length: 5\n\nwhat?",
        ),
    ] {
        let mut stream = start(Script { limits: limits.clone(), ..Script::default() });
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        check(&answer, expected);
    }
}

#[tokio::test]
async fn when_the_server_stops_the_current_request_is_the_last_one() {
    let is_closing = AtomicBool::new(true);
    let script = Script::default();
    let (mut ours, theirs) = tokio::io::duplex(1024);
    ours.write_all("GET / HTTP/1.1\r\n\r\n".repeat(2).as_bytes()).await.unwrap();
    serve(theirs, PEER, &script, &is_closing).await.unwrap();
    let mut answer = String::new();
    ours.read_to_string(&mut answer).await.unwrap();
    check(&answer, "HTTP/1.1 404 Not Found\nconnection: close\ncontent-length: 5\n\nwhat?");
    // An empty line is no request.
    for before in ["", "\r\n"] {
        let (mut ours, theirs) = tokio::io::duplex(1024);
        ours.write_all(before.as_bytes()).await.unwrap();
        serve(theirs, PEER, &script, &is_closing).await.unwrap();
        drop(ours);
    }
}

#[tokio::test]
async fn who_speaks_another_protocol_is_told_so_before_it_says_more() {
    for sent in [&b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"[..], b"SSH-2.0-x\r\n", b"GET /\r\n"] {
        let mut stream = start(Script::default());
        stream.write_all(sent).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_sends_all_before_it_reads_gets_a_streamed_answer() {
    let (mut ours, theirs) = tokio::io::duplex(64);
    let limits = Limits { write_time_max: Duration::from_millis(300), ..Limits::default() };
    let script = Script { limits, ..Script::default() };
    tokio::spawn(async move { serve(theirs, PEER, &script, &AtomicBool::new(false)).await });
    let sent = format!("POST /chunks HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(100_000));
    ours.write_all(sent.as_bytes()).await.unwrap();
    ours.shutdown().await.unwrap();
    let mut answer = String::new();
    ours.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("0\r\n\r\n"), "{answer}");
}
