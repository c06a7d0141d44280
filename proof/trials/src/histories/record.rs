//! Checks a recorded history, shrinks a violation and prints it for people to read.
//!
//! Promises: shrinking only weakens what the history claims (a shorter prefix, an operation without effect left out, a
//! row left out everywhere), so a violation that remains is also one in the whole history.

use std::fmt::Write as _;

use super::checker::{self, Checked, Interval, Verdict};
use super::partition::{
    Answer, Call, Change, Condition, Operation, Partition, ROW_COUNT_MAX, Row, Tag, Verb,
};

/// One operation of a history.
pub type Recorded = Interval<Operation>;

/// The search gives up beyond this. Histories are short enough to stay far below.
const CONFIGURATION_COUNT_MAX: usize = 4_000_000;

pub fn check(history: &[Recorded]) -> Checked {
    checker::check(&Partition::learn(history), history, CONFIGURATION_COUNT_MAX)
}

/// Checks the versions of all partitions together: no two writes share one, a write that began after another was
/// answered has a greater one, and all are above `floor`. Returns the greatest.
pub fn check_versions(history: &[Recorded], floor: Tag) -> Result<Tag, String> {
    let model = Partition::learn(history);
    let mut written: Vec<(&Recorded, Tag)> = Vec::new();
    for recorded in history {
        let Call::Write(changes) = &recorded.operation.call else { continue };
        let id = recorded.operation.id;
        let tags: Vec<Tag> = match &recorded.operation.answer {
            Answer::Written(tags) => tags.iter().copied().flatten().collect(),
            _ => changes.iter().filter_map(|change| model.learnt_tag(id, change.row)).collect(),
        };
        if let Some(different) = tags.iter().find(|tag| **tag != tags[0]) {
            return Err(format!("#{id} wrote versions {} and {different} in one transaction", tags[0]));
        }
        written.extend(tags.first().map(|tag| (recorded, *tag)));
    }
    let mut greatest = floor;
    for (index, (later, tag)) in written.iter().enumerate() {
        let id = later.operation.id;
        if *tag <= floor {
            return Err(format!("#{id} wrote version {tag}, not above {floor}, which was seen before"));
        }
        for (earlier, other) in &written {
            let precedes = earlier.returned.is_some_and(|returned| returned < later.invoked);
            if precedes && other >= tag {
                let earlier = earlier.operation.id;
                return Err(format!("#{id} wrote version {tag} after #{earlier} had seen {other}"));
            }
        }
        if let Some((other, _)) = written[..index].iter().find(|(_, other)| other == tag) {
            return Err(format!("#{} and #{id} wrote the same version {tag}", other.operation.id));
        }
        if later.returned.is_some() {
            greatest = greatest.max(*tag);
        }
    }
    Ok(greatest)
}

/// The smallest history found that is still not linearizable.
pub fn shrink(history: &[Recorded]) -> Vec<Recorded> {
    let model = Partition::learn(history);
    let is_violation = |history: &[Recorded]| {
        let verdict = checker::check(&model, history, CONFIGURATION_COUNT_MAX).verdict;
        matches!(verdict, Verdict::Violation { .. })
    };
    let mut smallest = history.to_vec();
    let mut cuts: Vec<u64> = history.iter().filter_map(|recorded| recorded.returned).collect();
    cuts.sort_unstable();
    // Every prefix of a linearizable history is linearizable too, so a binary search finds the first that is not.
    let first = cuts.partition_point(|cut| !is_violation(&prefix(history, *cut)));
    if let Some(cut) = cuts.get(first) {
        smallest = prefix(history, *cut);
    }
    for row in 0..ROW_COUNT_MAX {
        let without: Vec<_> = smallest.iter().filter_map(|recorded| without_row(recorded, row)).collect();
        if is_violation(&without) {
            smallest = without;
        }
    }
    for at in (0..smallest.len()).rev() {
        if changes_nothing(&smallest[at].operation) {
            let mut without = smallest.clone();
            without.remove(at);
            if is_violation(&without) {
                smallest = without;
            }
        }
    }
    smallest
}

/// The history up to a moment. Operations that had not returned by then have an unknown answer.
fn prefix(history: &[Recorded], cut: u64) -> Vec<Recorded> {
    let happened = |recorded: &Recorded| {
        let mut recorded = recorded.clone();
        if recorded.invoked > cut {
            return None;
        }
        if recorded.returned.is_none_or(|returned| returned > cut) {
            recorded.returned = None;
            recorded.operation.answer = Answer::Unknown;
            return matches!(recorded.operation.call, Call::Write(_)).then_some(recorded);
        }
        Some(recorded)
    };
    history.iter().filter_map(happened).collect()
}

fn changes_nothing(operation: &Operation) -> bool {
    matches!(operation.answer, Answer::Refused { .. } | Answer::Found(_) | Answer::Page(..))
}

