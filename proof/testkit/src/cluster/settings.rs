//! What the programs of a cluster are told: Patroni's file for each node, and etcd's arguments.
//!
//! Promises: the shortest times that Patroni 3.0 accepts, a synchronous standby for every commit or no commit at all,
//! and nodes that come back by themselves after any fault.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;

use super::{PASSWORD, USER};

pub(super) const NODE_PREFIX: &str = "node";
/// Where Patroni's keys are in etcd: below `/NAMESPACE/SCOPE`.
pub(super) const NAMESPACE: &str = "lazulite";
pub(super) const SCOPE: &str = "tests";
/// How long a leader may be silent before another node takes over. Patroni 3.1 and later insist on at least 20.
const TTL_S: u32 = 6;
const LOOP_S: u32 = 1;
/// `LOOP_S + 2 * RETRY_S` must not exceed `TTL_S`, or a leader without etcd would lead for longer than its key lives.
const RETRY_S: u32 = 2;
/// Sessions that wait for a frozen standby stay until it goes on, while front ends open new ones.
const CONNECTION_COUNT_MAX: u32 = 400;

pub(super) struct NodeSettings<'a> {
    pub node: usize,
    pub directory: &'a Path,
    pub programs: &'a Path,
    pub etcd: SocketAddr,
    pub postgres_listens: SocketAddr,
    pub postgres_for_peers: SocketAddr,
    pub rest_listens: SocketAddr,
    pub rest_for_peers: SocketAddr,
    /// Of PostgreSQL, beside or instead of those below.
    pub parameters: &'a [(&'a str, &'a str)],
}

impl NodeSettings<'_> {
    /// JSON, which Patroni reads as YAML.
    pub fn text(&self) -> String {
        let user = |name: &str| json!({ "username": name, "password": PASSWORD });
        let mut settings = json!({
            "scope": SCOPE,
            "namespace": format!("/{NAMESPACE}/"),
            "name": format!("{NODE_PREFIX}{}", self.node),
            "restapi": {
                "listen": self.rest_listens.to_string(),
                "connect_address": self.rest_for_peers.to_string(),
            },
            "etcd": { "host": self.etcd.to_string() },
            "bootstrap": {
                "dcs": {
                    "ttl": TTL_S,
                    "loop_wait": LOOP_S,
                    "retry_timeout": RETRY_S,
                    "synchronous_mode": true,
                    "synchronous_mode_strict": true,
                    "postgresql": {
                        "use_pg_rewind": true,
                        "use_slots": true,
                        "parameters": {
                            "max_connections": CONNECTION_COUNT_MAX,
                            "max_wal_senders": 10,
                            "max_replication_slots": 10,
                            "wal_level": "replica",
                            "hot_standby": "on",
                            "wal_log_hints": "on",
                        },
                    },
                },
                // Nothing is lost if the machine stops before the first node is on the disk: the tests stop too.
                "initdb": ["no-sync", { "encoding": "UTF8" }, { "locale": "C" }, { "auth": "scram-sha-256" }],
            },
            "postgresql": {
                "listen": self.postgres_listens.to_string(),
                "connect_address": self.postgres_for_peers.to_string(),
                "data_dir": self.directory.join("data"),
                "bin_dir": self.programs,
                "pgpass": self.directory.join("pgpass"),
                "authentication": {
                    "superuser": user(USER),
                    "replication": user("replicator"),
                    "rewind": user("rewinder"),
                },
                "pg_hba": [
                    "host all all all scram-sha-256",
                    "host replication replicator all scram-sha-256",
                ],
                "basebackup": [{ "checkpoint": "fast" }, "no-sync"],
                "remove_data_directory_on_rewind_failure": true,
                "remove_data_directory_on_diverged_timelines": true,
                "parameters": {
                    "fsync": "on",
                    "shared_buffers": "64MB",
                    "wal_keep_size": "256MB",
                    "unix_socket_directories": "",
                    "wal_sender_timeout": "5s",
                    "wal_receiver_timeout": "5s",
                    "wal_receiver_status_interval": "1s",
                    "wal_retrieve_retry_interval": "500ms",
                    "tcp_user_timeout": "5s",
                    "log_line_prefix": "%m [%p] ",
                    "log_min_messages": "warning",
                },
            },
            "watchdog": { "mode": "off" },
        });
        for (name, value) in self.parameters {
            settings["postgresql"]["parameters"][*name] = json!(value);
        }
        format!("{settings:#}\n")
    }
}

pub(super) fn etcd_arguments(data: &Path, client: SocketAddr, peer: SocketAddr) -> Vec<String> {
    let (client, peer) = (format!("http://{client}"), format!("http://{peer}"));
    let options = [
        ("name", "etcd".to_owned()),
        ("data-dir", data.display().to_string()),
        ("listen-client-urls", client.clone()),
        ("advertise-client-urls", client),
        ("listen-peer-urls", peer.clone()),
        ("initial-advertise-peer-urls", peer.clone()),
        ("initial-cluster", format!("etcd={peer}")),
        ("enable-v2", "true".to_owned()),
        ("heartbeat-interval", "100".to_owned()),
        ("election-timeout", "1000".to_owned()),
    ];
    options.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
}
