//! What the tests share: one PostgreSQL, and a schema of its own for every engine.

#![allow(dead_code, reason = "no test program uses all of it")]

pub mod moves;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::Families;
use engine::env::Clock;
use engine_postgres::{PoolSize, PostgresOptions};
use testkit::Postgres;

/// The server of this test program. Says loudly that a test is skipped where there is none.
pub fn postgres_or_skip(test: &str) -> Option<Arc<Postgres>> {
    or_skip(test, Postgres::shared())
}

/// What a test needs, or a loud word that it is skipped.
pub fn or_skip<T>(test: &str, needed: Result<T, String>) -> Option<T> {
    needed
        .inspect_err(|reason| {
            // A server that must be there may be asked for.
            assert!(std::env::var_os("LAZULITE_TEST_POSTGRES").is_none(), "{reason}");
            println!("SKIPPED {test}: {reason}");
        })
        .ok()
}

/// A schema of its own.
pub struct Database {
    pub url: String,
    pub schema: String,
}

impl Database {
    pub fn fresh(server: &Postgres) -> Database {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let schema = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Database { url: server.url(), schema }
    }

    pub fn options(&self, families: Families, clock: Arc<dyn Clock>) -> PostgresOptions {
        let few = |size: PoolSize| PoolSize { session_count_max: size.session_count_max.min(8), ..size };
        let mut options = PostgresOptions::new(&self.url, families, clock);
        options.schema = self.schema.clone();
        (options.reads, options.writes, options.scans) =
            (few(options.reads), few(options.writes), few(options.scans));
        options
    }
}
