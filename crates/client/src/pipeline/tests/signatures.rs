//! The signature of every recorded request of the official Python clients, made again from the same parts: whatever an
//! operation sends, the pipeline signs it as they do. `tests/recorded.rs` compares what the operations send.

use super::*;

const RECORDINGS: [(&str, &str); 4] = [
    ("table", include_str!("../../../tests/recorded/tables.json")),
    ("table", include_str!("../../../tests/recorded/entities.json")),
    ("queue", include_str!("../../../tests/recorded/queues.json")),
    ("queue", include_str!("../../../tests/recorded/messages.json")),
];

/// The identifier and the date of the recordings.
struct Recorded;

impl Environment for Recorded {
    fn now(&self) -> SystemTime {
        Fixed.now()
    }

    fn random(&self) -> u128 {
        0x0123_4567_89ab_4def_8123_4567_89ab_cdef
    }
}

/// The call that a recorded request stands for, and whether it went to Azure and to the secondary.
fn call(recorded: &serde_json::Value) -> (Call, bool, bool) {
    let uri: Uri = recorded["url"].as_str().unwrap().parse().unwrap();
    let is_in_azure = uri.host().unwrap().ends_with("core.windows.net");
    let prefix = if is_in_azure { "/" } else { "/devstoreaccount1/" };
    let mut call = Call::new(
        recorded["method"].as_str().unwrap().parse().unwrap(),
        uri.path().strip_prefix(prefix).unwrap(),
        Repeat::Freely,
    );
    for (name, value) in Query::split(uri.query().unwrap_or_default()).parameters() {
        let value = protocol::common::query::decode(value).unwrap().into_owned();
        call.query.push((Box::leak(name.to_owned().into_boxed_str()), value));
    }
    for (name, value) in recorded["headers"].as_object().unwrap() {
        if name == "content-type" || name.starts_with("x-ms-meta") || name == "x-ms-version" {
            call.headers.push((name.parse().unwrap(), value.as_str().unwrap().to_owned()));
        }
    }
    call.body = Bytes::from(recorded["body"].as_str().unwrap().to_owned());
    (call, is_in_azure, uri.host().unwrap().contains("-secondary"))
}

#[tokio::test(start_paused = true)]
async fn every_recorded_signature_is_made_again() {
    let mut count = 0;
    for (service, text) in RECORDINGS {
        let file: serde_json::Value = serde_json::from_str(text).unwrap();
        for recorded in file["calls"].as_array().unwrap() {
            let Some(authorization) = recorded["headers"]["authorization"].as_str() else { continue };
            let (call, is_in_azure, is_secondary) = call(recorded);
            let transport = FakeTransport::new([]);
            let azure = format!("AccountName=devstoreaccount1;AccountKey={}", testkit::EMULATOR_KEY);
            let connection = if is_in_azure { &azure } else { EMULATOR };
            let builder = builder(connection, transport.clone()).environment(Arc::new(Recorded));
            let kind = if service == "table" { &protocol::table::KIND } else { &protocol::queue::KIND };
            let pipeline = builder.pipeline(kind).unwrap();
            let answer =
                if is_secondary { pipeline.call_secondary(call).await } else { pipeline.call(call).await };
            answer.unwrap();
            let seen = &transport.seen()[0];
            let name = &recorded["name"];
            assert_eq!(seen.headers["authorization"], authorization, "{name}");
            assert_eq!(
                seen.headers["x-ms-client-request-id"],
                recorded["headers"]["x-ms-client-request-id"].as_str().unwrap()
            );
            count += 1;
        }
    }
    assert!(count > 40, "{count} signatures were compared");
}
