//! The log: one line a message on standard error.

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
            // Nobody may be reading any more: that is no reason to stop serving.
            let _ = writeln!(std::io::stderr(), "lazulite: {level}: {}", record.args());
        }
    }

    fn flush(&self) {}
}

pub fn start(silent: bool) {
    log::set_max_level(if silent { LevelFilter::Error } else { LevelFilter::Warn });
    // A second logger can only be set by a second call.
    let _ = log::set_logger(&Logger);
}
