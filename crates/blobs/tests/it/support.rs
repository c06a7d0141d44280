//! A container to test with, on an engine, contents and a clock that the test sees.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use blobs::{
    BlobEntry, BlobOptions, BlobPage, BlobPlace, BlobService, FAMILY, NewBlob, NewContainer, Preconditions,
    PutContent, Upload, UploadBody, VALUE_RULES,
};
use bytes::Bytes;
use contents::{ContentStore, ContentsOptions, LocalContents, MemoryContents};
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::{Engine, Families, Share};
use engine_local::{LocalEngine, LocalOptions};
use protocol::blob::checksum::ExpectedChecksums;
use protocol::blob::identifier::{BlockId, Revision};
use protocol::blob::list_parameters::ListBlobsParameters;
use protocol::blob::{BlobName, ContainerName};
use protocol::common::AccountName;
use protocol::common::query::Query;
use protocol::common::service_properties::read_extended_update;
use protocol::{ErrorCode, ServiceError};

pub const FAMILIES: Families = Families::NONE.with(FAMILY, VALUE_RULES);

#[derive(Clone)]
pub struct Setup {
    pub clock: Arc<FakeClock>,
    pub service: BlobService,
    pub account: AccountName,
    pub container: ContainerName,
}

pub fn memory_contents() -> Arc<dyn ContentStore> {
    Arc::new(MemoryContents::new(1 << 30, Arc::new(|| 5)))
}

pub async fn setup() -> Setup {
    setup_with(BlobOptions::default()).await
}

pub async fn setup_with(options: BlobOptions) -> Setup {
    let clock = Arc::new(FakeClock::default());
    let engine = Arc::new(MemoryEngine::new(FAMILIES, clock.clone()));
    setup_on(engine, memory_contents(), clock, options).await
}

pub async fn local_setup(directory: &Path, options: BlobOptions) -> Setup {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let clock = Arc::new(FakeClock::default());
    let engine =
        LocalEngine::open(&directory.join("rows"), LocalOptions::new(FAMILIES, clock.clone())).unwrap();
    let random = || NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let contents = ContentsOptions::new(7, Arc::new(random), Arc::new(|| 5));
    let place = directory.join("contents");
    std::fs::create_dir_all(&place).unwrap();
    let contents = Arc::new(LocalContents::open(&place, contents).unwrap());
    setup_on(Arc::new(engine), contents, clock, options).await
}

pub async fn setup_on(
    engine: Arc<dyn Engine>,
    contents: Arc<dyn ContentStore>,
    clock: Arc<FakeClock>,
    options: BlobOptions,
) -> Setup {
    let service = BlobService::new(engine, contents, clock.clone(), options);
    let account = AccountName::parse("account").unwrap();
    let container = ContainerName::parse("container").unwrap();
    service.create_container(&account, &container, NewContainer::default()).await.unwrap();
    Setup { clock, service, account, container }
}

/// A body in pieces.
pub struct Pieces(VecDeque<Bytes>);

impl Pieces {
    pub fn of(bytes: &[u8]) -> Pieces {
        Pieces(bytes.chunks(100_000).map(Bytes::copy_from_slice).collect())
    }

    pub fn body(&mut self) -> UploadBody<'_> {
        let expected_bytes = Some(self.0.iter().map(|piece| piece.len() as u64).sum());
        UploadBody {
            source: self,
            expected_bytes,
            bytes_max: u64::MAX,
            expected: ExpectedChecksums::default(),
            with_md5: false,
        }
    }
}

#[async_trait]
impl Upload for Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, ServiceError>> {
        self.0.pop_front().map(Ok)
    }
}

pub fn random_bytes(random: &mut fastrand::Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

pub fn block_id(number: u32) -> BlockId {
    BlockId::from_bytes(&number.to_be_bytes()).unwrap()
}

pub fn code<T>(outcome: Result<T, ServiceError>) -> ErrorCode {
    match outcome {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.code,
    }
}

/// Deleted blobs can be restored for two days.
pub async fn keep_deleted(setup: &Setup) {
    let document = b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>2</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    let update = read_extended_update(document, "2021-12-02").unwrap();
    setup.service.catalogue().update_properties(&setup.account, update).await.unwrap();
}

impl Setup {
    pub fn place<'a>(&'a self, blob: &'a BlobName) -> BlobPlace<'a> {
        BlobPlace { account: &self.account, container: &self.container, blob }
    }

    pub async fn try_put(
        &self,
        blob: &str,
        bytes: &[u8],
        pre: Preconditions,
    ) -> Result<PutContent, ServiceError> {
        let name = BlobName::parse(blob).unwrap();
        self.service
            .put_block_blob(self.place(&name), Pieces::of(bytes).body(), NewBlob::default(), pre)
            .await
    }

    pub async fn put(&self, blob: &str, bytes: &[u8]) -> PutContent {
        self.try_put(blob, bytes, Preconditions::default()).await.unwrap()
    }

    pub async fn read(&self, blob: &str, revision: Revision) -> Result<Bytes, ServiceError> {
        let name = BlobName::parse(blob).unwrap();
        let open =
            self.service.open_blob(self.place(&name), revision, None, &Preconditions::default()).await?;
        let size = open.size();
        open.stream(0..size).collect().await
    }

    pub async fn list(&self, query: &str) -> BlobPage {
        let parameters = ListBlobsParameters::read(&Query::split(query).with_lower_names()).unwrap();
        self.service.list_blobs(&self.account, &self.container, &parameters, Share::COMMON).await.unwrap()
    }

    /// All pages of a list; a prefix ends with a star.
    pub async fn list_all(&self, query: &str) -> Vec<String> {
        let mut names = Vec::new();
        let mut marker = String::new();
        loop {
            let page = self.list(&format!("{query}&marker={marker}")).await;
            for entry in page.entries {
                names.push(match entry {
                    BlobEntry::Blob(view) => view.name.into(),
                    BlobEntry::Prefix(prefix) => prefix + "*",
                });
            }
            match page.next {
                Some(next) => {
                    marker = next.write().replace('+', "%2B").replace('=', "%3D").replace('/', "%2F")
                }
                None => return names,
            }
        }
    }
}
