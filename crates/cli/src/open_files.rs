//! How many files the process may have open: raised at the start, and divided between connections and the store.
//!
//! Promises: connections alone never use up the limit, so the store can always open the files it needs.

/// More than the server ever needs.
const OPEN_FILES_WANTED: u64 = 65_536;
/// Kept for the store, its backups, certificates and commands, and for the admin port.
const KEPT_COUNT: usize = 128;

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
    let fitting = (limit - KEPT_COUNT.min(limit / 2)).max(1);
    if fitting < wanted {
        log::warn!(
            "only {limit} files may be open at once, so at most {fitting} connections are served; 'ulimit -n' allows more"
        );
    }
    fitting.min(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_its_share() {
        for (limit, expected) in
            [(None, 10_000), (Some(65_536), 10_000), (Some(1024), 896), (Some(100), 50), (Some(0), 1)]
        {
            assert_eq!(connection_count(limit, 10_000), expected, "{limit:?}");
        }
    }
}
