//! The cluster helper: it starts, fails over, and ends with everything that it had started.

#![cfg(target_os = "linux")]

use std::time::Duration;

use testkit::Stopwatch;
use testkit::cluster::{Cluster, NODE_COUNT, Place};

/// Set by `cargo xtask scale-out`.
const WANTED: &str = "LAZULITE_TEST_CLUSTER";

#[test]
fn a_cluster_fails_over() {
    if std::env::var_os(WANTED).is_none() {
        println!(
            "SKIPPED: it takes a minute; the gate's trial scale-out shows the same, `cargo xtask scale-out` runs it"
        );
        return;
    }
    let watch = Stopwatch::start();
    let mut cluster = match Cluster::start(Place::Loopback) {
        Ok(cluster) => cluster,
        Err(reason) => {
            println!("SKIPPED: {reason}");
            return;
        }
    };
    println!("started after {:?}", watch.elapsed());
    let leader = cluster.leader().unwrap();
    cluster.sql(leader, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();
    let watch = Stopwatch::start();
    cluster.kill(leader);
    let next = cluster.wait_for_leader(&[leader], Duration::from_secs(60)).unwrap();
    println!("a new leader after {:?}", watch.elapsed());
    assert_eq!(cluster.sql(next, "SELECT n FROM t").unwrap(), "1");
    cluster.revive(leader).unwrap();
    cluster.wait_until_whole(Duration::from_secs(60)).unwrap();
    println!("whole after {:?}", watch.elapsed());

    cluster.freeze(next);
    let third = cluster.wait_for_leader(&[next], Duration::from_secs(60)).unwrap();
    cluster.thaw(next);
    cluster.wait_until_whole(Duration::from_secs(60)).unwrap();
    assert_eq!(cluster.leader(), Some(third));
    println!("frozen, thawed and whole after {:?}", watch.elapsed());

    let ports: Vec<_> = (0..NODE_COUNT).map(|node| cluster.addr(node)).chain(cluster.rest_addrs()).collect();
    drop(cluster);
    for port in ports {
        assert!(std::net::TcpStream::connect(port).is_err(), "{port} still answers");
    }
}
