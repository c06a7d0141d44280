//! How a caller proves who it is: an account key, a shared access signature, or a bearer token.
//!
//! Owns: the credential's forms, and the cache in front of a [`TokenProvider`].
//! Promises: `Debug` shows no secret. A token is asked for once, however many calls wait for it, and renewed shortly
//! before it expires, while calls still use the old one.
//! Leaves to others: what is signed (`protocol::auth`), and making signatures to give away (`sas`).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use protocol::auth::AccountKey;

use crate::Error;
use crate::clock::Environment;

/// A token is renewed this long before it expires, or after three quarters of its life if that is shorter.
const RENEWAL_MARGIN: Duration = Duration::from_secs(300);

/// What a call is authorized with.
///
/// ```
/// use lazulite_client::Credential;
///
/// let key = Credential::shared_key("myaccount", "bXkga2V5")?;
/// let sas = Credential::sas("?sv=2019-02-02&tn=people&sp=r&se=2030-01-01&sig=c2VjcmV0")?;
/// assert!(!format!("{key:?} {sas:?}").contains("c2VjcmV0"), "secrets are never printed");
/// # Ok::<(), lazulite_client::Error>(())
/// ```
#[derive(Clone)]
pub struct Credential(pub(crate) Kind);

#[derive(Clone)]
pub(crate) enum Kind {
    SharedKey {
        account: Arc<str>,
        key: AccountKey,
    },
    /// The query string of a shared access signature, without `?`.
    Sas(Arc<str>),
    Token(Arc<TokenCache>),
}

impl Credential {
    /// An account's name and one of its keys, in Base64 as the portal shows it.
    pub fn shared_key(account: &str, key: &str) -> Result<Credential, Error> {
        if account.is_empty() || !account.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Configuration("the account's name is empty or has a blank".to_owned()));
        }
        let key = AccountKey::from_base64(key)
            .ok_or_else(|| Error::Configuration("the account key is not Base64".to_owned()))?;
        Ok(Credential(Kind::SharedKey { account: account.into(), key }))
    }

    /// A shared access signature: the token, with or without `?`, or a whole URL that ends with it.
    pub fn sas(token_or_url: &str) -> Result<Credential, Error> {
        let text = token_or_url.trim();
        let query = text.split_once('?').map_or(text, |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default().trim_matches('&');
        let mut names = query.split('&').filter_map(|pair| pair.split_once('='));
        let wrong = if !query.bytes().all(|byte| byte.is_ascii_graphic()) {
            "has a character that must be percent-encoded"
        } else if !names.any(|(name, value)| name == "sig" && !value.is_empty()) {
            "has no sig"
        } else {
            return Ok(Credential(Kind::Sas(query.into())));
        };
        Err(Error::Configuration(format!("the shared access signature {wrong}")))
    }

    /// Bearer tokens of Microsoft Entra ID, or of any other issuer that the server trusts. Tokens are sent over https
    /// only, or to this machine.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lazulite_client::{AccessToken, Credential};
    ///
    /// # fn ask_the_issuer() -> String { String::new() }
    /// let credential = Credential::token(|| async {
    ///     let token: String = ask_the_issuer();
    ///     Ok(AccessToken::new(token, SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000)))
    /// });
    /// ```
    pub fn token(provider: impl TokenProvider) -> Credential {
        Credential(Kind::Token(Arc::new(TokenCache {
            provider: Box::new(provider),
            latest: RwLock::new(None),
            renewal: tokio::sync::Mutex::new(()),
        })))
    }

    /// The table that a shared access signature is for, if it names one.
    pub(crate) fn table(&self) -> Option<&str> {
        let Kind::Sas(query) = &self.0 else { return None };
        query.split('&').find_map(|pair| pair.strip_prefix("tn=")).filter(|name| !name.is_empty())
    }

    /// The account's name and key, if this is a key: only a key can make signatures.
    pub(crate) fn key(&self) -> Option<(&str, &AccountKey)> {
        match &self.0 {
            Kind::SharedKey { account, key } => Some((account, key)),
            Kind::Sas(_) | Kind::Token(_) => None,
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::SharedKey { account, .. } => write!(f, "Credential::SharedKey({account:?}, ..)"),
            Kind::Sas(_) => f.write_str("Credential::Sas(..)"),
            Kind::Token(_) => f.write_str("Credential::Token(..)"),
        }
    }
}

