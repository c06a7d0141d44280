//! Reads that are proven by the leader's key in etcd, on a real cluster: three nodes, Patroni, etcd. What is given out
//! is neither old nor missing on the standby.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::conformance::FAMILIES;
use engine::env::SystemClock;
use engine::keys::Key;
use engine::{Commit, Effect, Engine, Expect, Family, Namespace, Op, TableId};
use engine_postgres::{PostgresEngine, PostgresOptions};
use testkit::Stopwatch;
use testkit::cluster::{Cluster, NODE_COUNT, Place};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// One cluster at a time: two of them starve each other on a small machine, and then fail over for that.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

const WHOLE_TIMEOUT: Duration = Duration::from_secs(90);

fn cluster_or_skip(test: &str) -> Option<Cluster> {
    match Cluster::start(Place::Loopback) {
        Ok(cluster) => Some(cluster),
        Err(reason) => {
            assert!(std::env::var_os("LAZULITE_TEST_POSTGRES").is_none(), "{reason}");
            println!("SKIPPED {test}: {reason}");
            None
        }
    }
}

/// Patroni's agents tell where the leader is; etcd proves it.
fn url(cluster: &Cluster, has_etcd: bool) -> String {
    let agents: Vec<String> = cluster.rest_addrs().iter().map(|addr| format!("http://{addr}")).collect();
    let url = format!("{}?patroni={}", cluster.url(), agents.join(","));
    match has_etcd {
        true => format!("{url}&etcd=http://{}{}", cluster.etcd_addr(), cluster.keys_path()),
        false => url,
    }
}

async fn front_end(url: &str, deadline: Duration) -> Arc<PostgresEngine> {
    let mut options = PostgresOptions::new(url, FAMILIES, Arc::new(SystemClock::new()));
    options.deadline = deadline;
    Arc::new(PostgresEngine::connect(options).await.unwrap())
}

async fn table(engine: &PostgresEngine) -> TableId {
    engine.create_table(Namespace::new(Family::FIRST, "lease"), "t", Bytes::new()).await.unwrap()
}

fn put(table: TableId, row: &str, number: u64) -> Commit {
    let effect = Effect::Put(number.to_string().into());
    Commit::one(table, "p", Op { row: row.into(), expect: Expect::Any, effect })
}

async fn read(engine: &PostgresEngine, table: TableId, row: &str) -> Option<u64> {
    let row = engine.get(table, Key { partition: "p", row }).await.unwrap()?;
    Some(std::str::from_utf8(&row.value).unwrap().parse().unwrap())
}

/// How far the leader's log is: a read that is proven by a barrier writes into it, one that is proven by the key does
/// not.
fn log_bytes(cluster: &Cluster, leader: usize) -> u64 {
    cluster.sql(leader, "SELECT pg_current_wal_insert_lsn() - '0/0'").unwrap().parse().unwrap()
}

/// The bytes that a hundred reads write into the log, one after the other.
async fn bytes_of_reads(cluster: &Cluster, leader: usize, engine: &PostgresEngine, table: TableId) -> u64 {
    let before = log_bytes(cluster, leader);
    for _ in 0..100 {
        read(engine, table, "r").await.unwrap();
    }
    log_bytes(cluster, leader) - before
}

