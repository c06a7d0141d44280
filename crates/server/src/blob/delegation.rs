//! Get User Delegation Key: a key with which the holder of a bearer token makes signatures for others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use protocol::auth::DelegationKey;
use protocol::blob::KIND;
use protocol::blob::permission::authorize_delegation;
use protocol::blob::user_delegation::{KeyInfo, write_key};
use protocol::{ErrorCode, ServiceError};
use serde_json::Value;

use super::answer::BlobAnswer;
use crate::front::service::Session;
use crate::http::header_names::AUTHORIZATION;

/// The id of callers and tenants in tokens that name none.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

pub(crate) fn get_key(session: &Session<'_>, payload: &[u8]) -> Result<BlobAnswer, ServiceError> {
    let role = authorize_delegation(session.grant)?;
    let info = KeyInfo::read(payload, session.front.now())?;
    let claims = claims(session);
    let claim = |name: &str| {
        let text = claims.as_ref().and_then(|claims| claims.get(name)).and_then(Value::as_str);
        text.unwrap_or(NOBODY).to_owned()
    };
    let key = DelegationKey {
        object_id: claim("oid").into(),
        tenant_id: claim("tid").into(),
        start: KeyInfo::text(info.start).into(),
        expiry: KeyInfo::text(info.expiry).into(),
        service: KIND.letter.into(),
        version: session.head.version.into(),
    };
    let accounts = session.front.accounts.get();
    let account = accounts.find(session.account.as_str());
    let account_key = account.and_then(|account| account.keys.first()).ok_or(ErrorCode::InternalError)?;
    let value = key.derive(session.account.as_str(), account_key, role);
    Ok(BlobAnswer::document(write_key(&key, &value)))
}

/// What the caller's token says. It has been validated by now, so it only needs to be read.
fn claims(session: &Session<'_>) -> Option<Value> {
    let (_, token) = session.head.header(AUTHORIZATION)?.split_once(' ')?;
    let claims = token.trim().split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}
