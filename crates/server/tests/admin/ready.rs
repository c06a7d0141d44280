//! Whether the server is ready.

use std::sync::{Arc, Mutex};

use engine::env::SystemClock;
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{Engine, EngineGauges, Health};
use testkit::RawClient;

use crate::prometheus_text::{parse, sum};
use crate::stage::{Options, any_door, start};

/// An engine whose health the test decides.
struct Patient {
    inner: MemoryEngine,
    health: Arc<Mutex<Health>>,
}

impl Wrapper for Patient {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    fn gauges(&self) -> EngineGauges {
        let health = *self.health.lock().unwrap();
        EngineGauges { health, group_count: 3, commit_count: 12, tree_bytes: 4096, ..EngineGauges::default() }
    }
}

#[test]
fn an_engine_that_takes_no_writes_is_not_ready_but_alive() {
    let health = Arc::new(Mutex::new(Health::Ready));
    let inner = MemoryEngine::new(server::FAMILIES, Arc::new(SystemClock::new()));
    let engine: Arc<dyn Engine> = Arc::new(Wrapped(Patient { inner, health: health.clone() }));
    let house =
        start(Options { engine: Some(engine), token: Some("0123456789abcdef".into()), ..Options::default() });
    for (state, status, part) in [
        (Health::Ready, 200, "ready"),
        (Health::Full, 503, "disk is full"),
        (Health::Poisoned, 503, "restarted"),
        (Health::NoLeader, 503, "no leader"),
        (Health::Closed, 503, "stopping"),
        (Health::Ready, 200, "ready"),
    ] {
        *health.lock().unwrap() = state;
        let response = house.get("/readyz").expect(status);
        assert!(
            response.text().contains(part) && response.text().lines().count() == 1,
            "{}",
            response.text()
        );
        house.get("/healthz").expect(200);
        let metrics = house.ask("GET", "/metrics", "Authorization: Bearer 0123456789abcdef\r\n").expect(200);
        let samples = parse(metrics.text()).unwrap();
        assert_eq!(sum(&samples, "lazulite_ready", &[]), f64::from(u8::from(status == 200)));
        assert_eq!(sum(&samples, "lazulite_commit_groups_total", &[]), 3.0);
        assert_eq!(sum(&samples, "lazulite_commits_total", &[]), 12.0);
        assert_eq!(sum(&samples, "lazulite_tree_bytes", &[]), 4096.0);
    }
}

#[test]
fn a_server_that_opens_its_store_lives_and_is_not_ready_and_keeps_its_port() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let door = runtime.block_on(any_door());
    let address = door.local_addr();
    let ask = |path: &str| {
        let text = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        RawClient::connect(address).unwrap().exchange(text.as_bytes()).unwrap()
    };
    ask("/healthz").expect(200);
    for path in ["/readyz", "/metrics", "/", "/storage/table/"] {
        assert_eq!(ask(path).expect(503).text(), "the store is being opened\n");
    }
    let house = start(Options { door: Some(door), ..Options::default() });
    assert_eq!(house.admin_addr, address);
    assert_eq!(ask("/readyz").expect(200).text(), "ready\n");
}
