//! What users would weigh instead of Lazulite: Redis with every write synced, and PostgreSQL, each with the load generator
//! that its own package brings.
//!
//! Promises: a rival keeps its data on the disk of the durable server, as many keys as the usual table has entities, and
//! values as long as an entity; it is measured in every round, right after the durable server, on as many connections.
//! Whatever is not installed or fails is named loudly and in the notes, and the run goes on.
//! Leaves to others: our own requests (`compare.rs`).

#[cfg(target_os = "linux")]
mod postgres;
mod redis;
pub mod report;
pub mod targets;

use std::path::Path;
use std::time::Duration;

use loadgen::Error;
use loadgen::measure::median;
use loadgen::request::entity_bytes;
use loadgen::workload::{Workload, WorkloadKind};
use serde::{Deserialize, Serialize};

use crate::options::{Options, PlanName};
use crate::plan::{self, EMPTY, MANY_CONNECTIONS};
use crate::results::Run;
use crate::system::SystemKind;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RivalKind {
    Redis,
    Postgres,
}

impl RivalKind {
    pub const ALL: [RivalKind; 2] = [RivalKind::Redis, RivalKind::Postgres];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            RivalKind::Redis => "redis",
            RivalKind::Postgres => "postgres",
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            RivalKind::Redis => "Redis",
            RivalKind::Postgres => "PostgreSQL",
        }
    }

    pub fn from_name(name: &str) -> Option<RivalKind> {
        RivalKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The figures of one measurement, or their medians.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RivalFigures {
    pub requests_per_second: f64,
    /// `pgbench` reports the mean only, `redis-benchmark` both.
    pub mean_us: f64,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    /// Processor time of the server for each request.
    pub server_cpu_us: Option<f64>,
    /// Processor time of the load generator, in cores.
    pub generator_busy: Option<f64>,
}

impl RivalFigures {
    /// The median of each figure separately. `None` without figures.
    fn median(all: &[RivalFigures]) -> Option<RivalFigures> {
        if all.is_empty() {
            return None;
        }
        let of = |figure: &dyn Fn(&RivalFigures) -> f64| median(all.iter().map(figure).collect());
        let optional = |figure: &dyn Fn(&RivalFigures) -> Option<f64>| {
            all.iter().map(figure).collect::<Option<Vec<f64>>>().map(median)
        };
        Some(RivalFigures {
            requests_per_second: of(&|figures| figures.requests_per_second),
            mean_us: of(&|figures| figures.mean_us),
            p50_us: optional(&|figures| figures.p50_us),
            p99_us: optional(&|figures| figures.p99_us),
            server_cpu_us: optional(&|figures| figures.server_cpu_us),
            generator_busy: optional(&|figures| figures.generator_busy),
        })
    }
}

/// One workload on a rival, beside the durable server.
#[derive(Serialize, Deserialize)]
pub struct RivalCell {
    pub rival: RivalKind,
    pub version: String,
    pub workload: String,
    pub connections: usize,
    pub keys: u64,
    pub value_bytes: usize,
    /// In every round: the durable server's requests per second, and then the rival's.
    pub rounds: Vec<[f64; 2]>,
    /// Medians of all rounds.
    pub figures: Option<RivalFigures>,
    pub not_measured: Option<String>,
}

impl RivalCell {
    /// The durable server's throughput divided by the rival's, in each round. Both were measured within seconds, so
    /// what else disturbs the machine or its disk changes a ratio less than it changes either figure.
    fn ratios(&self) -> impl Iterator<Item = f64> + '_ {
        self.rounds.iter().map(|[own, rival]| own / rival)
    }

    /// The median of the ratios. `None` if nothing was measured.
    pub fn ratio(&self) -> Option<f64> {
        (!self.rounds.is_empty()).then(|| median(self.ratios().collect()))
    }

    /// The lowest and the highest ratio.
    pub fn spread(&self) -> Option<(f64, f64)> {
        Some((self.ratios().min_by(f64::total_cmp)?, self.ratios().max_by(f64::total_cmp)?))
    }
}

/// A store that runs and holds its rows.
pub trait Rival {
    fn kind(&self) -> RivalKind;

    fn version(&self) -> &str;

