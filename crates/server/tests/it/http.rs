//! HTTP itself: connections, bodies, limits, overload and malformed input.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use engine::env::SystemClock;
use engine::faults::{FaultEngine, Faults};
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{CommitError, ReadError};
use testkit::{Request, Response, Stopwatch, TestServer, entity_json, entity_path};

fn faulty() -> (testkit::Options, Faults) {
    let memory = MemoryEngine::new(tables::FAMILIES, Arc::new(SystemClock::new()));
    let (engine, faults) = FaultEngine::new(Arc::new(memory));
    (TestServer::options().engine(Arc::new(engine)), faults)
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body.chunks(size) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

fn alive(server: &TestServer) {
    let response = server.connect().exchange(&server.bytes_of(&Request::get("/Tables"))).unwrap();
    assert_eq!(response.status, 200);
}

#[test]
fn a_connection_serves_many_requests_and_survives_errors() {
    let server = TestServer::with_table("mytable");
    let mut client = server.connect();
    for number in 0..50 {
        let request = match number % 4 {
            0 => Request::get("/Tables"),
            1 => Request::get("/absent()"),
            2 => Request::put(&entity_path("mytable", "p", "r")).json("{}"),
            _ => Request::get("/Tables").header("Authorization", "SharedKey devstoreaccount1:AAAA"),
        };
        let response = client.exchange(&server.bytes_of(&request)).unwrap();
        assert_eq!(response.status, [200, 404, 204, 403][number % 4]);
    }
}

#[test]
fn requests_in_one_write_are_answered_in_order() {
    let server = TestServer::with_table("mytable");
    let mut bytes = Vec::new();
    for number in 0..20 {
        let body = entity_json("p", &number.to_string(), "");
        bytes.extend_from_slice(&server.bytes_of(&Request::post("/mytable").json(&body)));
        let path = entity_path("mytable", "p", &number.to_string());
        bytes.extend_from_slice(&server.bytes_of(&Request::get(&path)));
    }
    let mut client = server.connect();
    client.send(&bytes).unwrap();
    for number in 0..20 {
        for status in [201, 200] {
            let response = client.read_response(false).unwrap();
            assert_eq!(response.status, status);
            assert_eq!(response.json()["RowKey"], number.to_string());
        }
    }
}

#[test]
fn a_client_may_close_after_the_answer() {
    let server = TestServer::start();
    let mut client = server.connect();
    let bytes = server.bytes_of(&Request::get("/Tables").header("Connection", "close"));
    assert_eq!(client.exchange(&bytes).unwrap().status, 200);
    assert_eq!(client.read_to_end().unwrap(), b"");
}

#[test]
fn a_client_may_stop_sending_before_the_answer() {
    let server = TestServer::with_table("mytable");
    for number in 0..20 {
        let row = number.to_string();
        let mut bytes = server.bytes_of(&Request::post("/mytable").json(&entity_json("p", &row, "\"x\":1")));
        // The second half are chunked, where the end of the stream follows the last chunk.
        if number >= 10 {
            let request = Request::post("/mytable")
                .body("application/json", chunked(entity_json("p", &row, "").as_bytes(), 7))
                .without("Content-Length")
                .header("Transfer-Encoding", "chunked");
            bytes = server.bytes_of(&request);
        }
        let mut client = server.connect();
        client.send(&bytes).unwrap();
        client.finish_sending().unwrap();
        assert_eq!(client.read_response(false).unwrap().status, 201, "{number}");
        assert_eq!(client.read_to_end().unwrap(), b"", "the connection ends after the answer");
    }
}

#[test]
fn a_client_that_stopped_sending_is_answered_after_a_wait() {
    let (options, faults) = faulty();
    let server = options.start();
    server.create_table("mytable");
    faults.delay_reads(Duration::from_millis(100));
    let mut client = server.connect();
    client.send(&server.bytes_of(&Request::get(&entity_path("mytable", "p", "r")))).unwrap();
    client.finish_sending().unwrap();
    assert_eq!(client.read_response(false).unwrap().status, 404);
}

#[test]
fn a_body_may_come_in_chunks() {
    let server = TestServer::with_table("mytable");
    let json = entity_json("p", "r", &format!("\"x\":\"{}\"", "y".repeat(5000)));
    for (row, size) in [1, 7, 4096, 100_000].into_iter().enumerate() {
        let json = json.replace("\"r\"", &format!("\"{row}\""));
        let request = Request::post("/mytable").body("application/json", chunked(json.as_bytes(), size));
        let request = request.without("Content-Length").header("Transfer-Encoding", "chunked");
        server.send(request).expect(201);
    }
}

#[test]
fn a_chunked_body_is_bounded_too() {
    let server = TestServer::with_table("mytable");
    let mut json = entity_json("p", "r", "");
    json.push_str(&" ".repeat((4 << 20) + 1 - json.len()));
    let request = Request::post("/mytable").body("application/json", chunked(json.as_bytes(), 64 * 1024));
    let request = request.without("Content-Length").header("Transfer-Encoding", "chunked");
    server.send(request).expect_error(413, "RequestBodyTooLarge");
    alive(&server);
}

#[test]
fn a_client_that_waits_for_100_continue_gets_it() {
    let server = TestServer::with_table("mytable");
    let bytes = server.bytes_of(
        &Request::post("/mytable").json(&entity_json("p", "r", "")).header("Expect", "100-continue"),
    );
    let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let mut client = server.connect();
    client.send(&bytes[..head_end]).unwrap();
    assert_eq!(client.read_response(false).unwrap().status, 100);
    client.send(&bytes[head_end..]).unwrap();
    assert_eq!(client.read_response(false).unwrap().status, 201);
}

#[test]
fn a_body_announced_too_large_is_refused_before_it_is_sent() {
    let server = TestServer::with_table("mytable");
    let request = Request::post("/mytable").json("{").header("Content-Length", &(100 << 20).to_string());
    for request in [request.clone(), request.header("Expect", "100-continue")] {
        let bytes = server.bytes_of(&request);
        let mut client = server.connect();
        client.send(&bytes[..bytes.len() - 1]).unwrap();
        let response = client.read_response(false).unwrap();
        response.expect_error(413, "RequestBodyTooLarge");
    }
    alive(&server);
}

#[test]
fn heads_are_bounded() {
    let server = TestServer::start();
    let long = "x".repeat(300 * 1024);
    let many: String = (0..500).map(|number| format!("x-{number}: y\r\n")).collect();
    for bytes in [
        format!("GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\nx-long: {long}\r\n\r\n"),
        format!("GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\n{many}\r\n"),
        format!("GET /devstoreaccount1/Tables?x={long} HTTP/1.1\r\nHost: x\r\n\r\n"),
    ] {
        let mut client = server.connect();
        if let Ok(response) = client.exchange(bytes.as_bytes()) {
            assert!([400, 414, 431].contains(&response.status), "{response:?}");
        }
        alive(&server);
    }
}

#[test]
fn targets_of_32_kib_are_accepted() {
    let server = TestServer::with_table("mytable");
    let padding = "x".repeat(32 * 1024 - 200);
    server.send(Request::get(&format!("/mytable()?ignored={padding}"))).expect(200);
}

#[test]
fn head_is_get_without_the_body() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    for target in ["/Tables", "/mytable()", "/mytable(PartitionKey='p',RowKey='r')"] {
        let response = server.send(Request::new("HEAD", target)).expect(200);
        assert_eq!(response.body, b"");
        let content_type = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
        assert_eq!(response.header("Content-Type"), Some(content_type));
    }
    let response = server.send(Request::new("HEAD", "/mytable(PartitionKey='p',RowKey='r')"));
    assert!(response.header("ETag").is_some());
    server.send(Request::new("HEAD", "/absent()")).expect(404);
    // The responses to HEAD had no body, so the connection is still usable.
    server.send(Request::get("/Tables")).expect(200);
}

