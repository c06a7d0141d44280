//! The key range of a SAS (§8.4): thousands of random reads, writes, batches and pages go through such a token to a
//! full table and to a twin that holds only the entities inside the range. Both must answer alike, and as a plain model
//! says. So nothing outside can be read, written, merged, paged through or inferred, not even that it exists.

use std::collections::BTreeMap;

use fastrand::Rng;
use testkit::{Batch, Request, Response, Sas, TestServer, batch_parts, entity_json, entity_path, mask};

const SEED: u64 = 0x1A2B_3C4D;
const RANGE_COUNT: usize = 50;
const STEP_COUNT: usize = 60;
const VERSIONS: [&str; 4] = ["2012-02-12", "2015-02-21", "2019-02-02", "2020-12-06"];
/// In UTF-16 order, which differs from UTF-8 order: the emoji sorts before U+FF5A.
const PARTITIONS: [&str; 9] = ["", "A", "O'Brien", "a", "a b", "b", "ü", "😀", "\u{FF5A}"];
const ROWS: [&str; 8] = ["", "0", "1", "10", "2", "r's", "😀", "\u{FFFD}"];

/// Keys as UTF-16 code units, which is how the service sorts.
type Key = (Vec<u16>, Vec<u16>);

fn key(partition: &str, row: &str) -> Key {
    (partition.encode_utf16().collect(), row.encode_utf16().collect())
}

/// The range that a token's four fields describe, by the table of §8.4.
#[derive(Clone, Debug)]
struct Range {
    start: Option<(String, Option<String>)>,
    end: Option<(String, Option<String>)>,
}

impl Range {
    fn random(random: &mut Rng) -> Range {
        let end = |random: &mut Rng| {
            // An empty field counts as absent, so no range ends at an empty key.
            let partition = pick(random, &PARTITIONS[1..]);
            let row = random.bool().then(|| pick(random, &ROWS[1..]).to_owned());
            (random.u8(..5) > 0).then(|| (partition.to_owned(), row))
        };
        let (start, end) = (end(random), end(random));
        // Put most ranges the right way round; leave some inverted, which contain nothing.
        match (&start, &end) {
            (Some((from, _)), Some((to, _))) if key(from, "") > key(to, "") && random.u8(..8) > 0 => {
                Range { start: end, end: start }
            }
            _ => Range { start, end },
        }
    }

    fn contains(&self, partition: &str, row: &str) -> bool {
        let here = key(partition, row);
        let after_start = match &self.start {
            None => true,
            Some((from, None)) => here.0 >= key(from, "").0,
            Some((from, Some(row))) => here >= key(from, row),
        };
        let before_end = match &self.end {
            None => true,
            Some((to, None)) => here.0 <= key(to, "").0,
            Some((to, Some(row))) => here <= key(to, row),
        };
        after_start && before_end
    }

    fn token(&self, version: &str, table: &str, server: &TestServer) -> String {
        let mut sas = Sas::table(version, table);
        for ((partition_name, row_name), end) in [(("spk", "srk"), &self.start), (("epk", "erk"), &self.end)]
        {
            let Some((partition, row)) = end else { continue };
            sas = sas.set(partition_name, partition);
            if let Some(row) = row {
                sas = sas.set(row_name, row);
            }
        }
        sas.sign(server.credentials())
    }
}

fn pick<'a>(random: &mut Rng, from: &[&'a str]) -> &'a str {
    from[random.usize(..from.len())]
}

/// The full table, its twin with only the entities in range, and the model of both.
struct World {
    full: TestServer,
    twin: TestServer,
    table: String,
    range: Range,
    tokens: [String; 2],
    /// Property `n` of every entity in the full table.
    model: BTreeMap<Key, i64>,
    /// The masked answer to every request outside the range; they must all be equal.
    outside: Option<String>,
}

impl World {
    /// Sends the request to both tables, which must answer alike.
    fn send(&self, request: Request) -> Response {
        let full = self.full.send(request.clone().sas(&self.tokens[0]));
        let twin = self.twin.send(request.clone().sas(&self.tokens[1]));
        assert_eq!(
            shown(&full),
            shown(&twin),
            "the answer shows what is outside {:?}: {} {}",
            self.range,
            request.method,
            request.target
        );
        full
    }

    /// Sends a request about one entity. Returns the answer if the entity is in range.
    fn send_about(&mut self, partition: &str, row: &str, request: Request) -> Option<Response> {
        let response = self.send(request.clone());
        if self.range.contains(partition, row) {
            assert_ne!(
                response.status, 403,
                "{} {} is inside {:?}",
                request.method, request.target, self.range
            );
            return Some(response);
        }
        // For a reader, what is outside does not exist.
        if request.method == "GET" {
            let message = "The specified resource does not exist.";
            response.expect_message(404, "ResourceNotFound", message);
            return None;
        }
        let response = response.expect_message(
            403,
            "AuthorizationFailure",
            "This request is not authorized to perform this operation.",
        );
        self.see_outside(&response);
        None
    }

