//! The report of a run on PostgreSQL: its tables as Markdown.

use std::fmt::Write;

use loadgen::workload::WorkloadKind;

use super::database::SETTINGS;
use super::results::{Contender, Figures, Keeper, ScaleOutCell, ScaleOutRun, fact};
use crate::report::{thousands, time};

const MIB: f64 = 1024.0 * 1024.0;

/// One line while the run goes on.
pub fn say(contender: Contender, figures: Option<&Figures>, not_measured: Option<&str>) {
    match (figures, not_measured) {
        (Some(figures), _) => eprintln!(
            "    {:24} {:>10.0} requests/s, CPU {:>6.1} us and {:>6.1} us in PostgreSQL",
            contender.what(),
            figures.requests_per_second,
            figures.server_cpu_us.unwrap_or_default(),
            figures.database_cpu_us.unwrap_or_default()
        ),
        (None, why) => eprintln!("    {:24} not measured: {}", contender.what(), why.unwrap_or_default()),
    }
}

/// Everything that the run measured.
pub fn tables(run: &ScaleOutRun) -> String {
    let mut text = String::new();
    let settings = SETTINGS.map(|(name, value)| format!("`{name} = {value}`")).join(", ");
    let _ = writeln!(
        text,
        "Medians of {} rounds of {} s, in turn, with 64 connections, on {} cores that the generator, the front ends, \
         PostgreSQL and its standby share. PostgreSQL {}, `fsync` on, {settings}. Load average before the run: {}.\n",
        run.rounds,
        run.seconds,
        run.machine.cores,
        run.postgres,
        run.load_average_before.map_or("unknown".to_owned(), |load| format!("{load:.2}")),
    );
    let is_large = run.fact(fact::DROP_MS).is_some();
    match is_large {
        true => text.push_str(&sizes(run)),
        false => {
            for (keeper, title) in [
                (Keeper::Alone, "One PostgreSQL, and the systems without:"),
                (Keeper::WithStandby, "PostgreSQL with a synchronous standby:"),
            ] {
                text.push_str(&cells(run, keeper, title));
            }
        }
    }
    for note in &run.notes {
        let _ = writeln!(text, "{note}\n");
    }
    text
}

fn cells(run: &ScaleOutRun, keeper: Keeper, title: &str) -> String {
    let is_shown = |cell: &&ScaleOutCell| match keeper {
        Keeper::Alone => cell.keeper != Keeper::WithStandby,
        keeper => cell.keeper == keeper,
    };
    let shown: Vec<&ScaleOutCell> = run.cells.iter().filter(is_shown).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{title}\n\n\
         | workload | system | requests/s | entities/s | p50 | p99 | CPU, server | CPU, PostgreSQL | of `pgbench` | generator, cores |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for cell in shown {
        let (what, system) = (cell.what(), cell.contender.what());
        let Some(figures) = &cell.figures else {
            let why = cell.not_measured.as_deref().unwrap_or("no reason known").replace(['|', '\n'], " ");
            let _ = writeln!(text, "| {what} | {system} | not measured: {why} | | | | | | | |");
            continue;
        };
        let kind = WorkloadKind::from_name(&cell.workload);
        let plain = kind.and_then(|kind| run.figures(kind, keeper, Contender::Pgbench));
        let share = plain.filter(|_| cell.contender != Contender::Pgbench && cell.keeper == keeper);
        let share = share.map(|plain| figures.requests_per_second / plain.requests_per_second);
        let _ = writeln!(
            text,
            "| {what} | {system} | {} | {} | {} | {} | {} | {} | {} | {} |",
            thousands(figures.requests_per_second),
            thousands(figures.entities_per_second),
            time(figures.p50_us),
            or_dash(figures.p99_us.map(time)),
            or_dash(figures.server_cpu_us.map(time)),
            or_dash(figures.database_cpu_us.map(time)),
            or_dash(share.map(|share| format!("{share:.2} ×"))),
            or_dash(figures.generator_busy.map(|busy| format!("{busy:.2}"))),
        );
    }
    text.push('\n');
    text
}

