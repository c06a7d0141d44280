//! Shared access signatures: a query string that carries its own terms, signed with a key of the account.
//!
//! Owns: reading a token, what each version signs, verifying, minting.
//! Promises: a text is signed as it was sent; an empty field is an absent one, because the signature cannot tell
//! them apart; no field holds a control character, so no field can pass for two lines of what is signed.
//! Leaves to others: what a verified token allows, which is `grant`'s.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use super::shared_key::{AccountKey, SIGNATURE_BYTES, decode_signature};
use crate::error::{ErrorCode, ServiceError};
use crate::model::{DateTime, TableName, parse_policy_time};
use crate::wire::headers::is_version;
use crate::wire::uri::percent_decode;

/// The first version of service SAS, without `sip` and `spr`.
const VERSION_FIRST: &str = "2012-02-12";
/// The resource that is signed begins with the service.
const VERSION_SERVICE_PREFIX: &str = "2015-02-21";
/// Account SAS; `sip` and `spr`.
const VERSION_ACCOUNT_SAS: &str = "2015-04-05";
/// An account SAS signs its encryption scope.
const VERSION_ENCRYPTION_SCOPE: &str = "2020-12-06";

/// What a token says, as text: signed like this, checked before use. Empty is absent.
#[derive(Clone, PartialEq, Debug)]
pub struct SasTerms {
    /// `sv`.
    pub version: String,
    /// `sp`.
    pub permissions: String,
    /// `st`.
    pub start: String,
    /// `se`.
    pub expiry: String,
    /// `sip`: an IPv4 address, or the first and the last one of a range, with `-` between.
    pub ip: String,
    /// `spr`: `https` or `https,http`.
    pub protocol: String,
    /// `api-version`, which is not signed.
    pub api_version: String,
    pub scope: SasScope,
}

/// What a token is for.
#[derive(Clone, PartialEq, Debug)]
pub enum SasScope {
    Account(AccountScope),
    Table(TableScope),
}

/// An account SAS: any of the services, each at any of its levels.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AccountScope {
    /// `ss`; `t` is this service.
    pub services: String,
    /// `srt`: letters of `sco`, for the service, its tables, their entities.
    pub resource_types: String,
    /// `ses`.
    pub encryption_scope: String,
}

/// A service SAS: the entities of one table, or a range of them.
#[derive(Clone, PartialEq, Debug)]
pub struct TableScope {
    /// `tn`.
    pub table: TableName,
    /// `si`: the stored policy that completes the terms.
    pub policy: String,
    /// `spk`.
    pub start_partition_key: String,
    /// `srk`.
    pub start_row_key: String,
    /// `epk`.
    pub end_partition_key: String,
    /// `erk`.
    pub end_row_key: String,
}

impl TableScope {
    /// All of a table.
    pub fn new(table: TableName) -> TableScope {
        TableScope {
            table,
            policy: String::new(),
            start_partition_key: String::new(),
            start_row_key: String::new(),
            end_partition_key: String::new(),
            end_row_key: String::new(),
        }
    }
}

/// A token whose terms can be read. Whether its signature is right is for [`SasToken::verify`] to say.
#[derive(Clone, PartialEq, Debug)]
pub struct SasToken {
    terms: SasTerms,
    pub(super) limits: Limits,
    signature: [u8; SIGNATURE_BYTES],
}

/// The terms that do not depend on the scope, as values.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Limits {
    pub start: Option<DateTime>,
    pub expiry: Option<DateTime>,
    pub ips: Option<RangeInclusive<Ipv4Addr>>,
    pub https_only: bool,
}

/// Terms that no token can have, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedSas(&'static str);

impl fmt::Display for MalformedSas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for MalformedSas {}

/// The caller learns no more than that the token is no good; the log has the reason.
impl From<MalformedSas> for ServiceError {
    fn from(error: MalformedSas) -> ServiceError {
        ServiceError::with_source(ErrorCode::AuthenticationFailed, error)
    }
}

impl SasToken {
    /// Reads the token in a query string, still percent-encoded. `None` when there is no signature in it.
    pub fn parse(query: &str) -> Result<Option<SasToken>, ServiceError> {
        let parameters = Parameters::split(query);
        let Some(signature) = parameters.raw("sig") else { return Ok(None) };
        // Base64 has no blank, so a `+` that was not escaped can only have meant itself.
        let signature = percent_decode(signature)
            .and_then(|text| decode_signature(&text))
            .ok_or(MalformedSas("the signature is not the Base64 of 32 bytes"))?;
        let terms = parameters.terms()?;
        let limits = terms.check()?;
        Ok(Some(SasToken { terms, limits, signature }))
    }

