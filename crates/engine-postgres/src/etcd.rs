//! Until when Patroni's key in etcd proves that a server leads.
//!
//! Patroni keeps the leader's name under a key that expires unless its agent renews it, and promotes nobody else as long
//! as the key is there. A quorum read of the key that was *sent* at t saw it with at least `ttl - 1` seconds to live,
//! because etcd's version 2 interface rounds `ttl` up. So nobody else leads before t + ttl - 1 s, by etcd's clocks.
//!
//! Promises: [`EtcdKey::lead`] claims no more than that, less [`CLOCK_MARGIN`] for clocks that differ. The server is told
//! by what it says itself, its system identifier and its timeline, and by no address. Answers are bounded in time and
//! size. Leaves to others: what else must be true before a server's rows may be given out (`leadership.rs`).
//!
//! The version 3 interface is not used: it renews leases and tells their remaining time without a quorum, so a member of
//! etcd that was replaced may promise more time than there is (docs/decisions/0016-postgres.md).

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::env::{Clock, ticks};
use serde_json::Value;

use crate::ConnectError;
use crate::http_get;

/// Of one member of etcd. Another one is asked after that.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(500);
/// The history of timelines is in it too.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// How much the clocks of etcd's members, and the speed of ours, may differ from each other.
const CLOCK_MARGIN: Duration = Duration::from_secs(1);
/// A proof counts for no longer, so that clocks of different speed do not drift apart by more than the margin.
const PROOF_TIME_MAX: Duration = Duration::from_secs(30);
/// `ttl` is rounded up to whole seconds.
const ROUNDING: Duration = Duration::from_secs(1);

/// What a server's data has in common with what its agent writes into etcd. The system identifier tells clusters apart.
/// Each promotion begins a new timeline, so the timeline tells the leader from those that led before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lineage {
    pub(crate) system_identifier: String,
    pub(crate) timeline: u64,
}

/// What one answer has proven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProvenLead {
    pub(crate) lineage: Lineage,
    /// Another one each time that somebody takes the lead.
    pub(crate) term: u64,
    /// On the front end's monotonic clock.
    pub(crate) until: Duration,
    /// The same moment on its other clock, which goes on while the machine is suspended.
    pub(crate) until_ticks: u64,
}

/// Why an answer proves nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoProof {
    NoAnswer,
    NoKeys,
    NobodyLeads,
    Promoting,
    TooShort,
}

impl fmt::Display for NoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoProof::NoAnswer => "etcd does not answer",
            NoProof::NoKeys => "etcd has no keys of Patroni there (version 2 of its interface)",
            NoProof::NobodyLeads => "nobody holds the leader's key",
            NoProof::Promoting => "the holder of the leader's key is not promoted yet",
            NoProof::TooShort => "the leader's key is about to expire",
        })
    }
}

/// Where the keys of a cluster are.
pub(crate) struct EtcdKey {
    /// `host:port`
    members: Vec<String>,
    /// `/namespace/scope`
    path: String,
    /// The member that answered last.
    last: AtomicUsize,
}

impl EtcdKey {
    /// `None` without addresses.
    pub(crate) fn new(addresses: &[String]) -> Result<Option<EtcdKey>, ConnectError> {
        let mut members = Vec::new();
        let mut paths = Vec::new();
        for address in addresses {
            match http_get::address_and_path(address) {
                Some((member, path)) if !path.is_empty() => {
                    members.push(member.to_owned());
                    paths.push(path.to_owned());
                }
                // Not the address itself: it may hold a password.
                _ => {
                    let what = "an address of etcd is not of the form http://host:port/namespace/scope";
                    return Err(ConnectError::Invalid(what.to_owned()));
                }
            }
        }
        paths.dedup();
        match paths.len() {
            0 => Ok(None),
            1 => Ok(Some(EtcdKey { members, path: paths.remove(0), last: AtomicUsize::new(0) })),
            _ => {
                let what = "the addresses of etcd have different paths: they are members of one etcd";
                Err(ConnectError::Invalid(what.to_owned()))
            }
        }
    }

    /// Who leads, and until when that is certain.
    pub(crate) async fn lead(&self, clock: &dyn Clock) -> Result<ProvenLead, NoProof> {
        // One answer with everything, so all of it is from one moment.
        let question = format!("/v2/keys{}?recursive=true&quorum=true", self.path);
        let (count, first) = (self.members.len(), self.last.load(Ordering::Relaxed));
        for turn in 0..count {
            let place = (first + turn) % count;
            let (sent, sent_ticks) = (clock.monotonic(), clock.now_ticks());
            let answer = http_get::get(&self.members[place], &question, ANSWER_BYTES_MAX);
            let answer = tokio::time::timeout(ANSWER_TIME_MAX, answer).await.ok().flatten();
            let held = match answer {
                Some((200, body)) => read_keys(&self.path, &body)?,
                Some((404, _)) => return Err(NoProof::NoKeys),
                _ => continue,
            };
            self.last.store(place, Ordering::Relaxed);
            let remaining =
                held.ttl.saturating_sub(ROUNDING).min(PROOF_TIME_MAX).saturating_sub(CLOCK_MARGIN);
            if remaining.is_zero() {
                return Err(NoProof::TooShort);
            }
            return Ok(ProvenLead {
                lineage: held.lineage,
                term: held.term,
                until: sent + remaining,
                until_ticks: sent_ticks.saturating_add(ticks(remaining)),
            });
        }
        Err(NoProof::NoAnswer)
    }
}

/// The leader's key as etcd tells it.
#[derive(PartialEq, Eq, Debug)]
struct HeldKey {
    lineage: Lineage,
    term: u64,
    ttl: Duration,
}

fn read_keys(path: &str, body: &str) -> Result<HeldKey, NoProof> {
    let answer: Value = serde_json::from_str(body).map_err(|_| NoProof::NoKeys)?;
    let child = |parent: &Value, name: &str| -> Option<Value> {
        let key = format!("{}/{name}", parent["key"].as_str()?);
        parent["nodes"].as_array()?.iter().find(|node| node["key"] == key.as_str()).cloned()
    };
    let scope = &answer["node"];
    if scope["key"] != path {
        return Err(NoProof::NoKeys);
    }
    let system_identifier = child(scope, "initialize").ok_or(NoProof::NoKeys)?;
    let system_identifier = system_identifier["value"].as_str().ok_or(NoProof::NoKeys)?.to_owned();
    let key = child(scope, "leader").ok_or(NoProof::NobodyLeads)?;
    let name = key["value"].as_str().ok_or(NoProof::NobodyLeads)?;
    // A key without a time to live proves nothing: nobody has to renew it. One that expired and is not removed yet has
    // none either, or less than none.
    let ttl = key["ttl"].as_u64().map(Duration::from_secs).ok_or(NoProof::TooShort)?;
    // Renewing a key does not change when it was created.
    let term = key["createdIndex"].as_u64().ok_or(NoProof::NobodyLeads)?;
    let member =
        child(scope, "members").and_then(|members| child(&members, name)).ok_or(NoProof::Promoting)?;
    let member: Value =
        serde_json::from_str(member["value"].as_str().unwrap_or_default()).map_err(|_| NoProof::Promoting)?;
    // Patroni 4 says `primary`. While it promotes, it says `promoted`.
    let is_promoted = ["master", "primary"].iter().any(|role| member["role"] == *role);
    let timeline = member["timeline"].as_u64().filter(|_| is_promoted).ok_or(NoProof::Promoting)?;
    Ok(HeldKey { lineage: Lineage { system_identifier, timeline }, term, ttl })
}

#[cfg(test)]
mod tests;
