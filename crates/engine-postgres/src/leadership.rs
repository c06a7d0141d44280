//! Whether a server led when it answered.
//!
//! A leader that was cut off from the others goes on answering, with rows that may be old by then. So an answer that
//! only read is given out when it is proven that its server still led after it had been read. There are two proofs.
//! The usual one is a barrier: a commit that began after the answer came and that a synchronous standby has
//! confirmed. A standby confirms nothing to a server that it no longer follows, so nobody else led when the answer
//! was read. All answers that wait share a barrier, as those of a group share a commit. The other one is a time until
//! which the server certainly leads: a second, where the server has no synchronous standbys and so nobody to be
//! replaced by; or, where the URL names etcd, as long as the leader's key there proves it (`etcd.rs`).
//!
//! The key says who leads. It does not say that the standby has what the leader shows: after a crash a leader shows
//! commits that never got there, and so it does when somebody cancels a wait. So the key counts for a session only behind
//! a barrier that began after the session had; after the holder of the key was first seen; and after the last warning
//! of that server. A session does not outlive a crash of its server, so one barrier for each is enough.
//!
//! Promises: at most [`WORKER_COUNT`] barriers at once, however many wait, and however long a standby is silent. etcd is
//! asked about three times a second while there are reads, and not for each. What was read is on the standby too when it
//! is given out, even after a crash in which the leader forgot for whom it waited.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::env::Clock;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::connect::Connector;
use crate::etcd::{EtcdKey, Lineage, NoProof, ProvenLead};
use crate::failure::Failure;
use crate::session::DatabaseSession;

/// Several, so that whoever comes while a commit is under way need not wait for its end.
const WORKER_COUNT: usize = 3;
const WAITING_COUNT_MAX: usize = 8_192;
/// A server without synchronous standbys is asked again after this time whether that is still so.
const ALONE_FOR: Duration = Duration::from_secs(1);
/// When a barrier takes longer, somebody else may lead by now.
const SILENCE_MAX: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);
/// Between two looks at etcd's key.
const LOOK_PAUSE: Duration = Duration::from_millis(300);
/// A commit that no server ends takes as long as it takes; those who wait for it have deadlines of their own.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

/// One run of one server, which ends when it is demoted.
pub(crate) struct DatabaseServer {
    pub(crate) identity: String,
    /// Where etcd is asked.
    pub(crate) lineage: Option<Lineage>,
    /// On the front end's monotonic clock, in nanoseconds, as the next one.
    alone_until: AtomicU64,
    leads_until: AtomicU64,
    /// A machine that was suspended notices it by its other clock.
    leads_until_ticks: AtomicU64,
    /// In which the key was last held.
    term: AtomicU64,
    /// Barriers are numbered in the order in which they begin. The last that began:
    barrier_begun: AtomicU64,
    /// The last that a standby has confirmed.
    barrier_confirmed: AtomicU64,
    /// The first that is late enough for every session.
    barrier_needed: AtomicU64,
}

impl DatabaseServer {
    pub(crate) fn new(identity: String, lineage: Option<Lineage>) -> DatabaseServer {
        DatabaseServer {
            identity,
            lineage,
            alone_until: AtomicU64::new(0),
            leads_until: AtomicU64::new(0),
            leads_until_ticks: AtomicU64::new(0),
            term: AtomicU64::new(0),
            barrier_begun: AtomicU64::new(0),
            barrier_confirmed: AtomicU64::new(0),
            barrier_needed: AtomicU64::new(0),
        }
    }

    /// `barrier_needed` is that of the session.
    fn leads_now(&self, barrier_needed: u64, clock: &dyn Clock) -> bool {
        let now = nanoseconds(clock.monotonic());
        // The times come before the numbers: who sees a new time sees what it needs.
        now < self.alone_until.load(Ordering::SeqCst)
            || now < self.leads_until.load(Ordering::SeqCst)
                && clock.now_ticks() < self.leads_until_ticks.load(Ordering::SeqCst)
                && self.barrier_confirmed.load(Ordering::SeqCst)
                    >= barrier_needed.max(self.barrier_needed.load(Ordering::SeqCst))
    }

    fn is_alone_until(&self, until: Duration) {
        self.alone_until.fetch_max(nanoseconds(until), Ordering::SeqCst);
    }

    /// The key says so.
    pub(crate) fn leads(&self, proven: &ProvenLead) {
        if self.term.swap(proven.term, Ordering::SeqCst) != proven.term {
            // Perhaps a standby of this server has just taken the key and goes by the old timeline still. Once it is
            // promoted it confirms no barrier here.
            self.distrust();
        }
        self.leads_until_ticks.fetch_max(proven.until_ticks, Ordering::SeqCst);
        self.leads_until.fetch_max(nanoseconds(proven.until), Ordering::SeqCst);
    }

    /// It may show what its standby does not have, until another barrier is confirmed.
    pub(crate) fn distrust(&self) {
        self.barrier_needed.fetch_max(self.next_barrier(), Ordering::SeqCst);
    }

    /// The number of the first barrier that begins later than now.
    pub(crate) fn next_barrier(&self) -> u64 {
        self.barrier_begun.load(Ordering::SeqCst) + 1
    }

