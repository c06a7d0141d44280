//! One measurement: a probe that checks an answer, a warm-up, then counts, latencies and processor time.
//!
//! Promises: in the open loop latencies count from when a request was due, so a server that stalls cannot hide it by
//! making the generator wait (coordinated omission). A sample exists only if every answer was right. A workload that
//! takes messages finds at least as many as its queue was loaded with: when they run short the measurement pauses, and
//! neither the time nor the processor time of putting more is counted.
//! Leaves to others: sending (`generator.rs`) and choosing the requests (`workload.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::generator::{Generator, LoadModel, Requests, Tally};
use crate::response::excerpt;
use crate::workload::{Counter, Workload, WorkloadKind, count_entities};
use crate::{Error, clock, process, queue, table};

/// A measurement with fewer answers than this is extended, up to `SLOW_FACTOR` times its length.
const ANSWERS_WANTED: u64 = 20;
/// Azurite needs up to a minute for the first answers to 64 takers.
const SLOW_FACTOR: u32 = 60;
/// Limit for one whole pass of a scan, before anything is measured.
const PASS_TIME_MAX: Duration = Duration::from_secs(60);
/// With fewer answers than this, the rate is taken up to the last answer: the time after it would distort the rate.
const FEW_ANSWERS: u64 = 1000;
/// The fewest messages put for a workload that takes them. More, once it is known how fast it is.
const SUPPLY_MESSAGES_MIN: u64 = 4000;
const SUPPLY_TIME_MAX: Duration = Duration::from_secs(600);

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
    /// 0 in results from before it was measured.
    #[serde(default)]
    pub p999_us: f64,
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
        let takes_messages = self.workload.kind.messages_taken() > 0 && !self.accepts_all;
        let mut requests = Judged {
            requests: &mut *requests,
            accepts_all: self.accepts_all,
            supply: takes_messages.then(Supply::default),
        };
        let mut generator = Generator::open(self.endpoint.address, self.workload.connections, 1)?;
        if let Some(stop) = self.stop {
            generator.stop_with(stop.clone());
        }
        let model = match self.rate {
            Some(per_second) => LoadModel::Open { per_second, patience: PATIENCE },
            None => LoadModel::Closed,
        };
        generator.set_load_model(model);
        self.send_for(self.warm_up, model, &mut generator, &mut requests)?;
        generator.finish(&mut requests)?;
        self.judge(&generator.take())?;

        requests.supply(|supply| self.put_supply(supply, self.seconds))?;
        generator.set_load_model(model);
        let before = self.used();
        let start = before.at;
        let mut pauses = self.send_for(self.seconds, model, &mut generator, &mut requests)?;
        // A slow server gets more time, so that its rate does not hang on a few answers.
        while generator.tally().all().accepted.total() < ANSWERS_WANTED
            && self.judge(generator.tally()).is_ok()
        {
            let is_stopped = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if is_stopped || clock::now().duration_since(start) > self.seconds * SLOW_FACTOR {
                break;
            }
            pauses.add(self.send_for(Duration::from_millis(100), model, &mut generator, &mut requests)?);
        }
        let tally = generator.take();
        let after = self.used();
        let end = match tally.all().accepted.total() {
            few if few < FEW_ANSWERS => generator.last_sign(),
            _ => clock::now(),
        };
        let took = end.duration_since(start).saturating_sub(pauses.time).as_secs_f64().max(1e-9);
        self.judge(&tally)?;
        let all = tally.all();
        if all.accepted.total() == 0 {
            return Err(format!("no answer within {:?}", self.seconds * SLOW_FACTOR).into());
        }
        generator.finish(&mut requests)?;
        let count = all.accepted.total() as f64;
        let requests_per_second = count / took;
        let used = |before: Option<Duration>, after: Option<Duration>, paused: Duration| {
            Some(after?.saturating_sub(before?).saturating_sub(paused).as_secs_f64())
        };
        let (per_request, examined) = self.entities_per_request();
        Ok(Sample {
            requests_per_second,
            entities_per_second: requests_per_second * per_request,
            examined_per_second: requests_per_second * examined,
            p50_us: all.accepted.percentile_us(0.5),
            p99_us: all.accepted.percentile_us(0.99),
            p999_us: all.accepted.percentile_us(0.999),
            longest_us: all.accepted.longest().as_secs_f64() * 1e6,
            gap_longest_us: tally.gap_longest.as_secs_f64() * 1e6,
            server_cpu_us: used(before.server_cpu, after.server_cpu, pauses.server_cpu)
                .map(|seconds| seconds * 1e6 / count.max(1.0)),
            generator_busy: used(before.own_cpu, after.own_cpu, pauses.own_cpu).map(|seconds| seconds / took),
            not_sent: tally.not_sent,
            unanswered: all.broken,
        })
    }

    /// Sends for this long, without the pauses in which messages are put. Returns the pauses.
    fn send_for(
        &self,
        duration: Duration,
        model: LoadModel,
        generator: &mut Generator,
        requests: &mut Judged<'_>,
    ) -> Result<Pauses, Error> {
        let mut pauses = Pauses::default();
        let mut left = duration;
        loop {
            if requests.supply.as_ref().is_some_and(|supply| supply.operations_left == 0) {
                let before = self.used();
                requests.supply(|supply| self.put_supply(supply, left))?;
                pauses.add(before.until(&self.used()));
                // The schedule of an open loop begins anew, or all that was due in the pause would be late.
                generator.set_load_model(model);
            }
            let took = generator.run_for(left, requests)?;
            requests.supply(|supply| {
                supply.took += took;
                Ok(())
            })?;
            left = left.saturating_sub(took);
            let ran_short = requests.supply.as_ref().is_some_and(|supply| supply.operations_left == 0);
            if left.is_zero() || !ran_short {
                return Ok(pauses);
            }
        }
    }

    /// Puts as many messages as will be taken in this time, judged by what was taken so far.
    fn put_supply(&self, supply: &mut Supply, time: Duration) -> Result<(), Error> {
        let per_operation = self.workload.kind.messages_taken();
        let so_far = supply.operations_started as f64 / supply.took.as_secs_f64().max(1e-3);
        let per_second = self.rate.unwrap_or(so_far);
        let operations = (per_second * time.as_secs_f64() * 1.2) as u64;
        let operations = operations.max(SUPPLY_MESSAGES_MIN.div_ceil(per_operation));
        let missing = operations.saturating_sub(supply.operations_left);
        if missing > 0 {
            let messages = missing * per_operation;
            queue::fill(self.endpoint, self.table, messages, SUPPLY_TIME_MAX, self.stop, |_| {})?;
            supply.operations_left += missing;
        }
        Ok(())
    }

    fn used(&self) -> Used {
        Used {
            at: clock::now(),
            server_cpu: self.process.and_then(process::cpu),
            own_cpu: process::own_cpu(),
        }
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

/// Time and processor time up to a moment.
struct Used {
    at: Instant,
    server_cpu: Option<Duration>,
    own_cpu: Option<Duration>,
}

impl Used {
    fn until(&self, later: &Used) -> Pauses {
        let between = |from: Option<Duration>, to: Option<Duration>| {
            to.unwrap_or_default().saturating_sub(from.unwrap_or_default())
        };
        Pauses {
            time: later.at.duration_since(self.at),
            server_cpu: between(self.server_cpu, later.server_cpu),
            own_cpu: between(self.own_cpu, later.own_cpu),
        }
    }
}

/// What was used while nothing was measured.
#[derive(Default)]
struct Pauses {
    time: Duration,
    server_cpu: Duration,
    own_cpu: Duration,
}

impl Pauses {
    fn add(&mut self, other: Pauses) {
        self.time += other.time;
        self.server_cpu += other.server_cpu;
        self.own_cpu += other.own_cpu;
    }
}

/// The messages that a workload may take.
#[derive(Default)]
struct Supply {
    operations_left: u64,
    operations_started: u64,
    took: Duration,
    /// For every connection: whether its operation needs more requests.
    under_way: Vec<bool>,
}

impl Supply {
    /// Whether this connection may send its next request.
    fn allows(&mut self, connection: usize) -> bool {
        if self.under_way.len() <= connection {
            self.under_way.resize(connection + 1, false);
        }
        if self.under_way[connection] {
            return true;
        }
        let Some(left) = self.operations_left.checked_sub(1) else { return false };
        self.operations_left = left;
        self.operations_started += 1;
        true
    }
}

/// Wraps a source of requests so that, if wanted, any answer is accepted, and no more messages are taken than there are.
struct Judged<'a> {
    requests: &'a mut dyn Requests,
    accepts_all: bool,
    supply: Option<Supply>,
}

