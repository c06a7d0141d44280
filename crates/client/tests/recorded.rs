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
    ClientBuilder, CorsRule, DateTime, DynamicEntity, Entity, EntityError, Environment, Error, Filter, Guid,
    IfMatch, Keys, Logging, Metrics, MetricsLevel, PropertiesUpdate, Property, Row, Sending, StoredPolicy,
    TableClient, Transport, Value,
};
use protocol::table::wire::batch::{BatchPart, BatchRequest, read_batch};
use serde_json::Value as Json;

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const SAS: &str =
    "sv=2019-02-02&ss=tq&srt=sco&sp=rwdlacup&se=2030-01-01T00%3A00%3A00Z&sig=c2lnbmF0dXJl%2B%2F%3D";

const ETAG: &str = "W/\"datetime'2021-09-21T00%3A50%3A22.07Z'\"";

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
                ..PropertiesUpdate::default()
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
    ("insert_entity", |with| {
        Box::pin(async move {
            let ada = DynamicEntity::new("it's", "a b+ö%")
                .with("Name", "Ada")?
                .with("Age", 36)?
                .with("Score", 1.5)?
                .with("Active", true)?
                .with("Visits", 1_i64 << 40)?
                .with("Seen", DateTime::parse("2021-09-21T00:50:22Z").unwrap())?
                .with("Badge", Guid::parse("01234567-89ab-4def-8123-456789abcdef").unwrap())?
                .with("Photo", Value::Binary(vec![0, 1, 254].into()))?;
            people(&with.emulated)?.insert(&ada).await.map(drop)
        })
    }),
    ("insert_entity_in_azure", |with| {
        Box::pin(async move { people(&with.in_azure)?.insert(&small("r")?).await.map(drop) })
    }),
    ("get_entity", |with| {
        Box::pin(async move { people(&with.emulated)?.get::<DynamicEntity>("p", "r").await.map(drop) })
    }),
    ("get_entity_with_escapes", |with| {
        let row_key = "a b(ö)%+&=,;:@!$*~.";
        Box::pin(async move { people(&with.emulated)?.get::<NameAndAge>("it's", row_key).await.map(drop) })
    }),
    ("query_entities", |with| {
        Box::pin(async move {
            let older = Filter::raw("Age gt 5").unwrap();
            let query = people(&with.emulated)?.query::<NameAndAge>().partition("it's").filter(older);
            query.page_size(3).all().await.map(drop)
        })
    }),
    ("query_entities_resumed", |with| {
        Box::pin(async move {
            let token = "NextPartitionKey=1%214%21cCAx&NextRowKey=1%214%21cis-".parse()?;
            people(&with.emulated)?.query::<DynamicEntity>().resume(token).page().await.map(drop)
        })
    }),
    ("upsert_replace", |with| {
        Box::pin(async move { people(&with.emulated)?.upsert_replace(&small("r")?).await.map(drop) })
    }),
    ("upsert_merge", |with| {
        Box::pin(async move { people(&with.emulated)?.upsert_merge(&small("r")?).await.map(drop) })
    }),
    ("replace_if_match", |with| {
        Box::pin(
            async move { people(&with.emulated)?.replace(&small("r")?, IfMatch::ETag(ETAG)).await.map(drop) },
        )
    }),
    ("merge_any", |with| {
        Box::pin(async move { people(&with.emulated)?.merge(&small("r")?, IfMatch::Any).await.map(drop) })
    }),
    ("delete_if_match", |with| {
        Box::pin(async move { people(&with.emulated)?.delete("p", "r", IfMatch::ETag(ETAG)).await })
    }),
    ("delete_any", |with| {
        Box::pin(async move { people(&with.emulated)?.delete("p", "r", IfMatch::Any).await })
    }),
    ("transaction", |with| {
        Box::pin(async move {
            let mut transaction = people(&with.emulated)?.transaction("p");
            transaction
                .insert(&small("r0")?)?
                .upsert_replace(&small("r1")?)?
                .upsert_merge(&small("r2")?)?
                .replace(&small("r3")?, IfMatch::ETag(ETAG))?
                .merge(&small("r4")?, IfMatch::Any)?
                .delete("r5", IfMatch::Any)?;
            transaction.send().await.map(drop)
        })
    }),
];

fn people(builder: &ClientBuilder) -> Result<TableClient, Error> {
    builder.tables()?.table("people")
}

fn small(row_key: &str) -> Result<DynamicEntity, Error> {
    Ok(DynamicEntity::new("p", row_key).with("Name", "Ada")?)
}

/// A projection without the keys, which the recordings leave out.
struct NameAndAge;

impl Entity for NameAndAge {
    const COLUMNS: Option<&'static [&'static str]> = Some(&["Name", "Age"]);

    fn keys(&self) -> Result<Keys<'_>, EntityError> {
        Ok(Keys::new("", ""))
    }

    fn write<'a>(&'a self, _out: &mut Vec<Property<'a>>) -> Result<(), EntityError> {
        Ok(())
    }

    fn read(_row: Row<'_>) -> Result<NameAndAge, EntityError> {
        Ok(NameAndAge)
    }
}

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
    match recorded["headers"]["content-type"].as_str().filter(|text| text.starts_with("multipart/")) {
        Some(content_type) => {
            assert_eq!(
                operations(content_type, ours_text),
                operations(content_type, &recorded_text),
                "{name}"
            );
        }
        None => assert_eq!(meaning(ours_text), meaning(&recorded_text), "{name}"),
    }
}

/// Method, address, condition and body of each operation of a transaction. Ours asks for no content beside.
fn operations(content_type: &str, body: &str) -> Vec<(String, String, Option<String>, Meaning)> {
    let operation = |part: &BatchPart<'_>| {
        let body = meaning(std::str::from_utf8(part.body).unwrap());
        (part.method.to_owned(), part.url.to_owned(), part.headers.if_match.map(str::to_owned), body)
    };
    match read_batch(Some(content_type), body.as_bytes()).unwrap() {
        BatchRequest::ChangeSet(parts) => parts.iter().map(operation).collect(),
        BatchRequest::Query(_) => panic!("a change set was expected"),
    }
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
            let whole = members.clone();
            members.retain(|name, value| match name.strip_suffix("@odata.type") {
                Some(name) => *value != "Edm.String" && !(*value == "Edm.Double" && whole[name].is_f64()),
                None => true,
            });
            for (name, value) in members.iter_mut() {
                if whole.get(&format!("{name}@odata.type")).is_some_and(|kind| kind == "Edm.DateTime") {
                    *value = DateTime::parse(value.as_str().unwrap()).unwrap().ticks().into();
                }
            }
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
