//! Storage Analytics: with a clock that stands still, a known load gives exactly its counts, in the documented tables.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use engine::env::FakeClock;
use engine::faults::FaultEngine;
use engine::memory::MemoryEngine;
use engine::{CommitError, Engine};
use engine_local::{LocalEngine, LocalOptions};
use serde_json::Value;
use server::{Accounts, Analytics, Current, LogRules, Watch};
use testkit::{
    Batch, Request, Response, Sas, TempDir, TestServer, entity_json, entity_path, message_path, message_xml,
};

const HOURLY: &str = "$MetricsHourPrimaryTransactionsTable";
const MINUTELY: &str = "$MetricsMinutePrimaryTransactionsTable";
const QUEUES_MINUTELY: &str = "$MetricsMinutePrimaryTransactionsQueue";
const PROPERTIES: &str = "/?restype=service&comp=properties";

/// A server that is measured. The clock begins with the first minute of 2025.
struct World {
    server: TestServer,
    clock: Arc<FakeClock>,
    analytics: Arc<Analytics>,
    /// Those that are measured.
    accounts: Arc<Current<Accounts>>,
    /// Requests to the Table service so far.
    sent: Cell<u64>,
}

impl World {
    fn new() -> World {
        let clock = Arc::new(FakeClock::default());
        let engine = Arc::new(MemoryEngine::new(server::FAMILIES, clock.clone()));
        World::over(engine, clock)
    }

    fn over(engine: Arc<dyn Engine>, clock: Arc<FakeClock>) -> World {
        let accounts = Arc::new(Current::new(Accounts::emulator()));
        let analytics = Analytics::new(engine.clone(), clock.clone(), accounts.clone());
        let watch = Watch::new(Arc::default(), vec![analytics.book()], LogRules::default());
        let server = TestServer::options().clock(clock.clone()).engine(engine).watch(watch).start();
        World { server, clock, analytics, accounts, sent: Cell::new(0) }
    }

    fn send(&self, request: Request) -> Response {
        self.sent.set(self.sent.get() + 1);
        self.server.send(request)
    }

    /// Lets time pass, and what is over be written.
    fn pass(&self, minutes: u64) {
        self.clock.advance(Duration::from_secs(60 * minutes));
        wait(self.analytics.write_ended());
    }

    /// Switches metrics of the Table service.
    fn set(&self, name: &str, level: &str, days: u32) {
        self.send(Request::put(PROPERTIES).body("application/xml", properties(name, level, days)))
            .expect(202);
    }