impl Judged<'_> {
    fn supply(&mut self, act: impl FnOnce(&mut Supply) -> Result<(), Error>) -> Result<(), Error> {
        self.supply.as_mut().map_or(Ok(()), act)
    }
}

impl Requests for Judged<'_> {
    fn next(&mut self, connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        if self.supply.as_mut().is_some_and(|supply| !supply.allows(connection)) {
            return None;
        }
        self.requests.next(connection, out)
    }

    fn accepts_answer(&self, status: u16, answer: &[u8]) -> bool {
        self.accepts_all || self.requests.accepts_answer(status, answer)
    }

    fn accepts(&self, status: u16) -> bool {
        self.accepts_all || self.requests.accepts(status)
    }

    fn answered(&mut self, connection: usize, answer: &[u8]) -> bool {
        let is_complete = self.accepts_all || self.requests.answered(connection, answer);
        if let Some(supply) = &mut self.supply
            && let Some(under_way) = supply.under_way.get_mut(connection)
        {
            *under_way = !is_complete;
        }
        is_complete
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
        let Some(expected) = workload.entities_per_pass() else {
            if requests.answered(0, answer.as_bytes()) {
                return Ok(None);
            }
            continue;
        };
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
            p999_us: of(&|sample| sample.p999_us),
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
