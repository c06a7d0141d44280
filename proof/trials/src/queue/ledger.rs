//! What is known of every message of one queue, from the recorded operations of all clients.
//!
//! Promises: [`Ledger::judge`] reports every message whose operations have no order, and every list and count that the
//! rules forbid. A message that is surely gone is forgotten but for its id, which must never be seen again.

use std::collections::{HashMap, HashSet};

use super::event::{Event, Seen, Time, Told, What};
use super::order::{self, Found, Kind, Step};
use super::rules;

#[derive(Default)]
pub struct Ledger {
    pub(super) lives: Vec<Life>,
    /// By what was put.
    by_text: HashMap<String, usize>,
    by_id: HashMap<String, usize>,
    pub(super) clears: Vec<Step>,
    pub(super) lost_gets: Vec<Step>,
    /// Messages that are surely gone.
    gone: HashSet<String>,
    /// Texts of puts without an answer that did not happen.
    never: HashSet<String>,
    pub undecided_count: usize,
    /// How long after it became visible a message may still be passed over.
    pub patience: Time,
}

/// One message.
pub struct Life {
    /// What was put.
    pub text: String,
    /// Known as soon as an answer has told it.
    pub id: Option<String>,
    /// The first is the put.
    pub steps: Vec<Step>,
    is_new: bool,
}

impl Life {
    /// Whether it surely was put.
    pub fn was_put(&self) -> bool {
        self.steps[0].is_certain || self.id.is_some()
    }

    pub fn live(&self) -> Option<Time> {
        match &self.steps[0].kind {
            Kind::Put { live, .. } => *live,
            _ => None,
        }
    }
}

impl Ledger {
    /// Adds these operations, and judges all messages that they touched. Returns the first broken promise.
    pub fn judge(&mut self, mut events: Vec<Event>) -> Result<(), String> {
        events.sort_by_key(|event| event.ended);
        // A message is put before anybody can see it, even if the answer to the put came later.
        let (puts, others): (Vec<_>, Vec<_>) =
            events.iter().partition(|event| matches!(event.what, What::Put { .. }));
        for event in puts.into_iter().chain(others) {
            self.add(event)?;
        }
        for index in 0..self.lives.len() {
            if std::mem::take(&mut self.lives[index].is_new) {
                self.judge_life(index)?;
            }
        }
        for event in &events {
            rules::check(self, event, &events)?;
        }
        Ok(())
    }

    fn add(&mut self, event: &Event) -> Result<(), String> {
        let step =
            |is_certain: bool, kind: Kind| Step { began: event.began, ended: event.ended, is_certain, kind };
        match &event.what {
            What::Put { text, hide, live, told } => {
                let handle = match told {
                    Told::Done(handle) => handle.clone(),
                    Told::Refused | Told::Unknown => None,
                };
                let (id, receipt) = handle.map(|handle| (handle.id, handle.receipt)).unzip();
                let is_certain = matches!(told, Told::Done(_));
                if *told == Told::Refused {
                    return Err(format!("{text:?} was not put: the queue is not there"));
                }
                let index = self.lives.len();
                if let Some(id) = &id
                    && (self.by_id.insert(id.clone(), index).is_some() || self.gone.contains(id))
                {
                    return Err(format!("the id {id} was given twice"));
                }
                let put = Kind::Put { receipt, hide: *hide, live: *live };
                let steps = vec![step(is_certain, put)];
                self.by_text.insert(text.clone(), index);
                self.lives.push(Life { text: text.clone(), id, steps, is_new: true });
            }
            What::Get { hide, told, .. } => match told {
                Told::Unknown => {
                    self.lost_gets.push(step(false, Kind::LostGet { hide: *hide }));
                }
                Told::Refused => return Err("a get was refused: the queue is not there".to_owned()),
                Told::Done(list) => {
                    for seen in list {
                        let taken = Kind::Take {
                            receipt: seen.handle.receipt.clone(),
                            count: seen.dequeue_count,
                            text: seen.text.clone(),
                            hide: *hide,
                        };
                        self.life_of(seen, event)?.add(step(true, taken));
                    }
                }
            },
            What::Peek { seen, .. } => {
                for seen in seen {
                    let peeked = Kind::Peek { count: seen.dequeue_count, text: seen.text.clone() };
                    self.life_of(seen, event)?.add(step(true, peeked));
                }
            }
            What::Update { used, text, hide, told } => {
                let receipt = match told {
                    Told::Done(handle) => Some(handle.receipt.clone()),
                    Told::Refused | Told::Unknown => None,
                };
                let (used_receipt, text) = (used.receipt.clone(), text.clone());
                let update = Kind::Update { used: used_receipt, receipt, text, hide: *hide };
                self.add_change(&used.id, &used.receipt, told, step(true, update))?;
            }
            What::Delete { used, told } => {
                let deletion = Kind::Delete { used: used.receipt.clone() };
                self.add_change(&used.id, &used.receipt, told, step(true, deletion))?;
            }
            What::Clear { told } => self.clears.push(step(*told != Told::Unknown, Kind::Clear)),
            What::Count { .. } => {}
        }
        Ok(())
    }

