//! The engine on PostgreSQL, as servers and commands open it.
//!
//! Promises: a failure is one sentence without a secret. Leaves to others: where the URL comes from (`place`), and everything
//! about rows (`engine-postgres`).

use std::sync::Arc;

use engine::Engine;
use engine::env::{Clock, SystemClock};
use engine_postgres::{PostgresEngine, PostgresOptions};

use crate::place::EngineAddress;
use crate::{store, unfinished};

/// Call it in the runtime in which the engine is going to be used.
pub async fn open(address: &EngineAddress, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>, String> {
    let options = PostgresOptions::new(address.url(), server::FAMILIES, clock);
    match PostgresEngine::connect(options).await {
        Ok(engine) => Ok(Arc::new(engine)),
        Err(error) => Err(error.to_string()),
    }
}

/// Opens the engine for one piece of work of a command, and closes it.
pub fn work_on<T>(
    address: &EngineAddress,
    work: impl AsyncFnOnce(Arc<dyn Engine>) -> Result<T, String>,
) -> Result<T, String> {
    store::wait_for(async {
        let engine = open(address, Arc::new(SystemClock::new())).await?;
        unfinished::refuse(&*engine, &address.name()).await?;
        let outcome = work(engine.clone()).await;
        engine.close().await;
        outcome
    })?
}
