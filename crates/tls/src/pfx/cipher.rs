//! The cryptography of PFX files: derives keys from the password, decrypts the content and verifies its MAC.
//!
//! Programs of today write PBES2 (RFC 8018). Older ones derive keys as described in appendix B of RFC 7292. Promises: a
//! file cannot ask for unbounded work.

use std::num::NonZeroU32;

use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipher, BlockDecryptMut, KeyInit, KeyIvInit};
use ring::{digest, hmac, pbkdf2};

use crate::der::{self, DerReader};
use crate::error::TlsProblem;

/// A hundred times the count that programs write; takes some seconds.
const ITERATION_COUNT_MAX: u32 = 10_000_000;

const PBES2: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0D];
const PBKDF2: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0C];
const SHA1_TRIPLE_DES: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x01, 0x03];
const SHA1_RC2_128: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x01, 0x05];
const SHA1_RC2_40: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x01, 0x06];

const HMAC_SHA1: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02, 0x07];
const HMAC_SHA256: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02, 0x09];
const HMAC_SHA384: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02, 0x0A];
const HMAC_SHA512: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02, 0x0B];

const TRIPLE_DES_CBC: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x03, 0x07];
const AES_128_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x02];
const AES_192_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x16];
const AES_256_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2A];

const SHA1: &[u8] = &[0x2B, 0x0E, 0x03, 0x02, 0x1A];
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const SHA384: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02];
const SHA512: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03];

/// The password in the two encodings from which keys are derived.
pub(super) struct Password {
    /// UTF-8, for PBKDF2.
    text: Vec<u8>,
    /// Big-endian UTF-16 with a terminating zero, for the key derivation of PKCS#12.
    wide: Vec<u8>,
}

impl Password {
    pub(super) fn new(text: &str) -> Password {
        let wide = text.encode_utf16().chain([0]).flat_map(u16::to_be_bytes).collect();
        Password { text: text.as_bytes().to_vec(), wide }
    }

    /// No password. This differs from an empty one, which still has the terminating zero.
    pub(super) fn absent() -> Password {
        Password { text: Vec::new(), wide: Vec::new() }
    }
}

/// Decrypts with `algorithm`, an object identifier followed by its parameters. Invalid padding means that the password is
/// wrong.
pub(super) fn decrypt(
    algorithm: DerReader<'_>,
    encrypted: Vec<u8>,
    password: &Password,
) -> Result<Vec<u8>, TlsProblem> {
    let mut algorithm = algorithm;
    let kind = algorithm.object_identifier().ok_or(TlsProblem::NotPfx)?;
    let parameters = algorithm.enter(der::SEQUENCE).ok_or(TlsProblem::NotPfx)?;
    match kind {
        PBES2 => decrypt_pbes2(parameters, encrypted, password),
        SHA1_TRIPLE_DES => decrypt_sha1::<des::TdesEde3>(parameters, encrypted, password, 24),
        SHA1_RC2_128 => decrypt_sha1::<rc2::Rc2>(parameters, encrypted, password, 16),
        SHA1_RC2_40 => decrypt_sha1::<rc2::Rc2>(parameters, encrypted, password, 5),
        _ => Err(TlsProblem::UnknownProtection(der::dotted(kind))),
    }
}

fn decrypt_pbes2(
    parameters: DerReader<'_>,
    encrypted: Vec<u8>,
    password: &Password,
) -> Result<Vec<u8>, TlsProblem> {
    let read = || {
        let mut parameters = parameters;
        let mut derivation = parameters.enter(der::SEQUENCE)?;
        let derivation_kind = derivation.object_identifier()?;
        let mut cipher = parameters.enter(der::SEQUENCE)?;
        let cipher_kind = cipher.object_identifier()?;
        Some((derivation_kind, derivation, cipher_kind, cipher.expect(der::OCTET_STRING)?.value))
    };
    let (derivation_kind, derivation, cipher_kind, start) = read().ok_or(TlsProblem::NotPfx)?;
    if derivation_kind != PBKDF2 {
        return Err(TlsProblem::UnknownProtection(der::dotted(derivation_kind)));
    }
    let derive = |key_bytes| derive_pbkdf2(derivation, password, key_bytes);
    match cipher_kind {
        AES_128_CBC => decrypt_cbc::<aes::Aes128>(&derive(16)?, start, encrypted),
        AES_192_CBC => decrypt_cbc::<aes::Aes192>(&derive(24)?, start, encrypted),
        AES_256_CBC => decrypt_cbc::<aes::Aes256>(&derive(32)?, start, encrypted),
        TRIPLE_DES_CBC => decrypt_cbc::<des::TdesEde3>(&derive(24)?, start, encrypted),
        _ => Err(TlsProblem::UnknownProtection(der::dotted(cipher_kind))),
    }
}

