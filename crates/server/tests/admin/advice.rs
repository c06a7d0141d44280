//! What the advisor makes of requests that really arrive: it names the right rows, and notices when they change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;
use engine::env::SystemClock;
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{Budget, Engine, KeyRange, OwnedKey, ReadError, Sink, TableId};
use observe::Advisor;
use testkit::{Batch, Request, entity_json, entity_path};

use crate::stage::{House, Options, start};

fn advised(engine: Option<Arc<dyn Engine>>) -> House {
    let advisor = Arc::new(Advisor::default());
    let options =
        Options { engine, observers: vec![advisor.clone()], advice: Some(advisor), ..Options::default() };
    let house = start(options);
    house.tables(Request::post("/Tables").json("{\"TableName\":\"people\"}")).expect(201);
    house
}

/// Kind and subject of each finding.
fn findings(house: &House) -> Vec<(String, String)> {
    let advice = house.get("/api/advice").expect(200).json();
    let text = |finding: &serde_json::Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let findings = advice["findings"].as_array().unwrap();
    findings.iter().map(|finding| (text(finding, "kind"), text(finding, "subject"))).collect()
}

fn large(row: &str) -> (String, String) {
    ("large-entity".to_owned(), format!("'p' '{row}'"))
}

/// Members that make an entity of nearly 900 KiB, as the service counts.
fn large_members() -> String {
    let text = "x".repeat(32_000);
    let members: Vec<String> = (0..14).map(|number| format!("\"L{number}\":\"{text}\"")).collect();
    members.join(",")
}

fn insert_large(house: &House, row: &str) {
    house.tables(Request::post("/people").json(&entity_json("p", row, &large_members()))).expect(201);
}

#[test]
fn of_a_batch_the_large_rows_themselves_are_named() {
    let house = advised(None);
    let mut batch = Batch::new();
    for row in ["a", "b", "c", "d"] {
        let members = if row == "c" { large_members() } else { "\"A\":1".to_owned() };
        batch = batch.insert("people", &entity_json("p", row, &members));
    }
    house.tables(batch.request()).expect(202);
    assert_eq!(findings(&house), [large("c")]);
}

#[test]
fn a_refused_write_is_no_large_entity() {
    let house = advised(None);
    let path = entity_path("people", "p", "r");
    let json = format!("{{{}}}", large_members());
    for _ in 0..20 {
        house.tables(Request::put(&path).header("If-Match", "*").json(&json)).expect(404);
        let batch = Batch::new().insert("people", &entity_json("p", "s", &large_members()));
        let batch = batch.operation("DELETE", &path, &[("If-Match", "*")], None);
        house.tables(batch.request()).expect(202);
    }
    assert_eq!(findings(&house), []);
}

#[test]
fn merging_something_small_into_a_large_entity_leaves_it_large() {
    let house = advised(None);
    insert_large(&house, "r");
    let path = entity_path("people", "p", "r");
    for number in 0..40 {
        let json = format!("{{\"Number\":{number}}}");
        house.tables(Request::merge(&path).json(&json)).expect(204);
        house.tables(Batch::new().operation("MERGE", &path, &[], Some(&json)).request()).expect(202);
        assert_eq!(findings(&house), [large("r")], "{number}");
    }
}

#[test]
fn the_first_request_that_shrinks_or_deletes_an_entity_is_noticed() {
    let house = advised(None);
    let rows: Vec<String> = (0..24).map(|number| format!("r{number:02}")).collect();
    for row in &rows {
        insert_large(&house, row);
        assert_eq!(findings(&house), [large(row)]);
        let path = entity_path("people", "p", row);
        match row.as_bytes()[2] % 4 {
            0 => house.tables(Request::put(&path).json("{\"A\":1}")).expect(204),
            1 => house.tables(Request::delete(&path).header("If-Match", "*")).expect(204),
            2 => {
                let batch = Batch::new().insert("people", &entity_json("p", &format!("{row}x"), "\"A\":1"));
                house.tables(batch.operation("PUT", &path, &[], Some("{\"A\":1}")).request()).expect(202)
            }
            _ => {
                let batch = Batch::new().insert("people", &entity_json("p", &format!("{row}x"), "\"A\":1"));
                let batch = batch.operation("DELETE", &path, &[("If-Match", "*")], None);
                house.tables(batch.request()).expect(202)
            }
        };
        assert_eq!(findings(&house), [], "{row}");
    }
}

