//! `lazulite advise`: asks a running server what its advisor has found, and prints it in plain words.
//!
//! Promises: the server is asked over the control connection of its data directory, or over its admin port, and nothing is
//! changed. Keys and names are printed without characters that a terminal would obey. What is found is the business of
//! the crate `observe`; docs/advisor.md explains it.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::control::{self, ControlRequest};
use crate::place::LOCATION_DEFAULT;

const URL_DEFAULT: &str = "http://127.0.0.1:10003";
const PORT_DEFAULT: u16 = 10003;
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// Far more than all findings take.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What happened in less time says little about a month.
const OBSERVED_SECONDS_MIN: f64 = 60.0;
/// Lines of prose are no longer than this.
const COLUMNS: usize = 100;

#[derive(Default, PartialEq, Eq, Debug)]
pub struct AdviseRequest {
    pub location: Option<PathBuf>,
    /// The address of the admin port.
    pub url: Option<String>,
    pub token: Option<String>,
    /// Print what the server says as it is.
    pub json: bool,
}

/// What the server answers, as far as it is printed.
#[derive(Deserialize)]
struct Told {
    findings: Vec<ToldFinding>,
    month: Option<ToldMonth>,
    #[serde(default)]
    memory_bound_bytes: u64,
}

#[derive(Deserialize)]
struct ToldFinding {
    severity: String,
    account: String,
    subject: String,
    title: String,
    #[serde(default)]
    numbers: serde_json::Map<String, serde_json::Value>,
    explanation: String,
    remedy: String,
    sketch: String,
    pattern: String,
}

#[derive(Deserialize)]
struct ToldMonth {
    observed_seconds: f64,
    currency: String,
    prices_date: String,
    prices_basis: String,
    table_transactions: f64,
    queue_transactions: f64,
    transactions_cost: f64,
    stored_bytes: Option<f64>,
    capacity_cost: Option<f64>,
}

pub fn run(request: &AdviseRequest) -> Result<(), String> {
    let answer = ask(request)?;
    if request.json {
        println!("{}", answer.trim_end());
        return Ok(());
    }
    let told: Told = serde_json::from_str(&answer)
        .map_err(|error| format!("the server says something that is not advice: {error}"))?;
    print!("{}", in_words(&told));
    Ok(())
}

fn ask(request: &AdviseRequest) -> Result<String, String> {
    match (&request.url, &request.location) {
        (Some(url), _) => over_http(url, request.token.as_deref()),
        (None, Some(location)) => over_control(location),
        (None, None) => over_control(Path::new(LOCATION_DEFAULT)).or_else(|_| {
            over_http(URL_DEFAULT, request.token.as_deref()).map_err(|error| {
                format!(
                    "no server answers for {LOCATION_DEFAULT}, and {error}. Say which server with -l DIR or --url URL"
                )
            })
        }),
    }
}

fn over_control(location: &Path) -> Result<String, String> {
    let answer = control::connect(location, &ControlRequest::Advice)?.answer()?;
    read_text(answer)
}

fn read_text(input: impl io::Read) -> Result<String, String> {
    let mut text = String::new();
    let read = input.take(ANSWER_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| format!("lost the connection to the server: {error}"))?;
    Ok(text)
}

