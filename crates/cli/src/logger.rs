//! The log: each message is one line on standard error, as text for people or as JSON for programs.
//!
//! Promises: a standard error that is closed, or that nobody reads, never stops the server: lines that find no room are
//! left out, and counted. In JSON every line is one object with `time`, `level`,
//! `target` and `message`, and the message's own fields. Which messages exist is up to the code that logs them, and so
//! is that none holds a secret.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use engine::env::{Clock, SystemClock};
use log::kv::{self, Key, Value, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use protocol::common::DateTime;
use serde_json::{Map, Value as Json};
use server::{ACCESS_TARGET, LogRules, SLOW_TARGET};

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// How the server logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogSettings {
    pub format: LogFormat,
    pub level: LevelFilter,
    pub rules: LogRules,
}

/// Lines that wait to be written.
const LINE_COUNT_MAX: usize = 4096;
/// How long the last lines may take when the server stops.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

struct Logger {
    settings: LogSettings,
    clock: SystemClock,
    waiting: SyncSender<Waiting>,
    left_out_count: AtomicU64,
}

enum Waiting {
    Line(String),
    /// All lines before are written when this is dropped.
    Flush(SyncSender<()>),
}

static LOGGER: OnceLock<Logger> = OnceLock::new();

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Whoever asked for a log of requests gets it, whatever the level of the other messages.
        is_of_requests(metadata.target()) || metadata.level() <= self.settings.level
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let line = self.line(record);
        if self.waiting.try_send(Waiting::Line(line)).is_err() {
            self.left_out_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {
        let (flushed, is_flushed) = mpsc::sync_channel(0);
        if self.waiting.try_send(Waiting::Flush(flushed)).is_ok() {
            // It is never sent, only dropped.
            let _ = is_flushed.recv_timeout(FLUSH_TIME_MAX);
        }
    }
}

/// Writes line by line. It has a thread of its own, because nobody knows when standard error is read.
fn write_lines(waiting: &Receiver<Waiting>, logger: &OnceLock<Logger>) {
    for next in waiting {
        let mut text = match next {
            Waiting::Line(line) => line,
            Waiting::Flush(_flushed) => continue,
        };
        let left_out_count =
            logger.get().map_or(0, |logger| logger.left_out_count.swap(0, Ordering::Relaxed));
        if left_out_count > 0 {
            text = format!("{}{text}", left_out_line(left_out_count, logger));
        }
        // Ignore a closed standard error: the server must keep serving.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

fn left_out_line(count: u64, logger: &OnceLock<Logger>) -> String {
    let Some(logger) = logger.get() else { return String::new() };
    let args = format_args!("{count} lines of the log were left out, because standard error was not read");
    let record = Record::builder().level(Level::Warn).target(module_path!()).args(args).build();
    logger.line(&record)
}

impl Logger {
    fn line(&self, record: &Record<'_>) -> String {
        let now = DateTime::from_ticks(self.clock.now_ticks());
        match self.settings.format {
            LogFormat::Text => text_line(record, now),
            LogFormat::Json => json_line(record, now),
        }
    }
}

fn is_of_requests(target: &str) -> bool {
    matches!(target, ACCESS_TARGET | SLOW_TARGET)
}

pub fn start(settings: LogSettings) {
    let has_access = settings.rules.access_one_in.is_some();
    let level = if has_access { settings.level.max(LevelFilter::Info) } else { settings.level };
    log::set_max_level(if settings.rules.slow.is_some() { level.max(LevelFilter::Warn) } else { level });
    let (waiting, receiver) = mpsc::sync_channel(LINE_COUNT_MAX);
    let logger = LOGGER.get_or_init(|| Logger {
        settings,
        clock: SystemClock::new(),
        waiting,
        left_out_count: AtomicU64::new(0),
    });
    // Without the thread no line is written, and nothing waits for one.
    let _ = thread::Builder::new().name("log".to_owned()).spawn(move || write_lines(&receiver, &LOGGER));
    // Fails only when a logger is set already, and this runs once.
    let _ = log::set_logger(logger);
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

fn shown_time(now: DateTime) -> String {
    let mut text = Vec::new();
    now.write_padded(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Messages keep the form they always had; logs of requests have the time, too.
fn text_line(record: &Record<'_>, now: DateTime) -> String {
    let mut line = match record.target() {
        target if is_of_requests(target) => {
            format!("lazulite: {target}: {} {}", shown_time(now), record.args())
        }
        _ => format!("lazulite: {}: {}", level_name(record.level()), record.args()),
    };
    // Writing to a string never fails.
    let _ = record.key_values().visit(&mut TextFields(&mut line));
    line.push('\n');
    line
}

struct TextFields<'a>(&'a mut String);

impl<'kvs> VisitSource<'kvs> for TextFields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        let value = value.to_string();
        let is_plain = !value.is_empty()
            && value.chars().all(|character| character.is_ascii_graphic() && character != '"');
        let _ = match is_plain {
            true => write!(self.0, " {key}={value}"),
            false => write!(self.0, " {key}={value:?}"),
        };
        Ok(())
    }
}

fn json_line(record: &Record<'_>, now: DateTime) -> String {
    let mut object = Map::new();
    // Nothing fails here.
    let _ = record.key_values().visit(&mut JsonFields(&mut object));
    object.insert("time".to_owned(), shown_time(now).into());
    object.insert("level".to_owned(), level_name(record.level()).into());
    object.insert("target".to_owned(), record.target().into());
    object.insert("message".to_owned(), record.args().to_string().into());
    Json::Object(object).to_string() + "\n"
}

struct JsonFields<'a>(&'a mut Map<String, Json>);

impl<'kvs> VisitSource<'kvs> for JsonFields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        let json = match value.to_u64() {
            Some(number) => number.into(),
            None => value.to_string().into(),
        };
        self.0.insert(key.as_str().to_owned(), json);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(target: &str, level: Level) -> (String, String) {
        let fields: &[(&str, Value<'_>)] =
            &[("status", 404u16.into()), ("error", "".into()), ("filter", "A eq \"x\"".into())];
        let now = DateTime::parse("2025-01-02T03:04:05Z").unwrap();
        let make = |line: fn(&Record<'_>, DateTime) -> String| {
            line(
                &Record::builder()
                    .target(target)
                    .level(level)
                    .args(format_args!("GET \"/x\n\""))
                    .key_values(&fields)
                    .build(),
                now,
            )
        };
        (make(text_line), make(json_line))
    }

    #[test]
    fn lines_are_text_or_json_and_one_line_each() {
        let (_, json) = lines(ACCESS_TARGET, Level::Info);
        let read: Json = serde_json::from_str(&json).unwrap();
        assert_eq!(json.matches('\n').count(), 1);
        assert_eq!(
            (&read["status"], &read["error"], &read["level"]),
            (&404.into(), &"".into(), &"info".into())
        );
        assert_eq!(read["time"], "2025-01-02T03:04:05.0000000Z");
        let (text, _) = lines("server", Level::Warn);
        assert!(text.starts_with("lazulite: warn: GET"), "{text}");
        assert!(text.ends_with(" status=404 error=\"\" filter=\"A eq \\\"x\\\"\"\n"), "{text}");
    }
}
