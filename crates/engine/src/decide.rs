//! What a commit does: checks its expectations and computes its new values, without changing anything.
//!
//! Pure, and shared by all engines that decide in this process, so that they cannot disagree. Leaves to others: where
//! rows come from, and making the writes happen.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use crate::env::Clock;
use crate::keys::{self, Key};
use crate::{
    COMMIT_COUNT_MAX, COMMIT_OP_COUNT_MAX, Commit, CommitError, Effect, Expect, Families, Found, MergeFn,
    Version,
};

/// One row to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// The encoded key.
    pub key: Vec<u8>,
    /// `None`: remove the row.
    pub value: Option<Bytes>,
}

/// Checks every expectation in order, then computes every new value in order. `lookup` finds a row by its encoded
/// key. An empty result is a success that changes nothing.
pub fn decide<V: AsRef<[u8]>>(
    commit: &Commit,
    lookup: impl Fn(&[u8]) -> Result<Option<(Version, V)>, CommitError>,
    families: &Families,
) -> Result<Vec<Write>, CommitError> {
    check_shape(commit)?;

    let mut rows = Vec::with_capacity(commit.ops.len());
    for (index, op) in commit.ops.iter().enumerate() {
        let key = keys::encode(commit.table, Key { partition: &commit.partition, row: &op.row });
        // An unconditional put does not need the old row. Not reading it also lets the put replace a damaged row.
        let blind = op.expect == Expect::Any && matches!(op.effect, Effect::Put(_) | Effect::CheckOnly);
        let old = if blind { None } else { lookup(&key)? };
        let found = old.as_ref().map_or(Found::Absent, |(version, _)| Found::Present(*version));
        if !holds(op.expect, found) {
            return Err(CommitError::Precondition { op: index, found });
        }
        rows.push((key, old));
    }

    let mut writes = Vec::with_capacity(rows.len());
    for (index, (op, (key, old))) in commit.ops.iter().zip(rows).enumerate() {
        match &op.effect {
            Effect::Put(value) => writes.push(Write { key, value: Some(value.clone()) }),
            Effect::Merge(patch) => {
                let old = old.as_ref().map(|(_, value)| value.as_ref());
                let value = merged(merge_of(commit, families)?, index, old, patch)?;
                writes.push(Write { key, value: Some(value) });
            }
            Effect::Delete if old.is_some() => writes.push(Write { key, value: None }),
            Effect::Delete | Effect::CheckOnly => {}
        }
    }
    Ok(writes)
}

/// Decides several commits that happen together at this version. Each sees what the ones before it do; the result has
/// every row once.
pub fn decide_all(
    commits: &[Commit],
    version: Version,
    lookup: impl Fn(&[u8]) -> Result<Option<(Version, Bytes)>, CommitError>,
    families: &Families,
) -> Result<Vec<Write>, CommitError> {
    let count = commits.len();
    if count == 0 || count > COMMIT_COUNT_MAX {
        return Err(CommitError::Invalid(format!("{count} commits together, not 1 to {COMMIT_COUNT_MAX}")));
    }
    let mut writes: Vec<Write> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut earlier_op_count = 0;
    for commit in commits {
        let so_far = |key: &[u8]| match places.get(key) {
            Some(place) => Ok(writes[*place].value.clone().map(|value| (version, value))),
            None => lookup(key),
        };
        let decided =
            decide(commit, so_far, families).map_err(|error| counted_from(earlier_op_count, error))?;
        for write in decided {
            match places.get(&write.key) {
                Some(place) => writes[*place] = write,
                None => {
                    places.insert(write.key.clone(), writes.len());
                    writes.push(write);
                }
            }
        }
        earlier_op_count += commit.ops.len();
    }
    Ok(writes)
}

/// The same error, with its op counted from there.
fn counted_from(start: usize, error: CommitError) -> CommitError {
    match error {
        CommitError::Precondition { op, found } => CommitError::Precondition { op: start + op, found },
        CommitError::Refused { op, refusal } => CommitError::Refused { op: start + op, refusal },
        error => error,
    }
}

/// The next version: the time, or one above the last version if the clock has not passed it.
pub fn next_version(clock: &dyn Clock, last_ticks: u64) -> Version {
    let ticks = clock.now_ticks().max(last_ticks.saturating_add(1));
    Version::new(ticks).expect("last + 1 is above zero")
}

fn check_shape(commit: &Commit) -> Result<(), CommitError> {
    let count = commit.ops.len();
    if count == 0 || count > COMMIT_OP_COUNT_MAX {
        return Err(CommitError::Invalid(format!("a commit of {count} ops, not 1 to {COMMIT_OP_COUNT_MAX}")));
    }
    debug_assert!(
        commit.ops.iter().map(|op| &op.row).collect::<HashSet<_>>().len() == count,
        "the ops of one commit are on distinct rows"
    );
    Ok(())
}

/// Whether a row is as expected.
pub fn holds(expect: Expect, found: Found) -> bool {
    match (expect, found) {
        (Expect::Any, _) => true,
        (Expect::Absent, found) => found == Found::Absent,
        (Expect::Present, found) => found != Found::Absent,
        (Expect::Exactly(version), found) => found == Found::Present(version),
    }
}

fn merge_of(commit: &Commit, families: &Families) -> Result<MergeFn, CommitError> {
    let rules = families.rules_of(commit.table);
    rules.map(|rules| rules.merge).ok_or_else(|| {
        CommitError::Invalid(format!("nothing says how the values of table {} merge", commit.table.0))
    })
}

