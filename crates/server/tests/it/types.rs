//! The eight property types at three metadata levels (§4.1 to §4.3), type inference, text forms and extreme values.

use testkit::{Request, TestServer, entity_json, entity_path};

/// The part of the entity's JSON after `Timestamp`, at this metadata level.
fn custom(server: &TestServer, row: &str, level: &str) -> String {
    let accept = format!("application/json;odata={level}");
    let response =
        server.send(Request::get(&entity_path("mytable", "p", row)).header("Accept", &accept)).expect(200);
    let (_, after) = response.text().split_once("\"Timestamp\":\"").unwrap_or_else(|| panic!("{response:?}"));
    let (_, members) = after.split_once('"').unwrap();
    members.strip_suffix('}').unwrap().trim_start_matches(',').to_owned()
}

/// Each call inserts members and compares what comes back at the three levels. For custom properties full equals
/// minimal.
struct Case<'a> {
    server: &'a TestServer,
    row: std::cell::Cell<u32>,
}

impl Case<'_> {
    #[track_caller]
    fn check(&self, input: &str, minimal: &str, none: &str) {
        self.row.set(self.row.get() + 1);
        let row = self.row.get().to_string();
        let body = entity_json("p", &row, input);
        let response = self.server.send(Request::post("/mytable").json(&body));
        assert_eq!(response.status, 201, "{input}\n{response:?}");
        assert_eq!(custom(self.server, &row, "minimalmetadata"), minimal, "{input} at minimal");
        assert_eq!(custom(self.server, &row, "nometadata"), none, "{input} at none");
        assert_eq!(custom(self.server, &row, "fullmetadata"), minimal, "{input} at full");
    }

    /// A value that comes back the same at every level, without annotation.
    #[track_caller]
    fn plain(&self, input: &str, output: &str) {
        self.check(&format!("\"x\":{input}"), &format!("\"x\":{output}"), &format!("\"x\":{output}"));
    }

    /// A value sent with a type, and returned with it at minimal and full.
    #[track_caller]
    fn typed(&self, edm: &str, input: &str, output: &str) {
        let sent = format!("\"x\":{input},\"x@odata.type\":\"{edm}\"");
        self.check(&sent, &format!("\"x@odata.type\":\"{edm}\",\"x\":{output}"), &format!("\"x\":{output}"));
    }

    /// A value sent with a type that is returned without one.
    #[track_caller]
    fn redundant(&self, edm: &str, input: &str, output: &str) {
        let sent = format!("\"x\":{input},\"x@odata.type\":\"{edm}\"");
        self.check(&sent, &format!("\"x\":{output}"), &format!("\"x\":{output}"));
    }
}

fn cases(server: &TestServer) -> Case<'_> {
    Case { server, row: std::cell::Cell::new(0) }
}

