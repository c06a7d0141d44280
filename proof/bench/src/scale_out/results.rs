//! The results of runs on PostgreSQL, as stored in `docs/performance/results-scale-out*.json`.
//!
//! The comparison and the large table have files of their own, so that each can be repeated without the other.

use std::collections::BTreeMap;
use std::path::Path;

use loadgen::Error;
use loadgen::measure::median;
use loadgen::workload::{TableShape, WorkloadKind};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::results::write_file;

/// The names of single figures.
pub mod fact {
    pub const LOAD_ENTITIES_PER_SECOND: &str = "load_entities_per_second";
    pub const LOAD_S: &str = "load_s";
    /// Of the database, with the large table.
    pub const DATABASE_BYTES: &str = "database_bytes";
    pub const DROP_MS: &str = "drop_ms";
    /// From the answer to the drop until the space was given back to the file system.
    pub const SPACE_BACK_S: &str = "space_back_s";
    /// What the database had more than before the large table, when it was no longer waited for.
    pub const SPACE_KEPT_BYTES: &str = "space_kept_bytes";
}

/// What keeps the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keeper {
    /// One PostgreSQL.
    Alone,
    /// PostgreSQL with a synchronous standby.
    WithStandby,
    Embedded,
    Azurite,
}

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    Pgbench,
    FrontEnd,
    /// Its reads are proven by the leader's key in etcd, not by a commit.
    FrontEndWithLease,
    TwoFrontEnds,
    Embedded,
    Azurite,
}

impl Contender {
    pub fn what(self) -> &'static str {
        match self {
            Contender::Pgbench => "`pgbench`",
            Contender::FrontEnd => "one front end",
            Contender::FrontEndWithLease => "one front end, `etcd=`",
            Contender::TwoFrontEnds => "two front ends",
            Contender::Embedded => "the embedded engine",
            Contender::Azurite => "Azurite",
        }
    }
}

/// The figures of one measurement, or their medians.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figures {
    pub requests_per_second: f64,
    pub entities_per_second: f64,
    /// `pgbench` only tells the mean latency, which stands here.
    pub p50_us: f64,
    pub p99_us: Option<f64>,
    /// Processor time for each request: of Lazulite or Azurite, and of PostgreSQL with its standby.
    pub server_cpu_us: Option<f64>,
    pub database_cpu_us: Option<f64>,
    /// Cores that whoever sent the requests used.
    pub generator_busy: Option<f64>,
}

impl Figures {
    /// The median of each field separately. `None` without figures.
    pub fn median(all: &[Figures]) -> Option<Figures> {
        if all.is_empty() {
            return None;
        }
        let of = |number: &dyn Fn(&Figures) -> f64| median(all.iter().map(number).collect());
        let optional = |number: &dyn Fn(&Figures) -> Option<f64>| {
            all.iter().map(number).collect::<Option<Vec<f64>>>().map(median)
        };
        Some(Figures {
            requests_per_second: of(&|figures| figures.requests_per_second),
            entities_per_second: of(&|figures| figures.entities_per_second),
            p50_us: of(&|figures| figures.p50_us),
            p99_us: optional(&|figures| figures.p99_us),
            server_cpu_us: optional(&|figures| figures.server_cpu_us),
            database_cpu_us: optional(&|figures| figures.database_cpu_us),
            generator_busy: optional(&|figures| figures.generator_busy),
        })
    }

    /// Processor time of everybody but the generator.
    pub fn cpu_us(&self) -> Option<f64> {
        Some(self.server_cpu_us.unwrap_or_default() + self.database_cpu_us?)
    }
}

/// One workload, sent to one contender.
#[derive(Serialize, Deserialize)]
pub struct ScaleOutCell {
    pub workload: String,
    pub entities: u64,
    pub keeper: Keeper,
    pub contender: Contender,
    pub figures: Option<Figures>,
    pub not_measured: Option<String>,
}

impl ScaleOutCell {
    pub fn what(&self) -> &str {
        WorkloadKind::from_name(&self.workload).map_or(self.workload.as_str(), |kind| kind.what())
    }

    pub fn label(&self) -> String {
        TableShape::one_partition(self.entities).label()
    }
}

#[derive(Serialize, Deserialize)]
pub struct ScaleOutRun {
    pub command: String,
    pub commit: String,
    pub machine: Machine,
    pub postgres: String,
    pub rounds: usize,
    pub seconds: f64,
    pub load_average_before: Option<f64>,
    pub cells: Vec<ScaleOutCell>,
    pub facts: BTreeMap<String, f64>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

impl ScaleOutRun {
    pub fn fact(&self, name: &str) -> Option<f64> {
        self.facts.get(name).copied()
    }

    pub fn figures(&self, kind: WorkloadKind, keeper: Keeper, contender: Contender) -> Option<&Figures> {
        let cell = self.cells.iter().find(|cell| {
            cell.workload == kind.name() && cell.keeper == keeper && cell.contender == contender
        });
        cell?.figures.as_ref()
    }

    /// The figures of one front end by the size of the table.
    pub fn sized(&self, kind: WorkloadKind, entities: u64) -> Option<&Figures> {
        let cell = self.cells.iter().find(|cell| cell.workload == kind.name() && cell.entities == entities);
        cell?.figures.as_ref()
    }
}

/// The last comparison and the last large table.
#[derive(Default)]
pub struct ScaleOutResults {
    pub compared: Option<ScaleOutRun>,
    pub large: Option<ScaleOutRun>,
}

const COMPARED: &str = "results-scale-out.json";
const LARGE: &str = "results-scale-out-large.json";

impl ScaleOutResults {
    /// Reads the results of earlier runs.
    pub fn read(directory: &Path) -> Result<ScaleOutResults, Error> {
        let read = |name: &str| -> Result<Option<ScaleOutRun>, Error> {
            let path = directory.join(name);
            match std::fs::read_to_string(&path) {
                Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
                    format!("{}: {error}; remove it and measure again", path.display()).into()
                }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(format!("cannot read {}: {error}", path.display()).into()),
            }
        };
        Ok(ScaleOutResults { compared: read(COMPARED)?, large: read(LARGE)? })
    }

    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        for (name, run) in [(COMPARED, &self.compared), (LARGE, &self.large)] {
            if let Some(run) = run {
                write_file(&directory.join(name), &(serde_json::to_string_pretty(run)? + "\n"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_leave_out_what_was_not_measured_every_time() {
        let figures = |rate: f64, p99_us: Option<f64>| Figures {
            requests_per_second: rate,
            p99_us,
            server_cpu_us: Some(rate),
            ..Figures::default()
        };
        let all = [figures(3.0, Some(1.0)), figures(1.0, None), figures(2.0, Some(3.0))];
        let median = Figures::median(&all).unwrap();
        assert_eq!((median.requests_per_second, median.p99_us, median.server_cpu_us), (2.0, None, Some(2.0)));
        assert_eq!(Figures::median(&[]), None);
    }
}
