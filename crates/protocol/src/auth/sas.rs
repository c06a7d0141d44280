//! Shared access signatures: a query string that carries its own terms, signed with a key of the account.
//!
//! Owns: reading, verifying and minting tokens, and the text that each version signs.
//! Promises: texts are signed exactly as sent. An empty field counts as absent, because the signature cannot tell the
//! two apart. No field holds a control character, so no field can pass for two lines of the signed text.
//! Leaves to others: what a verified token allows (`grant`), and which resource a service SAS is for (each service's
//! `ServiceKind::read_service_scope`).

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use super::delegation::DelegatedScope;
use super::grant::KeyBounds;
use super::service_kind::ServiceKind;
use super::shared_key::{AccountKey, SIGNATURE_BYTES, decode_signature};
use crate::ServiceError;
use crate::common::percent::{percent_decode, push_escaped};
use crate::common::query::{Query, decode};
use crate::common::version::is_version;
use crate::common::{DateTime, parse_policy_time};

/// The first version of service SAS. It has no `sip` and no `spr`.
const VERSION_FIRST: &str = "2012-02-12";
/// From this version on, the signed resource begins with the service's label.
const VERSION_SERVICE_PREFIX: &str = "2015-02-21";
/// The first version with account SAS, `sip` and `spr`.
const VERSION_ACCOUNT_SAS: &str = "2015-04-05";
/// From this version on, an account SAS signs its encryption scope.
const VERSION_ENCRYPTION_SCOPE: &str = "2020-12-06";

/// How many segments a directory's path has. It is the last of the parameters, if it is there.
pub(crate) const DEPTH: &str = "sdd";

/// A token's terms as text, exactly as signed. An empty text is an absent field.
#[derive(Clone, PartialEq, Debug)]
pub struct SasTerms<'a> {
    /// `sv`.
    pub version: Cow<'a, str>,
    /// `sp`.
    pub permissions: Cow<'a, str>,
    /// `st`.
    pub start: Cow<'a, str>,
    /// `se`.
    pub expiry: Cow<'a, str>,
    /// `sip`: an IPv4 address, or the first and last address of a range with `-` between them.
    pub ip: Cow<'a, str>,
    /// `spr`: `https` or `https,http`.
    pub protocol: Cow<'a, str>,
    /// `api-version`. It is not signed.
    pub api_version: Cow<'a, str>,
    pub scope: SasScope<'a>,
}

/// What a token gives access to.
#[derive(Clone, PartialEq, Debug)]
pub enum SasScope<'a> {
    Account(AccountScope<'a>),
    Service(ServiceScope),
    /// Like a service SAS, but signed with a user delegation key.
    Delegated(Box<DelegatedScope<'a>>),
}

/// An account SAS: any number of services, at any of their levels.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AccountScope<'a> {
    /// `ss`: the letters of the services.
    pub services: Cow<'a, str>,
    /// `srt`: letters from `sco`, for the service, its containers and their objects.
    pub resource_types: Cow<'a, str>,
    /// `ses`.
    pub encryption_scope: Cow<'a, str>,
}

/// A service SAS: one resource of one service.
#[derive(Clone, PartialEq, Debug)]
pub struct ServiceScope {
    /// The service's label in the signed resource.
    pub label: &'static str,
    /// What the token gives access to, without the account: the container, or the container and the object in it. It is
    /// signed like this, except for an object in a directory: then the directory is signed.
    pub resource: String,
    /// `si`: the container's stored policy that completes the terms.
    pub policy: String,
    /// The parameters particular to this service, in the order in which they are signed.
    pub parameters: Vec<ScopeParameter>,
    /// The keys that the token is limited to, if it is limited.
    pub bounds: KeyBounds,
}

/// A parameter that only one service has. An empty value is an absent one.
#[derive(Clone, PartialEq, Debug)]
pub struct ScopeParameter {
    pub name: &'static str,
    pub value: String,
    /// Whether the value is a line of the signed text, after the version.
    pub is_signed: bool,
}

