//! Creates, fills, clears and deletes the queues to measure on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::Error;
use crate::endpoint::Endpoint;
use crate::messages::{Puts, Takes};
use crate::queue_request::QueueSigner;
use crate::table::{DataLoad, Filled, ask_for};

/// Puts share a sync, so many connections fill a queue faster than few.
const FILL_CONNECTION_COUNT: usize = 64;

pub fn create(endpoint: &Endpoint, queue: &str) -> Result<(), Error> {
    ask_for(endpoint, &QueueSigner::of(endpoint)?.create_queue(queue), 201).map(|_| ())
}

pub fn delete(endpoint: &Endpoint, queue: &str) -> Result<(), Error> {
    ask_for(endpoint, &QueueSigner::of(endpoint)?.delete_queue(queue), 204).map(|_| ())
}

/// Removes all messages.
pub fn clear(endpoint: &Endpoint, queue: &str) -> Result<(), Error> {
    ask_for(endpoint, &QueueSigner::of(endpoint)?.clear(queue), 204).map(|_| ())
}

/// Puts so many messages. An error if it takes longer than `time_max` or is stopped.
pub fn fill(
    endpoint: &Endpoint,
    queue: &str,
    message_count: u64,
    time_max: Duration,
    stop: Option<&Arc<AtomicBool>>,
    progress: impl FnMut(&Filled),
) -> Result<Filled, Error> {
    fill_with(endpoint, queue, message_count, &[], time_max, stop, progress)
}

/// The same, with options such as `messagettl`.
pub fn fill_with(
    endpoint: &Endpoint,
    queue: &str,
    message_count: u64,
    options: &[(&str, &str)],
    time_max: Duration,
    stop: Option<&Arc<AtomicBool>>,
    progress: impl FnMut(&Filled),
) -> Result<Filled, Error> {
    let load = load(endpoint, message_count, time_max, stop);
    load.run(&mut Puts::new(QueueSigner::of(endpoint)?, queue, options, message_count), progress)
}

/// Takes so many messages one by one, on many connections, and deletes each.
pub fn drain(
    endpoint: &Endpoint,
    queue: &str,
    message_count: u64,
    time_max: Duration,
) -> Result<Filled, Error> {
    let load = load(endpoint, message_count, time_max, None);
    let takes = Takes::new(&QueueSigner::of(endpoint)?, queue, 1);
    load.run(&mut *takes.at_most(message_count), |_| {})
}

/// One message in each request, on many connections.
fn load<'a>(
    endpoint: &Endpoint,
    message_count: u64,
    time_max: Duration,
    stop: Option<&'a Arc<AtomicBool>>,
) -> DataLoad<'a> {
    DataLoad {
        address: endpoint.address,
        connection_count: FILL_CONNECTION_COUNT,
        per_request: 1,
        wanted: message_count,
        time_max,
        stop,
    }
}
