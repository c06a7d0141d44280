//! Promises about commits, versions and single reads.

use std::time::Duration;

use super::*;
use crate::{COMMIT_OP_COUNT_MAX, Found};

pub(super) async fn a_missing_row_is_none(s: Subject) {
    let table = s.table("t").await;
    assert_eq!(s.get(table, "p", "r").await, None);
    s.put(table, "p", "r", "v").await;
    assert_eq!(s.get(table, "p", "r2").await, None);
    assert_eq!(s.get(table, "p2", "r").await, None);
    assert_eq!(s.get(table, "p", "").await, None);
    assert_eq!(s.get(TableId(table.0 + 1), "p", "r").await, None);
}

pub(super) async fn what_is_put_is_got(s: Subject) {
    let table = s.table("t").await;
    let first = s.put(table, "p", "r", "one").await;
    assert_eq!(s.get(table, "p", "r").await, Some(Row { version: first, value: "one".into() }));
    let second = s.put(table, "p", "r", "").await;
    assert_eq!(s.get(table, "p", "r").await, Some(Row { version: second, value: "".into() }));
    s.try_one(table, "r", Expect::Any, Effect::Delete).await.expect("the row is deleted");
    assert_eq!(s.get(table, "p", "r").await, None);
}

pub(super) async fn every_expectation_meets_every_effect(s: Subject) {
    let table = s.table("t").await;
    let stale = s.put(table, "p", "other", "x").await;
    let mut case = 0;
    for effect in [put("new"), patch("+"), Effect::Delete, Effect::CheckOnly] {
        for present in [false, true] {
            for kind in ["any", "absent", "present", "exact", "stale"] {
                case += 1;
                let row = format!("row{case}");
                let version = match present {
                    true => Some(s.put(table, "p", &row, "old").await),
                    false => None,
                };
                let expect = match kind {
                    "any" => Expect::Any,
                    "absent" => Expect::Absent,
                    "present" => Expect::Present,
                    "exact" => Expect::Exactly(version.unwrap_or(stale)),
                    _ => Expect::Exactly(stale),
                };
                let holds = match kind {
                    "any" => true,
                    "absent" => !present,
                    "present" | "exact" => present,
                    _ => false,
                };

                let outcome = s.try_one(table, &row, expect, effect.clone()).await;
                let value = s.value(table, "p", &row).await;
                let context = format!("{effect:?}, present: {present}, {kind}");
                let untouched = present.then(|| "old".to_owned());
                if holds {
                    assert!(outcome.is_ok(), "{context}: {outcome:?}");
                    let expected = match (&effect, present) {
                        (Effect::Put(_), _) => Some("new".to_owned()),
                        (Effect::Merge(_), true) => Some("old+".to_owned()),
                        (Effect::Merge(_), false) => Some("+".to_owned()),
                        (Effect::Delete, _) => None,
                        (Effect::CheckOnly, _) => untouched,
                    };
                    assert_eq!(value, expected, "{context}");
                } else {
                    let found = version.map_or(Found::Absent, Found::Present);
                    assert_eq!(outcome, Err(CommitError::Precondition { op: 0, found }), "{context}");
                    assert_eq!(value, untouched, "{context}");
                    let now = s.get(table, "p", &row).await.map(|row| row.version);
                    assert_eq!(now, version, "{context}: a failed commit gives no version");
                }
            }
        }
    }
}

pub(super) async fn a_commit_is_all_or_nothing(s: Subject) {
    let table = s.table("t").await;
    let before = s.put(table, "p", "kept", "old").await;
    s.put(table, "p", "doomed", "old").await;
    let mut ops: Vec<Op> = (0..97).map(|n| op(&format!("n{n}"), Expect::Absent, put("new"))).collect();
    ops.push(op("kept", Expect::Exactly(before), patch("+")));
    ops.push(op("doomed", Expect::Present, Effect::Delete));

    let mut failing = ops.clone();
    failing.push(op("missing", Expect::Present, put("new")));
    let outcome = s.engine.commit(batch(table, "p", failing)).await;
    assert_eq!(outcome, Err(CommitError::Precondition { op: 99, found: Found::Absent }));
    assert_eq!(s.keys(table, &[KeyRange::all()]).await, ["p/doomed", "p/kept"]);
    assert_eq!(s.get(table, "p", "kept").await, Some(Row { version: before, value: "old".into() }));

    s.engine.commit(batch(table, "p", ops)).await.expect("every expectation holds");
    assert_eq!(s.keys(table, &[KeyRange::all()]).await.len(), 98);
    assert_eq!(s.value(table, "p", "kept").await.as_deref(), Some("old+"));
    assert_eq!(s.value(table, "p", "doomed").await, None);
}

