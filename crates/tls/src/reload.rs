//! Watches the certificate files and swaps in a new certificate once its files are complete.
//!
//! Polls instead of subscribing to file system events, because polling works on every system, through symbolic links and
//! on network drives. Promises: files that cannot be used never replace a certificate that works.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::crypto::ring;
use tokio::time::MissedTickBehavior;

use crate::{Tls, TlsSource, local_ca};

/// How often to check the files.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Every hour, check whether the local authority must renew the certificate.
const LOOKS_PER_RENEWAL: u64 = 3600;

/// Retry files that could not be used once a minute, even if they have not changed: the cause may lie outside the files.
const LOOKS_PER_RETRY: u64 = 60;

/// Modification time and length of each file. A different stamp means that the file was replaced; `None` means that the
/// file does not exist or its metadata cannot be read.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Stamps(Vec<Option<(SystemTime, u64)>>);

impl Stamps {
    pub(crate) fn of(files: &[PathBuf]) -> Stamps {
        let stamp = |file| {
            let metadata = std::fs::metadata(file).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        Stamps(files.iter().map(stamp).collect())
    }
}

impl Tls {
    /// Checks the files once a second and swaps in the new certificate when they hold one. Never returns: spawn it as a
    /// task of its own.
    pub async fn watch(self) {
        let mut watch = Watch::new(self);
        let mut ticks = tokio::time::interval(LOOK_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Reading files and deriving keys would block the runtime.
            let looked = tokio::task::spawn_blocking(move || {
                watch.look();
                watch
            });
            watch = match looked.await {
                Ok(watch) => watch,
                Err(error) => {
                    log::error!("the certificate is no longer watched: {error}");
                    return;
                }
            };
        }
    }
}

pub(crate) struct Watch {
    tls: Tls,
    look_count: u64,
    failure: Option<ReloadFailure>,
}

/// The last files that could not be used, and how often they have been looked at since.
struct ReloadFailure {
    stamps: Stamps,
    look_count: u64,
}

/// The outcome of one look at the files.
#[derive(Debug)]
pub(crate) enum Looked {
    /// Nothing to do: the files are unchanged, or it is too early to retry them.
    Same,
    Swapped,
    /// The new files cannot be used, so the old certificate stays.
    Kept,
}

impl Watch {
    pub(crate) fn new(tls: Tls) -> Watch {
        Watch { tls, look_count: 0, failure: None }
    }

    pub(crate) fn look(&mut self) -> Looked {
        self.look_count += 1;
        if self.look_count.is_multiple_of(LOOKS_PER_RENEWAL) {
            self.renew();
        }
        let stamps = Stamps::of(&self.tls.shared.source.files());
        if stamps == self.tls.current().stamps {
            self.failure = None;
            return Looked::Same;
        }
        let failed_looks = match &mut self.failure {
            Some(failure) if failure.stamps == stamps => {
                failure.look_count += 1;
                failure.look_count
            }
            _ => 0,
        };
        // A program that writes certificate and key one after the other is sometimes caught between the two. So the
        // first failed look stays silent, the second one warns, and then we wait for a change or for a minute.
        if failed_looks > 1 && !failed_looks.is_multiple_of(LOOKS_PER_RETRY) {
            return Looked::Same;
        }
        match self.tls.reload() {
            Ok(()) => {
                self.failure = None;
                log::info!("the certificate was replaced by the one in {:?}", self.tls.shared.source);
                Looked::Swapped
            }
            Err(error) => {
                if failed_looks == 1 {
                    log::warn!("the certificate stays as it was, because {error}");
                }
                self.failure = Some(ReloadFailure { stamps, look_count: failed_looks });
                Looked::Kept
            }
        }
    }

    /// Writes a renewed certificate to the files, where the current look finds it.
    fn renew(&self) {
        let shared = &self.tls.shared;
        let TlsSource::LocalCa { directory, hosts } = &shared.source else { return };
        if let Err(error) =
            local_ca::ensure(directory, hosts, (shared.clock)(), &Arc::new(ring::default_provider()))
        {
            log::warn!("cannot renew the certificate: {error}");
        }
    }
}
