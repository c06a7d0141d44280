//! One connection to the database: what it notices, how it ends.
//!
//! Promises: a session takes writes when it starts. It holds a lock of its own for as long as the server runs it, so
//! whoever gets that lock later knows that nothing sent through this session will happen any more. A statement is
//! never cancelled: PostgreSQL reports success for a commit whose wait for its standby was cancelled. At a deadline
//! the session is given up instead. A warning during a statement means that its commit may not be on the standby yet;
//! [`DatabaseSession::query`] then makes sure of it before it answers.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, Row, Statement};

use crate::failure::{Failure, describe};
use crate::leadership::DatabaseServer;
use crate::space::DiskSpace;
use crate::statements::{PlaceStatements, Statements};

pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

pub(crate) struct Unprepared {
    pub(crate) driver: Option<AbortHandle>,
}

impl Drop for Unprepared {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}

/// What the driver of a connection tells those who use it.
#[derive(Default)]
pub(crate) struct SessionState {
    is_over: AtomicBool,
    warning_count: AtomicU64,
    /// Once it is known.
    server: OnceLock<Arc<DatabaseServer>>,
}

impl SessionState {
    pub(crate) fn belongs_to(&self, server: &Arc<DatabaseServer>) {
        // Only the session's own start says so, once.
        let _ = self.server.set(server.clone());
    }

    /// Perhaps a wait for the standby was cancelled, and rows can be seen that are not there.
    fn warned(&self) {
        if let Some(server) = self.server.get() {
            server.distrust();
        }
        self.warning_count.fetch_add(1, Ordering::Release);
    }
}

/// Runs the connection until it ends.
pub(crate) fn drive<S, T>(
    client: Client,
    mut connection: Connection<S, T>,
) -> (Client, Arc<SessionState>, AbortHandle)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let state = Arc::new(SessionState::default());
    let seen = state.clone();
    let driver = tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notice(notice)) => {
                    log::warn!("PostgreSQL: {} (SQLSTATE {})", notice.message(), notice.code().code());
                    if notice.parsed_severity().is_none_or(|severity| severity == Severity::Warning) {
                        seen.warned();
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    log::info!("a connection to PostgreSQL ended: {}", describe(&error));
                    break;
                }
            }
        }
        seen.is_over.store(true, Ordering::Release);
    });
    (client, state, driver.abort_handle())
}

pub(crate) struct DatabaseSession {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
    pub(crate) server: Arc<DatabaseServer>,
    pub(crate) space: Arc<DiskSpace>,
    /// The first barrier that is late enough for this session (`leadership.rs`).
    pub(crate) barrier_needed: u64,
    /// Of the lock that it holds.
    pub(crate) key: i64,
    pub(crate) state: Arc<SessionState>,
    pub(crate) driver: Option<AbortHandle>,
}

impl DatabaseSession {
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_over.load(Ordering::Acquire) || self.client.is_closed()
    }

    /// Ends the connection without a word to the server: what was sent may still happen there.
    pub(crate) fn give_up(&self) {
        self.state.is_over.store(true, Ordering::Release);
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }

    /// The statements of one place.
    pub(crate) async fn at(&self, place: i64, time_max: Duration) -> Result<Arc<PlaceStatements>, Failure> {
        let prepared = tokio::time::timeout(time_max, self.statements.at(&self.client, place)).await;
        let failure = match prepared {
            Ok(Ok(statements)) => return Ok(statements),
            Ok(Err(error)) => Failure::of(&error, self.key),
            Err(_) => Failure::Rejected { cause: "no answer in time".to_owned(), retries: true },
        };
        self.give_up();
        // Nothing was sent that could change anything, so a lost connection leaves no question.
        Err(match failure {
            Failure::Lost { cause, .. } => Failure::Rejected { cause, retries: true },
            other => other,
        })
    }

    /// The rows that a statement returns, or what became of it. A write that is returned from here is durable.
    pub(crate) async fn query(
        &self,
        statement: &Statement,
        params: Params<'_>,
        time_max: Duration,
    ) -> Result<Vec<Row>, Failure> {
        let warnings_before = self.state.warning_count.load(Ordering::Acquire);
        let outcome = tokio::time::timeout(time_max, async {
            let rows = self.client.query(statement, params).await?;
            if self.state.warning_count.load(Ordering::Acquire) != warnings_before {
                // Perhaps the commit's wait for its standby was cancelled. A later commit that waits to its end proves
                // that everything before it is there.
                self.confirm().await?;
            }
            Ok(rows)
        });
        let outcome = match outcome.await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(Failure::of(&error, self.key)),
            Err(_) => {
                let cause = "the database did not answer in time".to_owned();
                Err(Failure::Lost { cause, session_key: self.key })
            }
        };
        if let Err(failure) = &outcome {
            log::debug!("a statement failed: {failure:?}");
            if matches!(failure, Failure::Full) {
                self.space.ran_out();
            }
            // An error inside of `next_version` would leave its lock with this session; its end releases every lock.
            self.give_up();
        }
        outcome
    }

    async fn confirm(&self) -> Result<(), tokio_postgres::Error> {
        loop {
            let warnings_before = self.state.warning_count.load(Ordering::Acquire);
            self.client.query(&self.statements.barrier, &[]).await?;
            if self.state.warning_count.load(Ordering::Acquire) == warnings_before {
                return Ok(());
            }
        }
    }
}

impl Drop for DatabaseSession {
    fn drop(&mut self) {
        self.give_up();
    }
}
