//! A line on the terminal that says how far a long command is. Where nobody looks, it says nothing.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use engine::env::{Clock, SystemClock};

const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
const BAR_WIDTH: u64 = 30;

pub struct Progress {
    clock: SystemClock,
    shown_at: Option<Duration>,
    is_seen: bool,
}

impl Progress {
    pub fn start() -> Progress {
        Progress { clock: SystemClock::new(), shown_at: None, is_seen: std::io::stderr().is_terminal() }
    }

    pub fn elapsed(&self) -> Duration {
        self.clock.monotonic()
    }

    /// So many entities of about so many.
    pub fn show(&mut self, done: u64, total: u64) {
        let now = self.clock.monotonic();
        if !self.is_seen || self.shown_at.is_some_and(|at| now.saturating_sub(at) < REDRAW_INTERVAL) {
            return;
        }
        self.shown_at = Some(now);
        // The total is about right: it counts rows of the catalogue too, and misses nothing.
        let total = total.max(done).max(1);
        let filled = done * BAR_WIDTH / total;
        let bar: String = (0..BAR_WIDTH).map(|at| if at < filled { '#' } else { '.' }).collect();
        let rate = done as f64 / now.as_secs_f64().max(0.001);
        // A terminal that is gone is no reason to stop.
        let _ =
            write!(std::io::stderr(), "\r[{bar}] {:3} %  {done} entities, {rate:.0}/s ", done * 100 / total);
    }

    /// Leaves a clean line behind.
    pub fn clear(&mut self) {
        if self.shown_at.take().is_some() {
            let _ = write!(std::io::stderr(), "\r{:78}\r", "");
        }
    }
}
