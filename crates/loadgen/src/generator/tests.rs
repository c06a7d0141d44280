//! The generator against a server of a few lines: when it sends, how often, and what it counts.

use std::io::BufRead;
use std::net::TcpListener;

use super::*;

/// Answers every request on one connection, the first one after a pause.
fn server(pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
        let mut pause = Some(pause);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
            if line == "\r\n" {
                std::thread::sleep(pause.take().unwrap_or_default());
                if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
                    return;
                }
            }
            line.clear();
        }
    });
    address
}

/// A source of `left` requests, `parts` of them to an operation.
struct Count {
    left: u64,
    parts: u64,
    answered: u64,
}

impl Requests for Count {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        out.clear();
        out.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
        self.left = self.left.checked_sub(1)?;
        Some(0)
    }

    fn answered(&mut self, _connection: usize, _answer: &[u8]) -> bool {
        self.answered += 1;
        self.answered.is_multiple_of(self.parts)
    }
}

#[test]
fn a_pause_of_the_server_counts_for_all_that_were_due() {
    let pause = Duration::from_millis(400);
    let mut generator = Generator::open(server(pause), 1, 1).unwrap();
    generator.set_load_model(LoadModel::Open { per_second: 100.0, patience: Duration::from_secs(10) });
    let mut requests = Count { left: u64::MAX, parts: 1, answered: 0 };
    generator.run_for(pause * 2, &mut requests).unwrap();
    let all = generator.take().all();
    // Only one request was slow to serve, but those due meanwhile waited too, as their clients would have noticed.
    assert!(all.accepted_served.percentile_us(0.9) < 100_000.0, "{}", all.accepted_served.percentile_us(0.9));
    assert!(all.accepted.percentile_us(0.9) > 200_000.0, "{}", all.accepted.percentile_us(0.9));
}

#[test]
fn every_request_is_sent_and_then_it_ends() {
    let mut requests = Count { left: 20, parts: 1, answered: 0 };
    let count = send_all(server(Duration::ZERO), 1, Duration::from_secs(30), &mut requests).unwrap();
    assert_eq!((count, requests.answered), (20, 20));
}

#[test]
fn an_operation_of_many_requests_counts_once() {
    let mut requests = Count { left: 20, parts: 5, answered: 0 };
    let count = send_all(server(Duration::ZERO), 1, Duration::from_secs(30), &mut requests).unwrap();
    assert_eq!((count, requests.answered), (4, 20));
}

#[test]
fn a_transaction_has_the_status_of_its_part() {
    let answer = |part: &str| {
        format!(
            "HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\n--b\r\nContent-Type: x\r\n\r\nHTTP/1.1 {part}\r\n"
        )
    };
    assert_eq!(status_of_part(answer("204 No Content").as_bytes()), Some(204));
    assert_eq!(status_of_part(answer("503 Service Unavailable").as_bytes()), Some(503));
    assert_eq!(status_of_part(b"HTTP/1.1 202 Accepted\r\n\r\n"), None);
}

#[test]
fn a_close_is_seen_in_the_head_only() {
    assert!(says_close(b"HTTP/1.1 503 x\r\nConnection: Close\r\n\r\n"));
    assert!(!says_close(b"HTTP/1.1 503 x\r\n\r\nconnection: close"));
}

#[test]
fn a_schedule_is_even() {
    let schedule = Schedule { start: clock::now(), per_second: 100.0, patience: Duration::ZERO, passed: 250 };
    assert_eq!(schedule.due() - schedule.start, Duration::from_millis(2500));
}
