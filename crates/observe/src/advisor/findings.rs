//! Findings: the rules that turn what was observed into advice, and the order in which it is given.
//!
//! Promises: a finding keeps its id for as long as its cause lasts, also over restarts, and disappears within two
//! windows ([`super::window`]) after the cause does; what is concluded about stored data, within an hour after it was
//! last seen. The order changes only when something changes by a factor of two. What a well-designed table does is no
//! finding: points, ranges, and lists of what is asked for.

use std::cmp::Reverse;
use std::time::Duration;

use protocol::table::limits::{ENTITY_SIZE_BYTES_MAX, PROPERTY_COUNT_MAX};
use protocol::table::region::PlanKind;

use super::busiest::{Busiest, Rate};
use super::entities::EntityReport;
use super::growth::{Growth, GrowthEnd, GrowthReport};
use super::name::hash_of;
use super::prices::Prices;
use super::remedies::{self, Remedy, Wanted};
use super::shapes::{Cost, ShapeReport, Shapes};
use super::sizes::{PartitionReport, Sizes};
use super::words::{amount, bytes, quoted};
use super::{ENTITY_BYTES_NOTABLE, PROPERTIES_NOTABLE};
use crate::Targets;

/// A query that was asked less often tells little about the program, unless it is a very large one.
const SCAN_COUNT_MIN: u64 = 3;
const SCAN_EXAMINED_ALONE_MIN: u64 = 100_000;
const OR_COUNT_MIN: u64 = 3;
/// How many entities a query examines for each that it returns, and how many in all, before it is a finding. A small
/// partition may be read in full: the service answers with one page either way.
const PARTITION_RATIO_MIN: f64 = 4.0;
const PARTITION_EXAMINED_MIN: f64 = 50.0;
const ROW_RANGE_RATIO_MIN: f64 = 10.0;
const ROW_RANGE_EXAMINED_MIN: f64 = 1000.0;
const TABLE_RATIO_MIN: f64 = 2.0;
const TABLE_EXAMINED_MIN: f64 = 20.0;
/// Nobody reads more, and the first are the most important.
const FINDING_COUNT_MAX: usize = 100;
/// From this size on a partition outgrows. Nobody publishes a limit.
const PARTITION_ENTITIES_NOTABLE: f64 = 100_000.0;
const PARTITION_BYTES_NOTABLE: f64 = 256.0 * 1024.0 * 1024.0;
/// From this share of a target on, it is worth a warning.
const NEAR: f64 = 0.8;

/// Something about the design of a table that costs, and what to do about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The same for the same cause.
    pub id: String,
    /// From 1, the most important first.
    pub rank: usize,
    pub severity: Severity,
    pub kind: FindingKind,
    pub account: String,
    /// Empty when it is about the whole account.
    pub table: String,
    /// The filter without values, the partition, or the entity.
    pub subject: String,
    /// One line without numbers.
    pub title: String,
    pub numbers: Vec<(&'static str, f64)>,
    pub explanation: String,
    pub remedy: String,
    /// The keys of the remedy, line by line.
    pub sketch: String,
    /// The page about it, in the project's documentation.
    pub pattern: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    Low,
    Medium,
    High,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }

    fn of(is_high: bool, is_medium: bool) -> Severity {
        match (is_high, is_medium) {
            (true, _) => Severity::High,
            (false, true) => Severity::Medium,
            (false, false) => Severity::Low,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FindingKind {
    HotPartition,
    HotAccount,
    TableScan,
    PartitionRange,
    PartitionScan,
    RowRange,
    OrOfKeys,
    Append,
    Prepend,
    GiantPartition,
    LargeEntity,
    WideEntity,
}

impl FindingKind {
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::HotPartition => "hot-partition",
            FindingKind::HotAccount => "hot-account",
            FindingKind::TableScan => "table-scan",
            FindingKind::PartitionRange => "partition-range",
            FindingKind::PartitionScan => "partition-scan",
            FindingKind::RowRange => "row-range",
            FindingKind::OrOfKeys => "or-of-keys",
            FindingKind::Append => "append",
            FindingKind::Prepend => "prepend",
            FindingKind::GiantPartition => "giant-partition",
            FindingKind::LargeEntity => "large-entity",
            FindingKind::WideEntity => "wide-entity",
        }
    }
}

