//! Account signatures from the SDK's own generator. A signature covers one service and one resource type; the SDK makes
//! none for a single table.

use azure_storage::StorageCredentials;
use azure_storage::prelude::SasProtocol;
use azure_storage::shared_access_signature::SasToken;
use azure_storage::shared_access_signature::account_sas::{
    AccountSasPermissions, AccountSasResource, AccountSasResourceType, AccountSharedAccessSignature,
};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use crate::support::*;

fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

fn signature(resource_type: AccountSasResourceType, letters: &str) -> AccountSharedAccessSignature {
    let permissions = AccountSasPermissions {
        read: letters.contains('r'),
        write: letters.contains('w'),
        delete: letters.contains('d'),
        list: letters.contains('l'),
        add: letters.contains('a'),
        create: letters.contains('c'),
        update: letters.contains('u'),
        process: false,
    };
    let expiry = now() + Duration::HOUR;
    let key = setting("AccountKey").into();
    AccountSharedAccessSignature::new(
        account(),
        key,
        AccountSasResource::Table,
        resource_type,
        expiry,
        permissions,
    )
}

fn client_of(signature: AccountSharedAccessSignature) -> azure_data_tables::prelude::TableServiceClient {
    client(StorageCredentials::sas_token(signature.token().unwrap()).unwrap())
}

fn object(letters: &str) -> AccountSharedAccessSignature {
    signature(AccountSasResourceType::Object, letters)
}

#[tokio::test]
async fn each_letter_allows_its_verb_and_no_other() {
    let table = new_table().await;
    insert(&table, entity("r", json!({"n": 1}))).await.unwrap();
    let mismatch = (403, "AuthorizationPermissionMismatch");
    for letters in ["r", "a", "u", "d", "au"] {
        let client = client_of(object(letters)).table_client(table.table_name());
        let row = format!("new-{letters}");
        let outcomes = [
            ("r", one(&client).get::<Value>().await.map(drop)),
            ("a", insert(&client, entity(&row, json!({}))).await.map(drop)),
            (
                "u",
                one(&client)
                    .merge(entity("r", json!({"n": 2})), azure_data_tables::IfMatchCondition::Any)
                    .unwrap()
                    .await
                    .map(drop),
            ),
            ("au", at(&client, "p", &row).insert_or_merge(entity(&row, json!({}))).unwrap().await.map(drop)),
        ];
        for (needed, outcome) in outcomes {
            if needed.chars().all(|letter| letters.contains(letter)) {
                assert!(outcome.is_ok(), "{letters} does not allow {needed}: {outcome:?}");
            } else {
                assert_refused(outcome, mismatch.0, mismatch.1);
            }
        }
        let deleted = at(&client, "p", "missing").delete().await;
        if letters == "d" {
            assert_not_found(deleted);
        } else {
            assert_refused(deleted, mismatch.0, mismatch.1);
        }
    }
}

#[tokio::test]
async fn tables_are_containers_and_entities_are_objects() {
    let table = new_table().await;
    let container = client_of(signature(AccountSasResourceType::Container, "rwdlacu"));
    let created = container.table_client(fresh_name());
    created.create().await.unwrap();
    created.delete().await.unwrap();
    let refusal = all(container.table_client(table.table_name()).query()).await;
    assert_refused(refusal, 403, "AuthorizationResourceTypeMismatch");
    let objects = client_of(object("rwdlacu"));
    let refusal = objects.table_client(fresh_name()).create().await;
    assert_refused(refusal, 403, "AuthorizationResourceTypeMismatch");
    assert_eq!(all(objects.table_client(table.table_name()).query()).await.unwrap().len(), 0);
}

#[tokio::test]
async fn times_and_addresses_bound_a_signature() {
    let table = new_table().await;
    let outcome = async |signature| all(client_of(signature).table_client(table.table_name()).query()).await;
    assert_eq!(outcome(object("r").start(now() - Duration::HOUR)).await.unwrap().len(), 0);
    assert_refused(outcome(object("r").start(now() + Duration::HOUR)).await, 403, "AuthenticationFailed");
    assert_eq!(outcome(object("r").ip("127.0.0.0-127.0.0.255".to_owned())).await.unwrap().len(), 0);
    let elsewhere = outcome(object("r").ip("10.0.0.1".to_owned())).await;
    assert_refused(elsewhere, 403, "AuthorizationSourceIPMismatch");
    assert_refused(
        outcome(object("r").protocol(SasProtocol::Https)).await,
        403,
        "AuthorizationProtocolMismatch",
    );
}
