//! The passage: `/storage/SERVICE/…` on the admin port leads to a service, as if the request had come to its own port.
//!
//! It lets the explorer page use the public REST interface without CORS rules. Promises: the request takes the very
//! same road, so authentication, limits and answers are the service's own; what a token says about HTTPS is judged by how the
//! request came here. What belongs to the admin port (cookies,
//! origin) does not reach the service, and an answer cannot be opened as a page.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use super::page;
use crate::http::header_names::{COOKIE, HOST, ORIGIN};
use crate::http::listener::{Handler, Incoming};
use crate::http::parts::RequestParts;
use crate::http::response::Response;

pub(crate) const PREFIX: &str = "/storage/";

/// Headers that the service must not see.
const OWN_HEADERS: [&str; 7] =
    [COOKIE, ORIGIN, "referer", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "sec-fetch-user"];

type BoxedResponse<'a> = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;

/// A handler of any service.
pub trait Road: Send + Sync {
    fn take<'a>(&'a self, peer: IpAddr, request: Incoming<'a>) -> BoxedResponse<'a>;
}

impl<H: Handler> Road for H {
    fn take<'a>(&'a self, peer: IpAddr, request: Incoming<'a>) -> BoxedResponse<'a> {
        Box::pin(self.handle(peer, request))
    }
}

/// A service that the admin port knows.
pub struct ServedService {
    /// As in `--services`, and after `/storage/`.
    pub label: &'static str,
    /// As in connection strings.
    pub name: &'static str,
    pub address: SocketAddr,
    pub is_https: bool,
    pub road: Arc<dyn Road>,
}

impl ServedService {
    /// The base of its URLs, without a trailing slash.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", if self.is_https { "https" } else { "http" }, self.address)
    }
}

/// The service that the path leads to, and the head as the service would have got it; `None` when it leads nowhere.
pub(crate) fn enter<'s>(
    services: &'s [ServedService],
    parts: &RequestParts,
) -> Option<(&'s ServedService, RequestParts)> {
    let (label, _) = parts.path().strip_prefix(PREFIX)?.split_once('/')?;
    let service = services.iter().find(|service| service.label == label)?;
    // The text as it is: a signature covers its very bytes.
    let path = &parts.path()[PREFIX.len() + label.len()..];
    let target = match parts.query() {
        Some(query) => [path, "?", query].concat(),
        None => path.to_owned(),
    };
    let host = service.address.to_string();
    let is_theirs = |name: &str| name != HOST && !OWN_HEADERS.contains(&name);
    let theirs = parts.headers().zip(parts.spelt_headers());
    let theirs = theirs.filter(|((lower, _), _)| is_theirs(lower)).map(|(_, spelt)| spelt);
    let headers = theirs.chain([(HOST, host.as_str())]);
    Some((service, RequestParts::compose(parts.method(), &target, headers)?))
}

pub(crate) async fn pass(service: &ServedService, peer: IpAddr, request: Incoming<'_>) -> Response {
    let mut response = service.road.take(peer, request).await;
    page::add_data_headers(response.head.headers_mut());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nowhere;

    impl Road for Nowhere {
        fn take<'a>(&'a self, _: IpAddr, _: Incoming<'a>) -> BoxedResponse<'a> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn a_request_enters_as_its_service_would_have_got_it() {
        let service = ServedService {
            label: "table",
            name: "Table",
            address: "127.0.0.1:10002".parse().unwrap(),
            is_https: false,
            road: Arc::new(Nowhere),
        };
        let services = [service];
        let enter = |path: &str| {
            let headers = [
                ("Host", "127.0.0.1:10003"),
                ("Cookie", "lazulite-admin=secret"),
                ("Origin", "http://127.0.0.1:10003"),
                ("x-ms-meta-MyName", "v"),
                ("Authorization", "SharedKey a:b"),
            ];
            let parts = RequestParts::compose("GET", path, headers.into_iter()).unwrap();
            enter(&services, &parts).map(|(_, parts)| parts)
        };
        let parts = enter("/storage/table/acc/t(PartitionKey='a%2Fb',RowKey='')?$filter=x%20eq%201").unwrap();
        assert_eq!(parts.path(), "/acc/t(PartitionKey='a%2Fb',RowKey='')");
        assert_eq!(parts.query(), Some("$filter=x%20eq%201"));
        let headers: Vec<_> = parts.spelt_headers().collect();
        assert_eq!(
            headers,
            [("x-ms-meta-MyName", "v"), ("Authorization", "SharedKey a:b"), ("host", "127.0.0.1:10002")]
        );
        for nowhere in ["/storage/table", "/storage/blob/acc", "/storage//acc", "/storage/", "/other"] {
            assert!(enter(nowhere).is_none(), "{nowhere}");
        }
    }
}
