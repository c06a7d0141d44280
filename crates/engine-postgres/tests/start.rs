//! What is said at the start when something is wrong, and what never is said: secrets and data.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::sync::Arc;

use bytes::Bytes;
use engine::conformance::FAMILIES;
use engine::env::{Clock, SystemClock};
use engine::{Commit, Effect, Engine, Expect, Family, Namespace, Op};
use engine_postgres::{ConnectError, PostgresEngine, schema_sql};

use support::{Database, postgres_or_skip};

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

async fn refused(database: &Database) -> ConnectError {
    match PostgresEngine::connect(database.options(FAMILIES, clock())).await {
        Ok(_) => panic!("it connected"),
        Err(error) => error,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_url_or_password_is_a_sentence_without_secrets() {
    let Some(server) = postgres_or_skip("a_wrong_url_or_password_is_a_sentence_without_secrets") else {
        return;
    };
    let password = server.password();
    for (url, expected) in [
        (server.url().replace(password, "wrong-secret"), "does not accept the user or the password"),
        (server.url_at(1), "no PostgreSQL server that takes writes is reachable"),
        (
            server
                .url()
                .replace(&format!("{}/postgres", server.port()), &format!("{}/nowhere", server.port())),
            "\"nowhere\" does not exist",
        ),
        (format!("{}?sslmode=sometimes", server.url()), "URL of the engine"),
        (format!("{}?sslmode=require", server.url()), "TLS"),
        (format!("{}?etcd=http://u:{password}@h:1/s/x", server.url()), "http://host:port/namespace/scope"),
        (format!("{}?etcd=http://a:1/s/x,http://b:1/s/y", server.url()), "different paths"),
        (format!("{}?patroni=http://u:{password}@h:1", server.url()), "http://host:port"),
        (format!("http://u:{password}@h/"), "URL of the engine"),
        (format!("postgres://u:{password}@/postgres"), "URL of the engine"),
    ] {
        let database = Database { url, ..Database::fresh(&server) };
        let message = refused(&database).await.to_string();
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_format_a_missing_schema_and_a_bad_name_are_refused() {
    let Some(server) = postgres_or_skip("a_newer_format_a_missing_schema_and_a_bad_name_are_refused") else {
        return;
    };
    let database = Database::fresh(&server);
    let mut options = database.options(FAMILIES, clock());
    options.creates_schema = false;
    let missing = PostgresEngine::connect(options.clone()).await.err().unwrap().to_string();
    assert!(missing.contains("lazulite engine schema"), "{missing}");
    // What is printed for those who create it themselves is what the server would create.
    server.sql(&schema_sql(&database.schema).unwrap()).unwrap();
    PostgresEngine::connect(options).await.unwrap();
    server.sql(&format!("UPDATE {}.meta SET format = 1000", database.schema)).unwrap();
    let newer = refused(&database).await.to_string();
    assert!(newer.contains("format 1000") && newer.contains("newer version"), "{newer}");
    let bad = Database { schema: "Robert'); DROP".to_owned(), ..Database::fresh(&server) };
    assert!(matches!(refused(&bad).await, ConnectError::Invalid(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_no_writes_is_no_leader() {
    let Some(server) = postgres_or_skip("a_server_that_takes_no_writes_is_no_leader") else { return };
    server
        .sql(
            "CREATE ROLE reader LOGIN PASSWORD 'x'; ALTER ROLE reader SET default_transaction_read_only = on",
        )
        .unwrap();
    let url = server.url().replace("//postgres:", "//reader:").replace(server.password(), "x");
    let database = Database { url, ..Database::fresh(&server) };
    let message = refused(&database).await.to_string();
    assert!(message.contains("takes writes"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_hosts_the_one_that_takes_writes_is_found() {
    let Some(server) = postgres_or_skip("of_several_hosts_the_one_that_takes_writes_is_found") else {
        return;
    };
    let settings = [("default_transaction_read_only", "on")];
    let reader = testkit::Postgres::start_with(&settings).unwrap();
    let hosts = format!("127.0.0.1:1,127.0.0.1:{},127.0.0.1:{}", reader.port(), server.port());
    let url = server.url().replace(&format!("127.0.0.1:{}", server.port()), &hosts);
    let database = Database { url, ..Database::fresh(&server) };
    let engine = PostgresEngine::connect(database.options(FAMILIES, clock())).await.unwrap();
    engine.create_table(Namespace::new(Family::FIRST, "n"), "t", Bytes::new()).await.unwrap();
    let count = format!("SELECT count(*) FROM {}.rows", database.schema);
    assert_eq!(server.sql(&count).unwrap(), "1");
    let hosts = format!("127.0.0.1:1,127.0.0.1:{}", reader.port());
    let url = server.url().replace(&format!("127.0.0.1:{}", server.port()), &hosts);
    let message = refused(&Database { url, ..Database::fresh(&server) }).await.to_string();
    assert!(message.contains("takes writes"), "{message}");
}

/// These are the rights that docs/decisions/0016-postgres.md lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_rights_are_enough_and_fewer_are_a_sentence() {
    let Some(server) = postgres_or_skip("the_documented_rights_are_enough_and_fewer_are_a_sentence") else {
        return;
    };
    let database = Database::fresh(&server);
    let schema = &database.schema;
    server.sql(&schema_sql(schema).unwrap()).unwrap();
    server.sql("CREATE ROLE least LOGIN PASSWORD 'x'").unwrap();
    let url = server.url().replace("//postgres:", "//least:").replace(server.password(), "x");
    let mut options = Database { url, schema: schema.clone() }.options(FAMILIES, clock());
    options.creates_schema = false;
    let message = PostgresEngine::connect(options.clone()).await.err().unwrap().to_string();
    assert!(message.contains("may not use the schema"), "{message}");
    server.sql(&format!("GRANT USAGE ON SCHEMA {schema} TO least")).unwrap();
    let message = PostgresEngine::connect(options.clone()).await.err().unwrap().to_string();
    assert!(message.contains("permission denied"), "{message}");
    let grants = format!(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO least; \
         GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO least"
    );
    server.sql(&grants).unwrap();
    // The same with etcd, whose key is compared with what a server says of itself. Nobody answers for it here.
    let mut with_etcd = options.clone();
    with_etcd.url += "?etcd=http://127.0.0.1:1/service/main";
    PostgresEngine::connect(with_etcd).await.unwrap();
    let engine = PostgresEngine::connect(options).await.unwrap();
    let space = Namespace::new(Family::FIRST, "n");
    let table = engine.create_table(space, "t", Bytes::new()).await.unwrap();
    for expect in [Expect::Absent, Expect::Any, Expect::Present] {
        let op = Op { row: "r".into(), expect, effect: Effect::Put("v".into()) };
        engine.commit(Commit::one(table, "p", op)).await.unwrap();
    }
    assert!(engine.snapshot().await.unwrap().last_version().is_some());
    engine.drop_table(space, "t").await.unwrap();
    engine.sweep().await;
    let left = server.sql(&format!("SELECT count(*) FROM {schema}.rows")).unwrap();
    assert_eq!(left, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_value_of_a_row_reaches_the_log_of_the_server() {
    let Some(server) = postgres_or_skip("no_value_of_a_row_reaches_the_log_of_the_server") else { return };
    let database = Database::fresh(&server);
    let engine = PostgresEngine::connect(database.options(FAMILIES, clock())).await.unwrap();
    let table = engine.create_table(Namespace::new(Family::FIRST, "n"), "t", Bytes::new()).await.unwrap();
    let op = |row: &str, expect| Op { row: row.into(), expect, effect: Effect::Put("confidential".into()) };
    let batch = |rows: &[&str], expect| Commit {
        table,
        partition: "p".into(),
        ops: rows.iter().map(|row| op(row, expect)).collect(),
    };
    engine.commit(batch(&["a", "b"], Expect::Absent)).await.unwrap();
    for rows in [&["a"][..], &["a", "b"], &["c", "b"]] {
        assert!(engine.commit(batch(rows, Expect::Absent)).await.is_err());
        assert!(engine.commit(batch(&["x", "y"][..rows.len()], Expect::Present)).await.is_err());
    }
    let log = server.log();
    assert!(!log.contains("confidential") && !log.contains(&hex("confidential")), "{log}");
    assert!(!log.contains(server.password()));
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
