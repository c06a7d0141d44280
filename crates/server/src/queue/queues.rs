//! Operations on queues: turns headers, parameters and payloads into values, makes one call into the service, and turns
//! the result into an answer.

use ::queues::{Created, ListQuery, QueueService};
use http::StatusCode;
use protocol::common::Metadata;
use protocol::common::acl::write_acl;
use protocol::common::metadata::HEADER_PREFIX;
use protocol::common::xml_write::without_mark;
use protocol::queue::operation::QueueAction;
use protocol::queue::parameters::ListParameters;
use protocol::queue::queue_list::QueueListWriter;
use protocol::queue::{QueueName, read_acl};
use protocol::{ErrorCode, ServiceError};

use super::answer::QueueAnswer;
use crate::front::service::Session;
use crate::http::body::AnswerBody;
use crate::http::parts::RequestParts;

pub async fn run(
    service: &QueueService,
    session: &Session<'_>,
    queue: &str,
    action: QueueAction,
    payload: &[u8],
) -> Result<QueueAnswer, ServiceError> {
    let (account, headers) = (session.account, session.head.parts);
    let queue = QueueName::parse(queue)?;
    match action {
        QueueAction::Create => match service.create_queue(account, &queue, &read_metadata(headers)?).await? {
            Created::New => Ok(QueueAnswer::empty(StatusCode::CREATED)),
            Created::Existed => Ok(QueueAnswer::empty(StatusCode::NO_CONTENT)),
        },
        QueueAction::Delete => {
            service.delete_queue(account, &queue).await?;
            Ok(QueueAnswer::empty(StatusCode::NO_CONTENT))
        }
        QueueAction::GetMetadata => Ok(QueueAnswer::properties(service.properties(account, &queue).await?)),
        QueueAction::SetMetadata => {
            service.set_metadata(account, &queue, &read_metadata(headers)?).await?;
            Ok(QueueAnswer::empty(StatusCode::NO_CONTENT))
        }
        QueueAction::GetAcl => {
            let policies = service.policies(account, &queue).await?;
            Ok(QueueAnswer::read(AnswerBody::whole(without_mark(write_acl(&policies)))))
        }
        QueueAction::SetAcl => {
            service.set_policies(account, &queue, &read_acl(payload)?).await?;
            Ok(QueueAnswer::empty(StatusCode::NO_CONTENT))
        }
    }
}

/// The metadata in a request's headers. A header without a name after the prefix's dash is none of them.
fn read_metadata(parts: &RequestParts) -> Result<Metadata, ServiceError> {
    let headers = parts.headers();
    Metadata::read(headers.filter_map(|(name, value)| Some((name.strip_prefix(HEADER_PREFIX)?, value))))
}

pub async fn list(service: &QueueService, session: &Session<'_>) -> Result<QueueAnswer, ServiceError> {
    let parameters = ListParameters::read(&session.head.query, session.account)?;
    let query = ListQuery {
        prefix: parameters.prefix.as_deref().unwrap_or_default(),
        marker: parameters.first_name(),
        queue_count_max: parameters.page_count(),
        has_metadata: parameters.include_metadata,
        share: session.share(),
    };
    let page = service.list_queues(session.account, &query).await?;
    let version = session.head.version;
    let mut reservation = session.reserve_answer();
    let base = session.base.to_string();
    let mut writer = QueueListWriter::begin(&base, session.account, &parameters, version, page.queues.len());
    let mut written_count = 0;
    for queue in &page.queues {
        if !writer.push(&queue.name, &queue.metadata, |bytes| reservation.grow(bytes)) {
            break;
        }
        written_count += 1;
    }
    // When memory is short, pages get shorter. One that ends before its first queue would lead the caller to the same
    // place again and again.
    let next = match page.queues.get(written_count) {
        Some(_) if written_count == 0 => return Err(ErrorCode::ServerBusy.into()),
        Some(queue) => Some(&*queue.name),
        None => page.next.as_deref(),
    };
    let mut body = AnswerBody::whole(writer.finish(next));
    body.hold(reservation);
    Ok(QueueAnswer::read(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_the_headers_with_a_name_after_the_prefix() {
        let read = |headers: &[(&str, &str)]| {
            let parts = RequestParts::compose("PUT", "/", headers.iter().copied()).unwrap();
            let metadata = read_metadata(&parts).map_err(|error| error.code)?;
            let items = metadata.items().map(|(name, value)| format!("{name}={value}"));
            Ok::<_, ErrorCode>(items.collect::<Vec<_>>().join(","))
        };
        // The Python client sends a header without a name beside the real ones.
        let stray = ("x-ms-meta", "{'val': 'value'}");
        assert_eq!(read(&[stray, ("x-ms-meta-val", "value"), ("x-ms-date", "d")]).unwrap(), "val=value");
        assert_eq!(read(&[]).unwrap(), "");
        assert_eq!(read(&[("x-ms-meta-", "v")]), Err(ErrorCode::EmptyMetadataKey));
        assert_eq!(read(&[("x-ms-meta-a-b", "v")]), Err(ErrorCode::InvalidMetadata));
        assert_eq!(read(&[("x-ms-meta-a", "v"), ("x-ms-meta-a", "w")]), Err(ErrorCode::InvalidMetadata));
        assert_eq!(read(&[("x-ms-meta-a", "\u{e4}")]), Err(ErrorCode::InvalidMetadata));
    }
}
