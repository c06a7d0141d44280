//! The command line of `lazulite-bench run`, parsed into values. A mistake gets one sentence.

use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};
use loadgen::workload::WorkloadKind;

use crate::rivals::RivalKind;
use crate::system::SystemKind;
use crate::targets::{HUGE_ENTITIES, LARGE_ENTITIES};

pub const HELP: &str = "\
Usage: cargo xtask bench [OPTIONS]
       lazulite-bench run --server PATH [OPTIONS]
       lazulite-bench hello [--port PORT] [--bytes N]
       lazulite-bench files --file PATH [--port PORT]

What is measured:
  (no option)        the workloads of the targets, on 100,000 entities, beside Azurite, hello world, Redis and
                     PostgreSQL; about 15 minutes
  --quick            one short round on small tables, without Azurite, Redis and PostgreSQL; under a minute
  --full             every workload on 1, 16 and 64 connections and on 1,000 and 100,000 entities; an hour
  --large            10 million entities, Lazulite alone: loading, sizes compared, a minute of inserts, memory,
                     restart, dropping them; with --full every workload on them
  --huge             the same with 100 million entities, compared with 10 thousand; needs 45 GB of free disk space
  --large-queues     10 million messages, Lazulite alone: what a take costs, counting, clearing, memory
  --scale-out        front ends on PostgreSQL beside pgbench, the embedded engine and Azurite, with and without a
                     synchronous standby; 20 minutes with Azurite; with --quick on small tables and without Azurite;
                     with --large 10 million entities on PostgreSQL, compared with 10 thousand; half an hour
  --blobs            short and long blobs beside hello world, Azurite, dd and a bare file server, and memory under a
                     hundred long uploads, which needs 26 GB of disk; with --quick shorter, without Azurite and
                     with a tenth of the uploads' length; with --large lists of 10 million names
  --client           the Rust client beside the raw generator: point reads, and loading by transactions
  --only NAME        only this workload; may be repeated: read, read-miss, insert, upsert, merge, hot-merge,
                     batch, page, any-of, filter, scan, mix, put-message, take, take-32, peek; or floors, or
                     disturbed
  --systems A,B      only these systems: durable, in-memory, azurite, hello, and beside durable: redis, postgres

How:
  --rounds N         rounds per workload, systems in turn; medians are reported [5; with --full 3]
  --seconds S        length of one measurement, after a warm-up of a third of it [1.5; with --quick 0.5,
                     with --full or --large 2]
  --entities N       the size of the large table or queue, in millions [10; with --huge 100]
  --data DIR         where the servers keep their data [in the target directory]
  --write DIR        write DIR/performance.md and its files (`cargo xtask bench --write` writes to docs); with
                     --only, what else was measured stays; with --scale-out, a part of DIR/scale-out.md
  --out FILE         write the report to this file too

Set by cargo xtask bench:
  --server PATH      the lazulite binary
  --azurite PATH     Azurite's main.js for tables
  --no-azurite WHY   why Azurite is not available
  --command TEXT     the command that the document shows
";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanName {
    Usual,
    Quick,
    Full,
    Large,
    /// Every workload on the large table.
    LargeFull,
    /// A table ten times as large.
    Huge,
    LargeQueues,
    Client,
    ScaleOut,
    ScaleOutLarge,
    Blobs,
    BlobsLarge,
}

#[derive(Debug)]
pub struct Options {
    pub plan: PlanName,
    /// Short, on small tables.
    pub quick: bool,
    pub server: PathBuf,
    pub azurite: Result<PathBuf, String>,
    pub data: Option<PathBuf>,
    pub rounds: usize,
    pub seconds: Duration,
    pub large_entities: u64,
    pub only: Vec<WorkloadKind>,
    pub only_floors: bool,
    pub only_disturbed: bool,
    pub systems: Vec<SystemKind>,
    pub rivals: Vec<RivalKind>,
    pub write: Option<PathBuf>,
    pub out: Option<PathBuf>,
    pub command: String,
}

impl Options {
    /// Whether `--only` restricts the run.
    pub fn is_partial(&self) -> bool {
        !self.only.is_empty() || self.only_floors || self.only_disturbed
    }

