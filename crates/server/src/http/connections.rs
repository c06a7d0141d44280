//! The connections that may be open at once, over all services, and how addresses share them.
//!
//! Promises: never more than the limit. Past it, new connections wait to be accepted. An address that holds most of them
//! gets no more, so it cannot shut the others out. An address that has none always gets one if one is free.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::fairness::address_may_hold;

pub struct Connections {
    free: Arc<Semaphore>,
    /// Only addresses that hold a connection have an entry.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    refused_count: AtomicU64,
}

impl Connections {
    pub(crate) fn new(count_max: usize) -> Arc<Connections> {
        Arc::new(Connections {
            free: Arc::new(Semaphore::new(count_max)),
            by_address: Mutex::new(HashMap::new()),
            refused_count: AtomicU64::new(0),
        })
    }

    /// How many were refused because their address had too many.
    pub(crate) fn refused_count(&self) -> u64 {
        self.refused_count.load(Ordering::Relaxed)
    }

    pub(crate) fn free_count(&self) -> usize {
        self.free.available_permits()
    }

    /// How many are open.
    pub(crate) fn open_count(&self) -> usize {
        self.by_address().values().sum()
    }

    /// Waits until another connection may be accepted.
    pub(crate) async fn wait(&self) -> OwnedSemaphorePermit {
        self.free.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Gives the connection to an address. `None` when the address holds too many.
    pub(crate) fn hold(self: &Arc<Connections>, permit: OwnedSemaphorePermit, peer: IpAddr) -> Option<Held> {
        let address = network(peer);
        let mut by_address = self.by_address();
        let held = by_address.get(&address).copied().unwrap_or(0) + 1;
        if !address_may_hold(held, self.free_count()) {
            self.refused_count.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        by_address.insert(address, held);
        Some(Held { connections: self.clone(), address, _permit: permit })
    }

    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open connection.
pub(crate) struct Held {
    connections: Arc<Connections>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut by_address = self.connections.by_address();
        if let Some(held) = by_address.get_mut(&self.address) {
            *held -= 1;
            if *held == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

/// The part of an address that its owner cannot choose freely: of an IPv6 address, the network's half.
pub(crate) fn network(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => IpAddr::V6(((address.to_bits() >> 64) << 64).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many connections as the address gets.
    fn greed(connections: &Arc<Connections>, peer: &str) -> Vec<Held> {
        let open = || {
            let permit = connections.free.clone().try_acquire_owned().ok()?;
            connections.hold(permit, peer.parse().unwrap())
        };
        std::iter::from_fn(open).collect()
    }

    #[test]
    fn a_greedy_address_leaves_connections_for_others() {
        let connections = Connections::new(1000);
        let first = greed(&connections, "10.0.0.1");
        assert_eq!(first.len(), 900);
        let second = greed(&connections, "10.0.0.2");
        assert_eq!(second.len(), 90);
        // From one network, whatever the host's half says.
        let third = greed(&connections, "2001:db8::1");
        assert_eq!((third.len(), greed(&connections, "2001:db8::2").len()), (9, 0));
        assert_eq!(greed(&connections, "2001:db8:0:1::1").len(), 1);
        assert_eq!(greed(&connections, "10.0.0.1").len(), 0);
        drop((first, second, third));
        assert!(connections.by_address().is_empty());
        assert_eq!(connections.free_count(), 1000);
        assert_eq!(greed(&connections, "10.0.0.3").len(), 900);
    }

    #[test]
    fn a_single_connection_serves_anybody() {
        let connections = Connections::new(1);
        assert_eq!(greed(&connections, "10.0.0.1").len(), 1);
        assert_eq!(greed(&connections, "10.0.0.2").len(), 1);
    }
}
