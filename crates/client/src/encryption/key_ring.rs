//! What a key ring is: something that wraps content keys, and unwraps those that it wrapped.
//!
//! The trait can be implemented by a key vault, so its answers may come later; a local key ring answers at once,
//! without an allocation.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::EncryptionError;

pub(super) const KEY_BYTES: usize = 32;

/// Wraps content keys, so that they can be stored beside what they seal.
///
/// A ring holds several keys. New content keys are wrapped with the current one; the others are there to unwrap what
/// they wrapped earlier, so that keys can be exchanged while programs run.
///
/// An implementation must authenticate: `unwrap` must refuse whatever `wrap` did not return for that key id.
///
/// ```
/// use lazulite_client::encryption::{ContentKey, EncryptionError, InMemoryKeyRing, KeyAnswer, KeyRing, WrappedKey};
///
/// /// Counts how often keys are wrapped, and leaves the work to another ring.
/// struct Counted(InMemoryKeyRing, std::sync::atomic::AtomicU64);
///
/// impl KeyRing for Counted {
///     fn wrap<'a>(&'a self, content_key: &'a ContentKey) -> KeyAnswer<'a, WrappedKey> {
///         self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         self.0.wrap(content_key)
///     }
///
///     fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> KeyAnswer<'a, ContentKey> {
///         // A vault would ask its service here.
///         KeyAnswer::later(async move { self.0.unwrap(wrapped).await })
///     }
/// }
/// ```
pub trait KeyRing: Send + Sync {
    /// Wraps a content key with the ring's current key.
    fn wrap<'a>(&'a self, content_key: &'a ContentKey) -> KeyAnswer<'a, WrappedKey>;

    /// Returns the content key that was wrapped. An id that the ring does not have is an
    /// [`EncryptionError::UnknownKey`], and a key that was not wrapped like this an [`EncryptionError::WrongKey`].
    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> KeyAnswer<'a, ContentKey>;
}

/// The key of one write of one entity. Its memory is overwritten when it is dropped, and it is never printed.
#[derive(Clone)]
pub struct ContentKey(Zeroizing<[u8; KEY_BYTES]>);

impl ContentKey {
    /// A new key from the operating system's random numbers.
    pub fn generate() -> Result<ContentKey, EncryptionError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        fill_random(bytes.as_mut())?;
        Ok(ContentKey(bytes))
    }

    /// For implementations of [`KeyRing::unwrap`].
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> ContentKey {
        ContentKey(Zeroizing::new(bytes))
    }

    /// For implementations of [`KeyRing::wrap`].
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKey(..)")
    }
}

/// A content key that only the key ring can read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrappedKey {
    /// Which key of the ring wrapped it: 1 to 256 visible ASCII characters other than `"`, `\`, `;` and `=`.
    pub key_id: String,
    /// How it was wrapped, in the words of the ring; the same characters.
    pub algorithm: String,
    /// The wrapped key, at most 4,096 bytes.
    pub bytes: Vec<u8>,
}

/// What a key ring answers: at once, or later.
#[must_use = "an answer does nothing until it is awaited"]
pub struct KeyAnswer<'a, T>(Timing<'a, T>);

enum Timing<'a, T> {
    Ready(std::future::Ready<Result<T, EncryptionError>>),
    Later(Pin<Box<dyn Future<Output = Result<T, EncryptionError>> + Send + 'a>>),
}

impl<'a, T> KeyAnswer<'a, T> {
    /// An answer that is already there.
    pub fn ready(result: Result<T, EncryptionError>) -> KeyAnswer<'a, T> {
        KeyAnswer(Timing::Ready(std::future::ready(result)))
    }

    /// An answer that a future gives.
    pub fn later(future: impl Future<Output = Result<T, EncryptionError>> + Send + 'a) -> KeyAnswer<'a, T> {
        KeyAnswer(Timing::Later(Box::pin(future)))
    }
}

impl<T> Future for KeyAnswer<'_, T> {
    type Output = Result<T, EncryptionError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().0 {
            Timing::Ready(result) => Pin::new(result).poll(context),
            Timing::Later(future) => future.as_mut().poll(context),
        }
    }
}

pub(super) fn fill_random(bytes: &mut [u8]) -> Result<(), EncryptionError> {
    SystemRandom::new().fill(bytes).map_err(|_| EncryptionError::NoRandomness)
}
