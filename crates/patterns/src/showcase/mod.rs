//! What an example needs to show a pattern: a server, clients whose requests are counted, tables of its own.
//!
//! The server is the one that `LAZULITE_CONNECTION_STRING` names, or one that the example starts itself. Promises: tables and
//! queues have names that nobody else uses, and are deleted at the end. Leaves to others: what is shown.

mod report;
mod server;

use std::future::Future;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use lazulite_client::{
    BulkMode, ClientBuilder, Entity, HttpOptions, HttpTransport, QueueClient, QueueServiceClient,
    TableClient, TableServiceClient,
};

pub use report::{Measured, Report, grouped};
pub use server::{BINARY_VARIABLE, DemoServer, connection_string};

use crate::data::Size;
use crate::measure::{Cost, Meter};

/// Names a server to ask instead of starting one.
pub const CONNECTION_VARIABLE: &str = "LAZULITE_CONNECTION_STRING";
/// The digits that make names unlike those of others. Always as many, so that the counts of bytes stay the same.
const SUFFIX_LENGTH: usize = 8;

/// Whatever went wrong.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Clients of one account, whose requests are counted.
pub struct Demo {
    tables: TableServiceClient,
    queues: QueueServiceClient,
    meter: Meter,
    suffix: String,
    table_names: Mutex<Vec<String>>,
    queue_names: Mutex<Vec<String>>,
    /// Ends when the demo does.
    _server: Option<DemoServer>,
}

impl Demo {
    /// At the server that the environment names, or at a new one.
    pub fn open() -> Result<Demo, AnyError> {
        if let Ok(connection) = std::env::var(CONNECTION_VARIABLE) {
            return Demo::at(&connection);
        }
        let server = DemoServer::start()?;
        let demo = Demo::at(server.connection_string())?;
        Ok(Demo { _server: Some(server), ..demo })
    }

    /// At this server.
    pub fn at(connection_string: &str) -> Result<Demo, AnyError> {
        let meter = Meter::new(Arc::new(HttpTransport::new(HttpOptions::default())));
        let builder =
            ClientBuilder::from_connection_string(connection_string)?.transport(Arc::new(meter.clone()));
        let suffix = crate::random_name()?[..SUFFIX_LENGTH].to_owned();
        Ok(Demo {
            tables: builder.tables()?,
            queues: builder.queues()?,
            meter,
            suffix,
            table_names: Mutex::default(),
            queue_names: Mutex::default(),
            _server: None,
        })
    }

    /// The Table service.
    pub fn tables(&self) -> &TableServiceClient {
        &self.tables
    }

    /// A name that only this demo uses.
    pub fn name(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    /// A table that is new and empty.
    pub async fn table(&self, name: &str) -> Result<TableClient, AnyError> {
        let name = self.name(name);
        self.tables.delete_table_if_present(&name).await?;
        self.tables.create_table(&name).await?;
        self.table_names.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        Ok(self.tables.table(&name)?)
    }

    /// A queue that is new and empty.
    pub async fn queue(&self, name: &str) -> Result<QueueClient, AnyError> {
        let name = self.name(&format!("{name}-"));
        let queue = self.queues.queue(&name)?;
        queue.delete_queue_if_present().await?;
        queue.create().await?;
        self.queue_names.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        Ok(queue)
    }

    /// Stores many entities in as few requests as possible.
    pub async fn load<E: Entity + Sync>(&self, table: &TableClient, entities: &[E]) -> Result<(), AnyError> {
        table.bulk(entities, BulkMode::UpsertReplace).send().await.into_result()?;
        Ok(())
    }

    /// What this work asks of the service.
    pub async fn measure<T, E: Into<AnyError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<(Cost, T), AnyError> {
        self.meter.take();
        let result = work.await.map_err(Into::into)?;
        Ok((self.meter.take(), result))
    }

    /// Deletes everything that the demo made.
    pub async fn clean_up(&self) -> Result<(), AnyError> {
        let names = |names: &Mutex<Vec<String>>| {
            std::mem::take(&mut *names.lock().unwrap_or_else(PoisonError::into_inner))
        };
        for name in names(&self.table_names) {
            self.tables.delete_table_if_present(&name).await?;
        }
        for name in names(&self.queue_names) {
            self.queues.queue(&name)?.delete_queue_if_present().await?;
        }
        Ok(())
    }
}

/// The whole of an example: shows at every size, then prints the report.
pub fn main(run: impl AsyncFn(&Demo, Size, &mut Report) -> Result<(), AnyError>) -> ExitCode {
    match show(run) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn show(run: impl AsyncFn(&Demo, Size, &mut Report) -> Result<(), AnyError>) -> Result<Report, AnyError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let demo = Demo::open()?;
    let mut report = Report::new();
    runtime.block_on(async {
        for size in Size::ALL {
            run(&demo, size, &mut report).await?;
        }
        demo.clean_up().await?;
        Ok(report)
    })
}
