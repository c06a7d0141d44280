//! How many files the process may have open: raised at the start, and divided between connections and the store.
//!
//! Promises: connections never use up the limit, so the store can open the files it needs, even if somebody lowers the
//! limit while the server runs. Leaves to others: waiting until there is a handle (`listener`).

#[cfg(unix)]
use std::sync::atomic::{AtomicU64, Ordering};

/// More than the server ever needs.
#[cfg(unix)]
const OPEN_FILES_WANTED: u64 = 65_536;
/// Kept for the store, its backups, certificates and commands, and for the admin port.
const KEPT_COUNT: usize = 128;
/// The highest handles below the limit. No connection is served with one of them, whatever uses the others.
#[cfg(unix)]
const LAST_KEPT_COUNT: u64 = 16;

/// Raises the limit as far as the system allows, and returns it. `None` where there is none.
#[cfg(unix)]
pub fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let wanted = maximum.unwrap_or(OPEN_FILES_WANTED).min(OPEN_FILES_WANTED);
    if current >= wanted {
        return Some(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => Some(wanted),
        Err(error) => {
            log::warn!("the limit of {current} open files cannot be raised: {error}");
            Some(current)
        }
    }
}

#[cfg(not(unix))]
pub fn raise_limit() -> Option<u64> {
    None
}

/// How many of `wanted` connections fit below the limit.
pub fn connection_count(limit: Option<u64>, wanted: usize) -> usize {
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { return wanted };
    let fitting = (limit - KEPT_COUNT.min(limit / 4 * 3)).max(1);
    if fitting < wanted {
        log::warn!(
            "only {limit} files may be open at once, so at most {fitting} connections are served; 'ulimit -n' allows more"
        );
    }
    fitting.min(wanted)
}

/// The server's own handles, before there were any connections. A process has one limit, so it has one count: the admin
/// port listens before the store is open, and the services after that.
#[cfg(unix)]
static OWN_COUNT: AtomicU64 = AtomicU64::new(0);

/// Counts the server's own handles. `listener` is any of them, of a port that has no connections yet.
#[cfg(unix)]
pub(super) fn count_own(listener: &impl std::os::fd::AsFd) {
    // The system gives out the lowest number that is free, so a new handle's number tells how many there are.
    if let Ok(probe) = listener.as_fd().try_clone_to_owned() {
        OWN_COUNT.fetch_max(number(&probe), Ordering::Relaxed);
    }
}

/// Whether a connection may be served with this handle. A high number means that those below it are in use.
#[cfg(unix)]
pub(super) fn may_serve(connection: &impl std::os::fd::AsRawFd) -> bool {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::Nofile).current;
    let own_count = OWN_COUNT.load(Ordering::Relaxed);
    limit.is_none_or(|limit| number(connection) < first_kept(limit, own_count))
}

#[cfg(unix)]
fn number(handle: &impl std::os::fd::AsRawFd) -> u64 {
    u64::try_from(handle.as_raw_fd()).unwrap_or(0)
}

/// The handles from this number on are kept: of those that are not the server's own, at most half.
#[cfg(unix)]
fn first_kept(limit: u64, own_count: u64) -> u64 {
    limit - LAST_KEPT_COUNT.min(limit.saturating_sub(own_count) / 2)
}

#[cfg(not(unix))]
pub(super) fn count_own<L>(_: &L) {}

#[cfg(not(unix))]
pub(super) fn may_serve<C>(_: &C) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_its_share() {
        for (limit, expected) in
            [(None, 10_000), (Some(65_536), 10_000), (Some(1024), 896), (Some(100), 25), (Some(0), 1)]
        {
            assert_eq!(connection_count(limit, 10_000), expected, "{limit:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_last_handles_are_kept_and_some_are_left_for_connections() {
        let own_count = 28;
        for (limit, expected) in [(65_536, 65_520), (64, 48), (40, 34), (32, 30), (29, 29), (28, 28), (0, 0)]
        {
            assert_eq!(first_kept(limit, own_count), expected, "{limit}");
        }
    }
}
