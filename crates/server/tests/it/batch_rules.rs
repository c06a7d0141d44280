//! The rules of a batch (§7.6): each refusal with status, code, text and index, and the order of checks (§0.4).

use testkit::{Batch, Request, Response, TestServer, batch_parts, entity_json, entity_path};

const ANY: [(&str, &str); 1] = [("If-Match", "*")];

/// The failure that a batch reports: its only part, or the response itself when the whole request was refused.
#[track_caller]
fn failure(response: &Response) -> Response {
    if response.status != 202 {
        return response.clone();
    }
    let parts = batch_parts(response);
    assert_eq!(parts.len(), 1, "a failed change set has exactly one part:\n{response:?}");
    parts.into_iter().next().unwrap()
}

#[track_caller]
fn check(server: &TestServer, batch: &Batch, status: u16, code: &str, message: &str) {
    let response = server.send(batch.request()).expect(202);
    failure(&response).expect_message(status, code, message);
    let part = failure(&response);
    assert_eq!(part.header("DataServiceVersion"), Some("3.0;"));
}

fn rows(server: &TestServer) -> usize {
    server.send(Request::get("/mytable()")).json()["value"].as_array().unwrap().len()
}

#[test]
fn all_operations_share_a_partition() {
    let server = TestServer::with_table("mytable");
    let text = "All commands in a batch must operate on same entity group.";
    let code = "CommandsInBatchActOnDifferentPartitions";
    let batch = Batch::new()
        .insert("mytable", &entity_json("p", "1", ""))
        .insert("mytable", &entity_json("p", "2", ""))
        .insert("mytable", &entity_json("q", "3", ""));
    check(&server, &batch, 400, code, &format!("2:{text}"));
    let batch = Batch::new().insert("mytable", &entity_json("p", "1", "")).operation(
        "PUT",
        &entity_path("mytable", "P", "2"),
        &[],
        Some("{}"),
    );
    check(&server, &batch, 400, code, &format!("1:{text}"));
    let batch = Batch::new().operation("PUT", &entity_path("mytable", "p", "1"), &[], Some("{}")).operation(
        "DELETE",
        &entity_path("mytable", "q", "2"),
        &ANY,
        None,
    );
    check(&server, &batch, 400, code, &format!("1:{text}"));
    assert_eq!(rows(&server), 0);
}

#[test]
fn all_operations_share_a_table() {
    let server = TestServer::with_table("mytable");
    server.create_table("other");
    let batch = Batch::new()
        .insert("mytable", &entity_json("p", "1", ""))
        .insert("other", &entity_json("p", "2", ""));
    let text = "1:All commands in a batch must operate on same entity group.";
    check(&server, &batch, 400, "CommandsInBatchActOnDifferentPartitions", text);
    let batch = Batch::new()
        .insert("mytable", &entity_json("p", "1", ""))
        .insert("MYTABLE", &entity_json("p", "2", ""));
    assert_eq!(batch_parts(&server.send(batch.request())).len(), 2);
}

#[test]
fn an_entity_appears_once() {
    let server = TestServer::with_table("mytable");
    let text = "The batch request contains multiple changes with same row key. An entity can appear only once in a batch \
                request.";
    let batch = Batch::new()
        .insert("mytable", &entity_json("p", "1", ""))
        .insert("mytable", &entity_json("p", "2", ""))
        .insert("mytable", &entity_json("p", "1", ""));
    check(&server, &batch, 400, "InvalidDuplicateRow", &format!("2:{text}"));
    // As recorded, although other checks before execution lack it.
    let parts = batch_parts(&server.send(batch.request()).expect(202));
    assert_eq!(parts[0].header("Cache-Control"), Some("no-cache"));
    let batch = Batch::new().insert("mytable", &entity_json("p", "1", "")).operation(
        "DELETE",
        &entity_path("mytable", "p", "1"),
        &ANY,
        None,
    );
    check(&server, &batch, 400, "InvalidDuplicateRow", &format!("1:{text}"));
    assert_eq!(rows(&server), 0);
}

