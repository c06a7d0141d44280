//! Where a request names the account (§1.1): in the path, in the host, or as its secondary. Accounts do not mix.

use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY, Request, Response, Style, TestServer, entity_json};

const HOST: &str = "devstoreaccount1.table.core.windows.net";
const OTHER_KEY: &str = "b3RoZXIga2V5IG90aGVyIGtleSBvdGhlciBrZXk=";

fn in_host(request: Request, host: &str) -> Request {
    request.style(Style::Host(host.to_owned()))
}

fn two_accounts() -> TestServer {
    let accounts = format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY};otheraccount:{OTHER_KEY}");
    TestServer::options().accounts(&accounts).start()
}

fn names(response: &Response) -> Vec<String> {
    let body = response.json();
    body["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["TableName"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_account_may_be_in_the_host() {
    let server = TestServer::start();
    let create = Request::post("/Tables").json(r#"{"TableName":"mytable"}"#);
    let response = server.send(in_host(create, HOST)).expect(201);
    assert_eq!(response.required("Location"), format!("http://{HOST}/Tables('mytable')"));
    assert_eq!(response.json()["odata.metadata"], format!("http://{HOST}/$metadata#Tables/@Element"));
    let insert = Request::post("/mytable").json(&entity_json("p", "r", ""));
    let response = server.send(in_host(insert, HOST)).expect(201);
    assert_eq!(response.required("Location"), format!("http://{HOST}/mytable(PartitionKey='p',RowKey='r')"));
    server.send(in_host(Request::get("/mytable(PartitionKey='p',RowKey='r')"), HOST)).expect(200);
    server.get("mytable", "p", "r").expect(200);
    server.send(in_host(Request::get("/Tables"), &format!("{HOST}:443"))).expect(200);
    server
        .send(in_host(
            Request::get("/Tables"),
            &HOST.to_uppercase().replace("DEVSTOREACCOUNT1", "devstoreaccount1"),
        ))
        .expect(200);
}

#[test]
fn links_repeat_the_host_of_the_request() {
    let server = TestServer::start();
    let request = Request::get("/Tables").header("Host", "localhost:1234");
    let response = server.send(request).expect(200);
    assert_eq!(response.json()["odata.metadata"], "http://localhost:1234/devstoreaccount1/$metadata#Tables");
}

#[test]
fn unknown_hosts_mean_path_style() {
    let server = TestServer::start();
    for host in
        ["localhost", "localhost:10002", "127.0.0.1", "[::1]:10002", "lazulite", "tables.example.org:80"]
    {
        server.send(Request::get("/Tables").header("Host", host)).expect(200);
    }
}

#[test]
fn the_secondary_can_be_read() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""x":1"#);
    let secondary = "devstoreaccount1-secondary";
    for target in ["/Tables", "/mytable()", "/mytable(PartitionKey='p',RowKey='r')"] {
        // Some clients sign the path as sent, others with the plain account name.
        server.send(Request::get(target).path_account(secondary)).expect(200);
        let plain = format!("/devstoreaccount1{target}");
        server.send(Request::get(target).path_account(secondary).signed_target(&plain)).expect(200);
        server
            .send(in_host(Request::get(target), &format!("{secondary}.table.core.windows.net")))
            .expect(200);
    }
}

#[test]
fn the_secondary_refuses_writes() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    let path = "/mytable(PartitionKey='p',RowKey='r')";
    for request in [
        Request::post("/Tables").json(r#"{"TableName":"abc"}"#),
        Request::delete("/Tables('mytable')"),
        Request::post("/mytable").json(&entity_json("p", "r2", "")),
        Request::put(path).json("{}"),
        Request::merge(path).json("{}"),
        Request::delete(path).header("If-Match", "*"),
        testkit::Batch::new().insert("mytable", &entity_json("p", "r3", "")).request(),
    ] {
        let request = request.path_account("devstoreaccount1-secondary");
        let message = "Write operations are not allowed.";
        server.send(request).expect_message(403, "InsufficientAccountPermissions", message);
    }
    let response = server.send(Request::get("/mytable()"));
    assert_eq!(response.json()["value"].as_array().unwrap().len(), 1);
}

#[test]
fn accounts_do_not_see_each_other() {
    let server = two_accounts();
    let other = |request: Request| request.credentials("otheraccount", OTHER_KEY);
    server.create_table("shared");
    server.create_table("mine");
    server.send(other(Request::post("/Tables").json(r#"{"TableName":"shared"}"#))).expect(201);
    server.insert("shared", "p", "r", r#""x":"mine""#);
    assert_eq!(names(&server.send(Request::get("/Tables"))), ["mine", "shared"]);
    assert_eq!(names(&server.send(other(Request::get("/Tables")))), ["shared"]);
    let path = "/shared(PartitionKey='p',RowKey='r')";
    server.send(other(Request::get(path))).expect_error(404, "ResourceNotFound");
    server.send(other(Request::get("/mine()"))).expect_error(404, "TableNotFound");
    server.send(other(Request::delete("/Tables('shared')"))).expect(204);
    server.send(Request::get(path)).expect(200);
}

#[test]
fn one_accounts_key_does_not_open_another() {
    let server = two_accounts();
    let request = Request::get("/Tables").credentials("otheraccount", EMULATOR_KEY);
    server.send(request).expect_error(403, "AuthenticationFailed");
    // A request signed for one account and sent to another is refused.
    let request = Request::get("/Tables").path_account("otheraccount");
    server.send(request).expect_error(403, "AuthenticationFailed");
}

#[test]
fn an_unknown_account_does_not_exist() {
    let server = TestServer::start();
    let request = Request::get("/Tables").credentials("nobody", EMULATOR_KEY);
    server.send(request).expect_error(404, "ResourceNotFound");
    let host = "nobody.table.core.windows.net";
    let request = in_host(Request::get("/Tables").credentials("nobody", EMULATOR_KEY), host);
    server.send(request).expect_error(404, "ResourceNotFound");
}

#[test]
fn a_request_names_its_host() {
    let server = TestServer::start();
    let message = "The required host information is not present in the request. You must send a non-empty Host header or \
                   include the absolute URI in the request line.";
    for request in [Request::get("/Tables").without("Host"), Request::get("/Tables").header("Host", "")] {
        server.send(request).expect_message(400, "HostInformationNotPresent", message);
    }
}

#[test]
fn the_host_may_be_in_an_absolute_target() {
    let server = TestServer::start();
    let path = "/devstoreaccount1/Tables";
    let request =
        Request::get(&format!("http://{}{path}", server.addr())).style(Style::Bare).signed_target(path);
    server.send(request.clone().without("Host")).expect(200);
    server.send(request).expect(200);
}

#[test]
fn table_names_are_routed_after_the_account() {
    let server = TestServer::start();
    // A table may have the account's name.
    server.create_table("devstoreaccount1");
    server.insert("devstoreaccount1", "p", "r", "");
    server.get("devstoreaccount1", "p", "r").expect(200);
}
