//! What the advisor makes of requests that really arrive: it names the right rows, and notices when they change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;
use engine::env::SystemClock;
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{Budget, Engine, KeyRange, OwnedKey, ReadError, Sink, TableId};
use observe::Advisor;
use testkit::{Batch, Request, entity_json};

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

/// Forty entities, in one batch.
fn fill(house: &House) {
    let batch = (0..40).fold(Batch::new(), |batch, row| {
        batch.insert("people", &entity_json("p", &row.to_string(), "\"Age\":7"))
    });
    house.tables(batch.request()).expect(202);
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