/// Reads until the key counts: it is seen, and each session has its barrier.
async fn warm_up(cluster: &Cluster, leader: usize, engine: &PostgresEngine, table: TableId) {
    let watch = Stopwatch::start();
    while bytes_of_reads(cluster, leader, engine, table).await > 4_000 {
        assert!(watch.elapsed() < Duration::from_secs(20), "the key never counts");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_leader_that_was_replaced_while_its_agent_was_frozen_gives_out_nothing_old() {
    let name = "a_leader_that_was_replaced_while_its_agent_was_frozen_gives_out_nothing_old";
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = cluster_or_skip(name) else { return };
    let old = cluster.leader().unwrap();
    // A commit at the old leader waits for its standby until then.
    let deadline = Duration::from_secs(6);
    let with_key = front_end(&url(&cluster, true), deadline).await;
    let without = front_end(&url(&cluster, false), deadline).await;
    let table = table(&with_key).await;
    with_key.commit(put(table, "r", 0)).await.unwrap();
    read(&without, table, "r").await.unwrap();
    warm_up(&cluster, old, &with_key, table).await;
    let barriers = bytes_of_reads(&cluster, old, &without, table).await;
    assert!(barriers > 8_000, "without etcd every read has a barrier: {barriers} bytes");

    // One writer, several readers. What was acknowledged when a read began must be in its answer.
    let (acknowledged, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = {
        let (engine, acknowledged, is_over) = (without.clone(), acknowledged.clone(), is_over.clone());
        tokio::spawn(async move {
            for number in 1.. {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                // A commit whose outcome is unknown may have happened or not; it is no acknowledgement.
                if engine.commit(put(table, "r", number)).await.is_ok() {
                    acknowledged.store(number, Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
    };
    let readers: Vec<JoinHandle<u64>> = (0..3)
        .map(|_| {
            let (engine, acknowledged, is_over) = (with_key.clone(), acknowledged.clone(), is_over.clone());
            tokio::spawn(async move {
                let mut count = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let floor = acknowledged.load(Ordering::SeqCst);
                    let Ok(row) = engine.get(table, Key { partition: "p", row: "r" }).await else { continue };
                    let number: u64 = std::str::from_utf8(&row.unwrap().value).unwrap().parse().unwrap();
                    assert!(number >= floor, "read {number} after {floor} was acknowledged");
                    count += 1;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                count
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.freeze_agent(old);
    let new = cluster.wait_for_leader(&[old], WHOLE_TIMEOUT).unwrap();
    let at_change = acknowledged.load(Ordering::SeqCst);
    let watch = Stopwatch::start();
    while acknowledged.load(Ordering::SeqCst) < at_change + 100 {
        assert!(watch.elapsed() < WHOLE_TIMEOUT, "nobody takes writes");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The danger is real: the old leader still answers, and what it answers is old.
    let by_old: u64 = value_at(&cluster, old);
    assert!(by_old <= at_change + 1, "the old leader has {by_old}");
    assert!(value_at(&cluster, new) >= at_change + 100);
    is_over.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    let mut read_count = 0;
    for reader in readers {
        read_count += reader.await.unwrap();
    }
    let last = acknowledged.load(Ordering::SeqCst);
    println!(
        "{read_count} reads beside {last} acknowledged writes, the last by another leader; none was old"
    );
    assert!(read(&with_key, table, "r").await.unwrap() >= last);

    // The new leader's key counts too, and the old one comes back as a standby.
    cluster.thaw(old);
    cluster.wait_until_whole(WHOLE_TIMEOUT).unwrap();
    let leader = cluster.leader().unwrap();
    warm_up(&cluster, leader, &with_key, table).await;
}

/// As the server itself sees it, without an engine.
fn value_at(cluster: &Cluster, node: usize) -> u64 {
    let sql = "SELECT convert_from(body, 'UTF8') FROM lazulite.rows WHERE body::text ~ '^.x3[0-9]' \
               AND octet_length(body) < 9 ORDER BY version DESC LIMIT 1";
    cluster.sql(node, sql).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_only_the_leader_has_is_not_given_out_whatever_the_key_says() {
    let name = "what_only_the_leader_has_is_not_given_out_whatever_the_key_says";
    let _one = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = cluster_or_skip(name) else { return };
    let leader = cluster.leader().unwrap();
    let standbys: Vec<usize> = (0..NODE_COUNT).filter(|node| *node != leader).collect();
    let engine = front_end(&url(&cluster, true), Duration::from_secs(60)).await;
    let table = table(&engine).await;
    for (row, fault) in [("r", Fault::Cancel), ("s", Fault::Crash)] {
        engine.commit(put(table, "r", 1)).await.unwrap();
        engine.commit(put(table, row, 1)).await.unwrap();
        warm_up(&cluster, leader, &engine, table).await;
        for standby in &standbys {
            cluster.freeze(*standby);
        }
        // With nobody to wait for, the key alone answers.
        assert_eq!(read(&engine, table, row).await, Some(1), "{fault:?}");
        let committing = {
            let engine = engine.clone();
            tokio::spawn(async move { engine.commit(put(table, row, 2)).await })
        };
        let waiting = "SELECT coalesce(min(pid), 0) FROM pg_stat_activity WHERE wait_event = 'SyncRep' \
                       AND query ~ 'INSERT|UPDATE'";
        let mut pid = "0".to_owned();
        while pid == "0" {
            tokio::time::sleep(Duration::from_millis(20)).await;
            pid = cluster.sql(leader, waiting).unwrap();
        }
        assert_eq!(read(&engine, table, row).await, Some(1), "{fault:?}: it waits, so nobody sees it");
        match fault {
            Fault::Cancel => drop(cluster.sql(leader, &format!("SELECT pg_cancel_backend({pid})")).unwrap()),
            Fault::Crash => {
                let killed = std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
                assert!(killed.success());
            }
        }
        // The leader now shows the row, and no standby has it.
        let watch = Stopwatch::start();
        while cluster.sql(leader, "SELECT count(*) FROM lazulite.rows WHERE body = '2'").ok().as_deref()
            != Some("1")
        {
            assert!(watch.elapsed() < WHOLE_TIMEOUT, "{fault:?}: the row is not shown");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let reading = {
            let engine = engine.clone();
            tokio::spawn(async move { read(&engine, table, row).await })
        };
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        assert!(!reading.is_finished(), "{fault:?}: given out although no standby has it");
        assert!(!committing.is_finished(), "{fault:?}: acknowledged although no standby has it");
        assert_eq!(cluster.leader(), Some(leader), "{fault:?}: the key is still held");
        for standby in &standbys {
            cluster.thaw(*standby);
        }
        assert_eq!(reading.await.unwrap(), Some(2), "{fault:?}");
        committing.await.unwrap().unwrap();
        cluster.wait_until_whole(WHOLE_TIMEOUT).unwrap();
        assert_eq!(cluster.leader(), Some(leader), "{fault:?}");
        engine.commit(put(table, row, 3)).await.unwrap();
    }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Somebody cancels the wait for the standby.
    Cancel,
    /// A process of the server dies, so the server recovers from its log, within the same run.
    Crash,
}