    /// One measurement after a warm-up: point reads, or durable writes.
    fn measure(
        &mut self,
        kind: WorkloadKind,
        connections: usize,
        time: Duration,
    ) -> Result<RivalFigures, Error>;
}

/// Starts and fills the selected rivals.
pub fn start(options: &Options, data: &Path, run: &mut Run) -> Vec<Box<dyn Rival>> {
    let keys = plan::usual_shape(options).entities;
    let mut rivals = Vec::new();
    for kind in selected(options) {
        eprintln!("starting {} and filling it with {keys} keys", kind.what());
        let started: Result<Box<dyn Rival>, Error> = match kind {
            RivalKind::Redis => {
                redis::Redis::start(data, keys, entity_bytes()).map(|redis| Box::new(redis) as Box<dyn Rival>)
            }
            #[cfg(target_os = "linux")]
            RivalKind::Postgres => postgres::PlainPostgres::start(data, keys, entity_bytes())
                .map(|postgres| Box::new(postgres) as Box<dyn Rival>),
            #[cfg(not(target_os = "linux"))]
            RivalKind::Postgres => Err("the benchmark starts it on Linux only".into()),
        };
        match started {
            Ok(rival) => rivals.push(rival),
            Err(error) => {
                let (what, why) = (kind.what(), one_line(&error.to_string()));
                eprintln!("\n*** {} IS NOT MEASURED: {why} ***\n", what.to_uppercase());
                run.notes.push(format!("{what} was not measured: {why}."));
            }
        }
    }
    rivals
}

/// A run without the durable server or without their workloads needs none.
fn selected(options: &Options) -> Vec<RivalKind> {
    let is_selected = |kind: &RivalKind| match options.systems.is_empty() && options.rivals.is_empty() {
        true => options.plan != PlanName::Quick,
        false => options.rivals.contains(kind),
    };
    let has_work = plan::workloads(options).iter().any(|workload| is_for_rivals(workload, options));
    if !has_work || !plan::systems(options).contains(&SystemKind::Durable) {
        return Vec::new();
    }
    RivalKind::ALL.into_iter().filter(is_selected).collect()
}

/// Point reads of the usual table, and inserts. With other workloads, a rival would do something else.
fn is_for_rivals(workload: &Workload, options: &Options) -> bool {
    workload.connections == MANY_CONNECTIONS
        && match workload.kind {
            WorkloadKind::Read => workload.shape == plan::usual_shape(options),
            WorkloadKind::Insert => workload.shape == EMPTY,
            _ => false,
        }
}

/// One workload on all rivals.
pub struct Rivalry<'a> {
    rivals: &'a mut [Box<dyn Rival>],
    workload: Workload,
    cells: Vec<RivalCell>,
    figures: Vec<Vec<RivalFigures>>,
}

