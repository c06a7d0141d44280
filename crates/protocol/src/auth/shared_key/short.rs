//! The short form, which only the Table service uses: it signs four fields and the resource. The Lite scheme signs the
//! date and the resource.

use super::{AccountKey, SIGNATURE_BYTES, Scheme, any_path, decode_signature};

/// The parts of a request that the short form covers, exactly as they were sent.
#[derive(Clone, Copy, Debug)]
pub struct ShortRequest<'a> {
    pub method: &'a str,
    pub content_md5: &'a str,
    pub content_type: &'a str,
    /// `x-ms-date` if it was sent, otherwise `Date`.
    pub date: &'a str,
    /// Without `-secondary`.
    pub account: &'a str,
    /// The path of the request line, still percent-encoded.
    pub path: &'a str,
    pub comp: Option<&'a str>,
}

impl ShortRequest<'_> {
    /// Whether any of the keys made this signature.
    pub fn is_signed_by(&self, keys: &[AccountKey], scheme: Scheme, signature: &str) -> bool {
        let Some(bytes) = decode_signature(signature) else { return false };
        any_path(self.account, self.path, |path| self.verify(path, keys, scheme, &bytes))
    }

    /// The signature in Base64, for a client that sends this request.
    pub fn sign(&self, key: &AccountKey, scheme: Scheme) -> String {
        self.with_pieces(self.path, scheme, |pieces| key.sign(pieces))
    }

    fn verify(
        &self,
        path: &str,
        keys: &[AccountKey],
        scheme: Scheme,
        signature: &[u8; SIGNATURE_BYTES],
    ) -> bool {
        self.with_pieces(path, scheme, |pieces| keys.iter().any(|key| key.verify(pieces, signature)))
    }

    /// Calls `look` with the pieces of the text that is signed.
    fn with_pieces<T>(&self, path: &str, scheme: Scheme, look: impl FnOnce(&[&str]) -> T) -> T {
        let path = if path.is_empty() { "/" } else { path };
        let (comp_name, comp) = match self.comp {
            Some(value) => ("?comp=", value),
            None => ("", ""),
        };
        let full = [
            self.method,
            "\n",
            self.content_md5,
            "\n",
            self.content_type,
            "\n",
            self.date,
            "\n/",
            self.account,
            path,
            comp_name,
            comp,
        ];
        look(match scheme {
            Scheme::SharedKey => &full[..],
            Scheme::SharedKeyLite => &full[6..],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    fn request(path: &'static str) -> ShortRequest<'static> {
        ShortRequest {
            method: "POST",
            content_md5: "",
            content_type: "application/json;odata=nometadata",
            date: "Tue, 21 Sep 2021 00:50:22 GMT",
            account: "devstoreaccount1",
            path,
            comp: None,
        }
    }

    /// The test vectors of the specification, section 8.2.6.
    #[test]
    fn the_published_vectors_verify() {
        use Scheme::*;
        let check = |request: ShortRequest<'_>, scheme, signature: &str| {
            let keys = [AccountKey::from_base64("AAAA").unwrap(), AccountKey::from_base64(KEY).unwrap()];
            assert!(request.is_signed_by(&keys, scheme, signature), "{request:?}");
            assert!(!request.is_signed_by(&keys[..1], scheme, signature));
            let other = ShortRequest { date: "Tue, 21 Sep 2021 00:50:23 GMT", ..request };
            assert!(!other.is_signed_by(&keys, scheme, signature));
            for scheme in [SharedKey, SharedKeyLite] {
                let made = request.sign(&keys[1], scheme);
                assert!(
                    request.is_signed_by(&keys, scheme, &made) && !other.is_signed_by(&keys, scheme, &made)
                );
            }
        };
        check(request("/devstoreaccount1/Tables"), SharedKey, "oSRL1U6GT6H9ozZwtxhmNf81TZ6hYxZt0accxTeX5n8=");
        check(request("/Tables"), SharedKey, "a9OWBhrP50p2bxJAepogFCyaD2c951dGhWvjKDFe9Wk=");
        check(
            request("/devstoreaccount1/mytable(PartitionKey='pk',RowKey='a%20b')"),
            SharedKeyLite,
            "DPn0krVBDSMD+NXjFWM+StsyYF9YTBmI56mV6QY+MK4=",
        );
        check(
            request("/devstoreaccount1/mytable(PartitionKey=%27pk%27,RowKey=%27a%20b%27)"),
            SharedKeyLite,
            "DPn0krVBDSMD+NXjFWM+StsyYF9YTBmI56mV6QY+MK4=",
        );
        let acl = ShortRequest { comp: Some("acl"), ..request("/devstoreaccount1/mytable") };
        check(acl, SharedKeyLite, "SO65cYzWYF7KUbHvdtzgswP3gtUqVlmfCQRhELGu68k=");
        let properties = ShortRequest { comp: Some("properties"), ..request("/devstoreaccount1/") };
        check(properties, SharedKeyLite, "AlV97hd4VHPXdyJuwScqc1tXVjpoSlZmuM3B+MEx0SY=");
    }

    #[test]
    fn a_client_makes_the_published_signatures() {
        let key = AccountKey::from_base64(KEY).unwrap();
        let made = request("/devstoreaccount1/Tables").sign(&key, Scheme::SharedKey);
        assert_eq!(made, "oSRL1U6GT6H9ozZwtxhmNf81TZ6hYxZt0accxTeX5n8=");
        let acl = ShortRequest { comp: Some("acl"), ..request("/devstoreaccount1/mytable") };
        assert_eq!(acl.sign(&key, Scheme::SharedKeyLite), "SO65cYzWYF7KUbHvdtzgswP3gtUqVlmfCQRhELGu68k=");
        let root = request("");
        assert_eq!(root.sign(&key, Scheme::SharedKey), request("/").sign(&key, Scheme::SharedKey));
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        let keys = [AccountKey::from_base64(KEY).unwrap()];
        for signature in ["", "x", "AAAA", &"A".repeat(44), &"A".repeat(400), "é"] {
            assert!(!request("/").is_signed_by(&keys, Scheme::SharedKey, signature));
        }
    }
}