#[test]
fn an_entity_that_a_merge_made_small_is_forgotten_when_it_is_read() {
    let house = advised(None);
    for row in ["a", "b", "c", "d"] {
        insert_large(&house, row);
        let path = entity_path("people", "p", row);
        let members: Vec<String> = (0..14).map(|number| format!("\"L{number}\":\"\"")).collect();
        house.tables(Request::merge(&path).json(&format!("{{{}}}", members.join(",")))).expect(204);
        assert_eq!(findings(&house), [large(row)]);
        house.tables(Request::get(&path)).expect(200);
        assert_eq!(findings(&house), []);
    }
}

#[test]
fn one_large_row_does_not_make_its_batch_a_giant_partition() {
    let house = advised(None);
    for number in 0..5 {
        let mut batch = Batch::new();
        for row in 0..100 {
            let members = if row == 0 { large_members() } else { "\"A\":1".to_owned() };
            batch = batch.insert("people", &entity_json("p", &format!("{number}-{row:02}"), &members));
        }
        house.tables(batch.request()).expect(202);
    }
    let kinds: Vec<String> = findings(&house).into_iter().map(|(kind, _)| kind).collect();
    assert!(!kinds.iter().any(|kind| kind == "giant-partition"), "{kinds:?}");
}

/// Forty entities, in one batch.
fn fill(house: &House) {
    let batch = (0..40).fold(Batch::new(), |batch, row| {
        batch.insert("people", &entity_json("p", &row.to_string(), "\"Age\":7"))
    });
    house.tables(batch.request()).expect(202);
}

#[test]
fn a_scan_in_a_batch_is_a_scan() {
    let house = advised(None);
    fill(&house);
    for age in 0..3 {
        let target = format!("/people()?$filter=Age%20gt%20{}", 100 + age);
        house.tables(Batch::new().operation("GET", &target, &[], None).query_request()).expect(202);
    }
    assert_eq!(findings(&house), [("table-scan".to_owned(), "Age gt Int32".to_owned())]);
    let target = entity_path("people", "p", "1");
    let point = Batch::new().operation("GET", &target, &[], None).query_request();
    for _ in 0..3 {
        house.tables(point.clone()).expect(202);
    }
    assert_eq!(findings(&house).len(), 1);
}

/// An engine whose scans do not end well.
struct Trouble {
    inner: MemoryEngine,
    kind: Arc<AtomicU8>,
}

const NONE: u8 = 0;
const FAIL: u8 = 1;
const STALL: u8 = 2;

#[async_trait]
impl Wrapper for Trouble {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let scanned = self.inner.scan(table, ranges, budget, sink).await;
        match self.kind.load(Ordering::Relaxed) {
            FAIL => Err(ReadError::Busy),
            STALL => std::future::pending().await,
            _ => scanned,
        }
    }
}

#[test]
fn scans_that_fail_or_time_out_are_found_too() {
    for (trouble, timeout, status) in [(FAIL, "30", 503), (STALL, "1", 500)] {
        let kind = Arc::new(AtomicU8::new(NONE));
        let inner = MemoryEngine::new(server::FAMILIES, Arc::new(SystemClock::new()));
        let house = advised(Some(Arc::new(Wrapped(Trouble { inner, kind: kind.clone() }))));
        fill(&house);
        kind.store(trouble, Ordering::Relaxed);
        for _ in 0..3 {
            let query = Request::get("/people()").query("$filter", "Age gt 100").query("timeout", timeout);
            house.tables(query).expect(status);
        }
        assert_eq!(findings(&house), [("table-scan".to_owned(), "Age gt Int32".to_owned())]);
    }
}
