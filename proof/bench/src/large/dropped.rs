//! Drops the large table: how long its answer takes, and how long the server then works to remove its rows.
//!
//! No request tells when the rows are gone, so the server's processor time does: nothing else keeps it busy.

use std::time::Duration;

use loadgen::{Error, clock, process, table};

use crate::results::{Run, fact};
use crate::system::{DataDirectory, System};

/// So long it is waited for the end.
const SWEEP_TIME_MAX: Duration = Duration::from_secs(3600);
/// So long it is waited for the beginning: the drop is first folded into the tree.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(60);
const WINDOW: Duration = Duration::from_secs(1);
/// Processor time within a window that means work. An idle server uses a tenth of it.
const BUSY_CPU_MIN: Duration = Duration::from_millis(50);
/// So many windows without work mean the end.
const IDLE_WINDOWS: u32 = 5;

pub fn run(server: &System, name: &str, data: &DataDirectory, run: &mut Run) -> Result<(), Error> {
    eprintln!("dropping the large table");
    let asked = clock::now();
    table::delete(&server.endpoint, name)?;
    let drop_ms = clock::now().duration_since(asked).as_secs_f64() * 1000.0;
    run.facts.insert(fact::DROP_MS.to_owned(), drop_ms);
    eprintln!("    answered after {drop_ms:.1} ms; waiting until its rows are removed");
    let mut watch = Watch::default();
    let mut before = process::cpu(server.process()).ok_or("the server's processor time cannot be read")?;
    let start = clock::now();
    let end = loop {
        std::thread::sleep(WINDOW);
        let after = process::cpu(server.process()).ok_or("the server ended while it removed rows")?;
        if let Some(end) = watch.see(clock::now().duration_since(start), after.saturating_sub(before)) {
            break end;
        }
        before = after;
    };
    match end {
        SweepEnd::Swept(took) => {
            run.facts.insert(fact::SWEEP_S.to_owned(), took.as_secs_f64());
            run.facts.insert(fact::SWEPT_DISK_BYTES.to_owned(), data.bytes() as f64);
            eprintln!("    removed after {:.0} s", took.as_secs_f64());
        }
        SweepEnd::Unknown(why) => {
            run.notes.push(format!("Until the rows of the dropped table were removed: {why}."))
        }
    }
    Ok(())
}

#[derive(PartialEq, Debug)]
enum SweepEnd {
    Swept(Duration),
    Unknown(&'static str),
}

/// Sees how busy the server is, until it has been busy and is no more.
#[derive(Default)]
struct Watch {
    /// The end of the last window with work.
    last_busy: Option<Duration>,
    idle_windows: u32,
}

impl Watch {
    fn see(&mut self, now: Duration, used: Duration) -> Option<SweepEnd> {
        if used >= BUSY_CPU_MIN {
            self.last_busy = Some(now);
            self.idle_windows = 0;
        } else {
            self.idle_windows += 1;
        }
        match self.last_busy {
            Some(last) if self.idle_windows >= IDLE_WINDOWS => Some(SweepEnd::Swept(last)),
            Some(_) if now > SWEEP_TIME_MAX => Some(SweepEnd::Unknown("more than an hour")),
            None if now > BEGIN_TIME_MAX => {
                Some(SweepEnd::Unknown("not measured, the server was idle all the time"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: u64 = 400;

    /// The end that the watch sees when these milliseconds of processor time are used in every second.
    fn end(used: impl IntoIterator<Item = u64>) -> Option<SweepEnd> {
        let mut watch = Watch::default();
        let windows = used.into_iter().zip(1..);
        windows
            .filter_map(|(used, second)| watch.see(Duration::from_secs(second), Duration::from_millis(used)))
            .next()
    }

    #[test]
    fn the_end_is_when_the_server_stays_idle_after_work() {
        let used = [10, 0, BUSY, BUSY, 0, 10, BUSY, 10, 0, 0, 10, 0, BUSY];
        assert_eq!(end(used), Some(SweepEnd::Swept(Duration::from_secs(7))));
        assert_eq!(end([0, 0, 0, 0, 0, 0, 0, BUSY, BUSY]), None);
    }

    #[test]
    fn it_is_not_waited_for_ever() {
        assert!(
            matches!(end(std::iter::repeat_n(0, 100)), Some(SweepEnd::Unknown(why)) if why.contains("idle"))
        );
        assert!(
            matches!(end(std::iter::repeat_n(BUSY, 4000)), Some(SweepEnd::Unknown(why)) if why.contains("hour"))
        );
    }
}
