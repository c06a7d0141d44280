//! CORS over HTTP: the answer to a preflight, and the headers that the account's rules add to any other answer.
//!
//! Leaves to others: how rules are matched (`protocol::common::cors`), and writing the headers (`respond`).

use std::pin::pin;
use std::time::Duration;

use catalogue::Catalogue;
use protocol::common::AccountName;
use protocol::common::cors::{self, PreflightAnswer};
use protocol::{ErrorCode, ServiceError};

use super::head::RequestHead;
use super::respond;
use crate::http::deadline::within;
use crate::http::header_names::{CONTENT_LENGTH, DATE, ORIGIN};
use crate::http::response::ResponseHead;

const REQUESTED_METHOD: &str = "access-control-request-method";
const REQUESTED_HEADERS: &str = "access-control-request-headers";

/// An answer repeats the origin, and a preflight's answer the names of headers. A rule has neither an origin nor a name of
/// more than 256 characters, and at most 64 names.
const ORIGIN_BYTES_MAX: usize = 512;
const HEADER_NAMES_BYTES_MAX: usize = 16 * 1024;

/// How long a finished answer waits for the account's rules.
const RULES_TIME_MAX: Duration = Duration::from_secs(1);

/// Needs neither credentials nor a resource, only the account's rules.
pub async fn preflight(
    catalogue: &Catalogue,
    account: &AccountName,
    head: &RequestHead<'_>,
) -> Result<PreflightAnswer, ServiceError> {
    let rules = catalogue.cors_rules(account).await?;
    let is_too_long =
        |name: &str, bytes_max: usize| head.header(name).is_some_and(|value| value.len() > bytes_max);
    if is_too_long(ORIGIN, ORIGIN_BYTES_MAX) || is_too_long(REQUESTED_HEADERS, HEADER_NAMES_BYTES_MAX) {
        return Err(ErrorCode::CorsPreflightFailure.into());
    }
    cors::preflight(
        &rules,
        head.header(ORIGIN),
        head.header(REQUESTED_METHOD),
        head.header(REQUESTED_HEADERS),
    )
}

/// Requests of any origin run. The rules only decide what the browser shows to its page.
pub(crate) async fn decorate(
    catalogue: &Catalogue,
    account: &AccountName,
    head: &RequestHead<'_>,
    response: &mut ResponseHead,
) {
    let origin = head.header(ORIGIN).filter(|origin| origin.len() <= ORIGIN_BYTES_MAX);
    let is_read = matches!(head.method, "GET" | "HEAD");
    if head.method == "OPTIONS" || (origin.is_none() && !is_read) {
        return;
    }
    // If the rules cannot be read in time, the request itself has most likely failed too.
    let rules = within(RULES_TIME_MAX, pin!(catalogue.cors_rules(account))).await;
    let Some(Ok(rules)) = rules else { return };
    if rules.is_empty() {
        return;
    }
    let added = {
        // These two headers are added later.
        let later = [CONTENT_LENGTH, DATE].into_iter().filter(|name| !response.headers().has(name));
        let names = response.headers().iter().map(|(name, _)| name).chain(later);
        cors::actual(&rules, head.method, origin, names)
    };
    respond::add_cors(response.headers_mut(), added);
}
