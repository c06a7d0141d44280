//! The benchmark: `lazulite-bench run` measures, `lazulite-bench hello` is the ceiling to measure against.
//!
//! Absolute numbers from one machine mean little, so the report gives ratios within one run: every workload runs
//! against each system in turn, for several rounds, and medians count. The generator is one thread in a process of its
//! own. It reports how busy it was, so that nobody mistakes its limit for the server's.

mod blobs;
mod client;
mod compare;
mod disturbed;
mod document;
mod floors;
mod hello;
mod large;
mod large_queue;
mod machine;
mod options;
mod plan;
mod report;
mod results;
mod rivals;
#[cfg(target_os = "linux")]
mod scale_out;
mod system;
mod targets;

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::{Arg, Parser, ValueExt};
use loadgen::{Error, process};

use compare::Comparison;
use machine::Machine;
use options::{Options, PlanName};
use results::{Results, Run, fact};
use system::{DataDirectory, Programs, System, SystemKind};

const WRONG_USE: u8 = 2;

fn main() -> ExitCode {
    let mut parser = Parser::from_env();
    let outcome = match parser.next() {
        Ok(Some(Arg::Value(command))) if command == "run" => match options::parse(&mut parser) {
            Ok(Some(options)) => run(&options),
            Ok(None) => {
                print!("{}", options::HELP);
                Ok(())
            }
            Err(sentence) => return wrong_use(&sentence),
        },
        Ok(Some(Arg::Value(command))) if command == "hello" || command == "files" => {
            match bare_server(&mut parser) {
                Ok(bare) => match bare.file {
                    Some(file) => hello::serve_file(bare.port, file),
                    None => hello::serve(bare.port, bare.body_bytes),
                },
                Err(error) => return wrong_use(&error.to_string()),
            }
        }
        Ok(None | Some(Arg::Long("help") | Arg::Short('h'))) => {
            print!("{}", options::HELP);
            Ok(())
        }
        Ok(Some(other)) => return wrong_use(&other.unexpected().to_string()),
        Err(error) => return wrong_use(&error.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn wrong_use(sentence: &str) -> ExitCode {
    eprintln!("error: {sentence}");
    ExitCode::from(WRONG_USE)
}

/// A server to measure against.
struct BareServer {
    port: u16,
    body_bytes: usize,
    file: Option<PathBuf>,
}

fn bare_server(parser: &mut Parser) -> Result<BareServer, lexopt::Error> {
    let mut bare = BareServer { port: 0, body_bytes: hello::BODY_BYTES, file: None };
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("port") => bare.port = parser.value()?.parse()?,
            Arg::Long("bytes") => bare.body_bytes = parser.value()?.parse()?,
            Arg::Long("file") => bare.file = Some(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected()),
        }
    }
    Ok(bare)
}

fn run(options: &Options) -> Result<(), Error> {
    if matches!(options.plan, PlanName::ScaleOut | PlanName::ScaleOutLarge) {
        #[cfg(target_os = "linux")]
        return scale_out::run(options);
        #[cfg(not(target_os = "linux"))]
        return Err("--scale-out starts clusters of PostgreSQL, which it can do on Linux only".into());
    }
    let run = measure(options)?;
    let results = match &options.write {
        Some(directory) => document::write(run, options.is_partial(), directory)?,
        None => {
            let mut results = Results::default();
            results.put(run);
            results
        }
    };
    let shown = match options.plan {
        PlanName::Large | PlanName::LargeFull => &results.large,
        PlanName::Huge => &results.huge,
        PlanName::LargeQueues => &results.large_queues,
        PlanName::Client => &results.client,
        PlanName::Blobs => &results.blobs,
        PlanName::BlobsLarge => &results.large_blobs,
        // They have returned above.
        PlanName::ScaleOut | PlanName::ScaleOutLarge => &None,
        PlanName::Usual | PlanName::Quick | PlanName::Full => &results.main,
    };
    let mut text = String::new();
    if let Some(run) = shown {
        text.push_str(&report::tables(run));
    }
    text.push_str(&targets::table(&results));
    println!("{text}");
    if let Some(path) = &options.out {
        results::write_file(path, &text)?;
    }
    Ok(())
}

fn measure(options: &Options) -> Result<Run, Error> {
    let data = DataDirectory::create(options.data.as_deref())?;
    let mut kinds = plan::systems(options);
    let mut notes = Vec::new();
    if let (Err(why), true) = (&options.azurite, kinds.contains(&SystemKind::Azurite)) {
        eprintln!("\n*** AZURITE IS NOT MEASURED: {why} ***\n");
        notes.push(format!("Azurite was not measured: {why}."));
        kinds.retain(|kind| *kind != SystemKind::Azurite);
    }
    let programs =
        Programs { server: options.server.clone(), azurite: options.azurite.as_ref().ok().cloned() };
    let azurite = programs.azurite.as_deref().filter(|_| kinds.contains(&SystemKind::Azurite));
    let mut run = Run {
        plan: match options.plan {
            PlanName::Usual => "usual",
            PlanName::Quick => "quick",
            PlanName::Full => "full",
            PlanName::Large | PlanName::LargeFull => "large",
            PlanName::Huge => "huge",
            PlanName::LargeQueues => "large-queues",
            PlanName::Client => "client",
            PlanName::Blobs => "blobs",
            PlanName::BlobsLarge => "large-blobs",
            PlanName::ScaleOut | PlanName::ScaleOutLarge => "scale-out",
        }
        .to_owned(),
        command: options.command.clone(),
        commit: machine::commit(),
        machine: Machine::describe(&data.0, azurite),
        rounds: options.rounds,
        seconds: options.seconds.as_secs_f64(),
        load_average_before: process::load_average(),
        cells: Vec::new(),
        floors: Vec::new(),
        transfers: Vec::new(),
        rivals: Vec::new(),
        load_steps: Vec::new(),
        processes: Vec::new(),
        facts: Default::default(),
        notes,
    };
    if let Ok(metadata) = std::fs::metadata(&options.server) {
        run.facts.insert(fact::BINARY_BYTES.to_owned(), metadata.len() as f64);
    }
    match options.plan {
        PlanName::Large | PlanName::LargeFull | PlanName::Huge => {
            large::run(options, &programs, &data, &mut run)?;
        }
        PlanName::LargeQueues => large_queue::run(options, &programs, &data, &mut run)?,
        PlanName::Client => client::run(options, &programs, &data, &mut run)?,
        PlanName::Blobs => blobs::run(options, &programs, &data, &mut run)?,
        PlanName::BlobsLarge => blobs::run_large(options, &programs, &data, &mut run)?,
        PlanName::ScaleOut | PlanName::ScaleOutLarge => {}
        PlanName::Usual | PlanName::Quick | PlanName::Full => {
            compare_systems(options, &programs, &kinds, &data, &mut run)?;
        }
    }
    Ok(run)
}

fn compare_systems(
    options: &Options,
    programs: &Programs,
    kinds: &[SystemKind],
    data: &DataDirectory,
    run: &mut Run,
) -> Result<(), Error> {
    if options.wants_floors() {
        run.floors = floors::measure(&data.0, options.seconds)?;
    }
    let mut systems = Vec::new();
    for kind in kinds {
        match System::start(*kind, programs, &data.0) {
            Ok(system) => systems.push(system),
            Err(error) if *kind == SystemKind::Azurite => {
                eprintln!("\n*** AZURITE IS NOT MEASURED: {error} ***\n");
                run.notes.push(format!("Azurite was not measured: {error}."));
            }
            Err(error) => return Err(error),
        }
    }
    let workloads = plan::workloads(options);
    let mut comparison = Comparison::new(options, &systems).with_rivals(rivals::start(options, &data.0, run));
    comparison.run(&workloads, run)?;
    drop(comparison);
    run.processes = systems.iter().map(System::cost).collect();
    // At the end, because only the durable server gets its tables.
    if let (true, Some(system)) =
        (options.wants_disturbed(), systems.iter().find(|system| system.kind == SystemKind::Durable))
    {
        let shape = plan::usual_shape(options);
        disturbed::run(system, shape, options.rounds, options.seconds, run)?;
    }
    for system in systems {
        let is_durable = system.kind == SystemKind::Durable;
        system.stop()?;
        if is_durable {
            let again = System::start(SystemKind::Durable, programs, &data.0)?;
            run.facts.insert(fact::RESTART_MS.to_owned(), again.first_answer.as_secs_f64() * 1000.0);
            again.stop()?;
        }
    }
    Ok(())
}
