//! The ceiling: a bare server on our HTTP stack that reads the request and answers with a fixed body.
//!
//! Lazulite cannot be faster than this, so reports give its throughput as a share of this server's.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use loadgen::Error;

const WORKERS: usize = 2;
/// About the size of an entity's JSON.
const BODY: &[u8] = &[b'x'; 250];

pub fn serve(port: u16) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        println!("Table service is successfully listening at http://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move {
                // The client counts answers, so it notices a broken connection.
                let _ =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            });
        }
    })
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    // Any server must read the request to its end. A broken request gets the same answer.
    let _ = request.into_body().collect().await;
    Ok(Response::new(Full::new(Bytes::from_static(BODY))))
}
