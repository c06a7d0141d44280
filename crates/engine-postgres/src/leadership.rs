//! Whether a server led when it answered.
//!
//! A leader that was cut off from the others goes on answering, with rows that may be old by then. So an answer that
//! only read is given out when it is proven that its server still led after it had been read. There are two proofs.
//! The usual one is a barrier: a commit that began after the answer came and that a synchronous standby has
//! confirmed. A standby confirms nothing to a server that it no longer follows, so nobody else led when the answer
//! was read. All answers that wait share a barrier, as those of a group share a commit. The other one is a time until
//! which the server certainly leads: a second, where the server has no synchronous standbys and so nobody to be
//! replaced by.
//!
//! Promises: at most [`WORKER_COUNT`] barriers at once, however many wait, and however long a standby is silent. What
//! was read is on the standby too when it is given out, even after a crash in which the leader forgot for whom it
//! waited.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::env::Clock;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::connect::Connector;
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
/// A commit that no server ends takes as long as it takes; those who wait for it have deadlines of their own.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

/// One run of one server, which ends when it is demoted.
pub(crate) struct DatabaseServer {
    pub(crate) identity: String,
    /// On the front end's monotonic clock, in nanoseconds.
    leads_until: AtomicU64,
}

impl DatabaseServer {
    pub(crate) fn new(identity: String) -> DatabaseServer {
        DatabaseServer { identity, leads_until: AtomicU64::new(0) }
    }

    fn leads_at(&self, now: Duration) -> bool {
        nanoseconds(now) < self.leads_until.load(Ordering::Acquire)
    }

    pub(crate) fn leads_until(&self, until: Duration) {
        self.leads_until.fetch_max(nanoseconds(until), Ordering::AcqRel);
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
}

impl Barrier {
    /// The workers end with the barrier.
    pub(crate) fn start(connector: &Arc<Connector>, clock: &Arc<dyn Clock>) -> Barrier {
        let (waiters, waiting) = mpsc::channel(WAITING_COUNT_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..WORKER_COUNT {
            tokio::spawn(work(connector.clone(), clock.clone(), waiting.clone()));
        }
        Barrier { clock: clock.clone(), waiters }
    }

    /// Returns when the session's server certainly led after this was called. The caller has a deadline.
    pub(crate) async fn confirm(&self, session: &DatabaseSession) -> Result<(), Failure> {
        if session.server.leads_at(self.clock.monotonic()) {
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
    if !has_standbys {
        session.server.leads_until(sent + ALONE_FOR);
    }
    Some(session)
}
