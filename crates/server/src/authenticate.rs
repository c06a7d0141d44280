//! Who is asking: a key's signature over the request, a shared access signature, or a bearer token.
//!
//! Pure: the request as it was sent, the account's keys and the time in, a verdict out. A shared access signature that
//! names a stored policy is only half a verdict: the policy has to be looked up before it says what it grants.

use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName};
use protocol::auth::{Authorization, BearerValidator, Connection, Grant, SasToken, SignedRequest};
use protocol::model::DateTime;
use protocol::{ErrorCode, ServiceError};

use crate::accounts::Account;
use crate::header_names::{CONTENT_MD5, X_MS_DATE};

/// How far a request's date may be from the server's, in ticks of 100 ns: 15 minutes.
const CLOCK_SKEW_TICKS_MAX: u64 = 15 * 60 * 10_000_000;
/// From this version on, a request without valid credentials is told how to get some.
const CHALLENGE_VERSION: &str = "2019-12-12";

/// Somebody whose credentials are genuine.
#[derive(Debug)]
pub enum Caller {
    Granted(Grant),
    /// The signature is right; what it grants depends on the time, the connection and the stored policies.
    Sas(Box<SasToken>),
}

/// What is signed, apart from the headers, and how it came.
pub struct Signed<'a> {
    pub method: &'a str,
    /// The path as on the request line.
    pub path: &'a str,
    /// The query as on the request line.
    pub query: &'a str,
    pub comp: Option<&'a str>,
    /// The `x-ms-version` sent, if any.
    pub version: Option<&'a str>,
    pub connection: &'a Connection,
}

pub fn authenticate(
    account: &Account,
    request: &Signed<'_>,
    headers: &HeaderMap,
    tokens: Option<&BearerValidator>,
    now: DateTime,
) -> Result<Caller, ServiceError> {
    let Some(authorization) = headers.get(AUTHORIZATION) else {
        return match SasToken::parse(request.query)? {
            Some(token) if token.verify(account.name.as_str(), &account.keys) => {
                Ok(Caller::Sas(Box::new(token)))
            }
            Some(_) => Err(ErrorCode::AuthenticationFailed.into()),
            None => Err(without_credentials(request.version)),
        };
    };
    let authorization = authorization.to_str().map_err(|_| ErrorCode::InvalidAuthenticationInfo)?;
    let (scheme, name, signature) = match Authorization::parse(authorization)? {
        Authorization::Signed { scheme, account, signature } => (scheme, account, signature),
        Authorization::Bearer(token) => {
            return match tokens.map(|tokens| tokens.validate(token, &account.name, request.connection, now)) {
                Some(Ok(grant)) => Ok(Caller::Granted(grant)),
                Some(Err(reason)) => {
                    Err(ServiceError { source: Some(reason.into()), ..invalid_token(request.version) })
                }
                // No issuer is configured, so no token can be valid.
                None => Err(invalid_token(request.version)),
            };
        }
    };
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let date = text(X_MS_DATE).or_else(|| text(DATE)).ok_or(ErrorCode::AuthenticationFailed)?;
    let sent = DateTime::parse_http(date).ok_or(ErrorCode::AuthenticationFailed)?;
    if name != account.name.as_str() || sent.ticks().abs_diff(now.ticks()) > CLOCK_SKEW_TICKS_MAX {
        return Err(ErrorCode::AuthenticationFailed.into());
    }
    let signed = SignedRequest {
        method: request.method,
        content_md5: text(CONTENT_MD5).unwrap_or_default(),
        content_type: text(CONTENT_TYPE).unwrap_or_default(),
        date,
        account: name,
        path: request.path,
        comp: request.comp,
    };
    if signed.is_signed_by(&account.keys, scheme, signature) {
        Ok(Caller::Granted(Grant::Everything))
    } else {
        Err(ErrorCode::AuthenticationFailed.into())
    }
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