/// A bearer token and the time at which it ends.
#[derive(Clone)]
pub struct AccessToken {
    token: String,
    expires: SystemTime,
}

impl AccessToken {
    /// The token's text, without `Bearer`.
    pub fn new(token: impl Into<String>, expires: SystemTime) -> AccessToken {
        AccessToken { token: token.into(), expires }
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// Why a provider has no token.
pub type TokenError = Box<dyn std::error::Error + Send + Sync>;

/// A token on its way.
pub type TokenFuture<'a> = Pin<Box<dyn Future<Output = Result<AccessToken, TokenError>> + Send + 'a>>;

/// Anything that yields bearer tokens. A closure that returns a future is one.
///
/// The client keeps a token until shortly before it expires, so a provider needs no cache of its own.
pub trait TokenProvider: Send + Sync + 'static {
    /// A new token.
    fn token(&self) -> TokenFuture<'_>;
}

impl<F, Asked> TokenProvider for F
where
    F: Fn() -> Asked + Send + Sync + 'static,
    Asked: Future<Output = Result<AccessToken, TokenError>> + Send + 'static,
{
    fn token(&self) -> TokenFuture<'_> {
        Box::pin(self())
    }
}

/// The latest token of a provider.
pub(crate) struct TokenCache {
    provider: Box<dyn TokenProvider>,
    latest: RwLock<Option<Latest>>,
    /// Held by the one call that asks for a new token.
    renewal: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Latest {
    authorization: HeaderValue,
    renews: SystemTime,
    expires: SystemTime,
}

impl TokenCache {
    /// The value of `Authorization`.
    pub(crate) async fn authorization(&self, environment: &dyn Environment) -> Result<HeaderValue, Error> {
        let now = environment.now();
        if let Some(latest) = self.latest() {
            if now < latest.renews {
                return Ok(latest.authorization);
            }
            if now < latest.expires {
                // The old token still serves. One call renews it; the others do not wait, and a failure can wait too.
                let Ok(_held) = self.renewal.try_lock() else { return Ok(latest.authorization) };
                return Ok(self.renew(now).await.unwrap_or(latest.authorization));
            }
        }
        let _held = self.renewal.lock().await;
        // Whoever held the lock before has renewed it.
        match self.latest() {
            Some(latest) if now < latest.expires => Ok(latest.authorization),
            _ => self.renew(now).await,
        }
    }

    /// Forgets a token that the service refused, unless it has been renewed since.
    pub(crate) fn forget(&self, refused: &HeaderValue) {
        let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
        if latest.as_ref().is_some_and(|latest| latest.authorization == *refused) {
            *latest = None;
        }
    }

