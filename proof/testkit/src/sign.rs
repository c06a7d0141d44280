//! Shared Key and Shared Key Lite for the Table service, written from the published string-to-sign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

pub const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
pub const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    SharedKey,
    SharedKeyLite,
}

impl Scheme {
    pub fn name(self) -> &'static str {
        match self {
            Scheme::SharedKey => "SharedKey",
            Scheme::SharedKeyLite => "SharedKeyLite",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    pub account: String,
    pub key: String,
}

impl Credentials {
    pub fn emulator() -> Credentials {
        Credentials { account: EMULATOR_ACCOUNT.to_owned(), key: EMULATOR_KEY.to_owned() }
    }

    pub fn new(account: &str, key: &str) -> Credentials {
        Credentials { account: account.to_owned(), key: key.to_owned() }
    }
}

/// The text to sign with HMAC. `target` is the request target exactly as on the request line.
pub fn string_to_sign(
    scheme: Scheme,
    account: &str,
    method: &str,
    target: &str,
    content_md5: &str,
    content_type: &str,
    date: &str,
) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = if path.is_empty() { "/" } else { path };
    let mut resource = format!("/{account}{path}");
    if let Some(comp) = query.split('&').find_map(|pair| pair.strip_prefix("comp=")) {
        resource.push_str("?comp=");
        resource.push_str(comp);
    }
    match scheme {
        Scheme::SharedKey => format!("{method}\n{content_md5}\n{content_type}\n{date}\n{resource}"),
        Scheme::SharedKeyLite => format!("{date}\n{resource}"),
    }
}

pub fn signature(key: &str, text: &str) -> String {
    let key = STANDARD.decode(key).expect("account keys are Base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Tue, 21 Sep 2021 00:50:22 GMT";

    #[track_caller]
    fn check(scheme: Scheme, method: &str, target: &str, content_type: &str, expected: &str) {
        let text = string_to_sign(scheme, EMULATOR_ACCOUNT, method, target, "", content_type, DATE);
        assert_eq!(signature(EMULATOR_KEY, &text), expected, "{text}");
    }

    #[test]
    fn the_published_vectors_verify() {
        let (full, lite) = (Scheme::SharedKey, Scheme::SharedKeyLite);
        let json = "application/json;odata=nometadata";
        check(full, "POST", "/devstoreaccount1/Tables", json, "oSRL1U6GT6H9ozZwtxhmNf81TZ6hYxZt0accxTeX5n8=");
        check(full, "POST", "/Tables", json, "a9OWBhrP50p2bxJAepogFCyaD2c951dGhWvjKDFe9Wk=");
        let entity = "/devstoreaccount1/mytable(PartitionKey='pk',RowKey='a%20b')";
        check(lite, "GET", entity, "", "DPn0krVBDSMD+NXjFWM+StsyYF9YTBmI56mV6QY+MK4=");
        let acl = "/devstoreaccount1/mytable?comp=acl";
        check(lite, "GET", acl, "", "SO65cYzWYF7KUbHvdtzgswP3gtUqVlmfCQRhELGu68k=");
        let properties = "/devstoreaccount1/?restype=service&comp=properties";
        check(lite, "GET", properties, "", "AlV97hd4VHPXdyJuwScqc1tXVjpoSlZmuM3B+MEx0SY=");
    }
}
