//! What each pattern saves, by the example itself: it runs against a server in this process, at two sizes.

use lazulite_patterns::data::Size;
use lazulite_patterns::measure::Cost;
use lazulite_patterns::showcase::{AnyError, Demo, Report};

use crate::place;

#[path = "../../examples/compound_key.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod compound_key;
#[path = "../../examples/data_series.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod data_series;
#[path = "../../examples/denormalisation.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod denormalisation;
#[path = "../../examples/eventually_consistent.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod eventually_consistent;
#[path = "../../examples/heterogeneous_tables.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod heterogeneous_tables;
#[path = "../../examples/high_volume_delete.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod high_volume_delete;
#[path = "../../examples/index_entities.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod index_entities;
#[path = "../../examples/inheritance.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod inheritance;
#[path = "../../examples/inter_partition_index.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod inter_partition_index;
#[path = "../../examples/intra_partition_index.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod intra_partition_index;
#[path = "../../examples/joins.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod joins;
#[path = "../../examples/large_entities.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod large_entities;
#[path = "../../examples/log_data.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod log_data;
#[path = "../../examples/log_tail.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod log_tail;
#[path = "../../examples/one_to_many.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod one_to_many;
#[path = "../../examples/one_to_one.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod one_to_one;
#[path = "../../examples/prepend_append.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod prepend_append;
#[path = "../../examples/wide_entities.rs"]
#[allow(dead_code, reason = "an example has a main function too")]
mod wide_entities;

/// Runs an example at two sizes.
fn show(run: impl AsyncFn(&Demo, Size, &mut Report) -> Result<(), AnyError>) -> Report {
    let (_server, demo) = place::open();
    place::run(async {
        let mut report = Report::new();
        for size in [Size::Small, Size::Medium] {
            run(&demo, size, &mut report).await?;
        }
        Ok(report)
    })
}

/// The cost of the n-th question, at both sizes, answered in two ways.
#[track_caller]
fn both(report: &Report, question: usize, ways: [&str; 2]) -> Vec<[Cost; 2]> {
    let mut questions: Vec<&str> = report.rows().iter().map(|row| row.question).collect();
    questions.dedup();
    let mut seen: Vec<&str> = Vec::new();
    questions.retain(|question| {
        let is_new = !seen.contains(question);
        seen.push(question);
        is_new
    });
    let sizes = [Size::Small, Size::Medium].into_iter();
    sizes
        .map(|size| ways.map(|way| report.find(questions[question], size, way).expect("a measurement")))
        .collect()
}

#[track_caller]
fn examines_less(report: &Report, question: usize, ways: [&str; 2]) {
    for [before, after] in both(report, question, ways) {
        assert_eq!((before.unexplained, after.unexplained), (0, 0));
        assert!(after.entities_examined < before.entities_examined, "{before:?} {after:?}");
    }
}

#[track_caller]
fn asks_less(report: &Report, question: usize, ways: [&str; 2]) {
    for [before, after] in both(report, question, ways) {
        assert!(after.requests < before.requests, "{before:?} {after:?}");
    }
}

#[track_caller]
fn receives_less(report: &Report, question: usize, ways: [&str; 2]) {
    for [before, after] in both(report, question, ways) {
        assert!(after.bytes_received < before.bytes_received, "{before:?} {after:?}");
    }
}

/// The cost of a way does not grow with the table.
#[track_caller]
fn stays_the_same(report: &Report, question: usize, way: &str) {
    let [small, medium] = both(report, question, [way, way])[..] else { panic!("two sizes") };
    assert_eq!(small[0].entities_examined, medium[0].entities_examined);
    assert_eq!(small[0].requests, medium[0].requests);
}

const WAYS: [&str; 2] = ["before", "after"];

#[test]
fn an_index_in_the_partition_makes_a_scan_a_point() {
    let report = show(intra_partition_index::run);
    examines_less(&report, 0, WAYS);
    stays_the_same(&report, 0, "after");
    stays_the_same(&report, 1, "after");
}

