//! Everything that can be wrong with certificate files, each explained in one sentence that helps to fix it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a certificate cannot be used. The text names the file and says what is wrong with it.
#[derive(Debug)]
pub struct TlsError {
    file: PathBuf,
    problem: TlsProblem,
}

#[derive(Debug)]
pub(crate) enum TlsProblem {
    Unreadable(io::Error),
    Unwritable(io::Error),
    TooLarge,
    NotPem,
    NoCertificate,
    NoKey,
    /// The key is protected by a password of its own.
    EncryptedKey,
    BadCertificate,
    BadKey,
    /// The key in this file does not belong to the certificate.
    KeyMismatch(PathBuf),
    #[cfg(feature = "pfx")]
    NotPfx,
    #[cfg(feature = "pfx")]
    WrongPassword,
    /// The PFX file uses an algorithm that we do not support. Holds its object identifier.
    #[cfg(feature = "pfx")]
    UnknownProtection(String),
    /// This build does not include the reader of PFX files.
    #[cfg(not(feature = "pfx"))]
    PfxNotBuilt,
    /// A certificate cannot contain this host name.
    BadHost(String),
    /// The local authority must issue a certificate, but its key is missing.
    NoAuthorityKey,
    /// The authority's certificate does not verify a certificate that was just issued with the authority's key.
    UnfitAuthority,
    /// The cryptographic library refuses the input. We know of no sound input that it refuses.
    Refused(String),
}

impl TlsProblem {
    pub(crate) fn of(self, file: &Path) -> TlsError {
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
            // Java omits the public half of elliptic curve keys, and ring does not compute it.
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
            #[cfg(feature = "pfx")]
            TlsProblem::NotPfx => write!(out, "'{file}' is not a PFX (PKCS#12) file, or is damaged"),
            #[cfg(feature = "pfx")]
            TlsProblem::WrongPassword => write!(out, "the password does not open '{file}'"),
            #[cfg(feature = "pfx")]
            TlsProblem::UnknownProtection(identifier) => write!(
                out,
                "'{file}' is protected in a way that is not supported ({identifier}): export it anew with AES-256 and \
                 SHA-256"
            ),
            #[cfg(not(feature = "pfx"))]
            TlsProblem::PfxNotBuilt => write!(
                out,
                "cannot read '{file}': this build does not read PFX files. Build with '--features pfx', or convert the \
                 file with 'openssl pkcs12 -nodes' and pass --cert and --key"
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