    fn begin_barrier(&self) -> u64 {
        self.barrier_begun.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn barrier_confirmed(&self, number: u64) {
        self.barrier_confirmed.fetch_max(number, Ordering::SeqCst);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Hears which server made the commit; dropped when that cannot be known.
type Waiter = oneshot::Sender<Arc<DatabaseServer>>;

pub(crate) struct Barrier {
    clock: Arc<dyn Clock>,
    waiters: mpsc::Sender<Waiter>,
    /// Whether anybody has read since etcd was last asked.
    has_reads: Arc<AtomicBool>,
}

impl Barrier {
    /// The workers end with the barrier.
    pub(crate) fn start(connector: &Arc<Connector>, clock: &Arc<dyn Clock>) -> Barrier {
        let (waiters, waiting) = mpsc::channel(WAITING_COUNT_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..WORKER_COUNT {
            tokio::spawn(work(connector.clone(), clock.clone(), waiting.clone()));
        }
        let has_reads = Arc::new(AtomicBool::new(false));
        tokio::spawn(look(connector.clone(), clock.clone(), Arc::downgrade(&has_reads)));
        Barrier { clock: clock.clone(), waiters, has_reads }
    }

    /// Returns when the session's server certainly led after this was called. The caller has a deadline.
    pub(crate) async fn confirm(&self, session: &DatabaseSession) -> Result<(), Failure> {
        if !self.has_reads.load(Ordering::Relaxed) {
            self.has_reads.store(true, Ordering::Relaxed);
        }
        if session.server.leads_now(session.barrier_needed, &*self.clock) {
            return Ok(());
        }
        let (waiter, answer) = oneshot::channel();
        self.waiters.send(waiter).await.map_err(|_| Failure::Busy)?;
        match answer.await {
            Ok(server) if server.identity == session.server.identity => Ok(()),
            Ok(_) => {
                log::info!("a session was left at a server that no longer leads");
                session.give_up();
                Err(Failure::Unproven)
            }
            Err(_) => Err(Failure::Unproven),
        }
    }
}

async fn work(connector: Arc<Connector>, clock: Arc<dyn Clock>, waiting: Arc<Mutex<mpsc::Receiver<Waiter>>>) {
    let mut session: Option<DatabaseSession> = None;
    let mut waiters = Vec::new();
    loop {
        // A commit for all who came so far; who comes later waits for the next one.
        if waiting.lock().await.recv_many(&mut waiters, WAITING_COUNT_MAX).await == 0 {
            return;
        }
        let ready = match session.take().filter(|session| !session.is_over()) {
            Some(session) => Some(session),
            None => connector.session().await.ok(),
        };
        let Some(ready) = ready else {
            waiters.clear();
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        session = round(&connector, &*clock, ready).await;
        connector.silence_ended();
        match &session {
            Some(session) => {
                for waiter in waiters.drain(..) {
                    // Whoever has gone needs no answer.
                    let _ = waiter.send(session.server.clone());
                }
            }
            None => waiters.clear(),
        }
    }
}

/// Makes one commit. `None`: the session has ended, or another server leads.
async fn round(
    connector: &Connector,
    clock: &dyn Clock,
    session: DatabaseSession,
) -> Option<DatabaseSession> {
    let sent = clock.monotonic();
    let number = session.server.begin_barrier();
    let has_standbys = {
        let mut commit = std::pin::pin!(session.query(&session.statements.barrier, &[], FOR_EVER));
        let rows = loop {
            match tokio::time::timeout(SILENCE_MAX, commit.as_mut()).await {
                Ok(rows) => break rows,
                Err(_) => {
                    connector.fell_silent();
                    // Another commit would only wait too, and one that waits is not forgotten by its server when we
                    // go. So this one is kept until another server leads.
                    match connector.session().await {
                        Ok(other) if other.server.identity != session.server.identity => return None,
                        _ => {}
                    }
                }
            }
        };
        rows.ok()?.first().map(|row| row.get::<_, bool>(0))?
    };
    match has_standbys {
        true => session.server.barrier_confirmed(number),
        false => session.server.is_alone_until(sent + ALONE_FOR),
    }
    Some(session)
}

/// Asks etcd as long as the barrier lives, and only while there are reads.
async fn look(connector: Arc<Connector>, clock: Arc<dyn Clock>, has_reads: Weak<AtomicBool>) {
    let Some(key) = &connector.etcd else { return };
    let mut last: Option<Result<(), NoProof>> = None;
    while let Some(has_reads) = has_reads.upgrade() {
        if has_reads.swap(false, Ordering::Relaxed) {
            let seen = look_once(&connector, key, &*clock).await;
            if last != Some(seen) {
                match seen {
                    Ok(()) => log::info!("PostgreSQL: etcd proves who leads"),
                    Err(why) => {
                        log::warn!("PostgreSQL: etcd does not prove who leads: {why}. Reads wait for commits")
                    }
                }
            }
            last = Some(seen);
        }
        drop(has_reads);
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

async fn look_once(connector: &Connector, key: &EtcdKey, clock: &dyn Clock) -> Result<(), NoProof> {
    let proven = key.lead(clock).await?;
    connector.leads(&proven);
    Ok(())
}

#[cfg(test)]
mod tests;
