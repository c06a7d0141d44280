//! Ten thousand hostile requests of many kinds, from a seeded generator, against the real binary: no panic, no internal
//! error, bounded memory, and correct answers for honest clients meanwhile.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fastrand::Rng;
use testkit::{Batch, Credentials, RawClient, Request, Sas, entity_json, entity_path};

use crate::running::Running;

const SEED: u64 = 0x0BAD_CAFE;
const REQUEST_COUNT: usize = 10_000;
const ATTACKER_COUNT: usize = 4;
const SLOW_COUNT: usize = 100;
/// Each attacker may have a 4 MiB body in flight, and the allocator may keep memory it once had.
const GROWTH_KIB_MAX: u64 = 64 * 1024;

/// A name, whether the server can tell where such a request ends, and the function that makes one.
type Kind = (&'static str, bool, fn(&mut Rng, &Running) -> Vec<u8>);

const KINDS: &[Kind] = &[
    ("long URL", true, long_url),
    ("huge headers", true, huge_headers),
    ("deep filter", true, deep_filter),
    ("parentheses", true, parentheses),
    ("broken chunks", false, broken_chunks),
    ("percent escapes", true, percent_escapes),
    ("broken multipart", true, broken_multipart),
    ("XML bomb", true, xml_bomb),
    ("wrong length", false, wrong_length),
    ("cut off", false, cut_off),
    ("pipelined garbage", false, pipelined),
    ("SAS garbage", true, sas_garbage),
    ("JSON nesting", true, json_nesting),
    ("random bytes", false, random_bytes),
    ("large body", true, large_body),
    ("authorization garbage", true, authorization),
    ("odd keys", true, odd_keys),
    ("compressed", true, compressed),
    ("preflight garbage", true, preflight),
    ("flipped bytes", false, flipped),
    ("other protocols", false, other_protocols),
    ("query options", true, query_options),
];

fn sized(random: &mut Rng, sizes: &[usize]) -> usize {
    sizes[random.usize(..sizes.len())]
}

fn text(random: &mut Rng, length: usize) -> String {
    let alphabet: Vec<char> = "ab'\"()%&=?/\\#+;,.$@!~ <>[]{}ü😀\u{7f}".chars().collect();
    (0..length).map(|_| alphabet[random.usize(..alphabet.len())]).collect()
}

/// Signs the request with the account key, or adds a SAS token, or does neither.
fn dressed(random: &mut Rng, server: &Running, request: Request) -> Vec<u8> {
    let request = match random.u8(..4) {
        0 => request.unsigned(),
        1 => request.sas(&Sas::account("2019-02-02").sign(&Credentials::emulator())),
        _ => request,
    };
    server.bytes_of(&request.header("Connection", "close"))
}

fn long_url(random: &mut Rng, server: &Running) -> Vec<u8> {
    let length = sized(random, &[1_000, 8_000, 40_000, 120_000, 300_000]);
    let target = match random.u8(..3) {
        0 => format!("/{}", "x".repeat(length)),
        1 => format!("/mytable()?{}", "x=y&".repeat(length / 4)),
        _ => format!("/mytable(PartitionKey='{}',RowKey='')", "%20".repeat(length / 3)),
    };
    dressed(random, server, Request::get(&target))
}

fn huge_headers(random: &mut Rng, server: &Running) -> Vec<u8> {
    let length = sized(random, &[1_000, 60_000, 200_000]);
    let request = Request::get("/mytable()");
    let request = match random.u8(..5) {
        0 => request.header("x-ms-client-request-id", &"x".repeat(length)),
        1 => (0..length / 100).fold(request, |request, at| request.another_header(&format!("x-{at}"), "y")),
        2 => request.header("Accept", &"application/json,".repeat(length / 17)),
        3 => request.header("If-Match", &"W/\"".repeat(length / 3)),
        _ => request.header(&"n".repeat(length), "x"),
    };
    dressed(random, server, request)
}

fn deep_filter(random: &mut Rng, server: &Running) -> Vec<u8> {
    let depth = sized(random, &[10, 100, 1_000, 10_000]);
    let filter = match random.u8(..6) {
        0 => format!("{}x eq 1{}", "(".repeat(depth), ")".repeat(depth)),
        1 => format!("{}x eq 1", "not ".repeat(depth)),
        2 => vec!["x eq 1"; depth.min(2_000)].join(" or "),
        3 => format!("{}x eq 1", "-".repeat(depth)),
        4 => "(".repeat(depth),
        _ => format!("x eq '{}'", "''".repeat(depth)),
    };
    dressed(random, server, Request::get("/mytable()").query("$filter", &filter))
}

fn parentheses(random: &mut Rng, server: &Running) -> Vec<u8> {
    let count = sized(random, &[2, 50, 5_000]);
    let target = match random.u8(..4) {
        0 => format!("/mytable{}", "(".repeat(count)),
        1 => format!("/mytable{}{}", "(".repeat(count), ")".repeat(count)),
        2 => format!("/Tables({}", "'".repeat(count)),
        _ => format!("/mytable({})", "PartitionKey='p',".repeat(count.min(1_000))),
    };
    dressed(random, server, Request::get(&target))
}

fn post(random: &mut Rng, server: &Running, framing: &str, body: &[u8]) -> Vec<u8> {
    let target = ["/mytable", "/Tables", "/$batch", "/mytable?comp=acl"][random.usize(..4)];
    let method = if target.ends_with("acl") { "PUT" } else { "POST" };
    let request =
        Request::new(method, target).without("Content-Length").header("Content-Type", "application/json");
    let mut bytes = dressed(random, server, request);
    bytes.truncate(bytes.len() - 2);
    bytes.extend_from_slice(framing.as_bytes());
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

fn broken_chunks(random: &mut Rng, server: &Running) -> Vec<u8> {
    let bodies: [&[u8]; 8] = [
        b"zz\r\nabc\r\n0\r\n\r\n",
        b"5\r\nabc",
        b"3\r\nabcX0\r\n\r\n",
        b"ffffffffffffffff\r\nabc",
        b"fffffffffffffffffffff\r\nabc",
        b"-1\r\nabc\r\n",
        b"3;x=y\r\nabc\r\n0\r\nTrailer: x\r\n\r\n",
        b"\r\n\r\n\r\n",
    ];
    let body = bodies[random.usize(..bodies.len())];
    let framing = ["chunked", "chunked, chunked", "gzip, chunked", "identity", "x"][random.usize(..5)];
    post(random, server, &format!("Transfer-Encoding: {framing}\r\n"), body)
}

fn wrong_length(random: &mut Rng, server: &Running) -> Vec<u8> {
    let lengths =
        ["0", "1", "-5", "99999999999999999999", "4194305", "1\r\nContent-Length: 2", "x", "", "+7", "0x10"];
    let length = lengths[random.usize(..lengths.len())];
    let chunked = if random.u8(..4) == 0 { "Transfer-Encoding: chunked\r\n" } else { "" };
    post(random, server, &format!("{chunked}Content-Length: {length}\r\n"), b"{\"PartitionKey\":\"p\"}")
}

fn percent_escapes(random: &mut Rng, server: &Running) -> Vec<u8> {
    let bad =
        ["%", "%f", "%zz", "%00", "%ff%fe", "%c0%af", "%ED%A0%80", "%2", "%%%", "%u0041", "%7f", "%0d%0a"];
    let bad = bad[random.usize(..bad.len())];
    let target = match random.u8(..5) {
        0 => format!("/mytable(PartitionKey='{bad}',RowKey='r')"),
        1 => format!("/{bad}"),
        2 => format!("/mytable()?$filter={bad}"),
        3 => format!("/mytable()?{bad}=x"),
        _ => format!("/mytable()?sv=2019-02-02&tn=mytable&sp=r&se={bad}&sig={bad}"),
    };
    dressed(random, server, Request::get(&target))
}

fn batch() -> Batch {
    let path = entity_path("mytable", "p", "batched");
    Batch::new()
        .operation("PUT", &path, &[], Some("{\"x\":1}"))
        .insert("mytable", &entity_json("q", "r", ""))
        .operation("DELETE", &path, &[("If-Match", "*")], None)
}

fn broken_multipart(random: &mut Rng, server: &Running) -> Vec<u8> {
    let mut request = batch().request();
    let mut body = request.body.clone().unwrap_or_default();
    match random.u8(..6) {
        0 => body.truncate(random.usize(..body.len())),
        1 => drop(body.drain(..random.usize(..body.len()))),
        2 => body = body.repeat(random.usize(2..50)),
        3 => body = String::from_utf8_lossy(&body).replace("\r\n", "\n").into_bytes(),
        4 => request = request.header("Content-Type", "multipart/mixed; boundary="),
        _ => {
            for _ in 0..20 {
                let at = random.usize(..body.len());
                body[at] = random.u8(..);
            }
        }
    }
    request.body = Some(body);
    dressed(random, server, request)
}

fn xml_bomb(random: &mut Rng, server: &Running) -> Vec<u8> {
    let depth = sized(random, &[10, 1_000, 50_000]);
    let body = match random.u8(..6) {
        0 => {
            let entities: String = (1..10)
                .map(|at| format!("<!ENTITY e{at} \"{}\">", format!("&e{};", at - 1).repeat(10)))
                .collect();
            format!("<!DOCTYPE x [<!ENTITY e0 \"ha\">{entities}]><SignedIdentifiers>&e9;</SignedIdentifiers>")
        }
        1 => "<a>".repeat(depth),
        2 => format!("<SignedIdentifiers {}>", "a='b' ".repeat(depth)),
        3 => "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><SignedIdentifiers/>".to_owned(),
        4 => format!("<SignedIdentifiers>{}</SignedIdentifiers>", "<SignedIdentifier/>".repeat(depth)),
        _ => format!("<StorageServiceProperties><!--{}--></StorageServiceProperties>", "-x".repeat(depth)),
    };
    let target = ["/mytable?comp=acl", "/?restype=service&comp=properties"][random.usize(..2)];
    // The extra `<` makes every body invalid, so that none succeeds and changes the settings for honest clients.
    dressed(random, server, Request::put(target).body("application/xml", format!("{body}<")))
}

fn cut_off(random: &mut Rng, server: &Running) -> Vec<u8> {
    let mut bytes = dressed(random, server, batch().request());
    bytes.truncate(random.usize(1..bytes.len()));
    bytes
}

fn pipelined(random: &mut Rng, server: &Running) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.usize(1..20) {
        bytes.extend_from_slice(&dressed(random, server, Request::get("/mytable()?$top=1")));
    }
    bytes.extend_from_slice(&random_bytes(random, server));
    bytes
}

fn sas_garbage(random: &mut Rng, server: &Running) -> Vec<u8> {
    let mut sas = match random.bool() {
        true => Sas::account("2019-02-02"),
        false => Sas::table("2019-02-02", "mytable"),
    };
    for _ in 0..random.usize(1..5) {
        let names = [
            "sv", "ss", "srt", "sp", "st", "se", "sip", "spr", "si", "tn", "spk", "srk", "epk", "erk", "ses",
        ];
        let (name, length) = (names[random.usize(..names.len())], sized(random, &[0, 1, 20, 5_000]));
        sas = sas.set(name, &text(random, length));
    }
    let token = match random.u8(..3) {
        0 => sas.sign(&Credentials::emulator()),
        1 => sas.with_signature(&text(random, 44).replace([' ', '#'], "")),
        _ => format!("{}&{}", sas.unsigned().repeat(20), "sig=".repeat(500)),
    };
    server.bytes_of(&Request::get("/mytable()").sas(&token).header("Connection", "close"))
}

fn json_nesting(random: &mut Rng, server: &Running) -> Vec<u8> {
    let depth = sized(random, &[10, 1_000, 100_000]);
    let body = match random.u8(..6) {
        0 => "[".repeat(depth),
        1 => "{\"a\":".repeat(depth),
        2 => format!(
            "{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"x\":{}1{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        ),
        3 => format!("{{\"x\":{}}}", "9".repeat(depth)),
        4 => format!("{{\"PartitionKey\":\"{}\"}}", "\\ud800".repeat(depth.min(10_000))),
        _ => format!(
            "{{{}}}",
            (0..depth.min(5_000)).map(|at| format!("\"p{at}\":1")).collect::<Vec<_>>().join(",")
        ),
    };
    dressed(random, server, Request::post("/mytable").json(&body))
}

fn random_bytes(random: &mut Rng, _: &Running) -> Vec<u8> {
    (0..random.usize(1..2_000)).map(|_| random.u8(..)).collect()
}

/// The largest bodies are rare, because they are slow to send.
fn large_body(random: &mut Rng, server: &Running) -> Vec<u8> {
    let length = if random.u8(..20) == 0 { (4 << 20) + 1 } else { 64 * 1024 };
    let target = ["/mytable", "/$batch", "/mytable?comp=acl"][random.usize(..3)];
    let method = if target.ends_with("acl") { "PUT" } else { "POST" };
    dressed(random, server, Request::new(method, target).json(&" ".repeat(length)))
}

fn authorization(random: &mut Rng, server: &Running) -> Vec<u8> {
    let length = sized(random, &[0, 10, 5_000]);
    let junk: String = (0..length).map(|_| char::from(random.u8(33..127))).collect();
    let value = match random.u8(..6) {
        0 => format!("SharedKey devstoreaccount1:{junk}"),
        1 => format!("SharedKeyLite {junk}"),
        2 => format!("Bearer {junk}.{junk}.{junk}"),
        3 => format!("Bearer {}", ".".repeat(length)),
        4 => format!("Basic {junk}"),
        _ => junk,
    };
    let date = ["x", "Thu, 99 Xxx 9999 99:99:99 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", ""][random.usize(..4)];
    let request = Request::get("/mytable()").header("Authorization", &value).header("x-ms-date", date);
    server.bytes_of(&request.header("Connection", "close"))
}

fn odd_keys(random: &mut Rng, server: &Running) -> Vec<u8> {
    let (one, two) = (sized(random, &[0, 1, 600, 2_000]), sized(random, &[0, 5, 600]));
    let (partition, row) = (text(random, one), text(random, two));
    let path = entity_path("mytable", &partition, &row);
    let request = match random.u8(..3) {
        0 => Request::get(&path),
        1 => Request::delete(&path).header("If-Match", &text(random, 10)),
        _ => Request::post("/mytable").json(&entity_json(&format!("/{partition}"), &row, "")),
    };
    dressed(random, server, request)
}

fn compressed(random: &mut Rng, server: &Running) -> Vec<u8> {
    let mut body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec();
    body.extend(std::iter::repeat_n(0, sized(random, &[10, 10_000])));
    let encoding = ["gzip", "deflate", "br", "gzip, gzip"][random.usize(..4)];
    dressed(
        random,
        server,
        Request::post("/mytable").body("application/json", body).header("Content-Encoding", encoding),
    )
}

fn preflight(random: &mut Rng, server: &Running) -> Vec<u8> {
    let length = sized(random, &[0, 10, 30_000]);
    let request = Request::new("OPTIONS", "/mytable").unsigned().header("Origin", &"o".repeat(length));
    let request = request.header("Access-Control-Request-Method", &"M".repeat(length.min(100)));
    let request = request.header("Connection", "close");
    server.bytes_of(&request.header("Access-Control-Request-Headers", &"x,".repeat(length)))
}

fn flipped(random: &mut Rng, server: &Running) -> Vec<u8> {
    let mut bytes = dressed(random, server, Request::get(&entity_path("mytable", "p", "honest")));
    for _ in 0..random.usize(1..10) {
        let at = random.usize(..bytes.len());
        bytes[at] = random.u8(..);
    }
    bytes
}

fn other_protocols(random: &mut Rng, _: &Running) -> Vec<u8> {
    let greetings: [&[u8]; 7] = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/0.9\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: [\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ];
    greetings[random.usize(..greetings.len())].to_vec()
}

fn query_options(random: &mut Rng, server: &Running) -> Vec<u8> {
    let length = sized(random, &[1, 300, 20_000]);
    let (name, value) = match random.u8(..6) {
        0 => ("$select", "a,".repeat(length)),
        1 => ("$top", "9".repeat(length)),
        2 => ("NextPartitionKey", format!("1!{}!{}", length, "A".repeat(length))),
        3 => ("timeout", "-".repeat(length)),
        4 => ("$format", text(random, length.min(2_000))),
        _ => ("$filter", text(random, length.min(2_000))),
    };
    dressed(random, server, Request::get("/mytable()").query(name, &value))
}

/// Sends the bytes and returns whatever comes back. Closes the sending side when the request does not say where it
/// ends. The server may hang up first.
fn provoke(server: &Running, bytes: &[u8], is_whole: bool) -> Vec<u8> {
    let Ok(mut client) = RawClient::connect(server.addr()) else { panic!("no connection any more") };
    let _ = client.send(bytes);
    if !is_whole {
        let _ = client.finish_sending();
    }
    client.read_to_end().unwrap_or_default()
}

/// Resident memory now and at its peak, in KiB; `None` where the system does not report it.
fn memory(server: &Running) -> Option<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().split(' ').next()?.parse().ok()
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// An honest client: writes, reads and lists, and checks every answer. Returns the number of rounds.
fn behave(server: &Running, is_over: &AtomicBool) -> usize {
    let path = entity_path("mytable", "p", "honest");
    let mut rounds = 0;
    while !is_over.load(Ordering::Relaxed) || rounds < 10 {
        server.send(Request::put(&path).json(&format!("{{\"n\":{rounds}}}"))).expect(204);
        let found = server.send(Request::get(&path)).expect(200).json();
        assert_eq!(found["n"], rounds);
        let listed =
            server.send(Request::get("/mytable()?$filter=RowKey%20eq%20'honest'")).expect(200).json();
        assert_eq!(listed["value"].as_array().map(Vec::len), Some(1));
        server.send(Request::get("/absent()")).expect_error(404, "TableNotFound");
        rounds += 1;
    }
    rounds
}

#[test]
fn ten_thousand_hostile_requests_harm_nobody() {
    println!("seed {SEED:#x}");
    let server =
        Running::start(&["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"], &[]);
    server.send(Request::post("/Tables").json(r#"{"TableName":"mytable"}"#)).expect(201);
    let mut random = Rng::with_seed(SEED);
    for (_, is_whole, kind) in KINDS {
        provoke(&server, &kind(&mut random, &server), *is_whole);
    }
    let before = memory(&server);
    let slow: Vec<RawClient> = (0..SLOW_COUNT).map(|_| slow_sender(&server)).collect();
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let statuses = Mutex::new(BTreeMap::<(&str, String), usize>::new());
    let rounds = std::thread::scope(|scope| {
        let honest = scope.spawn(|| behave(&server, &is_over));
        let attackers: Vec<_> = (0..ATTACKER_COUNT)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= REQUEST_COUNT {
                            return;
                        }
                        let mut random = Rng::with_seed(SEED ^ number as u64);
                        let (name, is_whole, kind) = KINDS[number % KINDS.len()];
                        let said = provoke(&server, &kind(&mut random, &server), is_whole);
                        let said = String::from_utf8_lossy(&said);
                        let is_ours = |status: &&&str| said.contains(&format!("HTTP/1.1 {status}"));
                        let failed = ["500", "502", "503", "504"].iter().find(is_ours);
                        assert!(failed.is_none(), "{name}, request {number}: {failed:?}\n{said}");
                        let status = said.strip_prefix("HTTP/1.1 ").map_or("", |rest| &rest[..3]).to_owned();
                        *statuses.lock().unwrap().entry((name, status)).or_default() += 1;
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = attackers.into_iter().map(|attacker| attacker.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        honest.join().unwrap()
    });
    drop(slow);
    for ((name, status), count) in statuses.into_inner().unwrap() {
        println!("{name}: {} {count}", if status.is_empty() { "closed" } else { &status });
    }
    println!("{rounds} honest rounds meanwhile");
    assert!(rounds > 50, "only {rounds} rounds for honest clients");
    match (before, memory(&server)) {
        (Some((before, _)), Some((after, highest))) => {
            println!("memory: {before} KiB before, {after} KiB after, {highest} KiB at most");
            assert!(after < before + GROWTH_KIB_MAX, "{before} KiB before, {after} KiB after");
            assert!(highest < before + 2 * GROWTH_KIB_MAX, "{before} KiB before, {highest} KiB at most");
        }
        _ => println!("SKIPPED: this system does not tell how much memory a process has"),
    }
    let said = server.stop();
    assert!(!said.contains("panicked") && !said.contains("InternalError"), "{said}");
    // Refusals are logged, but only a bounded number of them per second.
    let audited = said.lines().filter(|line| line.contains("audit: refused")).count();
    assert!((10..2_000).contains(&audited), "{audited} lines of {REQUEST_COUNT} refusals");
    assert!(said.contains("refusals were not written"), "what is left out is counted");
}

/// Sends a request head that never ends.
fn slow_sender(server: &Running) -> RawClient {
    let mut client = RawClient::connect(server.addr()).unwrap();
    client.send(b"POST /devstoreaccount1/mytable HTTP/1.1\r\nHost: x\r\nx-slow: ").unwrap();
    client
}
