//! The last minutes, second by second: what changed in the [`Totals`] from one second to the next.
//!
//! It is fed once a second by somebody who has a clock, so it costs a request nothing. Memory is bounded by
//! [`SECONDS_MAX`].

use std::collections::VecDeque;

use crate::metrics::{PLAN_COUNT, Totals};

/// Five minutes.
pub const SECONDS_MAX: usize = 300;

/// What happened within one second.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Sample {
    pub requests: u64,
    pub errors: u64,
    pub p50_micros: u64,
    pub p99_micros: u64,
    /// Reads by plan, from the cheapest to the most expensive.
    pub plans: [u64; PLAN_COUNT],
    pub bytes_in: u64,
    pub bytes_out: u64,
}

#[derive(Default)]
pub struct Live {
    last: Totals,
    samples: VecDeque<Sample>,
}

impl Live {
    /// To be called once a second.
    pub fn tick(&mut self, totals: Totals) {
        let durations = totals.durations.since(&self.last.durations);
        let mut plans = [0; PLAN_COUNT];
        for (index, plan) in plans.iter_mut().enumerate() {
            *plan = totals.plans[index].requests.saturating_sub(self.last.plans[index].requests);
        }
        if self.samples.len() == SECONDS_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            requests: totals.requests.saturating_sub(self.last.requests),
            errors: totals.errors.saturating_sub(self.last.errors),
            p50_micros: durations.quantile(0.5),
            p99_micros: durations.quantile(0.99),
            plans,
            bytes_in: totals.bytes_in.saturating_sub(self.last.bytes_in),
            bytes_out: totals.bytes_out.saturating_sub(self.last.bytes_out),
        });
        self.last = totals;
    }

    /// The oldest first.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = &Sample> + Clone {
        self.samples.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_what_happened_in_it() {
        let mut live = Live::default();
        live.tick(Totals { requests: 10, errors: 1, ..Totals::default() });
        live.tick(Totals { requests: 15, errors: 1, bytes_in: 7, ..Totals::default() });
        let samples: Vec<_> =
            live.samples().map(|sample| (sample.requests, sample.errors, sample.bytes_in)).collect();
        assert_eq!(samples, [(10, 1, 0), (5, 0, 7)]);
        for _ in 0..2 * SECONDS_MAX {
            live.tick(Totals::default());
        }
        assert_eq!(live.samples().len(), SECONDS_MAX);
    }
}
