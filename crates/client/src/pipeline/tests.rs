//! Requests as they leave, and what happens after each kind of failure. Time stands still unless the client waits.

mod signatures;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use super::*;
use crate::transport::Sending;
use crate::{ClientBuilder, ConnectionString, HttpOptions};

/// What a fake server does with one request.
pub(crate) enum Reply {
    Answer(u16, &'static [(&'static str, &'static str)], String),
    /// The connection could not be made.
    Unsent,
    /// The request went out and no answer came.
    Lost,
    /// A kept connection was closed.
    Stale,
    /// Never answers.
    Silent,
}

/// A request as the fake server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub method: String,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Since the first request.
    pub at: Duration,
}

/// Answers from a list, and keeps what it was asked. After the list it answers 200 with nothing.
#[derive(Default)]
pub(crate) struct FakeTransport {
    replies: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<Seen>>,
    started: std::sync::OnceLock<tokio::time::Instant>,
}

impl FakeTransport {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<FakeTransport> {
        Arc::new(FakeTransport {
            replies: Mutex::new(replies.into_iter().collect()),
            ..FakeTransport::default()
        })
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Transport for FakeTransport {
    fn send(&self, request: Request<Bytes>) -> Sending<'_> {
        let started = *self.started.get_or_init(clock::instant);
        let (parts, body) = request.into_parts();
        self.seen.lock().unwrap().push(Seen {
            method: parts.method.to_string(),
            url: parts.uri.to_string(),
            headers: parts.headers,
            body,
            at: clock::instant() - started,
        });
        let reply = self.replies.lock().unwrap().pop_front();
        Box::pin(async move {
            match reply {
                None => Ok(Response::new(Bytes::new())),
                Some(Reply::Answer(status, headers, body)) => {
                    let mut response = Response::new(Bytes::from(body));
                    *response.status_mut() = StatusCode::from_u16(status).unwrap();
                    for (name, value) in headers {
                        response.headers_mut().insert(*name, HeaderValue::from_static(value));
                    }
                    Ok(response)
                }
                Some(Reply::Unsent) => Err(TransportError::unsent("refused")),
                Some(Reply::Lost) => Err(TransportError::lost("cut")),
                Some(Reply::Stale) => {
                    Err(TransportError { was_stale: true, ..TransportError::lost("closed") })
                }
                Some(Reply::Silent) => std::future::pending().await,
            }
        })
    }
}

/// The time and the chance of every test here.
pub(crate) struct Fixed;

impl Environment for Fixed {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_632_185_422)
    }

    /// The longest waits, and a GUID.
    fn random(&self) -> u128 {
        0x0123_4567_89ab_4def_8123_4567_ffff_ffff
    }
}

pub(crate) const EMULATOR: &str = "UseDevelopmentStorage=true";

/// A builder whose requests go to the fake server.
pub(crate) fn builder(connection: &str, transport: Arc<FakeTransport>) -> ClientBuilder {
    let connection = ConnectionString::parse(connection).unwrap();
    ClientBuilder::from(connection).transport(transport).environment(Arc::new(Fixed))
}

/// A pipeline of the emulator's account to a fake server, for the tests of every operation.
pub(crate) fn pipeline(kind: &'static ServiceKind, transport: Arc<FakeTransport>) -> Arc<Pipeline> {
    builder(EMULATOR, transport).pipeline(kind).unwrap()
}

fn get() -> Call {
    Call::new(Method::GET, "people(PartitionKey='a',RowKey='b%20c')", Repeat::Freely)
}

fn insert() -> Call {
    let mut call = Call::new(Method::POST, "people", Repeat::OnlyUnsent);
    call.headers.push((CONTENT_TYPE, "application/json;odata=nometadata".to_owned()));
    call.body = Bytes::from_static(b"{}");
    call
}

