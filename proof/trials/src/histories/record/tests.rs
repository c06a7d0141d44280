//! Histories written by hand that a correct service could, or could not, produce.

use super::*;

/// An operation during `moment..moment + 5`. Close moments make operations overlap.
fn at(moment: u64, id: u32, call: Call, answer: Answer) -> Recorded {
    let returned = (answer != Answer::Unknown).then_some(moment + 5);
    Interval { operation: Operation { id, client: 0, call, answer }, invoked: moment, returned }
}

fn change(row: usize, verb: Verb, condition: Condition) -> Change {
    Change { row, verb, condition, sets: (true, false) }
}

fn insert(row: usize) -> Call {
    Call::Write(vec![change(row, Verb::Insert, Condition::None)])
}

fn replace_if(row: usize, tag: Tag) -> Call {
    Call::Write(vec![change(row, Verb::Replace, Condition::Tag(tag))])
}

fn batch(rows: &[usize]) -> Call {
    Call::Write(rows.iter().map(|row| change(*row, Verb::Replace, Condition::None)).collect())
}

fn written(tag: Tag) -> Answer {
    Answer::Written(vec![Some(tag)])
}

fn row(writer: u32, tag: Tag) -> Row {
    Row { tag, writer, a: Some(writer), b: None }
}

fn found(writer: u32, tag: Tag) -> Answer {
    Answer::Found(Some(row(writer, tag)))
}

#[track_caller]
fn right(history: &[Recorded]) {
    assert_eq!(check(history).verdict, Verdict::Linearizable, "\n{}", readable(history));
    assert!(check_versions(history, 0).is_ok());
}

/// Checks that the history is not linearizable, and shrinks to this many operations.
#[track_caller]
fn wrong(history: &[Recorded], smallest: usize) {
    assert!(matches!(check(history).verdict, Verdict::Violation { .. }), "\n{}", readable(history));
    let shrunk = shrink(history);
    assert!(matches!(check(&shrunk).verdict, Verdict::Violation { .. }), "\n{}", readable(&shrunk));
    assert_eq!(shrunk.len(), smallest, "\n{}", readable(&shrunk));
}

#[test]
fn a_plain_life_of_a_row_is_right() {
    right(&[
        at(0, 1, insert(0), written(10)),
        at(10, 2, insert(0), Answer::Refused { change: 0, status: 409 }),
        at(20, 3, replace_if(0, 10), written(11)),
        at(30, 4, replace_if(0, 10), Answer::Refused { change: 0, status: 412 }),
        at(40, 5, Call::Get(0), found(3, 11)),
        at(50, 6, Call::Write(vec![change(0, Verb::Delete, Condition::Any)]), Answer::Written(vec![None])),
        at(60, 7, replace_if(0, 11), Answer::Refused { change: 0, status: 404 }),
        at(70, 8, Call::Get(0), Answer::Found(None)),
    ]);
}

#[test]
fn concurrent_writes_may_have_either_order_but_all_see_the_same() {
    let writes = [at(0, 1, batch(&[0]), written(10)), at(1, 2, batch(&[0]), written(11))];
    let read = |moment, id, writer, tag| at(moment, id, Call::Get(0), found(writer, tag));
    let [first, second] = writes;
    right(&[first.clone(), second.clone(), read(10, 3, 2, 11), read(20, 4, 2, 11)]);
    right(&[first.clone(), second.clone(), read(1, 3, 1, 10), read(20, 4, 2, 11)]);
    wrong(&[first, second, read(10, 3, 2, 11), read(20, 4, 1, 10)], 4);
}

#[test]
fn a_stale_read_is_found_among_others_that_do_not_matter() {
    wrong(
        &[
            at(0, 1, insert(0), written(10)),
            at(10, 2, insert(1), written(11)),
            at(20, 3, Call::Get(1), found(2, 11)),
            at(30, 4, replace_if(0, 10), written(12)),
            at(40, 5, Call::Get(1), found(2, 11)),
            at(50, 6, Call::Get(0), found(1, 10)),
            at(60, 7, Call::Get(0), found(4, 12)),
        ],
        3,
    );
}