#[test]
fn an_index_in_other_partitions_makes_a_table_scan_a_point() {
    let report = show(inter_partition_index::run);
    examines_less(&report, 0, WAYS);
    stays_the_same(&report, 0, "after");
    asks_less(&report, 1, ["after, queue", "after, outbox"]);
}

#[test]
fn an_archive_through_a_queue_costs_a_fixed_price() {
    let report = show(eventually_consistent::run);
    asks_less(&report, 0, ["after, queue", "before"]);
    stays_the_same(&report, 0, "after, queue");
    stays_the_same(&report, 0, "after, outbox");
}

#[test]
fn index_entities_make_a_list_of_points() {
    let report = show(index_entities::run);
    examines_less(&report, 0, WAYS);
    examines_less(&report, 1, WAYS);
}

#[test]
fn a_denormalised_department_is_one_read() {
    let report = show(denormalisation::run);
    asks_less(&report, 0, WAYS);
    stays_the_same(&report, 0, "after");
}

#[test]
fn compound_keys_make_one_range() {
    let report = show(compound_key::run);
    asks_less(&report, 0, WAYS);
    stays_the_same(&report, 0, "after");
}

#[test]
fn the_tail_of_a_log_comes_first() {
    let report = show(log_tail::run);
    examines_less(&report, 0, WAYS);
    receives_less(&report, 0, WAYS);
    stays_the_same(&report, 0, "after");
}

#[test]
fn a_day_is_deleted_with_its_table() {
    let report = show(high_volume_delete::run);
    asks_less(&report, 0, WAYS);
    examines_less(&report, 0, WAYS);
    stays_the_same(&report, 0, "after");
}

#[test]
fn a_series_is_one_entity() {
    let report = show(data_series::run);
    examines_less(&report, 0, WAYS);
    receives_less(&report, 0, WAYS);
}

#[test]
fn a_wide_entity_is_a_few_rows() {
    let report = show(wide_entities::run);
    asks_less(&report, 0, WAYS);
    examines_less(&report, 1, WAYS);
    receives_less(&report, 1, WAYS);
}

#[test]
fn a_large_entity_is_read_in_few_requests() {
    let report = show(large_entities::run);
    let [_, medium] = both(&report, 1, WAYS)[..] else { panic!("two sizes") };
    assert!(medium[1].requests < medium[0].requests, "{medium:?}");
}

#[test]
fn kinds_in_one_table_are_one_query() {
    let report = show(heterogeneous_tables::run);
    asks_less(&report, 0, WAYS);
    asks_less(&report, 1, WAYS);
}

#[test]
fn events_by_employee_are_spread_and_found() {
    let report = show(prepend_append::run);
    examines_less(&report, 1, WAYS);
    let text = report.to_string();
    assert!(
        text.contains("before: partitions that take the 200 inserts: 1; inserts into the busiest: 200."),
        "{text}"
    );
}

#[test]
fn buckets_spread_a_log_and_keep_it_readable() {
    let report = show(log_data::run);
    examines_less(&report, 0, ["before, by source", "after, buckets"]);
    for [by_hour, buckets] in both(&report, 0, ["before, by hour", "after, buckets"]) {
        assert_eq!(by_hour.entities_examined, buckets.entities_examined);
    }
}

#[test]
fn layouts_of_one_to_many_have_their_prices() {
    let report = show(one_to_many::run);
    asks_less(&report, 0, ["two tables", "denormalised"]);
    asks_less(&report, 1, ["two tables", "one partition"]);
    asks_less(&report, 2, ["denormalised", "two tables"]);
}

#[test]
fn layouts_of_one_to_one_have_their_prices() {
    let report = show(one_to_one::run);
    asks_less(&report, 0, ["two tables", "one entity"]);
    asks_less(&report, 0, ["two tables", "two rows"]);
}

#[test]
fn a_join_asks_for_many_at_once() {
    let report = show(joins::run);
    asks_less(&report, 0, WAYS);
}

#[test]
fn kinds_of_employees_are_one_query() {
    let report = show(inheritance::run);
    asks_less(&report, 0, WAYS);
    examines_less(&report, 0, WAYS);
}