/// Runs one call with a policy of 100 ms, and tells the result, the instants of the attempts, and where they went.
async fn run(
    call: Call,
    replies: Vec<Reply>,
    change: impl FnOnce(&mut RetryPolicy),
) -> (Result<Answer, Error>, String) {
    let mut policy = RetryPolicy { delay_first: Duration::from_millis(100), ..RetryPolicy::default() };
    change(&mut policy);
    let transport = FakeTransport::new(replies);
    let builder = builder(EMULATOR, transport.clone()).retry(policy).timeout(Duration::from_secs(5));
    let result = builder.pipeline(&protocol::table::KIND).unwrap().call(call).await;
    let log: Vec<String> = transport
        .seen()
        .iter()
        .map(|seen| {
            let place = if seen.url.contains("-secondary/") { "s" } else { "p" };
            format!("{place}{}", seen.at.as_millis())
        })
        .collect();
    (result, log.join(" "))
}

fn answer(status: u16) -> Reply {
    Reply::Answer(status, &[], String::new())
}

#[tokio::test(start_paused = true)]
async fn a_table_request_is_addressed_and_signed() {
    let transport = FakeTransport::new([]);
    let pipeline = pipeline(&protocol::table::KIND, transport.clone());
    let mut call = insert();
    call.query = vec![("$filter", "a eq 'b c' and ö".to_owned()), ("timeout", "5".to_owned())];
    pipeline.call(call).await.unwrap();
    let seen = &transport.seen()[0];
    assert_eq!(seen.method, "POST");
    assert_eq!(
        seen.url,
        "http://127.0.0.1:10002/devstoreaccount1/people?%24filter=a%20eq%20%27b%20c%27%20and%20%C3%B6&timeout=5"
    );
    let date = "Tue, 21 Sep 2021 00:50:22 GMT";
    let text = testkit::string_to_sign(
        testkit::Scheme::SharedKey,
        testkit::EMULATOR_ACCOUNT,
        "POST",
        seen.url.strip_prefix("http://127.0.0.1:10002").unwrap(),
        "",
        "application/json;odata=nometadata",
        date,
    );
    let signature = testkit::signature(testkit::EMULATOR_KEY, &text);
    let expected = [
        ("x-ms-date", date),
        ("x-ms-version", "2019-02-02"),
        ("x-ms-client-request-id", "01234567-89ab-4def-8123-4567ffffffff"),
        ("dataserviceversion", "3.0"),
        ("maxdataserviceversion", "3.0;NetFx"),
        ("accept", "application/json;odata=minimalmetadata"),
        ("content-type", "application/json;odata=nometadata"),
        ("content-length", "2"),
        ("authorization", &format!("SharedKey devstoreaccount1:{signature}")),
    ];
    for (name, value) in expected {
        assert_eq!(seen.headers.get(name).map(|value| value.to_str().unwrap()), Some(value), "{name}");
    }
    assert_eq!(seen.headers.len(), expected.len() + 1, "and the user agent");
}

#[tokio::test(start_paused = true)]
async fn a_signature_of_the_service_itself_covers_comp() {
    let transport = FakeTransport::new([]);
    let pipeline = pipeline(&protocol::table::KIND, transport.clone());
    let mut call = Call::new(Method::GET, "", Repeat::Freely);
    call.query = vec![("restype", "service".to_owned()), ("comp", "properties".to_owned())];
    pipeline.call(call).await.unwrap();
    let seen = &transport.seen()[0];
    assert_eq!(seen.url, "http://127.0.0.1:10002/devstoreaccount1/?restype=service&comp=properties");
    let text = "GET\n\n\nTue, 21 Sep 2021 00:50:22 GMT\n/devstoreaccount1/devstoreaccount1/?comp=properties";
    let signature = testkit::signature(testkit::EMULATOR_KEY, text);
    assert_eq!(seen.headers["authorization"], format!("SharedKey devstoreaccount1:{signature}"));
    assert!(!seen.headers.contains_key("content-length"));
}

