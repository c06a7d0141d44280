//! Service properties and stats (§3.1 to §3.3, §10.1): the documents byte for byte, partial updates, differences
//! between versions, limits and errors. Properties survive a restart.

use std::sync::Arc;

use engine::env::SystemClock;
use engine_local::{LocalEngine, LocalOptions};
use testkit::{EMULATOR_KEY, Request, Response, Style, TempDir, TestServer};

const TARGET: &str = "/?restype=service&comp=properties";
const HEAD: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";
const LOGGING_OFF: &str = "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>";
const LOGGING_ON: &str = "<Logging><Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>true</Delete><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging>";
const METRICS_DEFAULT: &str = "<Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>";
const METRICS_OFF: &str = "<Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
const RULE: &str = "<CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://www.fabrikam.com,http://www.contoso.com</AllowedOrigins><AllowedHeaders>x-ms-meta-target*,x-ms-meta-customheader</AllowedHeaders><ExposedHeaders>x-ms-meta-data*,x-ms-meta-customheader</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>";

fn get() -> Request {
    Request::get(TARGET).header("Accept", "application/xml")
}

fn set(elements: &str) -> Request {
    let body = format!(
        "<?xml version='1.0' encoding='utf-8'?>\n<StorageServiceProperties>{elements}</StorageServiceProperties>"
    );
    Request::put(TARGET).header("Accept", "application/xml").body("application/xml", body)
}

fn properties(logging: &str, hour: &str, minute: &str, cors: &str) -> String {
    let cors = if cors.is_empty() { "<Cors />".to_owned() } else { format!("<Cors>{cors}</Cors>") };
    format!(
        "{HEAD}<StorageServiceProperties>{logging}<HourMetrics>{hour}</HourMetrics><MinuteMetrics>{minute}</MinuteMetrics>{cors}</StorageServiceProperties>"
    )
}

#[track_caller]
fn check_get(server: &TestServer, expected: &str) {
    let response = server.send(get()).expect(200);
    assert_eq!(response.text(), expected);
    check_headers(&response);
    assert_eq!(response.header("Content-Type"), Some("application/xml"));
}

#[track_caller]
fn check_set(server: &TestServer, elements: &str) {
    let response = server.send(set(elements)).expect(202);
    assert_eq!(response.body, b"");
    assert_eq!(response.header("Content-Type"), None);
    check_headers(&response);
}

#[track_caller]
fn check_headers(response: &Response) {
    for absent in ["Cache-Control", "X-Content-Type-Options", "x-ms-error-code", "ETag"] {
        assert_eq!(response.header(absent), None, "{absent}");
    }
    assert_eq!(response.header("x-ms-version"), Some("2019-02-02"));
    assert_eq!(response.header("Server"), Some("Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"));
}

/// The properties are refused with a front-end error, and nothing changes.
#[track_caller]
fn check_refused(server: &TestServer, elements: &str, code: &str) {
    let before = server.send(get()).body;
    let response = server.send(set(elements)).expect_error(400, code);
    let message = match code {
        "InvalidXmlDocument" => "XML specified is not syntactically valid.",
        _ => "The value for one of the XML nodes is not in the correct format.",
    };
    assert_eq!((response.error_message().as_str(), response.reason.as_str()), (message, message));
    assert_eq!(response.header("x-ms-error-code"), Some(code));
    assert_eq!(response.header("Content-Type"), Some("application/xml"));
    assert!(
        response.text().starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error"),
        "{response:?}"
    );
    assert_eq!(server.send(get()).body, before, "{elements}");
}

#[test]
fn a_new_account_has_the_recorded_properties() {
    check_get(&TestServer::start(), &properties(LOGGING_OFF, METRICS_DEFAULT, METRICS_OFF, ""));
}

