//! CORS over HTTP: the account's rules, the answer to a preflight, and what the rules add to any other answer.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::Response;
use http::header::{
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN,
};
use http::request::Parts;
use protocol::ServiceError;
use protocol::model::AccountName;
use protocol::wire::cors::{self, CorsRule};
use tables::TableService;

use crate::answer::Answer;
use crate::deadline::within;
use crate::handle::Shared;
use crate::{respond, settings};

/// How long rules that another front end may have changed are believed.
const RULES_AGE_MAX: Duration = Duration::from_secs(5);

/// Each account's CORS rules, remembered: they are asked for by every request that has an `Origin`.
#[derive(Default)]
pub struct CorsRules(RwLock<BTreeMap<AccountName, Remembered>>);

#[derive(Clone)]
struct Remembered {
    at: Duration,
    rules: Arc<[CorsRule]>,
}

impl CorsRules {
    pub async fn of(
        &self,
        service: &TableService,
        account: &AccountName,
        now: Duration,
    ) -> Result<Arc<[CorsRule]>, ServiceError> {
        if let Some(rules) = self.remembered(account, now) {
            return Ok(rules);
        }
        let rules: Arc<[CorsRule]> = settings::properties(service, account).await?.cors.into();
        self.remember(account, rules.clone(), now);
        Ok(rules)
    }

    fn remembered(&self, account: &AccountName, now: Duration) -> Option<Arc<[CorsRule]>> {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Remembered { at, rules } = accounts.get(account)?;
        (now.saturating_sub(*at) <= RULES_AGE_MAX).then(|| rules.clone())
    }

    pub fn remember(&self, account: &AccountName, rules: Arc<[CorsRule]>, now: Duration) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(account.clone(), Remembered { at: now, rules });
    }
}

/// How long an answer that is ready waits for the account's rules.
const RULES_TIME_MAX: Duration = Duration::from_secs(1);

/// Needs no credentials, and no resource: only the account's rules.
pub async fn preflight(
    shared: &Shared,
    account: &AccountName,
    headers: &HeaderMap,
) -> Result<Answer, ServiceError> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let rules = shared.cors_rules.of(&shared.service, account, shared.clock.monotonic()).await?;
    let answer = cors::preflight(
        &rules,
        text(ORIGIN),
        text(ACCESS_CONTROL_REQUEST_METHOD),
        text(ACCESS_CONTROL_REQUEST_HEADERS),
    )?;
    Ok(Answer { preflight: Some(answer), ..Answer::front_end(200) })
}

/// A request runs whatever its origin; the rules only decide what the browser lets its page see.
pub async fn decorate<B>(shared: &Shared, account: &AccountName, parts: &Parts, response: &mut Response<B>) {
    let origin = parts.headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let is_read = matches!(parts.method, http::Method::GET | http::Method::HEAD);
    if parts.method == http::Method::OPTIONS || (origin.is_none() && !is_read) {
        return;
    }
    let rules = pin!(shared.cors_rules.of(&shared.service, account, shared.clock.monotonic()));
    // Where the rules cannot be read, in time, the request itself has failed too.
    let Some(Ok(rules)) = within(RULES_TIME_MAX, rules).await else { return };
    if rules.is_empty() {
        return;
    }
    let added = {
        // Two more are added behind us.
        let later =
            ["content-length", "date"].into_iter().filter(|name| !response.headers().contains_key(*name));
        let names = response.headers().keys().map(|name| name.as_str()).chain(later);
        cors::actual(&rules, parts.method.as_str(), origin, names)
    };
    respond::add_cors(response.headers_mut(), added);
}
