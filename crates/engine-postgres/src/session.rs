//! One connection to the database: how it is made, what it notices, how it ends.
//!
//! Promises: a session takes writes when it starts. It holds a lock of its own for as long as the server runs it, so whoever
//! gets that lock later knows that nothing sent through this session will happen any more. A statement is never
//! cancelled: PostgreSQL reports success for a commit whose wait for its standby was cancelled. At a deadline the session is
//! given up instead. A warning during a statement means that its commit may not be on the standby yet; [`DatabaseSession::query`]
//! then makes sure of it before it answers.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use engine::env::random;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Row, Statement};

use crate::ConnectError;
use crate::failure::{Failure, describe};
use crate::schema::SchemaName;
use crate::statements::{SESSION_SETTINGS, Statements};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Unacknowledged bytes for this long end the connection.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);

pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Where the database is, and how to log in.
pub(crate) struct Connector {
    config: Config,
    pub(crate) schema: SchemaName,
    #[cfg(feature = "tls")]
    tls: crate::tls::DatabaseTls,
}

impl Connector {
    pub(crate) fn new(url: &str, schema: SchemaName) -> Result<Connector, ConnectError> {
        // The parser names the option that it does not understand, and never the whole URL.
        let mut config: Config = url
            .parse()
            .map_err(|error| ConnectError::Invalid(format!("the URL of the engine: {}", describe(&error))))?;
        if config.get_hosts().is_empty() {
            return Err(ConnectError::Invalid("the URL of the engine names no host".to_owned()));
        }
        let options = match config.get_options() {
            // The last setting of a name counts, and these are not for others to choose.
            Some(own) => format!("{own} {SESSION_SETTINGS}"),
            None => SESSION_SETTINGS.to_owned(),
        };
        config.options(options);
        if config.get_application_name().is_none() {
            config.application_name("lazulite");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIME_MAX);
        }
        config.tcp_user_timeout(TCP_USER_TIMEOUT).keepalives_idle(KEEPALIVE_IDLE);
        // With several hosts, the one that leads is the one that takes writes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if cfg!(not(feature = "tls")) && config.get_ssl_mode() == SslMode::Require {
            let what = "this build has no TLS for connections to the database (feature `tls`)";
            return Err(ConnectError::Invalid(what.to_owned()));
        }
        #[cfg(feature = "tls")]
        let tls = crate::tls::DatabaseTls::new(config.get_ssl_mode())?;
        Ok(Connector {
            config,
            schema,
            #[cfg(feature = "tls")]
            tls,
        })
    }

    /// A connection and nothing more.
    pub(crate) async fn client(&self) -> Result<(Client, Arc<SessionState>, AbortHandle), ConnectError> {
        // The parser's timeout is for each host's handshake only, so a host that accepts and says nothing needs ours too.
        let time_max = CONNECT_TIME_MAX * u32::try_from(self.config.get_hosts().len()).unwrap_or(1);
        let connected = tokio::time::timeout(time_max, self.connect()).await;
        connected
            .unwrap_or_else(|_| Err(ConnectError::Unreachable("the database does not answer".to_owned())))
    }

    #[cfg(feature = "tls")]
    async fn connect(&self) -> Result<(Client, Arc<SessionState>, AbortHandle), ConnectError> {
        let (client, connection) =
            self.config.connect(self.tls.clone()).await.map_err(|error| refused(&error))?;
        Ok(drive(client, connection))
    }

    #[cfg(not(feature = "tls"))]
    async fn connect(&self) -> Result<(Client, Arc<SessionState>, AbortHandle), ConnectError> {
        let tls = tokio_postgres::NoTls;
        let (client, connection) = self.config.connect(tls).await.map_err(|error| refused(&error))?;
        Ok(drive(client, connection))
    }

    /// A session that is ready for every statement.
    pub(crate) async fn session(&self) -> Result<DatabaseSession, ConnectError> {
        let (client, state, driver) = self.client().await?;
        // If anything below fails, the connection ends with this.
        let mut session = Unprepared { driver: Some(driver) };
        let key = random::unguessable() as i64;
        let time_max = CONNECT_TIME_MAX;
        let prepared = tokio::time::timeout(time_max, async {
            client.query("SELECT pg_advisory_lock($1)", &[&key]).await?;
            Statements::prepare(&client, &self.schema).await
        });
        let statements = match prepared.await {
            Ok(Ok(statements)) => statements,
            Ok(Err(error)) => return Err(ConnectError::Schema(describe(&error))),
            Err(_) => return Err(ConnectError::Unreachable("the database does not answer".to_owned())),
        };
        let driver = session.driver.take();
        let confirming = self.schema.fill("UPDATE {schema}.meta SET format = format");
        Ok(DatabaseSession { client, statements, key, confirming, state, driver })
    }
}

struct Unprepared {
    driver: Option<AbortHandle>,
}

impl Drop for Unprepared {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}

/// A sentence about why there is no connection.
fn refused(error: &tokio_postgres::Error) -> ConnectError {
    let cause = describe(error);
    match error.code() {
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            ConnectError::Refused(format!("the database does not accept the user or the password: {cause}"))
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => ConnectError::Refused(cause),
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => ConnectError::Refused(cause),
        _ => ConnectError::Unreachable(cause),
    }
}

/// What the driver of a connection tells those who use it.
#[derive(Default)]
pub(crate) struct SessionState {
    is_over: AtomicBool,
    warning_count: AtomicU64,
}

/// Runs the connection until it ends.
fn drive<S, T>(client: Client, mut connection: Connection<S, T>) -> (Client, Arc<SessionState>, AbortHandle)
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
                        seen.warning_count.fetch_add(1, Ordering::Release);
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
    /// Of the lock that it holds.
    pub(crate) key: i64,
    /// Changes nothing, and is a commit.
    confirming: String,
    state: Arc<SessionState>,
    driver: Option<AbortHandle>,
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
            // An error inside of `next_version` would leave its lock with this session; its end releases every lock.
            self.give_up();
        }
        outcome
    }

    async fn confirm(&self) -> Result<(), tokio_postgres::Error> {
        loop {
            let warnings_before = self.state.warning_count.load(Ordering::Acquire);
            self.client.batch_execute(&self.confirming).await?;
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
