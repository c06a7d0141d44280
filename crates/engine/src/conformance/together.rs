//! Promises about commits that happen together.

use super::*;
use crate::{COMMIT_COUNT_MAX, Found};

pub(super) async fn commits_to_several_tables_share_a_version(s: Subject) {
    let (a, b) = (s.table("a").await, s.table("b").await);
    let commits = vec![
        batch(a, "p", vec![op("1", Expect::Absent, put("one")), op("2", Expect::Any, put("two"))]),
        batch(b, "q", vec![op("1", Expect::Absent, put("three"))]),
        batch(TableId::SETTINGS, "o", vec![op("s", Expect::Any, put("four"))]),
    ];
    let version = s.engine.commit_all(commits).await.expect("all happen");
    for (table, partition, row) in
        [(a, "p", "1"), (a, "p", "2"), (b, "q", "1"), (TableId::SETTINGS, "o", "s")]
    {
        assert_eq!(s.get(table, partition, row).await.map(|row| row.version), Some(version));
    }
    assert!(s.put(a, "p", "1", "v").await > version);
}

pub(super) async fn one_failing_commit_undoes_all(s: Subject) {
    let (a, b) = (s.table("a").await, s.table("b").await);
    let version = s.put(b, "q", "taken", "v").await;
    let first = || batch(a, "p", vec![op("1", Expect::Any, put("v")), op("2", Expect::Any, put("v"))]);
    let taken = batch(b, "q", vec![op("1", Expect::Any, put("v")), op("taken", Expect::Absent, put("v"))]);
    let outcome = s.engine.commit_all(vec![first(), taken]).await;
    assert_eq!(outcome, Err(CommitError::Precondition { op: 3, found: Found::Present(version) }));
    let refused = batch(b, "q", vec![op("taken", Expect::Any, patch(&"x".repeat(MERGED_SIZE_BYTES_MAX)))]);
    let outcome = s.engine.commit_all(vec![first(), refused]).await;
    assert_eq!(outcome, Err(CommitError::Refused { op: 2, refusal: TOO_LONG }));
    assert!(s.keys(a, &[KeyRange::all()]).await.is_empty());
    assert_eq!(s.keys(b, &[KeyRange::all()]).await, ["q/taken"]);
}

pub(super) async fn a_later_commit_sees_the_earlier_ones(s: Subject) {
    let table = s.table("t").await;
    let one = |row: &str, expect, effect| batch(table, "p", vec![op(row, expect, effect)]);
    s.put(table, "p", "old", "v").await;
    let commits = vec![
        one("sum", Expect::Any, patch("a")),
        one("sum", Expect::Present, patch("b")),
        one("old", Expect::Present, Effect::Delete),
        one("old", Expect::Absent, Effect::CheckOnly),
        one("sum", Expect::Present, patch("c")),
    ];
    s.engine.commit_all(commits).await.expect("all happen");
    assert_eq!(s.value(table, "p", "sum").await, Some("abc".to_owned()));
    assert_eq!(s.keys(table, &[KeyRange::all()]).await, ["p/sum"]);
    let twice = vec![one("new", Expect::Absent, put("v")), one("new", Expect::Absent, put("w"))];
    let outcome = s.engine.commit_all(twice).await;
    assert!(
        matches!(outcome, Err(CommitError::Precondition { op: 1, found: Found::Present(_) })),
        "{outcome:?}"
    );
    assert_eq!(s.get(table, "p", "new").await, None);
}

pub(super) async fn a_dropped_table_undoes_all(s: Subject) {
    let (live, dropped) = (s.table("a").await, s.table("b").await);
    s.engine.drop_table(space("conformance"), "b").await.expect("dropped");
    let to = |table| batch(table, "p", vec![op("r", Expect::Any, put("v"))]);
    for table in [dropped, TableId::CATALOGUE] {
        let outcome = s.engine.commit_all(vec![to(live), to(table)]).await;
        assert_eq!(outcome, Err(CommitError::TableGone));
    }
    assert!(s.keys(live, &[KeyRange::all()]).await.is_empty());
}

pub(super) async fn a_bounded_number_of_commits_happens_together(s: Subject) {
    let table = s.table("t").await;
    let commits = |count: usize| -> Vec<Commit> {
        (0..count).map(|n| batch(table, "p", vec![op(&n.to_string(), Expect::Absent, put("v"))])).collect()
    };
    for count in [0, COMMIT_COUNT_MAX + 1] {
        let outcome = s.engine.commit_all(commits(count)).await;
        assert!(matches!(outcome, Err(CommitError::Invalid(_))), "{count}: {outcome:?}");
    }
    s.engine.commit_all(commits(COMMIT_COUNT_MAX)).await.expect("all happen");
    assert_eq!(s.keys(table, &[KeyRange::all()]).await.len(), COMMIT_COUNT_MAX);
}
