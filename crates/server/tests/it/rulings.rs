//! The later rulings of the reference (§0.4), one test for each, in their order.

use testkit::{Batch, Request, Response, TestServer, batch_parts, entity_json, entity_path};

const SECONDARY: &str = "devstoreaccount1-secondary";

fn with_entity() -> TestServer {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""x":1,"kept":true"#);
    server
}

fn entity() -> String {
    entity_path("mytable", "p", "r")
}

/// The only part of a batch's answer.
#[track_caller]
fn only_part(response: &Response) -> Response {
    let mut parts = batch_parts(response);
    assert_eq!(parts.len(), 1, "{response:?}");
    parts.remove(0)
}

#[test]
fn an_empty_change_set_is_answered_with_an_empty_one() {
    let server = TestServer::start();
    let set = |inner: &str| {
        let body = format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{inner}\r\n--b--\r\n");
        server.send(Request::post("/$batch").body("multipart/mixed; boundary=b", body)).expect(202)
    };
    // The second is what Python's multipart writer makes of no parts.
    for inner in ["--c--\r\n", "--c\r\n\r\n--c--\r\n"] {
        let response = set(inner);
        assert_eq!(batch_parts(&response).len(), 0);
        let batch = response.required("Content-Type").strip_prefix("multipart/mixed; boundary=").unwrap();
        let inner = response.text().split("boundary=").nth(1).unwrap().split("\r\n").next().unwrap();
        assert!(inner.starts_with("changesetresponse_"));
        let expected = format!(
            "--{batch}\r\nContent-Type: multipart/mixed; boundary={inner}\r\n\r\n--{inner}--\r\n--{batch}--\r\n"
        );
        assert_eq!(response.text(), expected);
    }
}

