//! What is promised across messages: lists pass over nothing that they could show, and counts are right.
//!
//! Promises: judges by intervals alone, so that no order of what overlaps can make a right answer look wrong.

use super::CLOCK_SLACK;
use super::event::{Event, Seen, Time, Told, What};
use super::ledger::{Ledger, Life, readable};
use super::order::{Kind, Step};

/// Checks one of these events.
pub fn check(ledger: &Ledger, event: &Event, events: &[Event]) -> Result<(), String> {
    match &event.what {
        What::Get { count_max, told: Told::Done(seen), .. } => {
            check_list(ledger, event, claimed_until(event, events), *count_max, seen)
        }
        What::Peek { count_max, seen } => check_list(ledger, event, event.ended, *count_max, seen),
        What::Count { count } => check_count(ledger, event, *count),
        _ => Ok(()),
    }
}

/// Until when others may have claimed messages that this get passed over. Whoever claims a message takes it, unless it
/// changes under its hands; so a message that changed by then may have been claimed.
fn claimed_until(event: &Event, events: &[Event]) -> Time {
    let is_rival = |other: &&Event| {
        let is_answered = matches!(other.what, What::Get { told: Told::Done(_), .. });
        is_answered && other.began <= event.ended && other.ended >= event.began
    };
    events.iter().filter(is_rival).map(|other| other.ended).max().unwrap_or(event.ended)
}

fn check_list(
    ledger: &Ledger,
    event: &Event,
    claimed_until: Time,
    count_max: usize,
    seen: &[Seen],
) -> Result<(), String> {
    if seen.len() > count_max {
        return Err(format!("more messages than were asked for: {event:?}"));
    }
    // A get drops the messages that change while it takes them, and does not look for others unless none is left.
    let is_get = matches!(event.what, What::Get { .. });
    let is_shared = ledger.patience > 0;
    let may_change = |life: &&Life| {
        let is_listed = seen.iter().any(|seen| Some(&seen.handle.id) == life.id.as_ref());
        !is_listed && may_change_during(life, event, is_shared)
    };
    let dropped_count_max = match is_get && !seen.is_empty() {
        true if is_shared && ledger.lost_gets.iter().any(|lost| overlaps(lost, event)) => count_max,
        true => ledger.lives.iter().filter(may_change).count(),
        false => 0,
    };
    let is_full = seen.len() + dropped_count_max >= count_max;
    // The youngest of the list became visible at this moment or later.
    let youngest = seen.iter().filter_map(|seen| visible_first(ledger, event, seen)).max();
    for life in &ledger.lives {
        let Some(visible) = surely_visible(ledger, life, event, claimed_until) else { continue };
        let is_listed = seen.iter().any(|seen| Some(&seen.handle.id) == life.id.as_ref());
        let is_overtaken = youngest.is_some_and(|youngest| visible + CLOCK_SLACK < youngest);
        if !is_listed && (!is_full || is_overtaken) {
            let how = if is_full { "overtaken" } else { "passed over" };
            return Err(format!(
                "{:?} was {how} by {event:?}\nIts operations:\n{}",
                life.text,
                readable(&ledger.steps_of(life))
            ));
        }
    }
    Ok(())
}