#[test]
fn verbs_nobody_knows_are_invalid() {
    let server = TestServer::with_table("mytable");
    for method in ["BREW", "get", "Post", "X"] {
        for target in ["/Tables", "/mytable", "/mytable(PartitionKey='p',RowKey='r')"] {
            let request = Request::new(method, target).header("Content-Length", "0");
            server.send(request).expect_message(
                400,
                "InvalidHttpVerb",
                "The HTTP verb specified is invalid.",
            );
        }
    }
}

#[test]
fn a_slow_sender_is_cut_off() {
    let server = TestServer::options()
        .limits(|limits| {
            limits.header_time_max = Duration::from_millis(200);
            limits.body_time_max = Duration::from_millis(200);
        })
        .start();
    let bytes = server.bytes_of(&Request::post("/Tables").json(r#"{"TableName":"abc"}"#));
    for cut in [10, bytes.len() - 5] {
        let watch = Stopwatch::start();
        let mut client = server.connect();
        client.send(&bytes[..cut]).unwrap();
        // With or without an answer, the server closes the connection long before the client's own timeout.
        client.read_to_end().unwrap();
        assert!(watch.elapsed() < Duration::from_secs(5), "{:?}", watch.elapsed());
    }
    alive(&server);
    server.send(Request::get("/Tables('abc')")).expect(404);
}

// Only Linux has more than one loopback address without being told.
#[cfg(target_os = "linux")]
#[test]
fn an_address_with_most_of_the_connections_leaves_the_rest_to_others() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let server = TestServer::options().limits(|limits| limits.connection_count_max = 20).start();
    let mut greedy: Vec<_> = (0..18).map(|_| server.connect()).collect();
    for client in &mut greedy {
        client.send(b"GET ").unwrap();
    }
    for _ in 0..3 {
        // It may be closed before anything is sent.
        let mut refused = server.connect();
        let _ = refused.send(b"GET ");
        assert!(refused.read_to_end().unwrap_or_default().is_empty());
    }
    let bytes = server.bytes_of(&Request::get("/Tables"));
    let answer = wait_for(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut other = socket.connect(server.addr()).await.unwrap();
        other.write_all(&bytes).await.unwrap();
        let mut answer = [0; 12];
        other.read_exact(&mut answer).await.unwrap();
        answer
    });
    assert_eq!(&answer, b"HTTP/1.1 200");
    drop(greedy);
    // The server sees a moment later that they are gone.
    let watch = Stopwatch::start();
    while !server.connect().exchange(&bytes).is_ok_and(|answer| answer.status == 200) {
        assert!(watch.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_client_that_goes_away_is_forgotten() {
    let server = TestServer::with_table("mytable");
    let bytes = server.bytes_of(&Request::post("/mytable").json(&entity_json("p", "r", "")));
    for cut in [1, 50, bytes.len() - 1] {
        let mut client = server.connect();
        client.send(&bytes[..cut]).unwrap();
        drop(client);
        alive(&server);
    }
    server.get("mytable", "p", "r").expect(404);
}

#[test]
fn garbage_is_refused_and_harms_nobody() {
    let server = TestServer::start();
    let mut random = fastrand::Rng::with_seed(7);
    let mut samples: Vec<Vec<u8>> = vec![
        b"\r\n\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\nbroken header\r\n\r\n".to_vec(),
        b"POST /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n".to_vec(),
        b"POST /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_vec(),
        b"POST /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
    ];
    samples.extend((0..30).map(|_| (0..random.usize(1..400)).map(|_| random.u8(..)).collect()));
    for sample in samples {
        let mut client = server.connect();
        let _ = client.send(&sample);
        let _ = client.finish_sending();
        let said = client.read_to_end().unwrap_or_default();
        assert!(said.is_empty() || !said.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&said));
        alive(&server);
    }
}

#[test]
fn requests_beyond_the_bound_are_told_to_come_back() {
    let (options, faults) = faulty();
    let server = options.limits(|limits| limits.requests_in_flight_max = 3).start();
    server.create_table("mytable");
    faults.hold_reads();
    std::thread::scope(|scope| {
        let server = &server;
        let read = || server.bytes_of(&Request::get("/mytable(PartitionKey='p',RowKey='r')"));
        let held: Vec<_> =
            (0..2).map(|_| scope.spawn(move || server.connect().exchange(&read()).unwrap())).collect();
        wait_for(async {
            let waiting = faults.until_reads_held(2);
            tokio::time::timeout(Duration::from_secs(5), waiting)
                .await
                .expect("both requests reach the engine")
        });
        let refused = server.connect().exchange(&read()).unwrap();
        faults.release_reads();
        for request in held {
            assert_eq!(request.join().unwrap().status, 404);
        }
        let refused = refused.expect_message(503, "ServerBusy", "The server is busy.");
        assert_eq!(refused.reason, "Service Unavailable");
    });
    alive(&server);
}

#[test]
fn an_overloaded_engine_is_server_busy() {
    let (options, faults) = faulty();
    let server = options.start();
    server.create_table("mytable");
    faults.fail_writes(1, CommitError::Busy);
    let insert = Request::post("/mytable").json(&entity_json("p", "r", ""));
    server.send(insert.clone()).expect_message(503, "ServerBusy", "The server is busy.");
    server.send(insert).expect(201);
    faults.fail_reads(1, ReadError::Busy);
    server.send(Request::get("/mytable(PartitionKey='p',RowKey='r')")).expect_error(503, "ServerBusy");
    faults.fail_reads(1, ReadError::Busy);
    server.send(Request::get("/mytable()")).expect_error(503, "ServerBusy");
}

#[test]
fn what_the_engine_says_stays_in_the_log() {
    let (options, faults) = faulty();
    let server = options.start();
    server.create_table("mytable");
    let check = |response: Response| {
        let message = "Server encountered an internal error. Please try again after some time.";
        let response = response.expect_message(500, "InternalError", message);
        assert!(!response.text().contains("secret"), "{response:?}");
    };
    let insert = Request::post("/mytable").json(&entity_json("p", "r", ""));
    for error in [CommitError::Storage("secret".to_owned()), CommitError::Poisoned] {
        faults.fail_writes(1, error);
        check(server.send(insert.clone()));
    }
    faults.fail_writes(1, CommitError::Unknown("secret".to_owned()));
    let unknown = server.send(insert.clone()).expect_error(500, "OperationTimedOut");
    assert!(!unknown.text().contains("secret"), "{unknown:?}");
    for error in [ReadError::Storage("secret".to_owned()), ReadError::Damaged("secret".to_owned())] {
        faults.fail_reads(1, error.clone());
        check(server.send(Request::get("/mytable(PartitionKey='p',RowKey='r')")));
        faults.fail_reads(1, error);
        check(server.send(Request::get("/mytable()")));
    }
    server.send(insert).expect(201);
}

#[test]
fn a_request_that_takes_longer_than_its_timeout_is_given_up() {
    let (options, faults) = faulty();
    let server = options.start();
    server.create_table("mytable");
    faults.delay_reads(Duration::from_secs(4));
    let watch = Stopwatch::start();
    let response = server.send(Request::get("/mytable(PartitionKey='p',RowKey='r')?timeout=1"));
    assert!(watch.elapsed() < Duration::from_secs(3), "{:?}", watch.elapsed());
    let message = "Operation could not be completed within the specified time.";
    response.expect_message(500, "OperationTimedOut", message);
    faults.delay_reads(Duration::ZERO);
    alive(&server);
}

/// An engine whose reads panic on demand.
mod panicking {
    use super::*;
    use engine::{Engine, Key, Row, TableId};

    pub struct Panicking(pub MemoryEngine);

    #[async_trait::async_trait]
    impl Wrapper for Panicking {
        fn inner(&self) -> &dyn Engine {
            &self.0
        }

        async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
            if table >= TableId::FIRST {
                panic!("as the test asked");
            }
            self.0.get(table, key).await
        }
    }
}

#[test]
fn a_request_that_panics_answers_500_and_the_server_lives_on() {
    let memory = MemoryEngine::new(tables::FAMILIES, Arc::new(SystemClock::new()));
    let server = TestServer::options().engine(Arc::new(Wrapped(panicking::Panicking(memory)))).start();
    server.create_table("mytable");
    for _ in 0..3 {
        server.get("mytable", "p", "r").expect_error(500, "InternalError");
    }
    server.send(Request::get("/mytable()")).expect(200);
    alive(&server);
}

#[test]
fn a_refusal_does_not_wait_for_the_body_and_the_connection_lives_on() {
    let server = TestServer::with_table("mytable");
    let body = entity_json("p", "r", "");
    let refused = Request::post("/mytable").json(&body).unsigned();
    let bytes = server.bytes_of(&refused);
    let (head, tail) = bytes.split_at(bytes.len() - body.len());
    let mut client = server.connect();
    client.send(head).unwrap();
    client.read_response(false).unwrap().expect_error(404, "ResourceNotFound");
    client.send(tail).unwrap();
    let honest = server.bytes_of(&Request::post("/mytable").json(&body));
    client.exchange(&honest).unwrap().expect(201);
}