#[test]
fn strings_come_back_as_they_were() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    case.plain(r#""""#, r#""""#);
    case.plain(r#""text""#, r#""text""#);
    case.plain(r#""a\"b\\c""#, r#""a\"b\\c""#);
    case.plain(r#""2020-01-01T00:00:00Z""#, r#""2020-01-01T00:00:00Z""#);
    case.plain(r#""c9da6455-213d-42c9-9a79-3e9149a57833""#, r#""c9da6455-213d-42c9-9a79-3e9149a57833""#);
    case.plain(r#""123""#, r#""123""#);
    case.plain(r#""NaN""#, r#""NaN""#);
    case.redundant("Edm.String", r#""text""#, r#""text""#);
}

#[test]
fn any_text_survives_whatever_way_it_was_escaped() {
    let server = TestServer::with_table("mytable");
    for (row, (sent, text)) in [
        (r#""\u00fc\u65e5\ud83d\ude00""#, "ü日😀"),
        ("\"ü日😀\"", "ü日😀"),
        (r#""line\nfeed\ttab\r\u0000nul\u001f""#, "line\nfeed\ttab\r\0nul\u{1f}"),
        (r#""\/slash\b\f""#, "/slash\u{8}\u{c}"),
        ("\"\u{7f}\u{80}\u{2028}\u{feff}\u{ffff}\"", "\u{7f}\u{80}\u{2028}\u{feff}\u{ffff}"),
        (r#""<script>'&amp;+%20""#, "<script>'&amp;+%20"),
    ]
    .into_iter()
    .enumerate()
    {
        let row = row.to_string();
        let response = server.insert("mytable", "p", &row, &format!("\"x\":{sent}"));
        assert_eq!(response.json()["x"], text);
        assert_eq!(server.get("mytable", "p", &row).json()["x"], text);
    }
}

#[test]
fn whole_numbers_are_int32_without_annotation() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    for text in ["0", "39", "-1", "2147483647", "-2147483648"] {
        case.plain(text, text);
        case.redundant("Edm.Int32", text, text);
    }
    case.plain("-0", "0");
}

#[test]
fn whole_numbers_beyond_int32_become_doubles() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    case.plain("2147483648", "2147483648.0");
    case.plain("-2147483649", "-2147483649.0");
    case.plain("123456789012345", "123456789012345.0");
    case.plain("1000000000000000", "1E+15");
}

#[test]
fn int64_is_a_string_with_its_type() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    for text in ["0", "933311100", "-1", "9223372036854775807", "-9223372036854775808"] {
        case.typed("Edm.Int64", &format!("\"{text}\""), &format!("\"{text}\""));
    }
    case.typed("Edm.Int64", "9223372036854775807", "\"9223372036854775807\"");
    case.typed("Edm.Int64", "5", "\"5\"");
}

#[test]
fn doubles_have_a_point_or_an_exponent() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    for (input, output) in [
        ("1.0", "1.0"),
        ("3.1", "3.1"),
        ("-3.25", "-3.25"),
        ("0.0", "0.0"),
        ("10.0", "10.0"),
        ("4.81516", "4.81516"),
        ("123456789012345.12", "123456789012345.12"),
        ("100000000000000.0", "100000000000000.0"),
        ("1e3", "1000.0"),
        ("1E+2", "100.0"),
        ("1.0e15", "1E+15"),
        ("1.5e300", "1.5E+300"),
        ("0.0001", "0.0001"),
        ("0.00001", "1E-05"),
        ("1.25e-7", "1.25E-07"),
        ("1.7976931348623157e308", "1.7976931348623157E+308"),
        ("-1.7976931348623157E+308", "-1.7976931348623157E+308"),
        ("2.2250738585072014E-308", "2.2250738585072014E-308"),
    ] {
        case.plain(input, output);
    }
}

#[test]
fn the_smallest_double_survives() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""x":4.9406564584124654E-324"#);
    let text = custom(&server, "r", "minimalmetadata");
    let number = text.strip_prefix("\"x\":").unwrap();
    assert!(number.contains('E'), "{number}");
    assert_eq!(number.parse::<f64>().unwrap(), f64::from_bits(1));
}

#[test]
fn annotated_doubles_may_be_whole_or_text() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    case.redundant("Edm.Double", "5", "5.0");
    case.redundant("Edm.Double", "3.5", "3.5");
    case.redundant("Edm.Double", "-2147483649", "-2147483649.0");
    case.redundant("Edm.Double", "\"3.5\"", "3.5");
    case.redundant("Edm.Double", "\"7\"", "7.0");
    case.typed("Edm.Double", "\"NaN\"", "\"NaN\"");
    case.typed("Edm.Double", "\"Infinity\"", "\"Infinity\"");
    case.typed("Edm.Double", "\"-Infinity\"", "\"-Infinity\"");
}

#[test]
fn booleans_are_booleans() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    case.plain("true", "true");
    case.plain("false", "false");
    case.redundant("Edm.Boolean", "true", "true");
}

#[test]
fn dates_are_utc_with_trailing_zeros_trimmed() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    for (input, output) in [
        ("2020-01-01T01:02:00Z", "2020-01-01T01:02:00Z"),
        ("2012-11-10T03:04:05.2Z", "2012-11-10T03:04:05.2Z"),
        ("2012-11-10T03:04:05.200Z", "2012-11-10T03:04:05.2Z"),
        ("2012-11-10T03:04:05.0000000Z", "2012-11-10T03:04:05Z"),
        ("2012-11-10T03:04:05.1234567Z", "2012-11-10T03:04:05.1234567Z"),
        ("2012-11-10T03:04:05.0000001Z", "2012-11-10T03:04:05.0000001Z"),
        ("2012-11-10T03:04:05", "2012-11-10T03:04:05Z"),
        ("2012-11-10T03:04:05.25", "2012-11-10T03:04:05.25Z"),
        ("2012-11-10T03:04:05+02:00", "2012-11-10T01:04:05Z"),
        ("2012-11-10T23:04:05-02:30", "2012-11-11T01:34:05Z"),
        ("2020-02-29T00:00:00Z", "2020-02-29T00:00:00Z"),
        ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
    ] {
        case.typed("Edm.DateTime", &format!("\"{input}\""), &format!("\"{output}\""));
    }
}

#[test]
fn dates_before_1601_are_out_of_range() {
    let server = TestServer::with_table("mytable");
    let check = |date: &str, shown: &str| {
        let body =
            entity_json("p", "r", &format!("\"When\":\"{date}\",\"When@odata.type\":\"Edm.DateTime\""));
        let message = format!("The 'When' parameter of value '{shown}' is out of range.");
        server.send(Request::post("/mytable").json(&body)).expect_message(400, "OutOfRangeInput", &message);
    };
    check("0001-01-01T00:00:00Z", "01/01/0001 00:00:00");
    check("1600-12-31T23:59:59.9999999Z", "12/31/1600 23:59:59");
    check("1601-01-01T00:00:00+01:00", "12/31/1600 23:00:00");
}

#[test]
fn guids_come_back_hyphenated_in_lower_case() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    let written = "\"c9da6455-213d-42c9-9a79-3e9149a57833\"";
    for text in [
        "c9da6455-213d-42c9-9a79-3e9149a57833",
        "C9DA6455-213D-42C9-9A79-3E9149A57833",
        "c9da6455213d42c99a793e9149a57833",
        "{c9da6455-213d-42c9-9a79-3e9149a57833}",
    ] {
        case.typed("Edm.Guid", &format!("\"{text}\""), written);
    }
}

#[test]
fn binary_is_padded_base64() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    for text in ["", "AA==", "AAE=", "AAEC", "YmluYXJ5", "+/+/", "//79/A=="] {
        case.typed("Edm.Binary", &format!("\"{text}\""), &format!("\"{text}\""));
    }
}

#[test]
fn an_annotation_may_stand_before_or_after_or_alone() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    let minimal = r#""a@odata.type":"Edm.Int64","a":"1","b":2"#;
    let none = r#""a":"1","b":2"#;
    case.check(r#""a@odata.type":"Edm.Int64","a":"1","b":2"#, minimal, none);
    case.check(r#""a":"1","a@odata.type":"Edm.Int64","b":2"#, minimal, none);
    case.check(r#""a":"1","b":2,"a@odata.type":"Edm.Int64""#, minimal, none);
    case.check(r#""lonely@odata.type":"Edm.Int64","b":2"#, r#""b":2"#, r#""b":2"#);
    case.check(r#""x":null,"x@odata.type":"Edm.Guid","b":2"#, r#""b":2"#, r#""b":2"#);
    case.check(r#""PartitionKey@odata.type":"Edm.String","b":2"#, r#""b":2"#, r#""b":2"#);
}

#[test]
fn odata_members_of_a_request_are_ignored() {
    let server = TestServer::with_table("mytable");
    let case = cases(&server);
    case.check(
        r#""odata.etag":"W/\"x\"","odata.type":"a.b","odata.id":"http://x","odata.editLink":"y","odata.metadata":"z","b":2"#,
        r#""b":2"#,
        r#""b":2"#,
    );
    case.check(r#""Timestamp@odata.type":"Edm.DateTime","b":2"#, r#""b":2"#, r#""b":2"#);
}

#[test]
fn what_was_read_can_be_sent_back() {
    let server = TestServer::with_table("mytable");
    let members = r#""i":"5","i@odata.type":"Edm.Int64","d":1.0,"g":"c9da6455-213d-42c9-9a79-3e9149a57833","g@odata.type":"Edm.Guid""#;
    server.insert("mytable", "p", "r", members);
    let accept = "application/json;odata=fullmetadata";
    let before = server.send(Request::get("/mytable(PartitionKey='p',RowKey='r')").header("Accept", accept));
    server.send(Request::put("/mytable(PartitionKey='p',RowKey='r')").json(before.text())).expect(204);
    let after = server.send(Request::get("/mytable(PartitionKey='p',RowKey='r')").header("Accept", accept));
    let (mut before, mut after) = (before.json(), after.json());
    for volatile in ["Timestamp", "odata.etag"] {
        before.as_object_mut().unwrap().remove(volatile);
        after.as_object_mut().unwrap().remove(volatile);
    }
    assert_eq!(before, after);
}

#[test]
fn a_value_that_does_not_fit_its_type_is_refused() {
    let server = TestServer::with_table("mytable");
    for (edm, value) in [
        ("Edm.Int64", r#""abc""#),
        ("Edm.Int64", r#""9223372036854775808""#),
        ("Edm.Int64", r#""1.5""#),
        ("Edm.Int64", r#""""#),
        ("Edm.Int64", "true"),
        ("Edm.Int32", "2147483648"),
        ("Edm.Int32", "1.5"),
        ("Edm.Int32", r#""x""#),
        ("Edm.Double", r#""x""#),
        ("Edm.Double", "true"),
        ("Edm.Boolean", r#""yes""#),
        ("Edm.Boolean", "7"),
        ("Edm.Guid", r#""zz""#),
        ("Edm.Guid", "5"),
        ("Edm.DateTime", r#""yesterday""#),
        ("Edm.DateTime", r#""2020-13-01T00:00:00Z""#),
        ("Edm.DateTime", r#""2021-02-29T00:00:00Z""#),
        ("Edm.DateTime", "5"),
        ("Edm.Binary", r#""!!""#),
        ("Edm.Binary", r#""A""#),
        ("Edm.Binary", "5"),
        ("Edm.String", "5"),
        ("Edm.String", "true"),
        ("Edm.Decimal", r#""1.5""#),
        ("Edm.Single", "1.5"),
        ("Edm.DateTimeOffset", r#""2020-01-01T00:00:00Z""#),
        ("Edm.Nonsense", r#""x""#),
        ("edm.int64", r#""5""#),
    ] {
        let body = entity_json("p", "r", &format!("\"x\":{value},\"x@odata.type\":\"{edm}\""));
        let response = server.send(Request::post("/mytable").json(&body));
        assert_eq!(
            (response.status, response.error_code().as_str()),
            (400, "InvalidInput"),
            "{edm} {value}\n{response:?}"
        );
    }
    server.get("mytable", "p", "r").expect(404);
}

#[test]
fn full_metadata_names_type_id_and_link() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""age":"39","age@odata.type":"Edm.Int64","sex":"male""#);
    let accept = "application/json;odata=fullmetadata";
    let response =
        server.send(Request::get("/mytable(PartitionKey='p',RowKey='r')").header("Accept", accept));
    let expected = r#"{"odata.metadata":"http://HOST/devstoreaccount1/$metadata#mytable/@Element","odata.type":"devstoreaccount1.mytable","odata.id":"http://HOST/devstoreaccount1/mytable(PartitionKey='p',RowKey='r')","odata.etag":"W/\"datetime'TIME'\"","odata.editLink":"mytable(PartitionKey='p',RowKey='r')","PartitionKey":"p","RowKey":"r","Timestamp@odata.type":"Edm.DateTime","Timestamp":"TIME","age@odata.type":"Edm.Int64","age":"39","sex":"male"}"#;
    assert_eq!(testkit::mask(response.text()), expected);
}

#[test]
fn no_metadata_has_no_annotation_at_all() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""age":"39","age@odata.type":"Edm.Int64""#);
    let accept = "application/json;odata=nometadata";
    let response =
        server.send(Request::get("/mytable(PartitionKey='p',RowKey='r')").header("Accept", accept));
    let expected = r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"TIME","age":"39"}"#;
    assert_eq!(testkit::mask(response.text()), expected);
    let response = server.send(Request::get("/mytable()").header("Accept", accept));
    assert_eq!(testkit::mask(response.text()), format!("{{\"value\":[{expected}]}}"));
}