/// What findings are made from.
pub(super) struct Evidence<'a> {
    pub now: Duration,
    /// How much time the sums cover.
    pub span: Duration,
    pub shapes: &'a Shapes,
    pub partitions: &'a Busiest,
    pub accounts: &'a Busiest,
    pub growth: &'a Growth,
    pub sizes: &'a Sizes,
    pub entities: &'a [EntityReport<'a>],
    pub targets: &'a Targets,
    pub prices: &'a Prices,
}

/// A finding before it has its rank.
struct Draft {
    /// How far it is above what would be no finding.
    excess: f64,
    finding: Finding,
}

impl Evidence<'_> {
    pub(super) fn findings(&self) -> Vec<Finding> {
        let Evidence { now, targets, .. } = *self;
        let mut drafts: Vec<Draft> = Vec::new();
        drafts.extend(self.shapes.report(now).filter_map(|shape| self.scan(&shape)));
        drafts.extend(self.shapes.report(now).filter_map(|shape| self.or_of_keys(&shape)));
        let hot = self.partitions.rates(now, NEAR * f64::from(targets.partition_rows_per_second));
        drafts.extend(hot.iter().map(|rate| self.hot_partition(rate)));
        let hot = self.accounts.rates(now, NEAR * f64::from(targets.account_operations_per_second));
        drafts.extend(hot.iter().map(|rate| self.hot_account(rate)));
        drafts.extend(self.growth.report(now).map(|growth| self.growth(&growth)));
        drafts.extend(self.sizes.partitions(now).filter_map(|partition| self.giant_partition(&partition)));
        drafts.extend(self.near_limits(self.entities, FindingKind::LargeEntity));
        drafts.extend(self.near_limits(self.entities, FindingKind::WideEntity));
        ranked(drafts)
    }

    /// Queries that examine far more than they return.
    fn scan(&self, shape: &ShapeReport<'_>) -> Option<Draft> {
        let ShapeReport { table, text, plan, cost, .. } = *shape;
        if cost.requests < SCAN_COUNT_MIN && cost.examined < SCAN_EXAMINED_ALONE_MIN {
            return None;
        }
        let per_request = cost.examined as f64 / cost.requests as f64;
        let ratio = cost.examined as f64 / cost.returned.max(1) as f64;
        let (kind, ratio_min, examined_min) = match plan {
            PlanKind::Point => return None,
            PlanKind::RowRange => (FindingKind::RowRange, ROW_RANGE_RATIO_MIN, ROW_RANGE_EXAMINED_MIN),
            PlanKind::PartitionScan => {
                (FindingKind::PartitionScan, PARTITION_RATIO_MIN, PARTITION_EXAMINED_MIN)
            }
            PlanKind::PartitionRange => {
                (FindingKind::PartitionRange, PARTITION_RATIO_MIN, PARTITION_EXAMINED_MIN)
            }
            PlanKind::TableScan => (FindingKind::TableScan, TABLE_RATIO_MIN, TABLE_EXAMINED_MIN),
        };
        if ratio < ratio_min || per_request < examined_min {
            return None;
        }
        let what = match plan {
            PlanKind::TableScan => format!("the whole table {table}"),
            PlanKind::PartitionRange => format!("ranges of partitions of {table}"),
            PlanKind::RowRange => format!("long ranges of rows of {table}"),
            PlanKind::PartitionScan | PlanKind::Point => format!("whole partitions of {table}"),
        };
        let title = match remedies::wanted(text) {
            Wanted::Property { name, .. } => format!("Queries for {name} scan {what}"),
            Wanted::RowKey => format!("Queries for a RowKey alone scan {what}"),
            Wanted::Timestamp => format!("Queries for a time scan {what}"),
            Wanted::Nothing => format!("Queries scan {what}"),
        };
        let why = match plan {
            PlanKind::TableScan => "The filter names no PartitionKey, so all of the table is examined",
            PlanKind::PartitionRange => "The PartitionKey has only bounds, so whole partitions are examined",
            PlanKind::RowRange => "The bounds for the RowKey are far wider than what is wanted",
            PlanKind::PartitionScan | PlanKind::Point => {
                "The filter says nothing about the RowKey, so all of the partition is examined"
            }
        };
        let returned = cost.returned as f64 / cost.requests as f64;
        let mut explanation = format!(
            "{why}: {} entities for each query, of which {} are returned. {} queries in the last {} took {} \
             each on average, {} at most.",
            amount(per_request),
            amount(returned),
            amount(cost.requests as f64),
            duration(self.span),
            millis(cost.micros as f64 / cost.requests as f64),
            millis(cost.micros_max as f64)
        );
        if cost.continued > 0 {
            explanation += &format!(
                " {} of them were pages that end before the result does: the caller asks again for the rest.",
                amount(cost.continued as f64)
            );
        }
        explanation += " It gets slower as the table grows; the real service ends a page after five seconds or \
                        1,000 entities and bills each page.";
        let wasted_per_second = cost.examined.saturating_sub(cost.returned) as f64 / self.span.as_secs_f64();
        let severity = Severity::of(
            wasted_per_second >= 10_000.0 || per_request >= 50_000.0,
            wasted_per_second >= 1000.0 || per_request >= 1000.0,
        );
        let remedy = remedies::for_scan(plan, table, text, returned);
        let subject = if text.is_empty() { "(no filter)" } else { text };
        let finding = describe(kind, severity, [shape.account, table, subject], shape.hash, title, remedy);
        let numbers = self.cost_numbers(&cost);
        Some(Draft {
            excess: per_request / examined_min * (ratio / ratio_min).min(100.0),
            finding: Finding { numbers, explanation, ..finding },
        })
    }

    /// Keys joined by `or`: several seeks here, but a scan on the real service.
    fn or_of_keys(&self, shape: &ShapeReport<'_>) -> Option<Draft> {
        let ShapeReport { table, text, plan, cost, .. } = *shape;
        let is_seek = matches!(plan, PlanKind::Point | PlanKind::RowRange);
        if !is_seek || cost.requests < OR_COUNT_MIN || !remedies::joins_keys_by_or(text) {
            return None;
        }
        let title = format!("Queries join RowKeys of {table} by 'or'");
        let explanation = format!(
            "{} queries in the last {} named several RowKeys joined by 'or'. This server reads exactly those \
             rows ({} for each query). The real service does not: it scans the whole partition, or the whole \
             table if the partitions differ, and a program that is quick here is slow there.",
            amount(cost.requests as f64),
            duration(self.span),
            amount(cost.examined as f64 / cost.requests as f64)
        );
        let per_second = cost.requests as f64 / self.span.as_secs_f64();
        let severity = Severity::of(false, per_second >= 1.0);
        let place = [shape.account, table, text];
        let remedy = remedies::for_or_of_keys(table);
        let finding = describe(FindingKind::OrOfKeys, severity, place, shape.hash, title, remedy);
        let numbers = self.cost_numbers(&cost);
        Some(Draft { excess: per_second, finding: Finding { numbers, explanation, ..finding } })
    }

    fn hot_partition(&self, rate: &Rate<'_>) -> Draft {
        let Rate { account, table, partition, per_second, hash } = *rate;
        let target = f64::from(self.targets.partition_rows_per_second);
        let title = format!("Partition {} of {table} is hot", quoted(partition));
        let explanation = format!(
            "It gets about {} operations a second, entities of batches counted one by one. The published \
             target of the real service is {} entities a second for one partition; beyond it, requests are \
             answered 503 ServerBusy.",
            amount(per_second),
            amount(target)
        );
        let severity = Severity::of(per_second >= target, true);
        let remedy = remedies::for_hot_partition(table);
        let finding =
            describe(FindingKind::HotPartition, severity, [account, table, partition], hash, title, remedy);
        let numbers = vec![("per_second", per_second.round()), ("target_per_second", target)];
        Draft { excess: per_second / target, finding: Finding { numbers, explanation, ..finding } }
    }

    fn hot_account(&self, rate: &Rate<'_>) -> Draft {
        let Rate { account, per_second, hash, .. } = *rate;
        let target = f64::from(self.targets.account_operations_per_second);
        let title = format!("Account {account} is near what the real service serves");
        let explanation = format!(
            "It gets about {} requests a second. The published target of the real service is {} a second for \
             one account; beyond it, requests are answered 503 ServerBusy.",
            amount(per_second),
            amount(target)
        );
        let severity = Severity::of(per_second >= target, true);
        let place = [account, "", ""];
        let remedy = remedies::for_hot_account();
        let finding = describe(FindingKind::HotAccount, severity, place, hash, title, remedy);
        let numbers = vec![("per_second", per_second.round()), ("target_per_second", target)];
        Draft { excess: per_second / target, finding: Finding { numbers, explanation, ..finding } }
    }

    fn growth(&self, growth: &GrowthReport<'_>) -> Draft {
        let GrowthReport { account, table, partition, end, share, inserts, hash } = *growth;
        let is_append = end == GrowthEnd::Append;
        let (kind, place, order) = if is_append {
            (FindingKind::Append, "end", "highest")
        } else {
            (FindingKind::Prepend, "beginning", "lowest")
        };
        let per_second = inserts as f64 / self.span.as_secs_f64();
        let target = f64::from(self.targets.partition_rows_per_second);
        let title = format!("{table} grows at its {place} only");
        let explanation = format!(
            "{:.0} % of {} inserts in the last {} have the {order} keys so far; the latest went to partition \
             {}. The real service spreads ranges of partitions over machines, and all of these inserts go to \
             the same one, so the table takes no more than one partition does: {} entities a second. Now it is \
             {}.",
            share * 100.0,
            amount(inserts as f64),
            duration(self.span),
            quoted(partition),
            amount(target),
            amount(per_second)
        );
        let severity = Severity::of(per_second >= 0.5 * target, per_second >= 0.05 * target);
        let remedy = remedies::for_growth(table, is_append);
        let finding = describe(kind, severity, [account, table, ""], hash, title, remedy);
        let numbers = vec![
            ("inserts", inserts as f64),
            ("inserts_per_second", per_second),
            ("share_percent", (share * 100.0).round()),
        ];
        let finding = Finding { numbers, explanation, subject: partition.to_owned(), ..finding };
        Draft { excess: per_second / target * 20.0, finding }
    }

    fn giant_partition(&self, report: &PartitionReport<'_>) -> Option<Draft> {
        let PartitionReport { account, table, partition, entities, bytes: size, hash } = *report;
        let excess = (entities / PARTITION_ENTITIES_NOTABLE).max(size / PARTITION_BYTES_NOTABLE);
        if excess < 1.0 {
            return None;
        }
        let title = format!("Partition {} of {table} outgrows", quoted(partition));
        let mut explanation = format!("It holds at least {} entities", amount(entities));
        if size > 0.0 {
            explanation += &format!(", of {} that this server saw being written", bytes(size));
        }
        explanation += &format!(
            ". Everything in it is served by one machine of the real service, at most {} entities a second, \
             and a query that scans it needs at least {} pages.",
            amount(self.targets.partition_rows_per_second.into()),
            amount((entities / 1000.0).ceil())
        );
        let severity = Severity::of(excess >= 10.0, true);
        let remedy = remedies::for_giant_partition(table);
        let kind = FindingKind::GiantPartition;
        let finding = describe(kind, severity, [account, table, partition], hash, title, remedy);
        let numbers = vec![("entities", entities.round()), ("bytes", size.round())];
        Some(Draft { excess, finding: Finding { numbers, explanation, ..finding } })
    }

    /// One finding for each table that has entities near this limit.
    fn near_limits(&self, entities: &[EntityReport<'_>], kind: FindingKind) -> Vec<Draft> {
        let is_large = kind == FindingKind::LargeEntity;
        let size = |entity: &EntityReport<'_>| {
            if is_large { entity.bytes } else { u64::from(entity.properties) }
        };
        let notable = if is_large { ENTITY_BYTES_NOTABLE } else { u64::from(PROPERTIES_NOTABLE) };
        let near: Vec<&EntityReport<'_>> = entities.iter().filter(|entity| size(entity) >= notable).collect();
        let is_same = |a: &EntityReport<'_>, b: &EntityReport<'_>| {
            a.account == b.account && a.table.eq_ignore_ascii_case(b.table)
        };
        let mut drafts = Vec::new();
        for (index, entity) in near.iter().enumerate() {
            if near[..index].iter().any(|earlier| is_same(earlier, entity)) {
                continue;
            }
            let of_table: Vec<&EntityReport<'_>> =
                near.iter().copied().filter(|other| is_same(other, entity)).collect();
            let Some(largest) = of_table.iter().copied().max_by_key(|entity| size(entity)) else { continue };
            drafts.push(self.near_limit(kind, largest, size(largest), of_table.len()));
        }
        drafts
    }

    fn near_limit(&self, kind: FindingKind, largest: &EntityReport<'_>, size: u64, count: usize) -> Draft {
        let EntityReport { account, table, partition, row, .. } = *largest;
        let is_large = kind == FindingKind::LargeEntity;
        let limit = if is_large { ENTITY_SIZE_BYTES_MAX as u64 } else { PROPERTY_COUNT_MAX as u64 };
        let share = size as f64 / limit as f64;
        let (title, measure, remedy) = if is_large {
            (
                format!("Entities of {table} come near the limit of 1 MiB"),
                format!("{} of {}", bytes(size as f64), bytes(limit as f64)),
                remedies::for_large_entity(table),
            )
        } else {
            (
                format!("Entities of {table} come near the limit of 252 properties"),
                format!("{size} of {limit} properties"),
                remedies::for_wide_entity(table),
            )
        };
        let subject = format!("{} {}", quoted(partition), quoted(row));
        let explanation = format!(
            "The largest of {count} that were seen lately is {subject}, with {measure}. A change that goes \
             beyond the limit is refused, and every read and every change of such an entity moves all of it."
        );
        let severity = Severity::of(share >= 0.95, true);
        let hash = hash_of(account, table, &[]);
        let finding = describe(kind, severity, [account, table, &subject], hash, title, remedy);
        let name = if is_large { "bytes" } else { "properties" };
        let numbers = vec![(name, size as f64), ("limit", limit as f64), ("entities", count as f64)];
        Draft { excess: share / NEAR, finding: Finding { numbers, explanation, ..finding } }
    }

    fn cost_numbers(&self, cost: &Cost) -> Vec<(&'static str, f64)> {
        let requests = cost.requests as f64;
        let per_second = requests / self.span.as_secs_f64();
        vec![
            ("requests", requests),
            ("requests_per_second", per_second),
            ("examined", cost.examined as f64),
            ("returned", cost.returned as f64),
            ("examined_per_request", cost.examined as f64 / requests),
            ("returned_per_request", cost.returned as f64 / requests),
            ("bytes", cost.bytes as f64),
            ("mean_us", (cost.micros as f64 / requests).round()),
            ("max_us", cost.micros_max as f64),
            ("month_cost", self.prices.table_month(per_second)),
        ]
    }
}

