//! A lane: a few turns at once, and whoever wants one waits in line. Shared fairly between those who do not know of each
//! other.
//!
//! Promises: the groups that wait get their turns one after the other, however many turns each of them waits for, and
//! within a group so do its members. Nothing is set aside: who waits alone gets every turn. Only those who wait are
//! remembered.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

/// On whose behalf work is done. The numbers are chosen by the caller, who knows who shares with whom.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Share {
    pub group: u64,
    /// One of the group's members.
    pub member: u64,
}

impl Share {
    /// For work that nobody in particular asked for.
    pub const COMMON: Share = Share { group: 0, member: 0 };
}

pub struct Lane {
    turn_count: usize,
    turns: Semaphore,
    /// As many of a group as there are turns pass its gate, and only they wait for a turn or have one. As many of a
    /// member pass its gate, and only they wait for the group's gate. Semaphores serve in order, so a newcomer's group has
    /// only those few of every other group before it.
    groups: Gates<u64>,
    members: Gates<Share>,
}

/// Lasts until it is dropped. Its fields are dropped in this order: first somebody gets the turn, then another of the
/// group gets in line.
pub struct Turn<'a> {
    _turn: SemaphorePermit<'a>,
    _group: Passed<'a, u64>,
    _member: Passed<'a, Share>,
}

impl Lane {
    pub fn new(turn_count: usize) -> Lane {
        let turn_count = turn_count.max(1);
        let (groups, members) = (Gates::new(), Gates::new());
        Lane { turn_count, turns: Semaphore::new(turn_count), groups, members }
    }

    /// For work that may keep half of the processors busy.
    pub fn with_half_of_the_processors() -> Lane {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        Lane::new(processors / 2)
    }

    /// Waits for a turn. A caller that wants the next one asks for it right after dropping the last one: whoever does
    /// something else first is not in line meanwhile.
    pub async fn turn(&self, share: Share) -> Option<Turn<'_>> {
        // No semaphore is ever closed, so `None` is never returned.
        let member = self.members.pass(share, self.turn_count).await?;
        let group = self.groups.pass(share.group, self.turn_count).await?;
        let turn = self.turns.acquire().await.ok()?;
        Some(Turn { _turn: turn, _group: group, _member: member })
    }
}

/// Only gates that somebody waits at or has passed exist.
struct Gates<K: Eq + Hash + Copy> {
    by_key: Mutex<HashMap<K, Arc<Semaphore>>>,
}

impl<K: Eq + Hash + Copy> Gates<K> {
    fn new() -> Gates<K> {
        Gates { by_key: Mutex::new(HashMap::new()) }
    }

    async fn pass(&self, key: K, count_max: usize) -> Option<Passed<'_, K>> {
        let semaphore = self.lock().entry(key).or_insert_with(|| Arc::new(Semaphore::new(count_max))).clone();
        let mut gate = Passed { gates: self, key, semaphore, has_passed: false };
        gate.semaphore.acquire().await.ok()?.forget();
        gate.has_passed = true;
        Some(gate)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<Semaphore>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits at a gate, or has passed it. Dropping it makes room for the next one.
struct Passed<'a, K: Eq + Hash + Copy> {
    gates: &'a Gates<K>,
    key: K,
    semaphore: Arc<Semaphore>,
    has_passed: bool,
}

impl<K: Eq + Hash + Copy> Drop for Passed<'_, K> {
    fn drop(&mut self) {
        if self.has_passed {
            self.semaphore.add_permits(1);
        }
        let mut by_key = self.gates.lock();
        // One reference is ours and one is the map's. References are made only under the lock, so nobody takes another
        // one meanwhile.
        if Arc::strong_count(&self.semaphore) == 2 {
            by_key.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    /// Lets each of these shares take this many turns, and returns who had them in which order.
    async fn order_of_turns(lane: Lane, wanted: Vec<(Share, usize)>) -> Vec<Share> {
        let (lane, order) = (Arc::new(lane), Arc::new(Mutex::new(Vec::new())));
        let tasks: Vec<_> = wanted
            .into_iter()
            .map(|(share, count)| {
                let (lane, order) = (lane.clone(), order.clone());
                tokio::spawn(async move {
                    for _ in 0..count {
                        let _turn = lane.turn(share).await;
                        order.lock().unwrap().push(share);
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!(lane.groups.lock().is_empty() && lane.members.lock().is_empty());
        let order = order.lock().unwrap();
        order.clone()
    }

    /// How many turns others have had when this share has had its last one.
    fn turns_of_others(order: &[Share], share: Share) -> usize {
        let last = order.iter().rposition(|had| *had == share).unwrap();
        order[..last].iter().filter(|had| **had != share).count()
    }

    #[tokio::test]
    async fn a_group_waits_for_groups_and_not_for_all_their_work() {
        let (greedy, modest) = (Share { group: 1, member: 1 }, Share { group: 2, member: 2 });
        for turn_count in [1, 4] {
            let mut wanted = vec![(greedy, 20); 100];
            wanted.push((modest, 20));
            let order = order_of_turns(Lane::new(turn_count), wanted).await;
            assert_eq!(order.len(), 101 * 20);
            let waited = turns_of_others(&order, modest);
            assert!((10 * turn_count..=22 * turn_count).contains(&waited), "{waited} with {turn_count}");
        }
    }

    #[tokio::test]
    async fn members_of_a_group_share_its_turns() {
        let [greedy, modest] = [1, 2].map(|member| Share { group: 1, member });
        let other = Share { group: 2, member: 1 };
        let mut wanted = vec![(greedy, 20); 100];
        wanted.extend([(modest, 20), (other, 20)]);
        let order = order_of_turns(Lane::new(1), wanted).await;
        // While the other group wants turns, it gets every second one, and the members share the rest.
        let waited = [modest, other].map(|share| turns_of_others(&order, share));
        assert!((36..=44).contains(&waited[0]) && (19..=22).contains(&waited[1]), "{waited:?}");
    }

    #[tokio::test]
    async fn a_group_that_is_alone_has_all_turns() {
        let (lane, share) = (Lane::new(3), Share { group: 1, member: 1 });
        let turns = [lane.turn(share).await, lane.turn(share).await, lane.turn(share).await];
        assert!(turns.iter().all(Option::is_some));
        drop(turns);
        assert!(lane.groups.lock().is_empty() && lane.members.lock().is_empty());
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_the_line() {
        let lane = Lane::new(1);
        let [first, second] = [1, 2].map(|group| Share { group, member: group });
        let turn = lane.turn(first).await;
        for share in [first, second] {
            let mut waiting = [pin!(lane.turn(share)), pin!(lane.turn(share))];
            for waiting in &mut waiting {
                tokio::select! {
                    biased;
                    _ = waiting => panic!("the turn is taken"),
                    () = tokio::task::yield_now() => {}
                }
            }
        }
        assert_eq!((lane.groups.lock().len(), lane.members.lock().len()), (1, 1));
        drop(turn);
        assert!(lane.turn(second).await.is_some());
    }
}
