//! Prints the summaries of the trials that count (`crash`, `power`, `damage`), and the last line of every trial that
//! checks promises.

use std::fmt::Display;
use std::time::Duration;

/// The most broken promises that are shown. `power` keeps as many states.
pub const BROKEN_SHOWN_MAX: usize = 5;

/// Prints the first line: what was done, how long it took, and the seed.
pub fn head(trial: &str, done: &str, took: Duration, seed: u64) {
    println!("\n{trial}: {done} in {:.0} s, seed {seed}", took.as_secs_f64());
}

/// Prints a figure and what it counts.
pub fn line(figure: impl Display, words: &str) {
    println!("  {figure:>9} {words}");
}

/// Prints the first broken promises.
pub fn broken(promises: &[String]) {
    for promise in promises.iter().take(BROKEN_SHOWN_MAX) {
        println!("BROKEN: {promise}");
    }
}

/// Prints the last line. Returns whether every promise held.
pub fn verdict(trial: &str, broken: &[String]) -> bool {
    let held = broken.is_empty();
    println!("{trial}: {}", if held { "every promise held" } else { "A PROMISE WAS BROKEN" });
    held
}