#[test]
fn what_an_update_leaves_out_stays() {
    let server = TestServer::start();
    check_set(&server, &format!("<Cors>{RULE}</Cors>"));
    check_get(&server, &properties(LOGGING_OFF, METRICS_DEFAULT, METRICS_OFF, RULE));
    check_set(&server, LOGGING_ON);
    check_get(&server, &properties(LOGGING_ON, METRICS_DEFAULT, METRICS_OFF, RULE));
    check_set(&server, &format!("<HourMetrics>{METRICS_OFF}</HourMetrics>"));
    check_get(&server, &properties(LOGGING_ON, METRICS_OFF, METRICS_OFF, RULE));
    check_set(&server, &format!("<MinuteMetrics>{METRICS_DEFAULT}</MinuteMetrics>"));
    check_get(&server, &properties(LOGGING_ON, METRICS_OFF, METRICS_DEFAULT, RULE));
    check_set(&server, "<Cors />");
    check_get(&server, &properties(LOGGING_ON, METRICS_OFF, METRICS_DEFAULT, ""));
    let all = format!(
        "{LOGGING_OFF}<HourMetrics>{METRICS_DEFAULT}</HourMetrics><MinuteMetrics>{METRICS_OFF}</MinuteMetrics><Cors>{RULE}{RULE}</Cors>"
    );
    check_set(&server, &all);
    check_get(&server, &properties(LOGGING_OFF, METRICS_DEFAULT, METRICS_OFF, &RULE.repeat(2)));
}

#[test]
fn what_is_set_can_be_set_again() {
    let server = TestServer::start();
    check_set(&server, &format!("{LOGGING_ON}<Cors>{RULE}</Cors>"));
    let document = server.send(get()).expect(200).body;
    let request = Request::put(TARGET).body("application/xml", document.clone());
    server.send(request).expect(202);
    assert_eq!(server.send(get()).expect(200).body, document, "byte-order mark and all");
}

#[test]
fn elements_may_come_in_any_order() {
    let server = TestServer::start();
    let logging = "<Logging><RetentionPolicy><Days>5</Days><Enabled>true</Enabled></RetentionPolicy><Delete>true</Delete><Write>false</Write><Read>true</Read><Version>1.0</Version></Logging>";
    let rule = "<CorsRule><MaxAgeInSeconds>500</MaxAgeInSeconds><ExposedHeaders>x-ms-meta-data*,x-ms-meta-customheader</ExposedHeaders><AllowedOrigins>http://www.fabrikam.com,http://www.contoso.com</AllowedOrigins><AllowedHeaders>x-ms-meta-target*,x-ms-meta-customheader</AllowedHeaders><AllowedMethods>GET,PUT</AllowedMethods></CorsRule>";
    check_set(&server, &format!("<Cors>\n  {rule}\n</Cors>\n{logging}"));
    let document = server.send(get()).expect(200);
    assert!(document.text().contains(LOGGING_ON), "{document:?}");
    for leaf in ["<AllowedMethods>GET,PUT<", "<MaxAgeInSeconds>500<", "<ExposedHeaders>x-ms-meta-data*,"] {
        assert!(document.text().contains(leaf), "{document:?}");
    }
}

#[test]
fn before_2013_there_were_logging_and_metrics() {
    let server = TestServer::start();
    let old = |request: Request| server.send(request.header("x-ms-version", "2012-02-12"));
    let metrics = format!("<Metrics>{METRICS_DEFAULT}</Metrics>");
    let expected =
        format!("{HEAD}<StorageServiceProperties>{LOGGING_OFF}{metrics}</StorageServiceProperties>");
    assert_eq!(old(get()).expect(200).text(), expected);
    // This version requires both elements and knows no others.
    for elements in [
        LOGGING_ON,
        &metrics,
        "",
        &format!("{LOGGING_ON}<HourMetrics>{METRICS_OFF}</HourMetrics>"),
        &format!("{LOGGING_ON}{metrics}<MinuteMetrics>{METRICS_OFF}</MinuteMetrics>"),
        &format!("{LOGGING_ON}{metrics}<Cors />"),
    ] {
        old(set(elements)).expect_error(400, "InvalidXmlDocument");
    }
    // Settings that this version does not know stay as they are.
    check_set(&server, &format!("<MinuteMetrics>{METRICS_DEFAULT}</MinuteMetrics><Cors>{RULE}</Cors>"));
    old(set(&format!("{LOGGING_ON}<Metrics>{METRICS_OFF}</Metrics>"))).expect(202);
    check_get(&server, &properties(LOGGING_ON, METRICS_OFF, METRICS_DEFAULT, RULE));
    check_refused(&server, &format!("{LOGGING_ON}<Metrics>{METRICS_OFF}</Metrics>"), "InvalidXmlDocument");
}

