//! After a load whose requests are counted, every counter adds up exactly.

use std::sync::Arc;
use std::sync::Mutex;

use observe::{Advice, Observation, Observer, PlanKind};
use std::time::Duration;
use testkit::{Batch, Request, entity_json, entity_path, message_xml};

use crate::prometheus_text::{Sample, parse, sum};
use crate::stage::{House, Options, start};

fn metrics(house: &House) -> Vec<Sample> {
    let response = house.get("/metrics").expect(200);
    assert_eq!(response.required("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    parse(response.text()).unwrap()
}

fn insert(house: &House, partition: &str, row: &str) -> u16 {
    house.tables(Request::post("/people").json(&entity_json(partition, row, "\"Age\":7"))).status
}

fn query(house: &House, filter: &str) {
    house.tables(Request::get("/people()").query("$filter", filter)).expect(200);
}

#[test]
fn every_counter_adds_up_after_a_known_load() {
    let house = start(Options::default());
    house.tables(Request::post("/Tables").json("{\"TableName\":\"people\"}")).expect(201);
    let (mut bytes_in, mut bytes_out) = (0, 0);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let house = &house;
            scope.spawn(move || {
                for row in 0..25 {
                    assert_eq!(insert(house, &format!("p{worker}"), &row.to_string()), 201);
                }
            });
        }
    });
    assert_eq!(insert(&house, "p0", "0"), 409);
    for row in 0..30 {
        let path = entity_path("people", "p1", &row.to_string());
        let response = house.tables(Request::get(&path));
        assert_eq!(response.status, if row < 25 { 200 } else { 404 });
        bytes_out += response.body.len();
    }
    house.tables(Request::get(&entity_path("people", "p1", "1")).unsigned()).expect(404);
    query(&house, "PartitionKey eq 'p1' and RowKey eq '3'");
    query(&house, "PartitionKey eq 'p1' and RowKey ge '3'");
    query(&house, "PartitionKey eq 'p1'");
    query(&house, "PartitionKey ge 'p2'");
    query(&house, "Age eq 8");
    query(&house, "Age eq 7");
    let batch = Batch::new().insert("people", &entity_json("b", "1", "\"A\":1"));
    let batch = batch.insert("people", &entity_json("b", "2", "\"A\":1"));
    bytes_in += batch.body().len();
    house.tables(batch.request()).expect(202);
    bytes_in += batch.body().len();
    house.tables(batch.request()).expect(202);
    house.queues(Request::put("/work")).expect(201);
    for _ in 0..3 {
        house.queues(Request::post("/work/messages").xml(&message_xml("m"))).expect(201);
    }
    house.queues(Request::get("/work/messages?peekonly=true")).expect(200);
    house.queues(Request::get("/none/messages")).expect(404);

    let samples = metrics(&house);
    let requests = |labels: &[(&str, &str)]| sum(&samples, "lazulite_requests_total", labels);
    let outcome = |operation, status, error| {
        requests(&[("operation", operation), ("status", status), ("error", error)])
    };
    assert_eq!(outcome("Create Table", "201", ""), 1.0);
    assert_eq!(outcome("Insert Entity", "201", ""), 100.0);
    assert_eq!(outcome("Insert Entity", "409", "EntityAlreadyExists"), 1.0);
    assert_eq!(outcome("Get Entity", "200", ""), 25.0);
    assert_eq!(outcome("Get Entity", "404", "ResourceNotFound"), 5.0);
    assert_eq!(outcome("Unknown", "404", "ResourceNotFound"), 1.0);
    assert_eq!(outcome("Query Entities", "200", ""), 6.0);
    assert_eq!(outcome("Entity Group Transaction", "202", ""), 1.0);
    assert_eq!(outcome("Entity Group Transaction", "202", "EntityAlreadyExists"), 1.0);
    assert_eq!(outcome("Create Queue", "201", ""), 1.0);
    assert_eq!(outcome("Put Message", "201", ""), 3.0);
    assert_eq!(outcome("Peek Messages", "200", ""), 1.0);
    assert_eq!(outcome("Get Messages", "404", "QueueNotFound"), 1.0);
    assert_eq!(requests(&[]), 147.0, "and there is nothing else");
    assert_eq!(requests(&[("service", "queue")]), 6.0);
    assert_eq!(sum(&samples, "lazulite_request_duration_seconds_count", &[]), 147.0);

    let plan = |name: &str, plan| sum(&samples, name, &[("plan", plan)]);
    for (kind, reads, examined, returned) in [
        ("point", 31.0, 31.0, 26.0),
        ("row_range", 1.0, 7.0, 7.0),
        ("partition_scan", 1.0, 25.0, 25.0),
        ("partition_range", 1.0, 50.0, 50.0),
        ("table_scan", 2.0, 200.0, 100.0),
    ] {
        let found = ["reads", "rows_examined", "rows_returned"]
            .map(|name| plan(&format!("lazulite_{name}_total"), kind));
        assert_eq!(found, [reads, examined, returned], "{kind}");
    }
    let bytes = |name, operation| sum(&samples, name, &[("operation", operation)]);
    assert_eq!(bytes("lazulite_sent_bytes_total", "Get Entity"), bytes_out as f64);
    assert_eq!(bytes("lazulite_received_bytes_total", "Entity Group Transaction"), bytes_in as f64);
    assert_eq!(sum(&samples, "lazulite_build_info", &[("version", "1.2.3")]), 1.0);
    assert_eq!(sum(&samples, "lazulite_resident_memory_bytes", &[]), 4096.0);
    assert_eq!(sum(&samples, "lazulite_ready", &[]), 1.0);
}

