//! Writes of content: whole blobs, blocks and their lists, appended blocks, pages.

use blobs::{NewBlob, PagesWritten};
use protocol::ServiceError;
use protocol::blob::Tags;
use protocol::blob::block_list::{BODY_BYTES_MAX, read_block_list};
use protocol::blob::checksum::{Checksums, ContentDigest, ExpectedChecksums, md5_to_header};
use protocol::blob::conditions::{AppendConditions, SequenceConditions};
use protocol::blob::encryption::Encryption;
use protocol::blob::identifier::BlockId;
use protocol::blob::limits::{
    PAGE_WRITE_BYTES_MAX, append_bytes_max, block_bytes_max, body_too_large, put_blob_bytes_max,
};
use protocol::blob::properties::{
    AccessTier, BlobType, HttpProperties, read_put_bytes, read_sequence_number,
};
use protocol::blob::range::read_pages;
use protocol::blob::versions;
use protocol::common::headers::invalid_header;

use super::BlobCall;
use super::answer::BlobAnswer;
use super::upload::{PayloadUpload, collect};
use crate::http::body::Payload;

const CONTENT_LENGTH: &str = "Content-Length";

impl BlobCall<'_> {
    pub async fn put(&self, blob_type: BlobType, payload: &mut Payload) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        headers.check_supported()?;
        let page_blob_bytes = read_put_bytes(headers, blob_type)?;
        let new = NewBlob {
            http: HttpProperties::read_put(headers)?,
            metadata: headers.metadata()?,
            tags: Tags::read_header(headers)?.unwrap_or_default(),
            tier: AccessTier::read_for(headers, self.request.version, blob_type)?,
            copy: None,
        };
        let preconditions = self.preconditions_to_create()?;
        let encryption = preconditions.encryption.clone();
        let (service, place) = (self.service(), self.place());
        let stamp = match blob_type {
            BlobType::Block => {
                let expected = ExpectedChecksums::read_put(headers)?;
                let mut upload = PayloadUpload::new(payload);
                let body = upload.body(put_blob_bytes_max(self.request.version), expected, false)?;
                let put = service.put_block_blob(place, body, new, preconditions).await?;
                self.session.notes.payload(upload.received_bytes);
                let answer = BlobAnswer::empty(201).written(&put.stamp).checked(&put.checksums);
                return Ok(answer.encrypted_with(&encryption));
            }
            BlobType::Append => {
                self.check_no_body()?;
                service.put_append_blob(place, new, preconditions).await?
            }
            BlobType::Page => {
                self.check_no_body()?;
                let (size, number) =
                    (page_blob_bytes.unwrap_or_default(), read_sequence_number(headers)?.unwrap_or_default());
                service.put_page_blob(place, size, number, new, preconditions).await?
            }
        };
        Ok(BlobAnswer::empty(201).written(&stamp).encrypted_with(&encryption))
    }

    pub async fn put_block(&self, payload: &mut Payload) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        headers.check_supported()?;
        let id = BlockId::read(&self.session.head.query)?;
        self.check_body()?;
        let preconditions = self.preconditions_to_create()?;
        let encryption = preconditions.encryption.clone();
        let mut upload = PayloadUpload::new(payload);
        let expected = ExpectedChecksums::read(headers)?;
        let body = upload.body(block_bytes_max(self.request.version), expected, self.returns_md5())?;
        let checksums = self.service().put_block(self.place(), &id, body, preconditions).await?;
        self.session.notes.payload(upload.received_bytes);
        Ok(BlobAnswer::empty(201).checked(&checksums).encrypted_with(&encryption))
    }

    pub async fn put_block_list(&self, payload: &mut Payload) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let expected = ExpectedChecksums::read(headers)?;
        let new = NewBlob {
            http: HttpProperties::read_block_list(headers)?,
            metadata: headers.metadata()?,
            tags: Tags::read_header(headers)?.unwrap_or_default(),
            tier: AccessTier::read_for(headers, self.request.version, BlobType::Block)?,
            copy: None,
        };
        let preconditions = self.preconditions_to_create()?;
        let encryption = preconditions.encryption.clone();
        let (checksums, blocks) = {
            let (document, _reserved) = collect(self.session, payload, BODY_BYTES_MAX).await?;
            let _turn = self.session.turn_to_parse(document.len()).await;
            let checksums = ContentDigest::of(&document, expected.has_md5() || self.returns_md5(), true);
            expected.check(&checksums)?;
            (checksums, read_block_list(&document)?)
        };
        let stamp = self.service().put_block_list(self.place(), blocks, new, preconditions).await?;
        let answer = BlobAnswer::empty(201).written(&stamp).checked(&checksums);
        Ok(answer.encrypted_with(&encryption))
    }

    pub async fn append_block(&self, payload: &mut Payload) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        headers.check_supported()?;
        self.check_body()?;
        let conditions = AppendConditions::read(headers)?;
        let preconditions = self.preconditions()?;
        let encryption = preconditions.encryption.clone();
        let mut upload = PayloadUpload::new(payload);
        let expected = ExpectedChecksums::read(headers)?;
        let body = upload.body(append_bytes_max(self.request.version), expected, self.returns_md5())?;
        let appended = self.service().append_block(self.place(), body, conditions, preconditions).await?;
        self.session.notes.payload(upload.received_bytes);
        Ok(appended_answer(&appended, &encryption))
    }

    pub async fn seal(&self) -> Result<BlobAnswer, ServiceError> {
        let conditions = AppendConditions::read(&self.request.headers)?;
        let stamp = self.service().seal(self.place(), conditions, self.preconditions()?).await?;
        Ok(BlobAnswer::empty(200).written(&stamp).header("x-ms-blob-sealed", "true"))
    }

    pub async fn put_pages(&self, payload: &mut Payload) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        headers.check_supported()?;
        let range = read_pages(headers)?;
        let range_bytes = range.end - range.start;
        if range_bytes > PAGE_WRITE_BYTES_MAX {
            return Err(body_too_large(PAGE_WRITE_BYTES_MAX));
        }
        if let Some(announced) = self.request.announced
            && announced != range_bytes
        {
            return Err(invalid_header(CONTENT_LENGTH, &announced.to_string()));
        }
        let conditions = SequenceConditions::read(headers)?;
        let preconditions = self.preconditions()?;
        let encryption = preconditions.encryption.clone();
        let mut upload = PayloadUpload::new(payload);
        let body = upload.body(range_bytes, ExpectedChecksums::read(headers)?, self.returns_md5())?;
        let written = self.service().put_pages(self.place(), range, body, conditions, preconditions).await?;
        self.session.notes.payload(upload.received_bytes);
        Ok(pages_answer(&written).encrypted_with(&encryption))
    }

    pub async fn clear_pages(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let range = read_pages(headers)?;
        self.check_no_body()?;
        let conditions = SequenceConditions::read(headers)?;
        let preconditions = self.preconditions()?;
        let cleared = self.service().clear_pages(self.place(), range, conditions, preconditions).await?;
        // Nothing was sent that could have a checksum.
        Ok(pages_answer(&PagesWritten { checksums: Checksums::default(), ..cleared }))
    }

    /// Whether the answer tells the MD5 of what was written also to callers that have sent none.
    pub(crate) fn returns_md5(&self) -> bool {
        self.request.version < versions::MD5_IF_SENT
    }

    /// Refuses a body where only headers say what to do.
    fn check_no_body(&self) -> Result<(), ServiceError> {
        match self.request.announced {
            None | Some(0) => Ok(()),
            Some(announced) => Err(invalid_header(CONTENT_LENGTH, &announced.to_string())),
        }
    }

    /// Refuses an empty body where there must be something to write.
    fn check_body(&self) -> Result<(), ServiceError> {
        match self.request.announced {
            Some(0) => Err(invalid_header(CONTENT_LENGTH, "0")),
            _ => Ok(()),
        }
    }
}

pub(crate) fn appended_answer(appended: &blobs::Appended, encryption: &Encryption) -> BlobAnswer {
    BlobAnswer::empty(201)
        .written(&appended.stamp)
        .checked(&appended.checksums)
        .header("x-ms-blob-append-offset", &appended.offset.to_string())
        .header("x-ms-blob-committed-block-count", &appended.append_count.to_string())
        .encrypted_with(encryption)
}

pub(crate) fn pages_answer(written: &PagesWritten) -> BlobAnswer {
    BlobAnswer::empty(201)
        .written(&written.stamp)
        .checked(&written.checksums)
        .header("x-ms-blob-sequence-number", &written.sequence_number.to_string())
}

impl BlobAnswer {
    /// The checksums of what was written, as far as they were computed.
    pub fn checked(self, checksums: &Checksums) -> BlobAnswer {
        self.header_if("content-md5", checksums.md5.as_ref().map(md5_to_header))
            .header_if("x-ms-content-crc64", checksums.crc64.map(|crc| crc.to_header()))
    }
}