#[test]
fn an_element_that_is_there_must_be_complete() {
    let server = TestServer::start();
    for part in ["Version", "Read", "Write", "Delete", "Enabled", "Days"] {
        let start = LOGGING_ON.find(&format!("<{part}>")).unwrap();
        let end_tag = format!("</{part}>");
        let end = LOGGING_ON.find(&end_tag).unwrap() + end_tag.len();
        let without = format!("{}{}", &LOGGING_ON[..start], &LOGGING_ON[end..]);
        check_refused(&server, &without, "InvalidXmlDocument");
        let twice = format!("{}{}", &LOGGING_ON[..end], &LOGGING_ON[start..]);
        check_refused(&server, &twice, "InvalidXmlDocument");
    }
    for field in ["AllowedMethods", "AllowedOrigins", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds"] {
        check_refused(
            &server,
            &format!("<Cors>{}</Cors>", RULE.replace(field, "Other")),
            "InvalidXmlDocument",
        );
    }
    let unclear = METRICS_DEFAULT.replace("<IncludeAPIs>true</IncludeAPIs>", "");
    check_refused(&server, &format!("<HourMetrics>{unclear}</HourMetrics>"), "InvalidXmlDocument");
    for elements in [
        "",
        "x",
        "<Logging />",
        "<HourMetrics />",
        "<Cors><Other /></Cors>",
        "<Cors><CorsRule /></Cors>",
        "<logging />",
        "<DefaultServiceVersion>2019-02-02</DefaultServiceVersion>",
        "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>",
        "<Cors /><Cors />",
        "</StorageServiceProperties><StorageServiceProperties>",
    ] {
        check_refused(&server, elements, "InvalidXmlDocument");
    }
    for body in ["", "x", "<", "<StorageServiceProperties>", "<Other />", "<?xml version='1.0'?>", "\u{0}"] {
        let request = Request::put(TARGET).body("application/xml", body).header("Accept", "application/xml");
        server.send(request).expect_error(400, "InvalidXmlDocument");
    }
}

#[test]
fn leaves_have_their_limits() {
    let server = TestServer::start();
    let days = |text: &str| LOGGING_ON.replace(">5<", &format!(">{text}<"));
    for good in ["1", "7", "365"] {
        check_set(&server, &days(good));
    }
    for bad in ["0", "366", "-1", "100000"] {
        check_refused(&server, &days(bad), "InvalidXmlDocument");
    }
    for bad in ["", "x", "5.5"] {
        check_refused(&server, &days(bad), "InvalidXmlNodeValue");
    }
    for bad in ["yes", "", "1"] {
        let flag = LOGGING_ON.replace("<Read>true", &format!("<Read>{bad}"));
        check_refused(&server, &flag, "InvalidXmlNodeValue");
    }
    check_refused(&server, &LOGGING_ON.replace(">1.0<", ">2.0<"), "InvalidXmlNodeValue");
    check_set(&server, "<Cors />");
    check_set(&server, &format!("<Cors>{}</Cors>", RULE.repeat(5)));
    check_refused(&server, &format!("<Cors>{}</Cors>", RULE.repeat(6)), "InvalidXmlDocument");
}

