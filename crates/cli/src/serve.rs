//! `lazulite serve`: opens the store, binds the ports, prints the ready lines, and serves until a signal stops it.
//!
//! Promises: the ready lines come first on standard output, once all ports are bound; changed accounts take
//! effect without a restart. `config` decides the settings; the crate `server` answers the requests.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blobs::BlobService;
use engine::Engine;
use engine::env::{Clock, SystemClock, UNIX_EPOCH_TICKS};
use engine::memory::MemoryEngine;
use engine_local::{LocalEngine, LocalOptions};
use observe::{Advisor, Metrics, Observer, Prices, Targets};
use protocol::auth::BearerValidator;
use protocol::common::DateTime;
use queues::QueueService;
use server::http::open_files;
use server::{
    Accounts, AdminConfig, Analytics, Binding, BlobHttp, BoundService, Current, EMULATOR_ACCOUNT,
    EMULATOR_KEY, Front, FrontConfig, Handler, Limits, QueueHttp, ServedService, Server, Service, TableHttp,
    Watch,
};
use tables::TableService;
use tls::{Tls, UnixTime, WallClock};
use tokio::sync::watch;

use crate::account_watch::AccountWatch;
use crate::admin_port::AdminPort;
use crate::config::{Listen, Oauth, ServedStore, ServiceName, Settings};
use crate::jwks::JwksSource;
use crate::{contents_place, control, logger, memory, remote, signals, store, unfinished};

const TICKS_PER_SECOND: u64 = 10_000_000;
/// How long a server that stops tries to write what it has measured. An engine elsewhere may not answer.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(10);

/// Follows the name of an engine elsewhere.
const NO_BLOBS: &str = "\nThe Blob service is not started: with an engine elsewhere it needs an object store, named with \
                        --contents";

