//! An account's static website: the container `$web`, for everybody, at a host of its own.
//!
//! Promises: visitors read, and see nothing but what is in `$web` while the website is switched on. Neither parameters nor
//! headers of the protocol reach the service from here, because a visitor has no business with leases, snapshots or tags.
//! Leaves to others: finding the host (`front/address.rs`), where the settings are kept (`catalogue`).

use protocol::ErrorCode;
use protocol::blob::operation::{BlobAction, BlobOperation};
use protocol::blob::{BlobName, ContainerName, Headers, KIND, WEB_CONTAINER};
use protocol::common::service_properties::StaticWebsite;

use super::answer::BlobAnswer;
use super::request::BlobRequest;
use super::{BlobCall, BlobHttp, REQUEST_ROW_COUNT};
use crate::front::head::RequestHead;
use crate::front::refusal::Refusal;
use crate::front::service::{Service, Session};
use crate::front::throttle::Partition;
use crate::http::body::AnswerBody;

/// What a browser says about the copy that it has, and about the part that it wants.
const VISITOR_HEADERS: [&str; 5] =
    ["range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];

/// The headers of a visit that mean something here.
pub(crate) fn visitor_headers<'a>(head: &RequestHead<'a>) -> Headers<'a> {
    let sent = |name: &'static str| head.header(name).filter(|value| value.is_ascii());
    VISITOR_HEADERS.into_iter().filter_map(|name| Some((name, sent(name)?))).collect()
}

impl BlobHttp {
    /// Answers a visit. `path` is decoded.
    pub(crate) async fn visit(
        &self,
        session: &Session<'_>,
        request: &BlobRequest<'_>,
        path: &str,
        action: BlobAction,
    ) -> Result<BlobAnswer, Refusal> {
        session.spend(
            Partition { service: KIND.label, container: WEB_CONTAINER, key: path },
            REQUEST_ROW_COUNT,
        )?;
        let properties = self.catalogue().properties(session.account).await?;
        let website = properties.extension.map(|extension| extension.static_website).unwrap_or_default();
        if !website.is_enabled {
            return Ok(missing(session, action));
        }
        for name in names_for(path, &website) {
            if let Some(answer) = self.visit_blob(session, request, &name, action).await? {
                return Ok(answer);
            }
        }
        // A page that says that there is none is always sent whole.
        let plain = BlobRequest { headers: Headers::default(), ..request.clone() };
        let found = match &website.error_document_404_path {
            Some(name) => self.visit_blob(session, &plain, name, action).await?,
            None => None,
        };
        session.notes.error(ErrorCode::BlobNotFound);
        Ok(found.map_or_else(|| missing(session, action), |page| page.with_status(404)))
    }

    /// The answer with this blob; `None` if there is none of this name.
    async fn visit_blob(
        &self,
        session: &Session<'_>,
        request: &BlobRequest<'_>,
        name: &str,
        action: BlobAction,
    ) -> Result<Option<BlobAnswer>, Refusal> {
        let Ok(blob) = BlobName::parse(name) else { return Ok(None) };
        let container = ContainerName::parse(WEB_CONTAINER)?;
        let BlobOperation::Blob { revision, .. } = request.operation else { return Ok(None) };
        let call = BlobCall { http: self, session, request, container, blob, revision };
        let answer = match action {
            BlobAction::Get => call.get().await,
            _ => call.get_properties().await,
        };
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(refusal)
                if matches!(
                    refusal.error.code,
                    ErrorCode::BlobNotFound | ErrorCode::ContainerNotFound | ErrorCode::ContainerBeingDeleted
                ) =>
            {
                Ok(None)
            }
            Err(refusal) => Err(refusal),
        }
    }
}

/// The blobs that a path may mean. The first one that exists is meant.
fn names_for(path: &str, website: &StaticWebsite) -> Vec<String> {
    let is_folder = path.is_empty() || path.ends_with('/');
    match (&website.index_document, &website.default_index_document_path) {
        (Some(index), _) if is_folder => vec![format!("{path}{index}")],
        (Some(index), _) => vec![path.to_owned(), format!("{path}/{index}")],
        (None, Some(default)) if is_folder => vec![default.clone()],
        (None, None) if is_folder => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

/// What is shown where there is nothing, and no page of the account's own to say so.
fn missing(session: &Session<'_>, action: BlobAction) -> BlobAnswer {
    session.notes.error(ErrorCode::BlobNotFound);
    let answer = BlobAnswer::empty(404).header("content-type", "text/html; charset=utf-8");
    if action != BlobAction::Get {
        return answer;
    }
    let page = format!(
        "<!DOCTYPE html><html><head><title>WebContentNotFound</title></head><body>\
         <h1>The requested content does not exist.</h1><p><ul><li>HttpStatusCode: 404</li>\
         <li>ErrorCode: WebContentNotFound</li><li>RequestId : {}</li><li>TimeStamp : {}</li></ul></p>\
         </body></html>",
        session.head.request_id.as_str(),
        session.front.now().to_padded(),
    );
    answer.with_body(AnswerBody::whole(page.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_a_blob_or_the_index_of_a_folder() {
        let check = |index: Option<&str>, default: Option<&str>, path: &str, names: &[&str]| {
            let website = StaticWebsite {
                is_enabled: true,
                index_document: index.map(str::to_owned),
                default_index_document_path: default.map(str::to_owned),
                error_document_404_path: None,
            };
            assert_eq!(names_for(path, &website), names, "{path}");
        };
        let index = Some("index.html");
        check(index, None, "", &["index.html"]);
        check(index, None, "a/", &["a/index.html"]);
        check(index, None, "a/b", &["a/b", "a/b/index.html"]);
        check(None, Some("app/start.html"), "", &["app/start.html"]);
        check(None, Some("app/start.html"), "a/", &["app/start.html"]);
        check(None, Some("app/start.html"), "a/b", &["a/b"]);
        check(None, None, "", &[]);
        check(None, None, "a", &["a"]);
    }
}