/// A CORS rule in which the element `name` has this text.
fn rule(name: &str, text: &str) -> String {
    let usual = [
        ("AllowedMethods", "GET"),
        ("AllowedOrigins", "*"),
        ("AllowedHeaders", "*"),
        ("ExposedHeaders", "*"),
        ("MaxAgeInSeconds", "1"),
    ];
    let field = |(field, usual): &(&str, &str)| {
        format!("<{field}>{}</{field}>", if *field == name { text } else { usual })
    };
    format!("<Cors><CorsRule>{}</CorsRule></Cors>", usual.iter().map(field).collect::<String>())
}

#[test]
fn rules_have_their_limits() {
    let server = TestServer::start();
    let many =
        |count: usize, end: &str| (0..count).map(|at| format!("a{at}{end}")).collect::<Vec<_>>().join(",");
    for (name, text) in [
        ("AllowedOrigins", "*"),
        ("AllowedOrigins", "http://*.contoso.com"),
        ("AllowedOrigins", &many(64, ".com")),
        ("AllowedOrigins", &"x".repeat(256)),
        ("AllowedMethods", "DELETE,GET,HEAD,MERGE,POST,OPTIONS,PUT,PATCH"),
        ("MaxAgeInSeconds", "0"),
        ("AllowedHeaders", ""),
        ("ExposedHeaders", ""),
        ("AllowedHeaders", &format!("{},b*,c*", many(64, ""))),
        ("ExposedHeaders", &"x".repeat(256)),
    ] {
        check_set(&server, &rule(name, text));
        let field = if text.is_empty() { format!("<{name} />") } else { format!("<{name}>{text}</{name}>") };
        assert!(server.send(get()).text().contains(&field), "{name} {text}");
    }
    for (name, text) in [
        ("AllowedOrigins", ""),
        ("AllowedOrigins", &many(65, ".com")),
        ("AllowedOrigins", &"x".repeat(257)),
        ("AllowedMethods", ""),
        ("AllowedMethods", "BREW"),
        ("AllowedMethods", "get"),
        ("MaxAgeInSeconds", "-1"),
        ("MaxAgeInSeconds", "soon"),
        ("AllowedHeaders", &many(65, "")),
        ("AllowedHeaders", "a*,b*,c*"),
        ("ExposedHeaders", &many(65, "")),
        ("ExposedHeaders", &"x".repeat(257)),
    ] {
        let response = server.send(set(&rule(name, text)));
        assert_eq!(response.status, 400, "{name} {text}");
        assert!(response.error_code().starts_with("InvalidXml"), "{response:?}");
    }
    // All the text of a rule together may have 2 KiB.
    let long = |last: usize| [vec!["x".repeat(255); 7], vec!["x".repeat(last)]].concat().join(",");
    check_set(&server, &rule("AllowedHeaders", &long(250)));
    check_refused(&server, &rule("AllowedHeaders", &long(255)), "InvalidXmlDocument");
}

#[test]
fn properties_and_stats_know_few_verbs() {
    let server = TestServer::start();
    let message = "The resource doesn't support specified Http Verb.";
    for (method, comp) in [("POST", "properties"), ("DELETE", "properties"), ("PUT", "stats")] {
        let request = Request::new(method, &format!("/?restype=service&comp={comp}"));
        let response = server.send(request.header("Content-Length", "0").header("Accept", "application/xml"));
        let response = response.expect_message(405, "UnsupportedHttpVerb", message);
        assert_eq!(response.header("x-ms-error-code"), Some("UnsupportedHttpVerb"));
    }
    for target in ["/?comp=properties", "/?restype=container&comp=properties", "/?restype=service&comp=other"]
    {
        let request = Request::get(target).header("Accept", "application/xml");
        let message = "Value for one of the query parameters specified in the request URI is invalid.";
        server.send(request).expect_message(400, "InvalidQueryParameterValue", message);
    }
}

