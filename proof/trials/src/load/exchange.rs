//! Sends requests to the server, and keeps the ledger as the answers come.
//!
//! Promises: a write is open from before it is sent until its answer is understood. A connection that breaks is a
//! broken promise, unless the server is being stopped. Leaves to others: generating the requests (`requests.rs`).

use std::sync::atomic::Ordering;

use testkit::{RawClient, Request, Response, batch_parts};

use super::{Common, Entry, Writer};
use crate::ledger::{Attempt, Change, Outcome, Version, version_of};

/// Why a writer stopped.
pub(super) enum Stop {
    Cut,
    Broken(String),
}

impl Writer {
    /// Sends a write and keeps the ledger: the write is open until the answer, and known after it.
    pub(super) fn write(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        request: &Request,
        changes: Vec<Change>,
    ) -> Result<(), Stop> {
        let attempt = Attempt { changes, floor: common.tally.latest(), version: None };
        self.open = Some(attempt.clone());
        if let Some(history) = &mut self.history {
            let sent_at = (common.position)();
            let (settled_at, outcome) = (u64::MAX, Outcome::NotApplied);
            history.push(Entry { sent_at, settled_at, outcome, attempt: attempt.clone() });
        }
        let response = self.exchange(common, client, request)?;
        let conditional_on_hot =
            matches!(attempt.changes.first(), Some(Change::Hot { .. })) && response.status == 412;
        let outcome = if conditional_on_hot { Outcome::NotApplied } else { Outcome::Applied };
        let mut attempt = attempt;
        if outcome == Outcome::Applied {
            let versions = acknowledged(&response, attempt.changes.len()).map_err(broken)?;
            attempt.version = versions.first().copied();
            if versions.iter().any(|version| Some(*version) != attempt.version) {
                return Err(broken(format!("a batch with several versions: {versions:?}")));
            }
            if let Some(version) = attempt.version {
                common.tally.note(version, attempt.floor).map_err(broken)?;
            }
            self.known.apply(&attempt);
            common.tally.acknowledged.fetch_add(1, Ordering::Relaxed);
        } else {
            common.tally.refused.fetch_add(1, Ordering::Relaxed);
        }
        self.open = None;
        if let Some(last) = self.history.as_mut().and_then(|history| history.last_mut()) {
            *last = Entry { sent_at: last.sent_at, settled_at: (common.position)(), outcome, attempt };
        }
        Ok(())
    }

    /// Sends a request. A server that is being stopped may answer with an error; then the outcome is unknown.
    pub(super) fn exchange(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        request: &Request,
    ) -> Result<Response, Stop> {
        match client.exchange(&common.server.bytes_of(request)) {
            Ok(response) if response.status >= 500 && common.stopping.load(Ordering::SeqCst) => {
                Err(Stop::Cut)
            }
            Ok(response) => Ok(response),
            Err(error) => Err(cut(common, &error)),
        }
    }
}

/// The versions in the answer to a write. An error if it was not accepted.
fn acknowledged(response: &Response, change_count: usize) -> Result<Vec<Version>, String> {
    let version = |response: &Response| match response.header("ETag") {
        Some(etag) => version_of(etag).ok_or_else(|| format!("no version in the ETag {etag}")).map(Some),
        None => Ok(None),
    };
    match response.status {
        201 | 204 => Ok(version(response)?.into_iter().collect()),
        202 => {
            let parts = batch_parts(response);
            if parts.len() != change_count || !parts.iter().all(|part| [201, 204].contains(&part.status)) {
                return Err(format!(
                    "{change_count} operations that must succeed are answered with {response:?}"
                ));
            }
            Ok(parts.iter().map(version).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        _ => Err(format!("a write that must succeed is answered with {response:?}")),
    }
}

pub(super) fn broken(what: String) -> Stop {
    Stop::Broken(what)
}

/// The reason for a broken connection: the server is being stopped, or else a promise is broken.
pub(super) fn cut(common: &Common<'_>, error: &std::io::Error) -> Stop {
    if common.stopping.load(Ordering::SeqCst) {
        Stop::Cut
    } else {
        Stop::Broken(format!("the connection broke although the server was not being stopped: {error}"))
    }
}
