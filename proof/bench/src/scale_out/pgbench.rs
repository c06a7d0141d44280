//! `pgbench`: what PostgreSQL does by itself with single rows, through the same number of connections.
//!
//! Its table has the columns, the index and the storage settings of the engine's `rows`, and as many rows with bodies as
//! long; its statements are the plainest that read and insert such a row: no fence, no version, no stamp that means
//! anything. They are prepared, and the key and the body travel with every call.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use loadgen::workload::WorkloadKind;
use loadgen::{Error, process};

use super::database::Database;
use super::results::Figures;

/// Every key has 16 digits, like the generator's. The keys of loaded rows are this far apart.
const FIRST_KEY: u64 = 1_000_000_000_000_000;
const KEY_SPREAD: u64 = 100_000_000;
/// One for each core of a small machine; more than that would only wait.
const THREAD_COUNT: usize = 2;

pub struct Pgbench {
    program: PathBuf,
    scripts: PathBuf,
    /// As long as the record of an entity.
    body: String,
}

impl Pgbench {
    /// Makes the table and writes the scripts.
    pub fn prepare(
        database: &Database,
        scripts: &Path,
        entities: u64,
        body_bytes: usize,
    ) -> Result<Pgbench, Error> {
        let body = "x".repeat(body_bytes);
        database.sql(&format!(
            "CREATE SCHEMA plain; CREATE TABLE plain.rows ( \
               table_id bigint NOT NULL, version bigint NOT NULL, stamp bigint NOT NULL, \
               pk bytea NOT NULL, rk bytea NOT NULL, body bytea NOT NULL, PRIMARY KEY (table_id, pk, rk)); \
             ALTER TABLE plain.rows ALTER pk SET STORAGE PLAIN, ALTER rk SET STORAGE PLAIN, \
               ALTER body SET STORAGE EXTERNAL; \
             INSERT INTO plain.rows SELECT 16, n, n, 'p', \
               ({FIRST_KEY} + n * {KEY_SPREAD})::text::bytea, '{body}' FROM generate_series(0::bigint, {entities} - 1) AS n"
        ))?;
        std::fs::create_dir_all(scripts)?;
        let last = entities - 1;
        let read = format!(
            "\\set key {FIRST_KEY} + random(0, {last}) * {KEY_SPREAD}\n\
             SELECT version, body FROM plain.rows WHERE table_id = 16 AND pk = 'p' AND rk = :key;\n"
        );
        let insert = format!(
            "\\set key random({FIRST_KEY}, {} - 1)\n\
             INSERT INTO plain.rows VALUES (16, :key, :key, 'p', :key, :body);\n",
            10 * FIRST_KEY
        );
        std::fs::write(scripts.join("read.sql"), read)?;
        std::fs::write(scripts.join("insert.sql"), insert)?;
        let program = testkit::postgres_programs()?.join("pgbench");
        Ok(Pgbench { program, scripts: scripts.to_owned(), body })
    }

    /// `None`: there is no script for this workload.
    pub fn measure(
        &self,
        database: &Database,
        kind: WorkloadKind,
        clients: usize,
        time: Duration,
    ) -> Result<Option<Figures>, Error> {
        let script = match kind {
            WorkloadKind::Read => "read.sql",
            WorkloadKind::Insert => "insert.sql",
            _ => return Ok(None),
        };
        let address = database.address()?;
        let mut command = Command::new(&self.program);
        command.env("PGPASSWORD", database.password());
        // Bodies come back as they are. The default would send two characters for every byte.
        command.env("PGOPTIONS", "-c synchronous_commit=on -c bytea_output=escape");
        command.args(["--no-vacuum", "--protocol=prepared", "--username=postgres"]);
        command.arg(format!("--host={}", address.ip())).arg(format!("--port={}", address.port()));
        command.arg(format!("--client={clients}")).arg(format!("--jobs={}", THREAD_COUNT.min(clients)));
        // It only takes whole seconds. In one more it opens its sessions and warms up.
        let seconds = time.as_secs_f64().ceil() + 1.0;
        command.arg(format!("--time={seconds}")).arg(format!("--define=body={}", self.body));
        command.arg("--file").arg(self.scripts.join(script)).arg("postgres");
        let before = database.cpu();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (mut words, mut complaints) = (String::new(), String::new());
        child.stdout.take().ok_or("pgbench has no output")?.read_to_string(&mut words)?;
        child.stderr.take().ok_or("pgbench has no output")?.read_to_string(&mut complaints)?;
        // Its times stand in /proc until it is waited for.
        let own_cpu = process::cpu(child.id());
        let status = child.wait()?;
        let database_cpu = database.cpu().zip(before).map(|(after, before)| after.saturating_sub(before));
        if !status.success() {
            return Err(format!("pgbench failed: {}", complaints.trim()).into());
        }
        let report = Report::read(&words).ok_or_else(|| format!("pgbench printed: {words}"))?;
        Ok(Some(Figures {
            requests_per_second: report.per_second,
            entities_per_second: report.per_second,
            p50_us: report.latency_us,
            p99_us: None,
            server_cpu_us: None,
            database_cpu_us: database_cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / report.count),
            generator_busy: own_cpu.map(|cpu| cpu.as_secs_f64() / seconds),
        }))
    }
}

struct Report {
    count: f64,
    per_second: f64,
    latency_us: f64,
}

impl Report {
    fn read(text: &str) -> Option<Report> {
        let after = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split([' ', '/']).next()?.parse::<f64>().ok()
        };
        Some(Report {
            count: after("number of transactions actually processed: ").filter(|count| *count > 0.0)?,
            per_second: after("tps = ")?,
            latency_us: after("latency average = ")? * 1000.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report_is_read() {
        let text = "pgbench (15.14)\nscaling factor: 1\nquery mode: prepared\nnumber of clients: 64\n\
            number of transactions actually processed: 153425\nnumber of failed transactions: 0 (0.000%)\n\
            latency average = 1.251 ms\ninitial connection time = 110.1 ms\n\
            tps = 51162.905541 (without initial connection time)\n";
        let report = Report::read(text).unwrap();
        assert_eq!((report.count, report.latency_us), (153_425.0, 1251.0));
        assert!((report.per_second - 51162.9).abs() < 0.1);
        assert!(Report::read("tps = 3").is_none());
    }
}
