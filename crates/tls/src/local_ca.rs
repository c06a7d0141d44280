//! The local authority: issues a certificate for this machine. The authority lives in one directory and nowhere else.
//!
//! Owns the four files below. Promises: the files are reused for as long as they are valid, so that users need to trust
//! the authority only once; each file is complete or absent; only the owner can read the keys; an existing authority is
//! never replaced by one with a different key.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use time::OffsetDateTime;

use crate::certificate::Facts;
use crate::error::{TlsError, TlsProblem};
use crate::{certify, pem};

pub(crate) const SERVER_CERTIFICATE: &str = "server.pem";
pub(crate) const SERVER_KEY: &str = "server.key";
const AUTHORITY_CERTIFICATE: &str = "ca.pem";
const AUTHORITY_KEY: &str = "ca.key";

/// The names in every certificate, in addition to the hosts that the user asks for.
const NAMES: [&str; 4] = ["localhost", "127.0.0.1", "::1", "*.table.localhost"];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const AUTHORITY_DAYS: u32 = 3650;
/// The longest validity that all clients accept.
const SERVER_DAYS: u32 = 397;
/// Replace a certificate that is valid for fewer days than this.
const SERVER_DAYS_LEFT_MIN: u32 = 30;
/// The authority must outlive every certificate that it issues.
const AUTHORITY_DAYS_LEFT_MIN: u32 = SERVER_DAYS + 1;
/// Certificates become valid a little before now, for clients whose clocks are behind.
const BACKDATED: Duration = DAY;
/// About the year 9900. A clock that shows a later time is wrong, and no certificate may end after the year 9999.
const START_MAX: Duration = Duration::from_secs(250_000_000_000);

/// Makes sure that the directory holds a certificate that covers these hosts and stays valid for some time. Issues one if
/// there is none.
pub(crate) fn ensure(
    directory: &Path,
    hosts: &[String],
    now: UnixTime,
    provider: &Arc<CryptoProvider>,
) -> Result<(), TlsError> {
    let files = AuthorityFiles::in_directory(directory);
    let names = names(hosts, &files.server_certificate)?;
    let now = Duration::from_secs(now.as_secs());
    if is_good(&files, &names, now, provider) {
        return Ok(());
    }
    files::create_secret_directory(directory).map_err(|error| TlsProblem::Unwritable(error).of(directory))?;
    let authority = open_authority(&files, now, provider)?;
    issue(&files, &names, now, &authority)?;
    if !is_good(&files, &names, now, provider) {
        return Err(TlsProblem::UnfitAuthority.of(&files.authority_certificate));
    }
    Ok(())
}

/// Tells the user how to make clients trust the authority.
pub(crate) fn how_to_trust(directory: &Path) -> String {
    let file = directory.join(AUTHORITY_CERTIFICATE);
    let file = std::path::absolute(&file).unwrap_or(file);
    let file = file.display();
    format!(
        "The certificate comes from an authority made for this server: {file}\n\
         Clients trust it when their environment says so:\n\
         \x20 REQUESTS_CA_BUNDLE={file}   (Python)\n\
         \x20 NODE_EXTRA_CA_CERTS={file}  (Node.js)\n\
         \x20 SSL_CERT_FILE={file}        (.NET, Go and OpenSSL on Linux)\n\
         or when it is added to the system's trusted roots."
    )
}

struct AuthorityFiles {
    authority_certificate: PathBuf,
    authority_key: PathBuf,
    server_certificate: PathBuf,
    server_key: PathBuf,
}

impl AuthorityFiles {
    fn in_directory(directory: &Path) -> AuthorityFiles {
        AuthorityFiles {
            authority_certificate: directory.join(AUTHORITY_CERTIFICATE),
            authority_key: directory.join(AUTHORITY_KEY),
            server_certificate: directory.join(SERVER_CERTIFICATE),
            server_key: directory.join(SERVER_KEY),
        }
    }
}

