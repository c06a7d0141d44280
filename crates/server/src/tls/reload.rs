//! The certificate's files, watched: another certificate is shown as soon as its files are there and whole.
//!
//! Polled rather than subscribed to: it works on every system, through symbolic links and on network drives.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use protocol::model::DateTime;
use rustls::crypto::ring;
use tokio::time::MissedTickBehavior;

use super::{Tls, TlsSource, local_ca};

/// How often the files are looked at.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// How many looks pass until the local authority looks whether the certificate must be renewed: an hour.
const LOOKS_PER_RENEWAL: u64 = 3600;

/// How many looks pass until files that could not be used, and have not changed, are tried again: what kept us from
/// reading them may have been something else.
const LOOKS_PER_RETRY: u64 = 60;

/// What is compared to see that a file was replaced: when it was written, and its length. `None` is a file that
/// cannot be seen.
#[derive(PartialEq, Eq, Debug)]
pub struct Stamps(Vec<Option<(SystemTime, u64)>>);

impl Stamps {
    pub fn of(files: &[PathBuf]) -> Stamps {
        let stamp = |file| {
            let metadata = std::fs::metadata(file).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        Stamps(files.iter().map(stamp).collect())
    }
}

impl Tls {
    /// Looks at the files from time to time and shows the new certificate once they hold one. Never ends: to be run as
    /// a task of its own.
    pub async fn watch(self) {
        let mut watch = Watch::new(self);
        let mut ticks = tokio::time::interval(LOOK_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Disks and key derivation block.
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

pub struct Watch {
    tls: Tls,
    look_count: u64,
    failure: Option<Failure>,
}

/// Files that could not be used.
struct Failure {
    stamps: Stamps,
    look_count: u64,
}

/// What a look led to.
#[derive(Debug)]
pub enum Looked {
    Same,
    Swapped,
    /// The new files cannot be used; the old certificate stays.
    Kept,
}

impl Watch {
    pub fn new(tls: Tls) -> Watch {
        Watch { tls, look_count: 0, failure: None }
    }

    pub fn look(&mut self) -> Looked {
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
        // Whoever writes certificate and key one after the other is caught between the two now and then. So the second
        // look is the first that complains, and the last until something changes or a minute has passed.
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
                self.failure = Some(Failure { stamps, look_count: failed_looks });
                Looked::Kept
            }
        }
    }

    /// A renewed certificate is in new files, which the look then finds.
    fn renew(&self) {
        let shared = &self.tls.shared;
        let TlsSource::LocalCa { directory, hosts } = &shared.source else { return };
        let now = DateTime::from_ticks(shared.clock.now_ticks());
        if let Err(error) = local_ca::ensure(directory, hosts, now, &Arc::new(ring::default_provider())) {
            log::warn!("cannot renew the certificate: {error}");
        }
    }
}
