//! Reads a certificate and its key from a PFX file (PKCS#12, RFC 7292).
//!
//! Reads the files that OpenSSL, Windows and Java write today (PBES2 with AES and SHA-2) and those that they wrote before
//! (RC2 and triple DES with SHA-1). `docs/decisions/0006-pfx.md` says why we do not use a library. Promises: never
//! panics, whatever the bytes; verifies the MAC, if the file has one, before it reads the content. Leaves to
//! `cipher`: the cryptography.

mod cipher;

use std::path::Path;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::Identity;
use crate::certificate::Facts;
use crate::der::{self, DerReader};
use crate::error::{TlsError, TlsProblem};
use crate::pem;
use cipher::{Digest, Password};

const DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01];
const ENCRYPTED_DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x06];
const KEY_BAG: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x0A, 0x01, 0x01];
const SHROUDED_KEY_BAG: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x0A, 0x01, 0x02];
const CERTIFICATE_BAG: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x0A, 0x01, 0x03];
const X509_CERTIFICATE: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x16, 0x01];

const VERSION: u32 = 3;

pub(crate) fn read(file: &Path, password: &str, provider: &CryptoProvider) -> Result<Identity, TlsError> {
    let bytes = pem::read_file(file)?;
    let contents = open(&bytes, password).map_err(|problem| problem.of(file))?;
    choose(contents, file, provider)
}

/// All certificates and keys of a PFX file, in the order of the file.
#[derive(Default)]
struct Contents {
    certificates: Vec<CertificateDer<'static>>,
    keys: Vec<PrivatePkcs8KeyDer<'static>>,
}

/// Picks the first key that has a certificate, and builds the certificate's chain. Compares public keys to find the
/// certificate, because the attributes that link it to its key are optional.
fn choose(contents: Contents, file: &Path, provider: &CryptoProvider) -> Result<Identity, TlsError> {
    if contents.certificates.is_empty() {
        return Err(TlsProblem::NoCertificate.of(file));
    }
    if contents.keys.is_empty() {
        return Err(TlsProblem::NoKey.of(file));
    }
    for key in contents.keys {
        let key = PrivateKeyDer::Pkcs8(key);
        let signing = provider.key_provider.load_private_key(key.clone_key());
        let signing = signing.map_err(|_| TlsProblem::BadKey.of(file))?;
        let is_own = |certificate: &&CertificateDer<'static>| {
            CertifiedKey::new(vec![(*certificate).clone()], signing.clone()).keys_match().is_ok()
        };
        if let Some(own) = contents.certificates.iter().find(is_own) {
            let chain = chain(own, &contents.certificates);
            return Ok(Identity { chain, key });
        }
    }
    Err(TlsProblem::KeyMismatch(file.to_owned()).of(file))
}

/// The chain from `own` towards its root. Leaves the root out: clients trust only roots that they already have.
fn chain(own: &CertificateDer<'static>, all: &[CertificateDer<'static>]) -> Vec<CertificateDer<'static>> {
    let mut chain = vec![own.clone()];
    // Each round adds a certificate that the chain does not contain yet, so the loop ends even if the issuers form a
    // circle.
    while let Some(last) = chain.last().and_then(|last| Facts::read(last)) {
        let issuer = all.iter().find(|candidate| {
            let facts = Facts::read(candidate);
            let is_next = facts.is_some_and(|facts| facts.subject == last.issuer && !facts.is_self_issued());
            is_next && !chain.contains(candidate)
        });
        let Some(issuer) = issuer else { break };
        chain.push(issuer.clone());
    }
    chain
}

fn open(bytes: &[u8], password: &str) -> Result<Contents, TlsProblem> {
    let (safe, integrity) = read_outer(bytes).ok_or(TlsProblem::NotPfx)?;
    let password = match integrity {
        None => Password::new(password),
        Some(integrity) => integrity.check(&safe, password)?,
    };
    let mut contents = Contents::default();
    let mut parts = DerReader::new(&safe).enter(der::SEQUENCE).ok_or(TlsProblem::NotPfx)?;
    while !parts.is_empty() {
        let bags = read_part(&mut parts, &password)?;
        read_bags(&bags, &password, &mut contents)?;
    }
    Ok(contents)
}

/// The MAC over the content, and how to derive its key from the password.
struct Integrity<'a> {
    algorithm: &'a [u8],
    sum: &'a [u8],
    salt: &'a [u8],
    iterations: u32,
}