pub(super) async fn the_first_failing_op_is_reported(s: Subject) {
    let table = s.table("t").await;
    let version = s.put(table, "p", "there", "v").await;
    let long = "x".repeat(MERGED_SIZE_BYTES_MAX + 1);
    let ops = vec![
        op("a", Expect::Any, put("v")),
        op("there", Expect::Absent, put("v")),
        op("b", Expect::Present, put("v")),
    ];
    let outcome = s.engine.commit(batch(table, "p", ops)).await;
    assert_eq!(outcome, Err(CommitError::Precondition { op: 1, found: Found::Present(version) }));

    let ops = vec![
        op("a", Expect::Any, put("v")),
        op("b", Expect::Any, patch(&long)),
        op("c", Expect::Any, patch(&long)),
    ];
    let outcome = s.engine.commit(batch(table, "p", ops)).await;
    assert_eq!(outcome, Err(CommitError::Refused { op: 1, refusal: TOO_LONG }));

    // Every expectation is checked before any effect is applied.
    let ops = vec![op("a", Expect::Any, patch(&long)), op("b", Expect::Present, put("v"))];
    let outcome = s.engine.commit(batch(table, "p", ops)).await;
    assert_eq!(outcome, Err(CommitError::Precondition { op: 1, found: Found::Absent }));
    assert_eq!(s.keys(table, &[KeyRange::all()]).await, ["p/there"]);
}

pub(super) async fn a_merge_sees_the_old_value_or_nothing(s: Subject) {
    let table = s.table("t").await;
    let first = s.try_one(table, "r", Expect::Any, patch("a")).await.expect("merged with nothing");
    let second = s.try_one(table, "r", Expect::Present, patch("b")).await.expect("merged");
    assert!(second > first);
    assert_eq!(s.get(table, "p", "r").await, Some(Row { version: second, value: "ab".into() }));
}

pub(super) async fn a_refused_merge_changes_nothing(s: Subject) {
    let table = s.table("t").await;
    let full = "x".repeat(MERGED_SIZE_BYTES_MAX);
    let version = s.put(table, "p", "full", &full).await;
    let ops = vec![op("other", Expect::Any, put("v")), op("full", Expect::Any, patch("y"))];
    let outcome = s.engine.commit(batch(table, "p", ops)).await;
    assert_eq!(outcome, Err(CommitError::Refused { op: 1, refusal: TOO_LONG }));
    assert_eq!(s.get(table, "p", "full").await, Some(Row { version, value: full.into() }));
    assert_eq!(s.get(table, "p", "other").await, None);
}

pub(super) async fn check_only_changes_nothing(s: Subject) {
    let table = s.table("t").await;
    let version = s.put(table, "p", "r", "v").await;
    for expect in [Expect::Any, Expect::Present, Expect::Exactly(version)] {
        s.try_one(table, "r", expect, Effect::CheckOnly).await.expect("the expectation holds");
    }
    assert_eq!(s.get(table, "p", "r").await, Some(Row { version, value: "v".into() }));
    let ops = vec![op("r", Expect::Absent, Effect::CheckOnly), op("new", Expect::Any, put("v"))];
    let outcome = s.engine.commit(batch(table, "p", ops)).await;
    assert_eq!(outcome, Err(CommitError::Precondition { op: 0, found: Found::Present(version) }));
    assert_eq!(s.get(table, "p", "new").await, None);
}

pub(super) async fn deleting_an_absent_row_changes_nothing(s: Subject) {
    let table = s.table("t").await;
    s.put(table, "p", "r", "v").await;
    s.try_one(table, "other", Expect::Any, Effect::Delete).await.expect("nothing to delete is no failure");
    let outcome = s.try_one(table, "other", Expect::Present, Effect::Delete).await;
    assert_eq!(outcome, Err(CommitError::Precondition { op: 0, found: Found::Absent }));
    assert_eq!(s.keys(table, &[KeyRange::all()]).await, ["p/r"]);
}

pub(super) async fn all_rows_of_a_commit_share_its_version(s: Subject) {
    let table = s.table("t").await;
    s.put(table, "p", "b", "old").await;
    let ops = vec![op("a", Expect::Any, put("v")), op("b", Expect::Any, patch("v"))];
    let version = s.engine.commit(batch(table, "p", ops)).await.expect("committed");
    for row in ["a", "b"] {
        assert_eq!(s.get(table, "p", row).await.map(|row| row.version), Some(version));
    }
    let mut sink = Collect::default();
    s.scan(table, GENEROUS, &mut sink).await;
    assert!(sink.rows.iter().all(|(_, scanned, _)| *scanned == version));
}

pub(super) async fn versions_grow_whatever_the_clock_does(s: Subject) {
    let table = s.table("t").await;
    let mut last = s.put(table, "p", "r", "v").await;
    for step in 0..50 {
        match step % 4 {
            0 => {} // The clock stands still.
            1 => s.clock.advance(Duration::from_secs(1)),
            2 => s.clock.step_back(Duration::from_secs(3600)),
            _ => s.clock.set_ticks(1),
        }
        let row = if step % 2 == 0 { "r" } else { "other" };
        let version = s.put(table, "p", row, "v").await;
        assert!(version > last, "step {step}: {version:?} after {last:?}");
        last = version;
    }
}

pub(super) async fn a_version_follows_the_clock(s: Subject) {
    let table = s.table("t").await;
    s.put(table, "p", "r", "v").await;
    s.clock.advance(Duration::from_secs(3600));
    let version = s.put(table, "p", "r", "v").await;
    assert_eq!(version.ticks(), s.clock.now_ticks());
}

