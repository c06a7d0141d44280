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

use http::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN, REFERER};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;

use super::page;
use crate::front::handle::PassageArrival;
use crate::http::body::ResponseBody;
use crate::http::listener::Handler;

pub(crate) const PREFIX: &str = "/storage/";

/// Headers that the service must not see.
const OWN_HEADERS: [HeaderName; 7] = [
    COOKIE,
    ORIGIN,
    REFERER,
    HeaderName::from_static("sec-fetch-site"),
    HeaderName::from_static("sec-fetch-mode"),
    HeaderName::from_static("sec-fetch-dest"),
    HeaderName::from_static("sec-fetch-user"),
];

type BoxedResponse<'a> = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send + 'a>>;

/// A handler of any service.
pub trait Road: Send + Sync {
    fn take(&self, peer: IpAddr, request: Request<Incoming>) -> BoxedResponse<'_>;
}

impl<H: Handler> Road for H {
    fn take(&self, peer: IpAddr, request: Request<Incoming>) -> BoxedResponse<'_> {
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

/// The service that the path leads to, and the request as the service would have got it; `None` when it leads nowhere.
pub(crate) fn enter<B>(
    services: &[ServedService],
    is_https: bool,
    mut request: Request<B>,
) -> Option<(&ServedService, Request<B>)> {
    let path = request.uri().path_and_query()?.as_str().strip_prefix(PREFIX)?;
    let (label, _) = path.split_once('/')?;
    let service = services.iter().find(|service| service.label == label)?;
    // The text as it is: a signature covers its very bytes.
    let rest = PathAndQuery::try_from(&path[label.len()..]).ok()?;
    *request.uri_mut() = Uri::from(rest);
    let headers = request.headers_mut();
    for name in &OWN_HEADERS {
        headers.remove(name);
    }
    headers.insert(HOST, HeaderValue::try_from(service.address.to_string()).ok()?);
    request.extensions_mut().insert(PassageArrival { is_https });
    Some((service, request))
}

pub(crate) async fn pass(
    service: &ServedService,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let mut response = service.road.take(peer, request).await;
    page::add_data_headers(response.headers_mut());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nowhere;

    impl Road for Nowhere {
        fn take(&self, _: IpAddr, _: Request<Incoming>) -> BoxedResponse<'_> {
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
            let request = Request::get(path)
                .header("host", "127.0.0.1:10003")
                .header("cookie", "lazulite-admin=secret")
                .header("origin", "http://127.0.0.1:10003")
                .header("authorization", "SharedKey a:b")
                .body(())
                .unwrap();
            enter(&services, false, request).map(|(_, request)| request)
        };
        let request =
            enter("/storage/table/acc/t(PartitionKey='a%2Fb',RowKey='')?$filter=x%20eq%201").unwrap();
        assert_eq!(
            request.uri().path_and_query().unwrap().as_str(),
            "/acc/t(PartitionKey='a%2Fb',RowKey='')?$filter=x%20eq%201"
        );
        assert_eq!(request.headers()["host"], "127.0.0.1:10002");
        assert_eq!(request.headers()["authorization"], "SharedKey a:b");
        assert!(!request.headers().contains_key("cookie") && !request.headers().contains_key("origin"));
        for nowhere in ["/storage/table", "/storage/blob/acc", "/storage//acc", "/storage/", "/other"] {
            assert!(enter(nowhere).is_none(), "{nowhere}");
        }
    }
}
