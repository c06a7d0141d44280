//! The balancer in front of two plain servers that tell their own number.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};

use super::*;
use crate::RawClient;

/// Answers every request with its own number, the length of the body, and a continuation token.
fn front_end(number: usize) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                loop {
                    let (mut line, mut length) = (String::new(), 0);
                    while reader.read_line(&mut line).unwrap_or(0) > 0 && !line.ends_with("\r\n\r\n") {
                        let last = line.lines().last().unwrap_or_default();
                        if let Some(value) = last.strip_prefix("Content-Length: ") {
                            length = value.parse().unwrap();
                        }
                    }
                    if line.is_empty() {
                        return;
                    }
                    if line.contains("Expect") {
                        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
                    }
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    let text = format!("{number} {length}");
                    let token = format!("x-ms-continuation-NextRowKey: after-{number}");
                    write!(
                        stream,
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{token}\r\n\r\n{text}",
                        text.len()
                    )
                    .unwrap();
                }
            });
        }
    });
    addr
}

fn start() -> (RoundRobin, RawClient) {
    let balancer = RoundRobin::start(&[front_end(0), front_end(1)]).unwrap();
    let client = RawClient::connect(balancer.addr()).unwrap();
    (balancer, client)
}

fn ask(client: &mut RawClient, request: &str) -> String {
    client.exchange(request.as_bytes()).unwrap().text().to_owned()
}

#[test]
fn every_other_request_goes_to_the_other_front_end() {
    let (balancer, mut client) = start();
    assert_eq!(ask(&mut client, "GET /a HTTP/1.1\r\n\r\n"), "0 0");
    assert_eq!(ask(&mut client, "POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"), "1 3");
    let mut other = RawClient::connect(balancer.addr()).unwrap();
    assert_eq!(ask(&mut other, "GET /a HTTP/1.1\r\n\r\n"), "0 0");
    assert_eq!(ask(&mut client, "GET /a HTTP/1.1\r\n\r\n"), "1 0");
}

#[test]
fn a_page_comes_from_another_front_end_than_the_page_before() {
    let (balancer, mut client) = start();
    assert_eq!(ask(&mut client, "GET /a HTTP/1.1\r\n\r\n"), "0 0");
    for _ in 0..3 {
        assert_eq!(ask(&mut client, "GET /a?NextRowKey=after-0 HTTP/1.1\r\n\r\n"), "1 0");
        assert_eq!(ask(&mut client, "GET /a?NextRowKey=after%2D1 HTTP/1.1\r\n\r\n"), "0 0");
    }
    assert_eq!(balancer.page_count(), 6);
}

#[test]
fn a_body_may_come_late() {
    let (_balancer, mut client) = start();
    client.send(b"POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n").unwrap();
    assert_eq!(client.read_response(false).unwrap().status, 100);
    client.send(b"abc").unwrap();
    thread::sleep(Duration::from_millis(20));
    client.send(b"def").unwrap();
    assert_eq!(client.read_response(false).unwrap().text(), "0 6");
    assert_eq!(ask(&mut client, "GET /a HTTP/1.1\r\n\r\n"), "1 0");
}
