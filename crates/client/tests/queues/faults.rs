//! What the client does when answers are lost, and when a server answers nonsense: a transport in between decides.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lazulite_client::{
    ClientBuilder, Error, HttpOptions, HttpTransport, PutOptions, QueueClient, RetryPolicy, Sending,
    Transport, TransportError,
};
use testkit::TestServer;

use crate::{HALF_A_MINUTE, connection_string};

/// What happens to the next request.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// The request does not arrive.
    Unsent,
    /// The server does its work, and the answer is lost.
    AnswerLost,
    /// The server does not see it, but a proxy answers 500.
    ServerError,
    /// An answer of some other protocol.
    Nonsense,
}

struct Faulty {
    real: HttpTransport,
    faults: Mutex<Vec<Fault>>,
    sent_count: AtomicUsize,
}

impl Transport for Faulty {
    fn send(&self, request: http::Request<Bytes>) -> Sending<'_> {
        Box::pin(async move {
            self.sent_count.fetch_add(1, Ordering::SeqCst);
            let fault = self.faults.lock().unwrap().pop();
            match fault {
                None => self.real.send(request).await,
                Some(Fault::Unsent) => Err(TransportError::unsent("no connection")),
                Some(Fault::AnswerLost) => {
                    self.real.send(request).await?;
                    Err(TransportError::lost("the connection broke"))
                }
                Some(Fault::ServerError) => {
                    Ok(http::Response::builder().status(500).body(Bytes::new()).unwrap())
                }
                Some(Fault::Nonsense) => Ok(http::Response::new(Bytes::from_static(b"<html>hello</html>"))),
            }
        })
    }
}

async fn faulty(server: &TestServer) -> (Arc<Faulty>, QueueClient) {
    let transport = Arc::new(Faulty {
        real: HttpTransport::new(HttpOptions::default()),
        faults: Mutex::default(),
        sent_count: AtomicUsize::new(0),
    });
    let builder = ClientBuilder::from_connection_string(&connection_string(server)).unwrap();
    let retry = RetryPolicy::default().delay_first(Duration::from_millis(1));
    let service = builder.transport(transport.clone()).retry(retry).queues().unwrap();
    let queue = service.queue("orders").unwrap();
    queue.create().await.unwrap();
    (transport, queue)
}

impl Faulty {
    fn next(&self, faults: &[Fault]) {
        *self.faults.lock().unwrap() = faults.iter().rev().copied().collect();
        self.sent_count.store(0, Ordering::SeqCst);
    }

    fn sent_count(&self) -> usize {
        self.sent_count.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_put_is_repeated_only_if_it_was_not_sent() {
    let server = TestServer::start();
    let (transport, queue) = faulty(&server).await;
    transport.next(&[Fault::Unsent]);
    queue.put("one", PutOptions::new()).await.unwrap();
    assert_eq!(transport.sent_count(), 2);

    for fault in [Fault::AnswerLost, Fault::ServerError] {
        transport.next(&[fault]);
        let error = queue.put("two", PutOptions::new()).await.unwrap_err();
        assert!(error.is_outcome_unknown(), "{error}");
        assert_eq!(transport.sent_count(), 1);
    }
    assert_eq!(queue.approximate_count().await.unwrap(), 2, "the lost answer was a success");
}

#[tokio::test]
async fn a_delete_whose_answer_was_lost_has_succeeded() {
    let server = TestServer::start();
    let (transport, queue) = faulty(&server).await;
    queue.put("one", PutOptions::new()).await.unwrap();
    let message = queue.take(1, HALF_A_MINUTE).await.unwrap().remove(0);
    transport.next(&[Fault::AnswerLost]);
    queue.delete(&message).await.unwrap();
    assert_eq!(transport.sent_count(), 2);
    // A delete that was sent once, or that cannot have arrived before, is not excused.
    assert!(queue.delete(&message).await.unwrap_err().is_not_found());
    transport.next(&[Fault::Unsent]);
    assert!(queue.delete(&message).await.unwrap_err().is_not_found());

    transport.next(&[Fault::AnswerLost]);
    queue.delete_queue().await.unwrap();
    assert_eq!(transport.sent_count(), 2);
    // The queue is gone, which is not what this delete was about.
    transport.next(&[Fault::ServerError]);
    assert_eq!(queue.delete(&message).await.unwrap_err().code(), Some("QueueNotFound"));
}

#[tokio::test]
async fn a_take_or_update_whose_answer_was_lost_is_not_repeated() {
    let server = TestServer::start();
    let (transport, queue) = faulty(&server).await;
    for text in ["one", "two"] {
        queue.put(text, PutOptions::new()).await.unwrap();
    }
    transport.next(&[Fault::AnswerLost]);
    assert!(queue.take(1, HALF_A_MINUTE).await.unwrap_err().is_outcome_unknown());
    assert_eq!(transport.sent_count(), 1);
    let message = queue.take(2, HALF_A_MINUTE).await.unwrap().remove(0);
    assert_eq!(message.text, "two", "the first one is hidden");

    transport.next(&[Fault::AnswerLost]);
    assert!(queue.update(&message, None, HALF_A_MINUTE).await.unwrap_err().is_outcome_unknown());
    assert_eq!(transport.sent_count(), 1);
    assert!(queue.delete(&message).await.unwrap_err().is_not_found(), "its receipt has changed");
}

#[tokio::test]
async fn reads_and_settings_are_repeated() {
    let server = TestServer::start();
    let (transport, queue) = faulty(&server).await;
    let faults = [Fault::AnswerLost, Fault::ServerError, Fault::Unsent];
    transport.next(&faults[..2]);
    assert_eq!(queue.approximate_count().await.unwrap(), 0);
    transport.next(&faults[..1]);
    queue.set_metadata(&[("a".to_owned(), "b".to_owned())].into()).await.unwrap();
    transport.next(&faults[..1]);
    queue.clear().await.unwrap();
    transport.next(&faults[1..]);
    assert!(queue.peek(1).await.unwrap().is_empty());
    assert_eq!(transport.sent_count(), 3);
}

#[tokio::test]
async fn answers_of_another_protocol_are_errors() {
    let server = TestServer::start();
    let (transport, queue) = faulty(&server).await;
    let sent = queue.put("one", PutOptions::new()).await.unwrap();
    let check =
        |result: Result<(), Error>| assert!(matches!(result, Err(Error::Unreadable(_))), "{result:?}");
    transport.next(&[Fault::Nonsense; 6]);
    check(queue.put("one", PutOptions::new()).await.map(drop));
    check(queue.take(1, HALF_A_MINUTE).await.map(drop));
    check(queue.peek(1).await.map(drop));
    check(queue.update(&sent, None, HALF_A_MINUTE).await.map(drop));
    check(queue.properties().await.map(drop));
    check(queue.access_policies().await.map(drop));
}
