//! What the admin port tells: readiness, metrics, status, the last minutes, findings.

use std::fmt::Write as _;

use engine::{EngineGauges, Health};
use observe::{Gauge, LiveSecond};
use protocol::common::DateTime;
use serde_json::{Value, json};

use super::Admin;
use crate::front::accounts::EMULATOR_ACCOUNT;
use crate::front::throttle::Throttle;

impl Admin {
    /// Why the server is not ready, in one line; `None` when it is.
    pub(super) fn unready(&self) -> Option<&'static str> {
        match self.engine.gauges().health {
            Health::Ready => None,
            Health::Full => Some("the disk is full: writes are refused until there is space"),
            Health::Poisoned => {
                Some("a write to the disk failed: writes are refused until the server is restarted")
            }
            Health::NoLeader => {
                Some("no leader of the store is known: requests wait for one until their deadline")
            }
            Health::Closed => Some("the server is stopping"),
        }
    }

    pub(super) fn metrics(&self) -> String {
        let mut text = String::with_capacity(16 * 1024);
        self.front.watch.metrics.write_prometheus(&self.gauges(), &mut text);
        text
    }

    fn gauges(&self) -> Vec<Gauge> {
        let front = &*self.front;
        let limits = &front.limits;
        let held = "Bytes held for large requests and answers.";
        let pool =
            |name: &str, bytes: usize| Gauge::new("pool_bytes", held, bytes as f64).labelled("pool", name);
        let [account, partition] = front.throttle.as_ref().map(Throttle::refused_counts).unwrap_or_default();
        let throttled = |target: &str, count: u64| {
            let help = "Requests that went over a target of --throttle.";
            Gauge::counter("throttled_total", help, count as f64).labelled("target", target)
        };
        let mut gauges = vec![
            Gauge::new("build_info", "The version of the program.", 1.0).labelled("version", self.version),
            Gauge::new("ready", "1 when writes are accepted.", f64::from(self.unready().is_none())),
            Gauge::new("uptime_seconds", "Since the start.", self.uptime().as_secs_f64()),
            Gauge::new(
                "connections",
                "Open connections to the services.",
                front.connections.open_count() as f64,
            ),
            Gauge::new("connections_max", "How many there may be.", limits.connection_count_max as f64),
            Gauge::counter(
                "connections_refused_total",
                "Connections closed at once because their address has too many.",
                front.connections.refused_count() as f64,
            ),
            Gauge::new(
                "requests_in_flight",
                "Requests that are being served.",
                front.in_flight.count() as f64,
            ),
            throttled("account", account),
            throttled("partition", partition),
            pool("head", front.head_memory.held_bytes()),
            pool("payload", front.payload_memory.held_bytes()),
            pool("answer", front.answer_memory.held_bytes()),
        ];
        if let Some(bytes) = (self.resident_bytes)() {
            gauges.push(Gauge::new("resident_memory_bytes", "Memory of the process.", bytes as f64));
        }
        gauges.extend(engine_gauges(&self.engine.gauges()));
        gauges
    }

    pub(super) fn status(&self) -> Value {
        let services = self.services.iter().map(|service| {
            json!({
                "name": service.label,
                "address": service.address.to_string(),
                "url": service.url(),
                "passage": format!("{}{}", super::passage::PREFIX, service.label),
            })
        });
        let services: Vec<Value> = services.collect();
        let accounts = self.front.accounts.get();
        let names: Vec<String> = accounts.names().iter().map(|name| name.as_str().to_owned()).collect();
        let strings: Vec<String> = names.iter().map(|account| self.connection_string(account)).collect();
        let has_emulator =
            accounts.have_well_known_key() && names.iter().any(|name| name == EMULATOR_ACCOUNT);
        json!({
            "version": self.version,
            "uptime_seconds": self.uptime().as_secs(),
            "ready": self.unready().is_none(),
            "reason": self.unready(),
            "services": services,
            "accounts": names,
            // The key of this account is published, so a page may offer it.
            "has_emulator_account": has_emulator,
            "connection_strings": strings,
            "location": self.location,
            "storage": storage(&self.engine.gauges()),
        })
    }

    /// Without its key.
    fn connection_string(&self, account: &str) -> String {
        let scheme = if self.services.iter().any(|service| service.is_https) { "https" } else { "http" };
        let mut text = format!("DefaultEndpointsProtocol={scheme};AccountName={account};");
        for service in &self.services {
            // Writing to a string never fails.
            let _ = write!(text, "{}Endpoint={}/{account};", service.name, service.url());
        }
        text
    }

    pub(super) fn live_json(&self) -> String {
        let (live, now) = (self.live_mut(), self.front.now());
        let series = |value: &dyn Fn(&LiveSecond) -> u64| live.samples().map(value).collect::<Vec<u64>>();
        let plan = |index: usize| series(&|sample| sample.plans[index]);
        let value = json!({
            "now": now.whole_seconds().saturating_sub(DateTime::UNIX_EPOCH.whole_seconds()),
            "step_seconds": 1,
            "series": {
                "requests": series(&|sample| sample.requests),
                "errors": series(&|sample| sample.errors),
                "p50_us": series(&|sample| sample.p50_micros),
                "p99_us": series(&|sample| sample.p99_micros),
                "point": plan(0),
                "row_range": plan(1),
                "partition_scan": plan(2),
                "partition_range": plan(3),
                "table_scan": plan(4),
                "bytes_in": series(&|sample| sample.bytes_in),
                "bytes_out": series(&|sample| sample.bytes_out),
            },
            "storage": storage(&self.engine.gauges()),
        });
        let now = self.front.clock.monotonic();
        let hot =
            self.advice.as_ref().map_or_else(|| "[]".to_owned(), |advice| advice.hot_partitions_json(now));
        // The list comes as text already.
        let mut text = value.to_string();
        text.pop();
        text + ",\"hot_partitions\":" + &hot + "}"
    }

    pub(super) fn advice_json(&self) -> String {
        match &self.advice {
            None => r#"{"findings":[],"month":null,"memory_bound_bytes":0}"#.to_owned(),
            Some(advice) => advice.to_json(self.front.clock.monotonic()),
        }
    }
}