fn derive_pbkdf2(
    derivation: DerReader<'_>,
    password: &Password,
    key_bytes: usize,
) -> Result<Vec<u8>, TlsProblem> {
    let read = || {
        let mut derivation = derivation;
        let mut parameters = derivation.enter(der::SEQUENCE)?;
        let salt = parameters.expect(der::OCTET_STRING)?.value;
        let iterations = parameters.integer()?;
        if parameters.next_is(der::INTEGER) {
            parameters.any()?; // The length of the key, which the cipher implies.
        }
        let function = match parameters.enter(der::SEQUENCE) {
            Some(mut function) => function.object_identifier()?,
            None => HMAC_SHA1,
        };
        Some((salt, iterations, function))
    };
    let (salt, iterations, function) = read().ok_or(TlsProblem::NotPfx)?;
    let function = match function {
        HMAC_SHA1 => pbkdf2::PBKDF2_HMAC_SHA1,
        HMAC_SHA256 => pbkdf2::PBKDF2_HMAC_SHA256,
        HMAC_SHA384 => pbkdf2::PBKDF2_HMAC_SHA384,
        HMAC_SHA512 => pbkdf2::PBKDF2_HMAC_SHA512,
        _ => return Err(TlsProblem::UnknownProtection(der::dotted(function))),
    };
    let mut key = vec![0; key_bytes];
    pbkdf2::derive(function, check_iterations(iterations)?, salt, &password.text, &mut key);
    Ok(key)
}

fn check_iterations(iterations: u32) -> Result<NonZeroU32, TlsProblem> {
    NonZeroU32::new(iterations).filter(|count| count.get() <= ITERATION_COUNT_MAX).ok_or(TlsProblem::NotPfx)
}

fn decrypt_sha1<C>(
    parameters: DerReader<'_>,
    encrypted: Vec<u8>,
    password: &Password,
    key_bytes: usize,
) -> Result<Vec<u8>, TlsProblem>
where
    C: BlockCipher + BlockDecryptMut + KeyInit,
{
    let mut parameters = parameters;
    let salt = parameters.expect(der::OCTET_STRING).ok_or(TlsProblem::NotPfx)?.value;
    let iterations = parameters.integer().ok_or(TlsProblem::NotPfx)?;
    let digest = Digest { hash: &digest::SHA1_FOR_LEGACY_USE_ONLY, sum: hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY };
    let key = digest.derive(Purpose::Key, password, salt, iterations, key_bytes)?;
    let start = digest.derive(Purpose::Start, password, salt, iterations, 8)?;
    decrypt_cbc::<C>(&key, &start, encrypted)
}

fn decrypt_cbc<C>(key: &[u8], start: &[u8], encrypted: Vec<u8>) -> Result<Vec<u8>, TlsProblem>
where
    C: BlockCipher + BlockDecryptMut + KeyInit,
{
    let cipher = cbc::Decryptor::<C>::new_from_slices(key, start).map_err(|_| TlsProblem::NotPfx)?;
    cipher.decrypt_padded_vec_mut::<Pkcs7>(&encrypted).map_err(|_| TlsProblem::WrongPassword)
}

/// The purpose of a derived key: RFC 7292, B.3.
#[derive(Clone, Copy)]
enum Purpose {
    Key = 1,
    Start = 2,
    Sum = 3,
}

/// A hash function and the MAC that is based on it.
pub(super) struct Digest {
    hash: &'static digest::Algorithm,
    sum: hmac::Algorithm,
}

impl Digest {
    pub(super) fn find(identifier: &[u8]) -> Result<Digest, TlsProblem> {
        Ok(match identifier {
            SHA1 => {
                Digest { hash: &digest::SHA1_FOR_LEGACY_USE_ONLY, sum: hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY }
            }
            SHA256 => Digest { hash: &digest::SHA256, sum: hmac::HMAC_SHA256 },
            SHA384 => Digest { hash: &digest::SHA384, sum: hmac::HMAC_SHA384 },
            SHA512 => Digest { hash: &digest::SHA512, sum: hmac::HMAC_SHA512 },
            _ => return Err(TlsProblem::UnknownProtection(der::dotted(identifier))),
        })
    }

