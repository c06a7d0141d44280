//! What can be wrong with the files of a certificate, each as one sentence for the person who can mend it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Its text names the file and says what is wrong with it.
#[derive(Debug)]
pub struct TlsError {
    pub file: PathBuf,
    pub problem: TlsProblem,
}

#[derive(Debug)]
pub enum TlsProblem {
    Unreadable(io::Error),
    Unwritable(io::Error),
    TooLarge,
    NotPem,
    NoCertificate,
    NoKey,
    /// The key has a password of its own.
    EncryptedKey,
    BadCertificate,
    BadKey,
    /// The certificate is not for the key in that file.
    KeyMismatch(PathBuf),
    NotPfx,
    WrongPassword,
    /// A PFX file protected in a way that we do not know; its object identifier.
    UnknownProtection(String),
    /// A name that cannot stand in a certificate.
    BadHost(String),
    /// The authority is to issue a certificate, but its key is not there.
    NoAuthorityKey,
    /// A certificate issued with the authority's key is not one that its certificate vouches for.
    UnfitAuthority,
    /// The cryptographic library refuses; it does not do so with sound input.
    Refused(String),
}

impl TlsProblem {
    pub(super) fn of(self, file: &Path) -> TlsError {
        TlsError { file: file.to_owned(), problem: self }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.problem {
            TlsProblem::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => {
                write!(out, "there is no file '{file}'")
            }
            TlsProblem::Unreadable(error) => write!(out, "cannot read '{file}': {error}"),
            TlsProblem::Unwritable(error) => write!(out, "cannot write '{file}': {error}"),
            TlsProblem::TooLarge => write!(out, "'{file}' is too large to be a certificate or a key"),
            TlsProblem::NotPem => write!(out, "'{file}' is not in PEM form, or is damaged"),
            TlsProblem::NoCertificate => {
                write!(out, "'{file}' contains no certificate; in PEM form it starts with BEGIN CERTIFICATE")
            }
            TlsProblem::NoKey => {
                write!(out, "'{file}' contains no private key; in PEM form it starts with BEGIN PRIVATE KEY")
            }
            TlsProblem::EncryptedKey => write!(
                out,
                "the private key in '{file}' is encrypted: decrypt it with 'openssl pkey', or put it into a PFX file"
            ),
            TlsProblem::BadCertificate => {
                write!(out, "the certificate in '{file}' is damaged or of an unknown kind")
            }
            // Java leaves the public half out, and ring does not compute it.
            TlsProblem::BadKey => write!(
                out,
                "the private key in '{file}' is damaged, of an unknown kind, or an elliptic curve's without its public \
                 half, which 'openssl pkey' adds"
            ),
            TlsProblem::KeyMismatch(key) if *key == self.file => {
                write!(out, "no certificate in '{file}' belongs to the private key beside it")
            }
            TlsProblem::KeyMismatch(key) => {
                write!(
                    out,
                    "the private key in '{}' is not the key of the certificate in '{file}'",
                    key.display()
                )
            }
            TlsProblem::NotPfx => write!(out, "'{file}' is not a PFX (PKCS#12) file, or is damaged"),
            TlsProblem::WrongPassword => write!(out, "the password does not open '{file}'"),
            TlsProblem::UnknownProtection(identifier) => write!(
                out,
                "'{file}' is protected in a way that is not supported ({identifier}): export it anew with AES-256 and \
                 SHA-256"
            ),
            TlsProblem::BadHost(host) => {
                write!(out, "'{host}' is not a host name or address that the certificate '{file}' could name")
            }
            TlsProblem::NoAuthorityKey => write!(
                out,
                "the server needs a new certificate, but the key of the local authority, '{file}', is missing: restore \
                 it, or remove its directory to make and trust a new authority"
            ),
            TlsProblem::UnfitAuthority => write!(
                out,
                "'{file}' does not vouch for the certificates issued in its name: remove its directory to make and trust \
                 a new authority"
            ),
            TlsProblem::Refused(reason) => write!(out, "cannot use the certificate '{file}': {reason}"),
        }
    }
}

impl std::error::Error for TlsError {}
