//! The suite that every engine passes: one named function per promise of the contract.
//!
//! A promise gets a fresh engine, built with the suite's own families and clock, and panics when the engine breaks it.
//! [`run_all`] checks them all; a new promise is a function and a line in [`PROMISES`].

mod catalogue;
mod commits;
mod families;
mod loads;
mod scans;
mod together;
mod views;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::env::{Clock, FakeClock};
use crate::keys::{Key, KeyRange, OwnedKey};
use crate::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Families, Family, Flow, MergeRefusal, Namespace, Op,
    ReadError, Row, Sink, TableId, ValueRules, Version,
};

/// One promise: its name, and the function that puts it to the test.
type Promise = (&'static str, fn(Subject) -> Pin<Box<dyn Future<Output = ()>>>);

macro_rules! promises {
    ($($module:ident::$name:ident,)*) => {
        const PROMISES: &[Promise] = &[
            $((stringify!($name), |subject| Box::pin($module::$name(subject))),)*
        ];
    };
}

promises! {
    commits::a_missing_row_is_none,
    commits::what_is_put_is_got,
    commits::every_expectation_meets_every_effect,
    commits::a_commit_is_all_or_nothing,
    commits::the_first_failing_op_is_reported,
    commits::a_merge_sees_the_old_value_or_nothing,
    commits::a_refused_merge_changes_nothing,
    commits::check_only_changes_nothing,
    commits::deleting_an_absent_row_changes_nothing,
    commits::all_rows_of_a_commit_share_its_version,
    commits::versions_grow_whatever_the_clock_does,
    commits::a_version_follows_the_clock,
    commits::a_hundred_ops_are_one_commit_and_more_are_refused,
    commits::empty_keys_are_keys,
    commits::big_values_come_back_whole,
    commits::concurrent_merges_on_one_row_lose_nothing,
    commits::of_racing_inserts_one_wins,
    together::commits_to_several_tables_share_a_version,
    together::one_failing_commit_undoes_all,
    together::a_later_commit_sees_the_earlier_ones,
    together::a_dropped_table_undoes_all,
    together::a_bounded_number_of_commits_happens_together,
    commits::a_closed_engine_takes_no_writes_and_still_reads,
    scans::rows_come_in_the_order_of_utf16_code_units,
    scans::every_kind_of_range_is_exact,
    scans::several_ranges_make_one_scan,
    scans::no_range_and_an_empty_range_give_nothing,
    scans::a_stopped_scan_resumes_with_the_very_row,
    scans::a_scan_resumes_after_its_row_budget,
    scans::a_scan_resumes_after_its_time_budget,
    scans::a_row_that_is_passed_over_is_examined_and_not_seen,
    scans::a_scan_resumes_where_the_row_is_gone,
    scans::one_row_is_examined_whatever_the_budget,
    scans::a_used_up_budget_at_the_end_is_the_end,
    scans::random_keys_and_ranges_agree_with_a_plain_model,
    views::a_scan_sees_nothing_of_a_commit_made_meanwhile,
    views::a_scan_never_sees_half_a_commit,
    views::a_read_after_an_acknowledged_commit_sees_it,
    catalogue::a_table_is_created_once,
    catalogue::a_table_created_again_has_a_new_id_and_no_rows,
    catalogue::dropping_what_is_not_there_says_so,
    catalogue::commits_to_a_dropped_table_are_refused,
    catalogue::a_table_that_never_was_takes_no_commits,
    catalogue::the_catalogue_is_not_committed_to,
    catalogue::namespaces_are_separate,
    catalogue::the_catalogue_lists_tables_in_order,
    catalogue::tables_are_separate,
    catalogue::settings_are_a_table_that_is_always_there,
    catalogue::of_racing_creations_one_wins,
    catalogue::a_renamed_table_keeps_its_id_and_rows,
    catalogue::a_table_is_not_renamed_over_another,
    catalogue::a_replaced_payload_leaves_the_rows,
    catalogue::rows_are_dropped_and_the_name_stays,
    catalogue::a_record_is_replaced_only_as_expected,
    families::an_id_says_its_family,
    families::two_families_hold_the_same_name,
    families::one_namespace_does_not_list_another,
    families::a_family_has_its_own_merge_function,
    families::a_merge_without_rules_is_refused,
    families::a_table_stays_in_its_family,
    families::a_namespace_that_could_be_taken_for_another_is_refused,
    loads::a_snapshot_stays_as_it_was,
    loads::a_snapshot_holds_every_table,
    loads::loaded_rows_keep_their_versions_and_later_ones_are_greater,
    loads::a_load_needs_a_table,
}

/// Checks every promise, each on an empty engine that `make` builds with these families and this clock.
pub async fn run_all<Make>(make: Make)
where
    Make: AsyncFn(Families, Arc<dyn Clock>) -> Arc<dyn Engine>,
{
    for (name, promise) in PROMISES {
        // The test runner shows this next to the panic of a broken promise.
        println!("promise: {name}");
        let clock = Arc::new(FakeClock::default());
        let engine = make(FAMILIES, clock.clone()).await;
        promise(Subject { engine, clock }).await;
    }
}

/// The families of the suite: in the first the patch follows the old value, in the second it precedes it.
pub const FAMILIES: Families = Families::NONE
    .with(Family::FIRST, ValueRules { merge: append, is_sound: |_| true })
    .with(SECOND, ValueRules { merge: prepend, is_sound: |_| true });
const SECOND: Family = Family(1);

/// The engine under test, and the clock it was given.
struct Subject {
    engine: Arc<dyn Engine>,
    clock: Arc<FakeClock>,
}

/// Plenty of rows and time.
const GENEROUS: Budget = Budget::UNBOUNDED;

/// The suite's merge functions refuse results longer than this, with the refusal 7.
const MERGED_SIZE_BYTES_MAX: usize = 1024;
const TOO_LONG: MergeRefusal = MergeRefusal(7);

fn append(old: Option<&[u8]>, patch: &[u8]) -> Result<Bytes, MergeRefusal> {
    joined(old.unwrap_or_default(), patch)
}

fn prepend(old: Option<&[u8]>, patch: &[u8]) -> Result<Bytes, MergeRefusal> {
    joined(patch, old.unwrap_or_default())
}

fn joined(first: &[u8], second: &[u8]) -> Result<Bytes, MergeRefusal> {
    let new = [first, second].concat();
    if new.len() > MERGED_SIZE_BYTES_MAX { Err(TOO_LONG) } else { Ok(new.into()) }
}

/// An owner's names in the first family.
const fn space(owner: &str) -> Namespace<'_> {
    Namespace::new(Family::FIRST, owner)
}