#[test]
fn strangers_make_no_new_label() {
    let house = start(Options::default());
    house.get("/metrics").expect(200);
    for number in 0..200 {
        house.tables(Request::new("BREW", &format!("/t{number}?x{number}=1")).unsigned());
        house.tables(Request::get(&format!("/t{number}()")).credentials(&format!("account{number}"), "a2V5"));
        house.queues(Request::new("BREW", &format!("/q{number}")).version(&format!("v{number}")));
    }
    let samples = metrics(&house);
    assert_eq!(sum(&samples, "lazulite_requests_total", &[]), 600.0);
    let series = samples.iter().filter(|sample| sample.name == "lazulite_requests_total").count();
    assert!(series < 10, "{series}");
    assert!(!format!("{samples:?}").contains("account7"));
}

#[test]
fn the_last_seconds_are_told_for_charts() {
    let house = start(Options::default());
    house.tables(Request::post("/Tables").json("{\"TableName\":\"people\"}")).expect(201);
    house.admin.end_second();
    assert_eq!(insert(&house, "p", "r"), 201);
    house.tables(Request::get(&entity_path("people", "p", "r"))).expect(200);
    house.tables(Request::get(&entity_path("people", "p", "none"))).expect(404);
    query(&house, "Age gt 1");
    house.admin.end_second();
    house.admin.end_second();
    let live = house.get("/api/live").expect(200).json();
    let series = |name: &str| {
        let numbers = live["series"][name].as_array().unwrap().iter().map(|number| number.as_u64().unwrap());
        numbers.collect::<Vec<_>>()
    };
    assert_eq!(series("requests"), [1, 4, 0]);
    assert_eq!(series("errors"), [0, 1, 0]);
    assert_eq!(series("point"), [0, 2, 0]);
    assert_eq!(series("table_scan"), [0, 1, 0]);
    for name in ["row_range", "partition_scan", "partition_range"] {
        assert_eq!(series(name), [0, 0, 0], "{name}");
    }
    assert!(
        series("p99_us")[1] >= series("p50_us")[1] && series("p50_us")[1] > 0 && series("p99_us")[2] == 0
    );
    assert!(series("bytes_in")[1] > 0 && series("bytes_out")[1] > 0);
    assert_eq!((&live["step_seconds"], &live["hot_partitions"]), (&1.into(), &serde_json::json!([])));
    assert!(live["now"].as_u64().unwrap() > 1_700_000_000);
    assert!(live["storage"]["log_bytes"].is_u64());
}

/// Keeps what it sees.
#[derive(Default)]
struct Keeper(Mutex<Vec<String>>);

