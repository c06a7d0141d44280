//! Bulk: many entities of any partitions, in as few requests as possible.
//!
//! Owns: grouping by partition, packing into transactions, bounded parallel sending, and the report. Promises: one
//! entity's failure costs no other its place; a row that is in the input twice is written twice, in the order of the
//! input. Leaves to others: what goes over the wire (`multipart`), and lost answers (`transaction`).

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::encryption::check_merge;
use crate::limits;
use crate::multipart::{Batch, Sealed};
use crate::table::properties_of;
use crate::transaction::write_checked;
use crate::write::Verb;
use crate::{Entity, Error, Keys, TableClient};

/// How many transactions are on their way at a time, unless the caller says otherwise.
const PARALLEL_DEFAULT: usize = 8;
/// After this many failed entities of one transaction, the rest of it is sent one by one: then each further failure
/// costs one small request, not a large one.
const FAILURE_COUNT_BEFORE_SINGLES: usize = 4;
/// A first guess of a body's length; later ones follow the last.
const BODY_BYTES_USUAL: usize = 32 * 1024;

/// What [`TableClient::bulk`] does with each entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkMode {
    /// Inserts it; a row that exists is a failure of this entity.
    Insert,
    /// Replaces its row, whatever it holds; a row that does not exist is a failure of this entity.
    Replace,
    /// Merges into its row, whatever it holds; a row that does not exist is a failure of this entity.
    Merge,
    /// Inserts it, or replaces the row that is there.
    UpsertReplace,
    /// Inserts it, or merges into the row that is there.
    UpsertMerge,
    /// Deletes its row, whatever it holds; a row that does not exist is a failure of this entity.
    Delete,
}

impl BulkMode {
    fn verb(self) -> Verb {
        match self {
            BulkMode::Insert => Verb::Insert,
            BulkMode::Replace => Verb::Replace,
            BulkMode::Merge => Verb::Merge,
            BulkMode::UpsertReplace => Verb::UpsertReplace,
            BulkMode::UpsertMerge => Verb::UpsertMerge,
            BulkMode::Delete => Verb::Delete,
        }
    }
}

/// A bulk load that was not started yet; await it. Made by [`TableClient::bulk`].
///
/// Entities are grouped by partition and packed into transactions of up to 100 entities and 4 MiB. Up to eight
/// transactions are on their way at a time, in no particular order, so this is not one transaction: some entities may
/// be written and others not. When the service refuses one entity of a transaction, the others of that transaction
/// are sent again without it. If the same row is in the input several times, its writes happen in the order of the
/// input.
///
/// Dropping the future stops the load: transactions that were not sent are not sent any more, and those on their way
/// may or may not happen.
///
/// ```no_run
/// use lazulite_client::{BulkMode, Entity, TableClient};
///
/// async fn load<E: Entity + Sync>(table: &TableClient, rows: &[E]) {
///     let report = table.bulk(rows, BulkMode::UpsertReplace).await;
///     for failure in &report.failures {
///         eprintln!("row {} of the input: {}", failure.index, failure.error);
///     }
///     println!("{} rows in {} requests", report.written, report.requests);
/// }
/// ```
#[must_use = "a bulk load does nothing until it is awaited"]
pub struct Bulk<'a, E> {
    table: TableClient,
    entities: &'a [E],
    mode: BulkMode,
    parallel: usize,
}

/// What became of a bulk load.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct BulkReport {
    /// How many entities were written.
    pub written: usize,
    /// Those that were not, in the order of the input.
    pub failures: Vec<BulkFailure>,
    /// How many transactions were sent.
    pub requests: usize,
}

impl BulkReport {
    /// The number of entities written, or the first failure.
    pub fn into_result(self) -> Result<usize, BulkFailure> {
        match self.failures.into_iter().next() {
            Some(failure) => Err(failure),
            None => Ok(self.written),
        }
    }

    fn absorb(&mut self, other: BulkReport) {
        self.written += other.written;
        self.requests += other.requests;
        self.failures.extend(other.failures);
    }

    fn fail(&mut self, index: usize, error: Error) {
        self.failures.push(BulkFailure { index, error: Arc::new(error) });
    }
}

/// One entity that a bulk load did not write.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkFailure {
    /// Its place in the input.
    pub index: usize,
    /// Why. Entities whose transaction failed as a whole share the error.
    pub error: Arc<Error>,
}

impl fmt::Display for BulkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entity {}: {}", self.index, self.error)
    }
}

impl std::error::Error for BulkFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

impl<'a, E: Entity + Sync> Bulk<'a, E> {
    pub(crate) fn new(table: TableClient, entities: &'a [E], mode: BulkMode) -> Bulk<'a, E> {
        Bulk { table, entities, mode, parallel: PARALLEL_DEFAULT }
    }

    /// At most this many transactions on their way at a time, instead of eight; at least one.
    pub fn parallel(mut self, count: usize) -> Bulk<'a, E> {
        self.parallel = count.max(1);
        self
    }

