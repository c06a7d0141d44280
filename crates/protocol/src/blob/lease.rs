//! Leases of containers and blobs as a state machine: what each lease action does, and what a lease allows.
//!
//! Promises: nothing here asks for the time. A stored lease is looked at with [`Lease::at`], which lets time pass, so
//! nobody has to act when a lease ends. Lease ids are compared as GUIDs.
//! Leaves to others: making new ids, storing leases, and the ETag, which no lease action changes.

use crate::common::DateTime;
use crate::common::guid::Guid;
use crate::common::headers::{invalid_header, missing_header};
use crate::{ErrorCode, ServiceError};

use super::header_list::Headers;
use super::operation::LeaseAction;

const TICKS_PER_SECOND: u64 = 10_000_000;
const DURATION_SECONDS: std::ops::RangeInclusive<u64> = 15..=60;
const BREAK_SECONDS_MAX: u64 = 60;

const LEASE_ID: &str = "x-ms-lease-id";
const LEASE_DURATION: &str = "x-ms-lease-duration";
const PROPOSED_ID: &str = "x-ms-proposed-lease-id";
const BREAK_PERIOD: &str = "x-ms-lease-break-period";

/// The lease of one resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lease {
    #[default]
    Available,
    Leased {
        id: Guid,
        duration: LeaseDuration,
        /// `None` for an infinite lease.
        until: Option<DateTime>,
    },
    Breaking {
        id: Guid,
        until: DateTime,
    },
    Broken {
        id: Guid,
    },
    Expired {
        id: Guid,
        duration: LeaseDuration,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseDuration {
    Infinite,
    /// In seconds.
    Fixed(u8),
}

impl LeaseDuration {
    /// As headers and lists have it.
    pub fn as_str(self) -> &'static str {
        match self {
            LeaseDuration::Infinite => "infinite",
            LeaseDuration::Fixed(_) => "fixed",
        }
    }

    fn until(self, now: DateTime) -> Option<DateTime> {
        match self {
            LeaseDuration::Infinite => None,
            LeaseDuration::Fixed(seconds) => Some(after(now, u64::from(seconds))),
        }
    }
}

fn after(now: DateTime, seconds: u64) -> DateTime {
    DateTime::from_ticks(now.ticks() + seconds * TICKS_PER_SECOND)
}

/// What is leased. Refusals name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leasable {
    Blob,
    Container,
}

/// A lease action with what it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseRequest {
    Acquire {
        duration: LeaseDuration,
        proposed: Option<Guid>,
    },
    Renew {
        id: Guid,
    },
    Change {
        id: Guid,
        proposed: Guid,
    },
    Release {
        id: Guid,
    },
    Break {
        /// In seconds.
        period: Option<u8>,
    },
}

impl LeaseRequest {
    pub fn read(action: LeaseAction, headers: &Headers<'_>) -> Result<LeaseRequest, ServiceError> {
        let id = || read_guid(headers, LEASE_ID)?.ok_or_else(|| missing_header(LEASE_ID));
        Ok(match action {
            LeaseAction::Acquire => LeaseRequest::Acquire {
                duration: read_duration(headers)?,
                proposed: read_guid(headers, PROPOSED_ID)?,
            },
            LeaseAction::Renew => LeaseRequest::Renew { id: id()? },
            LeaseAction::Change => LeaseRequest::Change {
                id: id()?,
                proposed: read_guid(headers, PROPOSED_ID)?.ok_or_else(|| missing_header(PROPOSED_ID))?,
            },
            LeaseAction::Release => LeaseRequest::Release { id: id()? },
            LeaseAction::Break => LeaseRequest::Break { period: read_break_period(headers)? },
        })
    }
}

/// The lease id with which a request uses a resource.
pub fn read_lease_id(headers: &Headers<'_>) -> Result<Option<Guid>, ServiceError> {
    read_guid(headers, LEASE_ID)
}

fn read_guid(headers: &Headers<'_>, name: &'static str) -> Result<Option<Guid>, ServiceError> {
    let Some(sent) = headers.get(name) else { return Ok(None) };
    Guid::parse(sent).map(Some).ok_or_else(|| invalid_header(name, sent))
}

fn read_duration(headers: &Headers<'_>) -> Result<LeaseDuration, ServiceError> {
    let sent = headers.get(LEASE_DURATION).ok_or_else(|| missing_header(LEASE_DURATION))?;
    if sent == "-1" {
        return Ok(LeaseDuration::Infinite);
    }
    let seconds = headers.number(LEASE_DURATION)?.filter(|seconds| DURATION_SECONDS.contains(seconds));
    let seconds = seconds.and_then(|seconds| u8::try_from(seconds).ok());
    seconds.map(LeaseDuration::Fixed).ok_or_else(|| invalid_header(LEASE_DURATION, sent))
}