#[test]
fn errors_are_json_for_those_who_ask_for_it() {
    let server = TestServer::start();
    let response = server.send(set("<Logging />").header("Accept", "application/json"));
    let response = response.expect_error(400, "InvalidXmlDocument");
    assert_eq!(response.header("Content-Type"), Some("application/json"));
    assert_eq!(response.header("x-ms-error-code"), Some("InvalidXmlDocument"));
    // The document itself is XML, whatever the Accept header asks for.
    let response = server.send(get().header("Accept", "application/json")).expect(200);
    assert_eq!(response.header("Content-Type"), Some("application/xml"));
}

#[test]
fn properties_belong_to_an_account() {
    let accounts = format!("first:{EMULATOR_KEY};second:{EMULATOR_KEY}");
    let server = TestServer::options().accounts(&accounts).start();
    check_set(&server, LOGGING_ON);
    let other = server.send(get().credentials("second", EMULATOR_KEY)).expect(200);
    assert!(other.text().contains(LOGGING_OFF), "{other:?}");
    let host = Style::Host("first.table.core.windows.net".to_owned());
    assert!(server.send(get().style(host)).expect(200).text().contains(LOGGING_ON));
}

#[test]
fn properties_survive_a_restart() {
    let directory = TempDir::new().unwrap();
    let start = || {
        let clock = Arc::new(SystemClock::new());
        let engine = LocalEngine::open(directory.path(), LocalOptions::new(tables::FAMILIES, clock)).unwrap();
        TestServer::options().engine(Arc::new(engine)).start()
    };
    let server = start();
    check_set(&server, &format!("{LOGGING_ON}<Cors>{RULE}</Cors>"));
    drop(server);
    check_get(&start(), &properties(LOGGING_ON, METRICS_DEFAULT, METRICS_OFF, RULE));
}

#[test]
fn the_secondary_shows_properties_and_changes_none() {
    let server = TestServer::start();
    let secondary = |request: Request| server.send(request.path_account("devstoreaccount1-secondary"));
    assert_eq!(secondary(get()).expect(200).body, server.send(get()).body);
    let message = "Write operations are not allowed.";
    secondary(set(LOGGING_ON)).expect_message(403, "InsufficientAccountPermissions", message);
    check_get(&server, &properties(LOGGING_OFF, METRICS_DEFAULT, METRICS_OFF, ""));
}

#[test]
fn stats_are_on_the_secondary_alone() {
    let server = TestServer::start();
    let stats = || Request::get("/?restype=service&comp=stats").header("Accept", "application/xml");
    let in_path = stats().path_account("devstoreaccount1-secondary");
    let in_host = stats().style(Style::Host("devstoreaccount1-secondary.table.core.windows.net".to_owned()));
    for request in [in_path, in_host] {
        let response = server.send(request).expect(200);
        check_headers(&response);
        assert_eq!(response.header("Content-Type"), Some("application/xml"));
        let text = response.text().to_owned();
        let start = format!("{HEAD}<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>");
        let end = "</LastSyncTime></GeoReplication></StorageServiceStats>";
        let time = text.strip_prefix(&start).and_then(|rest| rest.strip_suffix(end));
        let time = time.unwrap_or_else(|| panic!("{text}"));
        assert!(time.len() == "Wed, 21 Jul 2021 22:06:46 GMT".len() && time.ends_with(" GMT"), "{time}");
    }
    let message = "Value for one of the query parameters specified in the request URI is invalid.";
    let response = server.send(stats()).expect_message(400, "InvalidQueryParameterValue", message);
    assert_eq!(response.header("x-ms-error-code"), Some("InvalidQueryParameterValue"));
}

#[test]
fn strangers_see_neither_properties_nor_stats() {
    let server = TestServer::start();
    for target in [TARGET, "/?restype=service&comp=stats", "/mytable?comp=acl"] {
        server.send(Request::get(target).unsigned()).expect_error(404, "ResourceNotFound");
        let request = Request::get(target).header("Authorization", "SharedKey devstoreaccount1:AAAA");
        server.send(request).expect_error(403, "AuthenticationFailed");
    }
}
