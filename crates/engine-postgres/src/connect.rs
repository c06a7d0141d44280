//! Where the database is: which of several servers leads, and how a session with it begins.
//!
//! Promises: a server that does not answer costs a moment, not its time limit, because the next one is tried
//! meanwhile. Where Patroni is asked, only the server whose agent says that it leads is used; if two say so, the one
//! with the later timeline. The log has one line when no leader is found, and one when there is one again.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::env::{Clock, random};
use tokio::task::{AbortHandle, JoinSet};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config};

use crate::ConnectError;
use crate::etcd::{EtcdKey, Lineage, ProvenLead};
use crate::failure::describe;
use crate::leadership::DatabaseServer;
use crate::patroni::{Patroni, PatroniLeader};
use crate::schema::SchemaName;
use crate::session::{DatabaseSession, Params, SessionState, Unprepared, drive};
use crate::space::DiskSpace;
use crate::statements::{SESSION_SETTINGS, Statements};

/// Of one server, with its handshake.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// A server that has not answered for this long may be frozen, so another one is tried too.
const NEXT_HOST_AFTER: Duration = Duration::from_millis(300);
/// Unacknowledged bytes for this long end the connection.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
/// When it was started and where it listens tells one run of one server from all others.
const LOCK_AND_IDENTITY: &str = "SELECT pg_advisory_lock($1)::text, concat_ws(' ', \
    extract(epoch FROM pg_postmaster_start_time()), host(inet_server_addr()), inet_server_port())";
/// Further columns where etcd is asked. The timeline of a server that takes writes is in the names of its log files.
const LINEAGE: &str = ", (pg_control_system()).system_identifier::text, \
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint";
/// Runs of servers that are remembered: more than there are in a cluster.
const SERVER_COUNT_MAX: usize = 16;

type Connected = (Client, Arc<SessionState>, AbortHandle);

/// What is known of the leader.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Leader {
    /// Nobody has been there yet. Whoever starts the engine hears why.
    Unseen,
    Known,
    Missing,
    Silent,
}

/// Where the database is, and how to log in.
pub(crate) struct Connector {
    /// One for each host of the URL.
    hosts: Vec<Config>,
    patroni: Option<Patroni>,
    pub(crate) etcd: Option<EtcdKey>,
    pub(crate) schema: SchemaName,
    /// The host that led last.
    last_leader: AtomicUsize,
    leader: AtomicU8,
    pub(crate) space: Arc<DiskSpace>,
    servers: Mutex<Vec<Arc<DatabaseServer>>>,
    #[cfg(feature = "tls")]
    tls: crate::tls::DatabaseTls,
}

impl Connector {
    pub(crate) fn new(
        url: &str,
        patroni: &[String],
        schema: SchemaName,
        clock: Arc<dyn Clock>,
    ) -> Result<Connector, ConnectError> {
        let (url, in_url) = cut_from(url, "patroni=");
        let (url, etcd) = cut_from(&url, "etcd=");
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
        if cfg!(not(feature = "tls")) && config.get_ssl_mode() == SslMode::Require {
            let what = "this build has no TLS for connections to the database (feature `tls`)";
            return Err(ConnectError::Invalid(what.to_owned()));
        }
        #[cfg(feature = "tls")]
        let tls = crate::tls::DatabaseTls::new(config.get_ssl_mode())?;
        let hosts: Vec<Config> =
            (0..config.get_hosts().len()).map(|place| one_host(&config, place)).collect();
        let addresses = if patroni.is_empty() { in_url } else { patroni.to_vec() };
        Ok(Connector {
            patroni: Patroni::new(&addresses, hosts.len())?,
            etcd: EtcdKey::new(&etcd)?,
            hosts,
            schema,
            last_leader: AtomicUsize::new(0),
            leader: AtomicU8::new(Leader::Unseen as u8),
            space: Arc::new(DiskSpace::new(clock)),
            servers: Mutex::new(Vec::new()),
            #[cfg(feature = "tls")]
            tls,
        })
    }

    pub(crate) fn has_leader(&self) -> bool {
        self.leader.load(Ordering::Relaxed) == Leader::Known as u8
    }

    /// No server takes writes.
    fn lost(&self, why: &ConnectError) {
        if self.change(Leader::Known, Leader::Missing) {
            log::warn!("PostgreSQL: no leader: {why}. Requests wait for one until their deadline");
        }
    }

