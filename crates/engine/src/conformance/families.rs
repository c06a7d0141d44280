//! Promises about families: names, ids and merge functions of one are not those of another.

use super::*;
use crate::{FAMILY_COUNT_MAX, TablePath, TableRecord};

/// The engine has no rules for it.
const UNKNOWN: Family = Family(2);

async fn create(s: &Subject, namespace: Namespace<'_>, name: &str) -> TableId {
    s.engine.create_table(namespace, name, Bytes::new()).await.expect("the table is created")
}

pub(super) async fn an_id_says_its_family(s: Subject) {
    let mut counters = Vec::new();
    for number in [0, 1, 2, FAMILY_COUNT_MAX as u8 - 1, 0, 1] {
        let namespace = Namespace::new(Family(number), "n");
        let id = create(&s, namespace, &format!("t{}", counters.len())).await;
        assert_eq!(id.family(), Family(number));
        assert!(id >= TableId::FIRST);
        counters.push(id.counter());
    }
    assert!(counters.is_sorted_by(|a, b| a < b), "one counter for all families: {counters:?}");
}

pub(super) async fn two_families_hold_the_same_name(s: Subject) {
    let spaces = [space("n"), Namespace::new(SECOND, "n"), Namespace::new(UNKNOWN, "n")];
    let mut ids = Vec::new();
    for namespace in spaces {
        let id = create(&s, namespace, "t").await;
        s.put(id, "p", "r", &format!("of {}", namespace.family.0)).await;
        ids.push(id);
    }
    for (namespace, id) in spaces.into_iter().zip(&ids) {
        let row = s.get(TableId::CATALOGUE, &namespace.partition(), "t").await.expect("it is there");
        assert_eq!(TableRecord::read(&row.value).expect("a record").id, *id);
        assert_eq!(s.keys(*id, &[KeyRange::all()]).await, ["p/r"]);
    }
    assert_eq!(s.engine.drop_table(spaces[0], "t").await, Ok(ids[0]));
    assert_eq!(s.try_one(ids[0], "r", Expect::Any, put("v")).await, Err(CommitError::TableGone));
    for (id, value) in [(ids[1], "of 1"), (ids[2], "of 2")] {
        assert_eq!(s.value(id, "p", "r").await.as_deref(), Some(value));
    }
    assert_eq!(s.engine.drop_table(spaces[1], "t").await, Ok(ids[1]));
    assert!(create(&s, spaces[1], "t").await > ids[1], "ids are never given again");
}

pub(super) async fn one_namespace_does_not_list_another(s: Subject) {
    let second = Namespace::new(SECOND, "n");
    // The neighbours of `n` and of `n/1` in key order.
    for owner in ["m", "n", "n!", "n0", "o"] {
        create(&s, space(owner), &format!("first-{owner}")).await;
        create(&s, Namespace::new(SECOND, owner), &format!("second-{owner}")).await;
    }
    create(&s, Namespace::new(Family(10), "n"), "tenth").await;
    assert_eq!(s.keys(TableId::CATALOGUE, &[space("n").names()]).await, ["n/first-n"]);
    assert_eq!(s.keys(TableId::CATALOGUE, &[second.names()]).await, ["n/1/second-n"]);
}

pub(super) async fn a_family_has_its_own_merge_function(s: Subject) {
    let second = create(&s, Namespace::new(SECOND, "n"), "t").await;
    for (table, expected) in [(s.table("t").await, "ab"), (second, "ba")] {
        s.put(table, "p", "r", "a").await;
        s.try_one(table, "r", Expect::Present, patch("b")).await.expect("merged");
        assert_eq!(s.value(table, "p", "r").await.as_deref(), Some(expected));
    }
}

pub(super) async fn a_merge_without_rules_is_refused(s: Subject) {
    let unknown = create(&s, Namespace::new(UNKNOWN, "n"), "t").await;
    for table in [unknown, TableId::SETTINGS] {
        s.put(table, "p", "r", "a").await;
        let outcome = s.try_one(table, "r", Expect::Any, patch("b")).await;
        assert!(matches!(outcome, Err(CommitError::Invalid(_))), "{outcome:?}");
        assert_eq!(s.value(table, "p", "r").await.as_deref(), Some("a"));
    }
}

pub(super) async fn a_table_stays_in_its_family(s: Subject) {
    let (first, second) = (space("n"), Namespace::new(SECOND, "n"));
    let id = create(&s, second, "t").await;
    let (from, to) = (TablePath::new(second, "t"), TablePath::new(first, "t"));
    let outcome = s.engine.rename_table(from, to, Bytes::new()).await;
    assert!(matches!(outcome, Err(CommitError::Invalid(_))), "{outcome:?}");
    let to = TablePath::new(Namespace::new(SECOND, "other"), "u");
    assert_eq!(s.engine.rename_table(from, to, Bytes::new()).await, Ok(id));
    assert_eq!(s.engine.drop_table(to.namespace, "u").await, Ok(id));
}

pub(super) async fn a_namespace_that_could_be_taken_for_another_is_refused(s: Subject) {
    create(&s, Namespace::new(SECOND, "n"), "t").await;
    let past_the_last = Family(FAMILY_COUNT_MAX as u8);
    for namespace in [space("n/1"), Namespace::new(past_the_last, "n"), Namespace::new(Family(255), "n")] {
        for outcome in [
            s.engine.create_table(namespace, "t", Bytes::new()).await,
            s.engine.drop_table(namespace, "t").await,
            s.engine
                .rename_table(TablePath::new(namespace, "t"), TablePath::new(namespace, "u"), Bytes::new())
                .await,
        ] {
            assert!(matches!(outcome, Err(CommitError::Invalid(_))), "{namespace:?}: {outcome:?}");
        }
    }
}