    /// Adds an update or a deletion to the message that it names.
    fn add_change<T: PartialEq>(
        &mut self,
        id: &str,
        used: &str,
        told: &Told<T>,
        step: Step,
    ) -> Result<(), String> {
        let Some(index) = self.by_id.get(id) else {
            return match told {
                Told::Done(_) => Err(format!("{id} was changed after it was gone")),
                Told::Refused | Told::Unknown => Ok(()),
            };
        };
        self.lives[*index].add(match told {
            Told::Done(_) => step,
            Told::Refused => Step { kind: Kind::Refused { used: used.to_owned() }, ..step },
            Told::Unknown => Step { is_certain: false, ..step },
        });
        Ok(())
    }

    fn life_of(&mut self, seen: &Seen, event: &Event) -> Result<&mut Life, String> {
        let id = &seen.handle.id;
        if self.gone.contains(id) || self.never.contains(&seen.text) {
            return Err(format!("{:?} ({id}) was delivered after it was gone, by {event:?}", seen.text));
        }
        let index = match self.by_id.get(id) {
            Some(index) => *index,
            None => {
                let index = self.by_text.get(&seen.text).copied();
                let index = index.filter(|index| self.lives[*index].id.is_none());
                let index = index.ok_or_else(|| format!("nobody put {seen:?}"))?;
                self.by_id.insert(id.clone(), index);
                self.lives[index].id = Some(id.clone());
                index
            }
        };
        Ok(&mut self.lives[index])
    }

    fn judge_life(&mut self, index: usize) -> Result<(), String> {
        let life = &self.lives[index];
        let steps = self.steps_of(life);
        match order::find(&steps, &life.text) {
            Found::Order => Ok(()),
            Found::Undecided => {
                self.undecided_count += 1;
                Ok(())
            }
            Found::None { longest } => Err(format!(
                "the operations on {:?} ({}) have no order; {longest} of {} fit:\n{}",
                life.text,
                life.id.as_deref().unwrap_or("id unknown"),
                steps.len(),
                readable(&steps)
            )),
        }
    }

    /// All operations that can have touched it.
    pub(super) fn steps_of(&self, life: &Life) -> Vec<Step> {
        let began = life.steps[0].began;
        let ended = life.steps.iter().map(|step| step.ended).max().unwrap_or_default();
        let overlaps = |step: &&Step| step.ended >= began && step.began <= ended;
        let shared = self.clears.iter().chain(&self.lost_gets).filter(overlaps);
        let mut steps: Vec<Step> = life.steps.iter().chain(shared).cloned().collect();
        steps.sort_by_key(|step| step.began);
        steps
    }

    /// What became of a put without an answer, as somebody has found out at this moment.
    pub fn settle_put(&mut self, text: &str, happened: bool, now: Time) {
        let Some(index) = self.by_text.get(text).copied() else { return };
        let put = &mut self.lives[index].steps[0];
        if happened {
            put.is_certain = true;
        } else {
            put.ended = put.ended.min(now);
            self.never.insert(text.to_owned());
        }
    }

    /// The queue was emptied, and nothing is under way: whatever was in it is gone.
    pub fn emptied(&mut self) {
        for life in std::mem::take(&mut self.lives) {
            match life.id {
                Some(id) => drop(self.gone.insert(id)),
                None => drop(self.never.insert(life.text)),
            }
        }
        self.by_id.clear();
        self.by_text.clear();
        self.clears.clear();
        self.lost_gets.clear();
    }
}

impl Life {
    fn add(&mut self, step: Step) {
        self.steps.push(step);
        self.is_new = true;
    }
}

/// One line for each step, in the order in which they began.
pub(super) fn readable(steps: &[Step]) -> String {
    let line = |step: &Step| {
        let answer = if step.is_certain { "" } else { " (no answer)" };
        format!("  {:>12} to {:>12} us: {:?}{answer}\n", step.began, step.ended, step.kind)
    };
    steps.iter().map(line).collect()
}
