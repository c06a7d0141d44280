//! Creates, fills and deletes the tables to measure on, and sends single requests outside any measurement.
//!
//! Promises: a filled table holds exactly the entities of its shape. Leaves to others: what is measured on it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::generator::{Generator, Requests};
use crate::request::{BATCH_OPERATION_COUNT, Signer};
use crate::response::{ResponseReader, excerpt};
use crate::sources::Batches;
use crate::workload::TableShape;
use crate::{Error, clock};

const FILL_CONNECTION_COUNT: usize = 16;
/// Time between two reports of progress.
const FILL_STEP: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends one request on a connection of its own. Returns the answer's status and text.
pub fn ask(endpoint: &Endpoint, request: &[u8]) -> Result<(u16, String), Error> {
    let cannot = |error: std::io::Error| format!("cannot reach {}: {error}", endpoint.address);
    let mut stream = TcpStream::connect_timeout(&endpoint.address, CONNECT_TIMEOUT).map_err(cannot)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_nodelay(true)?;
    stream.write_all(request)?;
    let mut reader = ResponseReader::new();
    loop {
        let count = stream.read(reader.space()).map_err(|error| format!("no answer: {error}"))?;
        if count == 0 {
            return Err("the server closed the connection instead of answering".into());
        }
        if let Some(status) = reader.advance(count)? {
            return Ok((status, reader.text()));
        }
    }
}

/// Like `ask`, but any other status is an error.
pub fn ask_for(endpoint: &Endpoint, request: &[u8], expected: u16) -> Result<String, Error> {
    match ask(endpoint, request)? {
        (status, answer) if status == expected => Ok(answer),
        (_, answer) => {
            Err(format!("expected status {expected}, not this answer:\n{}", excerpt(&answer)).into())
        }
    }
}

pub fn create(endpoint: &Endpoint, table: &str) -> Result<(), Error> {
    ask_for(endpoint, &Signer::of(endpoint)?.create_table(table), 204).map(|_| ())
}

pub fn delete(endpoint: &Endpoint, table: &str) -> Result<(), Error> {
    ask_for(endpoint, &Signer::of(endpoint)?.delete_table(table), 204).map(|_| ())
}

/// How much is loaded, entities or messages, and how long it took.
pub struct Filled {
    pub entities: u64,
    pub took: Duration,
}

impl Filled {
    pub fn entities_per_second(&self) -> f64 {
        self.entities as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Fills a table with the entities of a shape. An error if it takes longer than `time_max` or is stopped.
pub fn fill(
    endpoint: &Endpoint,
    table: &str,
    shape: TableShape,
    time_max: Duration,
    stop: Option<&Arc<AtomicBool>>,
    progress: impl FnMut(&Filled),
) -> Result<Filled, Error> {
    let load = DataLoad {
        address: endpoint.address,
        connection_count: FILL_CONNECTION_COUNT,
        per_request: BATCH_OPERATION_COUNT as u64,
        wanted: shape.entities,
        time_max,
        stop,
    };
    load.run(&mut Batches::loading(&Signer::of(endpoint)?, table, shape), progress)
}

/// Loads what a measurement needs, from a source that ends.
pub(crate) struct DataLoad<'a> {
    pub address: SocketAddr,
    pub connection_count: usize,
    /// Entities or messages in a request.
    pub per_request: u64,
    pub wanted: u64,
    pub time_max: Duration,
    pub stop: Option<&'a Arc<AtomicBool>>,
}

impl DataLoad<'_> {
    pub(crate) fn run(
        &self,
        requests: &mut dyn Requests,
        mut progress: impl FnMut(&Filled),
    ) -> Result<Filled, Error> {
        let mut generator = Generator::open(self.address, self.connection_count, 1)?;
        if let Some(stop) = self.stop {
            generator.stop_with(stop.clone());
        }
        let start = clock::now();
        let mut filled = Filled { entities: 0, took: Duration::ZERO };
        loop {
            generator.run_for(FILL_STEP, requests)?;
            let tally = generator.take();
            tally.only_accepted()?;
            filled.entities += tally.all().accepted.total() * self.per_request;
            filled.took = clock::now().duration_since(start);
            if filled.entities >= self.wanted {
                return Ok(filled);
            }
            if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err("stopped while the data was being loaded".into());
            }
            if filled.took > self.time_max {
                let (done, wanted, time_max) = (filled.entities, self.wanted, self.time_max);
                return Err(format!("only {done} of {wanted} were loaded in {time_max:?}").into());
            }
            progress(&filled);
        }
    }
}
