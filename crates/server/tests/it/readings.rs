//! Readings: small choices where the reference is silent or unverified. A test pins each, so that a choice cannot
//! change unnoticed.

use testkit::{Batch, Request, Sas, Style, TestServer, batch_parts, entity_json, entity_path};

fn with_entity() -> TestServer {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""x":1"#);
    server
}

fn entity() -> String {
    entity_path("mytable", "p", "r")
}

#[test]
fn a_host_that_nobody_has_named_means_path_style() {
    let server = with_entity();
    let request = Request::get(&entity()).header("Host", "devstoreaccount1.z12.table.storage.azure.net");
    assert_eq!(server.send(request).expect(200).json()["x"], 1);
}

#[test]
fn the_account_in_a_host_ignores_case() {
    let server = with_entity();
    let request =
        Request::get("/mytable()").style(Style::Host("DevStoreAccount1.table.core.windows.net".to_owned()));
    assert_eq!(server.send(request).expect(200).json()["value"][0]["x"], 1);
}

#[test]
fn links_spell_a_table_as_the_request_does() {
    let server = with_entity();
    let request = Request::get("/MYTABLE()").header("Accept", "application/json;odata=fullmetadata");
    let response = server.send(request).expect(200);
    assert!(response.text().contains("/$metadata#MYTABLE\""), "{}", response.text());
    assert!(response.text().contains("MYTABLE(PartitionKey='p',RowKey='r')"), "{}", response.text());
}

#[test]
fn a_timeout_of_zero_is_no_timeout() {
    let server = with_entity();
    server.send(Request::get(&format!("{}?timeout=0", entity()))).expect(200);
    server
        .send(Request::get(&format!("{}?timeout=x", entity())))
        .expect_error(400, "InvalidQueryParameterValue");
}

#[test]
fn old_versions_know_no_upsert_inside_a_batch_either() {
    let server = with_entity();
    let batch = Batch::new().operation("PUT", &entity(), &[], Some("{}"));
    let response = server.send(batch.request().header("x-ms-version", "2009-09-19")).expect(202);
    assert_eq!(batch_parts(&response)[0].status, 400);
    assert_eq!(server.get("mytable", "p", "r").json()["x"], 1);
}

#[test]
fn old_versions_speak_json_and_all_but_the_oldest_are_told_their_version() {
    let server = with_entity();
    for version in ["2009-04-14", "2009-09-19", "2012-02-12", "2014-02-14"] {
        let response = server.send(Request::get(&entity()).header("x-ms-version", version)).expect(200);
        let told = (version >= "2009-09-19").then_some(version);
        assert_eq!((response.header("x-ms-version"), &response.json()["x"]), (told, &1.into()));
        let atom =
            Request::get(&entity()).header("x-ms-version", version).header("Accept", "application/atom+xml");
        server.send(atom).expect_error(415, "AtomFormatNotSupported");
    }
}

#[test]
fn an_api_version_counts_only_beside_a_signature() {
    let server = with_entity();
    let request = Request::get(&format!("{}?api-version=banana", entity())).without("x-ms-version");
    assert_eq!(server.send(request).expect(200).header("x-ms-version"), Some("2019-02-02"));
}

#[test]
fn data_service_versions_count_inside_a_batch() {
    let server = with_entity();
    let batch = Batch::new().operation(
        "DELETE",
        &entity(),
        &[("If-Match", "*"), ("DataServiceVersion", "4.0")],
        None,
    );
    assert_eq!(batch_parts(&server.send(batch.request()).expect(202))[0].status, 400);
    let whole = Batch::new().operation("DELETE", &entity(), &[("If-Match", "*")], None).request();
    server.send(whole.header("DataServiceVersion", "4.0")).expect_error(400, "InvalidInput");
    server.get("mytable", "p", "r").expect(200);
}

#[test]
fn format_counts_for_every_data_service_version() {
    let server = with_entity();
    let request = Request::get(&format!("{}?$format=application/json;odata=nometadata", entity()));
    let response = server.send(request.header("DataServiceVersion", "1.0")).expect(200);
    assert!(!response.text().contains("odata.metadata"));
}

