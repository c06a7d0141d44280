//! The operations on tables and on the service, against a fake server.

use std::future::poll_fn;

use super::*;
use crate::pipeline::tests::{EMULATOR, FakeTransport, Reply, builder};

fn tables(replies: Vec<Reply>) -> (TableServiceClient, Arc<FakeTransport>) {
    let transport = FakeTransport::new(replies);
    (builder(EMULATOR, transport.clone()).tables().unwrap(), transport)
}

fn answer(status: u16, body: &str) -> Reply {
    Reply::Answer(status, &[], body.to_owned())
}

fn refusal(status: u16, code: &str) -> Reply {
    answer(status, &format!(r#"{{"odata.error":{{"code":"{code}","message":{{"value":"no"}}}}}}"#))
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_create_or_delete_is_taken_for_success() {
    let exists = || refusal(409, "TableAlreadyExists");
    let (client, transport) =
        tables(vec![answer(204, ""), exists(), Reply::Lost, exists(), Reply::Unsent, exists()]);
    client.create_table("people").await.unwrap();
    assert!(client.create_table("people").await.unwrap_err().is_conflict());
    client.create_table("people").await.unwrap();
    assert!(client.create_table("people").await.unwrap_err().is_conflict());
    let seen = &transport.seen()[0];
    assert_eq!((seen.method.as_str(), &seen.body[..]), ("POST", &b"{\"TableName\":\"people\"}"[..]));
    assert_eq!(seen.headers["prefer"], "return-no-content");

    let gone = || refusal(404, "ResourceNotFound");
    let (client, transport) = tables(vec![answer(204, ""), gone(), Reply::Lost, gone(), gone()]);
    client.delete_table("people").await.unwrap();
    assert!(client.delete_table("people").await.unwrap_err().is_not_found());
    client.delete_table("people").await.unwrap();
    assert!(!client.delete_table_if_present("people").await.unwrap());
    assert_eq!(transport.seen()[0].url, "http://127.0.0.1:10002/devstoreaccount1/Tables('people')");
}

#[tokio::test(start_paused = true)]
async fn creating_if_absent_tells_which() {
    let exists = || refusal(409, "TableAlreadyExists");
    let (client, _) = tables(vec![answer(204, ""), exists(), refusal(409, "TableBeingDeleted")]);
    assert!(client.create_table_if_absent("people").await.unwrap());
    assert!(!client.create_table_if_absent("people").await.unwrap());
    let error = client.create_table_if_absent("people").await.unwrap_err();
    assert_eq!(error.code(), Some("TableBeingDeleted"));
}

#[tokio::test(start_paused = true)]
async fn names_that_no_table_has_are_not_even_sent() {
    let (client, transport) = tables(vec![]);
    for name in ["", "ab", "a-b", "Tables", "1abc", "a')"] {
        assert!(matches!(client.create_table(name).await, Err(Error::Refused(_))), "{name}");
        assert!(matches!(client.delete_table(name).await, Err(Error::Refused(_))), "{name}");
    }
    assert!(transport.seen().is_empty());
}

const NEXT: &[(&str, &str)] = &[("x-ms-continuation-NextTableName", "1!4!bcd")];
const AFTER_NEXT: &[(&str, &str)] = &[("x-ms-continuation-NextTableName", "1!4!bce")];

#[tokio::test(start_paused = true)]
async fn tables_are_listed_in_pages_or_as_a_stream() {
    let pages = || {
        let first =
            r#"{"odata.metadata":"x","value":[{"TableName":"aaa"},{"odata.id":"x","TableName":"abc"}]}"#;
        vec![
            Reply::Answer(200, NEXT, first.to_owned()),
            Reply::Answer(200, AFTER_NEXT, r#"{"value":[]}"#.to_owned()),
            answer(200, r#"{"value":[{"TableName":"bcd"}]}"#),
        ]
    };
    let (client, transport) = tables(pages());
    let mut list = client.list_tables().filter("TableName ge 'a'").page_size(2);
    assert_eq!(list.continuation(), None);
    assert_eq!(list.next_page().await.unwrap().unwrap(), ["aaa", "abc"]);
    assert_eq!(list.continuation(), Some("1!4!bcd"));
    assert!(list.next_page().await.unwrap().unwrap().is_empty());
    assert_eq!(list.next_page().await.unwrap().unwrap(), ["bcd"]);
    assert_eq!(list.continuation(), None);
    assert_eq!(list.next_page().await.unwrap(), None);
    let query = |url: &str| url.split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default();
    let seen: Vec<String> = transport.seen().iter().map(|seen| query(&seen.url)).collect();
    let filter = "%24filter=TableName%20ge%20%27a%27&%24top=2";
    let next = |token: &str| format!("{filter}&NextTableName=1%214%21{token}");
    assert_eq!(seen, [filter.to_owned(), next("bcd"), next("bce")]);

    let (client, _) = tables(pages());
    assert_eq!(client.list_tables().all().await.unwrap(), ["aaa", "abc", "bcd"]);

    let (client, transport) = tables(pages());
    let mut list = client.list_tables().resume("token");
    let mut names = Vec::new();
    while let Some(name) = poll_fn(|context| Pin::new(&mut list).poll_next(context)).await {
        names.push(name.unwrap());
    }
    assert_eq!(names, ["aaa", "abc", "bcd"]);
    assert_eq!(query(&transport.seen()[0].url), "NextTableName=token");
}

#[tokio::test(start_paused = true)]
async fn a_failed_page_can_be_asked_for_again_but_a_stream_ends() {
    let good = || answer(200, r#"{"value":[{"TableName":"aaa"}]}"#);
    let (client, _) = tables(vec![answer(400, ""), good()]);
    let mut list = client.list_tables();
    assert!(list.next_page().await.is_err());
    assert_eq!(list.next_page().await.unwrap().unwrap(), ["aaa"]);
    let (client, transport) = tables(vec![answer(400, ""), good()]);
    let mut list = client.list_tables();
    let mut next = async || poll_fn(|context| Pin::new(&mut list).poll_next(context)).await;
    assert!(next().await.unwrap().is_err());
    assert!(next().await.is_none());
    assert!(next().await.is_none());
    assert_eq!(transport.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_advance_is_unreadable() {
    let page = || Reply::Answer(200, NEXT, r#"{"value":[]}"#.to_owned());
    let (client, transport) = tables((0..9).map(|_| page()).collect());
    assert!(matches!(client.list_tables().all().await, Err(Error::Unreadable(_))));
    assert_eq!(transport.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_none_are_unreadable() {
    for body in
        ["", "{}", "[]", "{\"value\":{}}", "{\"value\":[{}]}", "{\"value\":[{\"TableName\":1}]}", "\u{0}"]
    {
        let (client, _) = tables(vec![answer(200, body)]);
        assert!(matches!(client.list_tables().all().await, Err(Error::Unreadable(_))), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn properties_and_stats_are_read_and_written() {
    let stats = "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Tue, 21 Sep 2021 00:50:22 GMT</LastSyncTime></GeoReplication></StorageServiceStats>";
    let properties = ServiceProperties::default();
    let document = String::from_utf8(properties.write(TABLE_VERSION)).unwrap();
    let (client, transport) =
        tables(vec![answer(200, &document), answer(202, ""), answer(200, stats), answer(200, "x")]);
    assert_eq!(client.properties().await.unwrap(), properties);
    client
        .set_properties(&PropertiesUpdate { cors: Some(Vec::new()), ..PropertiesUpdate::default() })
        .await
        .unwrap();
    assert_eq!(client.stats().await.unwrap().status, "live");
    assert!(matches!(client.properties().await, Err(Error::Unreadable(_))));
    let seen = transport.seen();
    assert_eq!(seen[1].method, "PUT");
    assert!(seen[1].body.ends_with(b"<StorageServiceProperties><Cors /></StorageServiceProperties>"));
    assert_eq!(seen[2].url, "http://127.0.0.1:10002/devstoreaccount1-secondary/?restype=service&comp=stats");
}