    /// Runs it. Awaiting the [`Bulk`] itself does the same.
    pub async fn send(self) -> BulkReport {
        let mut report = BulkReport::default();
        let verb = self.mode.verb();
        if verb.is_merge()
            && let Err(error) = check_merge::<E>()
        {
            let error = Arc::new(Error::from(error));
            report.failures =
                (0..self.entities.len()).map(|index| BulkFailure { index, error: error.clone() }).collect();
            return report;
        }
        for groups in group(self.entities, &mut report) {
            self.send_groups(verb, groups, &mut report).await;
        }
        report.failures.sort_by_key(|failure| failure.index);
        report
    }

    /// Sends groups that share no row. Takes a transaction of each group in turn, so that not all of those on their way
    /// press on the same partition.
    async fn send_groups(&self, verb: Verb, groups: Vec<Group<'a>>, report: &mut BulkReport) {
        let mut waiting: VecDeque<Group<'a>> = groups.into();
        let mut sending = JoinSet::new();
        let mut capacity = BODY_BYTES_USUAL;
        while let Some(mut group) = waiting.pop_front() {
            let mut batch = self.table.batch(capacity);
            let mut packed = Vec::new();
            self.pack(verb, &mut group, &mut batch, &mut packed, report).await;
            let partition_key = group.partition_key.clone().into_owned();
            if group.next < group.indexes.len() {
                waiting.push_back(group);
            }
            if packed.is_empty() {
                continue;
            }
            capacity = batch.body_bytes() + batch.body_bytes() / 8;
            while sending.len() >= self.parallel {
                absorb_next(&mut sending, report).await;
            }
            sending.spawn(send_packed(self.table.clone(), partition_key, batch.seal(), packed));
        }
        while !sending.is_empty() {
            absorb_next(&mut sending, report).await;
        }
    }

    /// Fills a transaction with the next entities of a group. `packed` receives their places in the input.
    async fn pack(
        &self,
        verb: Verb,
        group: &mut Group<'a>,
        batch: &mut Batch,
        packed: &mut Vec<usize>,
        report: &mut BulkReport,
    ) {
        while let Some(&index) = group.indexes.get(group.next)
            && !batch.is_full()
        {
            match self.add(verb, &self.entities[index], batch).await {
                Ok(true) => packed.push(index),
                Ok(false) if batch.len() > 0 => return,
                Ok(false) => {
                    let reason = "the entity does not fit into a transaction of 4 MiB as JSON".to_owned();
                    report.fail(index, Error::Refused(reason));
                }
                Err(error) => report.fail(index, error),
            }
            group.next += 1;
        }
    }

    async fn add(&self, verb: Verb, entity: &E, batch: &mut Batch) -> Result<bool, Error> {
        let keys = entity.keys()?;
        limits::check_keys(&keys)?;
        if verb == Verb::Delete {
            return batch.push(verb, &keys, None, |_| Ok(()));
        }
        let mut properties = properties_of(entity)?;
        if !E::ENCRYPTED.is_empty() {
            let sealing = &self.table.inner.sealing;
            sealing.seal(E::ENCRYPTED, &mut properties, self.table.name(), &keys).await?;
        }
        batch.push(verb, &keys, None, |out| write_checked(&keys, &properties, out))
    }
}

impl<'a, E: Entity + Sync> IntoFuture for Bulk<'a, E> {
    type Output = BulkReport;
    type IntoFuture = Pin<Box<dyn Future<Output = BulkReport> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Entities of one partition, each row at most once.
struct Group<'a> {
    partition_key: Cow<'a, str>,
    /// Places in the input.
    indexes: Vec<usize>,
    /// The first of them that was not packed yet.
    next: usize,
}

/// Groups by partition. A row's second occurrence goes into the second list of groups, its third into the third: a list
/// is sent when all before it are done.
fn group<'a, E: Entity>(entities: &'a [E], report: &mut BulkReport) -> Vec<Vec<Group<'a>>> {
    #[derive(Default)]
    struct List<'a> {
        groups: Vec<Group<'a>>,
        /// Where the group of a partition is.
        places: HashMap<Cow<'a, str>, usize>,
    }
    let mut lists: Vec<List<'a>> = Vec::new();
    let mut occurrences: HashMap<Keys<'a>, usize> = HashMap::with_capacity(entities.len());
    for (index, entity) in entities.iter().enumerate() {
        let keys = match entity.keys() {
            Ok(keys) => keys,
            Err(error) => {
                report.fail(index, error.into());
                continue;
            }
        };
        let partition_key = keys.partition_key.clone();
        let occurrence = occurrences.entry(keys).and_modify(|count| *count += 1).or_default();
        if *occurrence == lists.len() {
            lists.push(List::default());
        }
        let List { groups, places } = &mut lists[*occurrence];
        let place = *places.entry(partition_key).or_insert_with_key(|partition_key| {
            groups.push(Group { partition_key: partition_key.clone(), indexes: Vec::new(), next: 0 });
            groups.len() - 1
        });
        groups[place].indexes.push(index);
    }
    lists.into_iter().map(|list| list.groups).collect()
}

