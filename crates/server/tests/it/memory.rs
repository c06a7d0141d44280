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
        assert!(response.body.len() <= SMALL + 48 * 1024, "{}", response.body.len());
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
fn an_answer_that_has_no_room_is_refused_as_busy_and_small_ones_go_on() {
    let server = server(SMALL, 64 * 1024 * 1024);
    server.insert("large", "p", "large", &text_of(400));
    server.insert("large", "p", "small", "\"n\":1");
    let busy = server.get("large", "p", "large").expect_error(503, "ServerBusy");
    assert_eq!(busy.header("Retry-After"), None);
    server.send(Request::get("/large()").query("$top", "1")).expect_error(503, "ServerBusy");
    server.get("large", "p", "small").expect(200);
    // A write is not undone because its answer is too large.
    server.insert("large", "p", "larger", &text_of(400));
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
