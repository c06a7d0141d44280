//! The logs of requests: which requests, what of them, and no secrets.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use log::kv::{self, Key, Value, VisitSource};
use log::{LevelFilter, Log, Metadata, Record};
use server::LogRules;
use testkit::{Credentials, EMULATOR_KEY, Request, Sas, entity_json};

use crate::stage::{Options, start};

/// Keeps every line, as other tests of this program cause lines at the same time.
struct Keeper(Mutex<Vec<String>>);

impl Log for Keeper {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let mut line = format!("{} {}: {}", record.level(), record.target(), record.args());
        record.key_values().visit(&mut Fields(&mut line)).unwrap();
        self.0.lock().unwrap().push(line);
    }

    fn flush(&self) {}
}

struct Fields<'a>(&'a mut String);

impl<'kvs> VisitSource<'kvs> for Fields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        self.0.push_str(&format!(" {key}={value}"));
        Ok(())
    }
}

fn keep_lines() -> &'static Keeper {
    static KEEPER: OnceLock<Keeper> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| Keeper(Mutex::default()));
    if log::set_logger(keeper).is_ok() {
        log::set_max_level(LevelFilter::Trace);
    }
    keeper
}

fn lines_with(part: &str) -> Vec<String> {
    keep_lines().0.lock().unwrap().iter().filter(|line| line.contains(part)).cloned().collect()
}

#[test]
fn a_slow_query_is_logged_with_its_plan_and_its_shape_and_no_value() {
    keep_lines();
    let rules = LogRules { slow: Some(Duration::ZERO), access_one_in: None };
    let house = start(Options { rules, ..Options::default() });
    house.tables(Request::post("/Tables").json("{\"TableName\":\"slowtable\"}")).expect(201);
    house.tables(Request::post("/slowtable").json(&entity_json("p", "r", "\"Age\":7"))).expect(201);
    let filter = "PartitionKey eq 'verysecret' or (Age gt 424242 and Name ne 'whisper')";
    let answer = house.tables(Request::get("/slowtable()").query("$filter", filter)).expect(200);
    let id = answer.required("x-ms-request-id").to_owned();
    let lines = lines_with(&id);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let expected = "operation=Query Entities container=slowtable status=200 plan=table scan \
                    filter=PartitionKey eq String or (Age gt Int32 and Name ne String) examined=1 returned=0";
    assert!(line.starts_with("WARN slow: slow request GET") && line.contains(expected), "{line}");
    for secret in ["verysecret", "424242", "whisper"] {
        assert!(lines_with(secret).is_empty(), "{secret}");
    }
}

#[test]
fn the_access_log_is_sampled_and_shows_no_secret() {
    keep_lines();
    let rules = LogRules { access_one_in: Some(10), slow: None };
    let house = start(Options { rules, ..Options::default() });
    for _ in 0..50 {
        house.tables(Request::get("/accesstable()")).expect(404);
    }
    let lines = lines_with("/devstoreaccount1/accesstable()");
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(lines.iter().all(|line| {
        line.starts_with("INFO access: GET")
            && line.contains("operation=Query Entities status=404 error=TableNotFound")
            && line.contains("request_id=")
            && line.contains("one_in=10")
    }));
}

#[test]
fn no_log_shows_a_key_or_a_signature() {
    keep_lines();
    let rules = LogRules { access_one_in: Some(1), slow: Some(Duration::ZERO) };
    let house = start(Options { rules, ..Options::default() });
    let sas = Sas::account("2019-02-02").sign(&Credentials::emulator());
    let signature = sas.split('&').find_map(|pair| pair.strip_prefix("sig=")).unwrap().to_owned();
    house.tables(Request::get(&format!("/Tables?{sas}")).unsigned());
    house.tables(Request::get(&format!("/Tables?{sas}x")).unsigned());
    house.tables(Request::get("/Tables")).expect(200);
    house.tables(
        Request::get("/Tables").header("Authorization", "SharedKeyLite devstoreaccount1:c2VjcmV0c2ln"),
    );
    house.ask("GET", "/?token=admintoken-in-the-address", "");
    house.ask("GET", "/metrics", "Authorization: Bearer admintoken-in-a-header\r\n");
    assert!(lines_with("\"/devstoreaccount1/Tables\"").len() >= 3);
    for secret in [&*signature, "sig=", EMULATOR_KEY, "c2VjcmV0c2ln", "SharedKey", "admintoken"] {
        let lines = lines_with(secret);
        assert!(lines.is_empty(), "{secret}: {lines:?}");
    }
}