    /// Whether `sum` is the MAC of `data` under the password.
    pub(super) fn verify(
        &self,
        password: &Password,
        salt: &[u8],
        iterations: u32,
        data: &[u8],
        sum: &[u8],
    ) -> Result<bool, TlsProblem> {
        let key = self.derive(Purpose::Sum, password, salt, iterations, self.hash.output_len())?;
        Ok(hmac::verify(&hmac::Key::new(self.sum, &key), data, sum).is_ok())
    }

    /// Derives a key as in RFC 7292, B.2. The comments give the names that the RFC uses.
    fn derive(
        &self,
        purpose: Purpose,
        password: &Password,
        salt: &[u8],
        iterations: u32,
        key_bytes: usize,
    ) -> Result<Vec<u8>, TlsProblem> {
        let iterations = check_iterations(iterations)?.get();
        let block_bytes = self.hash.block_len(); // v
        // Repeat salt and password until each fills whole blocks: I = S || P.
        let mut state = Vec::new();
        for part in [salt, &password.wide] {
            let filled_bytes = part.len().div_ceil(block_bytes) * block_bytes;
            state.extend(part.iter().copied().cycle().take(filled_bytes));
        }
        let diversifier = vec![purpose as u8; block_bytes]; // D
        let mut derived = Vec::with_capacity(key_bytes + self.hash.output_len());
        loop {
            let mut context = digest::Context::new(self.hash);
            context.update(&diversifier);
            context.update(&state);
            let mut hashed = context.finish(); // A
            for _ in 1..iterations {
                hashed = digest::digest(self.hash, hashed.as_ref());
            }
            derived.extend_from_slice(hashed.as_ref());
            if derived.len() >= key_bytes {
                derived.truncate(key_bytes);
                return Ok(derived);
            }
            let addend: Vec<u8> = hashed.as_ref().iter().copied().cycle().take(block_bytes).collect(); // B
            for block in state.chunks_exact_mut(block_bytes) {
                add_and_one(block, &addend);
            }
        }
    }
}

/// Computes `block + addend + 1` on big-endian numbers and drops the carry.
fn add_and_one(block: &mut [u8], addend: &[u8]) {
    let mut carry = 1;
    for (digit, add) in block.iter_mut().zip(addend).rev() {
        let sum = u16::from(*digit) + u16::from(*add) + carry;
        *digit = sum as u8; // The low byte.
        carry = sum >> 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of Bouncy Castle, which most implementations of PKCS#12 share.
    #[test]
    fn keys_are_derived_as_others_derive_them() {
        let check = |identifier, purpose, text, salt: &[u8], iterations, expected: &[u8]| {
            let digest = Digest::find(identifier).ok().unwrap();
            let key = digest.derive(purpose, &Password::new(text), salt, iterations, expected.len());
            assert_eq!(key.ok().unwrap(), expected);
        };
        check(
            SHA1,
            Purpose::Key,
            "smeg",
            &[0x0A, 0x58, 0xCF, 0x64, 0x53, 0x0D, 0x82, 0x3F],
            1,
            &[
                0x8A, 0xAA, 0xE6, 0x29, 0x7B, 0x6C, 0xB0, 0x46, 0x42, 0xAB, 0x5B, 0x07, 0x78, 0x51, 0x28,
                0x4E, 0xB7, 0x12, 0x8F, 0x1A, 0x2A, 0x7F, 0xBC, 0xA3,
            ],
        );
        check(
            SHA1,
            Purpose::Start,
            "smeg",
            &[0x0A, 0x58, 0xCF, 0x64, 0x53, 0x0D, 0x82, 0x3F],
            1,
            &[0x79, 0x99, 0x3D, 0xFE, 0x04, 0x8D, 0x3B, 0x76],
        );
        check(
            SHA1,
            Purpose::Key,
            "queeg",
            &[0x05, 0xDE, 0xC9, 0x59, 0xAC, 0xFF, 0x72, 0xF7],
            1000,
            &[
                0xED, 0x20, 0x34, 0xE3, 0x63, 0x28, 0x83, 0x0F, 0xF0, 0x9D, 0xF1, 0xE1, 0xA0, 0x7D, 0xD3,
                0x57, 0x18, 0x5D, 0xAC, 0x0D, 0x4F, 0x9E, 0xB3, 0xD4,
            ],
        );
    }

    #[test]
    fn a_file_cannot_ask_for_endless_work() {
        for (iterations, is_allowed) in
            [(0, false), (1, true), (ITERATION_COUNT_MAX, true), (ITERATION_COUNT_MAX + 1, false)]
        {
            assert_eq!(check_iterations(iterations).is_ok(), is_allowed, "{iterations}");
        }
    }
}
