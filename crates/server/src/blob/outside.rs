//! Sources of copies on other servers: which addresses are allowed, and how they are read.
//!
//! Promises: nothing is asked unless the operator has allowed its address (`--copy-from`). Redirects are not followed. An entry
//! that names a host allows that host wherever it is; an entry with a star allows only public addresses, so that nobody reaches
//! this machine or its network through a name. Every step has a time limit, a body is read piece by piece, and it must say how long
//! it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use async_trait::async_trait;
use blobs::Upload;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH,
    CONTENT_TYPE, HeaderMap, HeaderName, RANGE,
};
use http::{HeaderValue, Request, Response, Uri};
use outbound::{NoBody, Origin, Outbound, OutboundBody, OutboundError, TimeLimits};
use protocol::blob::Headers;
use protocol::blob::copy::{CopySource, source_failure};
use protocol::blob::properties::HttpProperties;
use protocol::blob::range::ByteRange;
use protocol::common::Metadata;
use protocol::common::metadata::HEADER_PREFIX;
use protocol::{ErrorCode, ServiceError};

use crate::front::header_names::X_MS_VERSION;

/// Conditions on the source, and what a server calls them.
const CONDITIONS: [(&str, HeaderName); 4] = [
    ("x-ms-source-if-match", http::header::IF_MATCH),
    ("x-ms-source-if-none-match", http::header::IF_NONE_MATCH),
    ("x-ms-source-if-modified-since", http::header::IF_MODIFIED_SINCE),
    ("x-ms-source-if-unmodified-since", http::header::IF_UNMODIFIED_SINCE),
];
/// A server says in this header why it refuses.
const ERROR_CODE: &str = "x-ms-error-code";

/// Which addresses outside this server copies may come from.
pub struct CopySources {
    entries: Vec<CopyEntry>,
    /// For hosts that are named.
    named: Outbound<NoBody>,
    /// For hosts that a star stands for.
    public: Outbound<NoBody>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct CopyEntry {
    is_https: bool,
    /// Without a star: the host itself. With one: every host that ends with this.
    host: String,
    has_star: bool,
    /// `None`: any port.
    port: Option<u16>,
}

/// How the operator has allowed an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Allowed {
    /// By its own name: whoever names it means it.
    ByName,
    /// By a star, which may fit a name of this server too.
    ByStar,
}

impl CopySources {
    /// Each text is `http://HOST[:PORT]` or `https://HOST[:PORT]`, where the host may begin with a star, or be one. An error is a
    /// sentence.
    pub fn new<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<CopySources, String> {
        let entries = texts.into_iter().map(CopyEntry::parse).collect::<Result<Vec<_>, _>>()?;
        let limits = TimeLimits::default();
        Ok(CopySources {
            entries,
            named: Outbound::new(limits, Arc::new(|_| true)),
            public: Outbound::new(limits, Arc::new(is_public)),
        })
    }

    pub(crate) fn allows(&self, source: &CopySource<'_>) -> Option<Allowed> {
        let origin = origin_of(source)?;
        let fits = |entry: &&CopyEntry| entry.fits(&origin);
        let mut found = self.entries.iter().filter(fits).peekable();
        found.peek()?;
        Some(if found.all(|entry| entry.has_star) { Allowed::ByStar } else { Allowed::ByName })
    }

    /// Asks for the source, or for a range of it, with the conditions that the request has on it.
    pub(crate) async fn open(
        &self,
        source: &CopySource<'_>,
        headers: &Headers<'_>,
        range: Option<ByteRange>,
        version: &str,
    ) -> Result<OutsideSource, ServiceError> {
        let unknown = || ServiceError::from(ErrorCode::CannotVerifyCopySource);
        let client = match self.allows(source).ok_or_else(unknown)? {
            Allowed::ByName => &self.named,
            Allowed::ByStar => &self.public,
        };
        let request = to_request(source, headers, range, version).ok_or_else(unknown)?;
        let answer = client.send(request).await.map_err(unreachable)?;
        let status = answer.status().as_u16();
        match (status, range) {
            (200, None) | (206, Some(_)) => OutsideSource::read(answer, range),
            // A server that does not know ranges would send everything.
            (200..400, _) if status != 304 => Err(unknown()),
            _ => {
                let code = answer.headers().get(ERROR_CODE).and_then(|code| code.to_str().ok());
                Err(source_failure(status, code, None))
            }
        }
    }
}

