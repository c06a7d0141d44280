//! What an engine says about itself: whether it takes writes, how much waits, how large it is.
//!
//! For metrics and health checks. Nothing here is part of the contract about rows: an engine that has nothing to say
//! leaves everything at zero.

/// Whether an engine takes writes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Health {
    #[default]
    Ready,
    /// The last write found no space. Writes are refused until there is some.
    Full,
    /// Writes are refused until the store is reopened.
    Poisoned,
    /// No server that leads the store is known. Requests wait for one, and are refused at their deadline.
    NoLeader,
    Closed,
}

/// Counters count since the engine was opened.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct EngineGauges {
    pub health: Health,
    /// Groups of commits made durable together, the commits in them, and the time spent on writing and syncing.
    pub group_count: u64,
    pub commit_count: u64,
    pub sync_seconds: f64,
    /// Commits that wait or are under way.
    pub queue_count: u64,
    pub queue_bytes: u64,
    /// Rows that are in memory and not yet in the tree.
    pub recent_count: u64,
    pub recent_bytes: u64,
    pub fold_count: u64,
    pub fold_seconds: f64,
    pub is_folding: bool,
    /// Sizes of files.
    pub log_bytes: u64,
    pub tree_bytes: u64,
}
