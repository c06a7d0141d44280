//! A time limit for work, at no cost when the work never waits.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Sleep;

/// `None` when the work takes longer. The time counts from the moment when the work first waits: before that, no timer
/// could interrupt it.
pub async fn within<F: Future>(time_max: Duration, mut work: Pin<&mut F>) -> Option<F::Output> {
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(time_max)));
        timer.as_mut().poll(context).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    #[tokio::test]
    async fn what_waits_too_long_is_given_up_and_nothing_else() {
        let time_max = Duration::from_millis(20);
        assert_eq!(within(time_max, pin!(async { 1 })).await, Some(1));
        assert_eq!(within(time_max, pin!(async { tokio::task::yield_now().await })).await, Some(()));
        assert_eq!(within(time_max, pin!(std::future::pending::<()>())).await, None);
    }
}
