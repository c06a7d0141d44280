//! Metrics in the text format of Prometheus, version 0.0.4.
//!
//! Promises: every family has one HELP and one TYPE line, all samples of a family stand together, and a histogram's
//! `+Inf` bucket equals its count. Label values are from closed sets, or come from the operator.

use std::fmt::Write as _;

use crate::metrics::{Metrics, OperationCount, SUCCESSES};
use crate::notes::PLANS;
use crate::operation::Operation;
use protocol::table::region::PlanKind;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The bounds of the exposed buckets are powers of two in microseconds: 64 us to 67 s.
const BOUND_EXPONENTS: std::ops::RangeInclusive<u32> = 6..=26;

/// What a value means to Prometheus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Counter,
    Gauge,
}

/// A value that somebody else keeps.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// Without the prefix `lazulite_`.
    pub name: &'static str,
    pub help: &'static str,
    pub kind: Kind,
    pub value: f64,
    /// Values with the same name stand one after another and differ in their label.
    pub label: Option<(&'static str, String)>,
}

impl Gauge {
    pub fn new(name: &'static str, help: &'static str, value: f64) -> Gauge {
        Gauge { name, help, kind: Kind::Gauge, value, label: None }
    }

    pub fn counter(name: &'static str, help: &'static str, value: f64) -> Gauge {
        Gauge { kind: Kind::Counter, ..Gauge::new(name, help, value) }
    }

    pub fn labelled(self, name: &'static str, value: impl Into<String>) -> Gauge {
        Gauge { label: Some((name, value.into())), ..self }
    }
}

/// A plan as a label.
pub fn plan_label(plan: PlanKind) -> &'static str {
    match plan {
        PlanKind::Point => "point",
        PlanKind::RowRange => "row_range",
        PlanKind::PartitionScan => "partition_scan",
        PlanKind::PartitionRange => "partition_range",
        PlanKind::TableScan => "table_scan",
    }
}

impl Metrics {
    /// Writes all counters, and these values with them.
    pub fn write_prometheus(&self, gauges: &[Gauge], out: &mut String) {
        let counted =
            Operation::ALL.iter().filter_map(|operation| Some((*operation, self.operation(*operation)?)));
        let counted: Vec<(Operation, OperationCount)> = counted.collect();
        // Writing to a string never fails.
        let _ = write_requests(&counted, out);
        let _ = write_durations(&counted, out);
        let _ = write_bytes(&counted, out);
        let _ = self.write_plans(out);
        let _ = write_gauges(gauges, out);
    }

    fn write_plans(&self, out: &mut String) -> std::fmt::Result {
        let plans = self.plans();
        let mut family = |name: &str, help: &str, value: &dyn Fn(usize) -> u64| {
            begin(out, name, help, Kind::Counter)?;
            for (index, plan) in PLANS.into_iter().enumerate() {
                writeln!(out, "lazulite_{name}{{plan=\"{}\"}} {}", plan_label(plan), value(index))?;
            }
            Ok(())
        };
        family("reads_total", "Reads of entities by how they found them.", &|plan| plans[plan].requests)?;
        family("rows_examined_total", "Entities that reads looked at.", &|plan| plans[plan].examined)?;
        family("rows_returned_total", "Entities that reads answered with.", &|plan| plans[plan].returned)
    }
}

fn begin(out: &mut String, name: &str, help: &str, kind: Kind) -> std::fmt::Result {
    let kind = match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    };
    writeln!(out, "# HELP lazulite_{name} {help}\n# TYPE lazulite_{name} {kind}")
}

fn write_requests(counted: &[(Operation, OperationCount)], out: &mut String) -> std::fmt::Result {
    begin(
        out,
        "requests_total",
        "Requests by outcome. A batch with a refused operation has status 202 and that operation's error.",
        Kind::Counter,
    )?;
    for (operation, count) in counted {
        let mut line = |status: &str, error: &str, count: u64| {
            let (service, operation) = (operation.service().label(), operation.name());
            let labels = format_args!(
                "service=\"{service}\",operation=\"{operation}\",status=\"{status}\",error=\"{error}\""
            );
            writeln!(out, "lazulite_requests_total{{{labels}}} {count}")
        };
        for (status, count) in SUCCESSES.iter().zip(&count.successes).filter(|(_, count)| **count > 0) {
            line(if *status == 0 { "other".to_owned() } else { status.to_string() }.as_str(), "", *count)?;
        }
        for error in &count.errors {
            line(&error.status.to_string(), error.code.name(), error.count)?;
        }
    }
    Ok(())
}

fn write_durations(counted: &[(Operation, OperationCount)], out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "# HELP lazulite_request_duration_seconds From the head of a request to its answer, ready to send.\n\
         # TYPE lazulite_request_duration_seconds histogram"
    )?;
    for (operation, OperationCount { durations, .. }) in counted {
        let labels = labels(*operation);
        let total = durations.total();
        for exponent in BOUND_EXPONENTS {
            let micros = 1u64 << exponent;
            let (bound, below) = (micros as f64 / 1e6, durations.below(micros));
            writeln!(out, "lazulite_request_duration_seconds_bucket{{{labels},le=\"{bound}\"}} {below}")?;
        }
        let sum = durations.sum_nanos as f64 / 1e9;
        writeln!(out, "lazulite_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} {total}")?;
        writeln!(out, "lazulite_request_duration_seconds_sum{{{labels}}} {sum}")?;
        writeln!(out, "lazulite_request_duration_seconds_count{{{labels}}} {total}")?;
    }
    Ok(())
}

fn write_bytes(counted: &[(Operation, OperationCount)], out: &mut String) -> std::fmt::Result {
    begin(out, "received_bytes_total", "Bytes of payloads that were read.", Kind::Counter)?;
    for (operation, count) in counted {
        writeln!(out, "lazulite_received_bytes_total{{{}}} {}", labels(*operation), count.bytes_in)?;
    }
    begin(out, "sent_bytes_total", "Bytes of the bodies of answers.", Kind::Counter)?;
    for (operation, count) in counted {
        writeln!(out, "lazulite_sent_bytes_total{{{}}} {}", labels(*operation), count.bytes_out)?;
    }
    Ok(())
}

fn write_gauges(gauges: &[Gauge], out: &mut String) -> std::fmt::Result {
    let mut previous = "";
    for Gauge { name, help, kind, value, label } in gauges {
        if *name != previous {
            begin(out, name, help, *kind)?;
            previous = name;
        }
        match label {
            Some((label, text)) => {
                writeln!(out, "lazulite_{name}{{{label}=\"{}\"}} {value}", escaped(text))?;
            }
            None => writeln!(out, "lazulite_{name} {value}")?,
        }
    }
    Ok(())
}

fn labels(operation: Operation) -> String {
    format!("service=\"{}\",operation=\"{}\"", operation.service().label(), operation.name())
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
