//! Containers (§14), list of containers and service operations (§13).

use testkit::{Request, TestServer};

use crate::{with_container, with_stopped_clock};

#[test]
fn containers_are_created_once() {
    let server = TestServer::start();
    let blob = server.blob();
    let created = blob.create("mycontainer");
    assert!(created.required("ETag").starts_with("\"0x"), "{created:?}");
    assert_eq!(created.required("Content-Length"), "0");
    assert_eq!(created.required("Server"), "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0");
    created.required("Last-Modified");
    let again = blob.send(Request::put("/mycontainer?restype=container"));
    let again = again.expect_error(409, "ContainerAlreadyExists");
    assert_eq!(again.required("x-ms-error-code"), "ContainerAlreadyExists");
    assert_eq!(again.required("Content-Type"), "application/xml");
    for bad in ["Upper", "a--b", "-ab"] {
        blob.send(Request::put(&format!("/{bad}?restype=container")))
            .expect_error(400, "InvalidResourceName");
    }
    blob.send(Request::put("/ab?restype=container")).expect_error(400, "OutOfRangeInput");
    for special in ["$root", "$web"] {
        blob.create(special);
    }
}

#[test]
fn properties_show_everything_and_metadata_only_metadata() {
    let server = TestServer::start();
    let blob = server.blob();
    let create = Request::put("/abc?restype=container")
        .header("x-ms-meta-Key", "val")
        .header("x-ms-blob-public-access", "blob");
    let created = blob.send(create).expect(201);
    for method in ["GET", "HEAD"] {
        let found = blob.send(Request::new(method, "/abc?restype=container")).expect(200);
        assert_eq!(found.required("ETag"), created.required("ETag"));
        for (name, value) in [
            ("x-ms-meta-key", "val"),
            ("x-ms-lease-status", "unlocked"),
            ("x-ms-lease-state", "available"),
            ("x-ms-has-immutability-policy", "false"),
            ("x-ms-has-legal-hold", "false"),
            ("x-ms-default-encryption-scope", "$account-encryption-key"),
            ("x-ms-deny-encryption-scope-override", "false"),
            ("x-ms-blob-public-access", "blob"),
            ("Content-Length", "0"),
        ] {
            assert_eq!(found.required(name), value);
        }
        assert_eq!(found.header("x-ms-lease-duration"), None);
        let metadata = blob.send(Request::new(method, "/abc?restype=container&comp=metadata")).expect(200);
        assert_eq!(metadata.required("x-ms-meta-key"), "val");
        assert_eq!(metadata.header("x-ms-lease-state"), None);
    }
    let missing = blob.send(Request::head("/nope?restype=container")).expect(404);
    assert_eq!((missing.required("x-ms-error-code"), missing.body.len()), ("ContainerNotFound", 0));
}

#[test]
fn metadata_and_acl_are_replaced() {
    let server = with_container();
    let blob = server.blob();
    let set = blob.send(Request::put("/abc?restype=container&comp=metadata").header("x-ms-meta-a", "1"));
    let first = set.expect(200).required("ETag").to_owned();
    let set = blob.send(Request::put("/abc?restype=container&comp=metadata").header("x-ms-meta-b", "2"));
    assert_ne!(set.expect(200).required("ETag"), first);
    let found = blob.send(Request::get("/abc?restype=container")).expect(200);
    assert_eq!((found.header("x-ms-meta-a"), found.required("x-ms-meta-b")), (None, "2"));

    let policy = "<SignedIdentifiers><SignedIdentifier><Id>policy1</Id><AccessPolicy><Start>2026-06-26T00:00:00.0000000Z</Start><Expiry>2026-06-27T00:00:00.0000000Z</Expiry><Permission>rwd</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let acl = "/abc?restype=container&comp=acl";
    blob.send(Request::put(acl).header("x-ms-blob-public-access", "container").xml(policy)).expect(200);
    let found = blob.send(Request::get(acl)).expect(200);
    assert_eq!(found.required("x-ms-blob-public-access"), "container");
    assert_eq!(found.text(), format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>{policy}"));
    // Trap 10.
    blob.send(Request::put(acl)).expect(200);
    let found = blob.send(Request::get(acl)).expect(200);
    assert_eq!(found.header("x-ms-blob-public-access"), None);
    assert!(found.text().ends_with("<SignedIdentifiers />"), "{found:?}");
    let wrong = Request::put(acl).header("x-ms-blob-public-access", "all");
    blob.send(wrong).expect_error(400, "InvalidHeaderValue");
    let conditional = Request::put(acl).header("If-Match", "*");
    blob.send(conditional).expect_error(400, "ConditionHeadersNotSupported");
}

#[test]
fn deletion_takes_the_blobs_along_and_frees_the_name() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    blob.send(Request::delete("/abc?restype=container")).expect(202);
    blob.send(Request::get("/abc/b")).expect_error(404, "ContainerNotFound");
    blob.send(Request::delete("/abc?restype=container")).expect_error(404, "ContainerNotFound");
    blob.create("abc");
    blob.send(Request::get("/abc/b")).expect_error(404, "BlobNotFound");
}