    fn latest(&self) -> Option<Latest> {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn renew(&self, now: SystemTime) -> Result<HeaderValue, Error> {
        let AccessToken { token, expires } = self
            .provider
            .token()
            .await
            .map_err(|error| Error::Configuration(format!("the provider has no token: {error}")))?;
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(|_| {
            Error::Configuration("the provider's token has a character that no header can have".into())
        })?;
        authorization.set_sensitive(true);
        let life = expires.duration_since(now).unwrap_or_default();
        let renews = expires.checked_sub(RENEWAL_MARGIN.min(life / 4)).unwrap_or(expires);
        let latest = Latest { authorization: authorization.clone(), renews, expires };
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(latest);
        Ok(authorization)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::UNIX_EPOCH;

    use super::*;

    #[derive(Clone)]
    struct At(Arc<Mutex<u64>>);

    impl Environment for At {
        fn now(&self) -> SystemTime {
            UNIX_EPOCH + Duration::from_secs(*self.0.lock().unwrap())
        }

        fn random(&self) -> u128 {
            0
        }
    }

    fn cache(provider: impl TokenProvider) -> Arc<TokenCache> {
        match Credential::token(provider).0 {
            Kind::Token(cache) => cache,
            _ => unreachable!(),
        }
    }

    /// Yields `t1`, `t2`, … for an hour each, and fails for every second from `broken_from` on.
    fn counting(asked: Arc<AtomicU32>, at: At, breaks_at: u32) -> impl TokenProvider {
        move || {
            let (asked, at) = (asked.clone(), at.clone());
            async move {
                let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::task::yield_now().await;
                if number >= breaks_at {
                    return Err("the issuer is away".into());
                }
                Ok(AccessToken::new(format!("t{number}"), at.now() + Duration::from_secs(3600)))
            }
        }
    }

    #[tokio::test]
    async fn many_callers_ask_once() {
        let (asked, at) = (Arc::new(AtomicU32::new(0)), At(Arc::new(Mutex::new(0))));
        let cache = cache(counting(asked.clone(), at.clone(), u32::MAX));
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..32 {
            let (cache, at) = (cache.clone(), at.clone());
            calls.spawn(async move { cache.authorization(&at).await.unwrap() });
        }
        while let Some(found) = calls.join_next().await {
            assert_eq!(found.unwrap(), "Bearer t1");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_token_is_renewed_before_it_expires_and_the_old_one_serves_meanwhile() {
        let (asked, at) = (Arc::new(AtomicU32::new(0)), At(Arc::new(Mutex::new(0))));
        let cache = cache(counting(asked.clone(), at.clone(), 3));
        assert_eq!(cache.authorization(&at).await.unwrap(), "Bearer t1");
        *at.0.lock().unwrap() = 3299;
        assert_eq!(cache.authorization(&at).await.unwrap(), "Bearer t1");
        *at.0.lock().unwrap() = 3300;
        let (first, second) = tokio::join!(cache.authorization(&at), cache.authorization(&at));
        assert_eq!(
            (first.unwrap(), second.unwrap()),
            ("Bearer t2".parse().unwrap(), "Bearer t1".parse().unwrap())
        );
        *at.0.lock().unwrap() = 3300 + 3599;
        assert_eq!(
            cache.authorization(&at).await.unwrap(),
            "Bearer t2",
            "the issuer is away, the token is not"
        );
        *at.0.lock().unwrap() = 3300 + 3600;
        let error = cache.authorization(&at).await.unwrap_err();
        assert_eq!(error.to_string(), "configuration: the provider has no token: the issuer is away");
    }

    #[tokio::test]
    async fn a_refused_token_is_forgotten() {
        let (asked, at) = (Arc::new(AtomicU32::new(0)), At(Arc::new(Mutex::new(0))));
        let cache = cache(counting(asked, at.clone(), u32::MAX));
        let first = cache.authorization(&at).await.unwrap();
        cache.forget(&first);
        let second = cache.authorization(&at).await.unwrap();
        cache.forget(&first);
        assert_eq!(cache.authorization(&at).await.unwrap(), second);
    }

    #[test]
    fn signatures_come_as_tokens_or_urls() {
        let check = |text: &str, expected: &str| {
            let Credential(Kind::Sas(query)) = Credential::sas(text).unwrap() else { unreachable!() };
            assert_eq!(&*query, expected, "{text}");
        };
        check("sv=1&sig=a%3D", "sv=1&sig=a%3D");
        check(" ?sv=1&sig=a%3D&", "sv=1&sig=a%3D");
        check("https://a.table.core.windows.net/?sv=1&sig=a#x", "sv=1&sig=a");
        for bad in ["", "?", "sv=1", "sig=", "sv=1&sig=a b", "https://a.table.core.windows.net/"] {
            let error = Credential::sas(bad).unwrap_err().to_string();
            assert!(error.contains("shared access signature"), "{error}");
        }
    }
}
