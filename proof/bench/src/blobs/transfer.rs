//! Long blobs: whole bodies on a few connections, each sent or received by a thread of its own.
//!
//! What is put is compared with `dd`, which writes as much to the same disk and syncs it; what is got with a bare server
//! that sends a file of the same length. Both files are in the page cache, as is what was just put.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use loadgen::blob_request::BlobSigner;
use loadgen::measure::median;
use loadgen::response::ResponseReader;
use loadgen::sources::mix;
use loadgen::{Error, clock, process};

use super::{CONTAINER, FEW_CONNECTIONS};
use crate::hello::FILE_PATH;
use crate::options::Options;
use crate::results::{Direction, Run, Transfer};
use crate::system::{DataDirectory, SERVED_FILE, System, SystemKind};

const MIB: u64 = 1 << 20;
/// Not a power of two, so that a part in a wrong place is noticed.
const PATTERN_BYTES: usize = (1 << 20) + 7;
/// Of a blob that is put in blocks.
const BLOCK_BYTES: u64 = 4 << 20;
/// What is read at a time.
const READ_BYTES: usize = 256 * 1024;
const TIMEOUT: Duration = Duration::from_secs(600);
/// Each round moves so many contents on each connection, one after the other. Their median counts.
const CONTENTS_PER_ROUND: usize = 3;

pub struct Long<'a> {
    pub options: &'a Options,
    pub systems: &'a [System],
    pub data: &'a DataDirectory,
    pub bytes: u64,
}

impl Long<'_> {
    pub fn compare(&self, run: &mut Run) -> Result<(), Error> {
        let pattern = pattern();
        let durable = self.system(SystemKind::Durable)?;
        let file_server = self.system(SystemKind::FileServer)?;
        // Also the one that is read.
        put(durable, "long", self.bytes, &pattern)?;
        check_content(durable, "long", self.bytes, &pattern)?;
        put_blocks(durable, "long-blocks", self.bytes, FEW_CONNECTIONS, &pattern)?;
        check_content(durable, "long-blocks", self.bytes, &pattern)?;
        for connections in [1, FEW_CONNECTIONS] {
            let mut measured: [Vec<Moved>; 5] = Default::default();
            for round in 0..self.options.rounds {
                let name = |part: usize, index: usize| format!("long-{connections}-{round}-{part}-{index}");
                measured[0].push(Moved::measure(None, connections, self.bytes, |_, index| {
                    dd(&self.data.0, index, self.bytes)
                })?);
                measured[1].push(Moved::measure(Some(durable), connections, self.bytes, |part, index| {
                    put(durable, &name(part, index), self.bytes, &pattern)
                })?);
                // One blob, whose blocks share the connections.
                measured[2].push(Moved::measure(Some(durable), 1, self.bytes, |part, _| {
                    put_blocks(durable, &name(part, connections), self.bytes, connections, &pattern)
                })?);
                measured[3].push(Moved::measure(Some(file_server), connections, self.bytes, |_, _| {
                    let request = format!("GET {FILE_PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n");
                    get(file_server.blob_endpoint.address, request.as_bytes(), self.bytes, |_, _| true)
                })?);
                measured[4].push(Moved::measure(Some(durable), connections, self.bytes, |_, _| {
                    let request = BlobSigner::of(&durable.blob_endpoint)?.get(CONTAINER, "long");
                    get(durable.blob_endpoint.address, &request, self.bytes, |_, _| true)
                })?);
            }
            let kinds = [
                (Direction::Put, None),
                (Direction::Put, Some(SystemKind::Durable)),
                (Direction::PutBlocks, Some(SystemKind::Durable)),
                (Direction::Get, Some(SystemKind::FileServer)),
                (Direction::Get, Some(SystemKind::Durable)),
            ];
            for ((direction, system), moved) in kinds.into_iter().zip(measured) {
                let cpu: Option<Vec<f64>> = moved.iter().map(|moved| moved.cpu_us_per_mib).collect();
                let transfer = Transfer {
                    direction,
                    connections,
                    system,
                    bytes_per_second: median(moved.iter().map(|moved| moved.bytes_per_second).collect()),
                    cpu_us_per_mib: cpu.map(median),
                };
                let what = system.map_or("dd", SystemKind::what);
                let rate = transfer.bytes_per_second / MIB as f64;
                let cpu = transfer.cpu_us_per_mib.unwrap_or_default();
                eprintln!(
                    "    {direction:?} {connections}  {what:20} {rate:>8.0} MiB/s, CPU {cpu:.0} us/MiB"
                );
                run.transfers.push(transfer);
            }
        }
        Ok(())
    }

    fn system(&self, kind: SystemKind) -> Result<&System, Error> {
        let found = self.systems.iter().find(|system| system.kind == kind);
        found.ok_or_else(|| format!("{} does not run", kind.what()).into())
    }
}

