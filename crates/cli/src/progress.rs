//! A progress bar on standard error, and the time a command takes.
//!
//! Promises: nothing is drawn unless standard error is a terminal, and drawing never fails a command.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use engine::env::{Clock, SystemClock};

const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
const BAR_WIDTH: u64 = 30;

pub struct Progress {
    clock: SystemClock,
    shown_at: Option<Duration>,
    is_terminal: bool,
}

impl Progress {
    pub fn start() -> Progress {
        Progress { clock: SystemClock::new(), shown_at: None, is_terminal: std::io::stderr().is_terminal() }
    }

    pub fn elapsed(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Draws `done` rows out of about `total`, unless it drew a moment ago.
    pub fn show(&mut self, done: u64, total: u64) {
        let now = self.clock.monotonic();
        if !self.is_terminal || self.shown_at.is_some_and(|at| now.saturating_sub(at) < REDRAW_INTERVAL) {
            return;
        }
        self.shown_at = Some(now);
        // The total is too high: it counts the catalogue's rows too, and those that go with messages.
        let total = total.max(done).max(1);
        let filled = done * BAR_WIDTH / total;
        let bar: String = (0..BAR_WIDTH).map(|at| if at < filled { '#' } else { '.' }).collect();
        let rate = done as f64 / now.as_secs_f64().max(0.001);
        // Ignore a closed terminal: the command must go on.
        let _ = write!(std::io::stderr(), "\r[{bar}] {:3} %  {done} rows, {rate:.0}/s ", done * 100 / total);
    }

    /// Erases the bar.
    pub fn clear(&mut self) {
        if self.shown_at.take().is_some() {
            let _ = write!(std::io::stderr(), "\r{:78}\r", "");
        }
    }
}