/// The latest moment at which a message became visible, if that was before the operation began and nobody can have
/// touched it from then to the end.
fn surely_visible(ledger: &Ledger, life: &Life, event: &Event, end: Time) -> Option<Time> {
    if life.live().is_some_and(|live| end + CLOCK_SLACK >= life.steps[0].began + live) {
        return None;
    }
    let settled = life.steps.iter().filter(|step| step.is_certain && step.ended <= event.began);
    let (last, visible) = settled
        .filter_map(|step| {
            let hide = match &step.kind {
                Kind::Put { hide, .. } | Kind::Take { hide, .. } | Kind::Update { hide, .. } => *hide,
                _ => return None,
            };
            Some((step, step.ended + hide + CLOCK_SLACK))
        })
        .max_by_key(|(step, _)| step.began)?;
    let mut visible = visible;
    for step in life.steps.iter().chain(&ledger.clears).chain(&ledger.lost_gets) {
        let is_apart = step.ended < last.began || step.began > end || std::ptr::eq(step, last);
        match step.kind {
            _ if is_apart => {}
            Kind::Peek { .. } | Kind::Refused { .. } => {}
            // It may have taken the message; then the message comes back.
            Kind::LostGet { hide } => visible = visible.max(step.ended.saturating_add(hide + CLOCK_SLACK)),
            _ => return None,
        }
    }
    let visible = visible.saturating_add(ledger.patience);
    (visible <= event.began).then_some(visible)
}

fn overlaps(step: &Step, event: &Event) -> bool {
    step.began <= event.ended && step.ended >= event.began
}

/// Whether a message may have been visible when the operation began, and deleted or updated before it ended; or taken, by
/// another process.
fn may_change_during(life: &Life, event: &Event, is_shared: bool) -> bool {
    let visible_before_end = |used: &str| {
        let is_visible = |step: &Step| {
            let (receipt, hide) = match &step.kind {
                Kind::Put { receipt, hide, .. } | Kind::Update { receipt, hide, .. } => {
                    (receipt.as_deref(), *hide)
                }
                Kind::Take { receipt, hide, .. } => (Some(receipt.as_str()), *hide),
                _ => return false,
            };
            receipt == Some(used) && step.began + hide <= event.ended + CLOCK_SLACK
        };
        life.steps.iter().any(is_visible)
    };
    life.steps.iter().filter(|step| overlaps(step, event)).any(|step| match &step.kind {
        Kind::Delete { used } | Kind::Update { used, .. } => visible_before_end(used),
        Kind::Take { .. } => is_shared,
        _ => false,
    })
}

/// The earliest moment at which a listed message became visible, if nobody touched it before.
fn visible_first(ledger: &Ledger, event: &Event, seen: &Seen) -> Option<Time> {
    let life = ledger.lives.iter().find(|life| life.id.as_ref() == Some(&seen.handle.id))?;
    let count_at_first = u32::from(matches!(event.what, What::Get { .. }));
    let is_update = |step: &Step| matches!(step.kind, Kind::Update { .. }) && step.began <= event.ended;
    let is_untouched = seen.dequeue_count == count_at_first && !life.steps.iter().any(is_update);
    let Kind::Put { hide, .. } = life.steps[0].kind else { return None };
    is_untouched.then(|| (life.steps[0].began + hide).saturating_sub(CLOCK_SLACK))
}

fn check_count(ledger: &Ledger, event: &Event, count: usize) -> Result<(), String> {
    let (mut least, mut most) = (0, 0);
    for life in &ledger.lives {
        let put = &life.steps[0];
        let live = life.live().unwrap_or(Time::MAX / 2);
        let ends = || {
            let of_all = ledger.clears.iter();
            life.steps
                .iter()
                .chain(of_all)
                .filter(|step| matches!(step.kind, Kind::Delete { .. } | Kind::Clear))
        };
        let was_surely_put = life.was_put() && put.is_certain && put.ended <= event.began;
        let has_perhaps_ended = put.began + live <= event.ended + CLOCK_SLACK
            || ends().any(|step| step.ended >= put.began && step.began <= event.ended);
        let has_surely_ended = put.ended.saturating_add(live).saturating_add(CLOCK_SLACK) < event.began
            || ends().any(|step| step.is_certain && step.began > put.ended && step.ended < event.began);
        least += usize::from(was_surely_put && !has_perhaps_ended);
        most += usize::from(put.began <= event.ended && !has_surely_ended);
    }
    if (least..=most).contains(&count) {
        return Ok(());
    }
    Err(format!("the count is {count}, but {least} to {most} messages were there: {event:?}"))
}
