//! The published limits (§4.4): each just reached, and just exceeded.

use testkit::{Request, TestServer, entity_json, entity_path};

const TOO_MANY: &str = "The entity contains more properties than allowed. Each entity can include up to 252 properties to \
                        store data. Each entity also has 3 system properties.";
const VALUE_TOO_LARGE: &str = "The property value exceeds the maximum allowed size (64KB). If the property value is a \
                               string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.";

fn insert(partition: &str, row: &str, members: &str) -> Request {
    Request::post("/mytable").json(&entity_json(partition, row, members))
}

fn numbers(count: usize) -> String {
    (0..count).map(|number| format!("\"p{number}\":{number}")).collect::<Vec<_>>().join(",")
}

/// The standard Base64 of `count` zero bytes.
fn zeros(count: usize) -> String {
    let padding = ["", "==", "="][count % 3];
    let digits = (count * 8).div_ceil(6);
    "A".repeat(digits) + padding
}

#[test]
fn an_entity_has_at_most_252_properties_of_its_own() {
    let server = TestServer::with_table("mytable");
    server.send(insert("p", "252", &numbers(252))).expect(201);
    server.send(insert("p", "253", &numbers(253))).expect_message(400, "TooManyProperties", TOO_MANY);
    let path = entity_path("mytable", "p", "x");
    for method in ["PUT", "MERGE"] {
        let request = Request::new(method, &path).json(&format!("{{{}}}", numbers(253)));
        server.send(request).expect_error(400, "TooManyProperties");
    }
    let nulls = format!("{},\"gone\":null,\"Timestamp\":null", numbers(252));
    server.send(insert("p", "nulls", &nulls)).expect(201);
}

