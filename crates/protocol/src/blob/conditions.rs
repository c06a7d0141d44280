//! Conditions of a request: its headers as values, and the decision whether a resource meets them.
//!
//! Promises: [`Conditions::check`] is the whole truth table of the service, for reads, writes and the sources of copies.
//! Times are compared in whole seconds, as headers show them. Conditional dates that cannot be read are ignored.
//! Leaves to others: whether the resource exists, which comes first for everything that does not create it, and leases,
//! which come before conditions.

use crate::common::DateTime;
use crate::common::headers::invalid_header;
use crate::{ErrorCode, ServiceError};

use super::etag::BlobETag;
use super::header_list::Headers;
use super::operation::ContainerAction;
use super::tag_expression::TagExpression;
use super::tags::Tags;

/// More tags than any client lists.
const ETAG_COUNT_MAX: usize = 64;

/// The conditions of a request on a resource, or on the source of a copy.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Conditions {
    pub if_match: Option<ETags>,
    pub if_none_match: Option<ETags>,
    pub if_modified_since: Option<DateTime>,
    pub if_unmodified_since: Option<DateTime>,
    pub if_tags: Option<TagExpression>,
}

/// The value of a header with ETags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ETags {
    /// `*`
    Any,
    /// `None` is a tag that no resource has.
    Listed(Vec<Option<BlobETag>>),
}

/// What conditions look at.
#[derive(Clone, Copy, Debug)]
pub struct ConditionState<'a> {
    pub etag: BlobETag,
    pub last_modified: DateTime,
    pub tags: &'a Tags,
}

/// What the conditions are for, since unmet ones are answered differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConditionPurpose {
    /// GET and HEAD.
    Read,
    /// A write of something that is there.
    Change,
    /// A write that creates the blob, or replaces it.
    Create {
        /// Whether the blob is leased and the request has the id of its lease.
        has_lease: bool,
    },
    /// The source of Copy Blob.
    CopySource,
    /// The source of an operation whose name ends with From URL.
    UrlSource,
}

impl ETags {
    fn parse(name: &'static str, text: &str) -> Result<ETags, ServiceError> {
        if text == "*" {
            return Ok(ETags::Any);
        }
        let listed: Vec<_> =
            text.split(',').take(ETAG_COUNT_MAX + 1).map(|tag| BlobETag::parse(tag.trim())).collect();
        if listed.len() > ETAG_COUNT_MAX {
            return Err(invalid_header(name, text));
        }
        Ok(ETags::Listed(listed))
    }

    fn contains(&self, etag: BlobETag) -> bool {
        match self {
            ETags::Any => true,
            ETags::Listed(tags) => tags.contains(&Some(etag)),
        }
    }

    fn is_several(&self) -> bool {
        matches!(self, ETags::Listed(tags) if tags.len() > 1)
    }
}