pub fn serve(settings: Settings) -> Result<(), String> {
    logger::start(settings.log);
    #[cfg(feature = "seeded-bugs")]
    eprintln!("lazulite: warning: {}", engine::seeded::warning());
    let mut limits = Limits::default();
    limits.connection_count_max =
        open_files::connection_count(open_files::raise_limit(), limits.connection_count_max);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    check_clock(&*clock)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the server's threads: {error}"))?;
    // Before the store, which may take a while to open. But a certificate of our own lies in the store.
    let open_admin =
        |tls: Option<&Tls>| runtime.block_on(AdminPort::open(settings.admin.clone(), tls, limits.clone()));
    let has_tls = settings.tls.is_some();
    let early = match &settings.admin {
        Some(listen) if has_tls && listen.wants_tls() => None,
        _ => Some(open_admin(None)?),
    };
    let Opened { engine, local, name: store } = open_engine(&settings.store, clock.clone(), &runtime)?;
    #[cfg(feature = "seeded-bugs")]
    let engine = engine::seeded::wrap(engine);
    runtime.block_on(unfinished::refuse(&*engine, &store))?;
    let is_shared = matches!(settings.store, ServedStore::Engine(_));
    let (tables, system, queues) = services(&engine, &clock, is_shared);
    let has_blobs = settings.listen.iter().any(|listen| listen.service == ServiceName::Blob);
    let place = settings.blobs.place.as_deref();
    // Commands need the contents even if nobody asks for the service.
    let contents = match (&settings.store, &local) {
        (_, Some((local, location))) if has_blobs => {
            Some(runtime.block_on(contents_place::open(location, local, place, clock.clone()))?)
        }
        (_, Some((local, location))) => {
            runtime.block_on(contents_place::open_if_there(location, local, clock.clone()))?
        }
        (ServedStore::Engine(_), None) if has_blobs => {
            runtime.block_on(contents_place::open_in_engine(&*engine, place, clock.clone()))?
        }
        (ServedStore::Engine(_), None) => None,
        _ => has_blobs.then(|| contents_place::in_memory(clock.clone())),
    };
    let blobs = contents.clone().filter(|_| has_blobs).map(|contents| {
        let blobs = BlobService::new(engine.clone(), contents, clock.clone(), settings.blobs.options);
        if is_shared { blobs.sharing_its_engine() } else { blobs }
    });
    let (account_watch, accounts) = match &settings.store {
        ServedStore::Engine(address) => {
            let key = address.accounts_key.clone();
            runtime.block_on(AccountWatch::of_engine(settings.accounts, engine.clone(), key))?
        }
        _ => AccountWatch::of_directory(settings.accounts, local.clone().map(|(engine, _)| engine))?,
    };
    let accounts = Arc::new(Current::new(accounts));
    let tls = settings
        .tls
        .map(|source| Tls::load(source, wall_clock(clock.clone())))
        .transpose()
        .map_err(|error| error.to_string())?;
    let admin = match early {
        Some(admin) => admin,
        None => open_admin(tls.as_ref())?,
    };
    let advisor = Arc::new(advisor(settings.targets.unwrap_or_default(), settings.prices, engine.clone()));
    let analytics = match is_shared {
        true => Analytics::sharing_its_engine(engine.clone(), clock.clone(), accounts.clone()),
        false => Analytics::new(engine.clone(), clock.clone(), accounts.clone()),
    };
    if let Some((local, location)) = &local
        && let Err(error) = control::start(
            location,
            local,
            contents.as_ref(),
            clock.clone(),
            advisor.clone(),
            analytics.clone(),
            runtime.handle().clone(),
        )
    {
        log::warn!("backup, restore, check and advise will not reach this server: {error}");
    }
    runtime.block_on(async {
        let config = FrontConfig {
            accounts: accounts.clone(),
            tokens: validator(settings.oauth).await?,
            is_behind_tls_proxy: settings.is_behind_tls_proxy,
            limits,
            targets: settings.targets,
        };
        let observers: Vec<Arc<dyn Observer>> = vec![analytics.book(), advisor.clone()];
        let watch = Watch::new(Arc::new(Metrics::new()), observers, settings.log.rules);
        let mut tables = TableHttp::new(tables).with_outbox(queues.clone()).with_system_tables(system);
        if let Some(rule) = settings.scan_rule {
            tables = tables.refusing_scans(rule);
        }
        let front = Front::watched(config, clock, watch);
        let opening = Opening {
            front: &front,
            settings: &settings.listen,
            tls: &tls,
            suffixes: &settings.host_suffixes,
        };
        let table = opening.open(ServiceName::Table, tables).await?;
        let queue = opening.open(ServiceName::Queue, QueueHttp::new(queues.clone())).await?;
        let blob = match blobs {
            Some(blobs) => {
                tokio::spawn(sweep_blobs(blobs.clone()));
                let mut blobs = BlobHttp::new(blobs);
                if let Some(sources) = settings.blobs.sources {
                    blobs = blobs.with_outside_sources(sources);
                }
                opening.open(ServiceName::Blob, blobs).await?
            }
            None => None,
        };
        let mut services = Vec::new();
        services.extend(table.as_ref().map(|server| opening.served(ServiceName::Table, server)));
        services.extend(queue.as_ref().map(|server| opening.served(ServiceName::Queue, server)));
        services.extend(blob.as_ref().map(|server| opening.served(ServiceName::Blob, server)));
        let admin_line = admin.line(settings.silent);
        let admin = admin.pass_on(|door, token| {
            let config = AdminConfig {
                door,
                token,
                version: env!("CARGO_PKG_VERSION"),
                location: store.clone(),
                engine: engine.clone(),
                services,
                advice: Some(advisor),
                resident_bytes: memory::resident_bytes,
            };
            server::bind_admin(&front, config)
        })?;
        let stop = signals::stop_requested()?;
        let addresses = [
            table.as_ref().map(|table| (ServiceName::Table, table.local_addr())),
            queue.as_ref().map(|queue| (ServiceName::Queue, queue.local_addr())),
            blob.as_ref().map(|blob| (ServiceName::Blob, blob.local_addr())),
        ];
        let addresses: Vec<_> = addresses.into_iter().flatten().collect();
        let mut store = store;
        if settings.blobs.is_left_out {
            store += NO_BLOBS;
        }
        announce(&addresses, admin_line, &accounts.get(), &store, tls.as_ref(), settings.silent);
        tokio::spawn(account_watch.run(accounts));
        tokio::spawn(sweep(queues));
        tokio::spawn(analytics.clone().run());
        if let Some(tls) = tls {
            tokio::spawn(tls.watch());
        }
        let (sender, stopped) = watch::channel(false);
        tokio::spawn(async move {
            stop.await;
            let _ = sender.send(true);
        });
        if let Some(admin) = &admin {
            tokio::spawn(admin.admin().tick());
        }
        let run_admin = async {
            if let Some(admin) = admin {
                admin.run(is_stopped(stopped.clone())).await;
            }
        };
        tokio::join!(
            run(table, stopped.clone()),
            run(queue, stopped.clone()),
            run(blob, stopped.clone()),
            run_admin
        );
        let closed = tokio::time::timeout(CLOSE_TIME_MAX, analytics.close()).await;
        if closed.is_err() {
            log::warn!("what was measured since the last hour is lost: the engine takes no writes");
        }
        if let Some(contents) = contents {
            contents.close().await;
        }
        engine.close().await;
        if let Some((local, _)) = local {
            control::remove_socket(&local);
        }
        log::logger().flush();
        Ok(())
    })
}

/// What all services have in common when they are opened.
struct Opening<'a> {
    front: &'a Arc<Front>,
    settings: &'a [Listen],
    tls: &'a Option<Tls>,
    suffixes: &'a [String],
}

