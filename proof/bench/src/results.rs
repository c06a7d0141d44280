//! The results of a run, as stored in `docs/performance/results-*.json`. Every table and chart is made from them.
//!
//! The usual run and the large ones have files of their own, so that each can be repeated without the others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loadgen::Error;
use loadgen::measure::Sample;
use loadgen::workload::{TableShape, WorkloadKind};
use serde::{Deserialize, Serialize};

use crate::blobs::BlobWork;
use crate::machine::Machine;
use crate::rivals::{RivalCell, RivalKind};
use crate::system::SystemKind;

/// The names of single figures.
pub mod fact {
    pub const BINARY_BYTES: &str = "binary_bytes";
    /// Point reads at a fixed rate, alone and during a scan and inserts.
    pub const QUIET_P99_US: &str = "quiet_p99_us";
    pub const DISTURBED_P99_US: &str = "disturbed_p99_us";
    pub const DISTURBING_INSERTS_PER_SECOND: &str = "disturbing_inserts_per_second";
    pub const DISTURBING_SCANNED_PER_SECOND: &str = "disturbing_scanned_per_second";
    pub const RESTART_MS: &str = "restart_ms";
    pub const LOAD_ENTITIES_PER_SECOND: &str = "load_entities_per_second";
    pub const SUSTAINED_PER_SECOND: &str = "sustained_inserts_per_second";
    pub const SUSTAINED_LONGEST_US: &str = "sustained_longest_us";
    pub const SUSTAINED_GAP_US: &str = "sustained_gap_us";
    pub const HALF_LOAD_PER_SECOND: &str = "half_load_inserts_per_second";
    pub const HALF_LOAD_P99_US: &str = "half_load_p99_us";
    pub const HALF_LOAD_P999_US: &str = "half_load_p999_us";
    pub const HALF_LOAD_LONGEST_US: &str = "half_load_longest_us";
    pub const LOADED_PEAK_BYTES: &str = "loaded_peak_bytes";
    pub const LOADED_IDLE_BYTES: &str = "loaded_idle_bytes";
    pub const DISK_BYTES: &str = "disk_bytes";
    /// The server's memory while the table was loaded, at the peak.
    pub const LOAD_PEAK_BYTES: &str = "load_peak_bytes";
    /// Deleting the large table: until the answer, and from there until its rows were removed from the files; how long the
    /// files were then.
    pub const DROP_MS: &str = "drop_ms";
    pub const SWEEP_S: &str = "sweep_s";
    pub const SWEPT_DISK_BYTES: &str = "swept_disk_bytes";
    /// Processor time of taking a message and deleting it: with a thousand waiting, with ten million, and with a million
    /// invisible or expired ones in front.
    pub const TAKE_FEW_CPU_US: &str = "take_few_cpu_us";
    pub const TAKE_MANY_CPU_US: &str = "take_many_cpu_us";
    pub const TAKE_INVISIBLE_CPU_US: &str = "take_invisible_cpu_us";
    pub const TAKE_EXPIRED_CPU_US: &str = "take_expired_cpu_us";
    /// From the request to its answer, with ten million messages.
    pub const COUNT_MS: &str = "count_ms";
    pub const CLEAR_MS: &str = "clear_ms";
    pub const QUEUE_PEAK_BYTES: &str = "queue_peak_bytes";
    pub const PUT_MESSAGES_PER_SECOND: &str = "put_messages_per_second";
    /// The Rust client's rate, divided by the raw generator's.
    pub const CLIENT_READ_RATIO: &str = "client_read_ratio";
    pub const CLIENT_BULK_RATIO: &str = "client_bulk_ratio";
    /// A hundred long uploads at the same time: the server's memory before and at the peak, and their rate.
    pub const UPLOADS_IDLE_BYTES: &str = "uploads_idle_bytes";
    pub const UPLOADS_PEAK_BYTES: &str = "uploads_peak_bytes";
    pub const UPLOADS_BYTES_PER_SECOND: &str = "uploads_bytes_per_second";
    pub const LOAD_BLOBS_PER_SECOND: &str = "load_blobs_per_second";
}