/// One front end, on a small and on a large table.
fn sizes(run: &ScaleOutRun) -> String {
    let mut text = String::from(
        "| workload | entities | requests/s | p50 | p99 | CPU, front end | CPU, PostgreSQL |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for cell in &run.cells {
        let Some(figures) = &cell.figures else { continue };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            cell.what(),
            cell.label(),
            thousands(figures.requests_per_second),
            time(figures.p50_us),
            or_dash(figures.p99_us.map(time)),
            or_dash(figures.server_cpu_us.map(time)),
            or_dash(figures.database_cpu_us.map(time)),
        );
    }
    text.push('\n');
    let fact = |name: &str| run.fact(name);
    if let (Some(rate), Some(seconds), Some(bytes)) =
        (fact(fact::LOAD_ENTITIES_PER_SECOND), fact(fact::LOAD_S), fact(fact::DATABASE_BYTES))
    {
        let _ = writeln!(
            text,
            "Loaded through one front end by transactions of 100: {} entities/s, {seconds:.0} s; the database then had {}.\n",
            thousands(rate),
            mebibytes(bytes)
        );
    }
    if let Some(ms) = fact(fact::DROP_MS) {
        let _ = write!(text, "Dropping the large table took {ms:.1} ms. ");
    }
    match (fact(fact::SPACE_BACK_S), fact(fact::SPACE_KEPT_BYTES)) {
        (Some(seconds), _) => {
            let _ = writeln!(text, "Its space was back {seconds:.0} s later.\n");
        }
        (None, Some(bytes)) => {
            let _ = writeln!(text, "When it was no longer waited for, {} were not back.\n", mebibytes(bytes));
        }
        (None, None) => {}
    }
    text
}

fn mebibytes(bytes: f64) -> String {
    format!("{} MiB", thousands((bytes / MIB).round()))
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::scale_out::results::ScaleOutResults;

    /// Reads and inserts, with and without a standby.
    pub fn example() -> ScaleOutResults {
        let cell = |kind: WorkloadKind, keeper, contender, rate: f64| ScaleOutCell {
            workload: kind.name().to_owned(),
            entities: 100_000,
            keeper,
            contender,
            figures: (rate > 0.0).then(|| Figures { requests_per_second: rate, ..Figures::default() }),
            not_measured: (rate <= 0.0).then(|| "too | slow".to_owned()),
        };
        let main = crate::report::tests::example().main.unwrap();
        let (read, insert) = (WorkloadKind::Read, WorkloadKind::Insert);
        let run = ScaleOutRun {
            command: "cargo xtask bench --scale-out".to_owned(),
            commit: main.commit,
            machine: main.machine,
            postgres: "15.1".to_owned(),
            rounds: 5,
            seconds: 3.0,
            load_average_before: Some(0.1),
            cells: vec![
                cell(read, Keeper::Alone, Contender::Pgbench, 50_000.0),
                cell(read, Keeper::Alone, Contender::FrontEnd, 30_000.0),
                cell(read, Keeper::Azurite, Contender::Azurite, 0.0),
                cell(insert, Keeper::Alone, Contender::Pgbench, 20_000.0),
                cell(insert, Keeper::Alone, Contender::FrontEnd, 10_000.0),
                cell(read, Keeper::WithStandby, Contender::Pgbench, 40_000.0),
                cell(read, Keeper::WithStandby, Contender::FrontEnd, 2_000.0),
                cell(read, Keeper::WithStandby, Contender::FrontEndWithLease, 30_000.0),
            ],
            facts: Default::default(),
            notes: vec!["Something is missing.".to_owned()],
        };
        ScaleOutResults { compared: Some(run), large: None }
    }

    #[test]
    fn a_row_has_its_share_and_what_failed_says_why() {
        let text = tables(example().compared.as_ref().unwrap());
        for part in [
            "| point read | one front end | 30,000 | 0.0 | 0.0 µs | – | – | – | 0.60 × | – |",
            "| point read | one front end, `etcd=` | 30,000 | 0.0 | 0.0 µs | – | – | – | 0.75 × | – |",
            "| point read | Azurite | not measured: too   slow |",
            "Something is missing.",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let rows = text.lines().filter(|line| line.starts_with("| "));
        let columns: Vec<usize> = rows.map(|line| line.matches('|').count()).collect();
        assert!(columns.iter().all(|count| *count == columns[0]), "{columns:?}");
    }

    #[test]
    fn results_survive_their_file() {
        let run = example().compared.unwrap();
        let text = serde_json::to_string(&run).unwrap();
        let again: ScaleOutRun = serde_json::from_str(&text).unwrap();
        assert_eq!(tables(&again), tables(&run));
    }
}