/// The merge function runs in the one writer, so a panic in it must fail its own commit and no other.
fn merged(merge: MergeFn, op: usize, old: Option<&[u8]>, patch: &[u8]) -> Result<Bytes, CommitError> {
    match catch_unwind(AssertUnwindSafe(|| merge(old, patch))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(refusal)) => Err(CommitError::Refused { op, refusal }),
        Err(_) => {
            log::error!("the merge function panicked; its commit is refused and nothing changed");
            Err(CommitError::Storage("the merge function panicked".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::FakeClock;
    use crate::{Family, MergeRefusal, Op, TableId, ValueRules};

    const FAMILIES: Families = Families::NONE.with(Family::FIRST, ValueRules { merge, is_sound: |_| true });

    fn merge(old: Option<&[u8]>, patch: &[u8]) -> Result<Bytes, MergeRefusal> {
        match patch {
            b"refuse" => Err(MergeRefusal(9)),
            b"panic" => panic!("a bug in the merge function"),
            patch => Ok([old.unwrap_or(b"nothing"), patch].concat().into()),
        }
    }

    /// A store of one row, `old`, with the value `v` at version 5.
    fn check(ops: &[(&str, Expect, Effect)], expected: Result<&[(&str, Option<&str>)], CommitError>) {
        let key = |row: &str| keys::encode(TableId(16), Key { partition: "p", row });
        let ops = ops.iter().cloned().map(|(row, expect, effect)| Op { row: row.into(), expect, effect });
        let commit = Commit { table: TableId(16), partition: "p".into(), ops: ops.collect() };
        let old = key("old");
        let lookup = |key: &[u8]| Ok((key == old).then_some((version(5), b"v")));
        let expected = expected.map(|writes| {
            let write = |(row, value): &(&str, Option<&str>)| Write {
                key: key(row),
                value: value.map(|value| Bytes::copy_from_slice(value.as_bytes())),
            };
            writes.iter().map(write).collect::<Vec<_>>()
        });
        assert_eq!(decide(&commit, lookup, &FAMILIES), expected);
    }

    fn version(ticks: u64) -> Version {
        Version::new(ticks).unwrap()
    }

    fn put() -> Effect {
        Effect::Put("new".into())
    }

    #[test]
    fn expectations_meet_what_is_there() {
        let absent = Err(CommitError::Precondition { op: 0, found: Found::Absent });
        let present = Err(CommitError::Precondition { op: 0, found: Found::Present(version(5)) });
        let (old, new) = (Ok(&[("old", Some("new"))][..]), Ok(&[("new", Some("new"))][..]));
        check(&[("old", Expect::Any, put())], old.clone());
        check(&[("new", Expect::Any, put())], new.clone());
        check(&[("old", Expect::Absent, put())], present.clone());
        check(&[("new", Expect::Absent, put())], new);
        check(&[("old", Expect::Present, put())], old.clone());
        check(&[("new", Expect::Present, put())], absent.clone());
        check(&[("old", Expect::Exactly(version(5)), put())], old);
        check(&[("old", Expect::Exactly(version(4)), put())], present);
        check(&[("new", Expect::Exactly(version(5)), put())], absent);
    }

    #[test]
    fn effects_give_values() {
        check(&[("old", Expect::Any, Effect::Merge("+".into()))], Ok(&[("old", Some("v+"))]));
        check(&[("new", Expect::Any, Effect::Merge("+".into()))], Ok(&[("new", Some("nothing+"))]));
        check(&[("old", Expect::Any, Effect::Delete)], Ok(&[("old", None)]));
        check(&[("new", Expect::Any, Effect::Delete)], Ok(&[]));
        check(&[("old", Expect::Present, Effect::CheckOnly)], Ok(&[]));
    }

    #[test]
    fn the_first_op_that_fails_is_named_and_expectations_come_before_merges() {
        let refuse = Effect::Merge("refuse".into());
        let refused = Err(CommitError::Refused { op: 1, refusal: MergeRefusal(9) });
        check(&[("new", Expect::Any, put()), ("old", Expect::Any, refuse.clone())], refused);
        let precondition = Err(CommitError::Precondition { op: 1, found: Found::Absent });
        check(&[("old", Expect::Any, refuse), ("new", Expect::Present, put())], precondition);
    }

    #[test]
    fn a_panic_in_the_merge_function_costs_its_own_commit() {
        let panicked = Err(CommitError::Storage("the merge function panicked".to_owned()));
        check(&[("old", Expect::Any, Effect::Merge("panic".into()))], panicked);
    }

    #[test]
    fn a_commit_of_no_ops_or_too_many_is_refused() {
        for count in [0, COMMIT_OP_COUNT_MAX + 1] {
            let op = |n: usize| Op { row: n.to_string().into(), expect: Expect::Any, effect: put() };
            let commit =
                Commit { table: TableId(16), partition: "p".into(), ops: (0..count).map(op).collect() };
            let outcome = decide(&commit, |_| Ok(None::<(Version, Bytes)>), &FAMILIES);
            assert!(matches!(outcome, Err(CommitError::Invalid(_))), "{count}");
        }
    }

    #[test]
    fn versions_follow_the_clock_but_never_back() {
        let clock = FakeClock::new(100);
        assert_eq!(next_version(&clock, 0), version(100));
        assert_eq!(next_version(&clock, 99), version(100));
        assert_eq!(next_version(&clock, 100), version(101));
        assert_eq!(next_version(&clock, 500), version(501));
    }
}