#[test]
fn a_batch_has_at_most_a_hundred_operations() {
    let server = TestServer::with_table("mytable");
    let mut batch = Batch::new();
    for number in 0..101 {
        batch = batch.insert("mytable", &entity_json("p", &number.to_string(), ""));
    }
    let text = "99:The batch request operation exceeds the maximum 100 changes per change set.";
    check(&server, &batch, 400, "InvalidInput", text);
    assert_eq!(rows(&server), 0);
}

#[test]
fn a_batch_has_at_most_four_mebibytes() {
    let server = TestServer::with_table("mytable");
    let big = format!("\"x\":\"{}\"", "x".repeat(32_000));
    let batch = |extra: usize| {
        let mut batch = Batch::new();
        for number in 0..100 {
            let members = format!("{big},\"y\":\"{}\"", "y".repeat(9_000 + extra));
            batch = batch.insert("mytable", &entity_json("p", &number.to_string(), &members));
        }
        batch
    };
    let fits = batch(0);
    assert!(fits.body().len() < 4 << 20);
    assert_eq!(batch_parts(&server.send(fits.request())).len(), 100);
    let over = batch(2_000);
    assert!(over.body().len() > 4 << 20);
    let message = "The request body is too large and exceeds the maximum permissible limit.";
    server.send(over.request()).expect_message(413, "RequestBodyTooLarge", message);
}

#[test]
fn a_batch_has_a_change_set_or_a_query() {
    // A change set without operations is another matter (§0.4, ruling 1).
    let server = TestServer::with_table("mytable");
    let request = Request::post("/$batch").body("multipart/mixed; boundary=b", "--b--\r\n");
    failure(&server.send(request)).expect_error(400, "InvalidInput");
}

#[test]
fn a_batch_has_one_change_set() {
    let server = TestServer::with_table("mytable");
    let set = |row: &str| {
        format!(
            "--b\r\nContent-Type: multipart/mixed; boundary=c{row}\r\n\r\n--c{row}\r\nContent-Type: application/http\r\n\r\n\
             POST /devstoreaccount1/mytable HTTP/1.1\r\nPrefer: return-no-content\r\n\r\n{}\r\n--c{row}--\r\n",
            entity_json("p", row, "")
        )
    };
    let body = format!("{}{}--b--\r\n", set("1"), set("2"));
    let response = server.send(Request::post("/$batch").body("multipart/mixed; boundary=b", body));
    failure(&response).expect_error(400, "InvalidInput");
    assert_eq!(rows(&server), 0);
}

#[test]
fn a_query_stands_alone() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    let path = entity_path("mytable", "p", "r");
    let accept = [("Accept", "application/json")];
    let inside = Batch::new().operation("GET", &path, &accept, None);
    failure(&server.send(inside.request())).expect_error(400, "InvalidInput");
    let beside =
        Batch::new().insert("mytable", &entity_json("p", "1", "")).operation("GET", &path, &accept, None);
    failure(&server.send(beside.request())).expect_error(400, "InvalidInput");
    let two = Batch::new().operation("GET", &path, &accept, None).operation("GET", &path, &accept, None);
    failure(&server.send(two.query_request())).expect_error(400, "InvalidInput");
    let change_set = Batch::new().insert("mytable", &entity_json("p", "1", "")).body();
    let (head, _) = change_set.rsplit_once("--batch_").unwrap();
    let boundary = change_set.split_once("\r\n").unwrap().0.strip_prefix("--").unwrap();
    let body = format!(
        "{head}--{boundary}\r\nContent-Type: application/http\r\n\r\nGET /devstoreaccount1{path} HTTP/1.1\r\n\r\n\r\n--{boundary}--\r\n"
    );
    let request = Request::post("/$batch").body(&format!("multipart/mixed; boundary={boundary}"), body);
    failure(&server.send(request)).expect_error(400, "InvalidInput");
    assert_eq!(rows(&server), 1);
}

#[test]
fn the_table_of_a_batch_exists() {
    let server = TestServer::with_table("mytable");
    let batch = Batch::new()
        .insert("absent", &entity_json("p", "1", ""))
        .insert("absent", &entity_json("p", "2", ""));
    check(&server, &batch, 404, "TableNotFound", "0:The table specified does not exist.");
    let one = Batch::new().insert("absent", &entity_json("p", "1", ""));
    check(&server, &one, 404, "TableNotFound", "0:The table specified does not exist.");
    let part = failure(&server.send(one.request()));
    assert_eq!(part.header("Cache-Control"), None, "§7.4: missing for early failures");
    let query = Batch::new().operation("GET", "/absent()", &[("Accept", "application/json")], None);
    let part = failure(&server.send(query.query_request()));
    part.expect_message(404, "TableNotFound", "0:The table specified does not exist.");
}

