//! Contents in an object store: S3 and what speaks like it, Google's, Azure's, or a directory (docs/contents.md).
//!
//! A content is a list of objects of up to 8 MiB, each put as a whole, so there is no half of an object, ever, and nothing to clean
//! up but objects that no row names. Objects are put several at a time. A range of an object is one request.
//!
//! Several processes may write to one store. What is pending in this process is known by its number, as everywhere; an object of
//! another process is left out by a sweep until it is a day old (`ObjectOptions::foreign_age`). A pin protects only against this
//! process.
//!
//! Leaves to others: retries and signatures (the crate `object_store`), and that the store keeps what it has taken.

mod connector;
mod frame;
mod place;
mod reader;
mod sweep;
mod writer;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

pub use self::place::ObjectPlace;
pub use self::writer::{LONG_OBJECT_BYTES, OBJECT_BYTES_MAX, POOL_BYTES, SHORT_OBJECT_COUNT_MAX};

use self::reader::ObjectReader;
use self::sweep::{ObjectSweep, PathStream};
use self::writer::ObjectWriter;
use crate::guards::{Guards, Hold, Pin, SweepGuard};
use crate::reference::ContentId;
use crate::{
    ContentError, ContentReader, ContentRef, ContentStore, ContentWriter, Gauges, Sweep, UnixMilliseconds,
};

/// Says that a place belongs to a store.
const MARKER: &str = "lazulite";
/// Work that goes on in the background: [`ContentStore::close`] waits for it.
const BACKGROUND_COUNT_MAX: u32 = 1 << 20;
/// An object that another process wrote may be about to get a row for so long.
const FOREIGN_AGE: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone)]
pub struct ObjectOptions {
    /// The id of the store. It is part of every name, so stores can share a bucket.
    pub store: u64,
    /// Unpredictable numbers.
    pub random: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub now: UnixMilliseconds,
    /// Objects of other processes that are younger are not swept.
    pub foreign_age: Duration,
}

impl ObjectOptions {
    pub fn new(
        store: u64,
        random: Arc<dyn Fn() -> u64 + Send + Sync>,
        now: UnixMilliseconds,
    ) -> ObjectOptions {
        ObjectOptions { store, random, now, foreign_age: FOREIGN_AGE }
    }
}

/// What all writers and readers share.
pub(crate) struct ObjectInner {
    objects: Arc<dyn ObjectStore>,
    /// All names begin with it.
    root: Path,
    options: ObjectOptions,
    guards: Arc<Guards>,
    /// Names of this process begin with it.
    nonce: u64,
    runtime: Handle,
    pool: Arc<Semaphore>,
    background: Arc<Semaphore>,
    written: AtomicU64,
    read: AtomicU64,
}

impl ObjectInner {
    fn path(&self, id: ContentId) -> Path {
        // A directory has few files, where the store is one.
        self.root.clone().join(format!("{:02x}", id.0[15])).join(format!("{id:?}"))
    }

    fn next_id(&self) -> ContentId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.nonce.to_be_bytes());
        id[8..].copy_from_slice(&self.guards.next_number().to_be_bytes());
        ContentId(id)
    }

    /// Whether a sweep may forget the object.
    fn covers(&self, guard: &SweepGuard, id: ContentId, written_unix_ms: u64) -> bool {
        let (nonce, number) = id.0.split_at(8);
        if nonce == self.nonce.to_be_bytes() {
            return guard.covers(number.try_into().map_or(u64::MAX, u64::from_be_bytes));
        }
        let age = (self.options.now)().saturating_sub(written_unix_ms);
        u128::from(age) >= self.options.foreign_age.as_millis()
    }

    async fn delete(&self, contents: &[ContentRef]) -> Result<(), ContentError> {
        if contents.is_empty() {
            return Ok(());
        }
        let paths: Vec<Path> = contents.iter().map(|content| self.path(content.id)).collect();
        let mut deleted = self.objects.delete_stream(Box::pin(PathStream::new(paths)));
        while let Some(outcome) = sweep::next(&mut deleted).await {
            match outcome {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(from_object(error)),
            }
        }
        Ok(())
    }

    /// Deletes without anybody waiting for it. What fails is left to the next sweep.
    fn delete_later(self: &Arc<ObjectInner>, contents: Vec<ContentRef>) {
        let inner = self.clone();
        self.spawn(async move {
            if let Err(error) = inner.delete(&contents).await {
                log::debug!("forgotten objects are left to the next sweep: {error}");
            }
        });
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Ok(permit) = self.background.clone().try_acquire_owned() else {
            log::warn!("too much is going on in the background: some objects are left to the next sweep");
            return;
        };
        self.runtime.spawn(async move {
            work.await;
            drop(permit);
        });
    }
}

