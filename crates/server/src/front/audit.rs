//! The audit log: one line for each request refused for its credentials or permissions, at a bounded rate.
//!
//! Promises: no line shows a secret, and refusals that exceed the rate are counted.

use std::net::IpAddr;
use std::time::Duration;

use protocol::ServiceError;

use super::line_rate::LineRate;

/// Enough of a path to find the request, too little to fill a disk.
pub(crate) const PATH_CHARACTERS_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct Audit(LineRate);

impl Audit {
    /// `path` comes without its query, which may hold a signature.
    pub fn refused(&self, now: Duration, peer: IpAddr, method: &str, path: &str, error: &ServiceError) {
        let Some(left_out_count) = self.0.admit(now) else { return };
        let path: String = path.chars().take(PATH_CHARACTERS_MAX).collect();
        if left_out_count > 0 {
            log::warn!("audit: {left_out_count} refusals were not written");
        }
        match &error.source {
            Some(reason) => {
                log::warn!("audit: refused {peer} {method} {path:?}: {}: {reason}", error.code.name())
            }
            None => log::warn!("audit: refused {peer} {method} {path:?}: {}", error.code.name()),
        }
    }
}
