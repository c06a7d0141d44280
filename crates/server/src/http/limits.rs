//! How much a stranger may cost: every bound of the HTTP door, with its name and its default.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections served at once; further ones wait until the system lets them in.
    pub connection_count_max: usize,
    /// Requests worked on at once; further ones are answered 503 `ServerBusy`.
    pub requests_in_flight_max: usize,
    /// Bytes of a request's line and headers together.
    pub header_bytes_max: usize,
    pub header_count_max: usize,
    /// The service's own limit on payloads: 4 MiB.
    pub body_bytes_max: usize,
    /// Bytes of large payloads held in memory at once, over all requests; further ones are answered 503 `ServerBusy`.
    pub payload_bytes_max: usize,
    /// Bytes of large answers held in memory until they are read, over all requests; beyond it pages get shorter, and
    /// what cannot be shorter is answered 503 `ServerBusy`.
    pub answer_bytes_max: usize,
    /// Time for a request's line and headers to arrive, idle time before them included.
    pub header_time_max: Duration,
    /// Time for a request's body to arrive.
    pub body_time_max: Duration,
    /// Time that an answer may wait for its reader.
    pub write_time_max: Duration,
    /// Time that open requests get to finish after a shutdown was asked for.
    pub shutdown_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connection_count_max: 10_000,
            requests_in_flight_max: 10_000,
            header_bytes_max: 128 * 1024,
            header_count_max: 100,
            body_bytes_max: 4 * 1024 * 1024,
            payload_bytes_max: 128 * 1024 * 1024,
            answer_bytes_max: 128 * 1024 * 1024,
            header_time_max: Duration::from_secs(60),
            body_time_max: Duration::from_secs(30),
            write_time_max: Duration::from_secs(60),
            shutdown_time_max: Duration::from_secs(10),
        }
    }
}