    fn see_outside(&mut self, response: &Response) {
        let shown = shown(response);
        let first = self.outside.get_or_insert_with(|| shown.clone());
        assert_eq!(*first, shown, "every refusal is the same");
    }

    fn inside(&self) -> Vec<(&Key, i64)> {
        let text = |units: &Vec<u16>| String::from_utf16(units).unwrap();
        let is_inside = |key: &Key| self.range.contains(&text(&key.0), &text(&key.1));
        self.model.iter().filter(|(key, _)| is_inside(key)).map(|(key, n)| (key, *n)).collect()
    }

    /// The full table as read with the account key.
    fn check_all(&self) {
        let rows = list(&self.full.send(Request::get(&format!("/{}()", self.table))).expect(200));
        let expected: Vec<_> = self.model.iter().map(|(key, n)| (key.clone(), *n)).collect();
        assert_eq!(rows, expected, "the table is not what the model says: {:?}", self.range);
    }
}

/// The answer in a comparable form: without ids, times, and the length that depends on them.
fn shown(response: &Response) -> String {
    let mut text = format!("{} {}\n", response.status, response.reason);
    for (name, value) in &response.headers {
        if !name.eq_ignore_ascii_case("Content-Length") {
            text.push_str(&format!("{name}: {value}\n"));
        }
    }
    let body = response.text();
    let has_times = ["Timestamp", "odata.", "response_"].iter().any(|sign| body.contains(sign));
    if has_times { mask(&text) + &mask(body) } else { mask(&text) + body }
}

/// Without metadata there are no times to mask, which is faster.
const LEAN: &str = "application/json;odata=nometadata";

fn lean(request: Request) -> Request {
    request.query("$select", "PartitionKey,RowKey,n").header("Accept", LEAN)
}

/// The entities of a page: key and `n`.
fn list(page: &Response) -> Vec<(Key, i64)> {
    let page = page.json();
    let rows = page["value"].as_array().unwrap().iter();
    rows.map(|row| {
        let text = |name: &str| row[name].as_str().unwrap();
        (key(text("PartitionKey"), text("RowKey")), row["n"].as_i64().unwrap())
    })
    .collect()
}

/// The key in a continuation token: `1!`, a length, `!`, and Base64 with a different alphabet.
fn decode(token: &str) -> String {
    let text = token.strip_prefix("1!").and_then(|rest| rest.split_once('!')).expect("a token").1;
    let text = text.replace('-', "=").replace('*', "+").replace('_', "/");
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = text
        .bytes()
        .filter(|byte| *byte != b'=')
        .map(|byte| alphabet.iter().position(|digit| *digit == byte).expect("Base64") as u32)
        .collect();
    let bytes = digits.chunks(4).flat_map(|chunk| {
        let value = chunk.iter().fold(0, |value, digit| value << 6 | digit) << (6 * (4 - chunk.len()));
        value.to_be_bytes()[1..chunk.len()].to_vec()
    });
    String::from_utf8(bytes.collect()).unwrap()
}

fn encode(key: &str) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789*_";
    let mut text = String::new();
    for chunk in key.as_bytes().chunks(3) {
        let value =
            chunk.iter().fold(0u32, |value, byte| value << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = (value >> (18 - 6 * at) & 63) as usize;
            text.push(if at > chunk.len() { '-' } else { char::from(alphabet[digit]) });
        }
    }
    format!("1!{}!{text}", text.len())
}

