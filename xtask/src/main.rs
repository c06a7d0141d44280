//! `cargo xtask …`: everything a developer runs, in one place and with nothing to install.
//!
//! This file reads the command line and nothing else. It has no dependencies, so that it compiles in seconds.

mod areas;
mod azurite;
mod bench;
mod cases;
mod conformance;
mod cost;
mod counts;
mod deny;
mod differences;
mod document;
mod fuzz;
mod golden;
mod process;
mod suites;
mod test;
mod toolchains;
mod trials;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test [--only NAME]...    the whole gate: format, clippy, dependencies, rust tests, release build,
                           official SDKs, a slice of the long tests
                           NAME is one of: format, clippy, deny, rust, build, cost, python, javascript,
                           go, java, rust-sdk, browser, crash, power, damage, disk, histories, simulate,
                           backup, overload, fuzz
  conformance [--against azurite] [--only NAME]...
                           every official client and the raw HTTP suite, counted and written down in
                           docs/conformance.md; with --against, the raw HTTP suite against Azurite too
                           NAME is one of: raw-http, python, javascript, go, java, rust-sdk, az, browser
                           (with --only, nothing is written down)
  bench [ARGUMENTS]...     Lazulite beside Azurite, a bare HTTP server and the raw engine; with --write the
                           result is written down in docs/performance.md
                           (`cargo xtask bench --help` lists its arguments)
  cost [ARGUMENTS]...      instructions and allocations of the hot paths, against proof/cost/budgets.txt
                           (`cargo xtask cost --help` lists its arguments)
  deny                     licences, banned crates and duplicates among the dependencies, against deny.toml
  golden --endpoint URL    replay tests/golden against any server and print the differences
                           (`cargo xtask golden --help` lists its arguments)
  fuzz [ARGUMENTS]...      mutated inputs for everything that reads bytes from strangers or from the disk
                           (`cargo xtask fuzz --help` lists its arguments)
  crash, power, damage, disk, histories, simulate, seeded-bugs, overload, soak, backup [ARGUMENTS]...
                           the long tests of what the server survives
                           (`cargo xtask crash --help` lists the arguments of one)
  help                     this text
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    let result = match command.as_str() {
        "test" => test::run(&rest),
        "conformance" => conformance::run(&rest),
        "bench" => bench::run(&rest),
        "cost" => cost::run(&rest),
        "deny" => deny::run(&rest),
        "golden" => golden::run(&rest),
        "fuzz" => fuzz::run(&rest),
        trial if trials::TRIALS.contains(&trial) => trials::run(trial, &rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(true)
        }
        other => Err(format!("unknown command '{other}'\n\n{HELP}")),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