impl Subject {
    async fn table(&self, name: &str) -> TableId {
        self.engine
            .create_table(space("conformance"), name, Bytes::new())
            .await
            .expect("the table is created")
    }

    async fn put(&self, table: TableId, partition: &str, row: &str, value: &str) -> Version {
        let op = op(row, Expect::Any, put(value));
        self.engine.commit(Commit::one(table, partition, op)).await.expect("the row is put")
    }

    async fn try_one(
        &self,
        table: TableId,
        row: &str,
        expect: Expect,
        effect: Effect,
    ) -> Result<Version, CommitError> {
        self.engine.commit(Commit::one(table, "p", op(row, expect, effect))).await
    }

    async fn get(&self, table: TableId, partition: &str, row: &str) -> Option<Row> {
        self.engine.get(table, Key { partition, row }).await.expect("the row is read")
    }

    async fn value(&self, table: TableId, partition: &str, row: &str) -> Option<String> {
        let row = self.get(table, partition, row).await;
        row.map(|row| String::from_utf8(row.value.to_vec()).expect("values are text"))
    }

    /// All keys of these ranges as `partition/row`.
    async fn keys(&self, table: TableId, ranges: &[KeyRange]) -> Vec<String> {
        let mut sink = Collect::default();
        let resume = self.engine.scan(table, ranges, GENEROUS, &mut sink).await.expect("the scan succeeds");
        assert_eq!(resume, None, "a generous scan reads to the end");
        sink.names()
    }

    async fn scan(&self, table: TableId, budget: Budget, sink: &mut dyn Sink) -> Option<OwnedKey> {
        self.engine.scan(table, &[KeyRange::all()], budget, sink).await.expect("the scan succeeds")
    }
}

fn op(row: &str, expect: Expect, effect: Effect) -> Op {
    Op { row: row.into(), expect, effect }
}

fn put(value: &str) -> Effect {
    Effect::Put(Bytes::copy_from_slice(value.as_bytes()))
}

fn patch(value: &str) -> Effect {
    Effect::Merge(Bytes::copy_from_slice(value.as_bytes()))
}

fn batch(table: TableId, partition: &str, ops: Vec<Op>) -> Commit {
    Commit { table, partition: partition.into(), ops }
}

/// Keeps rows until it has as many as it was told to take.
#[derive(Default)]
struct Collect {
    rows: Vec<(OwnedKey, Version, Vec<u8>)>,
    take_max: Option<usize>,
}

impl Collect {
    fn at_most(count: usize) -> Collect {
        Collect { rows: Vec::new(), take_max: Some(count) }
    }

    fn names(&self) -> Vec<String> {
        self.rows.iter().map(|(key, _, _)| format!("{}/{}", key.partition, key.row)).collect()
    }
}

impl Sink for Collect {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.take_max.is_some_and(|most| self.rows.len() >= most) {
            return Flow::Stop;
        }
        self.rows.push((key.into(), version, value.to_vec()));
        Flow::Continue
    }
}

/// No promise of the suite lets a read fail.
fn read<T>(result: Result<T, ReadError>) -> T {
    result.expect("the read succeeds")
}
