//! Limits on what a client may cost: every bound of the HTTP door, with its name and default.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections served at once, over all services; further ones wait to be accepted. One address gets at most nine
    /// tenths (`connections`); further ones of the same address are closed.
    pub connection_count_max: usize,
    /// Requests handled at once; further ones are answered 503 `ServerBusy`. One account gets at most two thirds
    /// (`fairness`). As many commits may wait in the engine, so that they are shared in the same way.
    pub requests_in_flight_max: usize,
    /// Bytes of a request's line and headers together.
    pub header_bytes_max: usize,
    pub header_count_max: usize,
    /// Bytes of long heads held in memory, over all connections. One address gets at most half. A connection whose head
    /// has no memory is closed.
    pub head_bytes_max: usize,
    /// The service's own limit on payloads: 4 MiB.
    pub body_bytes_max: usize,
    /// Bytes of large payloads held in memory at once, over all requests; further ones are answered 503 `ServerBusy`. One
    /// account gets at most two thirds, and one caller half (`memory_pool`).
    pub payload_bytes_max: usize,
    /// Bytes of large answers held in memory until they are read, over all requests, shared as payloads are.
    /// Past this bound pages get shorter, and answers that cannot be shortened become 503 `ServerBusy`.
    pub answer_bytes_max: usize,
    /// How long a request's line and headers may take to arrive, including idle time before them.
    pub header_time_max: Duration,
    /// How long a request's body may take to arrive.
    pub body_time_max: Duration,
    /// How long an answer may wait for its reader.
    pub write_time_max: Duration,
    /// How long open requests may take to finish after shutdown begins.
    pub shutdown_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connection_count_max: 10_000,
            requests_in_flight_max: 6_000,
            header_bytes_max: 128 * 1024,
            header_count_max: 100,
            head_bytes_max: 64 * 1024 * 1024,
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