#[tokio::test(start_paused = true)]
async fn a_queue_request_is_signed_in_full() {
    let transport = FakeTransport::new([]);
    let account = "AccountName=acc;AccountKey=a2V5;DefaultEndpointsProtocol=http";
    let pipeline = builder(account, transport.clone()).pipeline(&protocol::queue::KIND).unwrap();
    let mut call = Call::new(Method::PUT, "my%20queue", Repeat::Freely);
    call.query = vec![("timeout", "7".to_owned()), ("comp", "metadata".to_owned())];
    call.headers = vec![
        (HeaderName::from_static("x-ms-meta-b"), "two  words ".to_owned()),
        (HeaderName::from_static("x-ms-meta-a"), "1".to_owned()),
    ];
    pipeline.call(call).await.unwrap();
    let seen = &transport.seen()[0];
    assert_eq!(seen.url, "http://acc.queue.core.windows.net/my%20queue?timeout=7&comp=metadata");
    let text = "PUT\n\n\n\n\n\n\n\n\n\n\n\n\
        x-ms-client-request-id:01234567-89ab-4def-8123-4567ffffffff\n\
        x-ms-date:Tue, 21 Sep 2021 00:50:22 GMT\n\
        x-ms-meta-a:1\nx-ms-meta-b:two words\nx-ms-version:2025-11-05\n\
        /acc/my%20queue\ncomp:metadata\ntimeout:7";
    assert_eq!(seen.headers["authorization"], format!("SharedKey acc:{}", testkit::signature("a2V5", text)));
    assert_eq!(seen.headers["content-length"], "0");
}

