//! Get and Set Queue Service Properties, and Get Queue Service Stats (§6).

use testkit::{Queues, Request, Response, TestServer};

const TARGET: &str = "/?restype=service&comp=properties";
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
const LOGGING: &str = "<Logging><Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>true</Delete><RetentionPolicy><Enabled>true</Enabled><Days>3</Days></RetentionPolicy></Logging>";
const NO_METRICS: &str = "<Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
const METRICS: &str = "<Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>365</Days></RetentionPolicy>";
const RULE: &str = "<CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://www.contoso.com</AllowedOrigins><AllowedHeaders>x-ms-meta-*</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>";

#[track_caller]
fn get(queue: &Queues<'_>) -> Response {
    queue.send(Request::get(TARGET)).expect(200)
}

fn set(inside: &str) -> Request {
    Request::put(TARGET).xml(&format!("<StorageServiceProperties>{inside}</StorageServiceProperties>"))
}

#[test]
fn properties_are_shown_in_the_order_of_the_service() {
    let server = TestServer::start();
    let queue = server.queue();
    let off = "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>";
    let hour = format!("<HourMetrics>{NO_METRICS}</HourMetrics>");
    let minute = format!("<MinuteMetrics>{NO_METRICS}</MinuteMetrics>");
    // The order of what is sent is free.
    let done = queue.send(set(&format!("<Cors />{minute}{hour}{off}"))).expect(202);
    assert_eq!((done.required("Content-Length"), done.header("Content-Type")), ("0", None));
    let shown = get(&queue);
    let expected =
        format!("{HEAD}<StorageServiceProperties>{off}{hour}{minute}<Cors /></StorageServiceProperties>");
    assert_eq!(
        shown.text().replace(
            "<Delete>false</Delete><Read>false</Read><Write>false</Write>",
            "<Read>false</Read><Write>false</Write><Delete>false</Delete>"
        ),
        expected
    );
    assert_eq!(
        (shown.required("Content-Type"), shown.required("Cache-Control")),
        ("application/xml", "no-cache")
    );
}

/// §6.1 [wire]: `Version`, `Read`, `Write`, `Delete`, `RetentionPolicy`.
#[test]
fn logging_is_shown_in_the_order_of_the_service() {
    let server = TestServer::start();
    let queue = server.queue();
    queue.send(set(LOGGING)).expect(202);
    assert!(get(&queue).text().contains(LOGGING), "{:?}", get(&queue));
}

#[test]
fn what_is_left_out_keeps_its_value() {
    let server = TestServer::start();
    let queue = server.queue();
    queue.send(set(&format!("{LOGGING}<HourMetrics>{METRICS}</HourMetrics><MinuteMetrics>{METRICS}</MinuteMetrics><Cors>{RULE}</Cors>"))).expect(202);
    let before = get(&queue).text().to_owned();
    // A document that changes nothing is taken for a mistake, as the Table service does.
    queue.send(set("")).expect_error(400, "InvalidXmlDocument");
    assert_eq!(get(&queue).text(), before);
    queue.send(set(&format!("<MinuteMetrics>{NO_METRICS}</MinuteMetrics>"))).expect(202);
    let after = get(&queue).text().to_owned();
    assert!(
        after.contains(&format!(
            "<HourMetrics>{METRICS}</HourMetrics><MinuteMetrics>{NO_METRICS}</MinuteMetrics>"
        )),
        "{after}"
    );
    assert!(after.contains("<CorsRule>"));
    queue.send(set("<Cors />")).expect(202);
    let after = get(&queue).text().to_owned();
    assert!(after.contains("<Cors />") && after.contains("<Days>365</Days>"), "{after}");
}

#[test]
fn nothing_of_the_blob_service_is_shown() {
    let server = TestServer::start();
    let text = get(&server.queue()).text().to_owned();
    for other in ["DefaultServiceVersion", "DeleteRetentionPolicy", "StaticWebsite"] {
        assert!(!text.contains(other), "{text}");
    }
    assert!(text.starts_with("<?xml"));
}

#[test]
fn wrong_documents_are_refused_and_change_nothing() {
    let server = TestServer::start();
    let queue = server.queue();
    let before = get(&queue).text().to_owned();
    let days = |days: &str| LOGGING.replace("<Days>3</Days>", &format!("<Days>{days}</Days>"));
    let without = |part: &str| format!("<Cors>{}</Cors>", RULE.replace(part, ""));
    for bad in [
        format!("<Cors>{}</Cors>", RULE.repeat(6)),
        days("0"),
        days("366"),
        LOGGING.replace("<Days>3</Days>", ""),
        LOGGING.replace("<Read>true</Read>", ""),
        without("<AllowedMethods>GET,PUT</AllowedMethods>"),
        without("<AllowedOrigins>http://www.contoso.com</AllowedOrigins>"),
        without("<AllowedHeaders>x-ms-meta-*</AllowedHeaders>"),
        without("<ExposedHeaders>x-ms-*</ExposedHeaders>"),
        without("<MaxAgeInSeconds>500</MaxAgeInSeconds>"),
        "<Other />".to_owned(),
        "<Cors".to_owned(),
    ] {
        let refused = queue.send(set(&bad)).expect_error(400, "InvalidXmlDocument");
        assert_eq!(refused.error_message(), "XML specified is not syntactically valid.", "{bad}");
        for name in ["LineNumber", "LinePosition", "Reason"] {
            assert_eq!(refused.elements(name).len(), 1, "{name}: {refused:?}");
        }
    }
    assert_eq!(get(&queue).text(), before);
}