impl Opening<'_> {
    /// Binds the service to its port; `None` when it was not asked for.
    async fn open<S: Service>(
        &self,
        name: ServiceName,
        service: S,
    ) -> Result<Option<Server<BoundService<S>>>, String> {
        let Some(Listen { address, .. }) = self.settings.iter().find(|listen| listen.service == name) else {
            return Ok(None);
        };
        let (tls, host_suffixes) = (self.tls.clone(), self.suffixes.to_vec());
        let binding = Binding { listen: *address, tls, host_suffixes };
        let bound = server::bind(self.front, binding, service).await;
        bound.map(Some).map_err(|error| cannot_listen(name, *address, &error))
    }

    /// The service as the admin port knows it.
    fn served<H: Handler>(&self, name: ServiceName, server: &Server<H>) -> ServedService {
        ServedService {
            label: name.label(),
            name: name.kind().name,
            address: server.local_addr(),
            is_https: self.tls.is_some(),
            road: server.handler(),
        }
    }
}

/// The prices are those of the real service; what is stored is known here.
fn advisor(targets: Targets, prices: Prices, engine: Arc<dyn Engine>) -> Advisor {
    Advisor::new(targets, prices).with_stored_bytes(move || {
        let gauges = engine.gauges();
        gauges.tree_bytes + gauges.log_bytes
    })
}

fn cannot_listen(name: ServiceName, address: SocketAddr, error: &std::io::Error) -> String {
    let (service, label) = (name.kind().name, name.label());
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            let others = ServiceName::ALL.into_iter().filter(|other| *other != name);
            let others = others.map(ServiceName::label).collect::<Vec<_>>().join(",");
            format!(
                "{address} is in use: another program listens there, and the {service} service wants it. Give it \
                 another port with --{label}-port, or leave it out with --services {others}"
            )
        }
        _ => format!("the {service} service cannot listen on {address}: {error}"),
    }
}

/// Serves until everybody is told to stop.
async fn run<H: Handler>(server: Option<Server<H>>, stopped: watch::Receiver<bool>) {
    if let Some(server) = server {
        server.run(is_stopped(stopped)).await;
    }
}

async fn is_stopped(mut stopped: watch::Receiver<bool>) {
    // An error means that nobody can tell any more, which means the same.
    drop(stopped.wait_for(|stopped| *stopped).await);
}

