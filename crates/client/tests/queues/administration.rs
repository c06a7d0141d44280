//! Queues: create, delete, list, metadata, access policies; and the service as a whole.

use std::collections::BTreeMap;

use lazulite_client::{
    CorsRule, DateTime, Error, Logging, PropertiesUpdate, PutOptions, QueuePermissions, QueueSas,
    QueueServiceClient, ServiceProperties, StoredPolicy,
};
use testkit::TestServer;

use crate::{HALF_A_MINUTE, queue, service};

fn metadata(items: &[(&str, &str)]) -> BTreeMap<String, String> {
    items.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn queues_are_created_once_and_deleted_once() {
    let server = TestServer::start();
    let queue = service(&server).queue("orders").unwrap();
    assert!(!queue.exists().await.unwrap());
    assert!(queue.create_if_absent().await.unwrap());
    assert!(!queue.create_if_absent().await.unwrap());
    assert!(!queue.create().await.unwrap());
    assert!(queue.exists().await.unwrap());
    let conflict = queue.create_with(&metadata(&[("color", "red")])).await.unwrap_err();
    assert_eq!((conflict.is_conflict(), conflict.code()), (true, Some("QueueAlreadyExists")));

    queue.delete_queue().await.unwrap();
    assert!(queue.delete_queue().await.unwrap_err().is_not_found());
    assert!(!queue.delete_queue_if_present().await.unwrap());
    assert!(queue.create_with(&metadata(&[("color", "red")])).await.unwrap());
    assert!(!queue.create_if_absent().await.unwrap(), "whatever its metadata");
    assert!(queue.delete_queue_if_present().await.unwrap());
}

#[tokio::test]
async fn operations_on_a_missing_queue_say_so() {
    let server = TestServer::start();
    let queue = service(&server).queue("nothing").unwrap();
    let errors: [Error; 6] = [
        queue.put("a", PutOptions::new()).await.unwrap_err(),
        queue.take(1, HALF_A_MINUTE).await.unwrap_err(),
        queue.peek(1).await.unwrap_err(),
        queue.clear().await.unwrap_err(),
        queue.properties().await.unwrap_err(),
        queue.access_policies().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.is_not_found(), error.code()), (true, Some("QueueNotFound")), "{error}");
        let failure = error.failure().unwrap();
        assert!(failure.request_id.is_some() && failure.message.contains("queue"), "{failure:?}");
    }
}

#[tokio::test]
async fn names_are_checked_before_sending() {
    let server = TestServer::start();
    for bad in ["", "ab", "Orders", "a--b", "-ab", "a/b", &"x".repeat(64)] {
        assert!(matches!(service(&server).queue(bad), Err(Error::Refused(_))), "{bad}");
    }
}

#[tokio::test]
async fn metadata_is_replaced_as_a_whole() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    assert!(queue.properties().await.unwrap().metadata.is_empty());
    let items = metadata(&[("color", "red and green"), ("empty", ""), ("_x1", "~!@")]);
    queue.set_metadata(&items).await.unwrap();
    assert_eq!(queue.properties().await.unwrap().metadata, items);
    queue.set_metadata(&metadata(&[("Size", "1")])).await.unwrap();
    assert_eq!(queue.properties().await.unwrap().metadata, metadata(&[("size", "1")]));
    queue.set_metadata(&BTreeMap::new()).await.unwrap();
    assert!(queue.properties().await.unwrap().metadata.is_empty());
    for bad in [("a-b", "x"), ("a", "\u{e4}"), ("", "x")] {
        assert!(matches!(queue.set_metadata(&metadata(&[bad])).await, Err(Error::Refused(_))));
    }
}

#[tokio::test]
async fn access_policies_are_kept() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    assert!(queue.access_policies().await.unwrap().is_empty());
    let policy = StoredPolicy {
        id: "workers".to_owned(),
        start: DateTime::parse("2026-01-01T00:00:00Z"),
        expiry: DateTime::parse("2027-01-01T00:00:00.5Z"),
        permission: Some("rp".to_owned()),
    };
    let one = std::slice::from_ref(&policy);
    queue.set_access_policies(one).await.unwrap();
    assert_eq!(queue.access_policies().await.unwrap(), one);
    let wrong = StoredPolicy { permission: Some("pr".to_owned()), ..policy.clone() };
    for bad in [vec![wrong], vec![policy.clone(); 2], vec![StoredPolicy::default()]] {
        assert!(matches!(queue.set_access_policies(&bad).await, Err(Error::Refused(_))));
    }
    queue.set_access_policies(&[]).await.unwrap();
    assert!(queue.access_policies().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_policy_may_leave_each_term_open() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    let bare = StoredPolicy { id: "<bare>".to_owned(), ..StoredPolicy::default() };
    queue.set_access_policies(std::slice::from_ref(&bare)).await.unwrap();
    assert_eq!(queue.access_policies().await.unwrap(), [bare]);
}