/// Everything that is the same for all kinds.
fn describe(
    kind: FindingKind,
    severity: Severity,
    place: [&str; 3],
    hash: u64,
    title: String,
    remedy: Remedy,
) -> Finding {
    let [account, table, subject] = place;
    Finding {
        id: format!("{}-{hash:016x}", kind.name()),
        rank: 0,
        severity,
        kind,
        account: account.to_owned(),
        table: table.to_owned(),
        subject: subject.to_owned(),
        title,
        numbers: Vec::new(),
        explanation: String::new(),
        remedy: remedy.words,
        sketch: remedy.sketch,
        pattern: remedy.pattern,
    }
}

/// Puts the most important first. Only the power of two of the excess counts, so small changes do not move findings.
fn ranked(mut drafts: Vec<Draft>) -> Vec<Finding> {
    drafts.sort_by_cached_key(|draft| {
        let power = draft.excess.max(f64::MIN_POSITIVE).log2().floor() as i64;
        let Finding { severity, kind, id, .. } = &draft.finding;
        (Reverse(*severity), Reverse(power), *kind, id.clone())
    });
    let findings = drafts.into_iter().take(FINDING_COUNT_MAX).enumerate();
    findings.map(|(index, draft)| Finding { rank: index + 1, ..draft.finding }).collect()
}

fn duration(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds / 60),
    }
}

fn millis(micros: f64) -> String {
    if micros < 10_000.0 { format!("{:.1} ms", micros / 1e3) } else { format!("{} ms", amount(micros / 1e3)) }
}