    /// A server takes writes, but does not confirm them.
    pub(crate) fn fell_silent(&self) {
        if self.patroni.is_none() {
            // Perhaps it is an old leader that nobody follows any more, and goes on accepting sessions. The next host is asked
            // first from now on. A standby refuses quickly.
            let next = (self.last_leader.load(Ordering::Relaxed) + 1) % self.hosts.len().max(1);
            self.last_leader.store(next, Ordering::Relaxed);
        }
        if self.change(Leader::Known, Leader::Silent) {
            log::warn!("PostgreSQL: the leader does not confirm commits. Requests wait until their deadline");
        }
    }

    /// Whoever waited for the silent one has given it up, or has its answer.
    pub(crate) fn silence_ended(&self) {
        if self.change(Leader::Silent, Leader::Known) {
            log::info!("PostgreSQL: the leader confirms commits again, or another one does");
        }
    }

    /// Only one of several who see the same change tells of it.
    fn change(&self, from: Leader, to: Leader) -> bool {
        self.leader.compare_exchange(from as u8, to as u8, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// A connection and nothing more.
    pub(crate) async fn client(&self) -> Result<Connected, ConnectError> {
        let connected = match &self.patroni {
            None => self.race(self.in_turn()).await,
            Some(patroni) => match patroni.leader().await {
                PatroniLeader::Host(place) => self.race(vec![place]).await,
                PatroniLeader::Nobody => {
                    Err(ConnectError::Unreachable("Patroni says that nobody leads".to_owned()))
                }
                PatroniLeader::NoAnswer => self.race(self.in_turn()).await,
            },
        };
        match &connected {
            Ok(_) if self.change(Leader::Missing, Leader::Known) => {
                let place = self.last_leader.load(Ordering::Relaxed) + 1;
                log::info!("PostgreSQL: there is a leader again, host {place} of {}", self.hosts.len());
            }
            Ok(_) => {
                self.change(Leader::Unseen, Leader::Known);
            }
            Err(error) => self.lost(error),
        }
        connected
    }

    /// All hosts, the one that led last before the others.
    fn in_turn(&self) -> Vec<usize> {
        let (count, first) = (self.hosts.len(), self.last_leader.load(Ordering::Relaxed));
        (0..count).map(|place| (first + place) % count).collect()
    }

    /// The first host that takes writes. Each is tried when the one before it has failed or is slow.
    async fn race(&self, places: Vec<usize>) -> Result<Connected, ConnectError> {
        let mut failure: Option<ConnectError> = None;
        let (mut attempts, mut places) = (JoinSet::new(), places.into_iter());
        loop {
            let next = places.next();
            if let Some(place) = next {
                attempts.spawn(self.attempt(place));
            }
            let joined = match next {
                Some(_) => tokio::time::timeout(NEXT_HOST_AFTER, attempts.join_next()).await,
                None => Ok(attempts.join_next().await),
            };
            match joined {
                Ok(Some(Ok((place, Ok(connected))))) => {
                    self.last_leader.store(place, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Some(Ok((_, Err(error))))) => {
                    // That somebody does not let us in says more than that somebody else does not answer.
                    if !matches!(failure, Some(ConnectError::Refused(_))) {
                        failure = Some(error);
                    }
                }
                Ok(None) if next.is_none() => break,
                Ok(Some(Err(_)) | None) | Err(_) => {}
            }
        }
        Err(failure.unwrap_or_else(no_answer))
    }

    fn attempt(
        &self,
        place: usize,
    ) -> impl Future<Output = (usize, Result<Connected, ConnectError>)> + Send + 'static {
        let config = self.hosts[place].clone();
        #[cfg(feature = "tls")]
        let tls = self.tls.clone();
        #[cfg(not(feature = "tls"))]
        let tls = tokio_postgres::NoTls;
        async move {
            // The parser's timeout is for the TCP handshake only, and a frozen server completes that one.
            let connected = tokio::time::timeout(CONNECT_TIME_MAX, config.connect(tls)).await;
            let connected = match connected {
                Ok(Ok((client, connection))) => Ok(drive(client, connection)),
                Ok(Err(error)) => Err(refused(&error)),
                Err(_) => Err(no_answer()),
            };
            (place, connected)
        }
    }

    /// A session that is ready for every statement.
    pub(crate) async fn session(&self) -> Result<DatabaseSession, ConnectError> {
        let (client, state, driver) = self.client().await?;
        // If anything below fails, the connection ends with this.
        let mut session = Unprepared { driver: Some(driver) };
        let key = random::unguessable() as i64;
        let params: Params<'_> = &[&key];
        let lineage = if self.etcd.is_some() { LINEAGE } else { "" };
        let question = format!("{LOCK_AND_IDENTITY}{lineage}");
        let prepared = tokio::time::timeout(CONNECT_TIME_MAX, async {
            tokio::try_join!(client.query_one(&question, params), Statements::prepare(&client, &self.schema))
        });
        let (row, statements) = match prepared.await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(error)) => return Err(ConnectError::Schema(describe(&error))),
            Err(_) => return Err(no_answer()),
        };
        let driver = session.driver.take();
        let lineage = self.etcd.as_ref().map(|_| Lineage {
            system_identifier: row.get(2),
            timeline: u64::try_from(row.get::<_, i64>(3)).unwrap_or_default(),
        });
        let server = self.server(row.get(1), lineage);
        state.belongs_to(&server);
        let barrier_needed = server.next_barrier();
        let space = self.space.clone();
        Ok(DatabaseSession { client, statements, server, space, barrier_needed, key, state, driver })
    }

