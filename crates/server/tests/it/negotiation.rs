//! Content negotiation and versions (§2): accepted formats, the format of the answer, and refusals.

use testkit::{Batch, Request, TestServer, batch_parts, entity_json, entity_path};

const NONE: &str = "application/json;odata=nometadata;streaming=true;charset=utf-8";
const MINIMAL: &str = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
const FULL: &str = "application/json;odata=fullmetadata;streaming=true;charset=utf-8";

fn with_entity() -> TestServer {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""x":1"#);
    server
}

/// Every request whose answer has a body.
fn reads() -> [Request; 4] {
    [
        Request::get("/Tables"),
        Request::get("/Tables('mytable')"),
        Request::get("/mytable()"),
        Request::get("/mytable(PartitionKey='p',RowKey='r')"),
    ]
}

#[test]
fn accept_chooses_the_level() {
    let server = with_entity();
    for (accept, expected) in [
        ("application/json;odata=nometadata", NONE),
        ("application/json;odata=minimalmetadata", MINIMAL),
        ("application/json;odata=fullmetadata", FULL),
        ("application/json", MINIMAL),
        ("*/*", MINIMAL),
        ("application/*", MINIMAL),
        ("application/json; odata=nometadata", NONE),
        ("application/json ; odata=nometadata", NONE),
        ("APPLICATION/JSON;ODATA=NoMetadata", NONE),
        ("application/json;odata=fullmetadata;q=0.5", FULL),
        ("application/json;charset=utf-8;odata=nometadata", NONE),
        ("application/json;odata=nometadata;streaming=true;charset=utf-8", NONE),
        ("application/json;odata=nometadata;IEEE754Compatible=true", NONE),
        ("application/json;q=0.9", MINIMAL),
        ("text/html, application/json;odata=nometadata", NONE),
        ("application/json;odata=fullmetadata, application/json;odata=nometadata", FULL),
        ("application/atom+xml, application/json;odata=nometadata", NONE),
        ("text/html,application/xhtml+xml,*/*;q=0.8", MINIMAL),
    ] {
        for request in reads() {
            let target = request.target.clone();
            let response = server.send(request.header("Accept", accept));
            assert_eq!(response.status, 200, "{accept} {target}\n{response:?}");
            assert_eq!(response.header("Content-Type"), Some(expected), "{accept} {target}");
            assert_eq!(response.text().contains("odata.metadata"), expected != NONE, "{accept} {target}");
            assert_eq!(response.text().contains("odata.editLink"), expected == FULL, "{accept} {target}");
        }
    }
}

#[test]
fn what_cannot_be_accepted_is_refused_with_415() {
    let server = with_entity();
    let check = |accept: &str, code: &str, message: &str| {
        for request in reads() {
            let response = server.send(request.header("Accept", accept));
            response.expect_message(415, code, message);
        }
    };
    check("application/atom+xml", "AtomFormatNotSupported", "Atom format is not supported.");
    check("application/atom+xml,application/xml", "AtomFormatNotSupported", "Atom format is not supported.");
    check("application/xml", "AtomFormatNotSupported", "Atom format is not supported.");
    check(
        "application/json;odata=verbose",
        "JsonVerboseFormatNotSupported",
        "Verbose JSON format is not supported.",
    );
    check("text/html", "MediaTypeNotSupported", "None of the provided media types are supported");
    check("image/png, text/plain", "MediaTypeNotSupported", "None of the provided media types are supported");
}

