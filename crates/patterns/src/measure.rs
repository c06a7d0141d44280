//! Counts what a program asks of a service: requests, entities examined, bytes.
//!
//! [`Meter`] is a [`Transport`] around another one. It asks Lazulite to explain each query (`x-lazulite-explain`) and adds up
//! what the plans say. Promises: the same work gives the same counts on every run, so a page can show them. Bytes are
//! therefore those of the path, the query before percent-encoding, and the payloads with all times written in full; headers,
//! which carry dates and signatures, do not count.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use lazulite_client::{Sending, Transport};

const EXPLAIN: HeaderName = HeaderName::from_static("x-lazulite-explain");
const PLAN: HeaderName = HeaderName::from_static("x-lazulite-plan");

/// What was asked of the service.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cost {
    /// Requests, refused ones included.
    pub requests: u64,
    /// Entities that the service looked at to answer queries and point reads. Too low if [`Cost::unexplained`] is not 0.
    pub entities_examined: u64,
    /// Queries that the service did not explain, because it is not Lazulite.
    pub unexplained: u64,
    /// Bytes of paths, queries and payloads that went to the service.
    pub bytes_sent: u64,
    /// Bytes of payloads that came back.
    pub bytes_received: u64,
}

/// Counts what passes through. Clones count together.
#[derive(Clone)]
pub struct Meter {
    inner: Arc<dyn Transport>,
    counts: Arc<Mutex<Cost>>,
}

impl Meter {
    /// A meter that sends through `inner`.
    pub fn new(inner: Arc<dyn Transport>) -> Meter {
        Meter { inner, counts: Arc::default() }
    }

    /// What was counted since the last call. The next count starts at zero.
    pub fn take(&self) -> Cost {
        std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, more: Cost) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.requests += more.requests;
        counts.entities_examined += more.entities_examined;
        counts.unexplained += more.unexplained;
        counts.bytes_sent += more.bytes_sent;
        counts.bytes_received += more.bytes_received;
    }
}

impl Transport for Meter {
    fn send(&self, mut request: Request<Bytes>) -> Sending<'_> {
        // The header is not part of what any signature covers, so adding it here does no harm.
        request.headers_mut().insert(EXPLAIN, HeaderValue::from_static("1"));
        let read = Read::of(&request);
        let bytes_sent = sent_bytes(&request);
        Box::pin(async move {
            self.add(Cost { requests: 1, bytes_sent, ..Cost::default() });
            let response = self.inner.send(request).await?;
            self.add(answer_cost(read, &response));
            Ok(response)
        })
    }
}

/// What a request reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Read {
    /// One entity, by its keys. Such a read needs no plan.
    Entity,
    /// Whatever a filter selects.
    Query,
    Nothing,
}

impl Read {
    fn of(request: &Request<Bytes>) -> Read {
        let path = request.uri().path();
        match *request.method() {
            Method::GET if path.contains("(PartitionKey=") => Read::Entity,
            Method::GET if path.ends_with("()") => Read::Query,
            _ => Read::Nothing,
        }
    }
}

fn sent_bytes(request: &Request<Bytes>) -> u64 {
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    // A receipt of a message is Base64, whose `+` and `/` take three bytes each when they are encoded. Counting one byte
    // for each keeps the count the same for every receipt.
    let encoded = target.bytes().filter(|byte| *byte == b'%').count();
    as_u64(target.len() - 2 * encoded.min(target.len() / 3) + steady_length(request.body()))
}

/// The length of a payload if all its times had seven digits after the second. The service leaves out trailing zeros, so
/// one Timestamp or ETag in ten is shorter than the others.
fn steady_length(payload: &[u8]) -> usize {
    /// `.1234567`
    const FRACTION_LENGTH: usize = 8;
    let mut length = payload.len();
    for end in (0..payload.len()).filter(|place| payload[*place] == b'Z') {
        let before = &payload[..end];
        let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let start = end - digits;
        let has_fraction = start > 0 && payload[start - 1] == b'.' && (1..FRACTION_LENGTH).contains(&digits);
        let (fraction, seconds_end) = if has_fraction { (digits + 1, start - 1) } else { (0, end) };
        if ends_with_seconds(&payload[..seconds_end]) {
            length += FRACTION_LENGTH - fraction;
        }
    }
    length
}