#[test]
fn containers_are_listed_by_name() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    for name in ["container2", "container1", "other"] {
        blob.send(Request::put(&format!("/{name}?restype=container")).header("x-ms-meta-Key", "val"))
            .expect(201);
    }
    let page = blob.send(Request::get("/?comp=list&prefix=cont&maxresults=1&include=metadata")).expect(200);
    let etag = page.element("Etag");
    let expected = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"{}/\"><Prefix>cont</Prefix><MaxResults>1</MaxResults><Containers><Container><Name>container1</Name><Properties><Last-Modified>Fri, 26 Jun 2026 23:39:12 GMT</Last-Modified><Etag>{}</Etag><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope><DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride><HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold><ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled></Properties><Metadata><Key>val</Key></Metadata></Container></Containers><NextMarker>/devstoreaccount1/container2</NextMarker></EnumerationResults>",
        blob.base(),
        etag
    );
    assert_eq!(page.text(), expected);
    let marker = page.element("NextMarker");
    let rest = blob.send(Request::get("/?comp=list&prefix=cont").query("marker", &marker)).expect(200);
    assert_eq!(
        (rest.elements("Name"), rest.element("NextMarker")),
        (vec!["container2".into()], String::new())
    );
    blob.send(Request::get("/?comp=list&maxresults=0")).expect_error(400, "OutOfRangeQueryParameterValue");
    blob.send(Request::get("/?comp=list&include=x")).expect_error(400, "InvalidQueryParameterValue");
}

#[test]
fn the_service_has_properties_statistics_and_a_kind() {
    let server = TestServer::start();
    let blob = server.blob();
    let properties = "/?restype=service&comp=properties";
    let found = blob.send(Request::get(properties)).expect(200);
    assert!(found.text().contains("<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy><StaticWebsite><Enabled>false</Enabled></StaticWebsite>"), "{found:?}");
    let keep = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    assert_eq!(blob.send(Request::put(properties).xml(keep)).expect(202).body.len(), 0);
    assert!(blob.send(Request::get(properties)).text().contains("<Days>7</Days>"));
    blob.send(Request::get("/?restype=service&comp=stats")).expect_error(400, "InvalidQueryParameterValue");
    let stats = Request::get("/?restype=service&comp=stats").path_account("devstoreaccount1-secondary");
    assert!(blob.send(stats).expect(200).text().contains("<Status>live</Status>"));
    for (method, path) in [("GET", "/"), ("HEAD", "/"), ("GET", "/abc"), ("HEAD", "/abc/b")] {
        let kind =
            blob.send(Request::new(method, &format!("{path}?restype=account&comp=properties"))).expect(200);
        assert_eq!(kind.required("x-ms-sku-name"), "Standard_LRS");
        assert_eq!(kind.required("x-ms-account-kind"), "StorageV2");
        assert_eq!(kind.required("x-ms-is-hns-enabled"), "false");
    }
}

#[test]
fn what_is_no_operation_is_refused() {
    let server = with_container();
    let blob = server.blob();
    let wrong =
        blob.send(Request::put("/abc/b?comp=nonsense")).expect_error(400, "InvalidQueryParameterValue");
    assert_eq!(
        (wrong.element("QueryParameterName"), wrong.element("QueryParameterValue")),
        ("comp".into(), "nonsense".into())
    );
    blob.send(Request::post("/abc/b?comp=metadata")).expect_error(405, "UnsupportedHttpVerb");
    blob.send(Request::put("/abc/b")).expect_error(400, "MissingRequiredHeader");
    let missing = Request::put("/abcd?restype=container").without("Content-Length");
    blob.send(missing).expect_error(411, "MissingContentLengthHeader");
}

/// §5: what is too long says how long it may be.
#[test]
fn a_document_that_is_too_long_says_how_long_it_may_be() {
    let server = with_container();
    let long = " ".repeat(4 * 1024 * 1024 + 1);
    let refused = server.blob().send(Request::put("/?restype=service&comp=properties").xml(&long));
    assert_eq!(refused.expect_error(413, "RequestBodyTooLarge").element("MaxLimit"), "4194304");
}
