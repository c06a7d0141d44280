//! The timer that bounds how long a request's head may take: one per connection, for all of its requests.
//!
//! hyper asks for a new timer with every request and drops it when the head has arrived. Registering and removing each
//! of them, under a lock that all connections share, costs more than checking the time. So one timer stays registered,
//! and a request that it wakes checks whether its own deadline has passed.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

#[derive(Clone, Default)]
pub(crate) struct HeadTimer(Arc<Mutex<Option<Registered>>>);

type Registered = Pin<Box<tokio::time::Sleep>>;

/// One request's deadline. Dropping it leaves the connection's timer registered.
struct Deadline {
    at: tokio::time::Instant,
    timer: HeadTimer,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline { at: deadline.into(), timer: self.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

impl Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut registered = self.timer.0.lock().unwrap_or_else(PoisonError::into_inner);
        let timer = registered.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(self.at)));
        while timer.as_mut().poll(context).is_ready() {
            // The timer may still be set for an earlier request.
            if timer.deadline() >= self.at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(self.at);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test]
    async fn a_later_deadline_is_kept_although_an_earlier_one_was_registered() {
        let timer = HeadTimer::default();
        let (start, step) = (timer.now(), Duration::from_millis(30));
        let mut first = timer.sleep(step);
        let is_ready = poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_ready())).await;
        assert!(!is_ready);
        drop(first);
        timer.sleep(2 * step).await;
        assert!(timer.now() - start >= 2 * step);
        // An expired deadline does not end the next one.
        timer.sleep(step).await;
        assert!(timer.now() - start >= 3 * step);
    }
}