/// How fast contents were moved.
struct Moved {
    bytes_per_second: f64,
    cpu_us_per_mib: Option<f64>,
}

impl Moved {
    /// Moves contents on so many connections at the same time. `work` moves one; it gets a number for those that
    /// follow each other and one for those at the same time. Returns the median of those that follow each other.
    fn measure(
        system: Option<&System>,
        connections: usize,
        bytes: u64,
        work: impl Fn(usize, usize) -> Result<Duration, Error> + Sync,
    ) -> Result<Moved, Error> {
        let cpu = || system.and_then(|system| process::cpu(system.process()));
        let before = cpu();
        let mut rates = Vec::new();
        for part in 0..CONTENTS_PER_ROUND {
            let work = &work;
            let times = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..connections).map(|index| scope.spawn(move || work(part, index))).collect();
                let joined =
                    threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")?);
                joined.collect::<Result<Vec<Duration>, Error>>()
            })?;
            let longest = times.into_iter().max().unwrap_or_default();
            rates.push((bytes * connections as u64) as f64 / longest.as_secs_f64().max(1e-9));
        }
        let moved_mib = (bytes * (connections * CONTENTS_PER_ROUND) as u64 / MIB) as f64;
        let spent = before.zip(cpu()).map(|(before, after)| after.saturating_sub(before).as_secs_f64());
        Ok(Moved {
            bytes_per_second: median(rates),
            cpu_us_per_mib: spent.map(|seconds| seconds * 1e6 / moved_mib),
        })
    }
}

/// Bytes that repeat themselves late.
pub fn pattern() -> Vec<u8> {
    (0..PATTERN_BYTES as u64).map(|index| (mix(index) >> 56) as u8).collect()
}

/// The part of the pattern from this place of a content on, up to the pattern's end.
fn pattern_from(pattern: &[u8], offset: u64) -> &[u8] {
    &pattern[(offset % pattern.len() as u64) as usize..]
}

/// Writes the file that the file server serves.
pub fn write_file(data: &DataDirectory, bytes: u64) -> Result<(), Error> {
    let directory = data.0.join(SystemKind::FileServer.name());
    std::fs::create_dir_all(&directory)?;
    let mut file = std::fs::File::create(directory.join(SERVED_FILE))?;
    let pattern = pattern();
    let mut written = 0;
    while written < bytes {
        let part = pattern_from(&pattern, written);
        let part = &part[..part.len().min((bytes - written) as usize)];
        file.write_all(part)?;
        written += part.len() as u64;
    }
    Ok(file.sync_all()?)
}

/// Puts one blob, and returns the time from the first byte of the request to the answer.
pub fn put(system: &System, name: &str, bytes: u64, pattern: &[u8]) -> Result<Duration, Error> {
    let endpoint = &system.blob_endpoint;
    let mut head = Vec::new();
    BlobSigner::of(endpoint)?.puts(CONTAINER, bytes).write(name.as_bytes(), &mut head);
    let mut stream = connect(endpoint.address)?;
    let start = clock::now();
    upload(&mut stream, &head, 0..bytes, pattern)?;
    Ok(clock::now().duration_since(start))
}

