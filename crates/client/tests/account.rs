//! Tables, properties, policies and signatures against a running server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use lazulite_client::{
    AccountPermissions, AccountResources, AccountSas, AccountServices, ClientBuilder, CorsRule, Credential,
    DateTime, Error, PropertiesUpdate, RetryPolicy, StoredPolicy, TableServiceClient,
};
use testkit::{Credentials, TestServer};

/// Nothing listens at this port.
const NOWHERE: &str = "http://127.0.0.1:9/devstoreaccount1";

fn key() -> Credential {
    let Credentials { account, key } = Credentials::emulator();
    Credential::shared_key(&account, &key).unwrap()
}

fn tables(server: &TestServer) -> TableServiceClient {
    TableServiceClient::new(&server.base(), key()).unwrap()
}

#[tokio::test]
async fn tables_are_created_listed_and_deleted() {
    let server = TestServer::start();
    let tables = tables(&server);
    for name in ["beta", "alpha", "gamma"] {
        tables.create_table(name).await.unwrap();
    }
    assert!(tables.create_table("ALPHA").await.unwrap_err().is_conflict());
    assert!(!tables.create_table_if_absent("alpha").await.unwrap());
    assert_eq!(tables.list_tables().all().await.unwrap(), ["alpha", "beta", "gamma"]);
    assert_eq!(tables.list_tables().page_size(1).all().await.unwrap(), ["alpha", "beta", "gamma"]);
    let filtered = tables.list_tables().filter("TableName gt 'alpha' and TableName lt 'c'");
    assert_eq!(filtered.all().await.unwrap(), ["beta"]);

    let mut first = tables.list_tables().page_size(2);
    assert_eq!(first.next_page().await.unwrap().unwrap(), ["alpha", "beta"]);
    let later = tables.list_tables().resume(first.continuation().unwrap());
    assert_eq!(later.all().await.unwrap(), ["gamma"]);

    tables.delete_table("beta").await.unwrap();
    let error = tables.delete_table("beta").await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(error.code(), Some("ResourceNotFound"));
    assert!(error.failure().unwrap().request_id.is_some());
    assert!(!tables.delete_table_if_present("beta").await.unwrap());
}

#[tokio::test]
async fn properties_are_kept() {
    let server = TestServer::start();
    let tables = tables(&server);
    let rule = CorsRule {
        allowed_origins: vec!["https://shop.example".to_owned()],
        allowed_methods: vec!["GET".to_owned(), "MERGE".to_owned()],
        allowed_headers: vec!["x-ms-*".to_owned()],
        exposed_headers: vec!["etag".to_owned()],
        max_age_seconds: 60,
    };
    let before = tables.properties().await.unwrap();
    let update = PropertiesUpdate { cors: Some(vec![rule.clone()]), ..PropertiesUpdate::default() };
    tables.set_properties(&update).await.unwrap();
    let after = tables.properties().await.unwrap();
    assert_eq!(after.cors, [rule]);
    assert_eq!(after.hour_metrics, before.hour_metrics);
    assert_eq!(tables.stats().await.unwrap().status, "live");
}

#[tokio::test]
async fn policies_are_kept() {
    let server = TestServer::with_table("people");
    let tables = tables(&server);
    let policies = [StoredPolicy {
        id: "readers".to_owned(),
        start: DateTime::parse("2026-01-01T00:00:00Z"),
        expiry: DateTime::parse("2099-01-01T00:00:00.5Z"),
        permission: Some("r".to_owned()),
    }];
    tables.set_table_policies("people", &policies).await.unwrap();
    assert_eq!(tables.table_policies("people").await.unwrap(), policies);
    tables.set_table_policies("people", &[]).await.unwrap();
    assert!(tables.table_policies("people").await.unwrap().is_empty());
    assert!(tables.table_policies("nobody").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_policy_may_leave_each_term_open() {
    let server = TestServer::with_table("people");
    let tables = tables(&server);
    let expiry = DateTime::parse("2099-01-01T00:00:00Z");
    let policies = [
        StoredPolicy { id: "until".to_owned(), expiry, ..StoredPolicy::default() },
        StoredPolicy { id: "bare".to_owned(), ..StoredPolicy::default() },
    ];
    tables.set_table_policies("people", &policies).await.unwrap();
    assert_eq!(tables.table_policies("people").await.unwrap(), policies);
}

#[tokio::test]
async fn a_signature_lets_in_as_far_as_it_says() {
    let server = TestServer::with_table("people");
    let expiry = DateTime::parse("2099-01-01T00:00:00Z").unwrap();
    let listing = AccountSas::new(
        AccountServices::TABLE,
        AccountResources::all(),
        AccountPermissions::LIST | AccountPermissions::READ,
        expiry,
    )
    .sign(&key())
    .unwrap();
    let guest = TableServiceClient::from_sas_url(&listing.url(&server.base())).unwrap();
    assert_eq!(guest.list_tables().all().await.unwrap(), ["people"]);
    assert_eq!(guest.create_table("more").await.unwrap_err().status().unwrap().as_u16(), 403);
    let text = format!("TableEndpoint={};SharedAccessSignature={}", server.base(), listing.as_query());
    let guest = TableServiceClient::from_connection_string(&text).unwrap();
    assert_eq!(guest.list_tables().all().await.unwrap(), ["people"]);
}

#[tokio::test]
async fn a_wrong_key_is_a_refusal() {
    let server = TestServer::start();
    let stranger = Credential::shared_key(testkit::EMULATOR_ACCOUNT, "d3Jvbmcga2V5").unwrap();
    let error =
        TableServiceClient::new(&server.base(), stranger).unwrap().list_tables().all().await.unwrap_err();
    assert_eq!((error.status().unwrap().as_u16(), error.code()), (403, Some("AuthenticationFailed")));
}

#[tokio::test]
async fn no_server_is_a_failure_before_sending() {
    let once = ClientBuilder::new(NOWHERE, key()).unwrap().retry(RetryPolicy::never());
    let error = once.tables().unwrap().list_tables().all().await.unwrap_err();
    assert!(matches!(&error, Error::Transport(error) if error.is_unsent), "{error}");
    assert!(!error.is_outcome_unknown());
}

#[tokio::test]
async fn reads_go_to_the_secondary_when_the_primary_is_away() {
    let server = TestServer::with_table("people");
    let policy = RetryPolicy::default().reads_secondary(true);
    let nowhere = ClientBuilder::new(NOWHERE, key()).unwrap().retry(policy);
    let tables =
        nowhere.secondary_endpoint(&format!("{}-secondary", server.base())).unwrap().tables().unwrap();
    assert_eq!(tables.list_tables().all().await.unwrap(), ["people"]);
}