/// One request to the admin port, which has no use for a client that can do more.
fn over_http(url: &str, token: Option<&str>) -> Result<String, String> {
    let Some(rest) = url.strip_prefix("http://") else {
        return Err(format!(
            "{url} is not an http address; for a server with HTTPS run this beside it, with -l DIR"
        ));
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let failed = |error: io::Error| format!("{url} does not answer: {error}");
    let mut addresses = match authority.contains(':') {
        true => authority.to_socket_addrs(),
        false => (authority, PORT_DEFAULT).to_socket_addrs(),
    }
    .map_err(failed)?;
    let address = addresses.next().ok_or_else(|| format!("{url} has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIME_MAX).map_err(failed)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX)).map_err(failed)?;
    let authorization = match token {
        Some(token) if token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            format!("Authorization: Bearer {token}\r\n")
        }
        Some(_) => return Err("a token has only letters, digits and signs".to_owned()),
        None => String::new(),
    };
    let request =
        format!("GET /api/advice HTTP/1.1\r\nHost: {authority}\r\n{authorization}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let text = read_text(stream)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| format!("{url} does not speak HTTP"))?;
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        Some("401") => {
            Err(format!("{url} needs the token that the server printed at its start: --token TOKEN"))
        }
        _ => Err(format!("{url} answers '{}'", plain(head.lines().next().unwrap_or_default()))),
    }
}

fn in_words(told: &Told) -> String {
    let mut out = String::new();
    // Writing to a string never fails.
    let _ = match told.findings.len() {
        0 => writeln!(out, "Nothing to advise: no query scans, no partition is hot, nothing outgrows."),
        1 => writeln!(out, "One finding."),
        count => writeln!(out, "{count} findings, the most important first."),
    };
    for (index, finding) in told.findings.iter().enumerate() {
        let _ = writeln!(out, "\n{}. {} ({})", index + 1, plain(&finding.title), plain(&finding.severity));
        let subject =
            if finding.subject.is_empty() { String::new() } else { format!(": {}", finding.subject) };
        paragraph(&format!("Account {}{subject}", finding.account), &mut out);
        paragraph(&finding.explanation, &mut out);
        if let (Some(cost), Some(month)) = (number(finding, "month_cost"), &told.month) {
            paragraph(
                &format!("A month of these requests there: {}.", money(cost, &month.currency)),
                &mut out,
            );
        }
        paragraph(&format!("What to do: {}", finding.remedy), &mut out);
        for line in finding.sketch.lines() {
            let _ = writeln!(out, "       {}", plain(line));
        }
        paragraph(&format!("Pattern: {}", finding.pattern), &mut out);
    }
    if let Some(month) = &told.month {
        out.push('\n');
        out.push_str(&in_lines(&cost_of(month), ""));
    }
    let _ = writeln!(out, "\nThe advisor remembers at most {} KiB.", told.memory_bound_bytes.div_ceil(1024));
    out
}

fn number(finding: &ToldFinding, name: &str) -> Option<f64> {
    finding.numbers.get(name)?.as_f64()
}

fn cost_of(month: &ToldMonth) -> String {
    if month.observed_seconds < OBSERVED_SECONDS_MIN {
        return "What a month would cost on the real service can be said after a minute of requests."
            .to_owned();
    }
    let mut text = format!(
        "At the rate of the last {}, a month on the real service would be {} requests to tables and {} to queues: {}",
        time(month.observed_seconds),
        count(month.table_transactions),
        count(month.queue_transactions),
        money(month.transactions_cost, &month.currency)
    );
    if let (Some(bytes), Some(cost)) = (month.stored_bytes, month.capacity_cost) {
        let gib = bytes / f64::from(1u32 << 30);
        text += &format!(", and {} for the {gib:.2} GiB that are stored", money(cost, &month.currency));
    }
    text + &format!(" (prices of {}: {}; others with --prices).", month.prices_date, month.prices_basis)
}

fn money(amount: f64, currency: &str) -> String {
    if amount < 0.01 { format!("less than 0.01 {currency}") } else { format!("{amount:.2} {currency}") }
}

fn count(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.1} billion", value / 1e9),
        value if value >= 1e6 => format!("{:.1} million", value / 1e6),
        value => format!("{value:.0}"),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} seconds"),
        seconds if seconds < 7200.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{:.0} hours", seconds / 3600.0),
    }
}

fn paragraph(text: &str, out: &mut String) {
    out.push_str(&in_lines(text, "   "));
}

/// Breaks a text at spaces, so that no line is longer than [`COLUMNS`], if words allow.
fn in_lines(text: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in plain(text).split(' ').filter(|word| !word.is_empty()) {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > COLUMNS {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str(indent);
            column = indent.len();
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
    out
}

/// Nothing that moves the cursor or changes colours.
fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_read_well_and_obey_no_key() {
        let answer = r#"{"findings":[{"id":"table-scan-1","rank":1,"severity":"high","kind":"table-scan","account":"acc",
            "table":"People","subject":"\u001b[31mEmail eq String","title":"Queries for Email scan the whole table People",
            "numbers":{"requests":7,"month_cost":12.345},"explanation":"The filter names no PartitionKey.",
            "remedy":"Keep a second table.","sketch":"a\nb","pattern":"docs/patterns/inter_partition_index.md"}],
            "month":{"observed_seconds":300,"currency":"USD","prices_date":"2025","prices_basis":"here",
            "table_transactions":2500000,"queue_transactions":0,"transactions_cost":0.09,"stored_bytes":null,
            "capacity_cost":null},"memory_bound_bytes":1}"#;
        let words = in_words(&serde_json::from_str(answer).unwrap());
        let expected = "One finding.\n\n\
            1. Queries for Email scan the whole table People (high)\n   Account acc: ?[31mEmail eq String\n   \
            The filter names no PartitionKey.\n   A month of these requests there: 12.35 USD.\n   \
            What to do: Keep a second table.\n       a\n       b\n   \
            Pattern: docs/patterns/inter_partition_index.md\n\n\
            At the rate of the last 5 minutes, a month on the real service would be 2.5 million requests to\n\
            tables and 0 to queues: 0.09 USD (prices of 2025: here; others with --prices).\n\n\
            The advisor remembers at most 1 KiB.\n";
        assert_eq!(words, expected);
        let nothing = Told { findings: Vec::new(), month: None, memory_bound_bytes: 0 };
        assert!(in_words(&nothing).starts_with("Nothing to advise"));
    }

    #[test]
    fn only_plain_http_is_asked() {
        for (url, part) in [("https://127.0.0.1:1", "with -l DIR"), ("ftp://x", "not an http address")] {
            assert!(over_http(url, None).unwrap_err().contains(part), "{url}");
        }
        assert!(over_http("http://127.0.0.1:1", Some("a b")).is_err());
    }
}
