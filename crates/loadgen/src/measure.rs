//! One measurement: a probe that checks an answer, a warm-up, then counts, latencies and processor time.
//!
//! Promises: in the open loop latencies count from when a request was due, so a server that stalls cannot hide it by
//! making the generator wait (coordinated omission). A sample exists only if every answer was right.
//! Leaves to others: sending (`generator.rs`) and choosing the requests (`workload.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::generator::{Generator, LoadModel, Requests, Tally};
use crate::response::excerpt;
use crate::workload::{Counter, Workload, WorkloadKind, count_entities};
use crate::{Error, clock, process, table};

/// A measurement with fewer answers than this is extended, up to `SLOW_FACTOR` times its length.
const ANSWERS_WANTED: u64 = 20;
const SLOW_FACTOR: u32 = 5;
/// Limit for one whole pass of a scan, before anything is measured.
const PASS_TIME_MAX: Duration = Duration::from_secs(60);
/// With fewer answers than this, the rate is taken up to the last answer: the time after it would distort the rate.
const FEW_ANSWERS: u64 = 1000;

/// How long a request of the open loop waits for a free connection before it is given up and counted.
const PATIENCE: Duration = Duration::from_secs(10);

/// The results of one measurement: one workload on one system.
#[derive(Clone, Copy, Serialize, Deserialize, PartialEq, Debug)]
pub struct Sample {
    pub requests_per_second: f64,
    /// Entities read or written; for scans, those returned.
    pub entities_per_second: f64,
    /// The same, but for scans it also counts entities that a filter rejected.
    pub examined_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub longest_us: f64,
    /// The longest time without any answer.
    pub gap_longest_us: f64,
    /// Processor time of the server for each request.
    pub server_cpu_us: Option<f64>,
    /// Share of one core that the generator used.
    pub generator_busy: Option<f64>,
    /// Requests of the open loop that were due but never sent.
    pub not_sent: u64,
    /// Requests whose connection the server closed without an answer.
    pub unanswered: u64,
}

/// The pages and entities of one whole scan.
#[derive(Clone, Copy)]
pub struct Pass {
    pub pages: u64,
    pub entities: u64,
}

pub struct Measurement<'a> {
    pub workload: &'a Workload,
    pub endpoint: &'a Endpoint,
    pub table: &'a str,
    pub counter: &'a Counter,
    /// Requests per second of the open loop; `None` for the closed one.
    pub rate: Option<f64>,
    pub warm_up: Duration,
    pub seconds: Duration,
    /// The server's process, when it runs on this machine.
    pub process: Option<u32>,
    /// Accept any answer: the bare server answers every request alike.
    pub accepts_all: bool,
    /// Tolerate connections closed without an answer. Azurite does that when it is behind: its timer for idle
    /// connections runs while requests wait to be read.
    pub tolerates_closing: bool,
    pub pass: Option<Pass>,
    pub stop: Option<&'a Arc<AtomicBool>>,
}

impl Measurement<'_> {
    pub fn run(&self) -> Result<Sample, Error> {
        let mut requests = self.workload.requests(self.endpoint, self.table, self.counter)?;
        let mut requests = Judged { requests: &mut *requests, accepts_all: self.accepts_all };
        let mut generator = Generator::open(self.endpoint.address, self.workload.connections, 1)?;
        if let Some(stop) = self.stop {
            generator.stop_with(stop.clone());
        }
        let model = match self.rate {
            Some(per_second) => LoadModel::Open { per_second, patience: PATIENCE },
            None => LoadModel::Closed,
        };
        generator.set_load_model(model);
        generator.run_for(self.warm_up, &mut requests)?;
        generator.finish(&mut requests)?;
        self.judge(&generator.take())?;

        generator.set_load_model(model);
        let server_cpu = || self.process.and_then(process::cpu);
        let (server_before, own_before, start) = (server_cpu(), process::own_cpu(), clock::now());
        generator.run_for(self.seconds, &mut requests)?;
        // A slow server gets more time, so that its rate does not hang on a few answers.
        while generator.tally().all().accepted.total() < ANSWERS_WANTED
            && self.judge(generator.tally()).is_ok()
        {
            let is_stopped = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if is_stopped || clock::now().duration_since(start) > self.seconds * SLOW_FACTOR {
                break;
            }
            generator.run_for(Duration::from_millis(100), &mut requests)?;
        }
        let tally = generator.take();
        let (server_after, own_after) = (server_cpu(), process::own_cpu());
        let end = match tally.all().accepted.total() {
            few if few < FEW_ANSWERS => generator.last_sign(),
            _ => clock::now(),
        };
        let took = end.duration_since(start).as_secs_f64().max(1e-9);
        self.judge(&tally)?;
        let all = tally.all();
        if all.accepted.total() == 0 {
            return Err(format!("no answer within {:?}", self.seconds * SLOW_FACTOR).into());
        }
        generator.finish(&mut requests)?;
        let count = all.accepted.total() as f64;
        let requests_per_second = count / took;
        let used = |before: Option<Duration>, after: Option<Duration>| Some((after? - before?).as_secs_f64());
        let (per_request, examined) = self.entities_per_request();
        Ok(Sample {
            requests_per_second,
            entities_per_second: requests_per_second * per_request,
            examined_per_second: requests_per_second * examined,
            p50_us: all.accepted.percentile_us(0.5),
            p99_us: all.accepted.percentile_us(0.99),
            longest_us: all.accepted.longest().as_secs_f64() * 1e6,
            gap_longest_us: tally.gap_longest.as_secs_f64() * 1e6,
            server_cpu_us: used(server_before, server_after).map(|seconds| seconds * 1e6 / count.max(1.0)),
            generator_busy: used(own_before, own_after).map(|seconds| seconds / took),
            not_sent: tally.not_sent,
            unanswered: all.broken,
        })
    }

    fn judge(&self, tally: &Tally) -> Result<(), Error> {
        if self.tolerates_closing { tally.nothing_refused() } else { tally.only_accepted() }
    }

    /// Entities per request: returned or written, and examined.
    fn entities_per_request(&self) -> (f64, f64) {
        match self.pass {
            // A filter is measured by whole passes, a scan by pages.
            Some(pass) if self.workload.kind == WorkloadKind::Filter => {
                let shape = self.workload.shape;
                (pass.entities as f64, (shape.entities / shape.partitions) as f64)
            }
            Some(pass) => {
                let per_page = pass.entities as f64 / pass.pages.max(1) as f64;
                (per_page, per_page)
            }
            _ => {
                let entities = self.workload.entities_per_request() as f64;
                (entities, entities)
            }
        }
    }
}