impl Observer for Keeper {
    fn observe(&self, observation: &Observation<'_>) {
        let detail = &observation.detail;
        let shape = detail.filter_shape.map(|shape| format!("{} in {:?}", shape.text(), shape.partition()));
        self.0.lock().unwrap().push(format!(
            "{} {}/{} {:?}/{:?} {:?} {} {}/{} +{} {}b {}p",
            observation.operation.name(),
            observation.account,
            detail.container,
            detail.partition.unwrap_or("-"),
            detail.row.unwrap_or("-"),
            detail.plan.unwrap_or(PlanKind::Point),
            shape.unwrap_or_default(),
            detail.examined,
            detail.returned,
            detail.written,
            detail.row_bytes_max,
            detail.property_count_max,
        ));
    }
}

impl Advice for Keeper {
    fn findings_json(&self, _: Duration) -> String {
        "[{\"id\":\"x\"}]".to_owned()
    }

    fn hot_partitions_json(&self, _: Duration) -> String {
        "[{\"partition\":\"p\"}]".to_owned()
    }

    fn memory_bound_bytes(&self) -> usize {
        77
    }
}

#[test]
fn observers_see_what_a_request_was_about() {
    let keeper = Arc::new(Keeper::default());
    let house = start(Options {
        observers: vec![keeper.clone()],
        advice: Some(keeper.clone()),
        ..Options::default()
    });
    house.tables(Request::post("/Tables").json("{\"TableName\":\"people\"}")).expect(201);
    assert_eq!(insert(&house, "p\u{e4}", "r"), 201);
    house.tables(Request::put(&entity_path("people", "q", "s")).json("{\"A\":1,\"B\":\"x\"}")).expect(204);
    query(&house, "PartitionKey eq 'secret' and Age gt 1");
    let batch = Batch::new().insert("people", &entity_json("b", "1", "\"A\":1"));
    house.tables(batch.insert("people", &entity_json("b", "2", "\"A\":1")).request()).expect(202);
    house.queues(Request::put("/work")).expect(201);
    let account = "devstoreaccount1";
    let seen = keeper.0.lock().unwrap().clone();
    let expected = [
        format!("Create Table {account}/ \"-\"/\"-\" Point  0/0 +0 0b 0p"),
        format!("Insert Entity {account}/people \"p\u{e4}\"/\"r\" Point  0/0 +1 62b 1p"),
        format!("Insert Or Replace Entity {account}/people \"q\"/\"s\" Point  0/0 +1 72b 2p"),
        format!(
            "Query Entities {account}/people \"-\"/\"-\" PartitionScan PartitionKey eq String and Age gt Int32 in \
             Some(\"secret\") 0/0 +0 0b 0p"
        ),
        format!("Entity Group Transaction {account}/people \"b\"/\"1\" Point  0/0 +2 56b 1p"),
        format!("Create Queue {account}/work \"-\"/\"-\" Point  0/0 +0 0b 0p"),
    ];
    for (seen, expected) in seen.iter().zip(&expected) {
        assert_eq!(seen, expected);
    }
    assert_eq!(seen.len(), expected.len());
    let advice = house.get("/api/advice").expect(200).json();
    assert_eq!(
        advice,
        serde_json::json!({"findings": [{"id": "x"}], "month": null, "memory_bound_bytes": 77})
    );
    assert_eq!(house.get("/api/live").json()["hot_partitions"], serde_json::json!([{"partition": "p"}]));
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let house = start(Options::default());
    house.tables(Request::get("/Tables")).expect(200);
    let families = house.get("/metrics").expect(200);
    let families: Vec<&str> =
        families.text().lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dashboards/grafana.json");
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let is_name = |character: char| character.is_ascii_lowercase() || character == '_';
    let mut asked = 0;
    for (start, _) in text.match_indices("lazulite_") {
        let name: String = text[start..].chars().take_while(|character| is_name(*character)).collect();
        let family = name.strip_suffix("_bucket").unwrap_or(&name);
        assert!(families.contains(&family), "{name}");
        asked += 1;
    }
    assert!(asked > 30, "{asked}");
    // And the guide explains every one of them.
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide.md")).unwrap();
    for family in families.iter().filter(|family| !guide.contains(&format!("`{family}`"))) {
        assert_eq!(*family, "lazulite_connections_max", "the guide does not mention it");
    }
}