/// One operation on one entity, which may or may not exist, inside or outside the range.
fn point(world: &mut World, random: &mut Rng) {
    let (partition, row) = (pick(random, &PARTITIONS), pick(random, &ROWS));
    let path = entity_path(&world.table, partition, row);
    let here = key(partition, row);
    let n = random.i64(0..1000);
    let body = format!("{{\"n\":{n}}}");
    let etag = if random.u8(..4) == 0 { "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"" } else { "*" };
    let is_there = world.model.contains_key(&here);
    let is_current = etag == "*";
    let update = match (is_there, is_current) {
        (true, true) => 204,
        (true, false) => 412,
        (false, _) => 404,
    };
    let kind = random.u8(..8);
    let (request, expected) = match kind {
        0 => (Request::get(&path), if is_there { 200 } else { 404 }),
        1 => {
            let body = entity_json(partition, row, &format!("\"n\":{n}"));
            (Request::post(&format!("/{}", world.table)).json(&body), if is_there { 409 } else { 201 })
        }
        2 => (Request::put(&path).json(&body), 204),
        3 => (Request::merge(&path).json(&body), 204),
        4 => (Request::put(&path).json(&body).header("If-Match", etag), update),
        5 => (Request::patch(&path).json(&body).header("If-Match", etag), update),
        6 => (
            Request::post(&path).json(&body).header("X-HTTP-Method", "MERGE").header("If-Match", etag),
            update,
        ),
        _ => (Request::delete(&path).header("If-Match", etag), update),
    };
    let Some(response) = world.send_about(partition, row, request) else { return };
    assert_eq!(response.status, expected, "kind {kind} at {partition:?} {row:?}: {response:?}");
    match (kind, response.status) {
        (7, 204) => drop(world.model.remove(&here)),
        (1..=6, 201 | 204) => drop(world.model.insert(here, n)),
        _ => {}
    }
}

/// Keys in the body of an update are ignored, so they do not get around the range.
fn smuggle(world: &mut World, random: &mut Rng) {
    let (partition, row) = (pick(random, &PARTITIONS), pick(random, &ROWS));
    let (other, other_row) = (pick(random, &PARTITIONS), pick(random, &ROWS));
    let n = random.i64(0..1000);
    let body = entity_json(other, other_row, &format!("\"n\":{n}"));
    let request = Request::put(&entity_path(&world.table, partition, row)).json(&body);
    if let Some(response) = world.send_about(partition, row, request) {
        response.expect(204);
        world.model.insert(key(partition, row), n);
    }
}

/// A change set that may reach outside the range. All of it happens or nothing.
fn batch(world: &mut World, random: &mut Rng) {
    let partition = pick(random, &PARTITIONS);
    let mut rows = ROWS.to_vec();
    random.shuffle(&mut rows);
    rows.truncate(random.usize(1..=4));
    let mut batch = Batch::new();
    let mut after = world.model.clone();
    let mut failure = None;
    for (index, row) in rows.iter().enumerate() {
        let here = key(partition, row);
        let n = random.i64(0..1000);
        let path = entity_path(&world.table, partition, row);
        let body = format!("{{\"n\":{n}}}");
        let any = [("If-Match", "*")];
        let kind = random.u8(..4);
        batch = match kind {
            0 => batch.insert(&world.table, &entity_json(partition, row, &format!("\"n\":{n}"))),
            1 => batch.operation("PUT", &path, &[], Some(&body)),
            2 => batch.operation("MERGE", &path, &any, Some(&body)),
            _ => batch.operation("DELETE", &path, &any, None),
        };
        let is_there = after.contains_key(&here);
        let status = match kind {
            _ if !world.range.contains(partition, row) => 403,
            0 if is_there => 409,
            2 | 3 if !is_there => 404,
            _ => 204,
        };
        // Checks that need no data come before those that do, so a 403 wins over an earlier 404 or 409.
        let is_worse = |(_, found): &(usize, u16)| status == 403 && *found != 403;
        if status != 204 && failure.as_ref().is_none_or(is_worse) {
            failure = Some((index, status));
        }
        if kind == 3 {
            after.remove(&here);
        } else {
            after.insert(here, n);
        }
    }
    let parts = batch_parts(&world.send(batch.request()));
    match failure {
        None => {
            assert!(parts.iter().all(|part| part.status == 204), "{parts:?}");
            world.model = after;
        }
        Some((index, status)) => {
            assert_eq!((parts.len(), parts[0].status), (1, status), "{index} of {rows:?}: {parts:?}");
            if status == 403 {
                assert_eq!(parts[0].error_code(), "AuthorizationFailure");
                assert!(parts[0].error_message().starts_with(&format!("{index}:")), "{parts:?}");
            }
        }
    }
}

/// Whether a row of the model matches a filter.
type Matches = Box<dyn Fn(&Key, i64) -> bool>;

/// A query from its first page to its last, or from a continuation token that the test made up.
fn query(world: &mut World, random: &mut Rng) {
    let limit = random.i64(0..1000);
    let partition = pick(random, &PARTITIONS);
    let quoted = partition.replace('\'', "''");
    let (filter, matches): (String, Matches) = match random.u8(..6) {
        0 => (format!("n ge {limit}"), Box::new(move |_, n| n >= limit)),
        1 => (format!("PartitionKey eq '{quoted}'"), {
            let wanted = key(partition, "").0;
            Box::new(move |key, _| key.0 == wanted)
        }),
        2 => (format!("PartitionKey ge '{quoted}' and n lt {limit}"), {
            let wanted = key(partition, "").0;
            Box::new(move |key, n| key.0 >= wanted && n < limit)
        }),
        3 => (format!("not (PartitionKey eq '{quoted}')"), {
            let wanted = key(partition, "").0;
            Box::new(move |key, _| key.0 != wanted)
        }),
        _ => (String::new(), Box::new(|_, _| true)),
    };
    let top = random.usize(1..=6);
    let from = (random.u8(..4) == 0).then(|| (pick(random, &PARTITIONS), pick(random, &ROWS)));
    let is_expected =
        |found: &(&Key, i64)| matches(found.0, found.1) && from.is_none_or(|(p, r)| *found.0 >= key(p, r));
    let expected: Vec<_> =
        world.inside().into_iter().filter(is_expected).map(|(key, n)| (key.clone(), n)).collect();

    let mut found = Vec::new();
    let mut tokens = from.map(|(partition, row)| (encode(partition), encode(row)));
    loop {
        let mut request = Request::get(&format!("/{}()?$top={top}", world.table))
            .query("$filter", &filter)
            .header("x-lazulite-explain", "1");
        if random.u8(..4) > 0 {
            request = lean(request);
        }
        if let Some((partition, row)) = &tokens {
            request = request.query("NextPartitionKey", partition).query("NextRowKey", row);
        }
        let page = world.send(request).expect(200);
        found.extend(list(&page));
        let next = |name: &str| page.header(&format!("x-ms-continuation-Next{name}")).map(str::to_owned);
        tokens = next("PartitionKey").map(|partition| (partition, next("RowKey").unwrap()));
        let Some((partition, row)) = &tokens else { break };
        let (partition, row) = (decode(partition), decode(row));
        assert!(world.range.contains(&partition, &row), "a token names {partition:?} {row:?}");
        let is_ahead = world.inside().iter().any(|(key, _)| **key >= self::key(&partition, &row));
        assert!(is_ahead, "a token at {partition:?} {row:?} with nothing behind it in {:?}", world.range);
    }
    assert_eq!(found, expected, "{filter:?} from {from:?} within {:?}", world.range);
}

/// A read inside a batch.
fn query_in_batch(world: &mut World, random: &mut Rng) {
    let target = format!("/{}()?$select=PartitionKey,RowKey,n", world.table);
    let whole = Batch::new().operation("GET", &target, &[("Accept", LEAN)], None);
    let part = batch_parts(&world.send(whole.query_request())).remove(0);
    let expected: Vec<_> = world.inside().into_iter().map(|(key, n)| (key.clone(), n)).collect();
    assert_eq!(list(&part), expected);
    let (partition, row) = (pick(random, &PARTITIONS), pick(random, &ROWS));
    let one = Batch::new().operation("GET", &entity_path(&world.table, partition, row), &[], None);
    let part = batch_parts(&world.send(one.query_request())).remove(0);
    let is_inside = world.range.contains(partition, row);
    let expected = if is_inside && world.model.contains_key(&key(partition, row)) { 200 } else { 404 };
    assert_eq!(part.status, expected, "{partition:?} {row:?}: {part:?}");
}

fn start(full: TestServer, twin: TestServer, number: usize, random: &mut Rng) -> World {
    let table = format!("table{number}");
    full.create_table(&table);
    twin.create_table(&table);
    let range = Range::random(random);
    let version = pick(random, &VERSIONS);
    let tokens = [range.token(version, &table, &full), range.token(version, &table, &twin)];
    let mut model = BTreeMap::new();
    for partition in PARTITIONS {
        let (mut all, mut inside) = (Vec::new(), Vec::new());
        for row in ROWS {
            if random.u8(..3) == 0 {
                continue;
            }
            let n = random.i64(0..1000);
            let json = entity_json(partition, row, &format!("\"n\":{n}"));
            if range.contains(partition, row) {
                inside.push(json.clone());
            }
            all.push(json);
            model.insert(key(partition, row), n);
        }
        for (server, rows) in [(&full, all), (&twin, inside)] {
            if !rows.is_empty() {
                let batch = rows.iter().fold(Batch::new(), |batch, json| batch.insert(&table, json));
                assert!(batch_parts(&server.send(batch.request())).iter().all(|part| part.status == 204));
            }
        }
    }
    World { full, twin, table, range, tokens, model, outside: None }
}

#[test]
fn a_range_is_a_wall() {
    println!("seed {SEED:#x}: {RANGE_COUNT} ranges, {STEP_COUNT} steps each");
    let mut random = Rng::with_seed(SEED);
    let (mut full, mut twin) = (TestServer::start(), TestServer::start());
    let mut refused = 0;
    for number in 0..RANGE_COUNT {
        let mut world = start(full, twin, number, &mut random);
        for _ in 0..STEP_COUNT {
            match random.u8(..10) {
                0..=4 => point(&mut world, &mut random),
                5 => smuggle(&mut world, &mut random),
                6 | 7 => batch(&mut world, &mut random),
                8 => query(&mut world, &mut random),
                _ => query_in_batch(&mut world, &mut random),
            }
        }
        world.check_all();
        refused += usize::from(world.outside.is_some());
        (full, twin) = (world.full, world.twin);
    }
    assert!(refused > RANGE_COUNT / 2, "only {refused} ranges were ever left");
}
