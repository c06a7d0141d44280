//! Reads certificates and keys from PEM files.
//!
//! Promises: never reads more than [`FILE_BYTES_MAX`] of a file. Leaves to others: checking that the key belongs to the
//! certificate.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Identity;
use crate::error::{TlsError, TlsProblem};

/// Far more than any certificate chain needs, yet little enough to read harmlessly when the path names the wrong file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Identity, TlsError> {
    Ok(Identity { chain: read_certificates(certificate)?, key: read_key(key)? })
}

/// Returns at least one certificate, in the order of the file: the server's own must come first.
pub(crate) fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read_file(file)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(TlsProblem::NoCertificate.of(file)),
        Ok(chain) => Ok(chain),
        Err(_) => Err(TlsProblem::NotPem.of(file)),
    }
}

fn read_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read_file(file)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        let text = String::from_utf8_lossy(&bytes);
        let problem = match error {
            // Traditional OpenSSL keys mark encryption with a header, which makes the section invalid Base64.
            _ if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") => {
                TlsProblem::EncryptedKey
            }
            pem::Error::NoItemsFound => TlsProblem::NoKey,
            _ => TlsProblem::NotPem,
        };
        problem.of(file)
    })
}

/// Reads a whole file, of any format, that is expected to be small.
pub(crate) fn read_file(file: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > FILE_BYTES_MAX => Err(TlsProblem::TooLarge.of(file)),
        Ok(_) => Ok(bytes),
        Err(error) => Err(TlsProblem::Unreadable(error).of(file)),
    }
}