pub(super) async fn a_hundred_ops_are_one_commit_and_more_are_refused(s: Subject) {
    let table = s.table("t").await;
    let ops = |count: usize| (0..count).map(|n| op(&format!("{n:03}"), Expect::Any, put("v"))).collect();
    for count in [0, COMMIT_OP_COUNT_MAX + 1] {
        let outcome = s.engine.commit(batch(table, "p", ops(count))).await;
        assert!(matches!(outcome, Err(CommitError::Invalid(_))), "{count} ops: {outcome:?}");
    }
    assert!(s.keys(table, &[KeyRange::all()]).await.is_empty());
    s.engine.commit(batch(table, "p", ops(COMMIT_OP_COUNT_MAX))).await.expect("committed");
    assert_eq!(s.keys(table, &[KeyRange::all()]).await.len(), COMMIT_OP_COUNT_MAX);
}

pub(super) async fn empty_keys_are_keys(s: Subject) {
    let table = s.table("t").await;
    for (partition, row) in [("", ""), ("", "r"), ("p", ""), ("p", "r")] {
        s.put(table, partition, row, &format!("{partition}/{row}")).await;
    }
    for (partition, row) in [("", ""), ("", "r"), ("p", ""), ("p", "r")] {
        assert_eq!(s.value(table, partition, row).await, Some(format!("{partition}/{row}")));
    }
    assert_eq!(s.keys(table, &[KeyRange::all()]).await, ["/", "/r", "p/", "p/r"]);
}

pub(super) async fn big_values_come_back_whole(s: Subject) {
    let table = s.table("t").await;
    let value: Bytes = (0..1024 * 1024).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for row in ["a", "b", "c"] {
        s.try_one(table, row, Expect::Absent, Effect::Put(value.clone())).await.expect("put");
    }
    assert_eq!(s.get(table, "p", "b").await.map(|row| row.value), Some(value.clone()));
    let mut sink = Collect::default();
    s.scan(table, GENEROUS, &mut sink).await;
    assert_eq!(sink.rows.len(), 3);
    assert!(sink.rows.iter().all(|(_, _, scanned)| *scanned == value));
    s.try_one(table, "b", Expect::Present, Effect::Delete).await.expect("deleted");
    assert_eq!(s.keys(table, &[KeyRange::all()]).await, ["p/a", "p/c"]);
}

pub(super) async fn concurrent_merges_on_one_row_lose_nothing(s: Subject) {
    let table = s.table("t").await;
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let engine = s.engine.clone();
            tokio::spawn(async move {
                let mut versions = Vec::new();
                for _ in 0..10 {
                    let letter = char::from(b'a' + task).to_string();
                    let op = op("hot", Expect::Any, patch(&letter));
                    versions.push(engine.commit(Commit::one(table, "p", op)).await.expect("merged"));
                }
                versions
            })
        })
        .collect();
    let mut versions = Vec::new();
    for task in tasks {
        let own = task.await.expect("the task ends");
        assert!(own.is_sorted_by(|a, b| a < b), "one caller's versions grow");
        versions.extend(own);
    }
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), 160, "no two commits share a version");

    let row = s.get(table, "p", "hot").await.expect("the row is there");
    assert_eq!(Some(row.version), versions.last().copied());
    for task in 0..16 {
        assert_eq!(row.value.iter().filter(|byte| **byte == b'a' + task).count(), 10);
    }
}

pub(super) async fn of_racing_inserts_one_wins(s: Subject) {
    let table = s.table("t").await;
    for round in 0..10 {
        let row = format!("r{round}");
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let (engine, row) = (s.engine.clone(), row.clone());
                tokio::spawn(async move {
                    let op = op(&row, Expect::Absent, put(&task.to_string()));
                    engine.commit(Commit::one(table, "p", op)).await
                })
            })
            .collect();
        let mut winners = Vec::new();
        let mut found = Vec::new();
        for (index, task) in tasks.into_iter().enumerate() {
            match task.await.expect("the task ends") {
                Ok(version) => winners.push((index, version)),
                Err(CommitError::Precondition { op: 0, found: Found::Present(version) }) => {
                    found.push(version)
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(winners.len(), 1);
        let (index, version) = winners[0];
        assert_eq!(s.value(table, "p", &row).await, Some(index.to_string()));
        assert!(found.len() == 7 && found.iter().all(|loser| *loser == version));
    }
}

pub(super) async fn a_closed_engine_takes_no_writes_and_still_reads(s: Subject) {
    let table = s.table("t").await;
    s.put(table, "p", "r", "v").await;
    s.engine.close().await;
    s.engine.close().await;
    assert!(s.try_one(table, "r", Expect::Any, put("new")).await.is_err());
    assert!(s.engine.create_table(space("conformance"), "other", Bytes::new()).await.is_err());
    assert!(s.engine.drop_table(space("conformance"), "t").await.is_err());
    assert_eq!(s.value(table, "p", "r").await.as_deref(), Some("v"));
}