/// Wraps a source of requests so that, if wanted, any answer is accepted.
struct Judged<'a> {
    requests: &'a mut dyn Requests,
    accepts_all: bool,
}

impl Requests for Judged<'_> {
    fn next(&mut self, connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        self.requests.next(connection, out)
    }

    fn accepts(&self, status: u16) -> bool {
        self.accepts_all || self.requests.accepts(status)
    }

    fn answered(&mut self, connection: usize, answer: &[u8]) -> bool {
        self.accepts_all || self.requests.answered(connection, answer)
    }
}

/// Sends one request and checks the answer's content, not only its status. Follows a scan through all its pages and
/// counts them. An error if the answer differs from what was loaded.
pub fn probe(
    workload: &Workload,
    endpoint: &Endpoint,
    table: &str,
    counter: &Counter,
) -> Result<Option<Pass>, Error> {
    let mut requests = workload.requests(endpoint, table, counter)?;
    let (mut request, mut pass) = (Vec::new(), Pass { pages: 0, entities: 0 });
    let start = clock::now();
    loop {
        requests.next(0, &mut request).ok_or("the workload asks nothing")?;
        let (status, answer) = table::ask(endpoint, &request)?;
        if !workload.is_right(status, &answer) {
            return Err(format!("a wrong answer:\n{}", excerpt(&answer)).into());
        }
        let Some(expected) = workload.entities_per_pass() else { return Ok(None) };
        pass.pages += 1;
        pass.entities += count_entities(&answer);
        requests.answered(0, answer.as_bytes());
        if crate::sources::continuation_of(answer.as_bytes()).is_empty() {
            if pass.entities != expected {
                return Err(format!("a scan gave {} entities, not {expected}", pass.entities).into());
            }
            return Ok(Some(pass));
        }
        if clock::now().duration_since(start) > PASS_TIME_MAX {
            return Err(format!("one pass takes longer than {PASS_TIME_MAX:?}").into());
        }
    }
}

impl Sample {
    /// Throughput relative to another system's; for scans it counts entities, because page sizes differ between
    /// systems.
    pub fn throughput_of(&self, other: &Sample, workload: &str) -> f64 {
        match WorkloadKind::from_name(workload) {
            Some(WorkloadKind::Scan | WorkloadKind::Filter) => {
                self.examined_per_second / other.examined_per_second
            }
            _ => self.requests_per_second / other.requests_per_second,
        }
    }

    /// The median of each field separately. `None` without samples.
    pub fn median(samples: &[Sample]) -> Option<Sample> {
        if samples.is_empty() {
            return None;
        }
        let of = |number: &dyn Fn(&Sample) -> f64| median(samples.iter().map(number).collect());
        let optional = |number: &dyn Fn(&Sample) -> Option<f64>| {
            let numbers: Option<Vec<f64>> = samples.iter().map(number).collect();
            numbers.map(median)
        };
        Some(Sample {
            requests_per_second: of(&|sample| sample.requests_per_second),
            entities_per_second: of(&|sample| sample.entities_per_second),
            examined_per_second: of(&|sample| sample.examined_per_second),
            p50_us: of(&|sample| sample.p50_us),
            p99_us: of(&|sample| sample.p99_us),
            longest_us: of(&|sample| sample.longest_us),
            gap_longest_us: of(&|sample| sample.gap_longest_us),
            server_cpu_us: optional(&|sample| sample.server_cpu_us),
            generator_busy: optional(&|sample| sample.generator_busy),
            not_sent: samples.iter().map(|sample| sample.not_sent).max().unwrap_or(0),
            unanswered: samples.iter().map(|sample| sample.unanswered).sum(),
        })
    }
}

/// The middle number, or the mean of the two in the middle. 0 without numbers.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    if numbers.is_empty() {
        return 0.0;
    }
    numbers.sort_by(f64::total_cmp);
    (numbers[numbers.len() / 2] + numbers[(numbers.len() - 1) / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }
}