#[tokio::test(start_paused = true)]
async fn a_shared_access_signature_ends_the_query() {
    let transport = FakeTransport::new([]);
    let sas =
        "TableEndpoint=https://acc.table.core.windows.net;SharedAccessSignature=?sv=2019-02-02&sig=a%2Bb%3D";
    let pipeline = builder(sas, transport.clone()).pipeline(&protocol::table::KIND).unwrap();
    pipeline.call(Call::new(Method::GET, "people()", Repeat::Freely)).await.unwrap();
    let mut call = Call::new(Method::GET, "people()", Repeat::Freely);
    call.query.push(("$top", "1".to_owned()));
    pipeline.call(call).await.unwrap();
    let seen = transport.seen();
    assert_eq!(seen[0].url, "https://acc.table.core.windows.net/people()?sv=2019-02-02&sig=a%2Bb%3D");
    assert_eq!(
        seen[1].url,
        "https://acc.table.core.windows.net/people()?%24top=1&sv=2019-02-02&sig=a%2Bb%3D"
    );
    assert!(!seen[0].headers.contains_key("authorization"));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_sent_over_https_only_and_renewed_when_refused() {
    let count = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let provider = move || {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        async move {
            Ok(crate::AccessToken::new(format!("t{number}"), UNIX_EPOCH + Duration::from_secs(1_700_000_000)))
        }
    };
    let credential = Credential::token(provider);
    let open = ClientBuilder::new("http://acc.table.core.windows.net", credential.clone()).unwrap();
    assert!(matches!(open.pipeline(&protocol::table::KIND), Err(Error::Configuration(_))));

    let mixed = ClientBuilder::new("https://acc.table.core.windows.net", credential.clone()).unwrap();
    let mixed = mixed.secondary_endpoint("http://replica.example.com").unwrap();
    assert!(matches!(mixed.pipeline(&protocol::table::KIND), Err(Error::Configuration(_))));

    let transport = FakeTransport::new([answer(200), answer(401), answer(200), answer(401), answer(401)]);
    let builder = ClientBuilder::new("https://acc.table.core.windows.net", credential).unwrap();
    let builder = builder.transport(transport.clone()).environment(Arc::new(Fixed));
    let pipeline = builder.pipeline(&protocol::table::KIND).unwrap();
    pipeline.call(get()).await.unwrap();
    // Even what must not happen twice: a caller that is not let in has done nothing.
    pipeline.call(insert()).await.unwrap();
    assert_eq!(pipeline.call(get()).await.unwrap_err().status(), Some(StatusCode::UNAUTHORIZED));
    let sent: Vec<_> = transport.seen().iter().map(|seen| seen.headers["authorization"].clone()).collect();
    assert_eq!(sent, ["Bearer t1", "Bearer t1", "Bearer t2", "Bearer t2", "Bearer t3"]);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_old_versions_refuse_with_403_is_renewed_once() {
    let count = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let provider = move || {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        async move {
            Ok(crate::AccessToken::new(format!("t{number}"), UNIX_EPOCH + Duration::from_secs(1_700_000_000)))
        }
    };
    let failed = || Reply::Answer(403, &[("x-ms-error-code", "AuthenticationFailed")], String::new());
    let mismatch =
        || Reply::Answer(403, &[("x-ms-error-code", "AuthorizationPermissionMismatch")], String::new());
    let transport = FakeTransport::new([failed(), answer(200), failed(), failed(), mismatch()]);
    let builder =
        ClientBuilder::new("https://acc.table.core.windows.net", Credential::token(provider)).unwrap();
    let builder = builder.transport(transport.clone()).environment(Arc::new(Fixed));
    let pipeline = builder.pipeline(&protocol::table::KIND).unwrap();
    pipeline.call(get()).await.unwrap();
    assert_eq!(pipeline.call(get()).await.unwrap_err().code(), Some("AuthenticationFailed"));
    // A missing role has nothing to do with the token.
    assert!(pipeline.call(get()).await.is_err());
    let sent: Vec<_> = transport.seen().iter().map(|seen| seen.headers["authorization"].clone()).collect();
    assert_eq!(sent, ["Bearer t1", "Bearer t2", "Bearer t2", "Bearer t3", "Bearer t3"]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_answers_is_given_up() {
    let never = || std::future::pending::<Result<crate::AccessToken, crate::TokenError>>();
    let transport = FakeTransport::new([]);
    let builder = ClientBuilder::new("https://acc.table.core.windows.net", Credential::token(never)).unwrap();
    let policy = RetryPolicy { attempts_max: 2, ..RetryPolicy::default() };
    let builder = builder.transport(transport.clone()).retry(policy).timeout(Duration::from_secs(5));
    let started = clock::instant();
    let error = builder.pipeline(&protocol::table::KIND).unwrap().call(insert()).await.unwrap_err();
    assert!(!error.is_outcome_unknown(), "{error}");
    assert!(clock::instant() - started < Duration::from_secs(11));
    assert!(transport.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn reads_are_repeated_with_growing_waits() {
    let replies = vec![answer(500), Reply::Lost, Reply::Unsent, answer(503), answer(200)];
    let (result, log) = run(get(), replies, |_| {}).await;
    assert_eq!(log, "p0 p100 p300 p700 p1500");
    assert!(result.unwrap().was_repeated);

    let (result, log) = run(get(), (0..9).map(|_| answer(502)).collect(), |_| {}).await;
    assert_eq!(
        (result.unwrap_err().status(), log.as_str()),
        (Some(StatusCode::BAD_GATEWAY), "p0 p100 p300 p700 p1500")
    );

    let (result, log) = run(get(), vec![Reply::Unsent, answer(200)], |_| {}).await;
    assert_eq!((result.unwrap().was_repeated, log.as_str()), (false, "p0 p100"));

    for status in [301, 302, 304, 307, 400, 403, 404, 409, 412, 501] {
        let (result, log) = run(get(), vec![answer(status)], |_| {}).await;
        assert_eq!((result.unwrap_err().status().unwrap().as_u16(), log.as_str()), (status, "p0"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_must_not_happen_twice_is_not_repeated_blindly() {
    for reply in [Reply::Lost, Reply::Stale, answer(500), answer(503), answer(504), Reply::Silent] {
        let (result, log) = run(insert(), vec![reply, answer(200)], |_| {}).await;
        assert!(result.unwrap_err().is_outcome_unknown());
        assert_eq!(log, "p0");
    }
    let busy = Reply::Answer(503, &[("x-ms-error-code", "ServerBusy")], String::new());
    let (result, log) = run(insert(), vec![Reply::Unsent, busy, answer(429), answer(204)], |_| {}).await;
    assert_eq!((result.unwrap().was_repeated, log.as_str()), (false, "p0 p100 p300 p700"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_attempt_is_not_forgotten_when_later_ones_fail_otherwise() {
    let replace = || Call::new(Method::PUT, "people(PartitionKey='a',RowKey='b')", Repeat::Freely);
    let busy = || Reply::Answer(503, &[("x-ms-error-code", "ServerBusy")], String::new());
    let check = async |replies: Vec<Reply>, is_unknown: bool| {
        let (result, log) = run(replace(), replies, |policy| policy.attempts_max = 2).await;
        let error = result.unwrap_err();
        assert_eq!(error.is_outcome_unknown(), is_unknown, "{error}: {log}");
    };
    check(vec![Reply::Lost, Reply::Unsent], true).await;
    check(vec![Reply::Silent, busy()], true).await;
    check(vec![answer(500), answer(429)], true).await;
    check(vec![Reply::Lost, answer(412)], true).await;
    check(vec![Reply::Unsent, Reply::Unsent], false).await;
    check(vec![busy(), Reply::Unsent], false).await;
    check(vec![Reply::Unsent, busy()], false).await;
    check(vec![Reply::Unsent, answer(412)], false).await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_is_no_reason_to_wait() {
    let (result, log) = run(get(), vec![Reply::Stale, answer(200)], |_| {}).await;
    assert_eq!((result.unwrap().was_repeated, log.as_str()), (true, "p0 p0"));
    let (_, log) = run(get(), vec![Reply::Stale, Reply::Stale, answer(200)], |_| {}).await;
    assert_eq!(log, "p0 p0 p100", "one that closes every connection is not well");
}

#[tokio::test(start_paused = true)]
async fn the_server_may_ask_for_a_longer_wait() {
    let asks = |value: &'static str| match value {
        "2" => Reply::Answer(503, &[("retry-after", "2")], String::new()),
        _ => Reply::Answer(429, &[("x-ms-retry-after-ms", "30")], String::new()),
    };
    let (_, log) = run(get(), vec![asks("2"), asks("30 ms"), answer(200)], |_| {}).await;
    assert_eq!(log, "p0 p2000 p2200");
    let (result, log) =
        run(get(), vec![asks("2"), answer(200)], |policy| policy.total_max = Duration::from_secs(1)).await;
    assert_eq!((result.unwrap_err().status().unwrap().as_u16(), log.as_str()), (503, "p0"));
}

#[tokio::test(start_paused = true)]
async fn attempts_and_all_of_them_together_take_a_bounded_time() {
    let silent = || (0..9).map(|_| Reply::Silent).collect();
    let (result, log) = run(get(), silent(), |policy| policy.attempts_max = 2).await;
    assert!(matches!(result, Err(Error::Timeout)));
    assert_eq!(log, "p0 p5100");
    let (_, log) = run(get(), silent(), |policy| policy.total_max = Duration::from_secs(11)).await;
    assert_eq!(log, "p0 p5100 p10300");
    let (_, log) = run(get(), silent(), |policy| *policy = RetryPolicy::never()).await;
    assert_eq!(log, "p0");
}

#[tokio::test(start_paused = true)]
async fn reads_alternate_with_the_secondary_on_demand() {
    let with_secondary = |policy: &mut RetryPolicy| policy.reads_secondary = true;
    let (_, log) = run(get(), (0..9).map(|_| answer(500)).collect(), with_secondary).await;
    assert_eq!(log, "p0 s0 p200 s200 p1000");
    // The secondary does not have it yet: the primary must say so.
    let (result, log) =
        run(get(), vec![answer(500), answer(404), answer(500), answer(200)], with_secondary).await;
    assert_eq!((result.is_ok(), log.as_str()), (true, "p0 s0 p0 p200"));
    let (_, log) = run(insert(), vec![Reply::Unsent, Reply::Unsent, answer(204)], with_secondary).await;
    assert_eq!(log, "p0 p100 p300", "writes do not");
    let fresh = Call { is_fresh: true, ..get() };
    let (_, log) = run(fresh, vec![answer(500), answer(500), answer(200)], with_secondary).await;
    assert_eq!(log, "p0 p100 p300", "nor do reads on which a write depends");
}

#[tokio::test(start_paused = true)]
async fn an_update_and_the_look_for_a_lost_insert_ask_the_primary_only() {
    let row = r#"{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r"}"#;
    let written = || Reply::Answer(204, &[("etag", "W/\"2\"")], String::new());
    let found = || Reply::Answer(200, &[], row.to_owned());
    let replies = [answer(500), found(), written(), Reply::Lost, answer(500), found()];
    let transport = FakeTransport::new(replies);
    let policy = RetryPolicy { reads_secondary: true, ..RetryPolicy::default() };
    let table = builder(EMULATOR, transport.clone()).retry(policy).tables().unwrap().table("people").unwrap();
    table.update("p", "r", |_: &mut crate::DynamicEntity| {}).await.unwrap();
    table.insert(&crate::DynamicEntity::new("p", "r")).await.unwrap();
    let seen = transport.seen();
    let methods: Vec<&str> = seen.iter().map(|seen| seen.method.as_str()).collect();
    assert_eq!(methods, ["GET", "GET", "PUT", "POST", "GET", "GET"]);
    assert!(seen.iter().all(|seen| !seen.url.contains("-secondary")));
}

#[tokio::test(start_paused = true)]
async fn an_insert_as_a_whole_keeps_to_the_policy() {
    let missing = || Reply::Answer(404, &[("x-ms-error-code", "ResourceNotFound")], String::new());
    let check = async |round: &dyn Fn() -> Vec<Reply>, total: u64, expected: &str| {
        let transport = FakeTransport::new((0..9).flat_map(|_| round()));
        let policy = RetryPolicy {
            attempts_max: 3,
            delay_first: Duration::from_millis(100),
            total_max: Duration::from_millis(total),
            ..RetryPolicy::default()
        };
        let builder = builder(EMULATOR, transport.clone()).retry(policy);
        let table = builder.tables().unwrap().table("people").unwrap();
        let error = table.insert(&crate::DynamicEntity::new("p", "r")).await.unwrap_err();
        assert!(error.is_outcome_unknown(), "{error}");
        let log = transport
            .seen()
            .iter()
            .map(|seen| format!("{}{}", seen.method, seen.at.as_millis()))
            .collect::<Vec<_>>();
        assert_eq!(log.join(" "), expected);
    };
    // Every attempt counts, whether it was lost or could not be sent.
    check(&|| vec![Reply::Lost, missing()], 10_000, "POST0 GET0 POST100 GET100 POST300 GET300").await;
    check(&|| vec![Reply::Lost, missing(), Reply::Unsent], 10_000, "POST0 GET0 POST100 POST300 GET300").await;
    // And so does all their time, that of the looks included.
    check(&|| vec![Reply::Lost, missing()], 250, "POST0 GET0 POST100 GET100").await;
    check(&|| vec![Reply::Lost, answer(500)], 50, "POST0 GET0").await;
}

#[tokio::test(start_paused = true)]
async fn a_secondary_path_is_signed_as_it_is_sent() {
    let transport = FakeTransport::new([]);
    let pipeline = pipeline(&protocol::table::KIND, transport.clone());
    pipeline.call_secondary(get()).await.unwrap();
    let seen = &transport.seen()[0];
    assert!(
        seen.url.starts_with("http://127.0.0.1:10002/devstoreaccount1-secondary/people("),
        "{}",
        seen.url
    );
    let text = "GET\n\n\nTue, 21 Sep 2021 00:50:22 GMT\n/devstoreaccount1/devstoreaccount1-secondary/people(PartitionKey='a',RowKey='b%20c')";
    let signature = testkit::signature(testkit::EMULATOR_KEY, text);
    assert_eq!(seen.headers["authorization"], format!("SharedKey devstoreaccount1:{signature}"));
}

#[tokio::test(start_paused = true)]
async fn without_a_replica_nobody_is_asked_for_its_state() {
    let transport = FakeTransport::new([]);
    let connection = "AccountName=a;AccountKey=a2V5;TableEndpoint=https://example.com";
    let tables = builder(connection, transport.clone()).tables().unwrap();
    let error = tables.stats().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "configuration: nothing tells where the replica of https://example.com is: name it with \
         ClientBuilder::secondary_endpoint, or in the connection string with TableSecondaryEndpoint"
    );
    assert!(transport.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_attempt_has_the_same_id() {
    let transport = FakeTransport::new([answer(500), answer(500)]);
    pipeline(&protocol::table::KIND, transport.clone()).call(get()).await.unwrap();
    let ids: Vec<_> =
        transport.seen().iter().map(|seen| seen.headers["x-ms-client-request-id"].clone()).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]));
}

#[tokio::test(start_paused = true)]
async fn values_that_no_request_can_have_are_refused() {
    let transport = FakeTransport::new([]);
    let pipeline = pipeline(&protocol::table::KIND, transport.clone());
    let mut call = get();
    call.headers.push((HeaderName::from_static("if-match"), "a\nb".to_owned()));
    assert!(matches!(pipeline.call(call).await, Err(Error::Refused(_))));
    let call = Call::new(Method::GET, "a b", Repeat::Freely);
    assert!(matches!(pipeline.call(call).await, Err(Error::Refused(_))));
    assert!(transport.seen().is_empty());
}

#[test]
fn the_url_of_a_resource_is_told_from_that_of_its_service() {
    use crate::{QueueClient, QueueServiceClient, TableClient, TableServiceClient};
    const SAS: &str = "sv=2019-02-02&sp=r&se=2030-01-01&sig=c2VjcmV0";
    let table = |path: &str| {
        let url = format!("{path}?tn=people&{SAS}");
        let table = TableClient::from_sas_url(&url).unwrap();
        (
            table.inner.address.to_string(),
            TableServiceClient::from_sas_url(&url).map(|tables| tables.endpoint()).ok(),
        )
    };
    let azure = "https://acc.table.core.windows.net";
    let emulator = "http://127.0.0.1:10002/acc";
    let own = "https://tables.example.com";
    for service in [azure, emulator, own] {
        let resource = format!("{service}/people");
        assert_eq!(table(&resource), (resource.clone(), None));
        assert_eq!(table(&format!("{service}/")), (resource.clone(), Some(service.to_owned())));
        assert!(QueueClient::from_sas_url(&format!("{service}?{SAS}")).is_err());
    }
    assert_eq!(TableServiceClient::from_sas_url(&format!("{azure}?{SAS}")).unwrap().endpoint(), azure);
    assert!(TableClient::from_sas_url(&format!("{azure}?{SAS}")).is_err());

    let queue =
        |url: &str| QueueClient::from_sas_url(&format!("{url}?{SAS}")).map(|queue| queue.name().to_owned());
    assert_eq!(queue("https://acc.queue.core.windows.net/orders").unwrap(), "orders");
    assert_eq!(queue("http://127.0.0.1:10001/acc/orders").unwrap(), "orders");
    let error =
        QueueServiceClient::from_sas_url(&format!("http://127.0.0.1:10001/acc/orders?{SAS}")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "configuration: the URL is not that of a service, but of \"orders\" in it: take TableClient::from_sas_url or \
         QueueClient::from_sas_url, or leave the name out of the URL"
    );
}

#[tokio::test(start_paused = true)]
async fn a_404_of_nobody_knows_whom_is_no_missing_row() {
    let code = |code: &'static [(&'static str, &'static str)]| Reply::Answer(404, code, String::new());
    let transport = FakeTransport::new([
        answer(404),
        code(&[("x-ms-error-code", "TableNotFound")]),
        code(&[("x-ms-error-code", "ResourceNotFound")]),
        code(&[("x-ms-error-code", "EntityNotFound")]),
        answer(404),
    ]);
    let tables = builder(EMULATOR, transport).tables().unwrap();
    let table = tables.table("people").unwrap();
    assert!(table.exists("p", "r").await.unwrap_err().is_not_found());
    assert!(table.exists("p", "r").await.unwrap_err().is_not_found());
    assert!(!table.exists("p", "r").await.unwrap());
    assert!(!table.exists("p", "r").await.unwrap());
    assert!(tables.delete_table_if_present("people").await.unwrap_err().is_not_found());
}

#[test]
fn nothing_printed_holds_a_secret() {
    let key = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0";
    let builder =
        ClientBuilder::from_connection_string(&format!("AccountName=acc;AccountKey={key}")).unwrap();
    let builder = builder.http(HttpOptions::default());
    let pipeline = builder.pipeline(&protocol::table::KIND).unwrap();
    let sas = ClientBuilder::from_sas_url("https://acc.table.core.windows.net/?sv=2019-02-02&sig=c2VjcmV0")
        .unwrap();
    let printed = format!("{builder:?} {pipeline:?} {sas:?} {:?}", builder.tables().unwrap());
    assert!(!printed.contains("c2VjcmV0"), "{printed}");
    assert!(printed.contains("acc.table.core.windows.net"), "{printed}");
}

#[test]
fn texts_are_escaped_for_urls() {
    let escaped = |text: &str| {
        let mut out = String::new();
        push_escaped(text, &mut out);
        out
    };
    assert_eq!(escaped("Az09-._~"), "Az09-._~");
    assert_eq!(escaped("a b+c%/é\u{1F600}'"), "a%20b%2Bc%25%2F%C3%A9%F0%9F%98%80%27");
    assert_eq!(escaped(""), "");
}
