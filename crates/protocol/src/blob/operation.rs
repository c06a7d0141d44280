//! `BlobOperation`: one REST call, read from the method, the path, and the parameters and headers that change its
//! meaning.
//!
//! Names of containers and blobs are not checked yet, because a caller without permission is refused first. Leaves to
//! others: every other parameter and header, and payloads.

use std::borrow::Cow;

use crate::common::headers::{invalid_header, missing_header};
use crate::common::percent::percent_decode;
use crate::common::query::{Query, invalid_parameter, text};
use crate::service::ServiceOperation;
use crate::{ErrorCode, ServiceError};

use super::header_list::Headers;
use super::identifier::Revision;
use super::name::{ROOT_CONTAINER, WEB_CONTAINER};
use super::properties::BlobType;

#[derive(Clone, PartialEq, Debug)]
pub enum BlobOperation<'a> {
    /// Service properties and statistics.
    Service(ServiceOperation),
    Account(AccountAction),
    Container {
        container: Cow<'a, str>,
        action: ContainerAction,
    },
    Blob {
        container: Cow<'a, str>,
        blob: Cow<'a, str>,
        /// Which state of the blob it is about. Only operations that can be about another one have another one.
        revision: Revision,
        action: BlobAction,
    },
}

/// Something to do with the account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccountAction {
    ListContainers,
    FindBlobs,
    Batch,
    GetUserDelegationKey,
    /// Also on the paths of containers and blobs.
    GetAccountInformation,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContainerAction {
    Create,
    GetProperties,
    Delete,
    GetMetadata,
    SetMetadata,
    GetAcl,
    SetAcl,
    Lease(LeaseAction),
    ListBlobs,
    FindBlobs,
    Batch,
    Restore,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlobAction {
    Put(BlobType),
    PutFromUrl,
    Copy,
    CopyFromUrl,
    AbortCopy,
    Get,
    GetProperties,
    SetProperties,
    GetMetadata,
    SetMetadata,
    Delete(DeleteType),
    Undelete,
    Lease(LeaseAction),
    Snapshot,
    SetTier,
    GetTags,
    SetTags,
    PutBlock,
    PutBlockFromUrl,
    PutBlockList,
    GetBlockList,
    AppendBlock,
    AppendBlockFromUrl,
    Seal,
    PutPages,
    PutPagesFromUrl,
    ClearPages,
    GetPageRanges,
}

/// `x-ms-lease-action`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseAction {
    Acquire,
    Renew,
    Change,
    Release,
    Break,
}

/// `deletetype`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteType {
    Usual,
    /// For good, although soft delete is on.
    Permanent,
}

const LEASE_ACTION: &str = "x-ms-lease-action";
const COPY_SOURCE: &str = "x-ms-copy-source";
const BLOB_TYPE: &str = "x-ms-blob-type";
const PAGE_WRITE: &str = "x-ms-page-write";
const COPY_ACTION: &str = "x-ms-copy-action";

