//! Who is asking: Shared Key signatures over the request as it was sent. Pure: headers and the time in, a verdict out.

use http::HeaderMap;
use protocol::auth::{Authorization, SignedRequest};
use protocol::model::DateTime;
use protocol::wire::headers::X_MS_DATE;
use protocol::{ErrorCode, ServiceError};

use crate::accounts::Account;

/// How far a request's date may be from the server's, in ticks of 100 ns: 15 minutes.
const CLOCK_SKEW_TICKS_MAX: u64 = 15 * 60 * 10_000_000;
/// From this version on, a request without credentials is told how to get some.
const CHALLENGE_VERSION: &str = "2019-12-12";

/// Somebody who holds a key of the account: may do everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    AccountKey,
}

/// What is signed, apart from the headers.
pub struct Signed<'a> {
    pub method: &'a str,
    /// The path as on the request line.
    pub path: &'a str,
    pub comp: Option<&'a str>,
    /// The `x-ms-version` sent, if any.
    pub version: Option<&'a str>,
}

pub fn authenticate(
    account: &Account,
    request: &Signed<'_>,
    headers: &HeaderMap,
    now: DateTime,
) -> Result<Caller, ServiceError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(authorization) = headers.get(http::header::AUTHORIZATION) else {
        return Err(without_credentials(request.version));
    };
    let authorization = authorization.to_str().map_err(|_| ErrorCode::InvalidAuthenticationInfo)?;
    let (scheme, name, signature) = match Authorization::parse(authorization)? {
        Authorization::Signed { scheme, account, signature } => (scheme, account, signature),
        // No issuer of tokens is configured, so none can be valid.
        Authorization::Bearer(_) => return Err(invalid_token(request.version)),
    };
    let date = text(X_MS_DATE).or_else(|| text("date")).ok_or(ErrorCode::AuthenticationFailed)?;
    let sent = DateTime::parse_http(date).ok_or(ErrorCode::AuthenticationFailed)?;
    if name != account.name.as_str() || sent.ticks().abs_diff(now.ticks()) > CLOCK_SKEW_TICKS_MAX {
        return Err(ErrorCode::AuthenticationFailed.into());
    }
    let signed = SignedRequest {
        method: request.method,
        content_md5: text("content-md5").unwrap_or_default(),
        content_type: text("content-type").unwrap_or_default(),
        date,
        account: name,
        path: request.path,
        comp: request.comp,
    };
    if signed.is_signed_by(&account.keys, scheme, signature) {
        Ok(Caller::AccountKey)
    } else {
        Err(ErrorCode::AuthenticationFailed.into())
    }
}

/// Versions are dates in a form that sorts as text.
fn is_challenged(version: Option<&str>) -> bool {
    version.is_some_and(|version| version >= CHALLENGE_VERSION)
}

fn without_credentials(version: Option<&str>) -> ServiceError {
    if is_challenged(version) {
        ErrorCode::NoAuthenticationInformation.into()
    } else {
        ErrorCode::ResourceNotFound.into()
    }
}

fn invalid_token(version: Option<&str>) -> ServiceError {
    if is_challenged(version) {
        ErrorCode::InvalidBearerToken.into()
    } else {
        ErrorCode::AuthenticationFailed.into()
    }
}
