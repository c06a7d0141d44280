//! Who the caller is: known by a Shared Key signature, a shared access signature, or a bearer token.
//!
//! Pure: takes the request as sent, the account's keys and the time, and returns a verdict. For a shared access
//! signature the verdict is incomplete: what the token grants may depend on a stored policy, which is looked up later.

use protocol::auth::{
    Authorization, BearerValidator, FullRequest, Grant, SasToken, Scheme, ServiceKind, SharedKeyForm,
    ShortRequest,
};
use protocol::common::DateTime;
use protocol::common::query::decode;
use protocol::{ErrorCode, ServiceError};

use super::accounts::Account;
use super::head::RequestHead;
use super::header_names::{CONTENT_MD5, X_MS_DATE};
use crate::http::header_names::{AUTHORIZATION, CONTENT_TYPE, DATE};

/// How far a request's date may be from the server's clock, in ticks of 100 ns: 15 minutes.
const CLOCK_SKEW_TICKS_MAX: u64 = 15 * 60 * 10_000_000;
/// From this version on, a request without valid credentials gets a challenge that tells how to obtain them.
const CHALLENGE_VERSION: &str = "2019-12-12";
/// The first version with bearer tokens.
const BEARER_VERSION: &str = "2017-11-09";

/// A caller with genuine credentials.
#[derive(Debug)]
pub(crate) enum Caller<'a> {
    Granted(Grant),
    /// The signature is right. What it grants depends on the time, the connection and the stored policies.
    Sas(Box<SasToken<'a>>),
}

pub(crate) fn authenticate<'a>(
    account: &Account,
    head: &RequestHead<'a>,
    kind: &ServiceKind,
    tokens: Option<&BearerValidator>,
    now: DateTime,
) -> Result<Caller<'a>, ServiceError> {
    let Some(authorization) = head.header(AUTHORIZATION) else {
        return match SasToken::read(&head.query, head.target.path, kind)? {
            Some(token) if token.verify(account.name.as_str(), &account.keys) => {
                Ok(Caller::Sas(Box::new(token)))
            }
            Some(token) => Err(ServiceError::failed_authentication(format!(
                "Signature did not match. String to sign used was {}",
                token.terms().string_to_sign(account.name.as_str())
            ))),
            None => Err(without_credentials(head.sent_version)),
        };
    };
    if !authorization.is_ascii() {
        return Err(ErrorCode::InvalidAuthenticationInfo.into());
    }
    let (scheme, name, signature) = match Authorization::parse(authorization)? {
        Authorization::Signed { scheme, account, signature } => (scheme, account, signature),
        Authorization::Bearer(token) => {
            // Without a configured issuer, no token can be valid.
            let is_too_old = head.sent_version.is_some_and(|version| version < BEARER_VERSION);
            let Some(tokens) = tokens.filter(|_| !is_too_old) else {
                return Err(invalid_token(head.sent_version));
            };
            return match tokens.validate(token, kind, &account.name, &head.connection, now) {
                Ok(grant) => Ok(Caller::Granted(grant)),
                Err(reason) => {
                    let mut error = invalid_token(head.sent_version);
                    error.source = Some(reason.into());
                    Err(error)
                }
            };
        }
    };
    let date = head.header(X_MS_DATE).or_else(|| head.header(DATE));
    let date = date.ok_or(ErrorCode::AuthenticationFailed)?;
    let sent = DateTime::parse_http(date).ok_or(ErrorCode::AuthenticationFailed)?;
    if name != account.name.as_str() || sent.ticks().abs_diff(now.ticks()) > CLOCK_SKEW_TICKS_MAX {
        return Err(ErrorCode::AuthenticationFailed.into());
    }
    check_signature(account, head, kind.shared_key, scheme, signature, date)?;
    Ok(Caller::Granted(Grant::Everything))
}

fn check_signature(
    account: &Account,
    head: &RequestHead<'_>,
    form: SharedKeyForm,
    scheme: Scheme,
    signature: &str,
    date: &str,
) -> Result<(), ServiceError> {
    let (name, keys) = (account.name.as_str(), &account.keys);
    match form {
        SharedKeyForm::Short => {
            let comp = head.query.raw("comp").and_then(decode);
            let request = ShortRequest {
                method: head.method,
                content_md5: head.header(CONTENT_MD5).unwrap_or_default(),
                content_type: head.header(CONTENT_TYPE).unwrap_or_default(),
                date,
                account: name,
                path: head.path,
                comp: comp.as_deref(),
            };
            if !request.is_signed_by(keys, scheme, signature) {
                return Err(ErrorCode::AuthenticationFailed.into());
            }
        }
        SharedKeyForm::Full => {
            let headers: Vec<(&str, &str)> = head.parts.headers().collect();
            let request = FullRequest {
                method: head.method,
                account: name,
                path: head.path,
                query: &head.query,
                version: head.sent_version,
                headers: &headers,
            };
            if !request.is_signed_by(keys, scheme, signature) {
                let text = request.usual_string_to_sign(scheme).unwrap_or_default();
                // The text repeats what the caller sent, and nothing of the key.
                return Err(ServiceError::failed_authentication(format!(
                    "The MAC signature found in the HTTP request '{signature}' is not the same as any computed \
                     signature. Server used following string to sign: '{text}'."
                )));
            }
        }
    }
    Ok(())
}

/// Versions are dates in a form that sorts as text.
fn is_challenged(version: Option<&str>) -> bool {
    version.is_some_and(|version| version >= CHALLENGE_VERSION)
}

fn without_credentials(version: Option<&str>) -> ServiceError {
    let challenged = is_challenged(version);
    if challenged {
        ErrorCode::NoAuthenticationInformation.into()
    } else {
        ErrorCode::ResourceNotFound.into()
    }
}

fn invalid_token(version: Option<&str>) -> ServiceError {
    let challenged = is_challenged(version);
    if challenged { ErrorCode::InvalidBearerToken.into() } else { ErrorCode::AuthenticationFailed.into() }
}
