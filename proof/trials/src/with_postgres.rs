//! `with-postgres`: runs a command beside a new PostgreSQL, and tells it where that is.
//!
//! Test servers of `testkit` then use it, two front ends each. With `--server`, two front ends of that binary run on
//! it too, behind a balancer that hands every request to the next one, and the command gets a connection string for
//! them: that is how the suites of the official clients run.

use std::path::{Path, PathBuf};
use std::process::Command;

use lexopt::{Arg, Parser};
use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY, Postgres, RoundRobin};

use crate::Error;
use crate::victim::{Launch, Victim, panicked};

const HELP: &str = "\
Usage: lazulite-trials with-postgres [--server PATH] -- COMMAND [ARGUMENTS]

  --server PATH      Also start two front ends of this binary, behind a balancer
";
const FRONT_END_COUNT: usize = 2;

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut server, mut command) = (None, None);
    while let Some(option) = options.next()? {
        match option {
            Arg::Long("server") => server = Some(PathBuf::from(options.value()?)),
            Arg::Long("help") | Arg::Short('h') => {
                print!("{HELP}");
                return Ok(true);
            }
            Arg::Value(program) => {
                let mut chosen = Command::new(program);
                chosen.args(options.raw_args()?);
                command = Some(chosen);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let mut command = command.ok_or("a command is missing: --help says where it goes")?;
    let postgres = match Postgres::start() {
        Ok(postgres) => postgres,
        Err(reason) => {
            println!("SKIPPED: {reason}");
            return Ok(true);
        }
    };
    postgres.accept_plain_passwords()?;
    // Without this, every session would read all certificates of this machine.
    let url = format!("{}?sslmode=disable", postgres.url());
    command.env("LAZULITE_TEST_ENGINE", &url);
    let Some(server) = server else { return Ok(command.status()?.success()) };
    let front_ends = Balanced::start(&server, &url)?;
    // Tests that start a server of their own, with other options, use the same binary.
    command.env("LAZULITE_SERVER", std::fs::canonicalize(&server)?);
    command.env("LAZULITE_CONNECTION_STRING", front_ends.connection_string());
    command.env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
    let succeeded = command.status()?.success();
    println!(
        "{} pages were fetched from another front end than the page before",
        front_ends.tables.page_count()
    );
    Ok(front_ends.finish()? && succeeded)
}

/// Two front ends, and a balancer for each service.
struct Balanced {
    front_ends: Vec<Victim>,
    tables: RoundRobin,
    queues: RoundRobin,
}

impl Balanced {
    fn start(server: &Path, engine: &str) -> Result<Balanced, Error> {
        let mut launch = Launch::new(server, Path::new(""));
        launch.engine = Some(engine.to_owned());
        launch.arguments = vec!["--no-admin".to_owned()];
        let mut front_ends = Vec::new();
        for _ in 0..FRONT_END_COUNT {
            let started = launch.start()?;
            front_ends.push(started.map_err(|refusal| format!("no front end: {}", refusal.words))?);
        }
        let tables: Vec<_> = front_ends.iter().map(Victim::addr).collect();
        let queues: Vec<_> = front_ends.iter().map(Victim::queue_addr).collect();
        Ok(Balanced { front_ends, tables: RoundRobin::start(&tables)?, queues: RoundRobin::start(&queues)? })
    }

    fn connection_string(&self) -> String {
        let endpoint = |service: &str, balancer: &RoundRobin| {
            format!("{service}Endpoint=http://{}/{EMULATOR_ACCOUNT};", balancer.addr())
        };
        format!(
            "DefaultEndpointsProtocol=http;AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};{}{}",
            endpoint("Table", &self.tables),
            endpoint("Queue", &self.queues)
        )
    }

    /// Whether none of them ended by itself or panicked.
    fn finish(self) -> Result<bool, Error> {
        let mut is_good = true;
        for front_end in self.front_ends {
            let has_ended = front_end.has_ended();
            let words = front_end.finish();
            if has_ended || panicked(&words) {
                println!("a front end ended or panicked: {words}");
                is_good = false;
            }
        }
        Ok(is_good)
    }
}