#[test]
fn who_does_not_ask_for_json_is_refused_in_plain_xml() {
    let server = with_entity();
    for (accept, code) in
        [("text/html", "MediaTypeNotSupported"), ("application/atom+xml", "AtomFormatNotSupported")]
    {
        let response = server.send(Request::get(&entity()).header("Accept", accept));
        assert!(response.text().contains(&format!("<error xmlns=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><code>{code}</code>")), "{response:?}");
        response.expect_error(415, code);
    }
}

#[test]
fn an_entity_in_xml_is_an_entity_in_atom() {
    let server = with_entity();
    let request = Request::post("/mytable").body("application/xml", "<entry/>");
    server.send(request).expect_error(415, "AtomFormatNotSupported");
}

#[test]
fn metadata_is_not_implemented() {
    TestServer::start().send(Request::get("/$metadata")).expect_error(501, "NotImplemented");
}

#[test]
fn a_preference_that_is_not_known_is_ignored() {
    let server = with_entity();
    let request =
        Request::post("/mytable").json(&entity_json("p", "2", "")).header("Prefer", "respond-async");
    assert_eq!(server.send(request).expect(201).header("Preference-Applied"), None);
}

#[test]
fn a_table_has_a_name_and_nothing_else() {
    let server = TestServer::start();
    let response = server.send(Request::post("/Tables").json(r#"{"TableName":"abc","x":1}"#)).expect(201);
    assert!(!response.text().contains("\"x\""));
    let listed = server.send(Request::get("/Tables?$select=Other")).expect(200);
    assert_eq!(listed.json()["value"][0]["TableName"], "abc");
}

#[test]
fn a_key_that_is_too_long_names_nothing() {
    let server = with_entity();
    server.get("mytable", "p", &"k".repeat(513)).expect_error(404, "ResourceNotFound");
}

#[test]
fn a_selection_has_at_most_255_names() {
    let server = with_entity();
    let names = |count: usize| (0..count).map(|n| format!("p{n}")).collect::<Vec<_>>().join(",");
    server.send(Request::get(&format!("/mytable()?$select={}", names(255)))).expect(200);
    server
        .send(Request::get(&format!("/mytable()?$select={}", names(256))))
        .expect_error(400, "InvalidInput");
}

#[test]
fn a_filter_in_a_batch_is_bounded_too() {
    let server = with_entity();
    let terms = |count: usize| vec!["x%20eq%201"; count].join("%20or%20");
    let query = |count: usize| {
        let batch = Batch::new().operation("GET", &format!("/mytable()?$filter={}", terms(count)), &[], None);
        batch_parts(&server.send(batch.query_request()).expect(202))[0].status
    };
    assert_eq!(query(1_000), 200);
    assert_eq!(query(7_000), 400);
}

#[test]
fn a_property_may_begin_with_xml() {
    let server = with_entity();
    server.insert("mytable", "p", "2", r#""xmlThing":5"#);
    assert_eq!(server.get("mytable", "p", "2").json()["xmlThing"], 5);
}

#[test]
fn a_query_explains_itself_when_asked() {
    let server = with_entity();
    server.insert("mytable", "p", "s", r#""x":2"#);
    server.insert("mytable", "q", "r", r#""x":1"#);
    for (filter, plan) in [
        ("PartitionKey eq 'p' and RowKey eq 'r'", "point; examined=1; returned=1"),
        ("PartitionKey eq 'p' and RowKey ge 'a'", "row range; examined=2; returned=2"),
        ("PartitionKey eq 'p' and x eq 1", "partition scan; examined=2; returned=1"),
        ("PartitionKey gt 'p'", "partition range; examined=1; returned=1"),
        ("x eq 1", "table scan; examined=3; returned=2"),
    ] {
        let request = Request::get("/mytable()").query("$filter", filter);
        assert_eq!(server.send(request.clone()).expect(200).header("x-lazulite-plan"), None);
        let response = server.send(request.header("x-lazulite-explain", "1")).expect(200);
        assert_eq!(response.header("x-lazulite-plan"), Some(plan), "{filter}");
    }
}

#[test]
fn filter_and_top_mean_nothing_for_one_entity() {
    let server = with_entity();
    server.send(Request::get(&format!("{}?$filter=nonsense(&$top=-1", entity()))).expect(200);
}

#[test]
fn a_row_to_resume_with_needs_its_partition() {
    let server = with_entity();
    server.send(Request::get("/mytable()?NextRowKey=1!4!MDAx")).expect_error(400, "InvalidInput");
}

#[test]
fn a_batch_has_entities_and_nothing_else() {
    let server = with_entity();
    for url in ["/mytable?comp=acl", "/Tables", "/Tables('mytable')"] {
        let batch = Batch::new().operation("GET", url, &[], None);
        let part = &batch_parts(&server.send(batch.query_request()).expect(202))[0];
        assert_eq!((part.status, part.error_code().as_str()), (501, "NotImplemented"), "{url}");
    }
}

#[test]
fn an_entity_that_is_too_much_fails_in_execution() {
    let server = with_entity();
    let many: String = (0..253).map(|n| format!("\"p{n}\":1,")).collect();
    let batch = Batch::new().insert("mytable", &entity_json("p", "big", many.trim_end_matches(',')));
    let part = &batch_parts(&server.send(batch.request()).expect(202))[0];
    assert_eq!(part.error_code(), "TooManyProperties");
    assert!(part.error_message().starts_with("The entity contains"), "{}", part.error_message());
}

#[test]
fn a_header_decides_before_a_signature_in_the_url() {
    let server = with_entity();
    let token =
        Sas::table("2019-02-02", "mytable").set("sp", "r").set("se", "2030-01-01").sign(server.credentials());
    let both = Request::delete(&format!("{}?{token}", entity())).header("If-Match", "*");
    server.send(both).expect(204);
}

#[test]
fn a_query_that_does_not_decode_is_told_only_to_those_who_may_ask() {
    let server = with_entity();
    server.send(Request::get("/mytable()?$filter=%zz")).expect_error(400, "InvalidInput");
    server.send(Request::get("/mytable()?$filter=%zz").unsigned()).expect_error(404, "ResourceNotFound");
}

#[test]
fn a_format_that_is_gone_is_noticed_before_a_permission() {
    let server = with_entity();
    let token =
        Sas::table("2019-02-02", "mytable").set("sp", "a").set("se", "2030-01-01").sign(server.credentials());
    let request =
        |accept: &str| Request::get(&format!("{}?{token}", entity())).unsigned().header("Accept", accept);
    server.send(request("application/atom+xml")).expect_error(415, "AtomFormatNotSupported");
    server.send(request("application/json")).expect_error(403, "AuthorizationPermissionMismatch");
}

#[test]
fn odata_errors_have_no_error_code_header() {
    let server = with_entity();
    let response = server.get("mytable", "p", "gone").expect_error(404, "ResourceNotFound");
    assert_eq!(response.header("x-ms-error-code"), None);
}

#[test]
fn only_errors_of_execution_forbid_caching() {
    let server = with_entity();
    for (request, cached) in [
        (Request::get(&entity_path("mytable", "p", "gone")), Some("no-cache")),
        (Request::get("/mytable()?$top=-1"), None),
        (Request::post("/mytable").json("{"), None),
        (Request::put("/mytable"), None),
    ] {
        let target = request.target.clone();
        assert_eq!(server.send(request).header("Cache-Control"), cached, "{target}");
    }
}

#[test]
fn answers_are_whole_and_their_header_names_in_lower_case() {
    let server = with_entity();
    let mut client = server.connect();
    client.send(&server.bytes_of(&Request::get(&entity()))).unwrap();
    let response = client.read_response(false).unwrap().expect(200);
    assert_eq!(response.header("Transfer-Encoding"), None);
    assert_eq!(response.required("Content-Length"), response.text().len().to_string());
    assert!(response.headers.iter().all(|(name, _)| name.chars().all(|c| !c.is_ascii_uppercase())));
}

#[test]
fn a_client_request_id_used_twice_means_two_requests() {
    let server = with_entity();
    let insert = || {
        let request = Request::post("/mytable").json(&entity_json("p", "once", ""));
        server.send(request.header("x-ms-client-request-id", "the-same"))
    };
    insert().expect(201);
    insert().expect_error(409, "EntityAlreadyExists");
}