impl Conditions {
    /// The conditions on the resource that the request names.
    pub fn read(headers: &Headers<'_>) -> Result<Conditions, ServiceError> {
        Conditions::read_named(
            headers,
            ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "x-ms-if-tags"],
        )
    }

    /// The conditions on the source of a copy.
    pub fn read_source(headers: &Headers<'_>) -> Result<Conditions, ServiceError> {
        Conditions::read_named(
            headers,
            [
                "x-ms-source-if-match",
                "x-ms-source-if-none-match",
                "x-ms-source-if-modified-since",
                "x-ms-source-if-unmodified-since",
                "x-ms-source-if-tags",
            ],
        )
    }

    /// The conditions on a container: dates, for those operations that take them.
    pub fn read_container(
        headers: &Headers<'_>,
        action: ContainerAction,
    ) -> Result<Conditions, ServiceError> {
        let sent = Conditions::read(headers)?;
        if sent.if_match.is_some() || sent.if_none_match.is_some() {
            return Err(ErrorCode::ConditionHeadersNotSupported.into());
        }
        let (takes_modified, takes_unmodified) = match action {
            ContainerAction::Delete | ContainerAction::Lease(_) | ContainerAction::SetAcl => (true, true),
            ContainerAction::SetMetadata => (true, false),
            _ => (false, false),
        };
        Ok(Conditions {
            if_modified_since: sent.if_modified_since.filter(|_| takes_modified),
            if_unmodified_since: sent.if_unmodified_since.filter(|_| takes_unmodified),
            ..Conditions::default()
        })
    }

    fn read_named(headers: &Headers<'_>, names: [&'static str; 5]) -> Result<Conditions, ServiceError> {
        let [if_match, if_none_match, modified, unmodified, tags] = names;
        let etags = |name| headers.get(name).map(|text| ETags::parse(name, text)).transpose();
        let date = |name| headers.get(name).and_then(DateTime::parse_http);
        Ok(Conditions {
            if_match: etags(if_match)?,
            if_none_match: etags(if_none_match)?,
            if_modified_since: date(modified),
            if_unmodified_since: date(unmodified),
            if_tags: headers.get(tags).map(|text| TagExpression::read_header(tags, text)).transpose()?,
        })
    }

    /// Only the condition on tags, for operations that take no other.
    pub fn tags_only(self) -> Conditions {
        Conditions { if_tags: self.if_tags, ..Conditions::default() }
    }

    /// Whether the request may go on. `state` is `None` if there is nothing there yet, which only matters to
    /// [`ConditionPurpose::Create`]. The code of a refusal gives its status: 304, 412, 409 or 400.
    pub fn check(
        &self,
        purpose: ConditionPurpose,
        state: Option<&ConditionState<'_>>,
    ) -> Result<(), ErrorCode> {
        match purpose {
            ConditionPurpose::Read if self.if_none_match == Some(ETags::Any) => {
                return Err(ErrorCode::UnsatisfiableCondition);
            }
            ConditionPurpose::Change | ConditionPurpose::Create { .. } if self.is_ambiguous() => {
                return Err(ErrorCode::MultipleConditionHeadersNotSupported);
            }
            _ => {}
        }
        let Some(state) = state else {
            // Nothing can match a blob that is not there, and everything else is true of it.
            return match self.if_match {
                Some(_) => Err(ErrorCode::ConditionNotMet),
                None => Ok(()),
            };
        };
        match purpose {
            ConditionPurpose::Read => {
                self.check_read(state, ErrorCode::ConditionNotMet, ErrorCode::ConditionNotModified)
            }
            ConditionPurpose::CopySource => {
                self.check_read(state, ErrorCode::SourceConditionNotMet, ErrorCode::SourceConditionNotMet)
            }
            ConditionPurpose::UrlSource => {
                self.check_read(state, ErrorCode::SourceConditionNotMet, ErrorCode::CopySourceNotModified)
            }
            ConditionPurpose::Change => self.check_write(state, |_| Ok(())),
            ConditionPurpose::Create { has_lease } => self.check_write(state, |_| match has_lease {
                true => Ok(()),
                false => Err(ErrorCode::BlobAlreadyExists),
            }),
        }
    }

    /// `If-Match && If-Unmodified-Since && (If-None-Match || If-Modified-Since)`, and the tags.
    fn check_read(
        &self,
        state: &ConditionState<'_>,
        failed: ErrorCode,
        not_modified: ErrorCode,
    ) -> Result<(), ErrorCode> {
        let matches = self.if_match.as_ref().is_none_or(|tags| tags.contains(state.etag));
        let is_unmodified = self.if_unmodified_since.is_none_or(|since| !is_after(state, since));
        if !matches || !is_unmodified {
            return Err(failed);
        }
        let differs = self.if_none_match.as_ref().map(|tags| !tags.contains(state.etag));
        let is_modified = self.if_modified_since.map(|since| is_after(state, since));
        let is_changed = match (differs, is_modified) {
            (None, None) => true,
            (differs, is_modified) => differs == Some(true) || is_modified == Some(true),
        };
        if !is_changed {
            return Err(not_modified);
        }
        if self.has_tags(state) { Ok(()) } else { Err(failed) }
    }

    /// `exists` answers to `If-None-Match: *`. With an ETag, the date beside it does not count.
    fn check_write(
        &self,
        state: &ConditionState<'_>,
        exists: impl FnOnce(&ConditionState<'_>) -> Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        let is_met = match (&self.if_match, &self.if_none_match) {
            (Some(tags), _) => tags.contains(state.etag),
            (None, Some(ETags::Any)) => {
                exists(state)?;
                true
            }
            (None, Some(tags)) => !tags.contains(state.etag),
            (None, None) => {
                self.if_modified_since.is_none_or(|since| is_after(state, since))
                    && self.if_unmodified_since.is_none_or(|since| !is_after(state, since))
            }
        };
        if is_met && self.has_tags(state) { Ok(()) } else { Err(ErrorCode::ConditionNotMet) }
    }

    fn has_tags(&self, state: &ConditionState<'_>) -> bool {
        self.if_tags.as_ref().is_none_or(|expression| expression.matches(state.tags, None))
    }

    /// Writes take one header, or one of two pairs, and one ETag.
    fn is_ambiguous(&self) -> bool {
        let is_several = |tags: &Option<ETags>| tags.as_ref().is_some_and(ETags::is_several);
        if is_several(&self.if_match) || is_several(&self.if_none_match) {
            return true;
        }
        let given = (
            self.if_match.is_some(),
            self.if_none_match.is_some(),
            self.if_modified_since.is_some(),
            self.if_unmodified_since.is_some(),
        );
        !matches!(
            given,
            (false, false, false, false)
                | (true, false, false, false | true)
                | (false, true, false | true, false)
                | (false, false, true, false)
                | (false, false, false, true)
        )
    }
}

