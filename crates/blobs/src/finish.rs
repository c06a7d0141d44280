//! Work that is finished even if nobody waits for it any more.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs where it is awaited. If it is dropped half way, as when a client goes away, the runtime finishes it.
pub(crate) struct Unstoppable<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Unstoppable<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Unstoppable<T> {
        Unstoppable(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for Unstoppable<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Unstoppable<T> {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn what_is_dropped_half_way_is_finished_all_the_same() {
        let (go, wait) = oneshot::channel::<()>();
        let (done, finished) = oneshot::channel::<()>();
        let mut work = Unstoppable::new(async move {
            let _ = wait.await;
            let _ = done.send(());
        });
        assert!(
            std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut work).poll(context))).await.is_pending()
        );
        drop(work);
        go.send(()).unwrap();
        finished.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_awaited_gives_its_result() {
        assert_eq!(Unstoppable::new(async { 7 }).await, 7);
    }
}