#[test]
fn a_lost_update_is_found() {
    // Both replaced the version they had read, but only one of them can have succeeded.
    wrong(
        &[
            at(0, 1, insert(0), written(10)),
            at(10, 2, replace_if(0, 10), written(11)),
            at(11, 3, replace_if(0, 10), written(12)),
        ],
        3,
    );
    // An acknowledged write is gone.
    wrong(&[at(0, 1, insert(0), written(10)), at(10, 2, Call::Get(0), Answer::Found(None))], 2);
}

#[test]
fn a_torn_batch_is_found_by_gets_and_by_a_page() {
    let whole = at(0, 1, batch(&[0, 1]), Answer::Written(vec![Some(10), Some(10)]));
    let page = |rows: &[usize]| Answer::Page(rows.iter().map(|at| (*at, row(1, 10))).collect(), None);
    right(&[whole.clone(), at(1, 2, Call::Page(0), page(&[0, 1]))]);
    right(&[whole.clone(), at(1, 2, Call::Page(0), page(&[]))]);
    wrong(&[whole.clone(), at(1, 2, Call::Page(0), page(&[0]))], 2);
    let torn = [at(1, 2, Call::Get(0), found(1, 10)), at(7, 3, Call::Get(1), Answer::Found(None))];
    wrong(&[whole, torn[0].clone(), torn[1].clone()], 2);
}

#[test]
fn two_inserts_of_one_row_cannot_both_succeed() {
    wrong(&[at(0, 1, insert(0), written(10)), at(1, 2, insert(0), written(11))], 2);
}

#[test]
fn an_unknown_outcome_may_be_observed_later_and_then_stays() {
    let unknown = at(0, 1, insert(0), Answer::Unknown);
    let absent = |moment, id| at(moment, id, Call::Get(0), Answer::Found(None));
    let seen = |moment, id| at(moment, id, Call::Get(0), found(1, 10));
    right(&[unknown.clone(), absent(10, 2), absent(20, 3)]);
    right(&[unknown.clone(), absent(10, 2), seen(20, 3)]);
    // Its ETag was read, so a condition can use it.
    right(&[unknown.clone(), seen(20, 3), at(30, 4, replace_if(0, 10), written(11))]);
    wrong(&[unknown.clone(), seen(20, 3), absent(30, 4)], 3);
    // An unknown batch cannot happen by half either.
    let batch = at(0, 1, batch(&[0, 1]), Answer::Unknown);
    let page = Answer::Page(vec![(0, row(1, 10))], None);
    wrong(&[batch, at(10, 2, Call::Page(0), page)], 2);
}

#[test]
fn a_value_that_nobody_wrote_is_found() {
    wrong(&[at(0, 1, insert(0), written(10)), at(10, 2, Call::Get(0), found(7, 10))], 2);
    wrong(&[at(0, 1, Call::Get(0), found(1, 10)), at(10, 1, insert(0), written(10))], 1);
}

#[test]
fn a_page_speaks_only_of_the_rows_before_its_continuation() {
    let rows = [at(0, 1, insert(0), written(10)), at(10, 2, insert(2), written(11))];
    let [first, third] = rows;
    let page = |from, rows: &[(usize, u32, Tag)], next| {
        let rows = rows.iter().map(|(at, writer, tag)| (*at, row(*writer, *tag))).collect();
        at(20, 9, Call::Page(from), Answer::Page(rows, next))
    };
    right(&[first.clone(), third.clone(), page(0, &[(0, 1, 10)], Some(2))]);
    right(&[first.clone(), third.clone(), page(2, &[(2, 2, 11)], None)]);
    wrong(&[first.clone(), third.clone(), page(0, &[(0, 1, 10)], Some(3))], 2);
    wrong(&[first, third, page(1, &[], None)], 2);
}

#[test]
fn versions_must_grow_and_never_repeat() {
    let order = |first, second| {
        check_versions(&[at(0, 1, insert(0), written(first)), at(10, 2, insert(1), written(second))], 5)
    };
    assert_eq!(order(10, 11), Ok(11));
    assert!(order(11, 10).is_err());
    assert!(order(10, 10).is_err());
    assert!(order(4, 10).is_err());
    // Concurrent writes may have any order, but not the same version.
    let overlapping =
        |second| check_versions(&[at(0, 1, insert(0), written(10)), at(1, 2, insert(1), written(second))], 0);
    assert_eq!(overlapping(9), Ok(10));
    assert!(overlapping(10).is_err());
}
