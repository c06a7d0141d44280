//! Redis with every write synced, and `redis-benchmark`, which comes with it.
//!
//! Promises: no process outlives its [`Redis`]; every write is in its file on the disk before it is answered
//! (`appendfsync always`); no snapshot and no rewriting of that file falls into a measurement; a figure for reads exists
//! only if every read found its key. Leaves to others: when it is measured.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use loadgen::workload::WorkloadKind;
use loadgen::{Error, clock, process};

use super::{Rival, RivalFigures, RivalKind};

const SERVER: &str = "redis-server";
const CLIENT: &str = "redis-benchmark";
const NOT_INSTALLED: &str = "is not installed (Debian: apt-get install redis-server)";
const START_TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Keys per round trip while it is filled.
const FILL_COUNT: u64 = 1000;
/// `redis-benchmark` counts requests and not time. So many tell it how many fit into a measurement.
const TRIAL_COUNT: u64 = 20_000;

pub struct Redis {
    child: Child,
    address: SocketAddr,
    version: String,
    keys: u64,
    value_bytes: usize,
    /// Requests per second in the last measurement of each kind.
    rates: HashMap<&'static str, f64>,
}

impl Redis {
    /// Starts one in a directory of its own, and fills it.
    pub fn start(data: &Path, keys: u64, value_bytes: usize) -> Result<Redis, Error> {
        // Without its client the server is of no use.
        if Command::new(CLIENT).arg("--version").stdout(Stdio::null()).status().is_err() {
            return Err(format!("{CLIENT} {NOT_INSTALLED}").into());
        }
        let directory = data.join("redis");
        std::fs::create_dir_all(&directory)?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let child = Command::new(SERVER)
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--daemonize", "no"])
            .args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""])
            .args(["--auto-aof-rewrite-percentage", "0", "--dir"])
            .arg(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => format!("{SERVER} {NOT_INSTALLED}"),
                _ => format!("{SERVER} does not start: {error}"),
            })?;
        // From here on, a failure drops it and so ends the process.
        let mut redis =
            Redis { child, address, version: String::new(), keys, value_bytes, rates: HashMap::new() };
        let mut session = redis.wait_until_ready()?;
        redis.version = field(&session.ask(&["INFO", "server"])?, "redis_version").unwrap_or_default();
        for (setting, wanted) in [("appendonly", "yes"), ("appendfsync", "always")] {
            let answer = session.ask(&["CONFIG", "GET", setting])?;
            if !answer.lines().any(|line| line == wanted) {
                return Err(format!("its {setting} is not {wanted}").into());
            }
        }
        session.fill(keys, value_bytes)?;
        let filled = session.ask(&["DBSIZE"])?;
        if filled != keys.to_string() {
            return Err(format!("it has {filled} keys, not {keys}").into());
        }
        Ok(redis)
    }

    fn wait_until_ready(&mut self) -> Result<Session, Error> {
        let deadline = clock::now() + START_TIMEOUT;
        while clock::now() < deadline {
            if let Ok(mut session) = Session::open(self.address)
                && session.ask(&["PING"]).is_ok_and(|answer| answer == "PONG")
            {
                return Ok(session);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{SERVER} ended before it was ready: {status}").into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("{SERVER} does not answer").into())
    }

    /// Sends so many requests, and says what they cost.
    fn send(&self, command: &str, connections: usize, count: u64) -> Result<RivalFigures, Error> {
        let mut client = Command::new(CLIENT);
        client.args(["-h", "127.0.0.1", "-p", &self.address.port().to_string(), "--csv", "-t", command]);
        client.args(["-c", &connections.to_string(), "-n", &count.to_string()]);
        client.args(["-r", &self.keys.to_string(), "-d", &self.value_bytes.to_string()]);
        let before = process::cpu(self.child.id());
        let start = clock::now();
        let mut child = client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut text = String::new();
        child.stdout.take().ok_or("redis-benchmark has no output")?.read_to_string(&mut text)?;
        let took = clock::now().duration_since(start).as_secs_f64();
        // Its times stand in /proc until it is waited for.
        let own_cpu = process::cpu(child.id());
        let spent =
            process::cpu(self.child.id()).zip(before).map(|(after, before)| after.saturating_sub(before));
        let status = child.wait()?;
        let report = Report::read(&text).filter(|_| status.success());
        let report =
            report.ok_or_else(|| format!("redis-benchmark ended with {status} and printed: {text}"))?;
        Ok(RivalFigures {
            requests_per_second: report.per_second,
            mean_us: report.mean_us,
            p50_us: Some(report.p50_us),
            p99_us: Some(report.p99_us),
            server_cpu_us: spent.map(|spent| spent.as_secs_f64() * 1e6 / count as f64),
            generator_busy: own_cpu.map(|cpu| cpu.as_secs_f64() / took),
        })
    }
}

impl Rival for Redis {
    fn kind(&self) -> RivalKind {
        RivalKind::Redis
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn measure(
        &mut self,
        kind: WorkloadKind,
        connections: usize,
        time: Duration,
    ) -> Result<RivalFigures, Error> {
        let command = match kind {
            WorkloadKind::Read => "get",
            WorkloadKind::Insert => "set",
            other => return Err(format!("redis-benchmark has nothing like {}", other.name()).into()),
        };
        let count = |rate: f64, time: Duration| ((rate * time.as_secs_f64()) as u64).max(1);
        let warm_up = match self.rates.get(command) {
            Some(rate) => count(*rate, time / 3),
            None => TRIAL_COUNT,
        };
        let rate = self.send(command, connections, warm_up)?.requests_per_second;
        let figures = self.send(command, connections, count(rate, time))?;
        self.rates.insert(command, figures.requests_per_second);
        let mut session = Session::open(self.address)?;
        let misses = field(&session.ask(&["INFO", "stats"])?, "keyspace_misses");
        match misses.as_deref() {
            Some("0") => Ok(figures),
            _ => Err(format!("reads found no key: {misses:?}").into()),
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection for single commands.
struct Session(BufReader<TcpStream>);

impl Session {
    fn open(address: SocketAddr) -> Result<Session, Error> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Session(BufReader::new(stream)))
    }

    fn ask(&mut self, words: &[&str]) -> Result<String, Error> {
        let mut out = Vec::new();
        write_command(&mut out, words);
        self.0.get_mut().write_all(&out)?;
        read_reply(&mut self.0)
    }

    /// Writes the keys that `redis-benchmark` draws from, many at a time.
    fn fill(&mut self, keys: u64, value_bytes: usize) -> Result<(), Error> {
        let value = "x".repeat(value_bytes);
        let mut next = 0;
        while next < keys {
            let end = keys.min(next + FILL_COUNT);
            let mut out = Vec::new();
            for number in next..end {
                write_command(&mut out, &["SET", &format!("key:{number:012}"), &value]);
            }
            self.0.get_mut().write_all(&out)?;
            for _ in next..end {
                read_reply(&mut self.0)?;
            }
            next = end;
        }
        Ok(())
    }
}

fn write_command(out: &mut Vec<u8>, words: &[&str]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

/// A reply as text; the parts of a list on a line each.
fn read_reply(reader: &mut impl BufRead) -> Result<String, Error> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or("Redis closed the connection")?;
    match kind {
        "+" | ":" => Ok(rest.to_owned()),
        "$" => {
            let mut bytes = vec![0; rest.parse::<usize>()? + 2];
            reader.read_exact(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
        }
        "*" => {
            let parts: Result<Vec<String>, Error> =
                (0..rest.parse::<usize>()?).map(|_| read_reply(reader)).collect();
            Ok(parts?.join("\n"))
        }
        _ => Err(format!("Redis answered: {line}").into()),
    }
}

/// The value of a line `name:value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
}

/// What `redis-benchmark --csv` prints: the names of the columns, and one line of figures.
struct Report {
    per_second: f64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Report {
    fn read(text: &str) -> Option<Report> {
        let mut lines = text.lines().filter(|line| line.starts_with('"'));
        let row =
            |line: &str| line.split(',').map(|cell| cell.trim_matches('"').to_owned()).collect::<Vec<_>>();
        let (names, figures) = (row(lines.next()?), row(lines.next()?));
        let column = |name: &str| -> Option<f64> {
            figures.get(names.iter().position(|column| column == name)?)?.parse().ok()
        };
        Some(Report {
            per_second: column("rps").filter(|rate| *rate > 0.0)?,
            mean_us: column("avg_latency_ms")? * 1000.0,
            p50_us: column("p50_latency_ms")? * 1000.0,
            p99_us: column("p99_latency_ms")? * 1000.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report_is_read() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
            \"p99_latency_ms\",\"max_latency_ms\"\n\
            \"SET\",\"51234.50\",\"0.750\",\"0.200\",\"0.703\",\"1.100\",\"2.503\",\"9.000\"\n";
        let report = Report::read(text).unwrap();
        assert_eq!((report.per_second, report.p50_us, report.mean_us), (51234.5, 703.0, 750.0));
        assert!((report.p99_us - 2503.0).abs() < 1e-6);
        assert!(Report::read("\"test\",\"rps\"\n\"SET\",\"0.00\"\n").is_none());
        assert!(Report::read("Could not connect to Redis").is_none());
    }

    #[test]
    fn replies_of_every_kind_are_read() {
        let read = |text: &str| read_reply(&mut text.as_bytes());
        assert_eq!(read("+PONG\r\n").unwrap(), "PONG");
        assert_eq!(read(":100000\r\n").unwrap(), "100000");
        assert_eq!(read("*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n").unwrap(), "appendonly\nyes");
        assert!(read("-ERR no\r\n").unwrap_err().to_string().contains("ERR no"));
        assert!(read("").is_err() && read("$5\r\nab").is_err());
        assert_eq!(field("# Server\r\nredis_version:7.0.15\r\n", "redis_version").as_deref(), Some("7.0.15"));
    }

    #[test]
    fn commands_have_the_lengths_of_their_words() {
        let mut out = Vec::new();
        write_command(&mut out, &["GET", "key:1"]);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n");
    }
}
