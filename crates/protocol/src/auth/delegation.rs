//! User delegation keys: what a caller with a bearer token signs shared access signatures with.
//!
//! A key is derived from a key of the account, from everything that the tokens repeat about it, and from the role of the
//! caller who asked for it. So nothing is stored, and a new account key ends all delegation keys.
//! Promises: whoever may only read gets a key whose signatures count for reading alone. The text that is signed is as
//! sent. Leaves to others: who may ask for a key, for how long, and the documents about it.

use std::borrow::Cow;

use super::sas::{MalformedSas, ServiceScope, text};
use super::shared_key::AccountKey;
use crate::common::query::Query;
use crate::common::{DateTime, parse_policy_time};

/// The first version of user delegation.
const VERSION_FIRST: &str = "2018-11-09";
/// From this version on, a token may name the user that acts, and a correlation id.
const VERSION_AGENTS: &str = "2020-02-10";
/// From this version on, a token may be for one user of a tenant.
const VERSION_DELEGATED_USER: &str = "2025-07-05";
/// No other signed text begins like this, so no signature of one kind can pass for another.
const DERIVATION: &str = "lazulite user delegation key";

/// What a token says about the key that signed it, as text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DelegationKey<'a> {
    /// `skoid`: the id of the caller who asked for the key.
    pub object_id: Cow<'a, str>,
    /// `sktid`.
    pub tenant_id: Cow<'a, str>,
    /// `skt`.
    pub start: Cow<'a, str>,
    /// `ske`.
    pub expiry: Cow<'a, str>,
    /// `sks`: the letter of the service.
    pub service: Cow<'a, str>,
    /// `skv`.
    pub version: Cow<'a, str>,
}

/// What the caller who asked for a key may do itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelegationRole {
    Reader,
    Writer,
}

impl DelegationRole {
    const ALL: [DelegationRole; 2] = [DelegationRole::Writer, DelegationRole::Reader];

    fn name(self) -> &'static str {
        match self {
            DelegationRole::Reader => "reader",
            DelegationRole::Writer => "writer",
        }
    }

    /// Whether such a caller can pass on these permissions.
    fn covers(self, permissions: &str) -> bool {
        self == DelegationRole::Writer || permissions.chars().all(|letter| "rl".contains(letter))
    }
}

impl DelegationKey<'_> {
    /// The key itself, in Base64.
    pub fn derive(&self, account: &str, account_key: &AccountKey, role: DelegationRole) -> String {
        account_key.sign(&[
            DERIVATION,
            "\n",
            account,
            "\n",
            role.name(),
            "\n",
            &self.object_id,
            "\n",
            &self.tenant_id,
            "\n",
            &self.start,
            "\n",
            &self.expiry,
            "\n",
            &self.service,
            "\n",
            &self.version,
        ])
    }

    /// Whether `verify` accepts this key, in the hands of somebody with these permissions.
    pub(super) fn any_derived(
        &self,
        account: &str,
        account_keys: &[AccountKey],
        permissions: &str,
        verify: impl Fn(&AccountKey) -> bool,
    ) -> bool {
        let roles = DelegationRole::ALL.into_iter().filter(|role| role.covers(permissions));
        let roles: Vec<DelegationRole> = roles.collect();
        account_keys.iter().any(|account_key| {
            roles.iter().any(|role| {
                let key = self.derive(account, account_key, *role);
                AccountKey::from_base64(&key).is_some_and(|key| verify(&key))
            })
        })
    }

    /// Whether the key is valid at this time.
    pub(super) fn is_valid_at(&self, now: DateTime) -> bool {
        let (start, expiry) = (parse_policy_time(&self.start), parse_policy_time(&self.expiry));
        start.is_some_and(|start| start <= now) && expiry.is_some_and(|expiry| now < expiry)
    }
}

/// A service SAS that is signed with a user delegation key.
#[derive(Clone, PartialEq, Debug)]
pub struct DelegatedScope<'a> {
    pub service: ServiceScope,
    pub key: DelegationKey<'a>,
    /// `saoid`, `suoid`, `scid`, `skdutid` and `sduoid`: signed, but without effect here.
    pub agents: [Cow<'a, str>; 5],
}

const AGENT_NAMES: [&str; 5] = ["saoid", "suoid", "scid", "skdutid", "sduoid"];

impl<'a> DelegatedScope<'a> {
    /// Tokens with `skoid` are such tokens.
    pub(super) fn read(
        query: &Query<'a>,
        service: ServiceScope,
        letter: &str,
    ) -> Result<DelegatedScope<'a>, MalformedSas> {
        let mut agents = [const { Cow::Borrowed("") }; 5];
        for (agent, name) in agents.iter_mut().zip(AGENT_NAMES) {
            *agent = text(query, name)?;
        }
        // Such a token is for one user alone, whom only a token of that user could prove.
        if !agents[4].is_empty() {
            return Err(MalformedSas("sduoid is not supported"));
        }
        let key = DelegationKey {
            object_id: text(query, "skoid")?,
            tenant_id: text(query, "sktid")?,
            start: text(query, "skt")?,
            expiry: text(query, "ske")?,
            service: text(query, "sks")?,
            version: text(query, "skv")?,
        };
        if key.service != letter {
            return Err(MalformedSas("sks names another service"));
        }
        Ok(DelegatedScope { service, key, agents })
    }

    pub(super) fn check(&self, version: &str) -> Result<(), MalformedSas> {
        if version < VERSION_FIRST {
            return Err(MalformedSas("sv is older than user delegation"));
        }
        if !self.service.policy.is_empty() {
            return Err(MalformedSas("a user delegation SAS has no stored policy"));
        }
        Ok(())
    }

    /// The lines that stand where others have the stored policy.
    pub(super) fn lines(&self, version: &str) -> impl Iterator<Item = &str> {
        let key = &self.key;
        let agent_count = match version {
            _ if version >= VERSION_DELEGATED_USER => 5,
            _ if version >= VERSION_AGENTS => 3,
            _ => 0,
        };
        let of_key =
            [&key.object_id, &key.tenant_id, &key.start, &key.expiry, &key.service, &key.version].into_iter();
        of_key.chain(&self.agents[..agent_count]).map(|line| &**line)
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let key = &self.key;
        let of_key = [
            ("skoid", &*key.object_id),
            ("sktid", &key.tenant_id),
            ("skt", &key.start),
            ("ske", &key.expiry),
            ("sks", &key.service),
            ("skv", &key.version),
        ];
        of_key.into_iter().chain(AGENT_NAMES.into_iter().zip(self.agents.iter().map(|agent| &**agent)))
    }
}