    /// The rows of a table that begin with this time, by their RowKey.
    fn rows(&self, table: &str, time: &str) -> Vec<Value> {
        let filter = format!("PartitionKey eq '{time}'");
        let response = self.send(Request::get(&format!("/{table}()")).query("$filter", &filter)).expect(200);
        response.json()["value"].as_array().cloned().unwrap_or_default()
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// The document that switches metrics: to `all`, to `sums`, or `off`.
fn properties(name: &str, level: &str, days: u32) -> String {
    let enabled = match level {
        "off" => "<Enabled>false</Enabled>".to_owned(),
        _ => format!("<Enabled>true</Enabled><IncludeAPIs>{}</IncludeAPIs>", level == "all"),
    };
    let retention = match days {
        0 => "<Enabled>false</Enabled>".to_owned(),
        _ => format!("<Enabled>true</Enabled><Days>{days}</Days>"),
    };
    format!(
        "<StorageServiceProperties><{name}><Version>1.0</Version>{enabled}<RetentionPolicy>{retention}\
         </RetentionPolicy></{name}></StorageServiceProperties>"
    )
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter().filter_map(|row| row["RowKey"].as_str()).collect()
}

/// Checks columns of a row; 64-bit integers are strings in JSON.
#[track_caller]
fn check(rows: &[Value], row_key: &str, expected: &[(&str, u64)]) {
    let row = rows.iter().find(|row| row["RowKey"] == row_key);
    let row = row.unwrap_or_else(|| panic!("no {row_key} in {:?}", names(rows)));
    for (column, count) in expected {
        assert_eq!(row[*column], Value::from(count.to_string()), "{row_key} {column}: {row}");
    }
}

#[test]
fn a_known_load_gives_exactly_its_counts() {
    let world = World::new();
    world.set("MinuteMetrics", "all", 0);
    world.pass(1);
    world.send(Request::post("/Tables").json(r#"{"TableName":"people"}"#)).expect(201);
    let insert = |row: &str| world.send(Request::post("/people").json(&entity_json("p", row, r#""x":1"#)));
    for row in ["a", "b", "c", "d", "e"] {
        insert(row).expect(201);
    }
    insert("a").expect(409);
    let get = |row: &str| Request::get(&entity_path("people", "p", row));
    for _ in 0..3 {
        world.send(get("a")).expect(200);
    }
    world.send(get("missing")).expect(404);
    let token = Sas::table("2019-02-02", "people").sign(world.server.credentials());
    world.send(get("a").sas(&token)).expect(200);
    world.send(get("a").unsigned());
    world.send(Request::get("/people()")).expect(200);
    let batch = Batch::new()
        .insert("people", &entity_json("q", "1", ""))
        .insert("people", &entity_json("q", "2", ""));
    world.send(batch.request()).expect(202);
    world.send(batch.request()).expect(202);
    world.pass(1);

    let rows = world.rows(MINUTELY, "20250101T0001");
    assert_eq!(
        names(&rows),
        [
            "user;All",
            "user;CreateTable",
            "user;EntityGroupTransaction",
            "user;InsertEntity",
            "user;QueryEntities",
            "user;QueryEntity",
            "user;Unknown"
        ]
    );
    check(
        &rows,
        "user;All",
        &[
            ("TotalRequests", 16),
            ("TotalBillableRequests", 15),
            ("Success", 11),
            ("SASSuccess", 1),
            ("ClientOtherError", 3),
            ("AnonymousAuthorizationError", 1),
            ("ThrottlingError", 0),
        ],
    );
    check(&rows, "user;InsertEntity", &[("TotalRequests", 6), ("Success", 5), ("ClientOtherError", 1)]);
    check(&rows, "user;QueryEntity", &[("Success", 3), ("SASSuccess", 1), ("ClientOtherError", 1)]);
    // A batch with a failed operation failed, although it is answered with 202.
    check(&rows, "user;EntityGroupTransaction", &[("Success", 1), ("ClientOtherError", 1)]);
    check(&rows, "user;Unknown", &[("TotalRequests", 1), ("TotalBillableRequests", 0)]);
    let all = &rows[0];
    assert_eq!((&all["Availability"], &all["PercentSuccess"]), (&Value::from(100.0), &Value::from(75.0)));
    let insert_bytes = 6 * entity_json("p", "a", r#""x":1"#).len() as u64;
    check(&rows, "user;InsertEntity", &[("TotalIngress", insert_bytes)]);
    check(&rows, "user;QueryEntities", &[("TotalIngress", 0)]);
}

#[test]
fn the_minutes_of_an_hour_add_up_to_it() {
    let world = World::new();
    for _ in 0..30 {
        world.send(Request::get("/Tables")).expect(200);
        world.pass(1);
    }
    world.pass(30);
    let sent = world.sent.get();
    let rows = world.rows(HOURLY, "20250101T0000");
    assert_eq!(names(&rows), ["system;All", "user;All", "user;QueryTables"]);
    check(&rows, "user;All", &[("TotalRequests", sent), ("Success", sent)]);
    check(&rows, "system;All", &[("TotalRequests", 0)]);
    // The reading above is in the next hour. Of an hour without requests there are the sums alone.
    world.pass(60);
    world.pass(60);
    check(&world.rows(HOURLY, "20250101T0100"), "user;QueryEntities", &[("TotalRequests", 1)]);
    let world_is_idle = World::new();
    world_is_idle.pass(60);
    assert_eq!(names(&world_is_idle.rows(HOURLY, "20250101T0000")), ["system;All", "user;All"]);
}

#[test]
fn the_properties_switch_what_is_measured() {
    let world = World::new();
    // Of a new account hours are measured, and minutes are not.
    world.pass(1);
    world.send(Request::get(&format!("/{MINUTELY}()"))).expect_error(404, "TableNotFound");
    world.set("HourMetrics", "off", 0);
    world.set("MinuteMetrics", "sums", 0);
    world.pass(1);
    assert_eq!(names(&world.rows(MINUTELY, "20250101T0001")), ["user;All"]);
    world.set("MinuteMetrics", "off", 0);
    world.pass(1);
    assert_eq!(world.rows(MINUTELY, "20250101T0002").len(), 0);
    world.pass(60);
    world.send(Request::get(&format!("/{HOURLY}()"))).expect_error(404, "TableNotFound");
}

#[test]
fn queues_are_measured_in_a_table_of_their_own() {
    let world = World::new();
    let queues = world.server.queue();
    let set = Request::put(PROPERTIES).xml(&properties("MinuteMetrics", "all", 0));
    queues.send(set).expect(202);
    world.pass(1);
    queues.create("work");
    for _ in 0..4 {
        queues.send(Request::post("/work/messages").xml(&message_xml("text"))).expect(201);
    }
    let taken = queues.get("work", "");
    for message in &taken {
        queues.send(message.delete("work")).expect(204);
    }
    let gone = message_path("work", "00000000-0000-0000-0000-000000000000", "x");
    queues.send(Request::delete(&gone));
    queues.send(Request::get("/nowhere/messages")).expect(404);
    world.pass(1);
    let rows = world.rows(QUEUES_MINUTELY, "20250101T0001");
    let deleted = taken.len() as u64;
    check(&rows, "user;PutMessage", &[("TotalRequests", 4), ("Success", 4)]);
    check(&rows, "user;GetMessages", &[("Success", 1), ("ClientOtherError", 1)]);
    check(&rows, "user;DeleteMessage", &[("Success", deleted), ("ClientOtherError", 1)]);
    check(&rows, "user;CreateQueue", &[("TotalRequests", 1)]);
    check(&rows, "user;All", &[("TotalRequests", 4 + 2 + deleted + 1 + 1)]);
}

#[test]
fn an_interval_that_a_restart_cuts_is_added_to() {
    let clock = Arc::new(FakeClock::default());
    let directory = TempDir::new().unwrap();
    for round in 1..=3u64 {
        let options = LocalOptions::new(server::FAMILIES, clock.clone());
        let engine = Arc::new(LocalEngine::open(directory.path(), options).unwrap());
        let world = World::over(engine, clock.clone());
        world.send(Request::get("/Tables")).expect(200);
        wait(world.analytics.close());
        // The reading itself is not written: nobody closes again.
        let rows = world.rows(HOURLY, "20250101T0000");
        check(&rows, "user;QueryTables", &[("TotalRequests", round), ("Success", round)]);
        check(&rows, "user;All", &[("TotalRequests", round)]);
    }
}

#[test]
fn old_rows_are_removed_when_their_time_is_over() {
    let world = World::new();
    world.set("MinuteMetrics", "all", 2);
    world.pass(60);
    assert_eq!(world.rows(MINUTELY, "20250101T0000").len(), 2);
    assert_eq!(world.rows(HOURLY, "20250101T0000").len(), 3);
    let day = 24 * 60;
    world.pass(2 * day - 60);
    assert_eq!(world.rows(MINUTELY, "20250101T0000").len(), 2, "two days are not over");
    world.pass(60);
    assert_eq!(world.rows(MINUTELY, "20250101T0000").len(), 0);
    assert_eq!(world.rows(HOURLY, "20250101T0000").len(), 3, "hours are kept for seven days");
    world.pass(5 * day);
    assert_eq!(world.rows(HOURLY, "20250101T0000").len(), 0);
}

#[test]
fn the_tables_are_read_like_any_other_and_written_by_nobody() {
    let world = World::new();
    world.send(Request::get(&format!("/Tables('{HOURLY}')"))).expect_error(404, "ResourceNotFound");
    world.pass(60);
    let found = world.send(Request::get(&format!("/Tables('{HOURLY}')"))).expect(200).json();
    assert_eq!(found["TableName"], HOURLY);
    let listed = world.send(Request::get("/Tables")).expect(200).json();
    assert_eq!(listed["value"], Value::Array(Vec::new()), "no list shows them");
    // The name before 2013-08-15 means the same table.
    let old = world.send(Request::get("/$MetricsTransactionsTable()")).expect(200).json();
    assert_eq!(old["value"].as_array().map(Vec::len), Some(3));
    let all = entity_path(HOURLY, "20250101T0000", "user;All");
    world.send(Request::get(&all)).expect(200);
    for request in [
        Request::post(&format!("/{HOURLY}")).json(&entity_json("p", "r", "")),
        Request::put(&all).json("{}"),
        Request::merge(&all).json("{}"),
        Request::delete(&format!("/Tables('{HOURLY}')")),
    ] {
        world.send(request).expect_error(403, "AuthorizationFailure");
    }
    world.send(Request::post("/Tables").json(&format!("{{\"TableName\":\"{HOURLY}\"}}"))).expect(400);
    world.send(Request::delete(&all).header("If-Match", "*")).expect(204);
    world.send(Request::get(&all)).expect_error(404, "ResourceNotFound");
}

#[test]
fn a_clock_that_is_set_back_loses_no_counts() {
    let world = World::new();
    world.pass(5);
    world.send(Request::get("/Tables")).expect(200);
    world.clock.step_back(Duration::from_secs(120));
    wait(world.analytics.write_ended());
    world.send(Request::get("/Tables")).expect(200);
    world.pass(57);
    world.pass(60);
    check(&world.rows(HOURLY, "20250101T0000"), "user;QueryTables", &[("TotalRequests", 2)]);
}

#[test]
fn what_is_measured_of_an_account_ends_with_it() {
    let world = World::new();
    for _ in 0..5 {
        world.send(Request::get("/Tables")).expect(200);
    }
    world.pass(1);
    // The hour goes on when the account is removed, and ends before another one gets its name.
    world.accounts.replace(Accounts::parse("other:a2V5").unwrap());
    world.pass(60);
    world.accounts.replace(Accounts::emulator());
    world.pass(60);
    assert!(world.rows(HOURLY, "20250101T0000").is_empty());

    let counted = world.sent.get();
    world.send(Request::get("/Tables")).expect(200);
    world.pass(1);
    world.send(Request::get("/Tables")).expect(200);
    assert_eq!(world.sent.get(), counted + 2);
    wait(world.analytics.forget("devstoreaccount1"));
    world.pass(60);
    check(&world.rows(HOURLY, "20250101T0200"), "user;All", &[("TotalRequests", 0)]);
}

#[test]
fn several_servers_add_up_to_one_row() {
    let clock = Arc::new(FakeClock::default());
    let engine = Arc::new(MemoryEngine::new(server::FAMILIES, clock.clone()));
    let worlds = [(); 3].map(|()| World::over(engine.clone(), clock.clone()));
    for minute in 0..5 {
        for (index, world) in worlds.iter().enumerate() {
            for _ in 0..minute + index {
                world.send(Request::get("/Tables")).expect(200);
            }
        }
        clock.advance(Duration::from_secs(720));
        let [a, b, c] = &worlds;
        let write = async |world: &World| world.analytics.write_ended().await;
        wait(async { tokio::join!(write(a), write(b), write(c)) });
    }
    let sent: u64 = worlds.iter().map(|world| world.sent.get()).sum();
    let rows = worlds[0].rows(HOURLY, "20250101T0000");
    check(&rows, "user;QueryTables", &[("TotalRequests", sent), ("Success", sent)]);
    check(&rows, "user;All", &[("TotalRequests", sent)]);
}

#[test]
fn a_lost_answer_counts_nothing_twice_and_loses_nothing() {
    let clock = Arc::new(FakeClock::default());
    let memory = Arc::new(MemoryEngine::new(server::FAMILIES, clock.clone()));
    let (engine, faults) = FaultEngine::new(memory);
    let world = World::over(Arc::new(engine), clock);
    world.set("HourMetrics", "off", 0);
    world.set("MinuteMetrics", "all", 0);
    world.pass(1);
    let unknown = || CommitError::Unknown("the cable is cut".to_owned());
    for (minute, fault) in
        ["happened", "did not", "happened, and so did the question", "both did not"].iter().enumerate()
    {
        for _ in 0..3 {
            world.send(Request::get("/Tables")).expect(200);
        }
        match minute {
            0 => faults.lose_write_answers(1),
            1 => faults.fail_writes(1, unknown()),
            2 => faults.lose_write_answers(2),
            _ => faults.fail_writes(2, unknown()),
        }
        world.pass(1);
        // What is still unknown, or was not written, is written with the next minute.
        world.pass(1);
        let rows = world.rows(MINUTELY, &format!("20250101T{:04}", 1 + 2 * minute));
        // The reading of the round before is counted, too, but as another operation.
        check(&rows, "user;QueryTables", &[("TotalRequests", 3)]);
        assert!(!rows.is_empty(), "{fault}");
    }
}