    /// Whether any of the keys made this token for this account, which is named without `-secondary`.
    pub fn verify(&self, account: &str, keys: &[AccountKey]) -> bool {
        let text = self.terms.string_to_sign(account);
        keys.iter().any(|key| key.verify(&[&text], &self.signature))
    }

    pub fn terms(&self) -> &SasTerms {
        &self.terms
    }

    /// The table, and the stored policy of that table, that complete the terms.
    pub fn policy(&self) -> Option<(&TableName, &str)> {
        match &self.terms.scope {
            SasScope::Table(scope) if !scope.policy.is_empty() => Some((&scope.table, &scope.policy)),
            _ => None,
        }
    }
}

/// The version of the protocol that a request speaks, as far as it says: a shared access signature in its query
/// has `api-version` before the header and `sv` behind it.
pub fn protocol_version<'a>(query: &'a str, x_ms_version: Option<&'a str>) -> Option<&'a str> {
    let header = x_ms_version.filter(|text| is_version(text));
    if query.is_empty() || memchr::memmem::find(query.as_bytes(), b"sig=").is_none() {
        return header;
    }
    let named = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(found, _)| *found == name).map(|(_, value)| value).filter(|text| is_version(text))
    };
    named("api-version").or(header).or_else(|| named("sv"))
}

impl SasTerms {
    /// Terms with nothing but a version and a scope.
    pub fn new(version: impl Into<String>, scope: SasScope) -> SasTerms {
        SasTerms {
            version: version.into(),
            permissions: String::new(),
            start: String::new(),
            expiry: String::new(),
            ip: String::new(),
            protocol: String::new(),
            api_version: String::new(),
            scope,
        }
    }

    /// What is signed. Versions are dates in a form that sorts as text.
    pub fn string_to_sign(&self, account: &str) -> String {
        let version = self.version.as_str();
        match &self.scope {
            SasScope::Account(scope) => {
                let mut lines = vec![
                    account,
                    &self.permissions,
                    &scope.services,
                    &scope.resource_types,
                    &self.start,
                    &self.expiry,
                    &self.ip,
                    &self.protocol,
                    version,
                ];
                if version >= VERSION_ENCRYPTION_SCOPE {
                    lines.push(&scope.encryption_scope);
                }
                // Here, and not in a service SAS, the last line ends like the others.
                lines.push("");
                lines.join("\n")
            }
            SasScope::Table(scope) => {
                let service = if version >= VERSION_SERVICE_PREFIX { "/table" } else { "" };
                let resource = format!("{service}/{account}/{}", scope.table.to_lower());
                let mut lines =
                    vec![&self.permissions, &self.start, &self.expiry, resource.as_str(), &scope.policy];
                if version >= VERSION_ACCOUNT_SAS {
                    lines.extend([self.ip.as_str(), &self.protocol]);
                }
                lines.extend([
                    version,
                    &scope.start_partition_key,
                    &scope.start_row_key,
                    &scope.end_partition_key,
                    &scope.end_row_key,
                ]);
                lines.join("\n")
            }
        }
    }

