//! Queries: filters, projections, pages, continuations, plans.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use lazulite_client::{
    BulkMode, ClientBuilder, Continuation, DynamicEntity, Error, Filter, Plan, Sending, TableClient,
    Transport,
};

use crate::support::*;

async fn fill(table: &TableClient, teams: usize, names: usize) {
    let people: Vec<Person> = (0..teams)
        .flat_map(|team| {
            (0..names).map(move |name| person(&format!("t{team:02}"), &format!("n{name:05}"), name as i32))
        })
        .collect();
    assert_eq!(table.bulk(&people, BulkMode::Insert).await.into_result().unwrap(), teams * names);
}

#[tokio::test]
async fn filters_find_what_they_say() {
    let server = server();
    let table = table(&server);
    fill(&table, 3, 20).await;
    let some =
        table.query::<Person>().filter(Person::team().eq("t01") & Person::age().ge(18)).all().await.unwrap();
    assert_eq!(some.iter().map(|person| person.age).collect::<Vec<_>>(), [18, 19]);
    assert!(some.iter().all(|person| person.team == "t01" && person.etag.is_some()));
    let narrowed =
        table.query::<Person>().partition("t02").filter(Person::age().lt(3)).filter(Person::age().gt(0));
    assert_eq!(narrowed.all().await.unwrap().len(), 2);
    let starts = table.query::<Person>().partition("t00").filter(Person::name().starts_with("n0001"));
    assert_eq!(starts.count().await.unwrap(), 10);
    assert_eq!(table.query::<Person>().count().await.unwrap(), 60);
    assert_eq!(table.query::<Person>().filter(Person::age().gt(100)).first().await.unwrap(), None);
    let raw = Filter::<DynamicEntity>::raw("age eq 7 and PartitionKey ne 't01'").unwrap();
    assert_eq!(table.query::<DynamicEntity>().filter(raw).count().await.unwrap(), 2);
}

#[tokio::test]
async fn values_in_filters_never_become_syntax() {
    let server = server();
    let table = table(&server);
    for key in AWKWARD {
        table.insert(&Person { email: Some(key.to_owned()), ..person("p", key, 1) }).await.unwrap();
    }
    for key in AWKWARD {
        let found = table.query::<Person>().filter(Person::email().eq(key)).all().await.unwrap();
        assert_eq!(found.len(), 1, "{key:?}");
        assert_eq!(found[0].name, key);
        let found = table.query::<Person>().partition("p").filter(Person::name().eq(key)).count().await;
        assert_eq!(found.unwrap(), 1, "{key:?}");
    }
}

#[tokio::test]
async fn a_projection_reads_the_rows_as_another_struct() {
    let server = server();
    let table = table(&server);
    fill(&table, 1, 5).await;
    let ages = table.query::<Person>().filter(Person::age().ge(3)).select::<PersonAge>().all().await.unwrap();
    assert_eq!(ages.iter().map(|age| age.age).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(ages[0].name, "n00003");
}

#[tokio::test]
async fn all_pages_are_fetched() {
    let server = server();
    let table = table(&server);
    fill(&table, 3, 900).await;
    let all = table.query::<PersonAge>().all().await.unwrap();
    assert_eq!(all.len(), 2700);
    let keys =
        |ages: &[PersonAge]| ages.iter().map(|age| (age.team.clone(), age.name.clone())).collect::<Vec<_>>();
    assert!(keys(&all).is_sorted());

    let mut pages = table.query::<PersonAge>().pages();
    let mut sizes = Vec::new();
    while let Some(page) = pages.next().await {
        sizes.push(page.unwrap().entities.len());
    }
    assert_eq!(sizes, [1000, 1000, 700]);
    assert!(pages.next().await.is_none());

    let mut stream = table.query::<PersonAge>().page_size(250).stream();
    let mut streamed = Vec::new();
    while let Some(age) = stream.next().await {
        streamed.push(age.unwrap());
    }
    assert_eq!(keys(&streamed), keys(&all));
}

#[tokio::test]
async fn streams_are_streams() {
    let server = server();
    let table = table(&server);
    fill(&table, 1, 30).await;
    let mut stream = table.query::<PersonAge>().page_size(7).stream();
    let mut count = 0;
    while let Some(age) = std::future::poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
        assert_eq!(age.unwrap().age, count);
        count += 1;
    }
    assert_eq!(count, 30);
}

#[tokio::test]
async fn top_counts_over_pages() {
    let server = server();
    let table = table(&server);
    fill(&table, 1, 1200).await;
    let check = async |top: usize, page_size: Option<usize>, expected: usize| {
        let mut query = table.query::<PersonAge>().top(top);
        if let Some(size) = page_size {
            query = query.page_size(size);
        }
        assert_eq!(query.all().await.unwrap().len(), expected, "{top} {page_size:?}");
    };
    check(0, None, 0).await;
    check(1, None, 1).await;
    check(999, None, 999).await;
    check(1100, None, 1100).await;
    check(5000, None, 1200).await;
    check(25, Some(10), 25).await;
    check(20, Some(10), 20).await;
    assert_eq!(table.query::<PersonAge>().top(1100).count().await.unwrap(), 1100);
    assert_eq!(table.query::<PersonAge>().first().await.unwrap().map(|age| age.age), Some(0));
}

