//! Writes whose content comes from another blob: copies, and the operations whose names end with From URL.

use blobs::{BlobPlace, CopyFrom, CopyRequest, CopyTags, NewBlob, OpenBlob, UploadBody};
use protocol::blob::Tags;
use protocol::blob::checksum::{Checksums, ExpectedChecksums};
use protocol::blob::conditions::{AppendConditions, Conditions, SequenceConditions};
use protocol::blob::copy::{CopyStatus, read_copy_id};
use protocol::blob::encryption::Encryption;
use protocol::blob::identifier::BlockId;
use protocol::blob::limits::{
    PAGE_WRITE_BYTES_MAX, append_bytes_max, block_bytes_max, body_too_large, put_blob_bytes_max,
};
use protocol::blob::properties::{
    AccessTier, BlobType, CONTENT_TYPE_USUAL, HttpProperties, REHYDRATE_PRIORITY, RehydratePriority,
    TAG_OPTION, TagOption,
};
use protocol::blob::range::{ByteRange, read_pages, read_source_pages};
use protocol::common::headers::invalid_header;
use protocol::{ErrorCode, ServiceError};

use super::BlobCall;
use super::answer::BlobAnswer;
use super::copy_source::{self, FoundSource, refused};
use super::writes::{appended_answer, pages_answer};