    /// The token as a query string: the terms that are there, and their signature.
    pub fn mint(&self, account: &str, key: &AccountKey) -> Result<String, MalformedSas> {
        self.check()?;
        let signature = key.sign(&[&self.string_to_sign(account)]);
        let mut query = String::new();
        for (name, value) in self.parameters().into_iter().chain([("sig", signature.as_str())]) {
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

    /// Every parameter but the signature.
    fn parameters(&self) -> Vec<(&'static str, &str)> {
        let mut parameters = Vec::with_capacity(PARAMETER_COUNT);
        parameters.extend([
            ("sv", self.version.as_str()),
            ("sp", &self.permissions),
            ("st", &self.start),
            ("se", &self.expiry),
            ("sip", &self.ip),
            ("spr", &self.protocol),
            ("api-version", &self.api_version),
        ]);
        match &self.scope {
            SasScope::Account(scope) => parameters.extend([
                ("ss", scope.services.as_str()),
                ("srt", &scope.resource_types),
                ("ses", &scope.encryption_scope),
            ]),
            SasScope::Table(scope) => parameters.extend([
                ("tn", scope.table.as_str()),
                ("si", &scope.policy),
                ("spk", &scope.start_partition_key),
                ("srk", &scope.start_row_key),
                ("epk", &scope.end_partition_key),
                ("erk", &scope.end_row_key),
            ]),
        }
        parameters
    }

    /// Whether a token can have these terms at all, and those that are more than text as values.
    fn check(&self) -> Result<Limits, MalformedSas> {
        if self.parameters().iter().any(|(_, value)| has_control(value)) {
            return Err(MalformedSas("a field holds a control character"));
        }
        if !is_version(&self.version) {
            return Err(MalformedSas("sv is not a version"));
        }
        match &self.scope {
            SasScope::Account(scope) => {
                if self.version.as_str() < VERSION_ACCOUNT_SAS {
                    return Err(MalformedSas("sv is older than account SAS"));
                }
                let required = [&scope.services, &scope.resource_types, &self.permissions, &self.expiry];
                if required.iter().any(|value| value.is_empty()) {
                    return Err(MalformedSas("ss, srt, sp and se are required"));
                }
            }
            SasScope::Table(scope) => {
                if self.version.as_str() < VERSION_FIRST {
                    return Err(MalformedSas("sv is older than service SAS"));
                }
                // The minter meant a restriction that the holder could take away.
                let is_unsigned = self.version.as_str() < VERSION_ACCOUNT_SAS;
                if is_unsigned && !(self.ip.is_empty() && self.protocol.is_empty()) {
                    return Err(MalformedSas("sv is older than sip and spr"));
                }
                if scope.policy.is_empty() && (self.permissions.is_empty() || self.expiry.is_empty()) {
                    return Err(MalformedSas("sp and se are required without a stored policy"));
                }
                let has_lone_row = |partition: &str, row: &str| partition.is_empty() && !row.is_empty();
                if has_lone_row(&scope.start_partition_key, &scope.start_row_key)
                    || has_lone_row(&scope.end_partition_key, &scope.end_row_key)
                {
                    return Err(MalformedSas("srk needs spk, and erk needs epk"));
                }
            }
        }
        if !self.api_version.is_empty() && !is_version(&self.api_version) {
            return Err(MalformedSas("api-version is not a version"));
        }
        Ok(Limits {
            start: time(&self.start)?,
            expiry: time(&self.expiry)?,
            ips: ips(&self.ip)?,
            https_only: match self.protocol.as_str() {
                "https" => true,
                "" | "https,http" => false,
                _ => return Err(MalformedSas("spr is neither https nor https,http")),
            },
        })
    }
}

/// As many as a token and the options beside it usually have.
const PARAMETER_COUNT: usize = 16;

/// The parameters of a query string in their order, names decoded.
struct Parameters<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Parameters<'a> {
    fn split(query: &'a str) -> Parameters<'a> {
        let pairs = query.split('&').filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // A name that cannot be read is nobody's here; whoever reads all options complains of it.
            Some((percent_decode(name)?, value))
        });
        let mut parameters = Vec::with_capacity(PARAMETER_COUNT);
        parameters.extend(pairs);
        Parameters(parameters)
    }

    /// The first value of that name: clients are known to append the same token twice.
    fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    /// As in every query option, a raw `+` is a blank.
    fn text(&self, name: &str) -> Result<String, MalformedSas> {
        let raw = self.raw(name).unwrap_or_default();
        let text = match memchr::memchr(b'+', raw.as_bytes()) {
            None => Cow::Borrowed(raw),
            Some(_) => Cow::Owned(raw.replace('+', " ")),
        };
        let decoded = percent_decode(&text).ok_or(MalformedSas("a field is not percent-encoded UTF-8"))?;
        Ok(decoded.into_owned())
    }

    fn terms(&self) -> Result<SasTerms, MalformedSas> {
        Ok(SasTerms {
            version: self.text("sv")?,
            permissions: self.text("sp")?,
            start: self.text("st")?,
            expiry: self.text("se")?,
            ip: self.text("sip")?,
            protocol: self.text("spr")?,
            api_version: self.text("api-version")?,
            scope: self.scope()?,
        })
    }

    fn scope(&self) -> Result<SasScope, MalformedSas> {
        if self.raw("ss").is_some() {
            return Ok(SasScope::Account(AccountScope {
                services: self.text("ss")?,
                resource_types: self.text("srt")?,
                encryption_scope: self.text("ses")?,
            }));
        }
        let table = TableName::parse(&self.text("tn")?).map_err(|_| MalformedSas("tn names no table"))?;
        Ok(SasScope::Table(TableScope {
            table,
            policy: self.text("si")?,
            start_partition_key: self.text("spk")?,
            start_row_key: self.text("srk")?,
            end_partition_key: self.text("epk")?,
            end_row_key: self.text("erk")?,
        }))
    }
}

fn has_control(text: &str) -> bool {
    // Most texts are plain ASCII; a fold without an early end looks at many bytes at once.
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

/// Escapes everything that is not unreserved in a URI, so that no reader can take it for something else.
fn push_escaped(text: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests;