#[tokio::test]
async fn a_continuation_can_be_stored_and_resumed() {
    let server = server();
    let first = table(&server);
    for key in AWKWARD {
        first.insert(&person(key, key, 1)).await.unwrap();
        first.insert(&person(key, "z", 1)).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut stored: Option<String> = None;
    loop {
        // Another client each time, with nothing but the text.
        let mut query = table(&server).query::<PersonAge>().page_size(1);
        if let Some(text) = &stored {
            query = query.resume(text.parse::<Continuation>().unwrap());
        }
        let page = query.page().await.unwrap();
        seen.extend(page.entities);
        match page.continuation {
            Some(next) => stored = Some(next.to_string()),
            None => break,
        }
    }
    assert_eq!(seen, first.query::<PersonAge>().all().await.unwrap());
    assert_eq!(seen.len(), 2 * AWKWARD.len());
}

#[tokio::test]
async fn the_plan_is_known_before_and_explained_after() {
    let server = own_server();
    let table = table(&server);
    fill(&table, 2, 10).await;
    let check = async |filter: Option<Filter<Person>>, plan: Plan, returned: usize, examined: u64| {
        let mut query = table.query::<Person>().explain();
        if let Some(filter) = filter {
            query = query.filter(filter);
        }
        assert_eq!(query.plan(), plan);
        let page = query.page().await.unwrap();
        let explanation = page.explanation.unwrap();
        assert_eq!(explanation.plan, plan.name());
        assert_eq!((page.entities.len(), explanation.returned), (returned, returned as u64));
        assert_eq!(explanation.examined, examined);
    };
    let (team, name) = (Person::team, Person::name);
    check(Some(team().eq("t01") & name().eq("n00003")), Plan::Point, 1, 1).await;
    check(Some(team().eq("t01") & name().ge("n00007")), Plan::RowRange, 3, 3).await;
    check(Some(team().eq("t01") & Person::age().eq(3)), Plan::PartitionScan, 1, 10).await;
    check(Some(team().ge("t01")), Plan::PartitionRange, 10, 10).await;
    check(Some(Person::age().eq(3)), Plan::TableScan, 2, 20).await;
    check(None, Plan::TableScan, 20, 20).await;
    assert_eq!(table.query::<Person>().page().await.unwrap().explanation, None);
}

#[tokio::test]
async fn scans_are_refused_on_request() {
    let server = server();
    let (table, transport) = faulty_table(&server, &[]);
    let check = async |filter: Option<Filter<Person>>, plan: &str| {
        let mut query = table.query::<Person>().refuse_scans();
        if let Some(filter) = filter {
            query = query.filter(filter);
        }
        match query.all().await {
            Err(Error::Refused(text)) => assert!(text.contains(plan), "{text}"),
            other => panic!("{plan}: {other:?}"),
        }
    };
    check(None, "table scan").await;
    check(Some(Person::age().eq(3)), "table scan").await;
    check(Some(Person::team().gt("a")), "partition range").await;
    check(Some(Person::team().eq("a") & Person::age().eq(3)), "partition scan").await;
    assert!(table.query::<Person>().refuse_scans().count().await.is_err());
    assert!(table.query::<Person>().refuse_scans().stream().next().await.unwrap().is_err());
    assert!(transport.methods().is_empty());

    let point = Person::team().eq("a") & Person::name().eq("b");
    assert_eq!(table.query::<Person>().refuse_scans().filter(point).count().await.unwrap(), 0);
    let range = Person::name().gt("b");
    assert_eq!(table.query::<Person>().refuse_scans().partition("a").filter(range).count().await.unwrap(), 0);
    assert_eq!(table.query::<Person>().refuse_scans().partition("a").count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_page_of_no_size_is_refused() {
    let server = server();
    let table = table(&server);
    for size in [0, 1001] {
        assert!(matches!(table.query::<PersonAge>().page_size(size).all().await, Err(Error::Refused(_))));
    }
}

#[tokio::test]
async fn a_row_that_is_no_such_entity_is_an_error_and_ends_the_stream() {
    let server = server();
    let table = table(&server);
    table.insert(&DynamicEntity::new("p", "r").with("age", "young").unwrap()).await.unwrap();
    let mut stream = table.query::<PersonAge>().stream();
    assert!(matches!(stream.next().await, Some(Err(Error::Entity(_)))));
    assert!(stream.next().await.is_none());
    assert!(matches!(table.get::<PersonAge>("p", "r").await, Err(Error::Entity(_))));
}

/// Answers with an empty page that goes on, then with a row.
struct EmptyFirst;

impl Transport for EmptyFirst {
    fn send(&self, request: http::Request<Bytes>) -> Sending<'_> {
        let goes_on = request.uri().query().is_some_and(|query| query.contains("NextPartitionKey=1%211%21x"));
        let row = r#"{"value":[{"PartitionKey":"p","RowKey":"r","age":7}]}"#;
        let mut answer = http::Response::new(Bytes::from(if goes_on { row } else { r#"{"value":[]}"# }));
        if !goes_on {
            answer.headers_mut().insert("x-ms-continuation-nextpartitionkey", "1!1!x".parse().unwrap());
        }
        Box::pin(async move { Ok(answer) })
    }
}

#[tokio::test]
async fn an_empty_page_is_not_the_end() {
    let builder = ClientBuilder::from_connection_string("UseDevelopmentStorage=true").unwrap();
    let table = builder.transport(Arc::new(EmptyFirst)).tables().unwrap().table(TABLE).unwrap();
    let query = || table.query::<PersonAge>().partition("p");
    assert_eq!(query().first().await.unwrap().map(|age| age.age), Some(7));
    assert_eq!((query().count().await.unwrap(), query().all().await.unwrap().len()), (1, 1));
    let page = query().page().await.unwrap();
    assert!(page.entities.is_empty());
    let rest = query().resume(page.continuation.unwrap()).page().await.unwrap();
    assert_eq!((rest.entities.len(), rest.continuation), (1, None));
}