impl<'a> Rivalry<'a> {
    pub fn new(rivals: &'a mut [Box<dyn Rival>], workload: &Workload, options: &Options) -> Rivalry<'a> {
        let rivals = if is_for_rivals(workload, options) { rivals } else { &mut [] };
        let cell = |rival: &dyn Rival| RivalCell {
            rival: rival.kind(),
            version: rival.version().to_owned(),
            workload: workload.kind.name().to_owned(),
            connections: workload.connections,
            keys: plan::usual_shape(options).entities,
            value_bytes: entity_bytes(),
            rounds: Vec::new(),
            figures: None,
            not_measured: None,
        };
        Rivalry {
            cells: rivals.iter().map(|rival| cell(rival.as_ref())).collect(),
            figures: vec![Vec::new(); rivals.len()],
            workload: *workload,
            rivals,
        }
    }

    /// Measures every rival, after the durable server achieved `own` requests per second in the same round.
    pub fn measure(&mut self, own: f64, time: Duration) {
        let Workload { kind, connections, .. } = self.workload;
        for ((rival, cell), all) in self.rivals.iter_mut().zip(&mut self.cells).zip(&mut self.figures) {
            if cell.not_measured.is_some() {
                continue;
            }
            match rival.measure(kind, connections, time) {
                Ok(figures) => {
                    cell.rounds.push([own, figures.requests_per_second]);
                    all.push(figures);
                }
                Err(error) => cell.not_measured = Some(one_line(&error.to_string())),
            }
        }
    }

    pub fn finish(self) -> Vec<RivalCell> {
        let mut cells = self.cells;
        for (cell, figures) in cells.iter_mut().zip(&self.figures) {
            if let Some(why) = &cell.not_measured {
                eprintln!("    {:20} not measured: {why}", cell.rival.what());
                cell.rounds.clear();
                continue;
            }
            cell.figures = RivalFigures::median(figures);
            if let (Some(figures), Some(ratio)) = (&cell.figures, cell.ratio()) {
                eprintln!(
                    "    {:20} {:>10.0} requests/s; ours are {ratio:.2} of that",
                    cell.rival.what(),
                    figures.requests_per_second
                );
            }
        }
        cells
    }
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn cell(rival: RivalKind, workload: WorkloadKind, rounds: &[[f64; 2]]) -> RivalCell {
        let figures = RivalFigures {
            requests_per_second: rounds[0][1],
            mean_us: 1300.0,
            p50_us: (rival == RivalKind::Redis).then_some(1200.0),
            p99_us: (rival == RivalKind::Redis).then_some(2500.0),
            server_cpu_us: Some(12.0),
            generator_busy: Some(0.9),
        };
        RivalCell {
            rival,
            version: "7.0".to_owned(),
            workload: workload.name().to_owned(),
            connections: MANY_CONNECTIONS,
            keys: 100_000,
            value_bytes: 300,
            rounds: rounds.to_vec(),
            figures: Some(figures),
            not_measured: None,
        }
    }

    #[test]
    fn a_ratio_is_of_one_round_and_the_median_counts() {
        // The machine was twice as fast in the second round; the ratio of medians would be 1.0.
        let rounds = [[50.0, 100.0], [120.0, 200.0], [100.0, 80.0]];
        let cell = cell(RivalKind::Redis, WorkloadKind::Read, &rounds);
        assert_eq!(cell.ratio(), Some(0.6));
        assert_eq!(cell.spread(), Some((0.5, 1.25)));
        let none = RivalCell { rounds: Vec::new(), ..cell };
        assert_eq!((none.ratio(), none.spread()), (None, None));
    }

    /// Answers every other measurement.
    struct Unreliable(usize);

    impl Rival for Unreliable {
        fn kind(&self) -> RivalKind {
            RivalKind::Redis
        }

        fn version(&self) -> &str {
            "0"
        }

        fn measure(&mut self, _: WorkloadKind, _: usize, _: Duration) -> Result<RivalFigures, Error> {
            self.0 += 1;
            match self.0 % 2 {
                1 => Ok(cell(RivalKind::Redis, WorkloadKind::Read, &[[1.0, 2.0]]).figures.unwrap()),
                _ => Err("it is\n  gone".into()),
            }
        }
    }

    #[test]
    fn a_rival_that_fails_once_gets_no_figure() {
        let options = crate::options::tests::options(&[]).unwrap();
        let mut rivals: Vec<Box<dyn Rival>> = vec![Box::new(Unreliable(0))];
        let read = plan::workloads(&options)[0];
        let mut rivalry = Rivalry::new(&mut rivals, &read, &options);
        rivalry.measure(1.0, Duration::ZERO);
        rivalry.measure(1.0, Duration::ZERO);
        let cells = rivalry.finish();
        assert_eq!(cells[0].not_measured.as_deref(), Some("it is gone"));
        assert!(cells[0].figures.is_none() && cells[0].ratio().is_none());
    }

    #[test]
    fn rivals_take_part_where_they_can_and_are_wanted() {
        let selected = |arguments: &[&str]| selected(&crate::options::tests::options(arguments).unwrap());
        assert_eq!(selected(&[]), RivalKind::ALL);
        assert_eq!(selected(&["--only", "insert"]), RivalKind::ALL);
        assert_eq!(selected(&["--systems", "durable,redis"]), [RivalKind::Redis]);
        assert_eq!(selected(&["--quick", "--systems", "durable,postgres"]), [RivalKind::Postgres]);
        for none in [&["--quick"][..], &["--only", "page"], &["--systems", "durable"]] {
            assert_eq!(selected(none), [], "{none:?}");
        }
        let options = crate::options::tests::options(&[]).unwrap();
        let count =
            plan::workloads(&options).iter().filter(|workload| is_for_rivals(workload, &options)).count();
        assert_eq!(count, 2);
    }
}
