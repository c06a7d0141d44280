//! Connections that end at the worst moment, servers that do not answer, waits that are cancelled: what is answered
//! is true.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::conformance::FAMILIES;
use engine::env::SystemClock;
use engine::keys::{Key, KeyRange};
use engine::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Family, Flow, Health, Namespace, Op, ReadError,
    Sink, TableId, TablePath, TableRows, Version,
};
use engine_postgres::PostgresEngine;
use testkit::{Postgres, Stopwatch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use support::{Database, or_skip, postgres_or_skip};

const SPACE: Namespace<'static> = Namespace::new(Family::FIRST, "faults");

/// What the proxy does to the next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Fault {
    None = 0,
    /// The server gets it; its answer never arrives, and the connection ends.
    CutAfter = 1,
    /// The server does not get it, and the connection ends.
    CutBefore = 2,
    /// The server gets it, and its answer never arrives. When the client hangs up, the server is told.
    Stall = 3,
    /// The same, but the server is never told that the client has gone.
    StallForEver = 4,
}

/// Stands between an engine and its server.
struct Proxy {
    port: u16,
    fault: Arc<AtomicU8>,
    /// New connections are not accepted by anybody.
    is_down: Arc<AtomicBool>,
}

impl Proxy {
    async fn start(server: &Postgres) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (port, target) = (listener.local_addr().unwrap().port(), server.port());
        let fault = Arc::new(AtomicU8::new(Fault::None as u8));
        let is_down = Arc::new(AtomicBool::new(false));
        let (armed, refuses) = (fault.clone(), is_down.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if refuses.load(Ordering::SeqCst) {
                    continue;
                }
                let armed = armed.clone();
                tokio::spawn(async move {
                    let Ok(upstream) = TcpStream::connect(("127.0.0.1", target)).await else { return };
                    pass(client, upstream, armed).await;
                });
            }
        });
        Proxy { port, fault, is_down }
    }

    /// For the next request that any connection sends.
    fn arm(&self, fault: Fault) {
        self.fault.store(fault as u8, Ordering::SeqCst);
    }
}

