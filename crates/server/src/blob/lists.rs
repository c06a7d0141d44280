//! List Blobs and Find Blobs by Tags.
//!
//! Promises: answers are written in reserved memory. When memory is short, pages get shorter, and the marker leads to what
//! was left out.

use blobs::{BlobEntry, BlobService};
use protocol::blob::ContainerName;
use protocol::blob::blob_list::{BlobListWriter, FoundBlobsWriter};
use protocol::blob::list_parameters::{FindBlobsParameters, FindMarker, ListBlobsParameters};
use protocol::{ErrorCode, ServiceError};

use super::answer::BlobAnswer;
use crate::front::service::Session;
use crate::http::body::AnswerBody;

pub async fn list(
    service: &BlobService,
    session: &Session<'_>,
    container: &ContainerName,
) -> Result<BlobAnswer, ServiceError> {
    let parameters = ListBlobsParameters::read(&session.head.query)?;
    let page = service.list_blobs(session.account, container, &parameters, session.share()).await?;
    session.notes.read(page.entries.len() as u64, page.entries.len() as u64);
    let (version, count) = (session.head.version, page.entries.len());
    let mut reservation = session.reserve_answer();
    let mut writer =
        BlobListWriter::begin(&session.base.to_string(), container.as_str(), &parameters, version, count);
    let mut written_count = 0;
    for entry in &page.entries {
        let admit = |bytes| reservation.grow(bytes);
        let is_written = match entry {
            BlobEntry::Blob(blob) => writer.push(&blob.listed(), admit),
            BlobEntry::Prefix(prefix) => writer.push_prefix(prefix, admit),
        };
        if !is_written {
            break;
        }
        written_count += 1;
    }
    let next = match page.entries.get(written_count) {
        // A page that ends before its first entry would lead the caller to the same place again and again.
        Some(_) if written_count == 0 => return Err(ErrorCode::ServerBusy.into()),
        Some(entry) => Some(entry.marker()),
        None => page.next,
    };
    let mut body = AnswerBody::whole(writer.finish(next.as_ref()));
    body.hold(reservation);
    Ok(BlobAnswer::read(body))
}

/// In one container, or in all of the account.
pub async fn find(
    service: &BlobService,
    session: &Session<'_>,
    container: Option<&ContainerName>,
) -> Result<BlobAnswer, ServiceError> {
    let parameters = FindBlobsParameters::read(&session.head.query)?;
    let page = service.find_blobs(session.account, container, &parameters, session.share()).await?;
    session.notes.read(page.blobs.len() as u64, page.blobs.len() as u64);
    let mut reservation = session.reserve_answer();
    let mut writer = FoundBlobsWriter::begin(&session.base.to_string(), &parameters);
    let mut written_count = 0;
    for found in &page.blobs {
        if !writer.push(&found.container, &found.name, &found.tags, |bytes| reservation.grow(bytes)) {
            break;
        }
        written_count += 1;
    }
    let next = match page.blobs.get(written_count) {
        Some(_) if written_count == 0 => return Err(ErrorCode::ServerBusy.into()),
        Some(found) => Some(FindMarker { container: found.container.clone(), blob: found.name.clone() }),
        None => page.next,
    };
    let mut body = AnswerBody::whole(writer.finish(next.as_ref()));
    body.hold(reservation);
    Ok(BlobAnswer::read(body))
}
