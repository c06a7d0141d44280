//! What is concluded from etcd's answers, with an etcd that answers what a test wants.

use std::sync::Arc;

use engine::env::FakeClock;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const PATH: &str = "/service/main";

/// As the real one answers (3.4), with what counts left open.
fn keys(leader: Value, members: &[(&str, Value)]) -> Value {
    let node = |name: &str, value: &str| json!({ "key": format!("{PATH}/{name}"), "value": value });
    let members = members.iter().map(|(name, value)| node(&format!("members/{name}"), &value.to_string()));
    let directory =
        json!({ "key": format!("{PATH}/members"), "dir": true, "nodes": members.collect::<Vec<_>>() });
    let mut nodes = vec![directory, node("initialize", "7001"), node("config", "{}")];
    if !leader.is_null() {
        nodes.insert(1, leader);
    }
    json!({ "action": "get", "node": { "key": PATH, "dir": true, "nodes": nodes } })
}

fn leader(name: &str, ttl: i64) -> Value {
    json!({ "key": format!("{PATH}/leader"), "value": name, "ttl": ttl, "modifiedIndex": 99, "createdIndex": 12 })
}

fn member(role: &str, timeline: u64) -> Value {
    json!({ "conn_url": "postgres://10.0.0.1:5432/postgres", "role": role, "state": "running", "timeline": timeline })
}

/// What an etcd does with one question.
#[derive(Clone)]
enum Answer {
    Body(u16, String),
    /// After the clock has moved on by this much.
    Slow(Duration, String),
    Silence,
}

async fn etcd(answer: Answer, clock: Arc<FakeClock>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 1024];
            let count = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..count]).into_owned();
            assert!(
                request.starts_with("GET /v2/keys/service/main?recursive=true&quorum=true HTTP/1.0\r\n"),
                "{request}"
            );
            let (status, body) = match &answer {
                Answer::Body(status, body) => (*status, body),
                Answer::Slow(time, body) => {
                    clock.advance(*time);
                    (200, body)
                }
                Answer::Silence => std::future::pending().await,
            };
            let _ = stream
                .write_all(format!("HTTP/1.0 {status} x\r\nX-Etcd-Index: 9\r\n\r\n{body}").as_bytes())
                .await;
        }
    });
    format!("http://{address}{PATH}")
}

async fn lead(answers: &[Answer]) -> (Duration, Result<ProvenLead, NoProof>) {
    let clock = Arc::new(FakeClock::new(1_000));
    clock.advance(Duration::from_secs(100));
    let mut addresses = Vec::new();
    for answer in answers {
        addresses.push(etcd(answer.clone(), clock.clone()).await);
    }
    let key = EtcdKey::new(&addresses).unwrap().unwrap();
    (clock.monotonic(), key.lead(&*clock).await)
}

fn body(leader: Value, role: &str) -> Answer {
    Answer::Body(
        200,
        keys(leader, &[("node1", member(role, 3)), ("node2", member("replica", 3))]).to_string(),
    )
}

#[tokio::test]
async fn a_key_proves_the_lead_for_its_time_less_the_rounding_and_the_margin() {
    for role in ["master", "primary"] {
        let (sent, proven) = lead(&[body(leader("node1", 6), role)]).await;
        let proven = proven.unwrap();
        assert_eq!(proven.until, sent + Duration::from_secs(4));
        assert_eq!(proven.lineage, Lineage { system_identifier: "7001".to_owned(), timeline: 3 });
        assert_eq!(proven.term, 12);
    }
    // However long it lives.
    let (sent, proven) = lead(&[body(leader("node1", 3_600), "master")]).await;
    assert_eq!(proven.unwrap().until, sent + Duration::from_secs(29));
    for ttl in [2, 1, 0, -1] {
        assert_eq!(lead(&[body(leader("node1", ttl), "master")]).await.1, Err(NoProof::TooShort), "{ttl}");
    }
}

#[tokio::test]
async fn the_time_counts_from_the_question_and_not_from_its_answer() {
    let text = keys(leader("node1", 6), &[("node1", member("master", 3))]).to_string();
    let (sent, proven) = lead(&[Answer::Slow(Duration::from_secs(3), text)]).await;
    let proven = proven.unwrap();
    assert_eq!(proven.until, sent + Duration::from_secs(4));
    // The other clock too: 100 s passed before the question, and nothing of the 3 s counts.
    assert_eq!(proven.until_ticks, 1_000 + ticks(Duration::from_secs(104)));
}

#[tokio::test]
async fn an_etcd_that_is_silent_or_broken_is_passed_over() {
    let good = body(leader("node1", 6), "master");
    let broken = Answer::Body(500, "{\"errorCode\":300,\"message\":\"Raft Internal Error\"}".to_owned());
    assert!(lead(&[broken.clone(), Answer::Silence, good]).await.1.is_ok());
    assert_eq!(lead(&[broken, Answer::Silence]).await.1, Err(NoProof::NoAnswer));
    let closed = EtcdKey::new(&["http://127.0.0.1:1/service/main".to_owned()]).unwrap().unwrap();
    assert_eq!(closed.lead(&FakeClock::new(0)).await, Err(NoProof::NoAnswer));
}

#[tokio::test]
async fn whatever_is_missing_or_in_between_proves_nothing() {
    let permanent = json!({ "key": format!("{PATH}/leader"), "value": "node1", "createdIndex": 12 });
    let elsewhere = json!({ "key": "/other/leader", "value": "node1", "ttl": 6, "createdIndex": 12 });
    let text = |text: &str| Answer::Body(200, text.to_owned());
    for (answer, expected) in [
        (body(Value::Null, "master"), NoProof::NobodyLeads),
        (body(elsewhere, "master"), NoProof::NobodyLeads),
        (body(permanent, "master"), NoProof::TooShort),
        // It has the key and no data in etcd; it is not promoted yet; it follows a cluster elsewhere.
        (body(leader("node9", 6), "master"), NoProof::Promoting),
        (body(leader("node2", 6), "master"), NoProof::Promoting),
        (body(leader("node1", 6), "promoted"), NoProof::Promoting),
        (body(leader("node1", 6), "standby_leader"), NoProof::Promoting),
        (text(""), NoProof::NoKeys),
        (text("[]"), NoProof::NoKeys),
        (text("{\"node\":{\"key\":\"/service/other\"}}"), NoProof::NoKeys),
        (Answer::Body(404, "{\"errorCode\":100,\"message\":\"Key not found\"}".to_owned()), NoProof::NoKeys),
    ] {
        assert_eq!(lead(&[answer]).await.1, Err(expected));
    }
}

#[test]
fn addresses_are_checked_and_no_secret_is_said() {
    let check = |addresses: &[&str]| {
        let addresses: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
        EtcdKey::new(&addresses).map(|key| key.map(|key| (key.members, key.path)))
    };
    assert_eq!(check(&[]), Ok(None));
    let members = vec!["a:1".to_owned(), "b:2".to_owned()];
    assert_eq!(check(&["http://a:1/s/x/", "http://b:2/s/x"]), Ok(Some((members, "/s/x".to_owned()))));
    for bad in
        ["http://a:1", "http://a:1/", "https://a:1/s/x", "http://u:secret@a:1/s/x", "http://a:1/s/x?y=secret"]
    {
        let message = check(&[bad]).unwrap_err().to_string();
        assert!(
            message.contains("http://host:port/namespace/scope") && !message.contains("secret"),
            "{message}"
        );
    }
    assert!(
        check(&["http://a:1/s/x", "http://b:2/s/y"]).unwrap_err().to_string().contains("different paths")
    );
}
