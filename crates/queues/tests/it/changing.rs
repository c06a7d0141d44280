//! Messages that change between the moment they are seen and the moment they are taken.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{Commit, CommitError, Engine, Found, Version};

use crate::support::{FAMILIES, Setup, setup_on};

/// Fails the next commits, each with its own error, and counts the others.
struct Failing {
    engine: MemoryEngine,
    failures: Mutex<VecDeque<CommitError>>,
    commit_count: Mutex<usize>,
}

struct Shared(Arc<Failing>);

#[async_trait]
impl Wrapper for Shared {
    fn inner(&self) -> &dyn Engine {
        &self.0.engine
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        let failure = self.0.failures.lock().unwrap().pop_front();
        match failure {
            Some(error) => Err(error),
            None => {
                *self.0.commit_count.lock().unwrap() += 1;
                self.0.engine.commit(commit).await
            }
        }
    }
}

async fn setup() -> (Setup, Arc<Failing>) {
    let clock = Arc::new(FakeClock::default());
    let engine = MemoryEngine::new(FAMILIES, clock.clone());
    let failing = Arc::new(Failing { engine, failures: Mutex::default(), commit_count: Mutex::default() });
    (setup_on(Arc::new(Wrapped(Shared(failing.clone()))), clock).await, failing)
}

fn changed(op: usize) -> CommitError {
    CommitError::Precondition { op, found: Found::Absent }
}

#[tokio::test]
async fn a_queue_cleared_while_changed_messages_are_sorted_out_is_looked_up_again() {
    let (setup, failing) = setup().await;
    for text in ["a", "b", "c"] {
        setup.put(text).await;
    }
    *failing.failures.lock().unwrap() = [changed(0), CommitError::TableGone].into();
    assert_eq!(setup.get_texts(3, 10).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn what_did_not_change_is_taken_in_one_step() {
    let (setup, failing) = setup().await;
    for text in ["a", "b", "c", "d"] {
        setup.put(text).await;
    }
    *failing.commit_count.lock().unwrap() = 0;
    // Three ops a message: the second and the third changed.
    *failing.failures.lock().unwrap() = [changed(3), changed(5)].into();
    assert_eq!(setup.get_texts(4, 10).await, ["a", "d"]);
    assert_eq!(*failing.commit_count.lock().unwrap(), 1);
}