/// A token with readable terms. [`SasToken::verify`] tells whether its signature is right.
#[derive(Clone, PartialEq, Debug)]
pub struct SasToken<'a> {
    terms: SasTerms<'a>,
    pub(super) limits: SasLimits,
    signature: [u8; SIGNATURE_BYTES],
}

/// The terms that every scope has, as typed values.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SasLimits {
    pub start: Option<DateTime>,
    pub expiry: Option<DateTime>,
    pub ips: Option<RangeInclusive<Ipv4Addr>>,
    pub https_only: bool,
}

/// Why terms are invalid in any token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedSas(pub &'static str);

impl fmt::Display for MalformedSas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for MalformedSas {}

/// Which field it is goes to the log.
impl From<MalformedSas> for ServiceError {
    fn from(error: MalformedSas) -> ServiceError {
        let mut refusal = ServiceError::failed_authentication("Signature fields not well formed.");
        refusal.source = Some(error.into());
        refusal
    }
}

impl<'a> SasToken<'a> {
    /// Reads the token in a query, or `None` if the query has no signature. `path` is the path within the account.
    pub fn read(
        query: &Query<'a>,
        path: &str,
        kind: &ServiceKind,
    ) -> Result<Option<SasToken<'a>>, MalformedSas> {
        let Some(signature) = query.raw("sig") else { return Ok(None) };
        // Base64 has no spaces, so an unescaped `+` can only mean itself.
        let signature = percent_decode(signature)
            .and_then(|text| decode_signature(&text))
            .ok_or(MalformedSas("the signature is not the Base64 of 32 bytes"))?;
        // An account SAS is one that has both: `ss` alone makes no account SAS of a service SAS.
        let scope = if query.raw("ss").is_some() && query.raw("srt").is_some() {
            SasScope::Account(AccountScope {
                services: text(query, "ss")?,
                resource_types: text(query, "srt")?,
                encryption_scope: text(query, "ses")?,
            })
        } else {
            let scope = (kind.read_service_scope)(query, path)?;
            match query.raw("skoid") {
                None => SasScope::Service(scope),
                Some(_) => SasScope::Delegated(Box::new(DelegatedScope::read(query, scope, kind.letter)?)),
            }
        };
        let terms = SasTerms {
            version: text(query, "sv")?,
            permissions: text(query, "sp")?,
            start: text(query, "st")?,
            expiry: text(query, "se")?,
            ip: text(query, "sip")?,
            protocol: text(query, "spr")?,
            api_version: text(query, "api-version")?,
            scope,
        };
        let limits = terms.check()?;
        Ok(Some(SasToken { terms, limits, signature }))
    }

    /// Whether any of these keys signed the token for this account. `account` comes without `-secondary`.
    pub fn verify(&self, account: &str, keys: &[AccountKey]) -> bool {
        let text = self.terms.string_to_sign(account);
        if let SasScope::Delegated(scope) = &self.terms.scope {
            let verify = |key: &AccountKey| key.verify(&[&text], &self.signature);
            return scope.key.any_derived(account, keys, &self.terms.permissions, verify);
        }
        keys.iter().any(|key| key.verify(&[&text], &self.signature))
    }

    pub fn terms(&self) -> &SasTerms<'a> {
        &self.terms
    }

    /// The container and its stored policy that completes the terms.
    pub fn policy(&self) -> Option<(&str, &str)> {
        match &self.terms.scope {
            SasScope::Service(scope) if !scope.policy.is_empty() => Some((scope.container(), &scope.policy)),
            _ => None,
        }
    }
}

/// A parameter of a token. As in every query, a raw `+` is a space. An absent parameter counts as empty.
pub(crate) fn text<'a>(query: &Query<'a>, name: &str) -> Result<Cow<'a, str>, MalformedSas> {
    decode(query.raw(name).unwrap_or_default()).ok_or(MalformedSas("a field is not percent-encoded UTF-8"))
}

impl ServiceScope {
    /// The table, queue or blob container that holds the resource.
    pub fn container(&self) -> &str {
        self.resource.split('/').next().unwrap_or_default()
    }

