//! Queries by their shape: for each account, table, filter without values, and plan, what its queries cost lately.
//!
//! Promises: at most [`SHAPE_COUNT_MAX`] shapes are kept; when there are more, the least used one leaves. The text of
//! a shape is made once, when it is first seen. No value of a filter is kept.

use std::ops::Add;
use std::time::Duration;

use protocol::table::filter::SHAPE_BYTES_MAX;
use protocol::table::region::PlanKind;

use super::name::{NAME_BYTES_MAX, Name, hash_of};
use super::window::Windowed;
use crate::observation::Observation;

const SHAPE_COUNT_MAX: usize = 256;

#[derive(Default)]
pub(super) struct Shapes {
    /// Apart from the slots, so that looking for one reads little memory.
    hashes: Vec<u64>,
    slots: Vec<ShapeSlot>,
}

struct ShapeSlot {
    name: Name,
    text: String,
    plan: PlanKind,
    last: Duration,
    costs: Windowed<Cost>,
}

/// What queries cost together.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) struct Cost {
    pub requests: u64,
    pub examined: u64,
    pub returned: u64,
    pub bytes: u64,
    pub micros: u64,
    pub micros_max: u64,
    /// Pages that were followed by another one.
    pub continued: u64,
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            requests: self.requests + other.requests,
            examined: self.examined.saturating_add(other.examined),
            returned: self.returned.saturating_add(other.returned),
            bytes: self.bytes.saturating_add(other.bytes),
            micros: self.micros.saturating_add(other.micros),
            micros_max: self.micros_max.max(other.micros_max),
            continued: self.continued + other.continued,
        }
    }
}

/// A shape, and what its queries cost lately.
pub(super) struct ShapeReport<'a> {
    pub hash: u64,
    pub account: &'a str,
    pub table: &'a str,
    /// Empty for queries without a filter.
    pub text: &'a str,
    pub plan: PlanKind,
    pub cost: Cost,
}

impl Shapes {
    pub(super) fn bytes_max() -> usize {
        SHAPE_COUNT_MAX * (size_of::<u64>() + size_of::<ShapeSlot>() + NAME_BYTES_MAX + SHAPE_BYTES_MAX)
    }

    /// `weight` is how many queries this one stands for.
    pub(super) fn count(&mut self, observation: &Observation<'_>, weight: u64) {
        let detail = &observation.detail;
        let Some(plan) = detail.plan else { return };
        // What was refused before it began says nothing about what it costs.
        if observation.is_error() && detail.examined == 0 {
            return;
        }
        let number = detail.filter_shape.map_or(0, |shape| shape.number());
        let hash = hash_of(observation.account, detail.container, &[])
            ^ (number ^ plan as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some(slot) = self.slot(hash, observation, plan) else { return };
        slot.last = observation.at;
        let micros = u64::try_from(observation.took.as_micros()).unwrap_or(u64::MAX);
        let cost = slot.costs.at(observation.at);
        *cost = *cost
            + Cost {
                requests: weight,
                examined: detail.examined.saturating_mul(weight),
                returned: detail.returned.saturating_mul(weight),
                bytes: observation.bytes_out.saturating_mul(weight),
                micros: micros.saturating_mul(weight),
                micros_max: micros,
                continued: if detail.has_more { weight } else { 0 },
            };
    }

    fn slot(&mut self, hash: u64, observation: &Observation<'_>, plan: PlanKind) -> Option<&mut ShapeSlot> {
        if let Some(index) = self.hashes.iter().position(|other| *other == hash) {
            return self.slots.get_mut(index);
        }
        let detail = &observation.detail;
        let mut text = detail.filter_shape.map(|shape| shape.text()).unwrap_or_default();
        text.shrink_to_fit();
        let name = Name::new(&[observation.account, detail.container]);
        let slot = ShapeSlot { name, text, plan, last: observation.at, costs: Windowed::default() };
        if self.slots.len() < SHAPE_COUNT_MAX {
            if self.slots.capacity() == 0 {
                self.slots.reserve_exact(SHAPE_COUNT_MAX);
                self.hashes.reserve_exact(SHAPE_COUNT_MAX);
            }
            self.hashes.push(hash);
            self.slots.push(slot);
            return self.slots.last_mut();
        }
        let least = (0..self.slots.len()).min_by_key(|index| {
            let slot = &self.slots[*index];
            (slot.costs.sum(observation.at).requests, slot.last)
        })?;
        self.hashes[least] = hash;
        self.slots[least] = slot;
        self.slots.get_mut(least)
    }

    /// The shapes that were seen lately.
    pub(super) fn report(&self, now: Duration) -> impl Iterator<Item = ShapeReport<'_>> {
        let seen = self.hashes.iter().zip(&self.slots).map(move |(hash, slot)| ShapeReport {
            hash: *hash,
            account: slot.name.account(),
            table: slot.name.table(),
            text: &slot.text,
            plan: slot.plan,
            cost: slot.costs.sum(now),
        });
        seen.filter(|report| report.cost.requests > 0)
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let texts: usize = self.slots.iter().map(|slot| slot.name.held_bytes() + slot.text.capacity()).sum();
        self.hashes.capacity() * size_of::<u64>() + self.slots.capacity() * size_of::<ShapeSlot>() + texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::tests::{query, seconds};

    #[test]
    fn the_least_used_leave_and_memory_is_bounded() {
        let mut shapes = Shapes::default();
        for number in 0..5000u64 {
            let name = format!("{}{number}", "Property".repeat(30));
            let filters = [format!("{name} eq 'x'"), "Often eq 1".to_owned()];
            for filter in filters {
                let observed = query("people", PlanKind::TableScan, &filter, 10, 1, seconds(number / 50));
                shapes.count(&observed.observation(), 1);
            }
        }
        assert_eq!(shapes.slots.len(), SHAPE_COUNT_MAX);
        assert!(shapes.held_bytes() <= Shapes::bytes_max(), "{}", shapes.held_bytes());
        let often = shapes.report(seconds(100)).find(|report| report.text == "Often eq Int32").unwrap();
        assert_eq!((often.cost.requests, often.cost.examined, often.cost.returned), (5000, 50_000, 5000));
        assert_eq!(shapes.report(seconds(2000)).count(), 0);
    }
}