#[test]
fn only_entities_are_changed_in_a_batch() {
    let server = TestServer::with_table("mytable");
    let create = Batch::new().operation("POST", "/Tables", &[], Some(r#"{"TableName":"made"}"#));
    failure(&server.send(create.request())).expect_error(501, "NotImplemented");
    let delete = Batch::new().operation("DELETE", "/Tables('mytable')", &[], None);
    failure(&server.send(delete.request())).expect_error(501, "NotImplemented");
    server.send(Request::get("/Tables('made')")).expect(404);
    server.send(Request::get("/Tables('mytable')")).expect(200);
}

#[test]
fn malformed_multipart_is_refused_as_a_whole() {
    let server = TestServer::with_table("mytable");
    let good = Batch::new().insert("mytable", &entity_json("p", "1", "")).body();
    let boundary = good.split_once("\r\n").unwrap().0.strip_prefix("--").unwrap().to_owned();
    let content_type = format!("multipart/mixed; boundary={boundary}");
    for (what, content_type, body) in [
        ("no boundary", "multipart/mixed", good.clone()),
        ("another boundary", "multipart/mixed; boundary=other", good.clone()),
        ("an empty body", content_type.as_str(), String::new()),
        ("no delimiter at all", content_type.as_str(), "hello".to_owned()),
        ("JSON", content_type.as_str(), entity_json("p", "1", "")),
        ("no part type", content_type.as_str(), good.replace("Content-Type: multipart/mixed", "X: y")),
        (
            "a broken request line",
            content_type.as_str(),
            good.replace("POST http://127.0.0.1:10002/devstoreaccount1/mytable HTTP/1.1", "nonsense"),
        ),
    ] {
        let response = server.send(Request::post("/$batch").body(content_type, body));
        let failure = failure(&response);
        assert_eq!(
            (failure.status, failure.error_code().as_str()),
            (400, "InvalidInput"),
            "{what}\n{response:?}"
        );
    }
    assert_eq!(rows(&server), 0);
}

#[test]
fn a_batch_is_authenticated_as_a_whole() {
    let server = TestServer::with_table("mytable");
    let request = Batch::new().insert("mytable", &entity_json("p", "1", "")).request();
    let request = request
        .header("Accept", "application/json")
        .header("Authorization", "SharedKey devstoreaccount1:AAAA");
    let response = server.send(request).expect_error(403, "AuthenticationFailed");
    assert_eq!(response.header("x-ms-error-code"), Some("AuthenticationFailed"));
    assert_eq!(response.header("Content-Type"), Some("application/json"));
}

#[test]
fn a_change_set_of_one_prefixes_validation_errors_only() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "taken", "");
    let wrong = [("If-Match", "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"")];
    let path = |row: &str| entity_path("mytable", "p", row);
    let one = |method: &str, target: &str, headers: &[(&str, &str)], json: Option<&str>| {
        Batch::new().operation(method, target, headers, json)
    };
    let check =
        |batch: Batch, status: u16, code: &str, message: &str| check(&server, &batch, status, code, message);
    let taken = entity_json("p", "taken", "");
    check(
        one("POST", "/mytable", &[], Some(&taken)),
        409,
        "EntityAlreadyExists",
        "The specified entity already exists.",
    );
    let absent = "The specified resource does not exist.";
    check(one("DELETE", &path("absent"), &ANY, None), 404, "ResourceNotFound", absent);
    check(one("PUT", &path("absent"), &ANY, Some("{}")), 404, "ResourceNotFound", absent);
    check(
        one("MERGE", &path("taken"), &wrong, Some("{}")),
        412,
        "UpdateConditionNotSatisfied",
        "The update condition specified in the request was not satisfied.",
    );
    let large = entity_json("p", "large", &format!("\"x\":\"{}\"", "x".repeat(40_000)));
    check(
        one("POST", "/mytable", &[], Some(&large)),
        400,
        "PropertyValueTooLarge",
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 \
         encoded and the maximum number of characters should be 32K or less.",
    );
    let bad_key = entity_json("a/b", "r", "");
    check(
        one("POST", "/mytable", &[], Some(&bad_key)),
        400,
        "OutOfRangeInput",
        "0:The 'PartitionKey' parameter of value 'a/b' is out of range.",
    );
    check(
        one("POST", "/mytable", &[], Some("{\"x\":1}")),
        400,
        "PropertiesNeedValue",
        "0:The values are not specified for all properties in the entity.",
    );
}

#[test]
fn every_rule_of_a_single_operation_holds_inside_a_batch_with_its_index() {
    let server = TestServer::with_table("mytable");
    let path = entity_path("mytable", "p", "x");
    let check = |method: &str,
                 target: &str,
                 headers: &[(&str, &str)],
                 json: Option<&str>,
                 status: u16,
                 code: &str| {
        let batch = Batch::new()
            .insert("mytable", &entity_json("p", "fine", ""))
            .operation(method, target, headers, json)
            .insert("mytable", &entity_json("p", "fine too", ""));
        let part = failure(&server.send(batch.request()).expect(202)).expect_error(status, code);
        assert!(part.error_message().starts_with("1:"), "{code}: {}", part.error_message());
        assert_eq!(rows(&server), 0);
    };
    let many = (0..253).map(|number| format!("\"p{number}\":1")).collect::<Vec<_>>().join(",");
    check("PUT", &path, &[], Some(&format!("{{{many}}}")), 400, "TooManyProperties");
    check("PUT", &path, &[], Some(&format!("{{\"{}\":1}}", "n".repeat(256))), 400, "PropertyNameTooLong");
    check("PUT", &path, &[], Some(r#"{"a-b":1}"#), 400, "PropertyNameInvalid");
    check("PUT", &path, &[], Some(r#"{"a":1,"a":2}"#), 400, "DuplicatePropertiesSpecified");
    check("PUT", &path, &[], Some("{"), 400, "InvalidInput");
    check("PUT", &path, &[("If-Match", "nonsense")], Some("{}"), 400, "InvalidInput");
    check("DELETE", &path, &[], None, 400, "InvalidInput");
    check("DELETE", &path, &ANY, None, 404, "ResourceNotFound");
    check("MERGE", &path, &ANY, Some("{}"), 404, "ResourceNotFound");
    check("POST", "/mytable", &[], Some(r#"{"PartitionKey":"p"}"#), 400, "PropertiesNeedValue");
    check("POST", "/mytable", &[], Some(&entity_json("p", "a#b", "")), 400, "OutOfRangeInput");
    check("PUT", "/mytable(PartitionKey='p',RowKey='a%23b')", &[], Some("{}"), 400, "OutOfRangeInput");
    check("PUT", "/mytable(PartitionKey='p')", &[], Some("{}"), 400, "InvalidInput");
}

#[test]
fn every_operation_is_validated_before_the_table_is_looked_up() {
    let server = TestServer::with_table("mytable");
    let batch = Batch::new()
        .insert("absent", &entity_json("p", "1", ""))
        .insert("absent", &entity_json("q", "2", ""));
    let text = "1:All commands in a batch must operate on same entity group.";
    check(&server, &batch, 400, "CommandsInBatchActOnDifferentPartitions", text);
    let batch = Batch::new()
        .insert("absent", &entity_json("p", "1", ""))
        .insert("absent", &entity_json("p", "a/b", ""));
    let text = "1:The 'RowKey' parameter of value 'a/b' is out of range.";
    check(&server, &batch, 400, "OutOfRangeInput", text);
}

#[test]
fn a_late_validation_error_wins_over_an_early_execution_error() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "taken", "");
    let batch = Batch::new()
        .insert("mytable", &entity_json("p", "taken", ""))
        .insert("mytable", &entity_json("p", "2", ""))
        .insert("mytable", &entity_json("q", "3", ""));
    let text = "2:All commands in a batch must operate on same entity group.";
    check(&server, &batch, 400, "CommandsInBatchActOnDifferentPartitions", text);
}