impl BlobCall<'_> {
    async fn source(&self) -> Result<FoundSource, ServiceError> {
        copy_source::find(self.http, self.session, &self.request.headers).await
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
        source: &FoundSource,
        range: Option<ByteRange>,
    ) -> Result<OpenBlob, ServiceError> {
        let from = self.copy_from(source)?;
        self.service().open_source(&from, range).await.map_err(|error| match error.code {
            ErrorCode::SourceConditionNotMet | ErrorCode::CopySourceNotModified => error,
            code if code.status() >= 500 => error,
            _ => refused(&error),
        })
    }

    pub async fn put_from_url(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let expected = ExpectedChecksums::read_source(headers)?;
        let own = HttpProperties::read_own(headers)?;
        // Clients send `false` to take none of them.
        let takes_properties = match headers.get("x-ms-copy-source-blob-properties") {
            None => true,
            Some(_) => headers.flag("x-ms-copy-source-blob-properties")?,
        };
        let (metadata, tier) = (headers.metadata()?, AccessTier::read_for(headers, BlobType::Block)?);
        let tags = self.copy_tags()?;
        let preconditions = self.preconditions_to_create()?;
        let encryption = preconditions.encryption.clone();
        let source = self.source().await?;
        let open = self.open_source(&source, None).await?;
        let committed = open.view().committed.as_ref();
        let theirs = committed.filter(|_| takes_properties).map(|committed| committed.http.clone());
        let theirs = theirs.unwrap_or_default();
        let new = NewBlob {
            http: HttpProperties {
                content_type: own
                    .content_type
                    .or(theirs.content_type)
                    .or_else(|| Some(CONTENT_TYPE_USUAL.into())),
                content_encoding: own.content_encoding.or(theirs.content_encoding),
                content_language: own.content_language.or(theirs.content_language),
                content_disposition: own.content_disposition.or(theirs.content_disposition),
                cache_control: own.cache_control.or(theirs.cache_control),
                content_md5: None,
            },
            metadata,
            tags: match tags {
                CopyTags::Replace(tags) => tags,
                CopyTags::Copy => committed.map(|committed| committed.tags.clone()).unwrap_or_default(),
            },
            tier,
            copy: None,
        };
        let size = open.size();
        let bytes_max = put_blob_bytes_max(self.request.version);
        if size > bytes_max {
            return Err(body_too_large(bytes_max));
        }
        let mut stream = open.stream(0..size);
        let body = UploadBody { source: &mut stream, expected_bytes: Some(size), bytes_max, expected };
        let put = self.service().put_block_blob(self.place(), body, new, preconditions).await?;
        // One checksum is enough: that which the caller knows.
        let checksums = match expected.md5 {
            Some(_) => Checksums { md5: put.checksums.md5, crc64: None },
            None => Checksums { md5: None, crc64: put.checksums.crc64 },
        };
        Ok(BlobAnswer::empty(201).written(&put.stamp).checked(&checksums).encrypted_with(&encryption))
    }

    pub async fn put_block_from_url(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let id = BlockId::read(&self.session.head.query)?;
        let expected = ExpectedChecksums::read_source(headers)?;
        let asked = ByteRange::read_source(headers)?;
        let preconditions = self.preconditions_to_create()?;
        let encryption = preconditions.encryption.clone();
        let source = self.source().await?;
        let open = self.open_source(&source, asked).await?;
        let size = open.size();
        let range = asked.map_or(Ok(0..size), |asked| asked.within(size))?;
        let bytes_max = block_bytes_max(self.request.version);
        let length = range.end - range.start;
        if length > bytes_max {
            return Err(body_too_large(bytes_max));
        }
        let mut stream = open.stream(range);
        let body = UploadBody { source: &mut stream, expected_bytes: Some(length), bytes_max, expected };
        let checksums = self.service().put_block(self.place(), &id, body, preconditions).await?;
        Ok(BlobAnswer::empty(201).checked(&checksums).encrypted_with(&encryption))
    }

    pub async fn append_block_from_url(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let expected = ExpectedChecksums::read_source(headers)?;
        let asked = ByteRange::read_source(headers)?;
        let conditions = AppendConditions::read(headers)?;
        let preconditions = self.preconditions()?;
        let encryption = preconditions.encryption.clone();
        let source = self.source().await?;
        let open = self.open_source(&source, asked).await?;
        let size = open.size();
        let range = asked.map_or(Ok(0..size), |asked| asked.within(size))?;
        let bytes_max = append_bytes_max(self.request.version);
        let length = range.end - range.start;
        if length > bytes_max {
            return Err(body_too_large(bytes_max));
        }
        let mut stream = open.stream(range);
        let body = UploadBody { source: &mut stream, expected_bytes: Some(length), bytes_max, expected };
        let appended = self.service().append_block(self.place(), body, conditions, preconditions).await?;
        Ok(appended_answer(&appended, &encryption))
    }

    pub async fn put_pages_from_url(&self) -> Result<BlobAnswer, ServiceError> {
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
        let source = self.source().await?;
        let asked = ByteRange { first: range.start, last: Some(range.end - 1) };
        let open = self.open_source(&source, Some(asked)).await?;
        if range.end > open.size() {
            return Err(ErrorCode::InvalidRange.into());
        }
        let mut stream = open.stream(range);
        let body =
            UploadBody { source: &mut stream, expected_bytes: Some(length), bytes_max: length, expected };
        let written = self.service().put_pages(self.place(), pages, body, conditions, preconditions).await?;
        Ok(pages_answer(&written).encrypted_with(&encryption))
    }

    /// Copy Blob, and Copy Blob From URL, which reads its source before it answers.
    pub async fn copy(&self, is_synchronous: bool) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let request = CopyRequest {
            metadata: self.sent_metadata()?,
            tags: self.copy_tags()?,
            tier: AccessTier::read(headers, "x-ms-access-tier")?,
            rehydrate_priority: RehydratePriority::read(headers, REHYDRATE_PRIORITY)?,
            seal: headers.flag("x-ms-seal-blob")?,
            is_synchronous,
            expected: ExpectedChecksums::read_source(headers)?,
            ..CopyRequest::default()
        };
        let preconditions = self.preconditions_to_create()?;
        let source = self.source().await?;
        if is_synchronous {
            // What is wrong with the source is told as such.
            drop(self.open_source(&source, None).await?);
        }
        let request = CopyRequest { source_url: source.url.clone(), ..request };
        let from = self.copy_from(&source)?;
        let copied = self.service().copy_blob(from, self.place(), request, preconditions).await?;
        Ok(BlobAnswer::empty(202)
            .written(&copied.stamp)
            .checked(&copied.checksums)
            .header("x-ms-copy-id", &copied.copy_id.to_string())
            .header("x-ms-copy-status", CopyStatus::Success.as_str()))
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