async fn pass(mut client: TcpStream, mut upstream: TcpStream, armed: Arc<AtomicU8>) {
    let (mut from_client, mut from_server) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(count @ 1..) = read else { return };
                let fault = armed.swap(Fault::None as u8, Ordering::SeqCst);
                if fault == Fault::CutBefore as u8 {
                    return;
                }
                if upstream.write_all(&from_client[..count]).await.is_err() {
                    return;
                }
                if fault == Fault::CutAfter as u8 {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    return;
                }
                if fault == Fault::Stall as u8 {
                    while !matches!(client.read(&mut from_client).await, Ok(0) | Err(_)) {}
                    return;
                }
                if fault == Fault::StallForEver as u8 {
                    std::future::pending::<()>().await;
                }
            }
            read = upstream.read(&mut from_server) => {
                let Ok(count @ 1..) = read else { return };
                if client.write_all(&from_server[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

struct Setting {
    proxy: Proxy,
    engine: PostgresEngine,
    /// Sees the same rows without the proxy.
    other: PostgresEngine,
    table: TableId,
}

async fn setting(server: &Postgres, deadline: Duration) -> Setting {
    let proxy = Proxy::start(server).await;
    let database = Database::fresh(server);
    let clock = Arc::new(SystemClock::new());
    let other = PostgresEngine::connect(database.options(FAMILIES, clock.clone())).await.unwrap();
    let mut options = database.options(FAMILIES, clock);
    options.url = server.url_at(proxy.port);
    options.deadline = deadline;
    let engine = PostgresEngine::connect(options).await.unwrap();
    let table = engine.create_table(SPACE, "t", Bytes::new()).await.unwrap();
    Setting { proxy, engine, other, table }
}

impl Setting {
    fn one(&self, row: &str, expect: Expect, effect: Effect) -> Commit {
        Commit::one(self.table, "p", Op { row: row.into(), expect, effect })
    }

    async fn put(&self, row: &str) -> Version {
        self.engine.commit(self.one(row, Expect::Any, put("old"))).await.unwrap()
    }

    async fn commit(&self, fault: Fault, commit: Commit) -> Result<Version, CommitError> {
        // A session that is open already, so that the fault meets the commit and not a handshake.
        self.put("warm").await;
        self.proxy.arm(fault);
        let outcome = self.engine.commit(commit).await;
        assert_eq!(self.proxy.fault.load(Ordering::SeqCst), Fault::None as u8, "the fault met nothing");
        outcome
    }

    async fn row(&self, row: &str) -> Option<(Version, Vec<u8>)> {
        let row = self.other.get(self.table, Key { partition: "p", row }).await.unwrap();
        row.map(|row| (row.version, row.value.to_vec()))
    }
}

fn put(value: &str) -> Effect {
    Effect::Put(Bytes::copy_from_slice(value.as_bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_whose_answer_was_lost_is_answered_as_what_it_did() {
    let Some(server) = postgres_or_skip("a_commit_whose_answer_was_lost_is_answered_as_what_it_did") else {
        return;
    };
    let s = setting(&server, Duration::from_secs(10)).await;
    let inserted = s.commit(Fault::CutAfter, s.one("insert", Expect::Absent, put("new"))).await.unwrap();
    assert_eq!(s.row("insert").await, Some((inserted, b"new".to_vec())));
    let old = s.put("update").await;
    let updated = s.commit(Fault::CutAfter, s.one("update", Expect::Exactly(old), put("new"))).await.unwrap();
    assert!(updated > old);
    assert_eq!(s.row("update").await, Some((updated, b"new".to_vec())));
    s.put("merge").await;
    // The read comes first, and a read is repeated.
    let merged =
        s.commit(Fault::CutAfter, s.one("merge", Expect::Present, Effect::Merge("+".into()))).await.unwrap();
    assert_eq!(s.row("merge").await, Some((merged, b"old+".to_vec())));
    let ops = ["a", "b", "c"].map(|row| Op { row: row.into(), expect: Expect::Absent, effect: put("new") });
    let batch = Commit { table: s.table, partition: "p".into(), ops: ops.to_vec() };
    let version = s.commit(Fault::CutAfter, batch).await.unwrap();
    assert_eq!(s.row("c").await, Some((version, b"new".to_vec())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_did_not_arrive_is_sent_again_only_if_that_is_certain() {
    let Some(server) = postgres_or_skip("a_commit_that_did_not_arrive_is_sent_again_only_if_that_is_certain")
    else {
        return;
    };
    let s = setting(&server, Duration::from_secs(10)).await;
    let old = s.put("exact").await;
    let version = s.commit(Fault::CutBefore, s.one("exact", Expect::Exactly(old), put("new"))).await.unwrap();
    assert_eq!(s.row("exact").await, Some((version, b"new".to_vec())));
    s.put("any").await;
    let version = s.commit(Fault::CutBefore, s.one("any", Expect::Any, put("new"))).await.unwrap();
    assert_eq!(s.row("any").await, Some((version, b"new".to_vec())));
    // The row is absent: perhaps it was never there, perhaps it was put and deleted by somebody else.
    let outcome = s.commit(Fault::CutBefore, s.one("absent", Expect::Absent, put("new"))).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    assert_eq!(s.row("absent").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_of_the_catalogue_whose_answer_was_lost_is_answered_as_what_it_did() {
    let name = "a_change_of_the_catalogue_whose_answer_was_lost_is_answered_as_what_it_did";
    let Some(server) = postgres_or_skip(name) else { return };
    let s = setting(&server, Duration::from_secs(10)).await;
    s.put("warm").await;
    s.proxy.arm(Fault::CutAfter);
    let id = s.engine.create_table(SPACE, "second", "payload".into()).await.unwrap();
    s.put("warm").await;
    s.proxy.arm(Fault::CutAfter);
    let path = TablePath::new(SPACE, "second");
    let fresh = s.engine.replace_table(path, Expect::Present, "2".into(), TableRows::Drop).await.unwrap();
    assert!(fresh > id);
    let renamed = TablePath::new(SPACE, "third");
    s.put("warm").await;
    s.proxy.arm(Fault::CutAfter);
    assert_eq!(s.engine.rename_table(path, renamed, "3".into()).await, Ok(fresh));
    s.put("warm").await;
    s.proxy.arm(Fault::CutAfter);
    assert_eq!(s.engine.drop_table(SPACE, "third").await, Ok(fresh));
    // The list of dropped tables proves that this one did not arrive, so it is sent again.
    let last = s.other.create_table(SPACE, "fourth", Bytes::new()).await.unwrap();
    s.put("warm").await;
    s.proxy.arm(Fault::CutBefore);
    assert_eq!(s.engine.drop_table(SPACE, "fourth").await, Ok(last));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_does_not_answer_costs_its_deadline() {
    let Some(server) = postgres_or_skip("a_server_that_does_not_answer_costs_its_deadline") else { return };
    let s = setting(&server, Duration::from_secs(2)).await;
    // Its sessions are open already, so that the deadline is not spent on opening them.
    s.engine.get(s.table, Key { partition: "p", row: "a" }).await.unwrap();
    // The connection is given up at the deadline, and another one knows what happened.
    let version = s.commit(Fault::Stall, s.one("a", Expect::Absent, put("new"))).await.unwrap();
    assert_eq!(s.row("a").await, Some((version, b"new".to_vec())));
    // As long as the server runs the old session, nobody can know.
    let watch = Stopwatch::start();
    let outcome = s.commit(Fault::StallForEver, s.one("b", Expect::Absent, put("new"))).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    assert!(watch.elapsed() < Duration::from_secs(10), "{:?}", watch.elapsed());
    // Reads go on through another connection.
    s.put("warm").await;
    s.engine.get(s.table, Key { partition: "p", row: "a" }).await.unwrap();
    s.proxy.arm(Fault::CutBefore);
    assert!(s.engine.get(s.table, Key { partition: "p", row: "a" }).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancelled_wait_for_the_standby_is_no_success_yet() {
    let started = or_skip("a_cancelled_wait_for_the_standby_is_no_success_yet", Postgres::start());
    let Some(server) = started else { return };
    let s = Arc::new(setting(&server, Duration::from_secs(20)).await);
    s.put("warm").await;
    let configure = |standbys: &str| {
        let sql = format!("ALTER SYSTEM SET synchronous_standby_names = '{standbys}'");
        server.sql(&sql).unwrap();
        server.sql("SELECT pg_reload_conf()").unwrap();
    };
    configure("nobody");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let waiting = "SELECT coalesce(min(pid), 0) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let committing = {
        let s = s.clone();
        tokio::spawn(async move { s.engine.commit(s.one("r", Expect::Absent, put("v"))).await })
    };
    let mut pid = "0".to_owned();
    while pid == "0" {
        tokio::time::sleep(Duration::from_millis(20)).await;
        pid = server.sql(waiting).unwrap();
    }
    // The server now reports success. The commit is not on any standby.
    for _ in 0..2 {
        server.sql(&format!("SELECT pg_cancel_backend({pid})")).unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!committing.is_finished(), "acknowledged without a standby");
    }
    configure("");
    let version = committing.await.unwrap().unwrap();
    assert_eq!(s.row("r").await, Some((version, b"v".to_vec())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_no_standby_follows_gives_out_nothing_that_it_read() {
    let started =
        or_skip("a_server_that_no_standby_follows_gives_out_nothing_that_it_read", Postgres::start());
    let Some(server) = started else { return };
    let s = Arc::new(setting(&server, Duration::from_secs(30)).await);
    let version = s.put("r").await;
    assert_eq!(s.row("r").await.map(|row| row.0), Some(version));
    server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").unwrap();
    server.sql("SELECT pg_reload_conf()").unwrap();
    // For a second after it was asked, a server without standbys counts as one that nobody can replace.
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    let exactly = Expect::Exactly(Version::new(1).unwrap());
    let present = s.one("nowhere", Expect::Present, Effect::Merge("+".into()));
    let (wrong, refused) = (s.one("r", exactly, put("new")), s.one("nowhere", Expect::Present, put("new")));
    let absent = ["r", "x"].map(|row| Op { row: row.into(), expect: Expect::Absent, effect: put("new") });
    let batch = Commit { table: s.table, partition: "p".into(), ops: absent.to_vec() };
    let mut refusals = Vec::new();
    for commit in [wrong, refused, present, batch] {
        let s = s.clone();
        refusals.push(tokio::spawn(async move { s.engine.commit(commit).await }));
    }
    let (of_get, of_scan, of_create) = (s.clone(), s.clone(), s.clone());
    let get = tokio::spawn(async move { of_get.engine.get(of_get.table, Key::new("p", "r")).await });
    let scan = tokio::spawn(async move {
        let mut rows = Rows(0);
        let share = engine::Share::COMMON;
        let budget = Budget { rows_examined_max: 10, time_max: Duration::from_secs(60), share };
        of_scan.engine.scan(of_scan.table, &[KeyRange::all()], budget, &mut rows).await.map(|_| rows.0)
    });
    let create = tokio::spawn(async move { of_create.engine.create_table(SPACE, "t", Bytes::new()).await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!get.is_finished() && !scan.is_finished() && !create.is_finished(), "answered without a proof");
    assert!(refusals.iter().all(|refusal| !refusal.is_finished()), "refused without a proof");
    server.sql("ALTER SYSTEM SET synchronous_standby_names = ''").unwrap();
    server.sql("SELECT pg_reload_conf()").unwrap();
    assert_eq!(get.await.unwrap().unwrap().map(|row| row.version), Some(version));
    assert_eq!(scan.await.unwrap(), Ok(1));
    assert!(matches!(create.await.unwrap(), Err(CommitError::Precondition { .. })));
    for refusal in refusals {
        let refusal = refusal.await.unwrap();
        assert!(matches!(refusal, Err(CommitError::Precondition { .. })), "{refusal:?}");
    }
}

struct Rows(usize);

impl Sink for Rows {
    fn row(&mut self, _: Key<'_>, _: Version, _: &[u8]) -> Flow {
        self.0 += 1;
        Flow::Continue
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_wait_for_a_leader_until_their_deadline() {
    let Some(server) = postgres_or_skip("requests_wait_for_a_leader_until_their_deadline") else { return };
    let s = Arc::new(setting(&server, Duration::from_secs(3)).await);
    let version = s.put("r").await;
    assert_eq!(s.engine.gauges().health, Health::Ready);
    s.proxy.is_down.store(true, Ordering::SeqCst);
    s.proxy.arm(Fault::CutBefore);
    let reading = {
        let s = s.clone();
        tokio::spawn(async move { s.engine.get(s.table, Key::new("p", "r")).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!reading.is_finished());
    assert_eq!(s.engine.gauges().health, Health::NoLeader);
    s.proxy.is_down.store(false, Ordering::SeqCst);
    assert_eq!(reading.await.unwrap().unwrap().map(|row| row.version), Some(version));
    assert_eq!(s.engine.gauges().health, Health::Ready);
    // Without one, the deadline ends it.
    s.proxy.is_down.store(true, Ordering::SeqCst);
    s.proxy.arm(Fault::CutBefore);
    let watch = Stopwatch::start();
    assert_eq!(s.engine.get(s.table, Key::new("p", "r")).await.err(), Some(ReadError::Busy));
    assert!(watch.elapsed() < Duration::from_secs(8), "{:?}", watch.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn acknowledged_rows_survive_a_crash_and_the_engine_finds_the_server_again() {
    let started =
        or_skip("acknowledged_rows_survive_a_crash_and_the_engine_finds_the_server_again", Postgres::start());
    let Some(mut server) = started else { return };
    let s = setting(&server, Duration::from_secs(10)).await;
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        for n in 0..20 {
            let row = format!("{round}.{n}");
            let version = s.engine.commit(s.one(&row, Expect::Absent, put("v"))).await.unwrap();
            acknowledged.push((row, version));
        }
        server.crash_and_restart().unwrap();
    }
    // The sessions ended with the server; the first call after that may be the one that notices.
    let last = acknowledged.last().unwrap().1;
    for (row, version) in acknowledged {
        assert_eq!(s.row(&row).await, Some((version, b"v".to_vec())));
    }
    assert!(s.put("after").await > last, "versions grow across a crash");
}
