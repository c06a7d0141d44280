//! Containers.

use engine::Share;
use protocol::ErrorCode;
use protocol::blob::conditions::Conditions;
use protocol::blob::container_list::ListContainersParameters;
use protocol::blob::lease::{LeaseDuration, LeaseRequest};
use protocol::blob::properties::PublicAccess;
use protocol::blob::{ContainerAcl, ContainerName};
use protocol::common::Metadata;
use protocol::common::query::Query;

use crate::support::{code, setup};

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