#[derive(Serialize, Deserialize)]
pub struct Run {
    /// `usual`, `full`, `quick`, `large`, `huge`, `large-queues`, `client`, `blobs` or `large-blobs`.
    pub plan: String,
    pub command: String,
    pub commit: String,
    pub machine: Machine,
    pub rounds: usize,
    pub seconds: f64,
    pub load_average_before: Option<f64>,
    pub cells: Vec<Cell>,
    pub floors: Vec<Floor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<RivalCell>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_steps: Vec<LoadStep>,
    pub processes: Vec<ProcessCost>,
    pub facts: BTreeMap<String, f64>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

/// One workload on one system.
#[derive(Serialize, Deserialize)]
pub struct Cell {
    pub workload: String,
    pub entities: u64,
    pub partitions: u64,
    pub connections: usize,
    pub system: SystemKind,
    /// Medians of all rounds.
    pub sample: Option<Sample>,
    /// The same in the open loop, at half of that throughput. Latencies count from when a request was due.
    pub half_load: Option<Sample>,
    pub not_measured: Option<String>,
}

/// What the disk or the raw engine achieves without a server.
#[derive(Serialize, Deserialize)]
pub struct Floor {
    pub name: String,
    pub what: String,
    pub syncs_per_second: f64,
    pub entities_per_second: f64,
}

/// Long contents on their way to a system or from it.
#[derive(Serialize, Deserialize)]
pub struct Transfer {
    pub direction: Direction,
    pub connections: usize,
    /// `None` for `dd`.
    pub system: Option<SystemKind>,
    /// On all connections together. The median of all rounds.
    pub bytes_per_second: f64,
    /// Processor time of the system for each MiB.
    pub cpu_us_per_mib: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    Put,
    /// In blocks, as tools put long files.
    PutBlocks,
    Get,
}

/// A part of the time in which a large table was loaded.
#[derive(Serialize, Deserialize)]
pub struct LoadStep {
    /// Loaded at its end, since the beginning.
    pub entities: u64,
    /// Loaded per second, in this part alone.
    pub entities_per_second: f64,
}

#[derive(Serialize, Deserialize)]
pub struct ProcessCost {
    pub system: SystemKind,
    pub first_answer_ms: f64,
    pub idle_bytes: Option<u64>,
    pub end_bytes: Option<u64>,
    pub peak_bytes: Option<u64>,
}

impl Cell {
    pub fn shape(&self) -> TableShape {
        TableShape { entities: self.entities, partitions: self.partitions }
    }

    pub fn what(&self) -> &str {
        WorkloadKind::from_name(&self.workload)
            .map(WorkloadKind::what)
            .or_else(|| BlobWork::from_name(&self.workload).map(BlobWork::what))
            .unwrap_or(&self.workload)
    }

    /// Whether both have the same workload, on any systems.
    pub fn asks_the_same(&self, other: &Cell) -> bool {
        (&self.workload, self.shape(), self.connections)
            == (&other.workload, other.shape(), other.connections)
    }
}

impl Run {
    pub fn sample(
        &self,
        kind: WorkloadKind,
        shape: TableShape,
        connections: usize,
        system: SystemKind,
    ) -> Option<&Sample> {
        let cell = self.cells.iter().find(|cell| {
            cell.workload == kind.name()
                && cell.shape() == shape
                && cell.connections == connections
                && cell.system == system
        });
        cell.and_then(|cell| cell.sample.as_ref())
    }

    pub fn floor(&self, name: &str) -> Option<&Floor> {
        self.floors.iter().find(|floor| floor.name == name)
    }

    pub fn rival(&self, kind: WorkloadKind, rival: RivalKind) -> Option<&RivalCell> {
        self.rivals.iter().find(|cell| cell.workload == kind.name() && cell.rival == rival)
    }

    pub fn fact(&self, name: &str) -> Option<f64> {
        self.facts.get(name).copied()
    }

