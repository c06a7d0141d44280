//! The passage to the services: the same road, the same authentication.

use testkit::{Credentials, RawClient, Request, Response, Sas, entity_json, message_xml, system_now};

use crate::stage::{House, Options, start};

/// Sends to the admin port what the signer made for the service, below the passage.
fn pass(house: &House, service: &str, bytes: Vec<u8>, headers: &str) -> Response {
    let text = String::from_utf8(bytes).unwrap();
    let text = text.replacen(" /", &format!(" /storage/{service}/"), 1).replacen(
        "\r\n",
        &format!("\r\n{headers}"),
        1,
    );
    RawClient::connect(house.admin_addr).unwrap().exchange(text.as_bytes()).unwrap()
}

fn tables(house: &House, request: Request, headers: &str) -> Response {
    pass(house, "table", request.to_bytes(house.admin_addr, &Credentials::emulator(), system_now()), headers)
}

#[test]
fn signed_requests_reach_the_services() {
    let house = start(Options::default());
    let own = format!(
        "Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n",
        house.admin_addr
    );
    let created =
        tables(&house, Request::post("/Tables").json("{\"TableName\":\"people\"}"), &own).expect(201);
    // Links lead to the service itself, as if it had been asked.
    assert!(created.required("location").starts_with(&format!("http://{}/devstoreaccount1/", house.table)));
    tables(&house, Request::post("/people").json(&entity_json("a b", "r", "\"Age\":7")), &own).expect(201);
    let found = tables(&house, Request::get("/people(PartitionKey='a%20b',RowKey='r')"), &own).expect(200);
    assert_eq!(found.json()["Age"], 7);
    let query = Request::get("/people()").query("$filter", "Age eq 7 and PartitionKey eq 'a b'");
    assert_eq!(tables(&house, query, "").expect(200).json()["value"].as_array().unwrap().len(), 1);
    assert!(found.required("content-security-policy").contains("sandbox"));

    let queues = |request: Request| {
        let bytes = request.to_queue_bytes(house.admin_addr, &Credentials::emulator(), system_now());
        pass(&house, "queue", bytes, "")
    };
    queues(Request::put("/work")).expect(201);
    queues(Request::post("/work/messages").xml(&message_xml("<b>"))).expect(201);
    assert!(queues(Request::get("/work/messages?peekonly=true")).expect(200).text().contains("&lt;b&gt;"));
}

#[test]
fn the_services_refuse_what_they_would_refuse_anyway() {
    let house = start(Options::default());
    tables(&house, Request::get("/Tables").unsigned(), "").expect(404);
    tables(&house, Request::get("/Tables").credentials("devstoreaccount1", "d3Jvbmc="), "").expect(403);
    house.get("/storage/blob/devstoreaccount1").expect(404);
    house.get("/storage/table").expect(404);
    // Pages of other origins, and stored data opened as a page.
    tables(&house, Request::get("/Tables"), "Origin: http://evil.example\r\n").expect(403);
    let opened = "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\n";
    tables(&house, Request::get("/Tables"), opened).expect(403);
}

#[test]
fn a_token_for_https_alone_does_not_pass_in_the_clear() {
    let house = start(Options { is_behind_tls_proxy: true, ..Options::default() });
    let ask = |protocol: &str| {
        let sas = Sas::account("2019-02-02").set("spr", protocol).sign(&Credentials::emulator());
        tables(&house, Request::get("/Tables").sas(&sas), "")
    };
    ask("https,http").expect(200);
    ask("https").expect_error(403, "AuthorizationProtocolMismatch");
}
