//! Where a server is: scheme, host and port.

use std::fmt;

use http::Uri;

use crate::OutboundError;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    pub is_https: bool,
    /// In lower case; an IPv6 address without its brackets.
    pub host: String,
    pub port: u16,
}

impl Origin {
    /// An address with a user's name or password in it is refused: nobody means to send those.
    pub fn of(uri: &Uri) -> Result<Origin, OutboundError> {
        let wrong = || OutboundError::NoAddress(uri.host().unwrap_or("it").to_owned());
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(wrong());
        }
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        Ok(Origin { is_https, host, port })
    }

    /// The port is left out if it is the usual one.
    pub(crate) fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.is_https, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_https { "https" } else { "http" }, self.host_header())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_read_from_an_address() {
        let check = |uri: &str, expected: Option<&str>| {
            let found = uri.parse::<Uri>().ok().and_then(|uri| Origin::of(&uri).ok());
            assert_eq!(found.map(|origin| origin.to_string()).as_deref(), expected, "{uri}");
        };
        check("http://Example.org/a?b", Some("http://example.org"));
        check("https://example.org:443/", Some("https://example.org"));
        check("https://example.org:80/", Some("https://example.org:80"));
        check("http://[::1]:10000/x", Some("http://[::1]:10000"));
        check("http://user:secret@example.org/", None);
        check("ftp://example.org/", None);
        check("/path", None);
    }
}