impl CopyEntry {
    fn parse(text: &str) -> Result<CopyEntry, String> {
        let wrong = || {
            format!(
                "--copy-from takes http://HOST, https://HOST or https://*.DOMAIN, with or without a port, and not '{text}'"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let is_https = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(wrong()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() || rest.contains(['/', '?', '#', '@', ' ']) {
            return Err(wrong());
        }
        // The colons inside an IPv6 address in brackets separate no port.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().map_err(|_| wrong())?)),
            _ => (rest, None),
        };
        let has_star = host.starts_with('*');
        let host = host.trim_start_matches('*').trim_matches(['[', ']']).to_ascii_lowercase();
        let is_domain = host.is_empty() || host.starts_with('.');
        if host.contains('*') || (has_star && !is_domain) || (!has_star && host.is_empty()) {
            return Err(wrong());
        }
        Ok(CopyEntry { is_https, host, has_star, port })
    }

    fn fits(&self, origin: &Origin) -> bool {
        let host_fits = match self.has_star {
            true => origin.host.ends_with(&self.host),
            false => origin.host == self.host,
        };
        let usual = if origin.is_https { 443 } else { 80 };
        // A named host without a port means the usual one; a star means any.
        let port_fits = match self.port {
            Some(port) => origin.port == port,
            None => self.has_star || origin.port == usual,
        };
        self.is_https == origin.is_https && host_fits && port_fits
    }
}

fn origin_of(source: &CopySource<'_>) -> Option<Origin> {
    let scheme = if source.is_https { "https" } else { "http" };
    let uri = [scheme, "://", source.authority, "/"].concat().parse::<Uri>().ok()?;
    Origin::of(&uri).ok()
}

/// Whether everybody reaches the address: it is neither this machine's nor that of a private network.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_public_v4(mapped),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_reserved = first == 0 || first >= 240 || (first == 192 && second == 0 && third == 0);
    let is_benchmark = first == 198 && (18..20).contains(&second);
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || is_shared
        || is_reserved
        || is_benchmark)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Of all addresses, these are the ones that are given to networks of the Internet.
    let first = address.segments()[0];
    let is_global = first & 0xe000 == 0x2000;
    // 6to4 and Teredo lead to an IPv4 address, which may be any.
    let is_tunnel = first == 0x2002 || (first == 0x2001 && address.segments()[1] == 0);
    let is_documentation = first == 0x2001 && address.segments()[1] == 0xdb8;
    is_global && !is_tunnel && !is_documentation
}

fn to_request(
    source: &CopySource<'_>,
    headers: &Headers<'_>,
    range: Option<ByteRange>,
    version: &str,
) -> Option<Request<NoBody>> {
    let scheme = if source.is_https { "https" } else { "http" };
    let query = if source.query.is_empty() { String::new() } else { format!("?{}", source.query) };
    let uri = [scheme, "://", source.authority, source.path, &query].concat();
    let mut request = Request::get(uri).header(X_MS_VERSION, version);
    for (name, standard) in CONDITIONS {
        if let Some(value) = headers.get(name) {
            request = request.header(standard, value);
        }
    }
    if let Some(ByteRange { first, last }) = range {
        let last = last.map(|last| last.to_string()).unwrap_or_default();
        request = request.header(RANGE, format!("bytes={first}-{last}"));
    }
    if let Some(token) = source.bearer {
        let mut token = HeaderValue::try_from(["Bearer ", token].concat()).ok()?;
        token.set_sensitive(true);
        request = request.header(AUTHORIZATION, token);
    }
    request.body(NoBody).ok()
}

fn unreachable(error: OutboundError) -> ServiceError {
    ServiceError::with_source(ErrorCode::CannotVerifyCopySource, error)
}

/// A source that answers.
pub(crate) struct OutsideSource {
    /// Of the whole source, or of the range that was asked for.
    pub(crate) length: u64,
    pub(crate) http: HttpProperties,
    pub(crate) metadata: Metadata,
    body: OutboundBody,
    received: u64,
}

