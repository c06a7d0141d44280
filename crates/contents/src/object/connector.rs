//! How the crate `object_store` reaches servers: with our own client (crate `outbound`).

use std::sync::Arc;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use outbound::{Outbound, OutboundBody, OutboundError, TimeLimits};

#[derive(Debug)]
pub(crate) struct OwnConnector;

impl HttpConnector for OwnConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http =
            options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|is| is == "true");
        // The operator chose the server, so it may be anywhere.
        let client = Outbound::new(TimeLimits::default(), Arc::new(|_| true));
        Ok(HttpClient::new(OwnService { client, allows_http }))
    }
}

#[derive(Debug)]
struct OwnService {
    client: Outbound<HttpRequestBody>,
    allows_http: bool,
}

#[async_trait]
impl HttpService for OwnService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if !self.allows_http && request.uri().scheme_str() != Some("https") {
            let refused = OutboundError::NoAddress("a plain http address".to_owned());
            return Err(HttpError::new(HttpErrorKind::Unknown, refused));
        }
        let answer =
            self.client.send(request).await.map_err(|error| translated(error, HttpErrorKind::Request))?;
        Ok(answer.map(|body| HttpResponseBody::new(TranslatedBody(body))))
    }
}

fn translated(error: OutboundError, broken: HttpErrorKind) -> HttpError {
    let kind = match &error {
        OutboundError::Connect(_) => HttpErrorKind::Connect,
        OutboundError::TimedOut => HttpErrorKind::Timeout,
        OutboundError::Broken(_) => broken,
        OutboundError::NoAddress(_) | OutboundError::NotAllowed(_) => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}

/// The body of an answer, with errors as `object_store` knows them.
struct TranslatedBody(OutboundBody);

impl hyper::body::Body for TranslatedBody {
    type Data = bytes::Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, HttpError>>> {
        let frame = std::pin::Pin::new(&mut self.0).poll_frame(context);
        frame.map(|frame| {
            frame.map(|frame| frame.map_err(|error| translated(error, HttpErrorKind::Interrupted)))
        })
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.0.size_hint()
    }
}