/// Removes expired messages: every second from the queues in use, every minute from all.
async fn sweep(queues: Arc<QueueService>) {
    const INTERVAL: Duration = Duration::from_secs(1);
    const WHOLE_INTERVAL_COUNT: u32 = 60;
    let mut round = 0u32;
    loop {
        match queues.sweep(round.is_multiple_of(WHOLE_INTERVAL_COUNT)).await {
            Ok(true) => {
                round = round.wrapping_add(1);
                tokio::task::yield_now().await;
                continue;
            }
            Ok(false) => {}
            // The engine says so itself when it takes no writes; the messages are hidden all the same.
            Err(error) => log::debug!("expired messages wait to be removed: {error}"),
        }
        round = round.wrapping_add(1);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Gives back what no blob uses any more: after a while, which leaves the disk to a server that has just started, and
/// then every hour.
async fn sweep_blobs(blobs: BlobService) {
    const BEGIN: Duration = Duration::from_secs(5 * 60);
    const INTERVAL: Duration = Duration::from_secs(60 * 60);
    tokio::time::sleep(BEGIN).await;
    loop {
        // Nothing is lost when it fails: the next one finds the same.
        if let Err(error) = blobs.sweep().await {
            log::warn!("unused contents of blobs wait to be removed: {}", error.message());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Refuses a clock that says a time before 1970 or after 9999: HTTP has no such date, and no signed
/// request would be accepted anyway.
fn check_clock(clock: &dyn Clock) -> Result<(), String> {
    let now = clock.now_ticks();
    let wrong = match (now > UNIX_EPOCH_TICKS, now < DateTime::MAX.ticks()) {
        (true, true) => return Ok(()),
        (false, _) => "before 1970",
        (_, false) => "after 9999",
    };
    Err(format!("the system clock says a time {wrong}: set it, then start the server"))
}

/// The engine, and the same engine by its own type when it is the local one, which control commands need.
struct Opened {
    engine: Arc<dyn Engine>,
    /// With its directory.
    local: Option<(Arc<LocalEngine>, PathBuf)>,
    /// Where the data is, for the ready message.
    name: String,
}

fn open_engine(
    store: &ServedStore,
    clock: Arc<dyn Clock>,
    runtime: &tokio::runtime::Runtime,
) -> Result<Opened, String> {
    let location = match store {
        ServedStore::Memory => {
            let engine = Arc::new(MemoryEngine::new(server::FAMILIES, clock));
            return Ok(Opened { engine, local: None, name: "memory; nothing is kept".to_owned() });
        }
        ServedStore::Engine(address) => {
            let engine = runtime.block_on(remote::open(address, clock))?;
            return Ok(Opened { engine, local: None, name: address.name() });
        }
        ServedStore::Directory(location) => location,
    };
    store::refuse_unfinished(location)?;
    let options = LocalOptions::new(server::FAMILIES, clock);
    let engine = Arc::new(LocalEngine::open(location, options).map_err(|error| error.to_string())?);
    warn_of_mode(location);
    let name = location.display().to_string();
    Ok(Opened { engine: engine.clone(), local: Some((engine, location.clone())), name })
}

fn warn_of_mode(location: &Path) {
    if let Some(mode) = files::mode_for_others(location) {
        log::warn!(
            "{} has mode {mode}, so other users can enter it; its files are for their owner alone, and mode 700 would \
             keep their names secret too",
            location.display()
        );
    }
}

/// Tables, those that the server itself writes, and queues.
fn services(
    engine: &Arc<dyn Engine>,
    clock: &Arc<dyn Clock>,
    is_shared: bool,
) -> (TableService, TableService, Arc<QueueService>) {
    let tables = TableService::new(engine.clone(), clock.clone());
    let system = TableService::system(engine.clone(), clock.clone());
    let queues = QueueService::new(engine.clone(), clock.clone());
    match is_shared {
        true => {
            (tables.sharing_its_engine(), system.sharing_its_engine(), Arc::new(queues.sharing_its_engine()))
        }
        false => (tables, system, Arc::new(queues)),
    }
}

/// Certificates count seconds since 1970; the engine's clock counts ticks since the year 1.
fn wall_clock(clock: Arc<dyn Clock>) -> WallClock {
    Arc::new(move || {
        let ticks = clock.now_ticks().saturating_sub(UNIX_EPOCH_TICKS);
        UnixTime::since_unix_epoch(Duration::from_secs(ticks / TICKS_PER_SECOND))
    })
}

async fn validator(oauth: Option<Oauth>) -> Result<Option<Arc<Current<BearerValidator>>>, String> {
    match oauth {
        None => Ok(None),
        Some(Oauth::Basic) => {
            eprintln!("lazulite: warning: --oauth basic accepts bearer tokens that anybody can make");
            Ok(Some(Arc::new(Current::new(BearerValidator::basic()))))
        }
        Some(Oauth::Issuer { issuer, jwks, audiences }) => {
            let source = JwksSource { issuer, jwks, audiences };
            let tokens = Arc::new(Current::new(source.read().await?));
            tokio::spawn(source.watch(tokens.clone()));
            Ok(Some(tokens))
        }
    }
}

/// Scripts wait for the first lines, so their wording is fixed. The other lines are for people.
fn announce(
    services: &[(ServiceName, SocketAddr)],
    admin_line: Option<String>,
    accounts: &Accounts,
    store: &str,
    tls: Option<&Tls>,
    silent: bool,
) {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut lines: Vec<String> = services
        .iter()
        .map(|(name, address)| {
            let service = name.kind().name;
            format!("Lazulite {service} service is successfully listening at {scheme}://{address}")
        })
        .collect();
    lines.extend(admin_line);
    if !silent {
        lines.push(format!("Data in {store}"));
        lines.extend(accounts.names().into_iter().map(|account| {
            // Never print a key that protects anything.
            let is_well_known = account.as_str() == EMULATOR_ACCOUNT && accounts.have_well_known_key();
            let key = if is_well_known { EMULATOR_KEY } else { "YOUR-KEY" };
            let endpoint = |(name, address): &(ServiceName, SocketAddr)| {
                format!("{}Endpoint={scheme}://{address}/{account};", name.kind().name)
            };
            let endpoints: String = services.iter().map(endpoint).collect();
            format!(
                "Connection string: DefaultEndpointsProtocol={scheme};AccountName={account};AccountKey={key};{endpoints}"
            )
        }));
        lines.extend(tls.and_then(Tls::how_to_trust));
    }
    // Ignore a closed standard output: the server must serve anyway.
    let _ = writeln!(std::io::stdout(), "{}", lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use engine::env::FakeClock;

    use super::*;

    #[test]
    fn a_clock_before_1970_or_after_9999_is_refused() {
        assert!(check_clock(&FakeClock::default()).is_ok());
        assert!(check_clock(&FakeClock::new(DateTime::MAX.ticks())).unwrap_err().contains("after 9999"));
        // This is what `SystemClock` returns for any time before 1970.
        assert!(check_clock(&FakeClock::new(UNIX_EPOCH_TICKS)).unwrap_err().contains("clock"));
    }
}