/// The operation without this row; `None` if nothing remains.
fn without_row(recorded: &Recorded, row: usize) -> Option<Recorded> {
    let mut recorded = recorded.clone();
    let operation = &mut recorded.operation;
    match (&mut operation.call, &mut operation.answer) {
        (Call::Get(at), _) => return (*at != row).then_some(recorded),
        (_, Answer::Page(rows, _)) => rows.retain(|(at, _)| *at != row),
        (Call::Write(changes), answer) => {
            if let Some(at) = changes.iter().position(|change| change.row == row) {
                changes.remove(at);
                match answer {
                    Answer::Written(tags) => drop(tags.remove(at)),
                    Answer::Refused { change, .. } if *change == at => return None,
                    Answer::Refused { change, .. } if *change > at => *change -= 1,
                    _ => {}
                }
            }
            if changes.is_empty() {
                return None;
            }
        }
        _ => {}
    }
    Some(recorded)
}

/// One line per operation in the order of their invocations. Versions are named v1, v2, … in ascending order.
pub fn readable(history: &[Recorded]) -> String {
    let mut tags: Vec<Tag> = history.iter().flat_map(|recorded| tags_in(&recorded.operation)).collect();
    tags.sort_unstable();
    tags.dedup();
    let name = |tag: Tag| match tags.binary_search(&tag) {
        Ok(rank) => format!("v{}", rank + 1),
        Err(_) => "v?".to_owned(),
    };
    let mut ordered: Vec<&Recorded> = history.iter().collect();
    ordered.sort_by_key(|recorded| recorded.invoked);
    let start = ordered.first().map_or(0, |recorded| recorded.invoked);
    let mut text = String::new();
    for Interval { operation, invoked, returned } in ordered {
        let millis = |moment: u64| format!("{:.3}", moment.saturating_sub(start) as f64 / 1e6);
        let end = returned.map_or("never".to_owned(), millis);
        let call = match &operation.call {
            Call::Get(row) => format!("get r{row}"),
            Call::Page(from) => format!("page from r{from}"),
            Call::Write(changes) => {
                let changes: Vec<_> = changes.iter().map(|change| change_text(change, &name)).collect();
                if changes.len() == 1 { changes.concat() } else { format!("batch [{}]", changes.join("; ")) }
            }
        };
        let row_text = |row: &Row| {
            let property = |value: Option<u32>| value.map_or("-".to_owned(), |id| format!("#{id}"));
            format!("#{} a={} b={} {}", row.writer, property(row.a), property(row.b), name(row.tag))
        };
        let answer = match &operation.answer {
            Answer::Written(tags) => match tags.iter().flatten().next() {
                Some(tag) => format!("done, {}", name(*tag)),
                None => "done".to_owned(),
            },
            Answer::Refused { change, status } => format!("{status} for change {change}"),
            Answer::Found(None) => "404".to_owned(),
            Answer::Found(Some(row)) => format!("found {}", row_text(row)),
            Answer::Page(rows, next) => {
                let rows: Vec<_> = rows.iter().map(|(at, row)| format!("r{at}: {}", row_text(row))).collect();
                let next = next.map_or("the end".to_owned(), |at| format!("next r{at}"));
                format!("[{}], {next}", rows.join("; "))
            }
            Answer::Unknown => "unknown".to_owned(),
        };
        let (id, client) = (operation.id, operation.client);
        let _ = writeln!(
            text,
            "{:>9} to {end:>9} ms  client {client}  #{id:<5} {call}  ->  {answer}",
            millis(*invoked)
        );
    }
    text
}

fn change_text(change: &Change, name: &impl Fn(Tag) -> String) -> String {
    let verb = match (change.verb, change.condition) {
        (Verb::Insert, _) => "insert",
        (Verb::Replace, Condition::None) => "insert-or-replace",
        (Verb::Replace, _) => "replace",
        (Verb::Merge, Condition::None) => "insert-or-merge",
        (Verb::Merge, _) => "merge",
        (Verb::Delete, _) => "delete",
    };
    let sets = match change.sets {
        (true, true) => " a b",
        (true, false) => " a",
        (false, true) => " b",
        (false, false) => "",
    };
    let condition = match change.condition {
        Condition::None => String::new(),
        Condition::Any => " if *".to_owned(),
        Condition::Tag(tag) => format!(" if {}", name(tag)),
    };
    format!("{verb} r{}{sets}{condition}", change.row)
}

fn tags_in(operation: &Operation) -> Vec<Tag> {
    let mut tags: Vec<Tag> = match &operation.answer {
        Answer::Written(tags) => tags.iter().copied().flatten().collect(),
        Answer::Found(row) => row.iter().map(|row| row.tag).collect(),
        Answer::Page(rows, _) => rows.iter().map(|(_, row)| row.tag).collect(),
        Answer::Refused { .. } | Answer::Unknown => Vec::new(),
    };
    if let Call::Write(changes) = &operation.call {
        tags.extend(changes.iter().filter_map(|change| match change.condition {
            Condition::Tag(tag) => Some(tag),
            Condition::None | Condition::Any => None,
        }));
    }
    tags
}

#[cfg(test)]
mod tests;