impl<'a> BlobOperation<'a> {
    /// `path` is the path within the account, without its leading slash. The query's names are in lower case.
    pub fn read(
        method: &str,
        path: &'a str,
        query: &Query<'_>,
        headers: &Headers<'_>,
    ) -> Result<BlobOperation<'a>, ServiceError> {
        if !matches!(method, "GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "MERGE" | "PATCH" | "OPTIONS") {
            return Err(ErrorCode::InvalidHttpVerb.into());
        }
        let comp = text(query, "comp")?.unwrap_or_default().to_ascii_lowercase();
        let restype = text(query, "restype")?.unwrap_or_default();
        let request = Request { method, comp: &comp, query, headers };
        if restype.eq_ignore_ascii_case("account") {
            return request.account_information();
        }
        let (container, blob) = match path.split_once('/') {
            Some((container, blob)) => (container, Some(blob)),
            None => (path, None),
        };
        let is_root = path.is_empty();
        if is_root && (restype.is_empty() || restype.eq_ignore_ascii_case("service")) {
            return request.root(!restype.is_empty());
        }
        // The JavaScript SDK takes an account in the path for a container, so it sends the batch of an account like this.
        if is_root && restype.eq_ignore_ascii_case("container") && (method, &*comp) == ("POST", "batch") {
            return Ok(BlobOperation::Account(AccountAction::Batch));
        }
        if !is_root && restype.eq_ignore_ascii_case("container") && blob.unwrap_or_default().is_empty() {
            let container = segment(container)?;
            return Ok(BlobOperation::Container { container, action: request.container_action()? });
        }
        if !restype.is_empty() {
            return Err(invalid_parameter("restype", &restype, ""));
        }
        let (container, blob) = match blob {
            Some(blob) => (segment(container)?, segment(blob)?),
            // A path of one segment is that of a blob without a container.
            None => (Cow::Borrowed(ROOT_CONTAINER), segment(container)?),
        };
        let action = request.blob_action()?;
        let revision = Revision::read(query)?;
        if !revision.is_base() && !action.takes_revision() {
            return Err(ErrorCode::InvalidOperation.into());
        }
        Ok(BlobOperation::Blob { container, blob, revision, action })
    }

    /// A visit to the account's website: the path is that of a blob, and parameters are the page's own business.
    pub fn read_visit(method: &str, path: &'a str) -> Result<BlobOperation<'a>, ServiceError> {
        let action = match method {
            "GET" => BlobAction::Get,
            "HEAD" => BlobAction::GetProperties,
            _ => return Err(ErrorCode::UnsupportedHttpVerb.into()),
        };
        let blob = percent_decode(path).ok_or(ErrorCode::InvalidUri)?;
        Ok(BlobOperation::Blob { container: WEB_CONTAINER.into(), blob, revision: Revision::Base, action })
    }

    /// Whether it changes something, and so is refused by the secondary. A batch is one, whatever is in it.
    pub fn is_write(&self) -> bool {
        match self {
            BlobOperation::Service(operation) => *operation == ServiceOperation::SetProperties,
            BlobOperation::Account(action) => *action == AccountAction::Batch,
            BlobOperation::Container { action, .. } => !matches!(
                action,
                ContainerAction::GetProperties
                    | ContainerAction::GetMetadata
                    | ContainerAction::GetAcl
                    | ContainerAction::ListBlobs
                    | ContainerAction::FindBlobs
            ),
            BlobOperation::Blob { action, .. } => !action.is_read(),
        }
    }
}

impl BlobAction {
    pub fn is_read(self) -> bool {
        matches!(
            self,
            BlobAction::Get
                | BlobAction::GetProperties
                | BlobAction::GetMetadata
                | BlobAction::GetTags
                | BlobAction::GetBlockList
                | BlobAction::GetPageRanges
        )
    }

    /// Whether it may be about a snapshot or a version.
    fn takes_revision(self) -> bool {
        // Set Tags is for versions too.
        self.is_read() || matches!(self, BlobAction::Delete(_) | BlobAction::SetTier | BlobAction::SetTags)
    }
}

impl LeaseAction {
    fn read(headers: &Headers<'_>) -> Result<LeaseAction, ServiceError> {
        let sent = headers.get(LEASE_ACTION).ok_or_else(|| missing_header(LEASE_ACTION))?;
        let actions = [
            ("acquire", LeaseAction::Acquire),
            ("renew", LeaseAction::Renew),
            ("change", LeaseAction::Change),
            ("release", LeaseAction::Release),
            ("break", LeaseAction::Break),
        ];
        let found = actions.into_iter().find(|(name, _)| sent.eq_ignore_ascii_case(name));
        found.map(|(_, action)| action).ok_or_else(|| invalid_header(LEASE_ACTION, sent))
    }
}

