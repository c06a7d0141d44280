//! Writes whose content comes from another blob: copies, and the operations whose names end with From URL.

use blobs::{
    BlobPlace, CopyFrom, CopyRequest, CopyTags, NewBlob, OpenBlob, Preconditions, Stamp, Upload, UploadBody,
};
use protocol::blob::Tags;
use protocol::blob::checksum::{Checksums, ExpectedChecksums};
use protocol::blob::conditions::{AppendConditions, Conditions, SequenceConditions};
use protocol::blob::copy::{CopySource, CopyState, CopyStatus, read_copy_id};
use protocol::blob::encryption::Encryption;
use protocol::blob::identifier::BlockId;
use protocol::blob::limits::{
    PAGE_WRITE_BYTES_MAX, SYNC_COPY_BYTES_MAX, append_bytes_max, block_bytes_max, body_too_large,
    put_blob_bytes_max,
};
use protocol::blob::properties::{
    AccessTier, BlobType, CONTENT_TYPE_USUAL, HttpProperties, REHYDRATE_PRIORITY, RehydratePriority,
    TAG_OPTION, TagOption,
};
use protocol::blob::range::{ByteRange, read_pages, read_source_pages};
use protocol::common::guid::Guid;
use protocol::common::headers::invalid_header;
use protocol::{ErrorCode, ServiceError};

use super::BlobCall;
use super::answer::BlobAnswer;
use super::copy_source::{self, FoundSource, refused};
use super::outside::{Allowed, OutsideSource};
use super::writes::{appended_answer, pages_answer};

/// The bytes of a source, and what is known of it.
struct SourceContent {
    /// Of the range that was asked for, or of all of it.
    length: u64,
    http: HttpProperties,
    tags: Tags,
    stream: Box<dyn Upload>,
}