#[test]
fn a_merge_may_not_grow_an_entity_beyond_252_properties() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", &numbers(251));
    let path = entity_path("mytable", "p", "r");
    server.send(Request::merge(&path).json(r#"{"p0":"again","q0":1}"#)).expect(204);
    let request = Request::merge(&path).json(r#"{"q1":1}"#);
    server.send(request).expect_message(400, "TooManyProperties", TOO_MANY);
    assert_eq!(server.get("mytable", "p", "r").json().get("q1"), None);
    server.send(Request::merge(&path).json(r#"{"q0":2}"#)).expect(204);
}

#[test]
fn a_property_name_has_at_most_255_characters() {
    let server = TestServer::with_table("mytable");
    let (fits, too_long) = ("n".repeat(255), "n".repeat(256));
    server.send(insert("p", "255", &format!("\"{fits}\":1"))).expect(201);
    let message = "The property name exceeds the maximum allowed length (255).";
    server.send(insert("p", "256", &format!("\"{too_long}\":1"))).expect_message(
        400,
        "PropertyNameTooLong",
        message,
    );
    let wide = "ü".repeat(255);
    server.send(insert("p", "wide", &format!("\"{wide}\":1"))).expect(201);
}

#[test]
fn property_names_are_identifiers() {
    let server = TestServer::with_table("mytable");
    for (row, name) in ["a", "_", "_x", "Abc9", "übung", "日本", "a_b", "x1"].into_iter().enumerate() {
        server.send(insert("good", &row.to_string(), &format!("\"{name}\":1"))).expect(201);
    }
    for name in ["a-b", "a b", "a.b", "1a", "", "a$", "a'b", "-", "a/b", "a+b", "x²", "½"] {
        let request = insert("bad", "r", &format!("\"{name}\":1"));
        let response = server.send(request);
        assert_eq!(response.error_code(), "PropertyNameInvalid", "{name}\n{response:?}");
        assert_eq!(response.error_message(), "The property name is invalid.");
    }
}

#[test]
fn a_string_has_at_most_32768_utf16_units() {
    let server = TestServer::with_table("mytable");
    let check = |row: &str, text: String, fits: bool| {
        let response = server.send(insert("p", row, &format!("\"x\":\"{text}\"")));
        match fits {
            true => assert_eq!(response.status, 201, "{row}"),
            false => drop(response.expect_message(400, "PropertyValueTooLarge", VALUE_TOO_LARGE)),
        }
    };
    check("fits", "x".repeat(32_768), true);
    check("over", "x".repeat(32_769), false);
    check("wide fits", "日".repeat(32_768), true);
    check("wide over", "日".repeat(32_769), false);
    check("emoji fit", "😀".repeat(16_384), true);
    check("emoji over", "😀".repeat(16_385), false);
    check("far over", "x".repeat(65_536), false);
}

#[test]
fn a_binary_has_at_most_65536_bytes() {
    let server = TestServer::with_table("mytable");
    let members = |count: usize| format!("\"x\":\"{}\",\"x@odata.type\":\"Edm.Binary\"", zeros(count));
    server.send(insert("p", "fits", &members(65_536))).expect(201);
    server.send(insert("p", "over", &members(65_537))).expect_message(
        400,
        "PropertyValueTooLarge",
        VALUE_TOO_LARGE,
    );
    server.send(insert("p", "far", &members(131_072))).expect_error(400, "PropertyValueTooLarge");
}

#[test]
fn keys_have_at_most_512_utf16_units() {
    let server = TestServer::with_table("mytable");
    let check = |text: String, fits: bool| {
        for (partition, row) in [(text.as_str(), "r"), ("p", text.as_str())] {
            let response = server.send(insert(partition, row, ""));
            match fits {
                true => {
                    assert_eq!(response.status, 201, "{response:?}");
                    server.get("mytable", partition, row).expect(200);
                }
                false => {
                    response.expect_error(400, "PropertyValueTooLarge");
                    let request = Request::put(&entity_path("mytable", partition, row)).json("{}");
                    server.send(request).expect_error(400, "PropertyValueTooLarge");
                }
            }
        }
    };
    check("x".repeat(512), true);
    check("x".repeat(513), false);
    check("😀".repeat(256), true);
    check("😀".repeat(257), false);
    check("x".repeat(2048), false);
}

/// JSON members that give an entity with partition `p` and a two-digit row this size, by the formula of §4.4.
fn sized(entity_size_bytes: usize) -> String {
    let system = 4 + 2 * 3 + (8 + 2 * "Timestamp".len() + 8);
    let mut left = entity_size_bytes - system;
    let mut members = Vec::new();
    for number in 0.. {
        let name = format!("p{number:02}");
        let overhead = 8 + 2 * name.len() + 4;
        let length = left.saturating_sub(overhead).min(65_536) / 2;
        if length == 0 {
            break;
        }
        members.push(format!("\"{name}\":\"{}\"", "x".repeat(length)));
        left -= overhead + 2 * length;
    }
    members.join(",")
}

#[test]
fn an_entity_has_at_most_one_mebibyte() {
    let server = TestServer::with_table("mytable");
    // The exact formula is not published, so allow a few hundred bytes either way.
    server.send(insert("p", "01", &sized(1_048_576 - 512))).expect(201);
    let message = "The entity is larger than the maximum allowed size (1MB).";
    server.send(insert("p", "02", &sized(1_048_576 + 512))).expect_message(400, "EntityTooLarge", message);
    let request =
        Request::put(&entity_path("mytable", "p", "02")).json(&format!("{{{}}}", sized(1_048_576 + 512)));
    server.send(request).expect_error(400, "EntityTooLarge");
}

#[test]
fn a_merge_may_not_grow_an_entity_beyond_one_mebibyte() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "01", &sized(1_048_576 - 2048));
    let path = entity_path("mytable", "p", "01");
    let request = Request::merge(&path).json(&format!("{{\"extra\":\"{}\"}}", "y".repeat(2048)));
    server.send(request).expect_error(400, "EntityTooLarge");
    assert_eq!(server.get("mytable", "p", "01").json().get("extra"), None);
    server.send(Request::merge(&path).json(r#"{"extra":"small"}"#)).expect(204);
}

#[test]
fn a_body_has_at_most_four_mebibytes() {
    let server = TestServer::with_table("mytable");
    let padded = |row: &str, length: usize| {
        let mut json = entity_json("p", row, "");
        json.push_str(&" ".repeat(length - json.len()));
        Request::post("/mytable").json(&json)
    };
    server.send(padded("fits", 4 << 20)).expect(201);
    let message = "The request body is too large and exceeds the maximum permissible limit.";
    server.send(padded("over", (4 << 20) + 1)).expect_message(413, "RequestBodyTooLarge", message);
    server.get("mytable", "p", "over").expect(404);
}

#[test]
fn the_url_may_be_as_long_as_two_full_keys_need() {
    let server = TestServer::with_table("mytable");
    let wide = "日".repeat(512);
    server.insert("mytable", &wide, &wide, r#""x":1"#);
    // In the URL each key has 512 characters of nine bytes.
    server.get("mytable", &wide, &wide).expect(200);
    let filter = format!("PartitionKey eq '{wide}' and RowKey eq '{wide}' and (x eq 1 or y eq '{wide}')");
    let response = server.send(Request::get("/mytable()").query("$filter", &filter)).expect(200);
    assert_eq!(response.json()["value"].as_array().unwrap().len(), 1);
}
