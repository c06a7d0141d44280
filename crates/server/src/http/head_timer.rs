//! The timer that bounds how long a request's head may take: one per connection, for all of its requests.
//!
//! Registering a timer for each request and removing it again, under a lock that all connections share, costs more than
//! checking the time. So one timer stays registered, and a request that it wakes checks whether its own deadline has passed.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

#[derive(Default)]
pub(super) struct HeadTimer {
    registered: Option<Pin<Box<Sleep>>>,
    /// When the current request's time is over; `None` until it waits.
    deadline: Option<Instant>,
}

impl HeadTimer {
    /// The next request's time begins when it first waits.
    pub(super) fn restart(&mut self) {
        self.deadline = None;
    }

    /// Ready when the time is over. To be called when the request waits.
    pub(super) fn poll_over(&mut self, time_max: Duration, context: &mut Context<'_>) -> Poll<()> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + time_max);
        let timer = self.registered.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        while timer.as_mut().poll(context).is_ready() {
            // The timer may still be set for an earlier request.
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
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
        let mut timer = HeadTimer::default();
        let (start, step) = (Instant::now(), Duration::from_millis(30));
        let is_over = poll_fn(|context| Poll::Ready(timer.poll_over(step, context).is_ready())).await;
        assert!(!is_over);
        timer.restart();
        poll_fn(|context| timer.poll_over(2 * step, context)).await;
        assert!(start.elapsed() >= 2 * step);
        // An expired deadline does not end the next one.
        timer.restart();
        poll_fn(|context| timer.poll_over(step, context)).await;
        assert!(start.elapsed() >= 3 * step);
    }
}