/// Contents in an object store. Its futures need a Tokio runtime.
pub struct ObjectContents {
    inner: Arc<ObjectInner>,
}

impl fmt::Debug for ObjectContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectContents({}, {})", self.inner.objects, self.inner.root)
    }
}

impl ObjectContents {
    /// Opens the contents at this place, or creates them. Fails if the store cannot be reached or written.
    pub async fn open(
        objects: Arc<dyn ObjectStore>,
        prefix: &str,
        options: ObjectOptions,
    ) -> Result<ObjectContents, ContentError> {
        let prefix = Path::parse(prefix).map_err(|error| ContentError::Io(error.to_string()))?;
        let root = prefix.join(format!("{:016x}", options.store));
        let marker = root.clone().join(MARKER);
        match objects.head(&marker).await {
            Ok(_) => {}
            Err(object_store::Error::NotFound { .. }) => {
                let words = format!("Lazulite keeps the contents of store {:016x} here.\n", options.store);
                objects.put(&marker, words.into()).await.map_err(from_object)?;
            }
            Err(error) => return Err(from_object(error)),
        }
        let inner = Arc::new_cyclic(|inner: &std::sync::Weak<ObjectInner>| {
            let releasing = inner.clone();
            let release = move |contents| {
                if let Some(inner) = releasing.upgrade() {
                    inner.delete_later(contents);
                }
            };
            ObjectInner {
                objects,
                root,
                guards: Guards::new(release),
                nonce: (options.random)(),
                options,
                runtime: Handle::current(),
                pool: Arc::new(Semaphore::new(writer::POOL_UNIT_COUNT)),
                background: Arc::new(Semaphore::new(BACKGROUND_COUNT_MAX as usize)),
                written: AtomicU64::new(0),
                read: AtomicU64::new(0),
            }
        });
        Ok(ObjectContents { inner })
    }
}

#[async_trait]
impl ContentStore for ObjectContents {
    fn writer(&self, _expected_bytes: Option<u64>) -> Box<dyn ContentWriter> {
        Box::new(ObjectWriter::new(self.inner.clone()))
    }

    fn pin(&self) -> Pin {
        self.inner.guards.pin()
    }

    fn open(&self, content: &ContentRef, range: Range<u64>, pin: Pin) -> Box<dyn ContentReader> {
        Box::new(ObjectReader::new(self.inner.clone(), *content, range, pin))
    }

    fn hold(&self, contents: &[ContentRef]) -> Hold {
        self.inner.guards.hold(contents)
    }

    async fn forget(&self, contents: &[ContentRef]) -> Result<(), ContentError> {
        self.inner.delete(&self.inner.guards.forget(contents)).await
    }

    async fn sweep(&self) -> Result<Box<dyn Sweep>, ContentError> {
        Ok(Box::new(ObjectSweep::new(self.inner.clone())))
    }

    fn gauges(&self) -> Gauges {
        let (pin_count, deferred_count, left_to_sweep_count) = self.inner.guards.counts();
        Gauges {
            pin_count,
            deferred_count,
            left_to_sweep_count,
            written_bytes: self.inner.written.load(Ordering::Relaxed),
            read_bytes: self.inner.read.load(Ordering::Relaxed),
            ..Gauges::default()
        }
    }

    async fn close(&self) {
        drop(self.inner.background.acquire_many(BACKGROUND_COUNT_MAX).await);
    }
}

fn from_object(error: object_store::Error) -> ContentError {
    match error {
        object_store::Error::NotFound { .. } => ContentError::NotFound,
        error => ContentError::Io(error.to_string()),
    }
}