    /// etcd has proven it for whichever known server that is.
    pub(crate) fn leads(&self, proven: &ProvenLead) {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = servers.iter().filter(|server| server.lineage.as_ref() == Some(&proven.lineage));
        ours.for_each(|server| server.leads(proven));
    }

    /// The same for all sessions with one server.
    fn server(&self, identity: String, lineage: Option<Lineage>) -> Arc<DatabaseServer> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known =
            |server: &&Arc<DatabaseServer>| server.identity == identity && server.lineage == lineage;
        if let Some(known) = servers.iter().find(is_known) {
            return known.clone();
        }
        if servers.len() >= SERVER_COUNT_MAX {
            servers.remove(0);
        }
        let server = Arc::new(DatabaseServer::new(identity, lineage));
        servers.push(server.clone());
        server
    }
}

/// Takes `name=a,b` out of the URL's parameters: a parameter that the database's own parser does not know.
fn cut_from(url: &str, name: &str) -> (String, Vec<String>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), Vec::new()) };
    let (own, others): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|parameter| parameter.starts_with(name));
    let values = own.iter().flat_map(|parameter| parameter[name.len()..].split(','));
    let values = values.filter(|value| !value.is_empty()).map(str::to_owned).collect();
    let rest = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    (rest, values)
}

fn no_answer() -> ConnectError {
    ConnectError::Unreachable("the database does not answer".to_owned())
}

/// The same settings for one of the hosts.
fn one_host(all: &Config, place: usize) -> Config {
    let mut one = Config::new();
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(name) = all.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    if let Some(time) = all.get_connect_timeout() {
        one.connect_timeout(*time);
    }
    one.ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .tcp_user_timeout(TCP_USER_TIMEOUT)
        .keepalives_idle(KEEPALIVE_IDLE)
        // Of several hosts, the one that leads is the one that takes writes.
        .target_session_attrs(TargetSessionAttrs::ReadWrite);
    match all.get_hosts().get(place) {
        Some(Host::Tcp(name)) => one.host(name),
        #[cfg(unix)]
        Some(Host::Unix(path)) => one.host_path(path),
        None => &mut one,
    };
    if let Some(address) = all.get_hostaddrs().get(place) {
        one.hostaddr(*address);
    }
    let ports = all.get_ports();
    if let Some(port) = ports.get(place).or(ports.first()) {
        one.port(*port);
    }
    one
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_out_of_the_url() {
        let url = "postgres://h/d?sslmode=disable&patroni=http://a:1,http://b:2&etcd=http://c:3/x/y&x=y";
        let (url, patroni) = cut_from(url, "patroni=");
        assert_eq!(patroni, ["http://a:1", "http://b:2"]);
        let (url, etcd) = cut_from(&url, "etcd=");
        assert_eq!(etcd, ["http://c:3/x/y"]);
        assert_eq!(url, "postgres://h/d?sslmode=disable&x=y");
        assert_eq!(cut_from("postgres://h/d?etcd=http://a:1/x", "etcd=").0, "postgres://h/d");
        assert_eq!(cut_from("postgres://h/d", "etcd=").1, [""; 0]);
    }
}