/// Whether this ends like `22:20:23`, percent-encoded or not.
fn ends_with_seconds(text: &[u8]) -> bool {
    let Some((rest, [tens, ones])) = text.split_last_chunk::<2>() else { return false };
    tens.is_ascii_digit() && ones.is_ascii_digit() && (rest.ends_with(b":") || rest.ends_with(b"%3A"))
}

fn answer_cost(read: Read, response: &Response<Bytes>) -> Cost {
    let bytes_received = as_u64(steady_length(response.body()));
    let mut counts = Cost { bytes_received, ..Cost::default() };
    let examined = response.headers().get(PLAN).and_then(|plan| examined(plan.to_str().ok()?));
    match read {
        Read::Entity => counts.entities_examined = u64::from(response.status() == StatusCode::OK),
        Read::Query => match examined {
            Some(examined) => counts.entities_examined = examined,
            None => counts.unexplained = u64::from(response.status() == StatusCode::OK),
        },
        Read::Nothing => {}
    }
    counts
}

/// The number in `row range; examined=2; returned=2`.
fn examined(plan: &str) -> Option<u64> {
    plan.split("; ").find_map(|part| part.strip_prefix("examined="))?.parse().ok()
}

fn as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every request with a plan and a body of four bytes.
    struct Answers;

    impl Transport for Answers {
        fn send(&self, request: Request<Bytes>) -> Sending<'_> {
            assert_eq!(request.headers()[EXPLAIN], "1");
            let mut response = Response::new(Bytes::from_static(b"1234"));
            if !request.uri().path().contains("PartitionKey") {
                let plan = HeaderValue::from_static("row range; examined=7; returned=2");
                response.headers_mut().insert(PLAN, plan);
            }
            Box::pin(async move { Ok(response) })
        }
    }

    #[tokio::test]
    async fn requests_entities_and_bytes_are_added_up() {
        let meter = Meter::new(Arc::new(Answers));
        let get = |uri: &str| Request::get(uri).body(Bytes::from_static(b"12")).unwrap();
        meter.send(get("http://h/a/people()?a=%2B")).await.unwrap();
        meter.send(get("http://h/a/people(PartitionKey='x',RowKey='y')")).await.unwrap();
        let counts = meter.take();
        let sent = "/a/people()?a=+".len() + "/a/people(PartitionKey='x',RowKey='y')".len() + 2 * 2;
        assert_eq!(counts.requests, 2);
        assert_eq!(counts.entities_examined, 7 + 1);
        assert_eq!((counts.unexplained, counts.bytes_received), (0, 8));
        assert_eq!(counts.bytes_sent, sent as u64);
        assert_eq!(meter.take(), Cost::default());
    }

    #[test]
    fn times_count_as_if_they_were_written_in_full() {
        let full = r#"W/"datetime'2026-01-31T22%3A20%3A23.1234567Z'" 2026-01-31T22:20:23.1234567Z"#;
        assert_eq!(steady_length(full.as_bytes()), full.len());
        for short in [".123", ".1", ""] {
            let text = full.replace(".1234567", short);
            assert_eq!(steady_length(text.as_bytes()), full.len(), "{text}");
        }
        for other in ["Z", "12.5Z", ":1Z", "23:59:59", "Zurich:12Zoo"] {
            let expected = other.len() + if other == "Zurich:12Zoo" { 8 } else { 0 };
            assert_eq!(steady_length(other.as_bytes()), expected, "{other}");
        }
    }

    #[test]
    fn a_plan_that_is_none_says_nothing() {
        assert_eq!(examined("table scan; examined=12; returned=0"), Some(12));
        assert_eq!(examined("point"), None);
        assert_eq!(examined("examined=many"), None);
    }
}
