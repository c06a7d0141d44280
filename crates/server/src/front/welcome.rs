//! What a person sees who opens the address of a service in a browser: what this is, and where the explorer is.
//!
//! Promises: programs see no difference. The page answers only requests that would be refused, for the root of the port,
//! without credentials or a query, from something that wants to show a page. Of what the request says, the page repeats
//! the host at most, and only if it is a plain name or address.

use std::net::SocketAddr;

use protocol::auth::ServiceKind;

use super::head::RequestHead;
use super::header_names::{X_MS_DATE, X_MS_VERSION};
use super::respond;
use crate::http::body::AnswerBody;
use crate::http::header_names::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, NO_SNIFF, REFERRER_POLICY,
};
use crate::http::response::Response;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Where the explorer is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExplorerAddress {
    pub address: SocketAddr,
    pub is_https: bool,
}

/// Whether this is a browser that was pointed at the root of the port.
pub(crate) fn is_wanted(head: &RequestHead<'_>) -> bool {
    head.path == "/"
        && !head.target.is_site
        && matches!(head.method, "GET" | "HEAD")
        && head.query.parameters().next().is_none()
        && ![AUTHORIZATION, X_MS_VERSION, X_MS_DATE].iter().any(|name| head.parts.has(name))
        && head.header(ACCEPT).is_some_and(|accepted| accepted.contains("text/html"))
}

pub(crate) fn page(
    kind: &ServiceKind,
    host: Option<&str>,
    explorer: Option<&ExplorerAddress>,
    spare: Vec<u8>,
) -> Response {
    let name = kind.name;
    let explorer = match explorer.map(|explorer| url(explorer, host)) {
        Some(url) => format!(
            "<p>To look at what is stored here, open the explorer on the machine that runs this server:<br>\n\
             <a href=\"{url}\">{url}</a></p>"
        ),
        None => {
            "<p>This server runs without its explorer page (see <code>--admin-port</code>).</p>".to_owned()
        }
    };
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Lazulite: {name} service</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>This is Lazulite&rsquo;s {name} service</h1>\n\
         <p>It speaks the REST protocol of Azure Storage, and it is running. Programs reach it with the connection \
         string that the server printed when it started; an SDK, <code>az</code> or any other tool for Azure Storage \
         will do.</p>\n{explorer}\n</main>\n</body>\n</html>\n"
    );
    let mut response = respond::with_body(200, AnswerBody::whole(html.into_bytes()), spare);
    let headers = response.head.headers_mut();
    headers.put(CONTENT_TYPE, "text/html; charset=utf-8");
    headers.put(CONTENT_SECURITY_POLICY, POLICY);
    headers.put(NO_SNIFF, "nosniff");
    headers.put(REFERRER_POLICY, "no-referrer");
    headers.put(CACHE_CONTROL, "no-store");
    response
}

const STYLE: &str = ":root{color-scheme:light dark;font:16px/1.6 system-ui,sans-serif}\
                     body{margin:0;padding:12vh 1.5rem}main{max-width:38rem;margin:0 auto}\
                     h1{font-size:1.6rem;line-height:1.25;margin:0 0 1rem}p{margin:0 0 1rem}\
                     a{color:#2a5bd7}@media(prefers-color-scheme:dark){a{color:#8fb0ff}}";

/// A port that listens everywhere has no address of its own: the explorer is where this page was found.
fn url(explorer: &ExplorerAddress, host: Option<&str>) -> String {
    let ExplorerAddress { address, is_https } = explorer;
    let scheme = if *is_https { "https" } else { "http" };
    let name = host.and_then(plain_name).filter(|_| address.ip().is_unspecified());
    match name {
        Some(name) => format!("{scheme}://{name}:{}/", address.port()),
        None => format!("{scheme}://{address}/"),
    }
}

/// The host without its port, if nothing in it needs to be escaped.
fn plain_name(host: &str) -> Option<&str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_explorer_is_at_its_own_address_or_where_the_page_was_found() {
        let at = |address: &str, host| {
            let address = address.parse().unwrap();
            url(&ExplorerAddress { address, is_https: false }, host)
        };
        assert_eq!(at("127.0.0.1:10003", Some("evil.example")), "http://127.0.0.1:10003/");
        assert_eq!(at("0.0.0.0:10003", Some("store.lan:10002")), "http://store.lan:10003/");
        assert_eq!(at("[::]:10003", Some("[fe80::1]:10002")), "http://[fe80::1]:10003/");
        for odd in ["<script>", "a\"b", "", ":80"] {
            assert_eq!(at("0.0.0.0:10003", Some(odd)), "http://0.0.0.0:10003/", "{odd}");
        }
    }
}
