//! `lazulite serve`: opens the store, takes the port, says so, and serves until it is told to stop.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use engine::Engine;
use engine::env::{Clock, SystemClock};
use engine::local::{LocalEngine, LocalOptions};
use engine::memory::MemoryEngine;
use server::{Accounts, Config, EMULATOR_ACCOUNT, EMULATOR_KEY, Limits, Server};
use tables::TableService;

use crate::args::Options;
use crate::logger;

const LOCATION_DEFAULT: &str = "lazulite-data";

pub fn serve(options: Options) -> Result<(), String> {
    logger::start(options.silent);
    let accounts = accounts()?;
    let listen = resolve(&options.table_host, options.table_port)?;
    if accounts.have_well_known_key() && !listen.ip().is_loopback() && !options.allow_well_known_key {
        return Err(format!(
            "anyone who can reach {} could use the emulator's published key: set LAZULITE_ACCOUNTS, listen on 127.0.0.1, \
             or say --allow-well-known-key",
            listen.ip()
        ));
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let (engine, store) = open_engine(&options, clock.clone())?;
    let service = TableService::new(engine, clock.clone());
    let config = Config { listen, accounts, limits: Limits::default(), host_suffixes: options.host_suffixes };
    let accounts = config.accounts.clone();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("the system does not give us threads: {error}"))?;
    runtime.block_on(async {
        let server = server::bind(config, service, clock).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => format!("{listen} is taken: another program listens there"),
            _ => format!("cannot listen on {listen}: {error}"),
        })?;
        let shutdown = shutdown_signal()?;
        announce(&server, &accounts, &store, options.silent);
        server.run(shutdown).await;
        Ok(())
    })
}

fn accounts() -> Result<Accounts, String> {
    for name in ["LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS"] {
        if let Ok(text) = std::env::var(name) {
            return Accounts::parse(&text).map_err(|error| format!("{name}: {error}"));
        }
    }
    Ok(Accounts::emulator())
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    let addresses = (host, port).to_socket_addrs();
    let first = addresses.ok().and_then(|mut addresses| addresses.next());
    first.ok_or_else(|| format!("'{host}' is not an address that can be listened on"))
}

fn open_engine(options: &Options, clock: Arc<dyn Clock>) -> Result<(Arc<dyn Engine>, String), String> {
    if options.in_memory {
        return Ok((Arc::new(MemoryEngine::new(tables::merge, clock)), "memory; nothing is kept".into()));
    }
    let location = options.location.as_deref().unwrap_or(Path::new(LOCATION_DEFAULT));
    let engine = LocalEngine::open(location, LocalOptions::new(tables::merge, clock))
        .map_err(|error| error.to_string())?;
    Ok((Arc::new(engine), location.display().to_string()))
}

/// The first line is for people and for scripts that wait for it; the rest is for people.
fn announce(server: &Server, accounts: &Accounts, store: &str, silent: bool) {
    let address = server.local_addr();
    println!("Lazulite Table service is successfully listening at http://{address}");
    if silent {
        return;
    }
    println!("Data in {store}");
    for name in accounts.names() {
        // A key that protects something is not for the screen.
        let is_well_known = name.as_str() == EMULATOR_ACCOUNT && accounts.have_well_known_key();
        let key = if is_well_known { EMULATOR_KEY } else { "YOUR-KEY" };
        println!(
            "Connection string: DefaultEndpointsProtocol=http;AccountName={name};AccountKey={key};\
             TableEndpoint=http://{address}/{name};"
        );
    }
}

/// Ready when somebody asks the process to stop.
fn shutdown_signal() -> Result<impl Future<Output = ()>, String> {
    #[cfg(unix)]
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| format!("cannot listen for signals: {error}"))?;
    Ok(async move {
        let interrupt = tokio::signal::ctrl_c();
        #[cfg(unix)]
        tokio::select! {
            _ = interrupt => {}
            _ = terminate.recv() => {}
        }
        #[cfg(not(unix))]
        if let Err(error) = interrupt.await {
            log::error!("cannot listen for Ctrl-C: {error}");
            std::future::pending::<()>().await;
        }
    })
}
