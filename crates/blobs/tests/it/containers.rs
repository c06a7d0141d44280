//! Containers.

use std::time::Duration;

use blobs::BlobOptions;
use engine::Share;
use protocol::ErrorCode;
use protocol::blob::conditions::Conditions;
use protocol::blob::container_list::ListContainersParameters;
use protocol::blob::identifier::Revision;
use protocol::blob::lease::{LeaseDuration, LeaseRequest};
use protocol::blob::properties::PublicAccess;
use protocol::blob::{ContainerAcl, ContainerName};
use protocol::common::Metadata;
use protocol::common::query::Query;

use crate::support::{code, setup, setup_with};

#[tokio::test]
async fn a_container_keeps_its_properties_and_changes_its_etag() {
    let setup = setup().await;
    let (account, container) = (&setup.account, &setup.container);
    let first = setup.service.container_properties(account, container, None).await.unwrap();
    let metadata = Metadata::read([("Name", "value")]).unwrap();
    let conditions = Conditions::default();
    let set = setup
        .service
        .set_container_metadata(account, container, metadata.clone(), None, &conditions)
        .await
        .unwrap();
    assert!(set.etag > first.etag);
    let acl = ContainerAcl { public_access: Some(PublicAccess::Blob), ..ContainerAcl::default() };
    let acl_set = setup.service.set_container_acl(account, container, &acl, None, &conditions).await.unwrap();
    assert!(acl_set.etag > set.etag);
    let seen = setup.service.container_properties(account, container, None).await.unwrap();
    assert_eq!((seen.etag, seen.metadata), (acl_set.etag, metadata));
    assert_eq!(setup.service.public_access(account, container).await.unwrap(), Some(PublicAccess::Blob));
    let again = setup.service.create_container(account, container, Default::default()).await;
    assert_eq!(code(again), ErrorCode::ContainerAlreadyExists);
}

#[tokio::test]
async fn a_lease_guards_the_deletion_of_a_container() {
    let setup = setup().await;
    let (account, container) = (&setup.account, &setup.container);
    let none = Conditions::default();
    let request = LeaseRequest::Acquire { duration: LeaseDuration::Infinite, proposed: None };
    let leased = setup.service.lease_container(account, container, request, &none).await.unwrap();
    let refused = setup.service.delete_container(account, container, None, &none).await;
    assert_eq!(code(refused), ErrorCode::LeaseIdMissing);
    setup.put("x", b"goes with it").await;
    setup.service.delete_container(account, container, leased.outcome.id, &none).await.unwrap();
    assert_eq!(code(setup.try_put("x", b"", Default::default()).await), ErrorCode::ContainerNotFound);
    setup.service.create_container(account, container, Default::default()).await.unwrap();
    assert!(setup.list_all("").await.is_empty());
}

#[tokio::test]
async fn containers_are_listed_in_pages() {
    let setup = setup().await;
    for number in 0..5 {
        let name = ContainerName::parse(&format!("many-{number}")).unwrap();
        setup.service.create_container(&setup.account, &name, Default::default()).await.unwrap();
    }
    let mut names = Vec::new();
    let mut marker = String::new();
    loop {
        let query = format!("prefix=many&maxresults=2&marker={marker}");
        let parameters = ListContainersParameters::read(&Query::split(&query), &setup.account).unwrap();
        let page = setup.service.list_containers(&setup.account, &parameters, Share::COMMON).await.unwrap();
        names.extend(page.containers.iter().map(|container| container.name.to_string()));
        match page.next {
            Some(next) => marker = format!("/{}/{next}", setup.account.as_str()),
            None => break,
        }
    }
    assert_eq!(names, ["many-0", "many-1", "many-2", "many-3", "many-4"]);
}

#[tokio::test]
async fn a_deleted_container_comes_back_with_its_blobs() {
    let options = BlobOptions { container_retention_days: Some(2), ..BlobOptions::default() };
    let setup = setup_with(options).await;
    let (account, container) = (&setup.account, &setup.container);
    setup.put("x", &vec![1; 20_000]).await;
    let none = Conditions::default();
    setup.service.delete_container(account, container, None, &none).await.unwrap();
    assert_eq!(code(setup.read("x", Revision::Base).await), ErrorCode::ContainerNotFound);
    setup.service.sweep().await.unwrap();
    let list = async |query: &str| {
        let parameters = ListContainersParameters::read(&Query::split(query), account).unwrap();
        setup.service.list_containers(account, &parameters, Share::COMMON).await.unwrap().containers
    };
    assert!(list("").await.is_empty());
    let deleted = list("include=deleted").await.remove(0);
    let version = deleted.deleted.unwrap().version;
    assert_eq!(&*deleted.name, "container");
    let wrong = setup.service.restore_container(account, container, "container", "0").await;
    assert_eq!(code(wrong), ErrorCode::ContainerNotFound);
    setup.service.create_container(account, container, Default::default()).await.unwrap();
    let taken = setup.service.restore_container(account, container, "container", &version).await;
    assert_eq!(code(taken), ErrorCode::ContainerAlreadyExists);
    setup.service.delete_container(account, container, None, &none).await.unwrap();
    setup.service.restore_container(account, container, "container", &version).await.unwrap();
    assert_eq!(setup.read("x", Revision::Base).await.unwrap(), vec![1; 20_000]);
    setup.service.delete_container(account, container, None, &none).await.unwrap();
    setup.clock.advance(Duration::from_secs(3 * 24 * 3600));
    setup.service.sweep().await.unwrap();
    assert!(list("include=deleted").await.is_empty());
    let report = setup.service.check(true).await.unwrap();
    assert_eq!((report.container_count, report.unnamed_count), (0, 0));
}
