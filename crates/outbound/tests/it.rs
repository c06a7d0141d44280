//! Against servers on real sockets that say exactly what a test wants them to say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use outbound::{Admission, Outbound, OutboundError, TimeLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Client = Outbound<Full<Bytes>>;

fn anywhere() -> Admission {
    Arc::new(|_| true)
}

fn short() -> TimeLimits {
    let ms = Duration::from_millis;
    TimeLimits { connect: ms(2000), answer: ms(300), pause: ms(300) }
}

fn get(address: SocketAddr) -> Request<Full<Bytes>> {
    Request::get(format!("http://{address}/x?y=1")).body(Full::default()).unwrap()
}

/// Serves connections, each with this function, and counts them.
async fn serve<F, W>(each: F) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Fn(TcpStream) -> W + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let seen = count.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            seen.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(each(stream));
        }
    });
    (address, count)
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

async fn text(client: &Client, address: SocketAddr) -> Result<(u16, String), OutboundError> {
    let mut answer = client.send(get(address)).await?;
    let mut all = Vec::new();
    while let Some(piece) = answer.body_mut().next().await {
        all.extend_from_slice(&piece?);
    }
    Ok((answer.status().as_u16(), String::from_utf8(all).unwrap()))
}

#[tokio::test]
async fn a_connection_is_used_again_and_replaced_when_the_server_closed_it() {
    let (address, count) = serve(|mut stream| async move {
        for _ in 0..2 {
            let Some(head) = read_head(&mut stream).await else { return };
            assert!(head.starts_with("GET /x?y=1 HTTP/1.1\r\nhost: 127.0.0.1:"), "{head}");
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await.unwrap();
        }
    })
    .await;
    let client = Client::new(TimeLimits::default(), anywhere());
    for connections in [1, 1, 2, 2, 3] {
        assert_eq!(text(&client, address).await.unwrap(), (200, "hello".to_owned()));
        assert_eq!(count.load(Ordering::SeqCst), connections);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn redirects_are_answers() {
    let (address, count) = serve(|mut stream| async move {
        read_head(&mut stream).await;
        let answer = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
    })
    .await;
    let client = Client::new(TimeLimits::default(), anywhere());
    assert_eq!(text(&client, address).await.unwrap().0, 302);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_connection_is_made_to_an_address_that_is_not_allowed() {
    let (address, count) = serve(|_| async {}).await;
    let client = Client::new(TimeLimits::default(), Arc::new(|address| !address.is_loopback()));
    for host in ["127.0.0.1", "localhost"] {
        let uri = format!("http://{host}:{}/", address.port());
        let sent = client.send(Request::get(uri).body(Full::default()).unwrap()).await;
        assert!(matches!(sent, Err(OutboundError::NotAllowed(_))));
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn silence_ends_after_a_while_wherever_it_begins() {
    let (address, _) = serve(|mut stream| async move {
        read_head(&mut stream).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    assert!(matches!(text(&Client::new(short(), anywhere()), address).await, Err(OutboundError::TimedOut)));
    let (address, _) = serve(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe").await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    assert!(matches!(text(&Client::new(short(), anywhere()), address).await, Err(OutboundError::TimedOut)));
}

#[tokio::test]
async fn a_body_that_is_cut_short_is_an_error() {
    let (address, _) = serve(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhe").await.unwrap();
    })
    .await;
    let client = Client::new(TimeLimits::default(), anywhere());
    assert!(matches!(text(&client, address).await, Err(OutboundError::Broken(_))));
}

#[tokio::test]
async fn a_closed_port_and_a_plain_server_behind_https_are_told() {
    let client = Client::new(short(), anywhere());
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert!(matches!(text(&client, closed).await, Err(OutboundError::Connect(_))));
    let (address, _) = serve(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    let uri = format!("https://{address}/");
    let sent = client.send(Request::get(uri).body(Full::default()).unwrap()).await;
    assert!(matches!(sent, Err(OutboundError::Connect(_))));
}
