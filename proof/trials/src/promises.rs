//! Checks the promises of a trial: prints each with the figure that decides it, and repeats the broken ones at the end.

use loadgen::histogram::Histogram;

use crate::summary;

#[derive(Default)]
pub struct Promises {
    pub kept: usize,
    pub broken: Vec<String>,
}

impl Promises {
    /// Prints the promise with the figure that decides it.
    pub fn check(&mut self, held: bool, promise: &str) {
        println!("    {} {promise}", if held { "held:  " } else { "BROKEN:" });
        if held {
            self.kept += 1;
        } else {
            self.broken.push(promise.to_owned());
        }
    }

    /// Prints the end of a trial: the broken promises, how to repeat it, and the verdict.
    pub fn finish(&self, trial: &str, again: &str) -> bool {
        println!("\n{trial}: {} promises held, {} broken", self.kept, self.broken.len());
        for broken in &self.broken {
            println!("BROKEN: {broken}");
        }
        if !self.broken.is_empty() {
            println!("To repeat it, though never with the same timing: {again}");
        }
        summary::verdict(trial, &self.broken)
    }
}

/// `p50 1.2 ms, p99 3.4 ms, longest 5.6 ms`
pub fn latencies(histogram: &Histogram) -> String {
    format!(
        "p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        histogram.percentile_us(0.5) / 1e3,
        histogram.percentile_us(0.99) / 1e3,
        histogram.longest().as_secs_f64() * 1e3
    )
}