/// Whether the resource was changed after this second.
fn is_after(state: &ConditionState<'_>, since: DateTime) -> bool {
    state.last_modified.whole_seconds() > since.whole_seconds()
}

/// The conditions of Append Block and Seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AppendConditions {
    pub position: Option<u64>,
    pub size_max: Option<u64>,
}

impl AppendConditions {
    pub fn read(headers: &Headers<'_>) -> Result<AppendConditions, ServiceError> {
        Ok(AppendConditions {
            position: headers.number("x-ms-blob-condition-appendpos")?,
            size_max: headers.number("x-ms-blob-condition-maxsize")?,
        })
    }

    /// Whether `added` bytes may be appended to a blob of this size.
    pub fn check(&self, size: u64, added: u64) -> Result<(), ErrorCode> {
        if self.size_max.is_some_and(|max| size.saturating_add(added) > max) {
            return Err(ErrorCode::MaxBlobSizeConditionNotMet);
        }
        if self.position.is_some_and(|position| position != size) {
            return Err(ErrorCode::AppendPositionConditionNotMet);
        }
        Ok(())
    }
}

/// The conditions of Put Page on the blob's sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SequenceConditions {
    pub at_most: Option<u64>,
    pub less_than: Option<u64>,
    pub equal: Option<u64>,
}

impl SequenceConditions {
    pub fn read(headers: &Headers<'_>) -> Result<SequenceConditions, ServiceError> {
        Ok(SequenceConditions {
            at_most: headers.number("x-ms-if-sequence-number-le")?,
            less_than: headers.number("x-ms-if-sequence-number-lt")?,
            equal: headers.number("x-ms-if-sequence-number-eq")?,
        })
    }

    pub fn check(&self, number: u64) -> Result<(), ErrorCode> {
        let is_met = self.at_most.is_none_or(|limit| number <= limit)
            && self.less_than.is_none_or(|limit| number < limit)
            && self.equal.is_none_or(|wanted| number == wanted);
        if is_met { Ok(()) } else { Err(ErrorCode::SequenceNumberConditionNotMet) }
    }
}

/// The conditions of Delete Blob on the time at which the tier changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TierConditions {
    pub if_modified_since: Option<DateTime>,
    pub if_unmodified_since: Option<DateTime>,
}

impl TierConditions {
    pub fn read(headers: &Headers<'_>) -> TierConditions {
        let date = |name| headers.get(name).and_then(DateTime::parse_http);
        TierConditions {
            if_modified_since: date("x-ms-access-tier-if-modified-since"),
            if_unmodified_since: date("x-ms-access-tier-if-unmodified-since"),
        }
    }

    /// `changed` is the time of the tier's last change, or that of the blob's creation.
    pub fn check(&self, changed: DateTime) -> Result<(), ErrorCode> {
        let changed = changed.whole_seconds();
        let is_met = self.if_modified_since.is_none_or(|since| changed > since.whole_seconds())
            && self.if_unmodified_since.is_none_or(|since| changed <= since.whole_seconds());
        if is_met { Ok(()) } else { Err(ErrorCode::ConditionNotMet) }
    }
}

#[cfg(test)]
mod tests;