fn storage(gauges: &EngineGauges) -> Value {
    json!({
        "log_bytes": gauges.log_bytes,
        "tree_bytes": gauges.tree_bytes,
        "recent_rows": gauges.recent_count,
        "recent_bytes": gauges.recent_bytes,
    })
}

fn engine_gauges(gauges: &EngineGauges) -> Vec<Gauge> {
    let number = |value: u64| value as f64;
    vec![
        Gauge::counter(
            "commit_groups_total",
            "Groups of commits made durable together.",
            number(gauges.group_count),
        ),
        Gauge::counter("commits_total", "Commits in those groups.", number(gauges.commit_count)),
        Gauge::counter(
            "commit_sync_seconds_total",
            "Time spent on writing and syncing groups.",
            gauges.sync_seconds,
        ),
        Gauge::new("commit_queue", "Commits that wait or are under way.", number(gauges.queue_count)),
        Gauge::new("commit_queue_bytes", "Their bytes.", number(gauges.queue_bytes)),
        Gauge::new(
            "recent_rows",
            "Rows in memory that are not yet in the tree.",
            number(gauges.recent_count),
        ),
        Gauge::new("recent_bytes", "Their bytes.", number(gauges.recent_bytes)),
        Gauge::counter("folds_total", "Folds of recent rows into the tree.", number(gauges.fold_count)),
        Gauge::counter("fold_seconds_total", "Time spent on folding.", gauges.fold_seconds),
        Gauge::new("folding", "1 while rows are folded.", f64::from(gauges.is_folding)),
        Gauge::new("log_bytes", "Size of the commit log's files.", number(gauges.log_bytes)),
        Gauge::new("tree_bytes", "Size of the tree's file.", number(gauges.tree_bytes)),
    ]
}