    pub fn wants_floors(&self) -> bool {
        self.only_floors || !self.is_partial()
    }

    pub fn wants_disturbed(&self) -> bool {
        self.only_disturbed || !self.is_partial()
    }
}

/// `None` if help was requested.
pub fn parse(parser: &mut Parser) -> Result<Option<Options>, String> {
    read(parser).map_err(|error| match error {
        lexopt::Error::Custom(sentence) => sentence.to_string(),
        other => format!("{other}; --help lists the options"),
    })
}

fn read(parser: &mut Parser) -> Result<Option<Options>, lexopt::Error> {
    let (mut quick, mut full, mut large, mut huge) = (false, false, false, false);
    let (mut large_queues, mut client, mut scale_out, mut blobs) = (false, false, false, false);
    let (mut server, mut azurite, mut no_azurite, mut data) = (None, None, None, None);
    let (mut rounds, mut seconds, mut entities) = (None, None, None);
    let (mut systems, mut rivals) = (Vec::new(), Vec::new());
    let (mut only, mut only_floors, mut only_disturbed) = (Vec::new(), false, false);
    let (mut write, mut out, mut command) = (None, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("quick") => quick = true,
            Arg::Long("full") => full = true,
            Arg::Long("large") => large = true,
            Arg::Long("huge") => huge = true,
            Arg::Long("large-queues") => large_queues = true,
            Arg::Long("client") => client = true,
            Arg::Long("scale-out") => scale_out = true,
            Arg::Long("blobs") => blobs = true,
            Arg::Long("server") => server = Some(PathBuf::from(parser.value()?)),
            Arg::Long("azurite") => azurite = Some(PathBuf::from(parser.value()?)),
            Arg::Long("no-azurite") => no_azurite = Some(parser.value()?.string()?),
            Arg::Long("data") => data = Some(PathBuf::from(parser.value()?)),
            Arg::Long("rounds") => rounds = Some(parser.value()?.parse::<usize>()?),
            Arg::Long("seconds") => seconds = Some(parser.value()?.parse::<f64>()?),
            Arg::Long("entities") => entities = Some(parser.value()?.parse::<u64>()?),
            Arg::Long("only") => match parser.value()?.string()?.as_str() {
                "floors" => only_floors = true,
                "disturbed" => only_disturbed = true,
                name => only.push(WorkloadKind::from_name(name).ok_or_else(|| {
                    format!(
                        "there is no workload '{name}', only {}, floors, disturbed",
                        WorkloadKind::names()
                    )
                })?),
            },
            Arg::Long("systems") => {
                for name in parser.value()?.string()?.split(',') {
                    match (SystemKind::from_name(name.trim()), RivalKind::from_name(name.trim())) {
                        (Some(system), _) => systems.push(system),
                        (None, Some(rival)) => rivals.push(rival),
                        (None, None) => {
                            let names = SystemKind::ALL.map(SystemKind::name).join(", ");
                            let rivals = RivalKind::ALL.map(RivalKind::name).join(", ");
                            return Err(format!("there is no system '{name}', only {names}, {rivals}").into());
                        }
                    }
                }
            }
            Arg::Long("write") => write = Some(PathBuf::from(parser.value()?)),
            Arg::Long("out") => out = Some(PathBuf::from(parser.value()?)),
            Arg::Long("command") => command = Some(parser.value()?.string()?),
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    let plan = match (quick, full, large) {
        _ if scale_out && (large_queues || client || full || (quick && large)) => {
            return Err("--scale-out can be combined with either --quick or --large".into());
        }
        _ if blobs && (scale_out || large_queues || client || full || (quick && large)) => {
            return Err("--blobs can be combined with either --quick or --large".into());
        }
        _ if huge && (quick || full || large || blobs || scale_out || large_queues || client) => {
            return Err("--huge is a run of its own".into());
        }
        _ if huge => PlanName::Huge,
        (_, _, false) if blobs => PlanName::Blobs,
        (_, _, true) if blobs => PlanName::BlobsLarge,
        (_, _, false) if scale_out => PlanName::ScaleOut,
        (_, _, true) if scale_out => PlanName::ScaleOutLarge,
        (false, false, false) if large_queues && !client => PlanName::LargeQueues,
        (false, false, false) if client && !large_queues => PlanName::Client,
        _ if large_queues || client => return Err("--large-queues and --client are runs of their own".into()),
        (false, false, false) => PlanName::Usual,
        (true, false, false) => PlanName::Quick,
        (false, true, false) => PlanName::Full,
        (false, false, true) => PlanName::Large,
        (false, true, true) => PlanName::LargeFull,
        (true, _, _) => return Err("--quick cannot be combined with --full or --large".into()),
    };
    let seconds = seconds.unwrap_or(match plan {
        PlanName::Quick => 0.5,
        PlanName::ScaleOut if quick => 1.0,
        PlanName::Blobs if quick => 0.5,
        // `pgbench` counts whole seconds.
        PlanName::ScaleOut | PlanName::ScaleOutLarge => 3.0,
        // With this, all rounds of the usual run, including Azurite's slow ones, take a quarter of an hour.
        PlanName::Usual => 1.5,
        PlanName::Full
        | PlanName::Large
        | PlanName::LargeFull
        | PlanName::Huge
        | PlanName::LargeQueues
        | PlanName::Client
        | PlanName::Blobs
        | PlanName::BlobsLarge => 2.0,
    });
    let rounds = rounds.unwrap_or(match plan {
        PlanName::Quick => 1,
        PlanName::ScaleOut | PlanName::Blobs if quick => 1,
        PlanName::Full | PlanName::LargeFull => 3,
        PlanName::Usual
        | PlanName::Large
        | PlanName::Huge
        | PlanName::LargeQueues
        | PlanName::Client
        | PlanName::ScaleOut
        | PlanName::ScaleOutLarge
        | PlanName::Blobs
        | PlanName::BlobsLarge => 5,
    });
    if !(0.1..=600.0).contains(&seconds) {
        return Err("--seconds must be between 0.1 and 600".into());
    }
    if !(1..=100).contains(&rounds) {
        return Err("--rounds must be between 1 and 100".into());
    }
    let usual_entities = if huge { HUGE_ENTITIES } else { LARGE_ENTITIES };
    let large_entities = entities.map_or(usual_entities, |millions| millions.saturating_mul(1_000_000));
    // Row keys have no room for more.
    if !(1_000_000..=HUGE_ENTITIES).contains(&large_entities) {
        return Err("--entities must be between 1 and 100 (million)".into());
    }
    let options = Options {
        plan,
        quick,
        server: server.ok_or("--server is missing: it names the lazulite binary to measure")?,
        azurite: azurite.ok_or_else(|| no_azurite.unwrap_or_else(|| "--azurite was not given".to_owned())),
        data,
        rounds,
        seconds: Duration::from_secs_f64(seconds),
        large_entities,
        only,
        only_floors,
        only_disturbed,
        systems,
        rivals,
        write,
        out,
        command: command.unwrap_or_else(|| "lazulite-bench run".to_owned()),
    };
    if !options.rivals.is_empty() && !options.systems.contains(&SystemKind::Durable) {
        return Err("redis and postgres are measured beside durable: --systems must name it too".into());
    }
    let is_scale_out = matches!(plan, PlanName::ScaleOut | PlanName::ScaleOutLarge);
    if is_scale_out && (options.is_partial() || !options.systems.is_empty()) {
        return Err("--scale-out measures everything: it cannot be combined with --only or --systems".into());
    }
    let is_blobs = matches!(plan, PlanName::Blobs | PlanName::BlobsLarge);
    if is_blobs && (options.is_partial() || !options.systems.is_empty()) {
        return Err("--blobs cannot be combined with --only or --systems".into());
    }
    if options.write.is_some() && quick {
        return Err("--write cannot be combined with --quick".into());
    }
    if options.write.is_some() && options.is_partial() && plan != PlanName::Usual {
        return Err("--write with --only is for the usual run: its other workloads stay as they were".into());
    }
    if options.write.is_some() && options.large_entities != usual_entities {
        return Err("--write needs as many entities as usual: it cannot be combined with --entities".into());
    }
    Ok(Some(options))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn options(arguments: &[&str]) -> Result<Options, String> {
        let arguments = ["--server", "s"].iter().chain(arguments);
        parse(&mut Parser::from_args(arguments)).map(|options| options.unwrap())
    }

    #[test]
    fn plans_have_their_defaults() {
        let usual = options(&[]).unwrap();
        assert_eq!(
            (usual.plan, usual.rounds, usual.seconds),
            (PlanName::Usual, 5, Duration::from_millis(1500))
        );
        assert!(usual.wants_floors() && usual.wants_disturbed());
        let quick = options(&["--quick", "--rounds", "2"]).unwrap();
        assert_eq!((quick.plan, quick.rounds), (PlanName::Quick, 2));
        assert_eq!(options(&["--large", "--full"]).unwrap().plan, PlanName::LargeFull);
        let huge = options(&["--huge", "--write", "docs"]).unwrap();
        assert_eq!((huge.plan, huge.large_entities), (PlanName::Huge, HUGE_ENTITIES));
        assert_eq!(options(&["--huge", "--entities", "1"]).unwrap().large_entities, 1_000_000);
        let scale_out = options(&["--scale-out", "--quick"]).unwrap();
        assert_eq!((scale_out.plan, scale_out.rounds), (PlanName::ScaleOut, 1));
        assert_eq!(options(&["--large", "--scale-out"]).unwrap().plan, PlanName::ScaleOutLarge);
        assert_eq!(options(&["--large", "--blobs"]).unwrap().plan, PlanName::BlobsLarge);
        let some = options(&["--systems", "durable,hello", "--only", "page", "--only", "floors"]).unwrap();
        assert_eq!(some.systems, [SystemKind::Durable, SystemKind::Hello]);
        assert!(some.only == [WorkloadKind::Page] && some.wants_floors() && !some.wants_disturbed());
    }

    #[test]
    fn mistakes_get_one_sentence() {
        for (arguments, part) in [
            (&["--bogus"][..], "--bogus"),
            (&["--only", "reed"], "there is no workload 'reed'"),
            (&["--systems", "durable,x"], "there is no system 'x'"),
            (&["--systems", "hello,redis"], "beside durable"),
            (&["--rounds", "0"], "--rounds"),
            (&["--rounds", "x"], "x"),
            (&["--seconds", "0"], "--seconds"),
            (&["--seconds", "nan"], "--seconds"),
            (&["--quick", "--large"], "--quick"),
            (&["--large", "--large-queues"], "--large-queues"),
            (&["--quick", "--write", "docs"], "--write"),
            (&["--full", "--only", "page", "--write", "docs"], "--write"),
            (&["--scale-out", "--quick", "--write", "docs"], "--write"),
            (&["--scale-out", "--full"], "--scale-out"),
            (&["--scale-out", "--quick", "--large"], "--scale-out"),
            (&["--scale-out", "--only", "read"], "--scale-out"),
            (&["--blobs", "--full"], "--blobs"),
            (&["--blobs", "--only", "read"], "--blobs"),
            (&["--entities", "101"], "--entities"),
            (&["--entities", "0"], "--entities"),
            (&["--huge", "--full"], "--huge"),
            (&["--huge", "--large-queues"], "--huge"),
            (&["--huge", "--entities", "10", "--write", "docs"], "--entities"),
            (&["--large", "--entities", "1", "--write", "docs"], "--entities"),
            (&["word"], "word"),
        ] {
            let sentence = options(arguments).unwrap_err();
            assert!(sentence.contains(part) && sentence.lines().count() == 1, "{arguments:?}: {sentence}");
        }
        assert!(parse(&mut Parser::from_args(["--quick"])).unwrap_err().contains("--server"));
    }

    #[test]
    fn the_help_names_every_workload_and_system() {
        for name in WorkloadKind::all().map(WorkloadKind::name).chain(SystemKind::ALL.map(SystemKind::name)) {
            assert!(HELP.contains(name), "{name}");
        }
        assert!(RivalKind::ALL.iter().all(|rival| HELP.contains(rival.name())));
    }
}
