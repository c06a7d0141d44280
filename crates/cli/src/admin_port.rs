//! The admin port of a server that starts: taken before the store is opened, and passed on when the services are there.
//!
//! Owns: what is printed about it. Leaves to others: what it answers (`server/admin`).

use std::io;
use std::net::SocketAddr;

use server::{AdminDoor, AdminServer, Limits};
use tls::Tls;

use crate::config::AdminListen;

/// What became of the admin port.
pub(crate) enum AdminPort {
    Open {
        door: AdminDoor,
        address: SocketAddr,
        token: Option<String>,
        is_https: bool,
        is_token_new: bool,
        /// The system chose the port.
        is_any: bool,
    },
    Unwanted,
    /// Another program has the usual port, and nobody asked for it.
    Taken(SocketAddr),
}

impl AdminPort {
    pub(crate) async fn open(
        listen: Option<AdminListen>,
        tls: Option<&Tls>,
        limits: Limits,
    ) -> Result<AdminPort, String> {
        let Some(AdminListen { address, is_chosen, token, is_token_new }) = listen else {
            return Ok(AdminPort::Unwanted);
        };
        let tls = tls.cloned();
        let is_https = tls.is_some();
        match AdminDoor::open(address, tls, limits).await {
            Ok(door) => {
                let is_any = address.port() == 0;
                Ok(AdminPort::Open {
                    address: door.local_addr(),
                    door,
                    token,
                    is_https,
                    is_token_new,
                    is_any,
                })
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && !is_chosen => {
                Ok(AdminPort::Taken(address))
            }
            Err(error) => Err(cannot_listen(address, &error)),
        }
    }

    /// What is printed about it. Even a silent server tells a new token, and a port that the system chose: nobody could know
    /// them otherwise.
    pub(crate) fn line(&self, silent: bool) -> Option<String> {
        match self {
            AdminPort::Unwanted => None,
            AdminPort::Taken(address) => (!silent).then(|| {
                format!("No explorer and no metrics: another program has {address}. Choose another with --admin-port")
            }),
            AdminPort::Open { address, token, is_https, is_token_new, is_any, .. } => {
                let url = format!("{}://{address}/", if *is_https { "https" } else { "http" });
                match token {
                    // A token that somebody chose is known, and does not belong into logs.
                    Some(token) if *is_token_new => Some(format!("Explorer and metrics at {url}?token={token}")),
                    _ => (!silent || *is_any).then(|| format!("Explorer and metrics at {url}")),
                }
            }
        }
    }

    /// The server that `make` makes of the door and the token, if the port is open.
    pub(crate) fn pass_on(
        self,
        make: impl FnOnce(AdminDoor, Option<String>) -> io::Result<AdminServer>,
    ) -> Result<Option<AdminServer>, String> {
        match self {
            AdminPort::Open { door, address, token, .. } => {
                make(door, token).map(Some).map_err(|error| cannot_listen(address, &error))
            }
            AdminPort::Unwanted | AdminPort::Taken(_) => Ok(None),
        }
    }
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    format!(
        "the admin port cannot listen on {address}: {error}. Choose another with --admin-port, or say --no-admin"
    )
}
