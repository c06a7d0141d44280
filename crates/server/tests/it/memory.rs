//! The memory of requests in progress is bounded: the server answers with short pages or 503 instead of growing.

use testkit::{RawClient, Request, TestServer, entity_path};

const SMALL: usize = 128 * 1024;

fn server(answer_bytes_max: usize, payload_bytes_max: usize) -> TestServer {
    let change = move |limits: &mut server::Limits| {
        limits.answer_bytes_max = answer_bytes_max;
        limits.payload_bytes_max = payload_bytes_max;
    };
    let server = TestServer::options().limits(change).start();
    server.create_table("large");
    server
}

fn text_of(kib: usize) -> String {
    // Several properties, because one holds at most 64 KiB.
    let members: Vec<String> =
        (0..kib.div_ceil(16)).map(|n| format!("\"t{n}\":\"{}\"", "x".repeat(16 * 1024))).collect();
    members.join(",")
}

#[test]
fn where_memory_is_short_pages_are_short_and_nothing_is_missed() {
    let server = server(SMALL, 64 * 1024 * 1024);
    for n in 0..60 {
        server.insert("large", "p", &format!("{n:02}"), &text_of(16));
    }
    let mut rows = Vec::new();
    let mut page_count = 0;
    let mut request = Request::get("/large()");
    loop {
        let response = server.send(request).expect(200);
        page_count += 1;
        assert!(response.body.len() <= SMALL + 16 * 1024, "{}", response.body.len());
        for entity in response.json()["value"].as_array().unwrap() {
            rows.push(entity["RowKey"].as_str().unwrap().to_owned());
        }
        let Some(next) = response.header("x-ms-continuation-NextPartitionKey") else { break };
        request = Request::get("/large()")
            .query("NextPartitionKey", next)
            .query("NextRowKey", response.required("x-ms-continuation-NextRowKey"));
    }
    assert_eq!(rows, (0..60).map(|n| format!("{n:02}")).collect::<Vec<_>>());
    assert!(page_count >= 6, "{page_count}");
}

#[test]
fn a_page_ends_before_the_row_that_does_not_fit() {
    let server = server(SMALL, 64 * 1024 * 1024);
    let members = format!("\"a\":\"{}\",\"b\":\"{}\"", "x".repeat(30_000), "y".repeat(15_000));
    for n in 0..40 {
        server.insert("large", "p", &format!("{n:03}"), &members);
    }
    let mut rows = 0;
    let mut request = Request::get("/large()");
    loop {
        let response = server.send(request).expect(200);
        assert!(response.body.len() <= SMALL + 16 * 1024, "{}", response.body.len());
        rows += response.json()["value"].as_array().unwrap().len();
        let Some(next) = response.header("x-ms-continuation-NextPartitionKey") else { break };
        request = Request::get("/large()")
            .query("NextPartitionKey", next)
            .query("NextRowKey", response.required("x-ms-continuation-NextRowKey"));
    }
    assert_eq!(rows, 40);
}

#[test]
fn an_answer_that_has_no_room_is_refused_as_busy_and_small_ones_go_on() {
    let server = server(SMALL, 64 * 1024 * 1024);
    let large = Request::post("/large").json(&testkit::entity_json("p", "large", &text_of(400)));
    server.send(large.header("Prefer", "return-no-content")).expect(204);
    server.insert("large", "p", "small", "\"n\":1");
    let busy = server.get("large", "p", "large").expect_error(503, "ServerBusy");
    assert_eq!(busy.header("Retry-After"), None);
    server.send(Request::get("/large()").query("$top", "1")).expect_error(503, "ServerBusy");
    server.get("large", "p", "small").expect(200);
    // A write that would be answered with an error for want of memory does not happen.
    let larger = Request::post("/large").json(&testkit::entity_json("p", "larger", &text_of(400)));
    server.send(larger.clone()).expect_error(503, "ServerBusy");
    server.get("large", "p", "larger").expect_error(404, "ResourceNotFound");
    server.send(larger.header("Prefer", "return-no-content")).expect(204);
    let only = entity_path("large", "p", "large");
    server.send(Request::get(&only).query("$select", "RowKey")).expect(200);
}