    /// The part of the resource that is signed. With a depth, it is a directory of the container, in which the resource
    /// is or which it is.
    fn signed_resource(&self) -> &str {
        let depth = self.parameters.last().filter(|last| last.name == DEPTH);
        let Some(depth) = depth.and_then(|depth| depth.value.parse::<usize>().ok()) else {
            return &self.resource;
        };
        let end = memchr::memchr_iter(b'/', self.resource.as_bytes()).nth(depth);
        &self.resource[..end.unwrap_or(self.resource.len())]
    }
}

impl<'a> SasTerms<'a> {
    /// Terms with only a version and a scope.
    pub fn new(version: impl Into<Cow<'a, str>>, scope: SasScope<'a>) -> SasTerms<'a> {
        SasTerms {
            version: version.into(),
            permissions: Cow::default(),
            start: Cow::default(),
            expiry: Cow::default(),
            ip: Cow::default(),
            protocol: Cow::default(),
            api_version: Cow::default(),
            scope,
        }
    }

    /// The text that is signed. Versions are dates in a form that sorts as text.
    pub fn string_to_sign(&self, account: &str) -> String {
        let version = &*self.version;
        match &self.scope {
            SasScope::Account(scope) => {
                let lines = [
                    account,
                    &self.permissions,
                    &scope.services,
                    &scope.resource_types,
                    &self.start,
                    &self.expiry,
                    &self.ip,
                    &self.protocol,
                    version,
                    &scope.encryption_scope,
                ];
                let line_count =
                    if version >= VERSION_ENCRYPTION_SCOPE { lines.len() } else { lines.len() - 1 };
                let mut text = lines[..line_count].join("\n");
                // Unlike in a service SAS, the last line ends with a newline too.
                text.push('\n');
                text
            }
            SasScope::Service(scope) => {
                self.service_string_to_sign(account, scope, [scope.policy.as_str()].into_iter())
            }
            SasScope::Delegated(scope) => {
                self.service_string_to_sign(account, &scope.service, scope.lines(version))
            }
        }
    }

    /// `signer` is who signed, or whose policy completes the terms.
    fn service_string_to_sign<'t>(
        &'t self,
        account: &str,
        scope: &'t ServiceScope,
        signer: impl Iterator<Item = &'t str>,
    ) -> String {
        let version = &*self.version;
        let mut text = String::with_capacity(256);
        for field in [&self.permissions, &self.start, &self.expiry] {
            text.push_str(field);
            text.push('\n');
        }
        if version >= VERSION_SERVICE_PREFIX {
            text.push('/');
            text.push_str(scope.label);
        }
        for piece in ["/", account, "/", scope.signed_resource()] {
            text.push_str(piece);
        }
        let addressed = [&*self.ip, &*self.protocol].into_iter();
        let addressed = addressed.filter(|_| version >= VERSION_ACCOUNT_SAS);
        let own = scope.parameters.iter().filter(|own| own.is_signed).map(|own| own.value.as_str());
        for line in signer.chain(addressed).chain([version]).chain(own) {
            text.push('\n');
            text.push_str(line);
        }
        text
    }

    /// The token as a query string: all terms that are set, and the signature.
    pub fn mint(&self, account: &str, key: &AccountKey) -> Result<String, MalformedSas> {
        self.check()?;
        let signature = key.sign(&[&self.string_to_sign(account)]);
        let mut query = String::new();
        for (name, value) in self.parameters().chain([("sig", signature.as_str())]) {
            if value.is_empty() {
                continue;
            }
            if !query.is_empty() {
                query.push('&');
            }
            query.push_str(name);
            query.push('=');
            push_escaped(value, &mut query);
        }
        Ok(query)
    }

    /// Every parameter except the signature.
    fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let account = match &self.scope {
            SasScope::Account(scope) => Some([
                ("ss", &*scope.services),
                ("srt", &scope.resource_types),
                ("ses", &scope.encryption_scope),
            ]),
            SasScope::Service(_) | SasScope::Delegated(_) => None,
        };
        let (policy, own) = match &self.scope {
            SasScope::Account(_) => ("", &[][..]),
            SasScope::Service(scope) => (scope.policy.as_str(), &scope.parameters[..]),
            SasScope::Delegated(scope) => ("", &scope.service.parameters[..]),
        };
        let delegated = match &self.scope {
            SasScope::Delegated(scope) => Some(scope.parameters()),
            _ => None,
        };
        let common = [
            ("sv", &*self.version),
            ("sp", &self.permissions),
            ("st", &self.start),
            ("se", &self.expiry),
            ("sip", &self.ip),
            ("spr", &self.protocol),
            ("api-version", &self.api_version),
            ("si", policy),
        ];
        let own = own.iter().map(|own| (own.name, own.value.as_str()));
        let account = account.into_iter().flatten();
        common.into_iter().chain(account).chain(delegated.into_iter().flatten()).chain(own)
    }

    /// Refuses terms that no token can have, and returns those that are more than text as typed values.
    fn check(&self) -> Result<SasLimits, MalformedSas> {
        if self.parameters().any(|(_, value)| has_control(value)) {
            return Err(MalformedSas("a field holds a control character"));
        }
        if !is_version(&self.version) {
            return Err(MalformedSas("sv is not a version"));
        }
        match &self.scope {
            SasScope::Account(scope) => {
                if &*self.version < VERSION_ACCOUNT_SAS {
                    return Err(MalformedSas("sv is older than account SAS"));
                }
                let required = [&scope.services, &scope.resource_types, &self.permissions, &self.expiry];
                if required.iter().any(|value| value.is_empty()) {
                    return Err(MalformedSas("ss, srt, sp and se are required"));
                }
            }
            SasScope::Delegated(scope) => {
                scope.check(&self.version)?;
                if self.permissions.is_empty() || self.expiry.is_empty() {
                    return Err(MalformedSas("sp and se are required without a stored policy"));
                }
            }
            SasScope::Service(scope) => {
                if &*self.version < VERSION_FIRST {
                    return Err(MalformedSas("sv is older than service SAS"));
                }
                // The holder could strip a restriction that is not signed, against the minter's intention.
                let is_unsigned = &*self.version < VERSION_ACCOUNT_SAS;
                if is_unsigned && !(self.ip.is_empty() && self.protocol.is_empty()) {
                    return Err(MalformedSas("sv is older than sip and spr"));
                }
                if scope.policy.is_empty() && (self.permissions.is_empty() || self.expiry.is_empty()) {
                    return Err(MalformedSas("sp and se are required without a stored policy"));
                }
            }
        }
        if !self.api_version.is_empty() && !is_version(&self.api_version) {
            return Err(MalformedSas("api-version is not a version"));
        }
        Ok(SasLimits {
            start: time(&self.start)?,
            expiry: time(&self.expiry)?,
            ips: ips(&self.ip)?,
            https_only: match &*self.protocol {
                "https" => true,
                "" | "https,http" => false,
                _ => return Err(MalformedSas("spr is neither https nor https,http")),
            },
        })
    }
}

fn has_control(text: &str) -> bool {
    // Most texts are plain ASCII. A fold that never stops early compares many bytes at once.
    let is_plain = text.bytes().fold(true, |plain, byte| plain & (0x20..0x7F).contains(&byte));
    !is_plain && text.contains(char::is_control)
}

fn time(text: &str) -> Result<Option<DateTime>, MalformedSas> {
    if text.is_empty() {
        return Ok(None);
    }
    parse_policy_time(text).map(Some).ok_or(MalformedSas("st or se is not a time"))
}

fn ips(text: &str) -> Result<Option<RangeInclusive<Ipv4Addr>>, MalformedSas> {
    if text.is_empty() {
        return Ok(None);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) => Ok(Some(first..=last)),
        _ => Err(MalformedSas("sip is neither an IPv4 address nor a range of them")),
    }
}

#[cfg(test)]
mod tests;
