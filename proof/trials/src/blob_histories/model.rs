//! The sequential model of one blob with conditions and a lease: the answer of each operation when it happens alone.
//!
//! Every write stores its own number, in its bytes or in the metadata, so what is read names the write that made it.
//! This also reveals the ETag of a write without a known answer ([`BlobModel::learn`]). All leases are infinite and
//! break at once, so time plays no part.

use std::collections::{BTreeMap, HashMap};

use crate::histories::checker::{Interval, Sequential};

/// An ETag as a number. It grows with every write.
pub type BlobTag = u64;
/// Stand for ETags that nobody has seen, from here on.
const UNKNOWN_TAGS: BlobTag = 1 << 63;

/// Lengths of bodies: in the row, and in the store of contents, some with chunks of their own.
const LENGTHS: [usize; 8] = [40, 3_000, 9_000, 40, 40_000, 3_000, 9_000, 300_000];

/// How long the body of a write is.
pub fn length_of(id: u32) -> usize {
    LENGTHS[id as usize % LENGTHS.len()]
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagCondition {
    None,
    Match(BlobTag),
    NoneMatch(BlobTag),
    /// `If-None-Match: *`
    Absent,
}

/// A lease by its number: there are few.
pub type LeaseNumber = u8;
/// A block by its number: there are few.
pub type BlockNumber = u8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlobCall {
    /// Put Blob: of the operation's own bytes, or of an empty append blob.
    Put {
        lease: Option<LeaseNumber>,
        condition: TagCondition,
    },
    Append {
        lease: Option<LeaseNumber>,
        condition: TagCondition,
        position: Option<u64>,
    },
    Stage {
        lease: Option<LeaseNumber>,
        block: BlockNumber,
    },
    /// Put Block List of blocks where they are newest.
    Commit {
        lease: Option<LeaseNumber>,
        condition: TagCondition,
        blocks: [Option<BlockNumber>; 3],
    },
    Delete {
        lease: Option<LeaseNumber>,
        condition: TagCondition,
    },
    Acquire(LeaseNumber),
    Renew(LeaseNumber),
    Change(LeaseNumber, LeaseNumber),
    Release(LeaseNumber),
    Break,
    Get,
    Head,
}

/// A blob as it is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenBlob {
    pub tag: BlobTag,
    /// The operation that put it.
    pub born: u32,
    /// The operations whose bytes it has; not known of a HEAD.
    pub pieces: Option<Vec<u32>>,
    pub size: u64,
    pub lease: SeenLease,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeenLease {
    Available,
    Leased,
    Broken,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlobAnswer {
    /// With an ETag, unless it is a deletion or about the lease.
    Done(Option<BlobTag>),
    Refused(u16),
    Found(Option<SeenBlob>),
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobOperation {
    pub id: u32,
    pub client: usize,
    pub call: BlobCall,
    pub answer: BlobAnswer,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum LeaseNow {
    Available,
    Leased(LeaseNumber),
    Broken(LeaseNumber),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct BlobNow {
    tag: BlobTag,
    born: u32,
    pieces: Vec<u32>,
    /// The committed blocks, and the operation that staged each.
    blocks: BTreeMap<BlockNumber, u32>,
    lease: LeaseNow,
}

/// The blob, its staged blocks, and the greatest ETag that is known to have been given.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct BlobHistoryState {
    blob: Option<BlobNow>,
    staged: BTreeMap<BlockNumber, u32>,
    last_tag: BlobTag,
}

pub struct BlobModel {
    is_append: bool,
    tags: HashMap<u32, BlobTag>,
}

impl BlobModel {
    /// Learns the ETags of writes without a known answer from all reads.
    pub fn learn(is_append: bool, history: &[Interval<BlobOperation>]) -> BlobModel {
        let mut tags = HashMap::new();
        for interval in history {
            let BlobAnswer::Found(Some(SeenBlob { tag, born, pieces, size, .. })) =
                &interval.operation.answer
            else {
                continue;
            };
            match pieces {
                Some(pieces) => drop(tags.insert(last_writer(is_append, *born, pieces), *tag)),
                None if !is_append || *size == 0 => drop(tags.insert(*born, *tag)),
                // Nobody knows whose bytes come last.
                None => {}
            }
        }
        BlobModel { is_append, tags }
    }

    /// The state after a write, or `None` if its ETag is not greater than those before it.
    fn written(
        &self,
        state: &BlobHistoryState,
        blob: BlobNow,
        tag: Option<BlobTag>,
    ) -> Option<BlobHistoryState> {
        // A tag that was never read cannot occur in a condition either, so any unused one will do.
        let id = last_writer(self.is_append, blob.born, &blob.pieces);
        let known = tag.or_else(|| self.tags.get(&id).copied());
        if known.is_some_and(|tag| tag <= state.last_tag) {
            return None;
        }
        let tag = known.unwrap_or(UNKNOWN_TAGS + u64::from(id));
        let last_tag = known.unwrap_or(state.last_tag);
        Some(BlobHistoryState { blob: Some(BlobNow { tag, ..blob }), staged: BTreeMap::new(), last_tag })
    }

    /// What the operation does when it happens in this state, or the status of its refusal. The ETag is that of the
    /// answer.
    fn apply(
        &self,
        state: &BlobHistoryState,
        id: u32,
        call: BlobCall,
        tag: Option<BlobTag>,
    ) -> Result<Option<BlobHistoryState>, u16> {
        let lease_of = |lease| {
            let mut after = state.clone();
            if let Some(blob) = &mut after.blob {
                blob.lease = lease;
            }
            Ok(Some(after))
        };
        let blobs = state.blob.as_ref();
        let new = |pieces, blocks, lease| BlobNow { tag: 0, born: id, pieces, blocks, lease };
        match call {
            BlobCall::Put { lease, condition } => {
                let pieces = if self.is_append { Vec::new() } else { vec![id] };
                let lease = may_create(blobs, lease, condition)?;
                return Ok(self.written(state, new(pieces, BTreeMap::new(), lease), tag));
            }
            BlobCall::Commit { lease, condition, blocks } => {
                let lease = may_create(blobs, lease, condition)?;
                let find = |block: BlockNumber| {
                    let committed = blobs.and_then(|blob| blob.blocks.get(&block));
                    state.staged.get(&block).or(committed).map(|id| (block, *id)).ok_or(400)
                };
                let found: Vec<(BlockNumber, u32)> =
                    blocks.into_iter().flatten().map(find).collect::<Result<_, u16>>()?;
                let pieces = found.iter().map(|(_, id)| *id).collect();
                return Ok(self.written(state, new(pieces, found.into_iter().collect(), lease), tag));
            }
            BlobCall::Stage { lease, block } => {
                match blobs {
                    None if lease.is_some() => return Err(412),
                    None => {}
                    Some(blob) => {
                        may_write(blob.lease, lease)?;
                    }
                }
                let mut after = state.clone();
                after.staged.insert(block, id);
                return Ok(Some(after));
            }
            // Without content there is nothing that a condition or a lease could guard.
            BlobCall::Delete { .. } if blobs.is_none() && !state.staged.is_empty() => {
                return Ok(Some(BlobHistoryState { staged: BTreeMap::new(), ..state.clone() }));
            }
            _ => {}
        }
        let Some(blob) = blobs else { return Err(404) };
        match (call, blob.lease) {
            (BlobCall::Append { lease, condition, position }, now) => {
                let lease = may_write(now, lease)?;
                check_tag(blob.tag, condition)?;
                if position.is_some_and(|position| position != size(&blob.pieces)) {
                    return Err(412);
                }
                let pieces = blob.pieces.iter().copied().chain([id]).collect();
                Ok(self.written(state, BlobNow { pieces, lease, ..blob.clone() }, tag))
            }
            (BlobCall::Delete { lease, condition }, now) => {
                may_write(now, lease)?;
                check_tag(blob.tag, condition)?;
                Ok(Some(BlobHistoryState { blob: None, staged: BTreeMap::new(), ..state.clone() }))
            }
            (BlobCall::Acquire(wanted), LeaseNow::Leased(held)) if wanted != held => Err(409),
            (BlobCall::Acquire(wanted), _) => lease_of(LeaseNow::Leased(wanted)),
            (BlobCall::Renew(wanted), LeaseNow::Leased(held)) if wanted == held => lease_of(blob.lease),
            (BlobCall::Change(from, to), LeaseNow::Leased(held)) if held == from || held == to => {
                lease_of(LeaseNow::Leased(to))
            }
            (BlobCall::Release(wanted), LeaseNow::Leased(held) | LeaseNow::Broken(held))
                if wanted == held =>
            {
                lease_of(LeaseNow::Available)
            }
            (BlobCall::Break, LeaseNow::Leased(held) | LeaseNow::Broken(held)) => {
                lease_of(LeaseNow::Broken(held))
            }
            _ => Err(409),
        }
    }
}

fn is_unknown(tag: BlobTag) -> bool {
    tag >= UNKNOWN_TAGS
}

/// The operation that gave the blob its ETag.
fn last_writer(is_append: bool, born: u32, pieces: &[u32]) -> u32 {
    pieces.last().copied().filter(|_| is_append).unwrap_or(born)
}

/// The lease after a write that creates the blob or replaces it.
fn may_create(
    blob: Option<&BlobNow>,
    lease: Option<LeaseNumber>,
    condition: TagCondition,
) -> Result<LeaseNow, u16> {
    let Some(blob) = blob else {
        let is_refused = lease.is_some() || matches!(condition, TagCondition::Match(_));
        return if is_refused { Err(412) } else { Ok(LeaseNow::Available) };
    };
    let after = may_write(blob.lease, lease)?;
    let has_lease = matches!(blob.lease, LeaseNow::Leased(_)) && lease.is_some();
    if condition == TagCondition::Absent && !has_lease {
        return Err(409);
    }
    check_tag(blob.tag, condition)?;
    Ok(after)
}

fn size(pieces: &[u32]) -> u64 {
    pieces.iter().map(|id| length_of(*id) as u64).sum()
}

/// The lease after a write with this lease.
fn may_write(now: LeaseNow, sent: Option<LeaseNumber>) -> Result<LeaseNow, u16> {
    match (now, sent) {
        (LeaseNow::Available | LeaseNow::Broken(_), None) => Ok(LeaseNow::Available),
        (LeaseNow::Leased(held), Some(sent)) if held == sent => Ok(now),
        _ => Err(412),
    }
}

fn check_tag(tag: BlobTag, condition: TagCondition) -> Result<(), u16> {
    let is_met = match condition {
        TagCondition::None | TagCondition::Absent => true,
        TagCondition::Match(wanted) => tag == wanted,
        TagCondition::NoneMatch(unwanted) => tag != unwanted,
    };
    if is_met { Ok(()) } else { Err(412) }
}

fn is_seen(blob: &BlobNow, seen: &SeenBlob) -> bool {
    let lease = match blob.lease {
        LeaseNow::Available => SeenLease::Available,
        LeaseNow::Leased(_) => SeenLease::Leased,
        LeaseNow::Broken(_) => SeenLease::Broken,
    };
    let is_same = match &seen.pieces {
        Some(pieces) => *pieces == blob.pieces && seen.tag == blob.tag,
        // The ETag of an append without an answer is not learnt from a HEAD.
        None => seen.tag == blob.tag || is_unknown(blob.tag),
    };
    is_same && seen.size == size(&blob.pieces) && (seen.born, seen.lease) == (blob.born, lease)
}

impl Sequential for BlobModel {
    type State = BlobHistoryState;
    type Operation = BlobOperation;

    fn initial(&self) -> BlobHistoryState {
        BlobHistoryState::default()
    }

    fn step(&self, state: &BlobHistoryState, operation: &BlobOperation) -> Option<BlobHistoryState> {
        let BlobOperation { id, call, answer, .. } = operation;
        match answer {
            BlobAnswer::Done(tag) => self.apply(state, *id, *call, *tag).ok().flatten(),
            BlobAnswer::Unknown => self.apply(state, *id, *call, None).ok().flatten(),
            BlobAnswer::Refused(status) => {
                (self.apply(state, *id, *call, None).err() == Some(*status)).then(|| state.clone())
            }
            BlobAnswer::Found(found) => {
                let fits = match (&state.blob, found) {
                    (None, None) => true,
                    (Some(blob), Some(seen)) => is_seen(blob, seen),
                    _ => false,
                };
                fits.then(|| state.clone())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histories::checker::{Verdict, check};

    #[track_caller]
    fn check_all(is_append: bool, history: &[(BlobCall, BlobAnswer)], is_linearizable: bool) {
        let history: Vec<_> = (0u32..)
            .zip(history)
            .map(|(id, (call, answer))| {
                let operation = BlobOperation { id, client: 0, call: *call, answer: answer.clone() };
                let at = 2 * u64::from(id);
                Interval {
                    operation,
                    invoked: at,
                    returned: (*answer != BlobAnswer::Unknown).then_some(at + 1),
                }
            })
            .collect();
        let verdict = check(&BlobModel::learn(is_append, &history), &history, 10_000).verdict;
        assert_eq!(verdict == Verdict::Linearizable, is_linearizable, "{verdict:?} {history:?}");
    }

    fn seen(tag: BlobTag, pieces: &[u32], lease: SeenLease) -> BlobAnswer {
        let size = size(pieces);
        BlobAnswer::Found(Some(SeenBlob { tag, born: 0, pieces: Some(pieces.to_vec()), size, lease }))
    }

    const PUT: BlobCall = BlobCall::Put { lease: None, condition: TagCondition::None };

    #[test]
    fn etags_guard_and_only_grow() {
        let put_if = |tag| BlobCall::Put { lease: None, condition: TagCondition::Match(tag) };
        check_all(false, &[(PUT, BlobAnswer::Done(Some(5))), (put_if(5), BlobAnswer::Done(Some(6)))], true);
        check_all(false, &[(PUT, BlobAnswer::Done(Some(5))), (put_if(4), BlobAnswer::Done(Some(6)))], false);
        check_all(false, &[(PUT, BlobAnswer::Done(Some(5))), (put_if(4), BlobAnswer::Refused(412))], true);
        check_all(false, &[(PUT, BlobAnswer::Done(Some(5))), (PUT, BlobAnswer::Done(Some(5)))], false);
    }

    #[test]
    fn a_lease_guards_and_an_unknown_one_may_have_been_acquired() {
        let done = BlobAnswer::Done(None);
        let history = [
            (PUT, BlobAnswer::Done(Some(5))),
            (BlobCall::Acquire(1), done.clone()),
            (PUT, BlobAnswer::Refused(412)),
            (BlobCall::Break, done.clone()),
            (BlobCall::Get, seen(5, &[0], SeenLease::Broken)),
            (PUT, BlobAnswer::Done(Some(6))),
            (BlobCall::Renew(1), BlobAnswer::Refused(409)),
        ];
        check_all(false, &history, true);
        check_all(false, &[history[0].clone(), history[1].clone(), (PUT, BlobAnswer::Done(Some(6)))], false);
        let unknown = (BlobCall::Acquire(2), BlobAnswer::Unknown);
        check_all(false, &[history[0].clone(), unknown, history[2].clone()], true);
    }

    #[test]
    fn a_head_tells_the_etag_of_a_write_without_an_answer_if_it_names_the_write() {
        let head = |tag, size| {
            let lease = SeenLease::Available;
            (BlobCall::Head, BlobAnswer::Found(Some(SeenBlob { tag, born: 0, pieces: None, size, lease })))
        };
        let unknown = (PUT, BlobAnswer::Unknown);
        let put_if =
            (BlobCall::Put { lease: None, condition: TagCondition::Match(5) }, BlobAnswer::Done(Some(6)));
        check_all(false, &[unknown.clone(), head(5, 40), put_if.clone()], true);
        check_all(false, &[unknown.clone(), head(4, 40), put_if], false);
        let append = BlobCall::Append { lease: None, condition: TagCondition::None, position: None };
        let begun = (PUT, BlobAnswer::Done(Some(4)));
        check_all(true, &[begun.clone(), (append, BlobAnswer::Unknown), head(5, 3_000)], true);
        check_all(true, &[begun, (append, BlobAnswer::Unknown), head(5, 40)], false);
    }

    #[test]
    fn a_list_takes_over_the_newest_blocks_and_ends_the_others() {
        let stage = |block| (BlobCall::Stage { lease: None, block }, BlobAnswer::Done(None));
        let list = |blocks| BlobCall::Commit { lease: None, condition: TagCondition::None, blocks };
        let found = |born: u32, pieces: &[u32]| {
            let (size, lease) = (size(pieces), SeenLease::Available);
            BlobAnswer::Found(Some(SeenBlob { tag: 5, born, pieces: Some(pieces.to_vec()), size, lease }))
        };
        let begun =
            [stage(1), stage(2), stage(1), (list([Some(1), Some(1), None]), BlobAnswer::Done(Some(5)))];
        let with = |last: (BlobCall, BlobAnswer)| begun.iter().cloned().chain([last]).collect::<Vec<_>>();
        check_all(false, &with((BlobCall::Get, found(3, &[2, 2]))), true);
        check_all(false, &with((BlobCall::Get, found(3, &[0, 0]))), false);
        check_all(false, &with((list([Some(2), None, None]), BlobAnswer::Refused(400))), true);
        check_all(false, &with((list([Some(2), None, None]), BlobAnswer::Done(Some(6)))), false);
        check_all(false, &with((list([Some(1), None, None]), BlobAnswer::Done(Some(6)))), true);
    }

    #[test]
    fn appends_are_neither_lost_nor_doubled() {
        let append = BlobCall::Append { lease: None, condition: TagCondition::None, position: None };
        let begun = [(PUT, BlobAnswer::Done(Some(5))), (append, BlobAnswer::Done(Some(6)))];
        let with = |last: (BlobCall, BlobAnswer)| begun.iter().cloned().chain([last]).collect::<Vec<_>>();
        check_all(true, &with((BlobCall::Get, seen(6, &[1], SeenLease::Available))), true);
        check_all(true, &with((BlobCall::Get, seen(6, &[1, 1], SeenLease::Available))), false);
        check_all(true, &with((BlobCall::Get, seen(5, &[], SeenLease::Available))), false);
    }
}
