//! The ceiling: a bare server on our HTTP stack that reads the request and answers with a fixed body, or with a file.
//!
//! Lazulite cannot be faster than this, so reports give its throughput as a share of this server's.

use std::convert::Infallible;
use std::fs::File;
use std::future::Future;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_blocking};

use loadgen::Error;

const WORKERS: usize = 2;
/// About the size of an entity's JSON.
pub const BODY_BYTES: usize = 250;
/// A file is read and sent in pieces of this size.
const PIECE_BYTES: u64 = 256 * 1024;

/// Serves a fixed body of this size.
pub fn serve(port: u16, body_bytes: usize) -> Result<(), Error> {
    let body = Bytes::from(vec![b'x'; body_bytes]);
    accept(port, move |request| answer(request, body.clone()))
}

/// Serves a file at one path, and nothing at all others.
pub fn serve_file(port: u16, path: PathBuf) -> Result<(), Error> {
    let path: Arc<Path> = path.into();
    accept(port, move |request| send_file(request, path.clone()))
}

fn accept<H, F, B>(port: u16, handle: H) -> Result<(), Error>
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Error>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        println!("Table service is successfully listening at http://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let handle = handle.clone();
            tokio::spawn(async move {
                // The client counts answers, so it notices a broken connection.
                let _ =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(handle)).await;
            });
        }
    })
}

async fn answer(request: Request<Incoming>, body: Bytes) -> Result<Response<Full<Bytes>>, Infallible> {
    // Any server must read the request to its end. A broken request gets the same answer.
    let _ = request.into_body().collect().await;
    Ok(Response::new(Full::new(body)))
}

async fn send_file(
    request: Request<Incoming>,
    path: Arc<Path>,
) -> Result<Response<Either<FilePieces, Full<Bytes>>>, Infallible> {
    let is_file = request.uri().path() == FILE_PATH;
    let _ = request.into_body().collect().await;
    // Without a file the answer is empty, which the client notices.
    let file = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
    Ok(Response::new(match file {
        Ok((bytes, file)) if is_file => Either::Left(FilePieces::of(file, bytes)),
        _ => Either::Right(Full::default()),
    }))
}

/// Where the file is.
pub const FILE_PATH: &str = "/file";

/// A file on its way: the next piece is read while the previous one is sent.
struct FilePieces {
    bytes: u64,
    left: u64,
    /// `None` at the end.
    reading: Option<JoinHandle<io::Result<(File, Bytes)>>>,
}

impl FilePieces {
    fn of(file: File, bytes: u64) -> FilePieces {
        let mut pieces = FilePieces { bytes, left: bytes, reading: None };
        pieces.read_next(file);
        pieces
    }

    fn read_next(&mut self, mut file: File) {
        let length = PIECE_BYTES.min(self.left);
        self.left -= length;
        self.reading = (length > 0).then(|| {
            spawn_blocking(move || {
                let mut piece = vec![0; length as usize];
                file.read_exact(&mut piece)?;
                Ok((file, Bytes::from(piece)))
            })
        });
    }
}

impl Body for FilePieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let Poll::Ready(read) = Pin::new(reading).poll(context) else { return Poll::Pending };
        let piece = read.map_err(io::Error::other).flatten().map(|(file, piece)| {
            self.read_next(file);
            Frame::data(piece)
        });
        Poll::Ready(Some(piece))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes)
    }
}