#[test]
fn too_many_rules_and_days_are_told_in_the_words_of_the_service() {
    let server = TestServer::start();
    let queue = server.queue();
    let rules = queue.send(set(&format!("<Cors>{}</Cors>", RULE.repeat(6)))).expect(400);
    assert!(
        rules.text().ends_with(
            "</Message><LineNumber>0</LineNumber><LinePosition>0</LinePosition><Reason /></Error>"
        ),
        "{rules:?}"
    );
    let days = queue.send(set(&LOGGING.replace("<Days>3</Days>", "<Days>366</Days>"))).expect(400);
    assert_eq!(
        days.element("Reason"),
        "Retention days must be greater than 0 and less than or equal to 365 days."
    );
}

#[test]
fn five_rules_and_empty_lists_of_headers_are_fine() {
    let server = TestServer::start();
    let queue = server.queue();
    queue.send(set(&format!("<Cors>{}</Cors>", RULE.repeat(5)))).expect(202);
    assert_eq!(get(&queue).text().matches("<CorsRule>").count(), 5);
    let empty = RULE.replace("x-ms-meta-*", "").replace("x-ms-*", "");
    queue.send(set(&format!("<Cors>{empty}</Cors>"))).expect(202);
    let text = get(&queue).text().to_owned();
    assert!(text.contains("<AllowedHeaders />") && text.contains("<ExposedHeaders />"), "{text}");
}

#[test]
fn queues_and_tables_have_their_own_properties() {
    let server = TestServer::start();
    server.queue().send(set(&format!("<Cors>{RULE}</Cors>"))).expect(202);
    let tables = server.send(Request::get(TARGET).header("Accept", "application/xml")).expect(200);
    assert!(!tables.text().contains("<CorsRule>"), "{tables:?}");
}

/// Trap 21.
#[test]
fn the_slash_may_be_left_out() {
    let server = TestServer::start();
    server.queue().send(Request::get("?restype=service&comp=properties")).expect(200);
}

/// §6.3.
#[test]
fn the_secondary_has_statistics_and_the_primary_has_none() {
    let server = TestServer::start();
    let queue = server.queue();
    let stats = || Request::get("/?restype=service&comp=stats");
    let shown = queue.send(stats().path_account("devstoreaccount1-secondary")).expect(200);
    assert_eq!(shown.required("Content-Type"), "application/xml");
    assert_eq!(shown.element("Status"), "live");
    let time = shown.element("LastSyncTime");
    assert!(time.ends_with(" GMT") && time.len() == 29, "{time}");
    let expected = format!(
        "{HEAD}<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>{time}</LastSyncTime></GeoReplication></StorageServiceStats>"
    );
    assert_eq!(shown.text(), expected);
    let refused = queue.send(stats()).expect_error(400, "InvalidQueryParameterValue");
    let found = ["QueryParameterName", "QueryParameterValue", "Reason"].map(|name| refused.element(name));
    assert_eq!(found, ["comp", "stats", ""].map(str::to_owned));
}

#[test]
fn the_secondary_reads_and_never_writes() {
    let server = TestServer::start();
    let queue = server.queue();
    queue.create("abc");
    let message = queue.put("abc", "a");
    let secondary = |request: Request| queue.send(request.path_account("devstoreaccount1-secondary"));
    for target in
        ["/?comp=list", TARGET, "/abc?comp=metadata", "/abc?comp=acl", "/abc/messages?peekonly=true"]
    {
        secondary(Request::get(target)).expect(200);
    }
    for request in [
        Request::put("/abd"),
        Request::delete("/abc"),
        Request::put("/abc?comp=metadata"),
        Request::put("/abc?comp=acl"),
        Request::post("/abc/messages").xml(&testkit::message_xml("b")),
        Request::get("/abc/messages"),
        Request::delete("/abc/messages"),
        message.delete("abc"),
        message.hide("abc", 0),
        set("<Cors />"),
    ] {
        secondary(request).expect_error(403, "InsufficientAccountPermissions");
    }
    assert_eq!(queue.texts("abc"), ["a"]);
}
