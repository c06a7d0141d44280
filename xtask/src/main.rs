//! `cargo xtask …`: every command a developer runs, with nothing to install.
//!
//! This file only picks the command. The crate has no dependencies, so that it compiles in seconds.

mod areas;
mod azurite;
mod bench;
mod cases;
mod client;
mod conformance;
mod cost;
mod counts;
mod deny;
mod differences;
mod document;
mod fuzz;
mod golden;
mod packages;
mod patterns;
mod process;
mod programs;
mod publish;
mod raw_http;
mod scale_out;
mod screenshots;
mod server;
mod set_up;
mod suites;
mod test;
mod tidy;
mod toolchains;
mod trials;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test [--only NAME]...    the whole gate: tidy, format, clippy, dependencies, rust tests, release build,
                           official SDKs, a slice of the long tests
                           NAME is one of: tidy, format, clippy, deny, rust, build, cost, client-azurite, publish,
                           patterns, python, javascript, go, java, rust-sdk, python-old, javascript-old, go-old,
                           java-old, browser, programs, crash, queue-crash, blob-crash, employees, power, damage,
                           disk, histories, queue-histories, blob-histories, simulate, queue-simulate, backup,
                           overload, postgres, fuzz
  tidy [--public]          check the tree against ARCHITECTURE.md: words, paths and uses of its rooms, module
                           docs, names, links
  conformance [--against azurite] [--only NAME]...
                           every official client and the raw HTTP suites; writes the counts to
                           docs/conformance.md; with --against, the raw HTTP suite against Azurite too
                           NAME is one of: raw-http, python, javascript, go, java, rust-sdk, python-old,
                           javascript-old, go-old, java-old, az, browser (with --only, nothing is written)
  client --against azurite
                           the client's suites against Azurite; what differs must be in
                           crates/client/tests/azurite.txt
  publish                  a dry run of publishing the client and the crates that it needs
  bench [ARGUMENTS]...     Lazulite beside Azurite, a bare HTTP server, Redis, PostgreSQL and the raw engine; with
                           --write, writes the result to docs/performance.md; --scale-out compares front ends on PostgreSQL
                           with pgbench, and writes to docs/scale-out.md
                           (`cargo xtask bench --help` lists its arguments)
  cost [ARGUMENTS]...      instructions and allocations of the hot paths, against proof/cost/budgets.txt
                           (`cargo xtask cost --help` lists its arguments)
  deny                     licences, banned crates and duplicates among the dependencies, against deny.toml
  golden --endpoint URL    replay tests/golden against any server and print the differences
                           (`cargo xtask golden --help` lists its arguments)
  patterns [--write]       run every example of crates/patterns against a release server and compare its output with
                           docs/patterns; with --write, write it there
  programs [--slice]       rclone, restic, azcopy and adlfs with pandas against a release server: 10,000 files and one
                           of 5 GiB there and back, or as much as the gate runs
  screenshots [DIRECTORY]  pictures of every view of the explorer, at the size of a desk and of a phone, light and
                           dark; by default into target/screenshots
  fuzz [ARGUMENTS]...      mutated inputs for everything that reads bytes from the network or the disk
                           (`cargo xtask fuzz --help` lists its arguments)
  crash, queue-crash, blob-crash, employees, power, damage, disk, histories, queue-histories, blob-histories,
  simulate, queue-simulate, seeded-bugs, overload, soak, backup [ARGUMENTS]...
                           the long tests: crashes, damage, full disks, overload and the like
                           (`cargo xtask crash --help` lists the arguments of one)
  scale-out [ARGUMENTS]... several front ends on PostgreSQL: the suites over two of them, and a cluster whose parts die
                           (`cargo xtask scale-out --help` lists the arguments)
  help                     this text
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    let result = match command.as_str() {
        "test" => test::run(&rest),
        "tidy" => tidy::run(&rest),
        "conformance" => conformance::run(&rest),
        "client" => client::run(&rest),
        "publish" => publish::run(&rest),
        "bench" => bench::run(&rest),
        "cost" => cost::run(&rest),
        "deny" => deny::run(&rest),
        "golden" => golden::run(&rest),
        "patterns" => patterns::run(&rest),
        "programs" => programs::run(&rest),
        "screenshots" => screenshots::run(&rest),
        "fuzz" => fuzz::run(&rest),
        "scale-out" => scale_out::run(&rest),
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
