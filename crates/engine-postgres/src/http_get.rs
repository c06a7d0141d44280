//! One question over plain HTTP: to Patroni's agents, and to etcd.
//!
//! Promises: the answer is bounded, and nonsense is `None`. Leaves to others: how long to wait, and what it means.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The status and the body. `address` is `host:port`.
pub(crate) async fn get(address: &str, path: &str, answer_bytes_max: u64) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    // An answer in version 1.0 ends with its connection, so it has no chunks.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.take(answer_bytes_max).read_to_end(&mut answer).await.ok()?;
    read_answer(answer)
}

fn read_answer(answer: Vec<u8>) -> Option<(u16, String)> {
    let text = String::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

/// `host:port` of `http://host:port`, with or without a path behind it. No user, so no password either.
pub(crate) fn address_and_path(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let is_plain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b"@?#%\\".contains(&byte));
    (!host.is_empty() && is_plain(address) && is_plain(path)).then(|| (address, path.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_nonsense_is_none() {
        let read = |answer: &[u8]| read_answer(answer.to_vec());
        assert_eq!(read(b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\n{}"), Some((200, "{}".to_owned())));
        assert_eq!(read(b"HTTP/1.1 503 No\r\n\r\n"), Some((503, String::new())));
        for nonsense in
            [&b"HTTP/1.0 x OK\r\n\r\n"[..], b"SSH-2.0 200 x\r\n\r\n", b"HTTP/1.0 200 OK\r\n", b"", b"\xff"]
        {
            assert_eq!(read(nonsense), None);
        }
    }

    #[test]
    fn only_plain_addresses_are_taken() {
        assert_eq!(address_and_path("http://a:1"), Some(("a:1", "")));
        assert_eq!(address_and_path("http://[::1]:1/x/y/"), Some(("[::1]:1", "/x/y")));
        for bad in [
            "https://a:1",
            "http://a",
            "http://:1",
            "http://u:p@a:1",
            "http://a:1\r\nX:1",
            "http://a:1/ x",
            "a:1",
        ] {
            assert_eq!(address_and_path(bad), None, "{bad}");
        }
    }
}