async fn absorb_next(sending: &mut JoinSet<BulkReport>, report: &mut BulkReport) {
    match sending.join_next().await {
        Some(Ok(part)) => report.absorb(part),
        Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down, and nobody will see the report.
        Some(Err(_)) | None => {}
    }
}

/// Sends a transaction; and again without the entities that the service refuses, until the rest is written.
async fn send_packed(
    table: TableClient,
    partition_key: String,
    batch: Sealed,
    packed: Vec<usize>,
) -> BulkReport {
    let mut report = BulkReport::default();
    let mut waiting = vec![(batch, packed)];
    while let Some((batch, mut packed)) = waiting.pop() {
        report.requests += 1;
        let mut error = match table.send_batch(&partition_key, &batch).await {
            Ok(_) => {
                report.written += packed.len();
                continue;
            }
            Err(error) => error,
        };
        let refused = match &mut error {
            // The index counts within a transaction that the caller knows nothing of.
            Error::Service(failure) => failure.operation_index.take(),
            _ => None,
        };
        match refused {
            Some(refused) if packed.len() > 1 && !is_about_all(&error) => {
                report.fail(packed[refused], error);
                let rest = (0..packed.len()).filter(|place| *place != refused).collect::<Vec<_>>();
                if report.failures.len() < FAILURE_COUNT_BEFORE_SINGLES {
                    let batch = batch.subset(rest.iter().copied());
                    packed.remove(refused);
                    waiting.push((batch, packed));
                } else {
                    let single =
                        |place: &usize| (batch.subset(std::iter::once(*place)), vec![packed[*place]]);
                    waiting.extend(rest.iter().map(single));
                }
            }
            // One of them is at fault, but the service does not say which.
            None if packed.len() > 1 && is_about_one(&error) => {
                let half = packed.len() / 2;
                let second = packed.split_off(half);
                waiting.push((batch.subset(half..half + second.len()), second));
                waiting.push((batch.subset(0..half), packed));
            }
            _ => {
                let error = Arc::new(error);
                report
                    .failures
                    .extend(packed.into_iter().map(|index| BulkFailure { index, error: error.clone() }));
            }
        }
    }
    report
}

/// Whether every entity would be refused in the same way, although the service names one.
fn is_about_all(error: &Error) -> bool {
    matches!(error.status().map(|status| status.as_u16()), Some(401 | 403))
        || matches!(error.code(), Some("TableNotFound" | "TableBeingDeleted"))
}

/// Whether a refusal without an index may be about one entity, or about the size of all together.
fn is_about_one(error: &Error) -> bool {
    matches!(error.status().map(|status| status.as_u16()), Some(400 | 404 | 409 | 412 | 413))
        && !is_about_all(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntityError, Property, Row};

    struct Key(&'static str, &'static str);

    impl Entity for Key {
        const COLUMNS: Option<&'static [&'static str]> = None;

        fn keys(&self) -> Result<Keys<'_>, EntityError> {
            if self.0 == "bad" {
                return Err(EntityError { property: "".into(), reason: "no keys".into() });
            }
            Ok(Keys::new(self.0, self.1))
        }

        fn write<'a>(&'a self, _out: &mut Vec<Property<'a>>) -> Result<(), EntityError> {
            Ok(())
        }

        fn read(_row: Row<'_>) -> Result<Key, EntityError> {
            Err(EntityError { property: "".into(), reason: "not read".into() })
        }
    }

    #[test]
    fn groups_hold_a_partition_and_each_row_once() {
        let keys = [("a", "1"), ("b", "1"), ("a", "2"), ("a", "1"), ("bad", ""), ("a", "1"), ("b", "2")];
        let entities = keys.map(|(partition_key, row_key)| Key(partition_key, row_key));
        let mut report = BulkReport::default();
        let lists: Vec<Vec<(String, Vec<usize>)>> = group(&entities, &mut report)
            .into_iter()
            .map(|groups| {
                groups.into_iter().map(|group| (group.partition_key.into_owned(), group.indexes)).collect()
            })
            .collect();
        let expected: [Vec<(&str, Vec<usize>)>; 3] =
            [vec![("a", vec![0, 2]), ("b", vec![1, 6])], vec![("a", vec![3])], vec![("a", vec![5])]];
        let expected = expected
            .map(|list| list.into_iter().map(|(key, indexes)| (key.to_owned(), indexes)).collect::<Vec<_>>());
        assert_eq!(lists, expected);
        assert_eq!(report.failures.iter().map(|failure| failure.index).collect::<Vec<_>>(), [4]);
    }
}
