//! PostgreSQL beside the durable server: single rows read and inserted by `pgbench`, as in the runs of `scale_out`.
//!
//! Promises: `fsync` and `synchronous_commit` are on. Its own cleaning of tables is off, which would fall into the
//! measurements of others.

use std::path::Path;
use std::time::Duration;

use loadgen::Error;
use loadgen::workload::WorkloadKind;

use super::{Rival, RivalFigures, RivalKind};
use crate::scale_out::database::Database;
use crate::scale_out::pgbench::Pgbench;

const NO_CLEANING: (&str, &str) = ("autovacuum", "off");

pub struct PlainPostgres {
    database: Database,
    pgbench: Pgbench,
    version: String,
    /// The workload of the last measurement.
    last: Option<WorkloadKind>,
}

impl PlainPostgres {
    pub fn start(data: &Path, keys: u64, value_bytes: usize) -> Result<PlainPostgres, Error> {
        let database = Database::alone_in(data, NO_CLEANING)?;
        for setting in ["fsync", "synchronous_commit"] {
            let value = database.sql(&format!("SHOW {setting}"))?;
            if value != "on" {
                return Err(format!("its {setting} is {value}").into());
            }
        }
        let pgbench = Pgbench::prepare(&database, &data.join("pgbench"), keys, value_bytes)?;
        database.settle()?;
        // `15.14 (Debian 15.14-0+deb12u1)`
        let version = database.version()?.split(' ').next().unwrap_or_default().to_owned();
        Ok(PlainPostgres { database, pgbench, version, last: None })
    }
}

impl Rival for PlainPostgres {
    fn kind(&self) -> RivalKind {
        RivalKind::Postgres
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn measure(
        &mut self,
        kind: WorkloadKind,
        connections: usize,
        time: Duration,
    ) -> Result<RivalFigures, Error> {
        if self.last.replace(kind) != Some(kind) {
            // Or one would come by itself, while somebody is measured.
            self.database.sql("CHECKPOINT")?;
        }
        let figures = self.pgbench.measure(&self.database, kind, connections, time)?;
        let figures = figures.ok_or_else(|| format!("pgbench has no script for {}", kind.name()))?;
        Ok(RivalFigures {
            requests_per_second: figures.requests_per_second,
            // The mean is all that `pgbench` tells.
            mean_us: figures.p50_us,
            p50_us: None,
            p99_us: None,
            server_cpu_us: figures.database_cpu_us,
            generator_busy: figures.generator_busy,
        })
    }
}