impl OutsideSource {
    fn read(answer: Response<OutboundBody>, range: Option<ByteRange>) -> Result<OutsideSource, ServiceError> {
        let (mut parts, body) = answer.into_parts();
        read_as_text(&mut parts.headers);
        let headers = &parts.headers;
        let unknown = || ServiceError::from(ErrorCode::CannotVerifyCopySource);
        let length = text(headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let length: u64 = length.ok_or_else(unknown)?;
        if let Some(ByteRange { first, last: Some(last) }) = range
            && length != last - first + 1
        {
            return Err(ErrorCode::InvalidRange.into());
        }
        let boxed = |name: &HeaderName| text(headers, name).map(Box::from);
        let http = HttpProperties {
            content_type: boxed(&CONTENT_TYPE),
            content_encoding: boxed(&CONTENT_ENCODING),
            content_language: boxed(&CONTENT_LANGUAGE),
            content_disposition: boxed(&CONTENT_DISPOSITION),
            cache_control: boxed(&CACHE_CONTROL),
            content_md5: None,
        };
        let named = headers.iter().filter_map(|(name, value)| {
            Some((name.as_str().strip_prefix(HEADER_PREFIX)?, header_text(value)))
        });
        let metadata = Metadata::read(named).map_err(|_| unknown())?;
        Ok(OutsideSource { length, http, metadata, body, received: 0 })
    }
}

/// Makes every header's value UTF-8. As in requests, bytes that are not are read as Latin-1.
fn read_as_text(headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        let bytes = value.as_bytes();
        if std::str::from_utf8(bytes).is_ok() {
            continue;
        }
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        if let Ok(text) = HeaderValue::try_from(text) {
            *value = text;
        }
    }
}

/// A header's value, after [`read_as_text`].
fn header_text(value: &HeaderValue) -> &str {
    // The replacement is a text that no step accepts.
    std::str::from_utf8(value.as_bytes()).unwrap_or("\u{FFFD}")
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).map(header_text)
}

#[async_trait]
impl Upload for OutsideSource {
    async fn next(&mut self) -> Option<Result<Bytes, ServiceError>> {
        match self.body.next().await {
            Some(Ok(piece)) => {
                self.received += piece.len() as u64;
                Some(Ok(piece))
            }
            Some(Err(error)) => Some(Err(unreachable(error))),
            // The client counts too; but what is stored must not depend on it.
            None if self.received != self.length => Some(Err(ErrorCode::CannotVerifyCopySource.into())),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(url: &str) -> Origin {
        Origin::of(&url.parse().unwrap()).unwrap()
    }

    #[test]
    fn entries_allow_what_they_say() {
        let check = |entry: &str, url: &str, expected: bool| {
            let entry = CopyEntry::parse(entry).unwrap();
            assert_eq!(entry.fits(&source(url)), expected, "{entry:?} {url}");
        };
        check("https://example.org", "https://example.org/x", true);
        check("https://Example.org/", "https://EXAMPLE.org/x", true);
        check("https://example.org", "http://example.org/x", false);
        check("https://example.org", "https://example.org:444/x", false);
        check("https://example.org", "https://evil.example.org/x", false);
        check("http://127.0.0.1:10000", "http://127.0.0.1:10000/x", true);
        check("http://[::1]:10000", "http://[::1]:10000/x", true);
        check("https://*.blob.core.windows.net", "https://a.blob.core.windows.net/x", true);
        check("https://*.blob.core.windows.net", "https://blob.core.windows.net/x", false);
        check("https://*.blob.core.windows.net", "https://evilblob.core.windows.net/x", false);
        check("https://*", "https://example.org:444/x", true);
        check("https://*", "http://example.org/x", false);
        for wrong in [
            "",
            "*",
            "example.org",
            "ftp://x",
            "https://",
            "https://a*b",
            "https://*b",
            "http://u@x",
            "http://x/y",
        ] {
            assert!(CopyEntry::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_star_allows_only_public_addresses() {
        for near in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "2002:7f00:1::",
            "2001::1",
            "64:ff9b::7f00:1",
            "2001:db8::1",
        ] {
            assert!(!is_public(near.parse().unwrap()), "{near}");
        }
        for far in ["8.8.8.8", "20.60.1.1", "2603:1030::1", "2a00:1450::1", "::ffff:8.8.8.8"] {
            assert!(is_public(far.parse().unwrap()), "{far}");
        }
    }
}