/// Puts one blob in blocks on so many connections, and returns the time from the first byte to the answer to the list.
fn put_blocks(
    system: &System,
    name: &str,
    bytes: u64,
    connections: usize,
    pattern: &[u8],
) -> Result<Duration, Error> {
    let endpoint = &system.blob_endpoint;
    let signer = &BlobSigner::of(endpoint)?;
    // All ids have one length.
    let ids: Vec<String> = (0..bytes.div_ceil(BLOCK_BYTES)).map(|number| format!("{number:08}")).collect();
    let next = &AtomicUsize::new(0);
    let start = clock::now();
    std::thread::scope(|scope| {
        let work = || {
            let mut stream = connect(endpoint.address)?;
            while let Some(id) = ids.get(next.fetch_add(1, Ordering::Relaxed)) {
                let number: u64 = id.parse()?;
                let range = number * BLOCK_BYTES..((number + 1) * BLOCK_BYTES).min(bytes);
                let head = signer.put_block(CONTAINER, name, id, range.end - range.start);
                upload(&mut stream, &head, range, pattern)?;
            }
            Ok::<(), Error>(())
        };
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    let list = signer.put_block_list(CONTAINER, name, &ids);
    upload(&mut connect(endpoint.address)?, &list, 0..0, pattern)?;
    Ok(clock::now().duration_since(start))
}

/// Sends a request whose body is this part of a content, and waits until it is answered with 201.
fn upload(stream: &mut TcpStream, head: &[u8], range: Range<u64>, pattern: &[u8]) -> Result<(), Error> {
    stream.write_all(head)?;
    let mut sent = range.start;
    while sent < range.end {
        let part = pattern_from(pattern, sent);
        let part = &part[..part.len().min((range.end - sent) as usize)];
        stream.write_all(part)?;
        sent += part.len() as u64;
    }
    let mut reader = ResponseReader::new();
    loop {
        let count = stream.read(reader.space())?;
        if count == 0 {
            return Err("the server closed the connection instead of answering".into());
        }
        match reader.advance(count)? {
            Some(201) => return Ok(()),
            Some(_) => return Err(format!("an upload was answered with this:\n{}", reader.text()).into()),
            None => {}
        }
    }
}

/// Gets one body of this length, and returns the time from the request to its last byte. `is_right` sees every piece.
fn get(
    address: SocketAddr,
    request: &[u8],
    bytes: u64,
    is_right: impl Fn(u64, &[u8]) -> bool,
) -> Result<Duration, Error> {
    let mut stream = connect(address)?;
    let mut buffer = vec![0; READ_BYTES];
    let start = clock::now();
    stream.write_all(request)?;
    let mut filled = 0;
    let body = loop {
        filled += stream.read(&mut buffer[filled..])?;
        if let Some(end) = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if filled == 0 || filled == buffer.len() {
            return Err("the answer has no head".into());
        }
    };
    let head = String::from_utf8_lossy(&buffer[..body]).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") || !head.contains(&format!("content-length: {bytes}\r\n")) {
        return Err(format!("a get of {bytes} bytes was answered with this:\n{head}").into());
    }
    let mut right = is_right(0, &buffer[body..filled]);
    let mut received = (filled - body) as u64;
    while received < bytes {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(format!("the answer ended after {received} bytes").into());
        }
        right &= is_right(received, &buffer[..count]);
        received += count as u64;
    }
    if right { Ok(clock::now().duration_since(start)) } else { Err("other bytes than were put".into()) }
}

fn check_content(system: &System, name: &str, bytes: u64, pattern: &[u8]) -> Result<(), Error> {
    let request = BlobSigner::of(&system.blob_endpoint)?.get(CONTAINER, name);
    let is_right = |mut offset: u64, mut piece: &[u8]| {
        while !piece.is_empty() {
            let expected = pattern_from(pattern, offset);
            let length = expected.len().min(piece.len());
            if expected[..length] != piece[..length] {
                return false;
            }
            (offset, piece) = (offset + length as u64, &piece[length..]);
        }
        true
    };
    get(system.blob_endpoint.address, &request, bytes, is_right).map(|_| ())
}

fn connect(address: SocketAddr) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Lets `dd` write a file and sync it at the end. Returns the time that `dd` reports.
fn dd(directory: &Path, index: usize, bytes: u64) -> Result<Duration, Error> {
    let path = directory.join(format!("dd-{index}"));
    let output = Command::new("dd")
        .arg("if=/dev/zero")
        .arg(format!("of={}", path.display()))
        .args(["bs=1M", &format!("count={}", bytes / MIB), "conv=fsync"])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start dd: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    std::fs::remove_file(&path)?;
    seconds_of_dd(&said).map(Duration::from_secs_f64).ok_or_else(|| format!("dd said: {said}").into())
}

/// From a line such as `67108864 bytes (67 MB, 64 MiB) copied, 0.0457103 s, 1.5 GB/s`.
fn seconds_of_dd(said: &str) -> Option<f64> {
    let (_, rest) = said.split_once(" copied, ")?;
    rest.split_once(" s,")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_dd_is_what_it_says() {
        let said = "64+0 records in\n64+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0.0457103 s, 1.5 GB/s\n";
        assert_eq!(seconds_of_dd(said), Some(0.0457103));
        assert_eq!(seconds_of_dd("dd: failed to open"), None);
    }

    #[test]
    fn a_pattern_goes_on_where_it_ended() {
        let pattern = pattern();
        let length = pattern.len() as u64;
        assert_eq!(pattern_from(&pattern, 3 * length + 5)[0], pattern[5]);
        assert_eq!(pattern_from(&pattern, length - 1).len(), 1);
    }
}
