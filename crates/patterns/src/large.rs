//! Large entities: a payload in chunks over several rows of a partition, and a head that is written last.
//!
//! Promises: a reader gets one payload that was written as a whole, or none; never a mixture, never a part. A writer that
//! dies changes nothing for readers. Of two writers that meet, the later head wins. Leaves to others: when to
//! [`collect`](LargeRows::collect) the chunks of writers that died.

use std::ops::Range;

use lazulite_client::{DateTime, Entity, Error, IfMatch, Keys, Property, TableClient, Value};

use crate::keys;
use crate::raw::{RawEntity, missing, rows_between};

/// A property of type Binary has at most 64 KiB.
const PROPERTY_BYTES_MAX: usize = 64 * 1024;
/// A row has at most 1 MiB, its names and keys included.
const CHUNK_PROPERTY_COUNT_MAX: usize = 15;
/// The bytes of a payload in one row.
pub const CHUNK_BYTES_MAX: usize = PROPERTY_BYTES_MAX * CHUNK_PROPERTY_COUNT_MAX;
/// With smaller ones the largest payload would have more chunks than their keys can count.
pub const CHUNK_BYTES_MIN: usize = 1024;
/// A payload beyond this belongs into another service.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A transaction has at most this many operations.
const TRANSACTION_OPERATION_COUNT_MAX: usize = 100;
/// How often a reader or writer starts again because another writer was faster.
const ATTEMPT_COUNT_MAX: u32 = 16;
const NUMBER_WIDTH: usize = 6;

const GENERATION: &str = "ChunkGeneration";
const COUNT: &str = "ChunkCount";
const LENGTH: &str = "PayloadLength";
const CHECKSUM: &str = "PayloadChecksum";

/// A table whose entities have payloads of any size.
///
/// ```no_run
/// # use lazulite_client::{Entity, Error, TableClient};
/// # #[derive(Entity)]
/// # struct Photo { #[entity(partition_key)] employee: String, #[entity(row_key)] name: String, title: String }
/// use lazulite_patterns::large::LargeRows;
///
/// # async fn f(table: TableClient, photo: Photo, jpeg: Vec<u8>) -> Result<(), Error> {
/// let photos = LargeRows::new(table);
/// photos.write(&photo, &jpeg).await?;
/// if let Some((photo, jpeg)) = photos.read::<Photo>("000123", "photo").await? {
///     println!("{} has {} bytes", photo.title, jpeg.len());
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LargeRows {
    table: TableClient,
    chunk_bytes: usize,
}

impl LargeRows {
    /// Heads and chunks are rows of this table.
    pub fn new(table: TableClient) -> LargeRows {
        LargeRows { table, chunk_bytes: CHUNK_BYTES_MAX }
    }

    /// Writes smaller chunks, and so smaller requests, for lines on which a request of 1 MiB takes too long. From
    /// [`CHUNK_BYTES_MIN`] to [`CHUNK_BYTES_MAX`]. Readers take chunks of any size.
    pub fn with_chunk_bytes(mut self, bytes: usize) -> LargeRows {
        self.chunk_bytes = bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        self
    }

