//! The log: each message is one line on standard error.
//!
//! Promises: a closed standard error never stops the server. Which messages exist is up to the code that logs them.

use std::io::Write as _;

use log::{LevelFilter, Log, Metadata, Record};

struct Logger;

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = record.level().as_str().to_lowercase();
            // Ignore a closed standard error: the server must keep serving.
            let _ = writeln!(std::io::stderr(), "lazulite: {level}: {}", record.args());
        }
    }

    fn flush(&self) {}
}

pub fn start(silent: bool) {
    log::set_max_level(if silent { LevelFilter::Error } else { LevelFilter::Warn });
    // Fails only when a logger is set already, and this runs once.
    let _ = log::set_logger(&Logger);
}