fn read_break_period(headers: &Headers<'_>) -> Result<Option<u8>, ServiceError> {
    let Some(seconds) = headers.number(BREAK_PERIOD)? else { return Ok(None) };
    let period = u8::try_from(seconds).ok().filter(|_| seconds <= BREAK_SECONDS_MAX);
    period.map(Some).ok_or_else(|| invalid_header(BREAK_PERIOD, &seconds.to_string()))
}

/// What a lease action leaves behind, and what its answer says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseOutcome {
    pub lease: Lease,
    /// `x-ms-lease-id`.
    pub id: Option<Guid>,
    /// `x-ms-lease-time`, in seconds: how long the lease still breaks.
    pub break_seconds: Option<u64>,
    pub status: u16,
}

impl Lease {
    /// The lease as it is at this time.
    pub fn at(self, now: DateTime) -> Lease {
        match self {
            Lease::Leased { id, duration, until: Some(until) } if until <= now => {
                Lease::Expired { id, duration }
            }
            Lease::Breaking { id, until } if until <= now => Lease::Broken { id },
            other => other,
        }
    }

    /// `x-ms-lease-state`.
    pub fn state(self) -> &'static str {
        match self {
            Lease::Available => "available",
            Lease::Leased { .. } => "leased",
            Lease::Breaking { .. } => "breaking",
            Lease::Broken { .. } => "broken",
            Lease::Expired { .. } => "expired",
        }
    }

    /// `x-ms-lease-status`.
    pub fn status(self) -> &'static str {
        if self.is_locked() { "locked" } else { "unlocked" }
    }

    /// `x-ms-lease-duration`, which only a lease that is held has.
    pub fn duration(self) -> Option<&'static str> {
        match self {
            Lease::Leased { duration, .. } => Some(duration.as_str()),
            _ => None,
        }
    }

    pub fn is_locked(self) -> bool {
        matches!(self, Lease::Leased { .. } | Lease::Breaking { .. })
    }

    fn id(self) -> Option<Guid> {
        match self {
            Lease::Available => None,
            Lease::Leased { id, .. }
            | Lease::Breaking { id, .. }
            | Lease::Broken { id }
            | Lease::Expired { id, .. } => Some(id),
        }
    }

    /// Carries out an action. `new_id` is the id of a lease for which none is proposed.
    pub fn act(
        self,
        request: LeaseRequest,
        leasable: Leasable,
        now: DateTime,
        new_id: Guid,
    ) -> Result<LeaseOutcome, ServiceError> {
        let lease = self.at(now);
        let outcome = match request {
            LeaseRequest::Acquire { duration, proposed } => lease.acquire(duration, proposed, now, new_id),
            LeaseRequest::Renew { id } => lease.renew(id, now),
            LeaseRequest::Change { id, proposed } => lease.change(id, proposed),
            LeaseRequest::Release { id } => lease.release(id),
            LeaseRequest::Break { period } => lease.break_off(period, now),
        };
        outcome.map_err(|code| refusal(code, leasable))
    }

    fn acquire(
        self,
        duration: LeaseDuration,
        proposed: Option<Guid>,
        now: DateTime,
        new_id: Guid,
    ) -> Result<LeaseOutcome, ErrorCode> {
        match self {
            Lease::Leased { id, .. } if proposed != Some(id) => return Err(ErrorCode::LeaseAlreadyPresent),
            Lease::Breaking { id, .. } if proposed == Some(id) => {
                return Err(ErrorCode::LeaseIsBreakingAndCannotBeAcquired);
            }
            Lease::Breaking { .. } => return Err(ErrorCode::LeaseAlreadyPresent),
            _ => {}
        }
        let id = proposed.unwrap_or(new_id);
        let lease = Lease::Leased { id, duration, until: duration.until(now) };
        Ok(LeaseOutcome { lease, id: Some(id), break_seconds: None, status: 201 })
    }

    fn renew(self, wanted: Guid, now: DateTime) -> Result<LeaseOutcome, ErrorCode> {
        if self.id() != Some(wanted) {
            return Err(ErrorCode::LeaseIdMismatchWithLeaseOperation);
        }
        match self {
            Lease::Leased { duration, .. } | Lease::Expired { duration, .. } => {
                let lease = Lease::Leased { id: wanted, duration, until: duration.until(now) };
                Ok(LeaseOutcome { lease, id: Some(wanted), break_seconds: None, status: 200 })
            }
            _ => Err(ErrorCode::LeaseIsBrokenAndCannotBeRenewed),
        }
    }

    fn change(self, wanted: Guid, proposed: Guid) -> Result<LeaseOutcome, ErrorCode> {
        match self {
            // A change that already happened may be repeated.
            Lease::Leased { id, duration, until } if id == wanted || id == proposed => {
                let lease = Lease::Leased { id: proposed, duration, until };
                Ok(LeaseOutcome { lease, id: Some(proposed), break_seconds: None, status: 200 })
            }
            Lease::Leased { .. } => Err(ErrorCode::LeaseIdMismatchWithLeaseOperation),
            Lease::Breaking { id, .. } if id == wanted || id == proposed => {
                Err(ErrorCode::LeaseIsBreakingAndCannotBeChanged)
            }
            Lease::Breaking { .. } => Err(ErrorCode::LeaseIdMismatchWithLeaseOperation),
            _ => Err(ErrorCode::LeaseNotPresentWithLeaseOperation),
        }
    }

    fn release(self, wanted: Guid) -> Result<LeaseOutcome, ErrorCode> {
        if self.id() != Some(wanted) {
            return Err(ErrorCode::LeaseIdMismatchWithLeaseOperation);
        }
        Ok(LeaseOutcome { lease: Lease::Available, id: None, break_seconds: None, status: 200 })
    }

    fn break_off(self, period: Option<u8>, now: DateTime) -> Result<LeaseOutcome, ErrorCode> {
        let ends = |until: Option<DateTime>| {
            let asked = period.map(|seconds| after(now, u64::from(seconds)));
            match (asked, until) {
                (Some(asked), Some(until)) => asked.min(until),
                (Some(end), None) | (None, Some(end)) => end,
                // An infinite lease breaks at once, unless a time is asked for.
                (None, None) => now,
            }
        };
        let (id, end) = match self {
            Lease::Available => return Err(ErrorCode::LeaseNotPresentWithLeaseOperation),
            Lease::Leased { id, until, .. } => (id, ends(until)),
            Lease::Breaking { id, until } => (id, ends(Some(until))),
            Lease::Broken { id } | Lease::Expired { id, .. } => (id, now),
        };
        let seconds = end.ticks().saturating_sub(now.ticks()).div_ceil(TICKS_PER_SECOND);
        let lease = Lease::Breaking { id, until: end }.at(now);
        Ok(LeaseOutcome { lease, id: None, break_seconds: Some(seconds), status: 202 })
    }

    /// Whether an operation with this lease id may use the resource, and the lease that it leaves behind. `self` is
    /// from [`Lease::at`]. A container's lease guards only its deletion, which is the only [`LeaseUse::Write`] of one.
    pub fn check_use(
        self,
        lease_use: LeaseUse,
        id: Option<Guid>,
        leasable: Leasable,
    ) -> Result<Lease, ServiceError> {
        let code = match (self, id) {
            (Lease::Available, None) => return Ok(self),
            (Lease::Available, Some(_)) => match leasable {
                Leasable::Blob => ErrorCode::LeaseNotPresentWithBlobOperation,
                Leasable::Container => ErrorCode::LeaseNotPresentWithContainerOperation,
            },
            (Lease::Leased { .. } | Lease::Breaking { .. }, None) if lease_use == LeaseUse::Read => {
                return Ok(self);
            }
            (Lease::Leased { .. } | Lease::Breaking { .. }, None) => ErrorCode::LeaseIdMissing,
            (Lease::Leased { id, .. } | Lease::Breaking { id, .. }, Some(sent)) if id == sent => {
                return Ok(self);
            }
            (Lease::Leased { .. } | Lease::Breaking { .. }, Some(_)) => match leasable {
                Leasable::Blob => ErrorCode::LeaseIdMismatchWithBlobOperation,
                Leasable::Container => ErrorCode::LeaseIdMismatchWithContainerOperation,
            },
            (Lease::Broken { .. } | Lease::Expired { .. }, None) => {
                // After a write, the old holder cannot renew: the content is no longer what it knew.
                return Ok(if lease_use == LeaseUse::Write { Lease::Available } else { self });
            }
            (Lease::Broken { .. } | Lease::Expired { .. }, Some(_)) => ErrorCode::LeaseLost,
        };
        Err(refusal(code, leasable))
    }

    /// Whether the destination of a copy may be written with this lease: only with an infinite one.
    pub fn check_copy_destination(self) -> Result<(), ErrorCode> {
        match self {
            Lease::Leased { duration: LeaseDuration::Fixed(_), .. } => {
                Err(ErrorCode::InfiniteLeaseDurationRequired)
            }
            _ => Ok(()),
        }
    }
}

/// How an operation uses a leased resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseUse {
    /// Needs no id. A wrong one is refused all the same.
    Read,
    /// Needs the id of the lease.
    Write,
}

/// A lease id for a blob that does not exist, in an operation that could create it.
pub fn no_lease_to_use() -> ServiceError {
    ErrorCode::LeaseNotPresentWithBlobOperation.into()
}

/// The usual messages are about blobs.
fn refusal(code: ErrorCode, leasable: Leasable) -> ServiceError {
    let about_blobs = code.message();
    match leasable {
        Leasable::Container if about_blobs.contains("the blob") => {
            ServiceError::with_detail(code, about_blobs.replace("the blob", "the container"))
        }
        _ => code.into(),
    }
}

#[cfg(test)]
mod tests;