#[test]
fn a_caller_who_does_not_read_holds_room_until_it_goes_and_others_get_short_pages() {
    let server = server(8 * 1024 * 1024, 64 * 1024 * 1024);
    for n in 0..20 {
        server.insert("large", "p", &format!("{n:02}"), &text_of(400));
    }
    let page = |server: &TestServer| server.send(Request::get("/large()")).expect(200).body.len();
    let whole = page(&server);
    assert!(whole > 3 * 1024 * 1024, "{whole}");
    // Each client asks for many pages, because the sockets alone buffer several megabytes.
    let mut idle: Vec<RawClient> = Vec::new();
    for _ in 0..8 {
        let mut client = server.connect();
        client.send(&server.bytes_of(&Request::get("/large()")).repeat(12)).unwrap();
        idle.push(client);
    }
    let watch = testkit::Stopwatch::start();
    let short = loop {
        let response = server.send(Request::get("/large()"));
        match response.status {
            200 if response.body.len() < whole / 2 => break true,
            503 => break true,
            _ if watch.elapsed().as_secs() > 10 => break false,
            _ => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    };
    assert!(short, "idle readers take room");
    server.insert("large", "p", "small", "\"n\":1");
    server.get("large", "p", "small").expect(200);
    drop(idle);
    let watch = testkit::Stopwatch::start();
    while server.send(Request::get("/large()")).body.len() != whole {
        assert!(watch.elapsed().as_secs() < 10, "the room comes back when they are gone");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_payload_that_has_no_room_is_refused_as_busy_and_small_ones_go_on() {
    let server = server(64 * 1024 * 1024, SMALL);
    let large = testkit::entity_json("p", "large", &text_of(400));
    server.send(Request::post("/large").json(&large)).expect_error(503, "ServerBusy");
    server.insert("large", "p", "small", "\"n\":1");
    server.get("large", "p", "large").expect_error(404, "ResourceNotFound");
}

/// A hundred inserts whose answers repeat their long keys in many links, each space as three bytes.
fn echoing_batch(partition: &str) -> Request {
    let spaces = " ".repeat(500);
    let insert = |batch: testkit::Batch, n: usize| {
        let json = testkit::entity_json(&format!("{partition}{spaces}"), &format!("{n:03}{spaces}"), "");
        batch.operation("POST", "/large", &[("Accept", "application/json;odata=fullmetadata")], Some(&json))
    };
    (0..100).fold(testkit::Batch::new(), insert).request()
}

#[test]
fn answers_to_writes_are_counted_before_the_writes_happen() {
    let short = server(768 * 1024, 64 * 1024 * 1024);
    let payload_len = short.bytes_of(&echoing_batch("p")).len();
    short.send(echoing_batch("p")).expect_error(503, "ServerBusy");
    let rows = short.send(Request::get("/large()")).expect(200).json();
    assert_eq!(rows["value"].as_array().unwrap().len(), 0);

    let enough = server(8 * 1024 * 1024, 64 * 1024 * 1024);
    let answer = enough.send(echoing_batch("p")).expect(202);
    assert!(answer.body.len() > 7 * payload_len, "{} for {payload_len}", answer.body.len());
    // Nothing is counted any more once the answer is read.
    for partition in ["q", "r", "s"] {
        enough.send(echoing_batch(partition)).expect(202);
    }
}

const OTHER: &str = "otheraccount";
const OTHER_KEY: &str = "b3RoZXI=";

/// A server with little memory for payloads and a modest account besides the greedy one.
fn shared_server() -> TestServer {
    let accounts = format!("{}:{};{OTHER}:{OTHER_KEY}", testkit::EMULATOR_ACCOUNT, testkit::EMULATOR_KEY);
    let change = |limits: &mut server::Limits| limits.payload_bytes_max = 8 * 1024 * 1024;
    let server = TestServer::options().accounts(&accounts).limits(change).start();
    server.create_table("large");
    let create = Request::post("/Tables").json(r#"{"TableName":"modest"}"#);
    server.send(create.credentials(OTHER, OTHER_KEY)).expect(201);
    server
}

fn modest_write(server: &TestServer, row: &str) {
    let json = testkit::entity_json("p", row, &text_of(112));
    server.send(Request::post("/modest").json(&json).credentials(OTHER, OTHER_KEY)).expect(201);
}

/// Batches need no permission until they are read.
fn greedy_heads(server: &TestServer, count: usize, sent_bytes: usize) -> Vec<RawClient> {
    let sas = testkit::Sas::table("2019-02-02", "large").set("sp", "r").sign(server.credentials());
    let request = Request::post("/$batch").sas(&sas).body("multipart/mixed; boundary=b", vec![b' '; 4 << 20]);
    let bytes = server.bytes_of(&request);
    let head_len = bytes.len() - (4 << 20);
    let connect = |_| {
        let mut client = server.connect();
        client.send(&bytes[..head_len + sent_bytes]).unwrap();
        client
    };
    (0..count).map(connect).collect()
}

#[test]
fn announcing_a_payload_takes_no_memory() {
    let server = shared_server();
    let greedy = greedy_heads(&server, 40, 0);
    for n in 0..10 {
        modest_write(&server, &n.to_string());
    }
    let large = testkit::entity_json("p", "large", &text_of(400));
    server.send(Request::post("/large").json(&large)).expect(201);
    drop(greedy);
}

#[test]
fn a_greedy_caller_leaves_memory_to_others() {
    let server = shared_server();
    // More than twice as much as there is.
    let mut greedy = greedy_heads(&server, 5, (4 << 20) - 1);
    // At least one is told to come back.
    let is_told =
        |client: &mut RawClient| client.read_response(false).is_ok_and(|answer| answer.status == 503);
    assert!(greedy.iter_mut().rev().any(is_told));
    for n in 0..10 {
        modest_write(&server, &n.to_string());
        // The greedy caller's own account goes on too, for callers other than the greedy one.
        let json = testkit::entity_json("p", &n.to_string(), &text_of(112));
        server.send(Request::post("/large").json(&json)).expect(201);
    }
    drop(greedy);
}

#[test]
fn long_heads_share_memory_and_others_go_on() {
    let change = |limits: &mut server::Limits| limits.head_bytes_max = 2 * 1024 * 1024;
    let server = TestServer::options().limits(change).start();
    server.create_table("large");
    let long = Request::get("/large()").header("x-long", &"x".repeat(100 * 1024));
    server.send(long.clone()).expect(200);
    let bytes = server.bytes_of(&long);
    let unfinished = || {
        let mut client = server.connect();
        // The server may have closed it already.
        let _ = client.send(&bytes[..bytes.len() - 4]);
        client
    };
    let mut strangers: Vec<RawClient> = (0..40).map(|_| unfinished()).collect();
    for n in 0..20 {
        server.insert("large", "p", &n.to_string(), "");
    }
    // A head of 100 KiB needs three steps of 64 KiB, because its text may be twice as long, and one address gets half of the
    // memory. The kept connection has sent a long head too.
    let mut answered = 0;
    for client in &mut strangers {
        let is_open = client.send(&bytes[bytes.len() - 4..]).is_ok();
        answered +=
            usize::from(is_open && client.read_response(false).is_ok_and(|answer| answer.status == 200));
    }
    assert_eq!(answered, 4);
    drop(strangers);
    let watch = testkit::Stopwatch::start();
    while !server.connect().exchange(&bytes).is_ok_and(|answer| answer.status == 200) {
        assert!(watch.elapsed().as_secs() < 10, "the memory comes back when they are gone");
    }
}