#[test]
fn no_accept_means_atom_which_is_refused() {
    let server = with_entity();
    for request in reads() {
        let response = server.send(request.without("Accept"));
        response.expect_message(415, "AtomFormatNotSupported", "Atom format is not supported.");
    }
    let insert = Request::post("/mytable").json(&entity_json("p", "new", "")).without("Accept");
    server.send(insert).expect_error(415, "AtomFormatNotSupported");
    server.get("mytable", "p", "new").expect(404);
    let create = Request::post("/Tables").json(r#"{"TableName":"new"}"#).without("Accept");
    server.send(create).expect_error(415, "AtomFormatNotSupported");
    server.send(Request::get("/Tables('new')")).expect(404);
}

#[test]
fn operations_without_a_body_need_no_accept() {
    let server = with_entity();
    let path = entity_path("mytable", "p", "r");
    server.send(Request::put(&path).json("{}").without("Accept")).expect(204);
    server.send(Request::merge(&path).json("{}").without("Accept")).expect(204);
    server.send(Request::patch(&path).json("{}").header("Accept", "*/*")).expect(204);
    server.send(Request::delete(&path).header("If-Match", "*").without("Accept")).expect(204);
    let batch = Batch::new().insert("mytable", &entity_json("p", "new", ""));
    let response = server.send(batch.request().without("Accept"));
    assert_eq!(batch_parts(&response)[0].status, 204);
    server.send(Request::delete("/Tables('mytable')").without("Accept")).expect(204);
}

#[test]
fn format_overrides_accept() {
    let server = with_entity();
    let check = |format: &str, accept: &str, expected: &str| {
        for request in reads() {
            let response = server.send(request.query("$format", format).header("Accept", accept));
            assert_eq!(response.status, 200, "{format} over {accept}\n{response:?}");
            assert_eq!(response.header("Content-Type"), Some(expected), "{format} over {accept}");
        }
    };
    check("application/json;odata=nometadata", "application/json;odata=fullmetadata", NONE);
    check("application/json;odata=fullmetadata", "application/json;odata=nometadata", FULL);
    check("application/json;odata=minimalmetadata", "application/atom+xml", MINIMAL);
    check("application/json;odata=minimalmetadata", "*/*", MINIMAL);
    check("application/json", "application/json;odata=nometadata", MINIMAL);
    check("json", "application/json;odata=nometadata", MINIMAL);
    let request = Request::get("/Tables").query("$format", "application/json;odata=nometadata");
    server.send(request.without("Accept")).expect(200);
    for format in ["atom", "application/atom+xml"] {
        let request = Request::get("/Tables").query("$format", format);
        server.send(request).expect_error(415, "AtomFormatNotSupported");
    }
    let request = Request::get("/Tables").query("$format", "application/json;odata=verbose");
    server.send(request).expect_error(415, "JsonVerboseFormatNotSupported");
    let insert = Request::post("/mytable").query("$format", "application/json;odata=nometadata");
    let response = server.send(insert.json(&entity_json("p", "new", ""))).expect(201);
    assert!(!response.text().contains("odata"), "{response:?}");
}

#[test]
fn bodies_are_json_whatever_level_their_type_names() {
    let server = with_entity();
    let annotated = r#""n":"5","n@odata.type":"Edm.Int64""#;
    for (row, content_type) in [
        "application/json",
        "application/json;odata=nometadata",
        "application/json;odata=minimalmetadata",
        "application/json;odata=fullmetadata",
        "application/json; charset=utf-8",
        "Application/JSON; odata=nometadata; charset=UTF-8",
    ]
    .into_iter()
    .enumerate()
    {
        let body = entity_json("p", &row.to_string(), annotated);
        let response = server.send(Request::post("/mytable").body(content_type, body)).expect(201);
        assert_eq!(response.json()["n@odata.type"], "Edm.Int64", "{content_type}");
    }
}

#[test]
fn bodies_of_other_types_are_refused() {
    let server = with_entity();
    let body = entity_json("p", "new", "");
    let path = entity_path("mytable", "p", "r");
    for (content_type, code) in [
        ("application/atom+xml", "AtomFormatNotSupported"),
        ("text/plain", "MediaTypeNotSupported"),
        ("application/x-www-form-urlencoded", "MediaTypeNotSupported"),
    ] {
        server.send(Request::post("/mytable").body(content_type, body.clone())).expect_error(415, code);
        server.send(Request::put(&path).body(content_type, "{}")).expect_error(415, code);
        let create = Request::post("/Tables").body(content_type, r#"{"TableName":"new"}"#);
        server.send(create).expect_error(415, code);
    }
    server.get("mytable", "p", "new").expect(404);
}

#[test]
fn a_body_without_content_length_is_refused() {
    let server = with_entity();
    let request = Request::post("/Tables").without("Content-Length");
    server.send(request).expect_error(411, "MissingContentLengthHeader");
}

#[test]
fn data_service_versions_up_to_three_are_accepted_and_absence_is_three() {
    let server = with_entity();
    for version in ["1.0", "2.0", "3.0", "3.0;", "3.0;NetFx"] {
        server.send(Request::get("/Tables").header("DataServiceVersion", version)).expect(200);
        let request = Request::get("/Tables").without("DataServiceVersion");
        server.send(request.header("MaxDataServiceVersion", version)).expect(200);
    }
    let response = server.send(Request::get("/Tables").without("DataServiceVersion")).expect(200);
    assert_eq!(response.header("DataServiceVersion"), None, "only batch parts carry it");
    for header in ["DataServiceVersion", "MaxDataServiceVersion"] {
        server.send(Request::get("/Tables").header(header, "4.0")).expect_error(400, "InvalidInput");
    }
}

#[test]
fn responses_are_never_compressed() {
    let server = with_entity();
    let response =
        server.send(Request::get("/mytable()").header("Accept-Encoding", "gzip, deflate, br")).expect(200);
    assert_eq!(response.header("Content-Encoding"), None);
    response.json();
}

#[test]
fn bodies_have_no_byte_order_mark() {
    let server = with_entity();
    for request in reads() {
        let response = server.send(request.header("Accept-Charset", "iso-8859-1")).expect(200);
        assert_eq!(response.body[0], b'{');
    }
}
