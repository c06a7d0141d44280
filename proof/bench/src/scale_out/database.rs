//! The databases: one PostgreSQL, or a leader with a synchronous standby under Patroni. Both are real, on this machine, and
//! sync every commit to the disk.
//!
//! Promises: both have the same settings. Leaves to others: what is in them.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use loadgen::Error;
use loadgen::process::{self, TICKS_PER_SECOND};
use testkit::cluster::{Cluster, NODE_COUNT, Place, Reads};
use testkit::{Postgres, TempDir, postgres_programs};

/// Enough for the tables that are compared, and less than the large one. No checkpoint falls into one measurement and not
/// into another.
pub const SETTINGS: [(&str, &str); 3] =
    [("shared_buffers", "512MB"), ("max_wal_size", "6GB"), ("checkpoint_timeout", "1h")];

pub struct Database {
    servers: Servers,
    /// Their first processes. The agents beside them are no part of what is measured.
    postmasters: Vec<u32>,
}

enum Servers {
    Alone(Postgres),
    WithStandby(Cluster),
}

impl Database {
    pub fn alone() -> Result<Database, Error> {
        Database::of(Servers::Alone(Postgres::start_with(&SETTINGS)?))
    }

    /// The same below this directory, with one more setting.
    pub fn alone_in(directory: &Path, setting: (&str, &str)) -> Result<Database, Error> {
        let directory = TempDir::new_in(directory)?;
        let settings: Vec<(&str, &str)> = SETTINGS.into_iter().chain([setting]).collect();
        Database::of(Servers::Alone(Postgres::start_in(directory, &postgres_programs()?, &settings)?))
    }

    /// Of the cluster's nodes only the leader and its synchronous standby go on: a third would cost processor time that a
    /// real one spends elsewhere.
    pub fn with_standby() -> Result<Database, Error> {
        let mut cluster = Cluster::start_with(Place::Loopback, &SETTINGS)?;
        let members = cluster.members();
        let spare = members.iter().find(|member| member.role == "replica").ok_or("no node is to spare")?.node;
        cluster.kill(spare);
        Database::of(Servers::WithStandby(cluster))
    }

    fn of(servers: Servers) -> Result<Database, Error> {
        const POSTMASTER: &str = "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)";
        let told = match &servers {
            Servers::Alone(server) => vec![server.sql(POSTMASTER)?],
            Servers::WithStandby(cluster) => {
                (0..NODE_COUNT).filter_map(|node| cluster.sql(node, POSTMASTER).ok()).collect()
            }
        };
        let postmasters = told.iter().filter_map(|text| text.parse().ok()).collect();
        Ok(Database { servers, postmasters })
    }

    pub fn url(&self) -> String {
        match &self.servers {
            Servers::Alone(server) => server.url(),
            Servers::WithStandby(cluster) => cluster.front_end_url(Reads::Barrier),
        }
    }

    /// The same, with the place of the leader's key. `None`: there is none.
    pub fn url_with_lease(&self) -> Option<String> {
        match &self.servers {
            Servers::Alone(_) => None,
            Servers::WithStandby(cluster) => Some(cluster.front_end_url(Reads::Lease)),
        }
    }

    pub fn password(&self) -> &'static str {
        match &self.servers {
            Servers::Alone(server) => server.password(),
            Servers::WithStandby(cluster) => cluster.password(),
        }
    }

    /// Where writes go.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        match &self.servers {
            Servers::Alone(server) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()))),
            Servers::WithStandby(cluster) => Ok(cluster.addr(leader(cluster)?)),
        }
    }

    pub fn sql(&self, statements: &str) -> Result<String, Error> {
        Ok(match &self.servers {
            Servers::Alone(server) => server.sql(statements)?,
            Servers::WithStandby(cluster) => cluster.sql(leader(cluster)?, statements)?,
        })
    }

    /// Removes traces of the loading: what is measured first would pay for them.
    pub fn settle(&self) -> Result<(), Error> {
        // Each by itself: no transaction may hold VACUUM.
        for statement in ["VACUUM ANALYZE", "CHECKPOINT"] {
            self.sql(statement)?;
        }
        Ok(())
    }

    /// Processor time of all servers so far.
    pub fn cpu(&self) -> Option<Duration> {
        (!self.postmasters.is_empty()).then(|| cpu_below(&self.postmasters))
    }

    pub fn version(&self) -> Result<String, Error> {
        self.sql("SHOW server_version")
    }

    pub fn bytes(&self) -> Result<f64, Error> {
        Ok(self.sql("SELECT pg_database_size(current_database())")?.parse()?)
    }
}

fn leader(cluster: &Cluster) -> Result<usize, Error> {
    Ok(cluster.leader().ok_or("the cluster has no leader")?)
}

/// Processor time of these processes and of all that they have started, those that have ended included.
fn cpu_below(roots: &[u32]) -> Duration {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        if let Some(parent) = fields(process).and_then(|fields| fields.get(1)?.parse().ok()) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut sum = Duration::ZERO;
    let mut left = roots.to_vec();
    while let Some(process) = left.pop() {
        sum += process::cpu(process).unwrap_or_default() + cpu_of_ended(process);
        left.extend(children.get(&process).into_iter().flatten());
    }
    sum
}

/// Processor time of the children that a process has waited for.
fn cpu_of_ended(process: u32) -> Duration {
    let ticks = |place: usize| -> f64 {
        let fields = fields(process).unwrap_or_default();
        fields.get(place).and_then(|field| field.parse().ok()).unwrap_or_default()
    };
    Duration::from_secs_f64((ticks(13) + ticks(14)) / TICKS_PER_SECOND)
}

/// The fields of its status after its name: state, parent, and so on.
fn fields(process: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_counts_also_when_they_have_ended() {
        let own = std::process::id();
        let before = cpu_below(&[own]);
        let worked = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"])
            .status();
        assert!(worked.unwrap().success());
        assert!(cpu_below(&[own]) >= before + Duration::from_millis(20));
    }
}