impl BlobCall<'_> {
    async fn source(&self) -> Result<FoundSource, ServiceError> {
        copy_source::find(self.http, self.session, &self.request.headers).await
    }

    /// The source on another server, if that is where it is and the server may be asked.
    async fn outside(&self, asked: Option<ByteRange>) -> Result<Option<OutsideSource>, ServiceError> {
        let Some(sources) = &self.http.outside else { return Ok(None) };
        let headers = &self.request.headers;
        let source = CopySource::read(headers)?;
        // Whoever asks this server under the same name means this server.
        let is_own = self.session.head.host.is_some_and(|host| host.eq_ignore_ascii_case(source.authority));
        let is_here = match sources.allows(&source) {
            None => true,
            Some(Allowed::ByName) => is_own,
            Some(Allowed::ByStar) => is_own || copy_source::is_here(self.session, &source),
        };
        if is_here {
            return Ok(None);
        }
        sources.open(&source, headers, asked, self.request.version).await.map(Some)
    }

    fn copy_from<'s>(&self, source: &'s FoundSource) -> Result<CopyFrom<'s>, ServiceError> {
        Ok(CopyFrom {
            place: BlobPlace { account: &source.account, container: &source.container, blob: &source.blob },
            revision: source.revision,
            conditions: Conditions::read_source(&self.request.headers)?,
            encryption: Encryption::default(),
        })
    }

    /// The source's content, which everything that is asked of it is true of.
    async fn open_source(
        &self,
        from: CopyFrom<'_>,
        range: Option<ByteRange>,
    ) -> Result<OpenBlob, ServiceError> {
        self.service().open_source(&from, range).await.map_err(|error| match error.code {
            ErrorCode::SourceConditionNotMet | ErrorCode::CopySourceNotModified => error,
            code if code.status() >= 500 => error,
            _ => refused(&error),
        })
    }

    /// The source, wherever it is, or a range of it, which may have so many bytes.
    async fn source_content(
        &self,
        asked: Option<ByteRange>,
        bytes_max: u64,
    ) -> Result<SourceContent, ServiceError> {
        let content = match self.outside(asked).await? {
            Some(outside) => SourceContent {
                length: outside.length,
                http: outside.http.clone(),
                tags: Tags::default(),
                stream: Box::new(outside),
            },
            None => {
                let source = self.source().await?;
                let open = self.open_source(self.copy_from(&source)?, asked).await?;
                let size = open.size();
                let range = asked.map_or(Ok(0..size), |asked| asked.within(size))?;
                let committed = open.view().committed.as_ref();
                SourceContent {
                    length: range.end - range.start,
                    http: committed.map(|committed| committed.http.clone()).unwrap_or_default(),
                    tags: committed.map(|committed| committed.tags.clone()).unwrap_or_default(),
                    stream: Box::new(open.stream(range)),
                }
            }
        };
        if content.length > bytes_max { Err(body_too_large(bytes_max)) } else { Ok(content) }
    }

    pub(crate) async fn put_from_url(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let expected = ExpectedChecksums::read_source(headers)?;
        let own = HttpProperties::read_own(headers)?;
        // Clients send `false` to take none of them.
        let takes_properties = match headers.get("x-ms-copy-source-blob-properties") {
            None => true,
            Some(_) => headers.flag("x-ms-copy-source-blob-properties")?,
        };
        let (metadata, tier) =
            (headers.metadata()?, AccessTier::read_for(headers, self.request.version, BlobType::Block)?);
        let tags = self.copy_tags()?;
        let preconditions = self.preconditions_to_create()?;
        let encryption = preconditions.encryption.clone();
        let bytes_max = put_blob_bytes_max(self.request.version);
        let mut content = self.source_content(None, bytes_max).await?;
        let theirs = if takes_properties { content.http.clone() } else { HttpProperties::default() };
        let new = NewBlob {
            http: own_or_theirs(own, theirs),
            metadata,
            tags: match tags {
                CopyTags::Replace(tags) => tags,
                CopyTags::Copy => content.tags.clone(),
            },
            tier,
            copy: None,
        };
        let expected_bytes = Some(content.length);
        let source = &mut *content.stream;
        let body = UploadBody { source, expected_bytes, bytes_max, expected, with_md5: false };
        let put = self.service().put_block_blob_from_url(self.place(), body, new, preconditions).await?;
        // One checksum is enough: that which the caller knows.
        let checksums = match expected.md5 {
            Some(_) => Checksums { md5: put.checksums.md5, crc64: None },
            None => Checksums { md5: None, crc64: put.checksums.crc64 },
        };
        Ok(BlobAnswer::empty(201).written(&put.stamp).checked(&checksums).encrypted_with(&encryption))
    }

    pub(crate) async fn put_block_from_url(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let id = BlockId::read(&self.session.head.query)?;
        let expected = ExpectedChecksums::read_source(headers)?;
        let asked = ByteRange::read_source(headers)?;
        let preconditions = self.preconditions_to_create()?;
        let encryption = preconditions.encryption.clone();
        let bytes_max = block_bytes_max(self.request.version);
        let mut content = self.source_content(asked, bytes_max).await?;
        let expected_bytes = Some(content.length);
        let source = &mut *content.stream;
        let body = UploadBody { source, expected_bytes, bytes_max, expected, with_md5: self.returns_md5() };
        let checksums = self.service().put_block(self.place(), &id, body, preconditions).await?;
        Ok(BlobAnswer::empty(201).checked(&checksums).encrypted_with(&encryption))
    }

    pub(crate) async fn append_block_from_url(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let expected = ExpectedChecksums::read_source(headers)?;
        let asked = ByteRange::read_source(headers)?;
        let conditions = AppendConditions::read(headers)?;
        let preconditions = self.preconditions()?;
        let encryption = preconditions.encryption.clone();
        let bytes_max = append_bytes_max(self.request.version);
        let mut content = self.source_content(asked, bytes_max).await?;
        let expected_bytes = Some(content.length);
        let source = &mut *content.stream;
        let body = UploadBody { source, expected_bytes, bytes_max, expected, with_md5: self.returns_md5() };
        let appended = self.service().append_block(self.place(), body, conditions, preconditions).await?;
        Ok(appended_answer(&appended, &encryption))
    }

    pub(crate) async fn put_pages_from_url(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let pages = read_pages(headers)?;
        let range = read_source_pages(headers, &pages)?;
        let length = pages.end - pages.start;
        if length > PAGE_WRITE_BYTES_MAX {
            return Err(body_too_large(PAGE_WRITE_BYTES_MAX));
        }
        let expected = ExpectedChecksums::read_source(headers)?;
        let conditions = SequenceConditions::read(headers)?;
        let preconditions = self.preconditions()?;
        let encryption = preconditions.encryption.clone();
        let asked = ByteRange { first: range.start, last: Some(range.end - 1) };
        let mut content = self.source_content(Some(asked), length).await?;
        if content.length != length {
            return Err(ErrorCode::InvalidRange.into());
        }
        let source = &mut *content.stream;
        let (expected_bytes, with_md5) = (Some(length), self.returns_md5());
        let body = UploadBody { source, expected_bytes, bytes_max: length, expected, with_md5 };
        let written = self.service().put_pages(self.place(), pages, body, conditions, preconditions).await?;
        Ok(pages_answer(&written).encrypted_with(&encryption))
    }

    /// Copy Blob, and Copy Blob From URL, which reads its source before it answers.
    pub async fn copy(&self, is_synchronous: bool) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let request = CopyRequest {
            metadata: self.sent_metadata()?,
            tags: self.copy_tags()?,
            tier: AccessTier::read_sent(headers, self.request.version)?,
            rehydrate_priority: RehydratePriority::read(headers, REHYDRATE_PRIORITY)?,
            seal: headers.flag("x-ms-seal-blob")?,
            is_synchronous,
            expected: ExpectedChecksums::read_source(headers)?,
            ..CopyRequest::default()
        };
        let preconditions = self.preconditions_to_create()?;
        if let Some(outside) = self.outside(None).await.map_err(as_copy)? {
            return self.copy_outside(outside, request, preconditions).await;
        }
        let source = self.source().await?;
        if is_synchronous {
            // What is wrong with the source is told as such, but the conditions on it are those of every copy.
            let from = CopyFrom { conditions: Conditions::default(), ..self.copy_from(&source)? };
            drop(self.open_source(from, None).await?);
        }
        let request = CopyRequest { source_url: source.url.clone(), ..request };
        let from = self.copy_from(&source)?;
        let copied = self.service().copy_blob(from, self.place(), request, preconditions).await?;
        Ok(copied_answer(&copied.stamp, &copied.checksums, copied.copy_id))
    }

    /// A copy of what another server has: a block blob, complete when the answer comes.
    async fn copy_outside(
        &self,
        mut outside: OutsideSource,
        request: CopyRequest,
        preconditions: Preconditions,
    ) -> Result<BlobAnswer, ServiceError> {
        let source = CopySource::read(&self.request.headers)?;
        let bytes_max = match request.is_synchronous {
            true => SYNC_COPY_BYTES_MAX,
            false => put_blob_bytes_max(self.request.version),
        };
        let total = outside.length;
        if total > bytes_max {
            return Err(body_too_large(bytes_max));
        }
        let id = self.service().new_copy_id();
        let copy = CopyState {
            id,
            source: copy_source::shown_url(&source),
            status: CopyStatus::Success,
            copied: total,
            total,
            completed: Some(self.session.front.now()),
            description: None,
        };
        let new = NewBlob {
            http: own_or_theirs(HttpProperties::default(), outside.http.clone()),
            metadata: request.metadata.unwrap_or_else(|| outside.metadata.clone()),
            tags: match request.tags {
                CopyTags::Replace(tags) => tags,
                CopyTags::Copy => Tags::default(),
            },
            tier: request.tier,
            copy: Some(copy),
        };
        let expected = request.expected;
        let (source, expected_bytes) = (&mut outside, Some(total));
        let body = UploadBody { source, expected_bytes, bytes_max, expected, with_md5: false };
        let put = self.service().put_block_blob(self.place(), body, new, preconditions).await?;
        let checksums = if request.is_synchronous { put.checksums } else { Checksums::default() };
        Ok(copied_answer(&put.stamp, &checksums, id))
    }

    pub async fn abort_copy(&self) -> Result<BlobAnswer, ServiceError> {
        let copy_id = read_copy_id(&self.session.head.query)?;
        let lease = self.preconditions()?.lease;
        self.service().abort_copy(self.place(), copy_id, lease).await?;
        Ok(BlobAnswer::empty(204))
    }

    /// Which tags the copy gets. Those of the request and those of the source exclude each other.
    fn copy_tags(&self) -> Result<CopyTags, ServiceError> {
        let headers = &self.request.headers;
        let sent = Tags::read_header(headers)?;
        match TagOption::read(headers, TAG_OPTION)? {
            Some(TagOption::Copy) if sent.is_some() => {
                Err(invalid_header(TAG_OPTION, TagOption::Copy.as_str()))
            }
            Some(TagOption::Copy) => Ok(CopyTags::Copy),
            _ => Ok(CopyTags::Replace(sent.unwrap_or_default())),
        }
    }
}

