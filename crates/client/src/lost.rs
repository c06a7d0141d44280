//! Lost answers: reads a row back and compares it with what was sent.
//!
//! Promises: `Done` is said only of a row that holds what the write would have left, so a caller that takes it for
//! success is never wrong about the row. It may be the work of another client that wrote the same: nobody can tell. So
//! this is not for a caller to whom it matters who wrote the row, as it does to one that counts.

use bytes::Bytes;

use crate::retry::Budget;
use crate::table::is_row_missing;
use crate::write::{ANY, Verb};
use crate::{Error, Keys, Property, Row, TableClient, Value, json};

/// What became of a write whose answer was lost.
#[derive(Debug)]
pub(crate) enum Settled {
    /// The row is as the write leaves it. The ETag and the body are empty when the row was to be deleted.
    Done { etag: String, body: Bytes },
    /// The row is as it was before: sending again is right.
    NotYet,
    /// The row is neither: somebody else wrote it.
    Otherwise,
}

/// Looks a row up. `sent` is the JSON of the write, and `budget` that of the operation that lost an answer.
pub(crate) async fn settle(
    table: &TableClient,
    verb: Verb,
    keys: &Keys<'_>,
    if_match: Option<&str>,
    sent: &[u8],
    budget: &Budget,
) -> Result<Settled, Error> {
    let body = match table.fetch_fresh(keys, &mut budget.for_a_look()).await {
        Ok(body) => body,
        Err(error) if is_row_missing(&error) => {
            return Ok(match verb {
                Verb::Delete => Settled::Done { etag: String::new(), body: Bytes::new() },
                Verb::Insert | Verb::UpsertReplace | Verb::UpsertMerge => Settled::NotYet,
                Verb::Replace | Verb::Merge => Settled::Otherwise,
            });
        }
        Err(error) => return Err(error),
    };
    let row = json::read_row(&body)?;
    let etag = row.etag.as_deref().unwrap_or_default();
    if if_match.is_some_and(|condition| condition != ANY && condition == etag) {
        return Ok(Settled::NotYet);
    }
    if verb == Verb::Delete {
        return Ok(if if_match == Some(ANY) { Settled::NotYet } else { Settled::Otherwise });
    }
    let is_done = is_as_sent(&row, &json::read_row(sent)?, verb.is_merge());
    let etag = etag.to_owned();
    Ok(match (is_done, verb) {
        (true, _) => Settled::Done { etag, body },
        (false, Verb::Insert) => Settled::Otherwise,
        (false, _) if if_match.is_none_or(|condition| condition == ANY) => Settled::NotYet,
        (false, _) => Settled::Otherwise,
    })
}

/// Whether the stored row has every property that was sent, and no others unless it was a merge.
fn is_as_sent(stored: &Row<'_>, sent: &Row<'_>, is_merge: bool) -> bool {
    if !is_merge && stored.properties.len() != sent.properties.len() {
        return false;
    }
    // Most services keep the order of the properties, so each is looked for in its own place first.
    sent.properties.iter().enumerate().all(|(place, property)| {
        let at_place = stored.properties.get(place).filter(|found| found.name == property.name);
        let found = at_place.or_else(|| stored.properties.iter().find(|found| found.name == property.name));
        found.is_some_and(|found| is_same(found, property))
    })
}

fn is_same(stored: &Property<'_>, sent: &Property<'_>) -> bool {
    match (&stored.value, &sent.value) {
        // NaN was sent and NaN is stored.
        (Value::Double(stored), Value::Double(sent)) => stored == sent || stored.is_nan() && sent.is_nan(),
        (stored, sent) => stored == sent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(properties: &[(&'static str, Value<'static>)]) -> Row<'static> {
        let property = |(name, value): &(&'static str, Value<'static>)| Property {
            name: (*name).into(),
            value: value.clone(),
        };
        Row { properties: properties.iter().map(property).collect(), ..Row::default() }
    }

    #[test]
    fn rows_are_compared_by_name_and_type_and_value() {
        let (one, two) = (Value::Int32(1), Value::Int32(2));
        let sent = row(&[("a", one.clone()), ("b", Value::Double(f64::NAN))]);
        let check = |stored: &[(&'static str, Value<'static>)], replaced: bool, merged: bool| {
            assert_eq!(is_as_sent(&row(stored), &sent, false), replaced, "{stored:?}");
            assert_eq!(is_as_sent(&row(stored), &sent, true), merged, "{stored:?}");
        };
        let nan = Value::Double(f64::NAN);
        check(&[("a", one.clone()), ("b", nan.clone())], true, true);
        check(&[("b", nan.clone()), ("a", one.clone())], true, true);
        check(&[("c", two.clone()), ("b", nan.clone()), ("a", one.clone())], false, true);
        check(&[("a", two), ("b", nan.clone())], false, false);
        check(&[("a", Value::Int64(1)), ("b", nan)], false, false);
        check(&[("a", one)], false, false);
    }
}