/// All names of the certificate, without duplicates.
fn names(hosts: &[String], certificate: &Path) -> Result<Vec<String>, TlsError> {
    let mut names: Vec<String> = Vec::new();
    for name in NAMES.iter().copied().chain(hosts.iter().map(String::as_str)) {
        let name = name.to_ascii_lowercase();
        if as_client_asks(&name).is_none() {
            return Err(TlsProblem::BadHost(name).of(certificate));
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// A name that a client could ask for. For a wildcard this is an arbitrary name that it covers.
fn as_client_asks(name: &str) -> Option<ServerName<'static>> {
    let asked = match name.strip_prefix("*.") {
        Some(domain) => format!("any.{domain}"),
        None => name.to_owned(),
    };
    ServerName::try_from(asked).ok()
}

/// Verifies the certificate as a client would: the key belongs to it, and the authority's certificate verifies it for
/// every name, both now and at the end of the minimum remaining validity.
fn is_good(files: &AuthorityFiles, names: &[String], now: Duration, provider: &Arc<CryptoProvider>) -> bool {
    let Ok(identity) = pem::read(&files.server_certificate, &files.server_key) else { return false };
    let Ok(certified) = certify(identity, &files.server_certificate, &files.server_key, provider) else {
        return false;
    };
    let Ok(authority) = read_authority(files) else { return false };
    let later = now.saturating_add(DAY * SERVER_DAYS_LEFT_MIN);
    // The verifier ignores the dates of trusted roots, so check those here.
    if !is_valid_until(&authority, now, later) {
        return false;
    }
    let mut roots = RootCertStore::empty();
    if roots.add(authority).is_err() {
        return false;
    }
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()
    else {
        return false;
    };
    names.iter().all(|name| {
        let Some(name) = as_client_asks(name) else { return false };
        [now, later].into_iter().all(|time| {
            let time = UnixTime::since_unix_epoch(time);
            verifier.verify_server_cert(&certified.cert[0], &certified.cert[1..], &name, &[], time).is_ok()
        })
    })
}

fn is_valid_until(certificate: &CertificateDer<'_>, now: Duration, later: Duration) -> bool {
    Facts::read(certificate)
        .is_some_and(|facts| unix(facts.not_before) <= now && later <= unix(facts.not_after))
}

fn read_authority(files: &AuthorityFiles) -> Result<CertificateDer<'static>, TlsError> {
    let mut certificates = pem::read_certificates(&files.authority_certificate)?;
    Ok(certificates.swap_remove(0))
}

/// Opens the existing authority, or creates a new one.
fn open_authority(
    files: &AuthorityFiles,
    now: Duration,
    provider: &Arc<CryptoProvider>,
) -> Result<Issuer<'static, KeyPair>, TlsError> {
    let refused =
        |error: rcgen::Error| TlsProblem::Refused(error.to_string()).of(&files.authority_certificate);
    let is_new = !files.authority_certificate.exists();
    let key = if files.authority_key.exists() {
        let text = pem::read_file(&files.authority_key)?;
        KeyPair::from_pem(&String::from_utf8_lossy(&text))
            .map_err(|_| TlsProblem::BadKey.of(&files.authority_key))?
    } else if is_new {
        let key = KeyPair::generate().map_err(refused)?;
        // Write the key before the certificate. After a crash in between, the next start issues a certificate for the
        // key; a certificate without its key would be useless.
        write_secret(&files.authority_key, &key.serialize_pem())?;
        key
    } else {
        return Err(TlsProblem::NoAuthorityKey.of(&files.authority_key));
    };
    let params = authority_params(&key, now);
    if is_new || needs_renewal(files, now, provider)? {
        if !is_new {
            log::warn!("'{}' was about to expire and is renewed", files.authority_certificate.display());
        }
        let certificate = params.self_signed(&key).map_err(refused)?;
        write_public(&files.authority_certificate, &certificate.pem())?;
    }
    Ok(Issuer::new(params, key))
}

/// Whether the authority's certificate expires before a certificate that it would issue now. Fails if the certificate
/// belongs to a different key, because then it is not ours to replace.
fn needs_renewal(
    files: &AuthorityFiles,
    now: Duration,
    provider: &Arc<CryptoProvider>,
) -> Result<bool, TlsError> {
    let identity = pem::read(&files.authority_certificate, &files.authority_key)?;
    certify(identity, &files.authority_certificate, &files.authority_key, provider)?;
    Ok(!is_valid_until(&read_authority(files)?, now, now.saturating_add(DAY * AUTHORITY_DAYS_LEFT_MIN)))
}

/// The same key always gives the same parameters, except for the dates. So a renewed authority still verifies the
/// certificates that it issued before.
fn authority_params(key: &KeyPair, now: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    // One list of trusted roots may contain the authorities of several directories, so give each a different name.
    let fingerprint = ring::digest::digest(&ring::digest::SHA256, key.public_key_raw());
    let mark: String = fingerprint.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, format!("Lazulite local authority {mark}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_dates(&mut params, now, AUTHORITY_DAYS);
    params
}

fn issue(
    files: &AuthorityFiles,
    names: &[String],
    now: Duration,
    authority: &Issuer<'static, KeyPair>,
) -> Result<(), TlsError> {
    let refused = |error: rcgen::Error| TlsProblem::Refused(error.to_string()).of(&files.server_certificate);
    let mut params = CertificateParams::new(names).map_err(refused)?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, "Lazulite");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_dates(&mut params, now, SERVER_DAYS);
    let key = KeyPair::generate().map_err(refused)?;
    let certificate = params.signed_by(&key, authority).map_err(refused)?;
    // A crash between the two writes leaves a key and a certificate that do not match. The next start replaces both.
    write_secret(&files.server_key, &key.serialize_pem())?;
    write_public(&files.server_certificate, &certificate.pem())
}

fn set_dates(params: &mut CertificateParams, now: Duration, days: u32) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    // Certificates store whole seconds and years of four digits.
    let start = Duration::from_secs(now.saturating_sub(BACKDATED).min(START_MAX).as_secs());
    params.not_before = epoch + start;
    params.not_after = epoch + start + DAY * days;
}

fn write_secret(file: &Path, text: &str) -> Result<(), TlsError> {
    files::write_secret(file, text.as_bytes()).map_err(|error| TlsProblem::Unwritable(error).of(file))
}

fn write_public(file: &Path, text: &str) -> Result<(), TlsError> {
    files::write_public(file, text.as_bytes()).map_err(|error| TlsProblem::Unwritable(error).of(file))
}

/// The time since 1970; zero for earlier dates.
fn unix(time: OffsetDateTime) -> Duration {
    Duration::from_secs(u64::try_from(time.unix_timestamp()).unwrap_or(0))
}