fn read_outer(bytes: &[u8]) -> Option<(Vec<u8>, Option<Integrity<'_>>)> {
    let mut outer = DerReader::new(bytes).enter(der::SEQUENCE)?;
    if outer.integer()? != VERSION {
        return None;
    }
    let mut content = outer.enter(der::SEQUENCE)?;
    if content.object_identifier()? != DATA {
        // The content is signed with a key instead of a MAC. No common program writes such files.
        return None;
    }
    let safe = content.enter(der::CONTEXT_0)?.octets(der::OCTET_STRING)?;
    if outer.is_empty() {
        return Some((safe, None));
    }
    let mut integrity = outer.enter(der::SEQUENCE)?;
    let mut digest = integrity.enter(der::SEQUENCE)?;
    let algorithm = digest.enter(der::SEQUENCE)?.object_identifier()?;
    let sum = digest.expect(der::OCTET_STRING)?.value;
    let salt = integrity.expect(der::OCTET_STRING)?.value;
    let iterations = if integrity.is_empty() { 1 } else { integrity.integer()? };
    Some((safe, Some(Integrity { algorithm, sum, salt, iterations })))
}

impl Integrity<'_> {
    /// Returns the password in the form that matches the MAC.
    fn check(&self, safe: &[u8], password: &str) -> Result<Password, TlsProblem> {
        let digest = Digest::find(self.algorithm)?;
        // An absent password and an empty one derive different keys, and programs disagree on which of them to use.
        let absent = password.is_empty().then(Password::absent);
        for password in [Some(Password::new(password)), absent].into_iter().flatten() {
            if digest.verify(&password, self.salt, self.iterations, safe, self.sum)? {
                return Ok(password);
            }
        }
        Err(TlsProblem::WrongPassword)
    }
}

/// Reads one part of the safe and decrypts it if necessary. The result is a sequence of bags.
fn read_part(parts: &mut DerReader<'_>, password: &Password) -> Result<Vec<u8>, TlsProblem> {
    let mut part = parts.enter(der::SEQUENCE).ok_or(TlsProblem::NotPfx)?;
    let kind = part.object_identifier().ok_or(TlsProblem::NotPfx)?;
    let mut content = part.enter(der::CONTEXT_0).ok_or(TlsProblem::NotPfx)?;
    if kind == DATA {
        return content.octets(der::OCTET_STRING).ok_or(TlsProblem::NotPfx);
    }
    if kind != ENCRYPTED_DATA {
        return Err(TlsProblem::UnknownProtection(der::dotted(kind)));
    }
    let mut read = || {
        let mut data = content.enter(der::SEQUENCE)?;
        data.integer()?;
        let mut data = data.enter(der::SEQUENCE)?;
        data.object_identifier()?;
        Some((data.enter(der::SEQUENCE)?, data.octets(der::CONTEXT_0_PRIMITIVE)?))
    };
    let (algorithm, encrypted) = read().ok_or(TlsProblem::NotPfx)?;
    cipher::decrypt(algorithm, encrypted, password)
}

fn read_bags(bags: &[u8], password: &Password, contents: &mut Contents) -> Result<(), TlsProblem> {
    let mut bags = DerReader::new(bags).enter(der::SEQUENCE).ok_or(TlsProblem::NotPfx)?;
    while !bags.is_empty() {
        let mut bag = bags.enter(der::SEQUENCE).ok_or(TlsProblem::NotPfx)?;
        let kind = bag.object_identifier().ok_or(TlsProblem::NotPfx)?;
        let mut value = bag.enter(der::CONTEXT_0).ok_or(TlsProblem::NotPfx)?;
        match kind {
            CERTIFICATE_BAG => {
                let certificate = read_certificate(value).ok_or(TlsProblem::NotPfx)?;
                contents.certificates.extend(certificate);
            }
            KEY_BAG => {
                let key = value.expect(der::SEQUENCE).ok_or(TlsProblem::NotPfx)?;
                contents.keys.push(PrivatePkcs8KeyDer::from(key.whole.to_vec()));
            }
            SHROUDED_KEY_BAG => {
                let mut shrouded = value.enter(der::SEQUENCE).ok_or(TlsProblem::NotPfx)?;
                let algorithm = shrouded.enter(der::SEQUENCE).ok_or(TlsProblem::NotPfx)?;
                let encrypted = shrouded.octets(der::OCTET_STRING).ok_or(TlsProblem::NotPfx)?;
                let key = cipher::decrypt(algorithm, encrypted, password)?;
                contents.keys.push(PrivatePkcs8KeyDer::from(key));
            }
            // Ignore revocation lists and other secrets.
            _ => {}
        }
    }
    Ok(())
}

/// The outer `None` is a malformed bag; the inner `None` is a certificate of a kind that TLS does not use.
fn read_certificate(mut value: DerReader<'_>) -> Option<Option<CertificateDer<'static>>> {
    let mut bag = value.enter(der::SEQUENCE)?;
    if bag.object_identifier()? != X509_CERTIFICATE {
        return Some(None);
    }
    let certificate = bag.enter(der::CONTEXT_0)?.octets(der::OCTET_STRING)?;
    Some(Some(CertificateDer::from(certificate)))
}