/// Unmet conditions on the source are answered differently by copies than by other operations with a source.
fn as_copy(error: ServiceError) -> ServiceError {
    match error.code {
        ErrorCode::CopySourceNotModified | ErrorCode::CopySourceFailed => {
            ErrorCode::SourceConditionNotMet.into()
        }
        _ => error,
    }
}

/// The properties that the request sets, and for the others those of the source.
fn own_or_theirs(own: HttpProperties, theirs: HttpProperties) -> HttpProperties {
    let usual = || Some(CONTENT_TYPE_USUAL.into());
    HttpProperties {
        content_type: own.content_type.or(theirs.content_type).or_else(usual),
        content_encoding: own.content_encoding.or(theirs.content_encoding),
        content_language: own.content_language.or(theirs.content_language),
        content_disposition: own.content_disposition.or(theirs.content_disposition),
        cache_control: own.cache_control.or(theirs.cache_control),
        content_md5: None,
    }
}

fn copied_answer(stamp: &Stamp, checksums: &Checksums, copy_id: Guid) -> BlobAnswer {
    BlobAnswer::empty(202)
        .written(stamp)
        .checked(checksums)
        .header("x-ms-copy-id", &copy_id.to_string())
        .header("x-ms-copy-status", CopyStatus::Success.as_str())
}
