//! The client sends what the official Python clients send for the same calls: method, URL, headers, body and signature.
//!
//! `tests/record/record.py` made the recordings, with a fixed date and fixed identifiers. Here the same calls are made by
//! our client with the same date and identifiers, on a transport that answers as recorded. To add an operation, write its
//! call under the recording's name in [`CALLS`] and take the name off [`AWAITED`].

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use lazulite_client::{
    ClientBuilder, CorsRule, DateTime, Environment, Error, Logging, Metrics, MetricsLevel, PropertiesUpdate,
    Sending, StoredPolicy, Transport,
};
use serde_json::Value as Json;

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const SAS: &str =
    "sv=2019-02-02&ss=tq&srt=sco&sp=rwdlacup&se=2030-01-01T00%3A00%3A00Z&sig=c2lnbmF0dXJl%2B%2F%3D";

const RECORDINGS: [&str; 4] = [
    include_str!("recorded/tables.json"),
    include_str!("recorded/queues.json"),
    include_str!("recorded/messages.json"),
    include_str!("recorded/entities.json"),
];

/// The clients that the recordings were made with.
#[derive(Clone)]
struct Clients {
    emulated: ClientBuilder,
    in_azure: ClientBuilder,
    signed: ClientBuilder,
}

type Made = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

type Call = (&'static str, fn(Clients) -> Made);

/// Our call for each recording.
const CALLS: &[Call] = &[
    ("create_table", |with| Box::pin(async move { with.emulated.tables()?.create_table("people").await })),
    ("create_table_in_azure", |with| {
        Box::pin(async move { with.in_azure.tables()?.create_table("people").await })
    }),
    ("create_table_with_sas", |with| {
        Box::pin(async move { with.signed.tables()?.create_table("people").await })
    }),
    ("delete_table", |with| Box::pin(async move { with.emulated.tables()?.delete_table("people").await })),
    ("list_tables", |with| {
        Box::pin(async move { with.emulated.tables()?.list_tables().all().await.map(drop) })
    }),
    ("query_tables", |with| {
        Box::pin(async move {
            let list = with.emulated.tables()?.list_tables().filter("TableName ge 'a b'").page_size(7);
            list.all().await.map(drop)
        })
    }),
    ("list_tables_resumed", |with| {
        Box::pin(async move {
            let list = with.emulated.tables()?.list_tables().page_size(7).resume("1!8!cGVvcGxl");
            list.all().await.map(drop)
        })
    }),
    ("list_tables_with_sas", |with| {
        Box::pin(async move { with.signed.tables()?.list_tables().all().await.map(drop) })
    }),
    ("table_properties", |with| {
        Box::pin(async move { with.emulated.tables()?.properties().await.map(drop) })
    }),
    ("table_properties_in_azure", |with| {
        Box::pin(async move { with.in_azure.tables()?.properties().await.map(drop) })
    }),
    ("set_table_properties", |with| {
        Box::pin(async move {
            let update = PropertiesUpdate {
                logging: Some(Logging { read: true, write: false, delete: true, retention_days: Some(5) }),
                hour_metrics: Some(Metrics { level: MetricsLevel::ServiceAndApis, retention_days: Some(7) }),
                minute_metrics: Some(Metrics::default()),
                cors: Some(vec![CorsRule {
                    allowed_origins: vec!["https://a.example".to_owned(), "https://b.example".to_owned()],
                    allowed_methods: vec!["GET".to_owned(), "PUT".to_owned()],
                    allowed_headers: vec!["x-ms-*".to_owned()],
                    exposed_headers: vec!["x-ms-meta-*".to_owned()],
                    max_age_seconds: 500,
                }]),
            };
            with.emulated.tables()?.set_properties(&update).await
        })
    }),
    ("table_stats", |with| Box::pin(async move { with.in_azure.tables()?.stats().await.map(drop) })),
    ("table_policies", |with| {
        Box::pin(async move { with.emulated.tables()?.table_policies("people").await.map(drop) })
    }),
    ("set_table_policies", |with| {
        Box::pin(async move {
            let readers = StoredPolicy {
                id: "readers".to_owned(),
                start: DateTime::parse("2021-01-01T00:00:00Z"),
                expiry: DateTime::parse("2030-01-01T00:00:00Z"),
                permission: Some("r".to_owned()),
            };
            with.emulated.tables()?.set_table_policies("people", &[readers]).await
        })
    }),
];

/// Recordings whose operation this file does not make yet.
const AWAITED: &[&str] = &[
    "queue_properties",
    "queue_properties_in_azure",
    "set_queue_properties",
    "queue_stats",
    "list_queues",
    "create_queue",
    "create_queue_with_sas",
    "delete_queue",
    "queue_metadata",
    "set_queue_metadata",
    "queue_policies",
    "set_queue_policies",
    "send_message",
    "receive_messages",
    "peek_messages",
    "update_message",
    "delete_message",
    "clear_messages",
    "insert_entity",
    "insert_entity_in_azure",
    "get_entity",
    "get_entity_with_escapes",
    "query_entities",
    "query_entities_resumed",
    "upsert_replace",
    "upsert_merge",
    "replace_if_match",
    "merge_any",
    "delete_if_match",
    "delete_any",
    "transaction",
];

#[tokio::test]
async fn requests_equal_those_of_the_official_clients() {
    let recordings = recordings();
    for (name, make) in CALLS {
        let recording = recordings.get(*name).unwrap_or_else(|| panic!("{name} is not recorded"));
        let transport = Arc::new(Recorded { recording: recording.clone(), seen: Mutex::default() });
        let environment = Arc::new(Fixed(recording.clone()));
        let build = |text: &str| {
            let builder = ClientBuilder::from_connection_string(text).expect("a connection string");
            builder.transport(transport.clone()).environment(environment.clone())
        };
        let clients = Clients {
            emulated: build("UseDevelopmentStorage=true"),
            in_azure: build(&format!("AccountName=devstoreaccount1;AccountKey={KEY}")),
            signed: build(&format!("AccountName=devstoreaccount1;SharedAccessSignature={SAS}")),
        };
        make(clients).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let seen = transport.seen.lock().unwrap().take().unwrap_or_else(|| panic!("{name} sends nothing"));
        compare(name, &recording.call, &seen);
    }
}

#[test]
fn every_recording_is_compared_or_awaited() {
    let mut named: Vec<&str> = CALLS.iter().map(|(name, _)| *name).chain(AWAITED.iter().copied()).collect();
    named.sort_unstable();
    let recordings = recordings();
    let recorded: Vec<&str> = recordings.keys().map(String::as_str).collect();
    assert_eq!(named, recorded);
}

#[derive(Clone)]
struct Recording {
    date: String,
    id: String,
    call: Json,
}

fn recordings() -> BTreeMap<String, Recording> {
    let mut all = BTreeMap::new();
    for text in RECORDINGS {
        let file: Json = serde_json::from_str(text).unwrap();
        for call in file["calls"].as_array().unwrap() {
            let (date, id) = (text_of(&file["date"]), text_of(&file["id"]));
            all.insert(text_of(&call["name"]), Recording { date, id, call: call.clone() });
        }
    }
    all
}

fn text_of(value: &Json) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The date and the identifier of a recording.
struct Fixed(Recording);

impl Environment for Fixed {
    fn now(&self) -> SystemTime {
        let date = DateTime::parse_http(&self.0.date).unwrap();
        let seconds = date.whole_seconds() - DateTime::UNIX_EPOCH.whole_seconds();
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn random(&self) -> u128 {
        u128::from_str_radix(&self.0.id.replace('-', ""), 16).unwrap()
    }
}

/// Keeps the first request, and answers every one as recorded.
struct Recorded {
    recording: Recording,
    seen: Mutex<Option<Request<Bytes>>>,
}

impl Transport for Recorded {
    fn send(&self, request: Request<Bytes>) -> Sending<'_> {
        self.seen.lock().unwrap().get_or_insert(request);
        let answer = &self.recording.call["answer"];
        let mut response = Response::new(Bytes::from(text_of(&answer["body"])));
        *response.status_mut() = (answer["status"].as_u64().unwrap() as u16).try_into().unwrap();
        for (name, value) in answer["headers"].as_object().unwrap() {
            let name: http::HeaderName = name.parse().unwrap();
            response.headers_mut().insert(name, text_of(value).parse().unwrap());
        }
        Box::pin(async move { Ok(response) })
    }
}

fn compare(name: &str, recorded: &Json, ours: &Request<Bytes>) {
    assert_eq!(ours.method().as_str(), recorded["method"], "{name}");
    assert_eq!(url(&ours.uri().to_string()), url(&text_of(&recorded["url"])), "{name}");
    compare_headers(name, &recorded["headers"], ours.headers());
    let (ours_text, recorded_text) = (std::str::from_utf8(ours.body()).unwrap(), text_of(&recorded["body"]));
    assert_eq!(meaning(ours_text), meaning(&recorded_text), "{name}");
}

/// Everything up to the query as it is, because it is signed so; then the parameters, decoded and in order of names,
/// because their order and needless escapes mean nothing.
fn url(text: &str) -> (String, BTreeMap<String, String>) {
    let (address, query) = text.split_once('?').unwrap_or((text, ""));
    let decode = |text: &str| protocol::common::query::decode(text).unwrap().into_owned();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    (address.to_owned(), pairs.map(|(name, value)| (decode(name), decode(value))).collect())
}

fn compare_headers(name: &str, recorded: &Json, ours: &HeaderMap) {
    let recorded = recorded.as_object().unwrap();
    let ours = |header: &str| ours.get(header).map(|value| value.to_str().unwrap());
    // Everything that changes what a request means, or whether it is let in. What else they send is about the
    // connection, or is sent by us although it says what is the default anyway.
    let always =
        ["authorization", "content-type", "if-match", "x-ms-client-request-id", "x-ms-date", "x-ms-version"];
    for header in always {
        assert_eq!(
            ours(header),
            recorded.get(header).map(|value| value.as_str().unwrap()),
            "{name}: {header}"
        );
    }
    for (header, value) in recorded {
        let is_asked = ours("accept").is_some_and(|accept| accept.starts_with("application/"));
        let is_meant = header.starts_with("x-ms-meta-")
            || header == "dataserviceversion"
            || header == "accept" && value != "*/*" && is_asked && value != "application/json";
        if is_meant {
            assert_eq!(ours(header), value.as_str(), "{name}: {header}");
        }
    }
}

/// A body without what its form leaves open: white space, the order of members, how exact a time is written, and
/// annotations of types that JSON shows anyway.
#[derive(PartialEq, Debug)]
enum Meaning {
    Json(Json),
    Xml(Tree),
    Text(String),
}

#[derive(PartialEq, PartialOrd, Eq, Ord, Debug)]
struct Tree {
    name: String,
    text: String,
    children: Vec<Tree>,
}

fn meaning(body: &str) -> Meaning {
    if let Ok(mut json) = serde_json::from_str::<Json>(body) {
        if let Some(members) = json.as_object_mut() {
            members.retain(|name, value| !(name.ends_with("@odata.type") && *value == "Edm.String"));
        }
        return Meaning::Json(json);
    }
    let start = body.split_once("?>").map_or(body, |(_, rest)| rest).trim_start();
    let root = start.strip_prefix('<').and_then(|rest| rest.split(['>', ' ', '/']).next());
    match root.and_then(|root| protocol::common::xml::read(body.as_bytes(), root).ok()) {
        Some(element) => Meaning::Xml(tree(&element)),
        None => Meaning::Text(body.to_owned()),
    }
}

fn tree(element: &protocol::common::xml::Element) -> Tree {
    let mut children: Vec<Tree> = element.children.iter().map(tree).collect();
    children.sort();
    let text = match DateTime::parse(&element.text) {
        Some(time) => format!("at {}", time.ticks()),
        None => element.text.clone(),
    };
    Tree { name: element.name.clone(), text, children }
}