    pub fn process(&self, system: SystemKind) -> Option<&ProcessCost> {
        self.processes.iter().find(|process| process.system == system)
    }

    pub fn transfer(
        &self,
        direction: Direction,
        connections: usize,
        system: Option<SystemKind>,
    ) -> Option<&Transfer> {
        self.transfers.iter().find(|transfer| {
            (transfer.direction, transfer.connections, transfer.system) == (direction, connections, system)
        })
    }

    /// Another system's sample for the workload of this cell.
    pub fn beside(&self, cell: &Cell, system: SystemKind) -> Option<&Sample> {
        let other = self.cells.iter().find(|other| other.system == system && other.asks_the_same(cell));
        other.and_then(|other| other.sample.as_ref())
    }
}

/// The last usual run and the last large ones.
#[derive(Default)]
pub struct Results {
    pub main: Option<Run>,
    pub large: Option<Run>,
    pub huge: Option<Run>,
    pub large_queues: Option<Run>,
    pub client: Option<Run>,
    pub blobs: Option<Run>,
    pub large_blobs: Option<Run>,
}

impl Results {
    /// Reads the results of earlier runs.
    pub fn read(directory: &Path) -> Result<Results, Error> {
        let read = |name: &str| -> Result<Option<Run>, Error> {
            let path = directory.join(name);
            match std::fs::read_to_string(&path) {
                Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
                    format!("{}: {error}; remove it and measure again", path.display()).into()
                }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(format!("cannot read {}: {error}", path.display()).into()),
            }
        };
        Ok(Results {
            main: read("results-main.json")?,
            large: read("results-large.json")?,
            huge: read("results-huge.json")?,
            large_queues: read("results-large-queues.json")?,
            client: read("results-client.json")?,
            blobs: read("results-blobs.json")?,
            large_blobs: read("results-large-blobs.json")?,
        })
    }

    /// Puts the workloads of a partial run in the place of the same ones in the earlier run.
    pub fn put_part(&mut self, part: Run) {
        let Some(run) = &mut self.main else {
            self.put(part);
            return;
        };
        let mut names = Vec::new();
        for cell in part.cells {
            let name = format!("\"{}\"", cell.what());
            if !names.contains(&name) {
                names.push(name);
            }
            run.cells.retain(|old| old.system != cell.system || !old.asks_the_same(&cell));
            run.cells.push(cell);
        }
        for cell in part.rivals {
            let name = format!("the same in {}", cell.rival.what());
            if !names.contains(&name) {
                names.push(name);
            }
            run.rivals.retain(|old| (old.rival, &old.workload) != (cell.rival, &cell.workload));
            run.rivals.push(cell);
        }
        let load = part.load_average_before.unwrap_or_default();
        run.notes.push(format!(
            "Measured by itself later, at commit {}, with a load average of {load:.2} before: {}.",
            part.commit,
            names.join(", ")
        ));
    }

    /// Replaces the earlier run of the same plan.
    pub fn put(&mut self, run: Run) {
        let place = match run.plan.as_str() {
            "large" => &mut self.large,
            "huge" => &mut self.huge,
            "large-queues" => &mut self.large_queues,
            "client" => &mut self.client,
            "blobs" => &mut self.blobs,
            "large-blobs" => &mut self.large_blobs,
            _ => &mut self.main,
        };
        *place = Some(run);
    }

    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        for (name, run) in [
            ("results-main.json", &self.main),
            ("results-large.json", &self.large),
            ("results-huge.json", &self.huge),
            ("results-large-queues.json", &self.large_queues),
            ("results-client.json", &self.client),
            ("results-blobs.json", &self.blobs),
            ("results-large-blobs.json", &self.large_blobs),
        ] {
            if let Some(run) = run {
                write_file(&directory.join(name), &(serde_json::to_string_pretty(run)? + "\n"))?;
            }
        }
        Ok(())
    }
}

pub fn write_file(path: &PathBuf, text: &str) -> Result<(), Error> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    }
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
