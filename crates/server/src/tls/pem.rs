//! A certificate and its key from PEM files, and the bounded reading of any such file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Identity;
use super::error::{TlsError, TlsProblem};

/// Far above any chain of certificates; below what would hurt if the path names the wrong file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

pub fn read(certificate: &Path, key: &Path) -> Result<Identity, TlsError> {
    Ok(Identity { chain: read_certificates(certificate)?, key: read_key(key)? })
}

/// At least one; the server's own comes first.
pub fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read_file(file)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(TlsProblem::NoCertificate.of(file)),
        Ok(chain) => Ok(chain),
        Err(_) => Err(TlsProblem::NotPem.of(file)),
    }
}

pub fn read_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read_file(file)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        let text = String::from_utf8_lossy(&bytes);
        let problem = match error {
            // The old form says it in a header, which makes the section unreadable as Base64.
            _ if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") => {
                TlsProblem::EncryptedKey
            }
            pem::Error::NoItemsFound => TlsProblem::NoKey,
            _ => TlsProblem::NotPem,
        };
        problem.of(file)
    })
}

pub fn read_file(file: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > FILE_BYTES_MAX => Err(TlsProblem::TooLarge.of(file)),
        Ok(_) => Ok(bytes),
        Err(error) => Err(TlsProblem::Unreadable(error).of(file)),
    }
}
