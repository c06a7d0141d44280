//! The words in which trials that count (`crash`, `power`, `damage`) tell what they did, and the last line of all who
//! check promises.

use std::fmt::Display;
use std::time::Duration;

/// `power` keeps the states of as many.
pub const BROKEN_SHOWN_MAX: usize = 5;

/// The first line: what was done, how long it took, and what repeats it.
pub fn head(trial: &str, done: &str, took: Duration, seed: u64) {
    println!("\n{trial}: {done} in {:.0} s, seed {seed}", took.as_secs_f64());
}

/// A figure and what it counts.
pub fn line(figure: impl Display, words: &str) {
    println!("  {figure:>9} {words}");
}

/// The first of the broken promises.
pub fn broken(promises: &[String]) {
    for promise in promises.iter().take(BROKEN_SHOWN_MAX) {
        println!("BROKEN: {promise}");
    }
}

/// The last line; returns whether every promise held.
pub fn verdict(trial: &str, broken: &[String]) -> bool {
    let held = broken.is_empty();
    println!("{trial}: {}", if held { "every promise held" } else { "A PROMISE WAS BROKEN" });
    held
}
