//! Several front ends that answer together: each gets its share of the connections.

use std::time::Duration;

use loadgen::Error;
use loadgen::measure::Sample;
use loadgen::workload::Workload;

use super::database::Database;
use super::results::Figures;
use crate::compare;
use crate::system::System;

/// One measurement of these systems together, after a warm-up, with the processor time of the database beside them.
pub fn measure(
    systems: &[&System],
    database: Option<&Database>,
    workload: &Workload,
    table: &str,
    time: Duration,
) -> Result<Figures, Error> {
    let share = Workload { connections: (workload.connections / systems.len()).max(1), ..*workload };
    let before = database.and_then(Database::cpu);
    let samples: Vec<Sample> = std::thread::scope(|scope| {
        let measure = |system: &'_ System| compare::measure_on(system, &share, table, None, None, time);
        let threads: Vec<_> = systems.iter().map(|system| scope.spawn(move || measure(system))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a generator panicked")?);
        joined.collect::<Result<Vec<Sample>, Error>>()
    })?;
    let after = database.and_then(Database::cpu);
    let mut figures = together(&samples);
    let used = before.zip(after).map(|(before, after)| after.saturating_sub(before).as_secs_f64());
    // The warm-up took a third of the time, at the same rate, and its processor time is in this.
    let count = figures.requests_per_second * (time + time / 3).as_secs_f64();
    figures.database_cpu_us = used.map(|seconds| seconds * 1e6 / count.max(1.0));
    Ok(figures)
}

/// Rates add up. Latencies are those of the slower one, and processor time is per request.
fn together(samples: &[Sample]) -> Figures {
    let rate: f64 = samples.iter().map(|sample| sample.requests_per_second).sum();
    let worst = |of: fn(&Sample) -> f64| samples.iter().map(of).fold(0.0, f64::max);
    let cpu: Option<f64> =
        samples.iter().map(|sample| Some(sample.server_cpu_us? * sample.requests_per_second)).sum();
    Figures {
        requests_per_second: rate,
        entities_per_second: samples.iter().map(|sample| sample.entities_per_second).sum(),
        p50_us: worst(|sample| sample.p50_us),
        p99_us: Some(worst(|sample| sample.p99_us)),
        server_cpu_us: cpu.map(|per_second| per_second / rate.max(1e-9)),
        database_cpu_us: None,
        // The generators share a process, and each reports all of it.
        generator_busy: Some(worst(|sample| sample.generator_busy.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn rates_add_up_and_the_slower_counts() {
        let (mut slow, fast) = (sample(1000.0), sample(3000.0));
        (slow.p99_us, slow.server_cpu_us) = (9000.0, Some(20.0));
        let figures = together(&[slow, fast]);
        assert_eq!((figures.requests_per_second, figures.p99_us), (4000.0, Some(9000.0)));
        let expected = (20.0 * 1000.0 + 12.34 * 3000.0) / 4000.0;
        assert!((figures.server_cpu_us.unwrap() - expected).abs() < 1e-6);
    }
}