#[test]
fn a_tunnelled_verb_may_repeat_the_verb() {
    let server = with_entity();
    let merge = |method: &str, tunnelled: &str| {
        Request::new(method, &entity()).json(r#"{"x":2}"#).header("X-HTTP-Method", tunnelled)
    };
    server.send(merge("MERGE", "MERGE")).expect(204);
    let stored = server.get("mytable", "p", "r").json();
    assert_eq!((&stored["x"], &stored["kept"]), (&2.into(), &true.into()));
    server.send(merge("PUT", "MERGE")).expect_error(400, "XMethodNotUsingPost");
    server.send(merge("MERGE", "PATCH")).expect_error(400, "XMethodNotUsingPost");

    // As the Java 8 client writes a batch.
    let java = |method: &str| {
        let headers = [("If-Match", "*"), ("X-HTTP-Method", "MERGE"), ("DataServiceVersion", "3.0")];
        let batch = Batch::new().insert("mytable", &entity_json("p", "new", ""));
        server.send(batch.operation(method, &entity(), &headers, Some(r#"{"x":3}"#)).request()).expect(202)
    };
    let refused = only_part(&java("PUT"));
    refused.expect_message(
        400,
        "XMethodNotUsingPost",
        "1:The request uses X-HTTP-Method with a Http Verb that is not POST.",
    );
    let parts = batch_parts(&java("MERGE"));
    assert_eq!(parts.iter().map(|part| part.status).collect::<Vec<_>>(), [204, 204]);
    let stored = server.get("mytable", "p", "r").json();
    assert_eq!((&stored["x"], &stored["kept"]), (&3.into(), &true.into()));
}

#[test]
fn a_boolean_as_text_is_read_in_any_case() {
    let server = with_entity();
    for (text, value) in [("true", true), ("False", false), ("TRUE", true), ("fAlSe", false)] {
        let body = format!(r#"{{"b@odata.type":"Edm.Boolean","b":"{text}"}}"#);
        server.send(Request::put(&entity()).json(&body)).expect(204);
        assert_eq!(server.get("mytable", "p", "r").json()["b"], value, "{text}");
    }
    for text in ["1", "yes", "", " true"] {
        let body = format!(r#"{{"b@odata.type":"Edm.Boolean","b":"{text}"}}"#);
        server.send(Request::put(&entity()).json(&body)).expect_error(400, "InvalidInput");
    }
}

#[test]
fn keys_in_the_body_of_an_update_may_have_any_type() {
    let server = with_entity();
    let guid = "c9da6455-213d-42c9-9a79-3e9149a57833";
    let keys = [
        r#""PartitionKey@odata.type":"Edm.DateTime","PartitionKey":"2020-01-01T00:00:00Z""#.to_owned(),
        format!(r#""RowKey":"{guid}","RowKey@odata.type":"Edm.Guid""#),
        r#""RowKey@odata.type":"Edm.Binary","RowKey":"YmluYXJ5""#.to_owned(),
        r#""PartitionKey@odata.type":"Edm.Int64","PartitionKey":"7""#.to_owned(),
        r#""PartitionKey@odata.type":"Edm.Boolean","PartitionKey":true"#.to_owned(),
    ];
    for (number, key) in keys.iter().enumerate() {
        let body = format!(r#"{{{key},"x":{number}}}"#);
        for request in [Request::put(&entity()), Request::merge(&entity()), Request::patch(&entity())] {
            server.send(request.json(&body)).expect(204);
            // The URL's keys count.
            let stored = server.get("mytable", "p", "r").json();
            assert_eq!((&stored["x"], &stored["RowKey"]), (&number.into(), &"r".into()), "{key}");
        }
        let other = if key.contains("RowKey") { r#""PartitionKey":"p""# } else { r#""RowKey":"s""# };
        let insert = Request::post("/mytable").json(&format!("{{{key},{other}}}"));
        server.send(insert).expect_error(400, "InvalidInput");
    }
    assert_eq!(server.send(Request::get("/mytable()")).json()["value"].as_array().unwrap().len(), 1);
}

#[test]
fn a_policy_without_content_comes_back_without_its_element() {
    let server = with_entity();
    for element in ["", "<AccessPolicy />", "<AccessPolicy></AccessPolicy>"] {
        let body = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>i</Id>{element}</SignedIdentifier></SignedIdentifiers>"
        );
        server.send(Request::put("/mytable?comp=acl").body("application/xml", body)).expect(204);
        let response = server.send(Request::get("/mytable?comp=acl").header("Accept", "application/xml"));
        let expected =
            "<SignedIdentifiers><SignedIdentifier><Id>i</Id></SignedIdentifier></SignedIdentifiers>";
        assert!(response.text().ends_with(&format!("?>{expected}")), "{}", response.text());
    }
}

#[test]
fn a_weak_etag_of_unknown_form_is_a_condition_that_is_not_met() {
    let server = with_entity();
    let put = |etag: &str| server.send(Request::put(&entity()).json("{}").header("If-Match", etag));
    put("W/\"wrong\"").expect_error(412, "UpdateConditionNotSatisfied");
    put("wrong").expect_error(400, "InvalidInput");
    let batch =
        Batch::new().operation("MERGE", &entity(), &[("If-Match", "W/\"wrong\"")], Some(r#"{"x":2}"#));
    let part = only_part(&server.send(batch.request()));
    part.expect_error(412, "UpdateConditionNotSatisfied");
    assert_eq!(server.get("mytable", "p", "r").json()["x"], 1);
}

#[test]
fn a_post_below_a_table_is_an_insert_that_cannot_succeed() {
    let server = with_entity();
    let post = |path: &str| Request::post(path).json(r#"{"TableName":"x"}"#);
    server.send(post("/mytable/Tables")).expect_message(
        400,
        "PropertiesNeedValue",
        "The values are not specified for all properties in the entity.",
    );
    let response = server.send(post("/mytable/Tables").header("Prefer", "return-no-content"));
    assert_eq!(response.header("Preference-Applied"), Some("return-no-content"));
    assert_eq!(response.header("Cache-Control"), Some("no-cache"));
    let response = server.send(post("/absent/Tables"));
    response.expect_message(404, "TableNotFound", "The table specified does not exist.");
    let batch = Batch::new().insert("mytable", &entity_json("p", "new", ""));
    let below = |table: &str| {
        let mut request = batch.request();
        request.target = format!("/{table}/$batch");
        server.send(request)
    };
    below("mytable").expect_error(415, "MediaTypeNotSupported");
    below("absent").expect_error(404, "TableNotFound");
    server.get("mytable", "p", "new").expect(404);
    // Those who may not insert learn nothing about tables.
    server.send(post("/absent/Tables").unsigned()).expect_error(404, "ResourceNotFound");
}

#[test]
fn a_table_name_with_slashes_is_an_invalid_name_for_every_verb() {
    let server = with_entity();
    let keys = "(PartitionKey='p',RowKey='r')";
    for name in ["a//", "a%2F%2F", "my%2Ftable", "mytable//"] {
        let requests = [
            Request::get(&format!("/{name}()")),
            Request::post(&format!("/{name}")).json(&entity_json("p", "r", "")),
            Request::get(&format!("/{name}{keys}")),
            Request::put(&format!("/{name}{keys}")).json("{}"),
            Request::merge(&format!("/{name}{keys}")).json("{}"),
            Request::patch(&format!("/{name}{keys}")).json("{}"),
            Request::delete(&format!("/{name}{keys}")).header("If-Match", "*"),
            Request::get(&format!("/Tables('{name}')")),
            Request::delete(&format!("/Tables('{name}')")),
            Request::get(&format!("/{name}?comp=acl")),
        ];
        for request in requests {
            let what = format!("{} {}", request.method, request.target);
            let response = server.send(request);
            assert_eq!(
                (response.status, response.error_code().as_str()),
                (400, "InvalidResourceName"),
                "{what}"
            );
        }
        let batch = Batch::new().insert(name, &entity_json("p", "r", ""));
        only_part(&server.send(batch.request())).expect_error(400, "InvalidResourceName");
    }
    let create = Request::post("/Tables").json(r#"{"TableName":"a//"}"#);
    server.send(create).expect_error(400, "InvalidResourceName");
}

#[test]
fn the_secondary_forbids_writes_in_the_odata_shape_and_answers_a_query_in_a_batch() {
    let server = with_entity();
    for request in [
        Request::put(&entity()).json("{}"),
        Request::post("/mytable").json(&entity_json("p", "new", "")),
        Request::delete(&entity()).header("If-Match", "*"),
        Batch::new().insert("mytable", &entity_json("p", "new", "")).request(),
        Batch::new().request(),
    ] {
        let response = server.send(request.path_account(SECONDARY));
        assert_eq!(response.reason, "Forbidden");
        assert_eq!(response.header("x-ms-error-code"), None);
        let message = "Write operations are not allowed.";
        response.expect_message(403, "InsufficientAccountPermissions", message);
    }
    // Operations of the front end answer in its shape, on the secondary too.
    let acl = Request::put("/mytable?comp=acl").body("application/xml", "<SignedIdentifiers />");
    let response = server.send(acl.path_account(SECONDARY));
    assert_eq!(response.reason, "Write operations are not allowed.");
    assert_eq!(response.header("x-ms-error-code"), Some("InsufficientAccountPermissions"));

    let query = Batch::new().operation("GET", &entity(), &[], None).query_request();
    let part = only_part(&server.send(query.path_account(SECONDARY)));
    assert_eq!((part.status, &part.json()["x"]), (200, &1.into()));
    server.get("mytable", "p", "new").expect(404);
}

#[test]
fn a_body_above_four_mebibytes_is_refused_by_the_front_end() {
    let server = with_entity();
    let message = "The request body is too large and exceeds the maximum permissible limit.";
    for target in ["/mytable", "/$batch"] {
        let request = Request::post(target).body("application/json", vec![b' '; (4 << 20) + 1]);
        let response = server.send(request);
        assert_eq!(response.reason, message, "{target}");
        assert_eq!(response.header("x-ms-error-code"), Some("RequestBodyTooLarge"), "{target}");
        response.expect_message(413, "RequestBodyTooLarge", message);
    }
}

#[test]
fn a_property_of_one_mebibyte_makes_the_entity_too_large() {
    let server = with_entity();
    let put = |units: usize| {
        let body = format!(r#"{{"x":"{}"}}"#, "x".repeat(units));
        server.send(Request::put(&entity()).json(&body))
    };
    put(1 << 20).expect_error(400, "EntityTooLarge");
    put(1 << 19).expect_error(400, "EntityTooLarge");
    put(500_000).expect_error(400, "PropertyValueTooLarge");
    put(32_769).expect_error(400, "PropertyValueTooLarge");
    put(32_768).expect(204);
    // Many small properties that are too much together.
    let many: Vec<String> = (0..20).map(|n| format!("\"p{n}\":\"{}\"", "x".repeat(30_000))).collect();
    let request = Request::put(&entity()).json(&format!("{{{}}}", many.join(",")));
    server.send(request).expect_error(400, "EntityTooLarge");
}

#[test]
fn an_operand_that_is_not_boolean_is_named() {
    let server = with_entity();
    let query = |filter: &str| server.send(Request::get("/mytable()").query("$filter", filter));
    let incompatible = |left: &str, right: &str| {
        format!(
            "A binary operator with incompatible types was detected. Found operand types '{left}' and '{right}' for \
             operator kind 'And'."
        )
    };
    query("(PartitionKey ) and (RowKey ge 'x')").expect_message(
        400,
        "InvalidInput",
        &incompatible("Edm.String", "Edm.Boolean"),
    );
    query("x eq 1 and Timestamp").expect_message(
        400,
        "InvalidInput",
        &incompatible("Edm.Boolean", "Edm.DateTime"),
    );
    // A property of its own may be a Boolean.
    assert_eq!(query("kept and (x eq 1)").expect(200).json()["value"].as_array().unwrap().len(), 1);
}

#[test]
fn an_empty_selection_is_in_the_metadata() {
    let server = with_entity();
    let metadata = |target: &str| {
        let answer = server.send(Request::get(target)).expect(200).json();
        let entity = answer.get("value").map_or(&answer, |rows| &rows[0]).clone();
        assert_eq!((&entity["x"], &entity["RowKey"]), (&1.into(), &"r".into()), "{target}");
        answer["odata.metadata"].as_str().unwrap().to_owned()
    };
    assert!(metadata("/mytable()?$select=").ends_with("/$metadata#mytable&$select="));
    assert!(metadata("/mytable()").ends_with("/$metadata#mytable"));
    assert!(metadata(&format!("{}?$select=", entity())).ends_with("/$metadata#mytable/@Element&$select="));
}

#[test]
fn the_refusal_of_a_new_tables_name_forbids_caching() {
    let server = TestServer::start();
    for (name, code) in [("a-b-c", "InvalidResourceName"), ("ab", "OutOfRangeInput")] {
        let request = Request::post("/Tables").json(&format!(r#"{{"TableName":"{name}"}}"#));
        let response = server.send(request.clone()).expect_error(400, code);
        assert_eq!(response.header("Cache-Control"), Some("no-cache"), "{name}");
        let response = server.send(request.header("Prefer", "return-no-content")).expect_error(400, code);
        assert_eq!(response.header("Cache-Control"), Some("no-cache"), "{name}");
        assert_eq!(response.header("Preference-Applied"), Some("return-no-content"), "{name}");
    }
    let response = server.send(Request::get("/a-b-c()")).expect_error(400, "InvalidResourceName");
    assert_eq!(response.header("Cache-Control"), None);
}

#[test]
fn a_part_that_does_not_say_what_it_accepts_means_atom() {
    let server = with_entity();
    let without_accept = |mut request: Request| {
        let body = String::from_utf8(request.body.unwrap()).unwrap();
        let body = body.replace("Accept: application/json;odata=minimalmetadata\r\n", "");
        request.body = Some(body.into_bytes());
        server.send(request)
    };
    let query = Batch::new().operation("GET", &entity(), &[], None).query_request();
    let insert = |headers: &[(&str, &str)]| {
        let body = entity_json("p", "new", "");
        Batch::new().operation("POST", "/mytable", headers, Some(&body)).request()
    };
    for request in [query, insert(&[]), insert(&[("Prefer", "return-content")])] {
        let part = only_part(&without_accept(request));
        assert_eq!(part.status, 415);
        assert_eq!(part.header("Content-Type"), Some("application/xml;charset=utf-8"));
        let text = part.text();
        assert!(text.contains("<code>AtomFormatNotSupported</code>"), "{text}");
        assert!(text.contains(">0:Atom format is not supported."), "{text}");
    }
    server.get("mytable", "p", "new").expect(404);
    // Where nothing is returned, nothing has to be accepted.
    let part = only_part(&without_accept(insert(&[("Prefer", "return-no-content")])));
    assert_eq!(part.status, 204);
}
