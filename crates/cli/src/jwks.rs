//! The keys of a token issuer: from a file, or from a URL on the operator's network.

use std::time::Duration;

use protocol::auth::{BearerConfig, BearerValidator, KeySet, STORAGE_AUDIENCES};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const FETCH_TIME_MAX: Duration = Duration::from_secs(10);
const DOCUMENT_BYTES_MAX: u64 = 1024 * 1024;

/// `source` is a file's path or an `http://` URL. The keys are read once, at the start.
pub async fn validator(
    issuer: String,
    source: &str,
    audiences: Vec<String>,
) -> Result<BearerValidator, String> {
    let json = match source.strip_prefix("http://") {
        Some(address) => fetch(address).await.map_err(|error| format!("cannot fetch {source}: {error}"))?,
        None if source.starts_with("https://") => {
            return Err(format!(
                "{source}: fetch the keys into a file and name the file, or serve them over http"
            ));
        }
        None => std::fs::read_to_string(source).map_err(|error| format!("cannot read {source}: {error}"))?,
    };
    let keys = KeySet::parse(&json).map_err(|error| format!("{source}: {error}"))?;
    let audiences =
        if audiences.is_empty() { STORAGE_AUDIENCES.map(str::to_owned).to_vec() } else { audiences };
    Ok(BearerValidator::new(BearerConfig { issuer, audiences, keys }))
}

/// One GET, by hand: the answer ends with the connection.
async fn fetch(address: &str) -> Result<String, String> {
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let authority = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let work = async {
        let mut stream = TcpStream::connect(&authority).await.map_err(|error| error.to_string())?;
        let request = format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut answer = String::new();
        stream
            .take(DOCUMENT_BYTES_MAX)
            .read_to_string(&mut answer)
            .await
            .map_err(|error| error.to_string())?;
        Ok(answer)
    };
    let answer: Result<String, String> =
        tokio::time::timeout(FETCH_TIME_MAX, work).await.unwrap_or_else(|_| Err("no answer in time".into()));
    let answer = answer?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer is not HTTP")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status == "200" { Ok(body.to_owned()) } else { Err(format!("status {status}")) }
}
