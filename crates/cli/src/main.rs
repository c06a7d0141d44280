//! The one binary: `lazulite serve`.
//!
//! Every way to fail ends here, as one clear sentence and exit code 1.

mod args;
mod logger;
mod serve;

use std::process::ExitCode;

use args::Command;

fn main() -> ExitCode {
    let outcome = args::parse(std::env::args_os().skip(1)).and_then(|command| match command {
        Command::Help => {
            print!("{}", args::HELP);
            Ok(())
        }
        Command::Version => {
            println!("lazulite {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Command::Serve(options) => serve::serve(options),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("lazulite: {sentence}");
            ExitCode::FAILURE
        }
    }
}