/// What tells operations on one resource apart.
struct Request<'r> {
    method: &'r str,
    /// In lower case; empty if there is none.
    comp: &'r str,
    query: &'r Query<'r>,
    headers: &'r Headers<'r>,
}

impl Request<'_> {
    fn account_information<'a>(&self) -> Result<BlobOperation<'a>, ServiceError> {
        match (self.comp, self.method) {
            ("properties", "GET" | "HEAD") => {
                Ok(BlobOperation::Account(AccountAction::GetAccountInformation))
            }
            ("properties", _) => Err(ErrorCode::UnsupportedHttpVerb.into()),
            _ => Err(self.unknown_comp()),
        }
    }

    fn root<'a>(&self, is_service: bool) -> Result<BlobOperation<'a>, ServiceError> {
        let action = match (is_service, self.comp) {
            (true, "userdelegationkey") => self.only("POST", AccountAction::GetUserDelegationKey),
            (true, comp) => return ServiceOperation::read(self.method, comp).map(BlobOperation::Service),
            (false, "list") => self.only("GET", AccountAction::ListContainers),
            (false, "blobs") => self.only("GET", AccountAction::FindBlobs),
            (false, "batch") => self.only("POST", AccountAction::Batch),
            (false, "") => Err(ErrorCode::InvalidUri.into()),
            (false, _) => Err(self.unknown_comp()),
        };
        action.map(BlobOperation::Account)
    }

    fn container_action(&self) -> Result<ContainerAction, ServiceError> {
        match (self.comp, self.method) {
            ("", "PUT") => Ok(ContainerAction::Create),
            ("", "GET" | "HEAD") => Ok(ContainerAction::GetProperties),
            ("", "DELETE") => Ok(ContainerAction::Delete),
            ("metadata", "GET" | "HEAD") => Ok(ContainerAction::GetMetadata),
            ("metadata", "PUT") => Ok(ContainerAction::SetMetadata),
            ("acl", "GET" | "HEAD") => Ok(ContainerAction::GetAcl),
            ("acl", "PUT") => Ok(ContainerAction::SetAcl),
            ("lease", "PUT") => LeaseAction::read(self.headers).map(ContainerAction::Lease),
            ("list", "GET") => Ok(ContainerAction::ListBlobs),
            ("blobs", "GET") => Ok(ContainerAction::FindBlobs),
            ("batch", "POST") => Ok(ContainerAction::Batch),
            ("undelete", "PUT") => Ok(ContainerAction::Restore),
            ("" | "metadata" | "acl" | "lease" | "list" | "blobs" | "batch" | "undelete", _) => {
                Err(ErrorCode::UnsupportedHttpVerb.into())
            }
            _ => Err(self.unknown_comp()),
        }
    }

    fn blob_action(&self) -> Result<BlobAction, ServiceError> {
        match (self.comp, self.method) {
            ("", "PUT") => self.put_action(),
            ("", "GET") => Ok(BlobAction::Get),
            ("", "HEAD") => Ok(BlobAction::GetProperties),
            ("", "DELETE") => self.delete_type().map(BlobAction::Delete),
            ("properties", "PUT") => Ok(BlobAction::SetProperties),
            ("metadata", "GET" | "HEAD") => Ok(BlobAction::GetMetadata),
            ("metadata", "PUT") => Ok(BlobAction::SetMetadata),
            ("lease", "PUT") => LeaseAction::read(self.headers).map(BlobAction::Lease),
            ("snapshot", "PUT") => Ok(BlobAction::Snapshot),
            ("copy", "PUT") => match self.headers.get(COPY_ACTION) {
                Some(action) if action.eq_ignore_ascii_case("abort") => Ok(BlobAction::AbortCopy),
                Some(other) => Err(invalid_header(COPY_ACTION, other)),
                None => Err(missing_header(COPY_ACTION)),
            },
            ("tier", "PUT") => Ok(BlobAction::SetTier),
            ("tags", "GET") => Ok(BlobAction::GetTags),
            ("tags", "PUT") => Ok(BlobAction::SetTags),
            ("undelete", "PUT") => Ok(BlobAction::Undelete),
            ("block", "PUT") => Ok(self.or_from_url(BlobAction::PutBlock, BlobAction::PutBlockFromUrl)),
            ("blocklist", "PUT") => Ok(BlobAction::PutBlockList),
            ("blocklist", "GET") => Ok(BlobAction::GetBlockList),
            ("appendblock", "PUT") => {
                Ok(self.or_from_url(BlobAction::AppendBlock, BlobAction::AppendBlockFromUrl))
            }
            ("seal", "PUT") => Ok(BlobAction::Seal),
            ("page", "PUT") => self.page_action(),
            ("pagelist", "GET") => Ok(BlobAction::GetPageRanges),
            (
                "" | "properties" | "metadata" | "lease" | "snapshot" | "copy" | "tier" | "tags" | "undelete"
                | "block" | "blocklist" | "appendblock" | "seal" | "page" | "pagelist",
                _,
            ) => Err(ErrorCode::UnsupportedHttpVerb.into()),
            _ => Err(self.unknown_comp()),
        }
    }

    /// The four operations that write a whole blob.
    fn put_action(&self) -> Result<BlobAction, ServiceError> {
        let blob_type = match self.headers.get(BLOB_TYPE) {
            Some(sent) => Some(BlobType::parse(sent).ok_or_else(|| invalid_header(BLOB_TYPE, sent))?),
            None => None,
        };
        if !self.headers.has(COPY_SOURCE) {
            return blob_type.map(BlobAction::Put).ok_or_else(|| missing_header(BLOB_TYPE));
        }
        if blob_type == Some(BlobType::Block) {
            return Ok(BlobAction::PutFromUrl);
        }
        let is_sync = self.headers.flag("x-ms-requires-sync")?;
        Ok(if is_sync { BlobAction::CopyFromUrl } else { BlobAction::Copy })
    }

    fn page_action(&self) -> Result<BlobAction, ServiceError> {
        match self.headers.get(PAGE_WRITE) {
            Some(write) if write.eq_ignore_ascii_case("update") => {
                Ok(self.or_from_url(BlobAction::PutPages, BlobAction::PutPagesFromUrl))
            }
            Some(write) if write.eq_ignore_ascii_case("clear") => Ok(BlobAction::ClearPages),
            Some(other) => Err(invalid_header(PAGE_WRITE, other)),
            None => Err(missing_header(PAGE_WRITE)),
        }
    }

    fn delete_type(&self) -> Result<DeleteType, ServiceError> {
        match text(self.query, "deletetype")? {
            None => Ok(DeleteType::Usual),
            Some(sent) if sent.eq_ignore_ascii_case("permanent") => Ok(DeleteType::Permanent),
            Some(sent) => Err(invalid_parameter("deletetype", &sent, "")),
        }
    }

    fn or_from_url(&self, plain: BlobAction, from_url: BlobAction) -> BlobAction {
        if self.headers.has(COPY_SOURCE) { from_url } else { plain }
    }

    fn only<T>(&self, method: &str, action: T) -> Result<T, ServiceError> {
        if self.method == method { Ok(action) } else { Err(ErrorCode::UnsupportedHttpVerb.into()) }
    }

    fn unknown_comp(&self) -> ServiceError {
        let sent = text(self.query, "comp").ok().flatten().unwrap_or_default();
        invalid_parameter("comp", &sent, "")
    }
}

/// A name in a path. `%2F` in a blob's name is the same as a slash.
fn segment(raw: &str) -> Result<Cow<'_, str>, ServiceError> {
    let decoded = percent_decode(raw).filter(|segment| !segment.is_empty());
    decoded.ok_or_else(|| ErrorCode::InvalidUri.into())
}

#[cfg(test)]
mod tests;