#[tokio::test]
async fn queues_are_listed_page_by_page() {
    let server = TestServer::start();
    let service = service(&server);
    for number in 0..7 {
        assert!(service.create_queue(&format!("list-{number}")).await.unwrap());
    }
    service.queue("list-3").unwrap().set_metadata(&metadata(&[("color", "red")])).await.unwrap();
    service.create_queue("other").await.unwrap();

    let mut pages = service.list_queues().prefix("list-").page_size(3).metadata();
    let mut sizes = Vec::new();
    let mut names = Vec::new();
    while let Some(page) = pages.next_page().await.unwrap() {
        sizes.push(page.queues.len());
        for queue in page.queues {
            assert_eq!(queue.metadata.len(), usize::from(queue.name == "list-3"), "{queue:?}");
            names.push(queue.name);
        }
    }
    assert_eq!(sizes, [3, 3, 1]);
    assert_eq!(names, (0..7).map(|number| format!("list-{number}")).collect::<Vec<_>>());
    assert!(pages.next_page().await.unwrap().is_none(), "the end stays the end");

    let first = service.list_queues().page_size(2).next_page().await.unwrap().unwrap();
    let marker = first.next_marker.unwrap();
    let second = service.list_queues().page_size(2).resume(&marker).next_page().await.unwrap().unwrap();
    assert_eq!(second.queues[0].name, "list-2");

    assert_eq!(service.list_queues().page_size(2).all().await.unwrap().len(), 8);

    // The same as a stream.
    let mut stream = std::pin::pin!(service.list_queues().prefix("list-").page_size(4).into_stream());
    let mut sizes = Vec::new();
    while let Some(page) =
        std::future::poll_fn(|context| futures_core::Stream::poll_next(stream.as_mut(), context)).await
    {
        sizes.push(page.unwrap().queues.len());
    }
    assert_eq!(sizes, [4, 3]);

    assert!(matches!(service.list_queues().page_size(0).next_page().await, Err(Error::Refused(_))));
    service.delete_queue("other").await.unwrap();
    assert!(service.delete_queue("other").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn the_service_has_properties() {
    let server = TestServer::start();
    let service = service(&server);
    let before = service.properties().await.unwrap();
    let rule = CorsRule {
        allowed_origins: vec!["http://example.org".to_owned()],
        allowed_methods: vec!["GET".to_owned()],
        allowed_headers: vec!["x-ms-*".to_owned()],
        exposed_headers: vec![],
        max_age_seconds: 60,
    };
    let logging = Logging { read: true, retention_days: Some(3), ..before.logging.clone() };
    let update = PropertiesUpdate {
        cors: Some(vec![rule.clone()]),
        logging: Some(logging.clone()),
        ..Default::default()
    };
    service.set_properties(&update).await.unwrap();
    let after = service.properties().await.unwrap();
    assert_eq!(after, ServiceProperties { cors: vec![rule], logging, ..before });
}

#[tokio::test]
async fn the_replica_has_stats() {
    let server = TestServer::start();
    let stats = service(&server).stats().await.unwrap();
    assert_eq!(stats.status, "live");
    assert!(stats.last_sync.is_some());
}

#[tokio::test]
async fn a_signature_reaches_what_it_allows() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    let service = service(&server);
    let expiry = DateTime::parse("2090-01-01T00:00:00Z").unwrap();
    let permissions = QueuePermissions::ADD | QueuePermissions::READ;
    let sas = QueueSas::new("orders", permissions).expiry(expiry).sign(service.credential()).unwrap();
    let narrow =
        QueueServiceClient::from_sas_url(&sas.url(&service.endpoint())).unwrap().queue("orders").unwrap();
    narrow.put("one", PutOptions::new()).await.unwrap();
    assert_eq!(narrow.peek(1).await.unwrap()[0].text, "one");
    let refused = narrow.take(1, HALF_A_MINUTE).await.unwrap_err();
    assert_eq!(refused.code(), Some("AuthorizationPermissionMismatch"));
    assert!(narrow.clear().await.is_err());
    assert_eq!(queue.approximate_count().await.unwrap(), 1);
}
