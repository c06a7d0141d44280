//! Queues by name: creation, deletion, lists, metadata, policies, clearing.

use engine::Share;
use protocol::ErrorCode;
use protocol::common::{Metadata, StoredPolicy};
use protocol::queue::QueueName;
use queues::{Created, ListQuery};

use crate::support::{SECOND, code, setup};

fn metadata(items: &[(&str, &str)]) -> Metadata {
    Metadata::read(items.iter().copied()).unwrap()
}

fn name(text: &str) -> QueueName {
    QueueName::parse(text).unwrap()
}

#[tokio::test]
async fn a_queue_is_created_again_only_with_the_same_metadata() {
    let s = setup().await;
    let create = async |items| s.service.create_queue(&s.account, &name("new"), &metadata(items)).await;
    assert_eq!(create(&[("a", "1"), ("B", "2")]).await.unwrap(), Created::New);
    assert_eq!(create(&[("b", "2"), ("A", "1")]).await.unwrap(), Created::Existed);
    assert_eq!(code(create(&[]).await), ErrorCode::QueueAlreadyExists);
    assert_eq!(code(create(&[("a", "1"), ("b", "3")]).await), ErrorCode::QueueAlreadyExists);
    s.service.set_metadata(&s.account, &name("new"), &Metadata::default()).await.unwrap();
    assert_eq!(create(&[]).await.unwrap(), Created::Existed);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let s = setup().await;
    let (a, q) = (&s.account, &name("missing"));
    assert_eq!(code(s.service.delete_queue(a, q).await), ErrorCode::QueueNotFound);
    assert_eq!(code(s.service.properties(a, q).await), ErrorCode::QueueNotFound);
    assert_eq!(code(s.service.set_metadata(a, q, &Metadata::default()).await), ErrorCode::QueueNotFound);
    assert_eq!(code(s.service.clear_messages(a, q).await), ErrorCode::QueueNotFound);
    assert_eq!(
        code(s.service.peek_messages(a, q, 1, Share::COMMON, &mut |_| true).await),
        ErrorCode::QueueNotFound
    );
    assert_eq!(
        code(s.service.get_messages(a, q, 1, SECOND, Share::COMMON, &mut |_| true).await),
        ErrorCode::QueueNotFound
    );
    assert_eq!(code(s.service.policies(a, q).await), ErrorCode::QueueNotFound);
    assert_eq!(code(s.service.set_policies(a, q, &[]).await), ErrorCode::QueueNotFound);
    assert_eq!(code(s.service.check_queue(a, q).await), ErrorCode::QueueNotFound);
}

#[tokio::test]
async fn a_deleted_queue_starts_anew() {
    let s = setup().await;
    s.put("old").await;
    let taken = s.get(1, 30).await.remove(0);
    s.put("old too").await;
    s.service.delete_queue(&s.account, &s.queue).await.unwrap();
    assert_eq!(
        code(s.service.peek_messages(&s.account, &s.queue, 1, Share::COMMON, &mut |_| true).await),
        ErrorCode::QueueNotFound
    );
    assert_eq!(s.delete(&taken).await, Err(ErrorCode::QueueNotFound));
    s.service.create_queue(&s.account, &s.queue, &Metadata::default()).await.unwrap();
    assert_eq!((s.count().await, s.get(32, 30).await.len()), (0, 0));
    assert_eq!(s.delete(&taken).await, Err(ErrorCode::MessageNotFound));
}

#[tokio::test]
async fn clearing_keeps_everything_but_the_messages() {
    let s = setup().await;
    let policy = StoredPolicy { id: "p".into(), ..StoredPolicy::default() };
    s.service.set_policies(&s.account, &s.queue, std::slice::from_ref(&policy)).await.unwrap();
    s.service.set_metadata(&s.account, &s.queue, &metadata(&[("k", "v")])).await.unwrap();
    for _ in 0..3 {
        s.put("visible").await;
        s.put_with("invisible", 100 * SECOND, None).await;
        let taken = s.get(1, 30).await.remove(0);
        assert_eq!(s.count().await, 2);
        s.service.clear_messages(&s.account, &s.queue).await.unwrap();
        assert_eq!((s.count().await, s.get(32, 30).await.len()), (0, 0));
        assert_eq!(s.delete(&taken).await, Err(ErrorCode::MessageNotFound));
        assert_eq!(&*s.service.policies(&s.account, &s.queue).await.unwrap(), std::slice::from_ref(&policy));
        let properties = s.service.properties(&s.account, &s.queue).await.unwrap();
        assert_eq!(properties.metadata, metadata(&[("k", "v")]));
    }
    s.clock.advance(200 * SECOND);
    assert!(s.get(32, 30).await.is_empty());
    // Policies go with their queue, also after its content was dropped.
    s.service.delete_queue(&s.account, &s.queue).await.unwrap();
    s.service.create_queue(&s.account, &s.queue, &Metadata::default()).await.unwrap();
    assert!(s.service.policies(&s.account, &s.queue).await.unwrap().is_empty());
}

#[tokio::test]
async fn lists_have_prefixes_and_pages() {
    let s = setup().await;
    for queue in ["list-1", "list-2", "list-3", "lisu", "aaa"] {
        s.service.create_queue(&s.account, &name(queue), &metadata(&[("q", queue)])).await.unwrap();
    }
    let list = async |prefix, marker, queue_count_max| {
        let query = ListQuery { prefix, marker, queue_count_max, has_metadata: true, share: Share::COMMON };
        let page = s.service.list_queues(&s.account, &query).await.unwrap();
        for queue in page.queues.iter().filter(|queue| queue.name != "queue") {
            assert_eq!(queue.metadata, metadata(&[("q", &queue.name)]));
        }
        (page.queues.into_iter().map(|queue| queue.name).collect::<Vec<_>>().join(" "), page.next)
    };
    assert_eq!(list("", None, 5000).await, ("aaa list-1 list-2 list-3 lisu queue".to_owned(), None));
    assert_eq!(list("list", None, 2).await, ("list-1 list-2".to_owned(), Some("list-3".to_owned())));
    assert_eq!(list("list", Some("list-3"), 2).await, ("list-3".to_owned(), None));
    assert_eq!(list("list", None, 3).await, ("list-1 list-2 list-3".to_owned(), None));
    assert_eq!(list("nothing", None, 3).await, (String::new(), None));
    assert_eq!(list("list", Some("zzz"), 3).await, (String::new(), None));
    assert_eq!(list("", Some("list-35"), 1).await, ("lisu".to_owned(), Some("queue".to_owned())));
}