    /// Stores an entity and its payload, in place of what was there. The head is the entity with four more properties.
    pub async fn write<E: Entity + Sync>(&self, entity: &E, payload: &[u8]) -> Result<(), Error> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(Error::Refused(format!("a payload has at most {PAYLOAD_BYTES_MAX} bytes")));
        }
        let keys = entity.keys()?;
        let generation = crate::random_name()?;
        let count = payload.chunks(self.chunk_bytes).len();
        for (number, chunk) in payload.chunks(self.chunk_bytes).enumerate() {
            self.table.insert(&chunk_row(&keys, &generation, number, chunk)?).await?;
        }
        let head = head_of(entity, &generation, count, payload)?;
        let replaced = self.put_head(&head).await?;
        // From here on nobody reads the old chunks, except readers that began earlier; they start again.
        match replaced {
            Some(old) => self.delete_chunks(&keys, &Described::read(&old)?).await,
            None => Ok(()),
        }
    }

    /// Reads an entity and its payload; `None` when there is no such entity.
    pub async fn read<E: Entity>(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<(E, Vec<u8>)>, Error> {
        let mut seen = None;
        for _ in 0..ATTEMPT_COUNT_MAX {
            let Some(head) = self.table.try_get::<RawEntity>(partition_key, row_key).await? else {
                return Ok(None);
            };
            let described = Described::read(&head)?;
            if seen.as_ref() == Some(&described) {
                return Err(Error::Unreadable(format!("the chunks of {row_key:?} do not match their head")));
            }
            let range = chunk_range(row_key, &described.generation);
            let chunks = rows_between(&self.table, partition_key, &range).await?;
            if let Some(payload) = described.join(&chunks) {
                return Ok(Some((head.into_entity()?, payload)));
            }
            seen = Some(described);
        }
        Err(Error::Refused(format!("{row_key:?} was replaced {ATTEMPT_COUNT_MAX} times while it was read")))
    }

    /// Deletes an entity and its payload. Returns whether it was there.
    pub async fn delete(&self, partition_key: &str, row_key: &str) -> Result<bool, Error> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            let Some(head) = self.table.try_get::<RawEntity>(partition_key, row_key).await? else {
                return Ok(false);
            };
            match self.table.delete(partition_key, row_key, IfMatch::ETag(head.read_etag()?)).await {
                Ok(()) => {
                    self.delete_chunks(&head.keys, &Described::read(&head)?).await?;
                    return Ok(true);
                }
                Err(error) if error.is_precondition_failed() || error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(format!(
            "{row_key:?} was replaced {ATTEMPT_COUNT_MAX} times before it was deleted"
        )))
    }

    /// Deletes the chunks that no head names and that were written before a time: those of writers that died. Choose a
    /// time so long ago that no writer still works on them. Returns how many rows were deleted.
    pub async fn collect(
        &self,
        partition_key: &str,
        row_key: &str,
        before: DateTime,
    ) -> Result<usize, Error> {
        // Chunks first: a head that appears after this query belongs to chunks that are in use.
        let chunks = rows_between(&self.table, partition_key, &keys::part_range([row_key, CHUNK])).await?;
        let head = self.table.try_get::<RawEntity>(partition_key, row_key).await?;
        let used = head.as_ref().map(Described::read).transpose()?;
        let used = used.map(|described| chunk_range(row_key, &described.generation));
        let is_lost = |chunk: &&RawEntity| {
            let is_used = used.as_ref().is_some_and(|range| range.contains(&chunk.keys.row_key.to_string()));
            !is_used && chunk.timestamp.is_some_and(|time| time < before)
        };
        let lost: Vec<String> =
            chunks.iter().filter(is_lost).map(|chunk| chunk.keys.row_key.to_string()).collect();
        self.delete_rows(partition_key, &lost).await?;
        Ok(lost.len())
    }

    /// Makes this the head, whatever was there. Returns the one that it replaced.
    async fn put_head(&self, head: &RawEntity) -> Result<Option<RawEntity>, Error> {
        let Keys { partition_key, row_key } = &head.keys;
        for _ in 0..ATTEMPT_COUNT_MAX {
            let old = self.table.try_get::<RawEntity>(partition_key, row_key).await?;
            let outcome = match &old {
                Some(old) => self.table.replace(head, IfMatch::ETag(old.read_etag()?)).await,
                None => self.table.insert(head).await,
            };
            match outcome {
                Ok(_) => return Ok(old),
                Err(error) if is_race(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(format!("{row_key:?} was replaced {ATTEMPT_COUNT_MAX} times by others")))
    }

    async fn delete_chunks(&self, head: &Keys<'_>, described: &Described) -> Result<(), Error> {
        let names: Vec<String> = (0..described.count)
            .map(|number| chunk_key(&head.row_key, &described.generation, number))
            .collect();
        self.delete_rows(&head.partition_key, &names).await
    }

    async fn delete_rows(&self, partition_key: &str, row_keys: &[String]) -> Result<(), Error> {
        for some in row_keys.chunks(TRANSACTION_OPERATION_COUNT_MAX) {
            let mut transaction = self.table.transaction(partition_key);
            for row_key in some {
                transaction.delete(row_key, IfMatch::Any)?;
            }
            match transaction.send().await {
                Ok(_) => {}
                // Somebody collects at the same time. Then each row is deleted by itself, by one of us.
                Err(error) if error.is_not_found() => self.delete_each(partition_key, some).await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn delete_each(&self, partition_key: &str, row_keys: &[String]) -> Result<(), Error> {
        for row_key in row_keys {
            match self.table.delete(partition_key, row_key, IfMatch::Any).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether another writer was faster.
pub(crate) fn is_race(error: &Error) -> bool {
    error.is_precondition_failed() || error.is_conflict() || error.is_not_found()
}

/// What a head says of its chunks.
#[derive(PartialEq, Eq, Debug)]
struct Described {
    generation: String,
    count: usize,
    length: usize,
    checksum: i64,
}

impl Described {
    fn read(head: &RawEntity) -> Result<Described, Error> {
        let number = |name| {
            let number = head.number(name).and_then(|number| usize::try_from(number).ok());
            number.ok_or_else(|| Error::Entity(missing(name)))
        };
        let generation = head.text(GENERATION).ok_or_else(|| Error::Entity(missing(GENERATION)))?.to_owned();
        let checksum = head.number(CHECKSUM).ok_or_else(|| Error::Entity(missing(CHECKSUM)))?;
        let (count, length) = (number(COUNT)?, number(LENGTH)?);
        let is_possible = (length.div_ceil(CHUNK_BYTES_MAX)..=length).contains(&count);
        if length > PAYLOAD_BYTES_MAX || !is_possible {
            return Err(Error::Unreadable(format!("a head describes {length} bytes in {count} chunks")));
        }
        Ok(Described { generation, count, length, checksum })
    }

    /// The payload, if these are all of its chunks.
    fn join(&self, chunks: &[RawEntity]) -> Option<Vec<u8>> {
        if chunks.len() != self.count {
            return None;
        }
        let mut payload = Vec::with_capacity(self.length);
        for chunk in chunks {
            for number in 0..CHUNK_PROPERTY_COUNT_MAX {
                match chunk.value(&data_name(number)) {
                    Some(Value::Binary(bytes)) => payload.extend_from_slice(bytes),
                    _ => break,
                }
            }
        }
        (payload.len() == self.length && checksum(&payload) == self.checksum).then_some(payload)
    }
}

const CHUNK: &str = "chunk";

fn head_of<E: Entity>(
    entity: &E,
    generation: &str,
    count: usize,
    payload: &[u8],
) -> Result<RawEntity, Error> {
    let keys = entity.keys()?;
    let mut properties: Vec<Property<'_>> = Vec::new();
    entity.write(&mut properties)?;
    let mut head = RawEntity::new(keys.partition_key.as_ref(), keys.row_key.as_ref());
    for Property { name, value } in properties {
        head = head.with(name.into_owned(), value.into_owned());
    }
    let number = |number: usize| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    Ok(head
        .with(GENERATION, Value::String(generation.to_owned().into()))
        .with(COUNT, number(count))
        .with(LENGTH, number(payload.len()))
        .with(CHECKSUM, Value::Int64(checksum(payload))))
}

fn chunk_row(head: &Keys<'_>, generation: &str, number: usize, chunk: &[u8]) -> Result<RawEntity, Error> {
    let mut row = RawEntity::new(head.partition_key.as_ref(), chunk_key(&head.row_key, generation, number));
    for (n, bytes) in chunk.chunks(PROPERTY_BYTES_MAX).enumerate() {
        row = row.with(data_name(n), Value::Binary(bytes.to_vec().into()));
    }
    Ok(row)
}

fn chunk_key(row_key: &str, generation: &str, number: usize) -> String {
    keys::compose([row_key, CHUNK, generation, &format!("{number:0NUMBER_WIDTH$}")])
}

fn chunk_range(row_key: &str, generation: &str) -> Range<String> {
    keys::part_range([row_key, CHUNK, generation])
}

fn data_name(number: usize) -> String {
    format!("Data{number:02}")
}

/// FNV-1a of 64 bits: it notices chunks that were mixed up, not an attacker.
fn checksum(payload: &[u8]) -> i64 {
    const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01B3;
    payload.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)).cast_signed()
}
