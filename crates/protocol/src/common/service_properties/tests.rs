//! Properties that are read and written back, and bodies with one mistake each.

use super::super::xml::hostile::{check_refusal, mutations, truncations};
use super::*;
use crate::ErrorCode;
use crate::common::DateTime;
use ErrorCode::{InvalidXmlDocument, InvalidXmlNodeValue};

const HEAD: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";
const NEW: &str = "2019-02-02";
const OLD: &str = "2012-02-12";

const LOGGING: &str = "<Logging><Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>true</Delete><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging>";
const RULE: &str = "<CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://www.fabrikam.com,http://*.contoso.com</AllowedOrigins><AllowedHeaders>x-ms-meta-target*,x-ms-meta-customheader</AllowedHeaders><ExposedHeaders>x-ms-meta-data*,x-ms-meta-customheader</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>";

fn document(elements: &str) -> String {
    format!("<StorageServiceProperties>{elements}</StorageServiceProperties>")
}

fn text(document: Vec<u8>) -> String {
    String::from_utf8(document).unwrap()
}

fn metrics(name: &str, inside: &str) -> String {
    format!("<{name}><Version>1.0</Version>{inside}</{name}>")
}

/// Reads the element alone, applies it to an account, and looks for it in the account's document.
#[track_caller]
fn check(element: &str, expected: Result<&str, ErrorCode>) {
    let found = read_update(document(element).as_bytes(), NEW).map_err(|error| error.code);
    match (found, expected) {
        (Ok(update), Ok(expected)) => {
            let mut properties = ServiceProperties::default();
            properties.apply(update);
            let written = text(properties.write(NEW));
            assert!(written.contains(expected), "{written}\ndoes not contain\n{expected}");
            assert_eq!(ServiceProperties::from_stored(&properties.to_stored()), Some(properties));
        }
        (found, expected) => assert_eq!(found.err(), expected.err(), "{element}"),
    }
}

#[test]
fn a_new_account_is_written_byte_for_byte() {
    let expected = "<StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>";
    assert_eq!(text(ServiceProperties::default().write(NEW)), format!("{HEAD}{expected}"));
    assert_eq!(text(ServiceProperties::default().write("2013-08-15")), format!("{HEAD}{expected}"));
}

#[test]
fn old_versions_have_logging_and_metrics_and_need_both() {
    let expected = "<StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><Metrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Metrics></StorageServiceProperties>";
    assert_eq!(text(ServiceProperties::default().write(OLD)), format!("{HEAD}{expected}"));

    let off = "<Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
    let both = document(&[LOGGING, &metrics("Metrics", off)].concat());
    let update = read_update(both.as_bytes(), OLD).unwrap();
    assert!(update.logging.as_ref().is_some_and(|logging| logging.read && logging.retention_days == Some(5)));
    assert_eq!(update.hour_metrics, Some(Metrics::default()));
    assert_eq!((&update.minute_metrics, &update.cors), (&None, &None));
    assert_eq!(read_update(both.as_bytes(), NEW).unwrap_err().code, InvalidXmlDocument);

    for elements in [
        String::new(),
        LOGGING.to_owned(),
        metrics("Metrics", off),
        [LOGGING, &metrics("HourMetrics", off)].concat(),
        [LOGGING, &metrics("Metrics", off), &metrics("MinuteMetrics", off)].concat(),
        [LOGGING, &metrics("Metrics", off), "<Cors />"].concat(),
    ] {
        let error = read_update(document(&elements).as_bytes(), OLD).unwrap_err();
        assert_eq!(error.code, InvalidXmlDocument, "{elements}");
    }
}

#[test]
fn what_an_update_leaves_out_stays() {
    let mut properties = ServiceProperties::default();
    let mut set = |elements: &str| {
        properties.apply(read_update(document(elements).as_bytes(), NEW).unwrap());
        properties.clone()
    };
    let new = ServiceProperties::default();
    let after = set(&format!("<Cors>{RULE}</Cors>"));
    assert_eq!((after.cors.len(), &after.logging, &after.hour_metrics), (1, &new.logging, &new.hour_metrics));
    let after = set(LOGGING);
    assert!(after.logging.delete && after.cors.len() == 1 && after.hour_metrics == new.hour_metrics);
    let on = "<Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
    let after = set(&metrics("MinuteMetrics", on));
    assert_eq!(after.minute_metrics, Metrics { level: MetricsLevel::Service, retention_days: None });
    assert!(after.logging.delete && after.cors.len() == 1 && after.hour_metrics == new.hour_metrics);
    let after = set("<Cors />");
    assert!(after.logging.delete && after.cors.is_empty());
    assert_eq!(ServiceProperties::from_stored(&after.to_stored()), Some(after));
    check("", Err(InvalidXmlDocument));
}

#[test]
fn elements_may_come_in_any_order_but_once_and_complete() {
    let shuffled = "<Logging><RetentionPolicy><Days>5</Days><Enabled> True </Enabled></RetentionPolicy><Delete>true</Delete><Write>False</Write><Read>TRUE</Read>\n <Version>1.0</Version></Logging>";
    check(shuffled, Ok(LOGGING));
    check(&[LOGGING, LOGGING].concat(), Err(InvalidXmlDocument));
    for part in [
        "<Version>1.0</Version>",
        "<Read>true</Read>",
        "<Write>false</Write>",
        "<Delete>true</Delete>",
        "<RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy>",
        "<Enabled>true</Enabled>",
        "<Days>5</Days>",
    ] {
        check(&LOGGING.replace(part, ""), Err(InvalidXmlDocument));
        check(&LOGGING.replace(part, &[part, part].concat()), Err(InvalidXmlDocument));
        check(&LOGGING.replace(part, &[part, "<Other/>"].concat()), Err(InvalidXmlDocument));
        check(&LOGGING.replace(part, &[part, "x"].concat()), Err(InvalidXmlDocument));
    }
    for element in [
        "<Logging />",
        "<HourMetrics />",
        "<MinuteMetrics />",
        "<DefaultServiceVersion>2013-08-15</DefaultServiceVersion>",
        "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>",
        "<logging />",
        "x",
    ] {
        check(element, Err(InvalidXmlDocument));
    }
}

#[test]
fn leaves_have_types() {
    for (old, new, expected) in [
        (">true</Read>", ">yes</Read>", InvalidXmlNodeValue),
        (">true</Read>", ">1</Read>", InvalidXmlNodeValue),
        (">true</Read>", "></Read>", InvalidXmlNodeValue),
        (">true</Read>", "><a/></Read>", InvalidXmlDocument),
        (">1.0<", ">2.0<", InvalidXmlNodeValue),
        (">1.0<", "><", InvalidXmlNodeValue),
        (">5<", ">five<", InvalidXmlNodeValue),
        (">5<", ">5.0<", InvalidXmlNodeValue),
        (">5<", "><", InvalidXmlNodeValue),
        (">5<", ">0<", InvalidXmlDocument),
        (">5<", ">-5<", InvalidXmlDocument),
        (">5<", ">366<", InvalidXmlDocument),
        (">5<", ">65541<", InvalidXmlDocument),
        (">5<", ">99999999999999999999<", InvalidXmlNodeValue),
    ] {
        assert!(LOGGING.contains(old));
        check(&LOGGING.replace(old, new), Err(expected));
    }
    check(&LOGGING.replace(">5<", ">1<"), Ok("<Days>1</Days>"));
    check(&LOGGING.replace(">5<", ">365<"), Ok("<Days>365</Days>"));
    check(
        &LOGGING.replace("<Enabled>true</Enabled><Days>5</Days>", "<Enabled>false</Enabled><Days>0</Days>"),
        Ok("<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"),
    );
}

#[test]
fn metrics_say_what_they_include_only_when_they_are_on() {
    let check_metrics = |name: &str, inside: &str, expected: Result<&str, ErrorCode>| {
        let retention = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
        let whole = |inside: &str| metrics(name, &[inside, retention].concat());
        check(&whole(inside), expected.map(whole).as_deref().map_err(|code| *code));
    };
    for name in ["HourMetrics", "MinuteMetrics"] {
        let on = "<Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>";
        check_metrics(name, on, Ok(on));
        let service = "<Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs>";
        check_metrics(name, service, Ok(service));
        let off = "<Enabled>false</Enabled>";
        check_metrics(name, off, Ok(off));
        check_metrics(name, "<Enabled>false</Enabled><IncludeAPIs>true</IncludeAPIs>", Ok(off));
        check_metrics(name, "<Enabled>true</Enabled>", Err(InvalidXmlDocument));
        check_metrics(name, "<Enabled>true</Enabled><IncludeAPIs />", Err(InvalidXmlNodeValue));
        check_metrics(name, "", Err(InvalidXmlDocument));
    }
    check(&metrics("HourMetrics", "<Enabled>false</Enabled>"), Err(InvalidXmlDocument));
}

#[track_caller]
fn check_rules(rules: &str, expected: Result<&str, ErrorCode>) {
    let whole = |rules: &str| format!("<Cors>{rules}</Cors>");
    check(&whole(rules), expected.map(whole).as_deref().map_err(|code| *code));
}

#[test]
fn rules_are_kept_in_order_and_complete() {
    check("<Cors></Cors>", Ok("</MinuteMetrics><Cors /></StorageServiceProperties>"));
    check_rules(RULE, Ok(RULE));
    check_rules(&RULE.repeat(5), Ok(&RULE.repeat(5)));
    check_rules(&RULE.repeat(6), Err(InvalidXmlDocument));
    let least = "<CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>www.xyz.com</AllowedOrigins><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>0</MaxAgeInSeconds></CorsRule>";
    check_rules(least, Ok(least));
    check_rules(&[RULE, least].concat(), Ok(&[RULE, least].concat()));
    check_rules(
        "<CorsRule><MaxAgeInSeconds>0</MaxAgeInSeconds><ExposedHeaders></ExposedHeaders><AllowedHeaders> </AllowedHeaders><AllowedOrigins> www.xyz.com </AllowedOrigins><AllowedMethods>GET,</AllowedMethods></CorsRule>",
        Ok(least),
    );
    for name in ["AllowedMethods", "AllowedOrigins", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds"] {
        let other = |tag: &str| tag.replace(name, "Other");
        check_rules(&other(RULE), Err(InvalidXmlDocument));
        let (before, rest) = RULE.split_once(&format!("<{name}>")).unwrap();
        let (_, after) = rest.split_once(&format!("</{name}>")).unwrap();
        check_rules(&[before, after].concat(), Err(InvalidXmlDocument));
    }
    check_rules("<CorsRule />", Err(InvalidXmlDocument));
    check_rules("<Other />", Err(InvalidXmlDocument));
    check_rules("x", Err(InvalidXmlDocument));
}

/// Checks a rule in which one element has this text.
#[track_caller]
fn check_item(name: &str, text: &str, expected: Result<&str, ErrorCode>) {
    let rule = |text: &str| {
        let usual = [
            ("AllowedMethods", "GET"),
            ("AllowedOrigins", "*"),
            ("AllowedHeaders", "*"),
            ("ExposedHeaders", "*"),
            ("MaxAgeInSeconds", "1"),
        ];
        let fields: String = usual
            .iter()
            .map(|(field, usual)| format!("<{field}>{}</{field}>", if *field == name { text } else { usual }))
            .collect();
        format!("<CorsRule>{fields}</CorsRule>")
    };
    check_rules(&rule(text), expected.map(rule).as_deref().map_err(|code| *code));
}

#[test]
fn lists_of_rules_have_limits() {
    let refused = Err(InvalidXmlNodeValue);
    let many = |stem: &str, count: usize, end: &str| {
        (0..count).map(|at| format!("{stem}{at}{end}")).collect::<Vec<_>>().join(",")
    };
    for methods in ["DELETE,GET,HEAD,MERGE,POST,OPTIONS,PUT,PATCH", "PATCH,GET"] {
        check_item("AllowedMethods", methods, Ok(methods));
    }
    for methods in ["", "*", "get", "FOO", "GET,FOO", "GET;PUT", "TRACE"] {
        check_item("AllowedMethods", methods, refused);
    }
    check_item("AllowedOrigins", &many("www.xyz", 64, ".com"), Ok(&many("www.xyz", 64, ".com")));
    check_item("AllowedOrigins", &many("www.xyz", 65, ".com"), refused);
    check_item("AllowedOrigins", &"x".repeat(256), Ok(&"x".repeat(256)));
    check_item("AllowedOrigins", &"x".repeat(257), refused);
    check_item("AllowedOrigins", "a, b ,,c", Ok("a,b,c"));
    for origins in ["http://*.a.com", "*.a.com", "http://a.com,https://*.b.com:81"] {
        check_item("AllowedOrigins", origins, Ok(origins));
    }
    for origins in [
        "",
        " ",
        ",",
        "*,http://a.com",
        "http://*",
        "http://w*.a.com",
        "http://a.*.com",
        "**",
        "http://a.com/*",
        "http://*.a.com/*",
    ] {
        check_item("AllowedOrigins", origins, refused);
    }
    for name in ["AllowedHeaders", "ExposedHeaders"] {
        let most = [&many("x-ms-meta-", 64, ""), "x-ms-meta-a*", "x-ms-meta-b*"].join(",");
        check_item(name, &most, Ok(&most));
        check_item(name, &[&most, "c"].join(","), refused);
        check_item(name, &[&most, "c*"].join(","), refused);
        check_item(name, &"x".repeat(256), Ok(&"x".repeat(256)));
        check_item(name, &"x".repeat(257), refused);
        check_item(name, "A, b*", Ok("A,b*"));
        for names in ["*,a", "a,*", "**", "a*b", "*a"] {
            check_item(name, names, refused);
        }
    }
    for age in ["0", "2147483647"] {
        check_item("MaxAgeInSeconds", age, Ok(age));
    }
    for age in ["", "-1", "2147483648", "1.5", "soon"] {
        check_item("MaxAgeInSeconds", age, refused);
    }
    // Eight items of 255 bytes with their commas, plus the texts of the other elements.
    let long = |last: usize| [vec!["x".repeat(255); 7], vec!["x".repeat(last)]].concat().join(",");
    check_item("AllowedHeaders", &long(250), Ok(&long(250)));
    check_item("AllowedHeaders", &long(251), Err(InvalidXmlDocument));
}

#[test]
fn stored_bytes_that_are_not_ours_are_nothing() {
    assert_eq!(ServiceProperties::from_stored(b""), None);
    assert_eq!(ServiceProperties::from_stored(document(LOGGING).as_bytes()), None);
    assert_eq!(ServiceProperties::from_stored(&ServiceProperties::default().write(OLD)), None);
}

#[test]
fn no_body_makes_the_reader_panic_and_what_is_taken_is_kept() {
    let mut properties = ServiceProperties::default();
    let cors = format!("{LOGGING}<Cors>{RULE}{RULE}</Cors>");
    properties.apply(read_update(document(&cors).as_bytes(), NEW).unwrap());
    let full = properties.write(NEW);
    for truncated in truncations(&full) {
        check_refusal(&read_update(truncated, NEW).unwrap_err());
    }
    let (mut taken, mut refused) = (0, 0);
    let partial = document("<Cors />");
    let corpus: [&[u8]; 3] = [&full, &properties.write(OLD), partial.as_bytes()];
    for body in mutations(&corpus, 20_000) {
        for version in [NEW, OLD] {
            match read_update(&body, version) {
                Ok(update) => {
                    taken += 1;
                    let mut properties = ServiceProperties::default();
                    properties.apply(update);
                    assert_eq!(ServiceProperties::from_stored(&properties.to_stored()), Some(properties));
                }
                Err(error) => {
                    refused += 1;
                    check_refusal(&error);
                }
            }
        }
    }
    assert!(taken > 500 && refused > 1_000, "{taken} taken, {refused} refused");
}

#[test]
fn stats_are_written_byte_for_byte() {
    let check = |status: &str, time: &str, expected: &str| {
        let document = write_stats(status, DateTime::parse(time).unwrap());
        let inside = format!("<Status>{status}</Status><LastSyncTime>{expected}</LastSyncTime>");
        let whole = format!(
            "{HEAD}<StorageServiceStats><GeoReplication>{inside}</GeoReplication></StorageServiceStats>"
        );
        assert_eq!(text(document), whole);
    };
    check("live", "2021-07-21T22:06:46.9999999Z", "Wed, 21 Jul 2021 22:06:46 GMT");
    check("bootstrap", "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT");
    check("unavailable", "1601-01-01T00:00:00Z", "Mon, 01 Jan 1601 00:00:00 GMT");
    check("live", "9999-12-31T23:59:59Z", "Fri, 31 Dec 9999 23:59:59 GMT");
}

#[test]
fn extended_services_have_more_properties() {
    let off = "<Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
    let mut properties =
        ServiceProperties { hour_metrics: Metrics::default(), ..ServiceProperties::default() };
    let logging = "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>";
    let common = [logging, &metrics("HourMetrics", off), &metrics("MinuteMetrics", off), "<Cors />"].concat();
    let unset = "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy><StaticWebsite><Enabled>false</Enabled></StaticWebsite>";
    assert_eq!(
        text(properties.write_extended(NEW)),
        format!("{HEAD}{}", document(&[&*common, unset].concat()))
    );
    assert_eq!(text(properties.write(NEW)), format!("{HEAD}{}", document(&common)));

    let sent = "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy>";
    let update = read_extended_update(document(sent).as_bytes(), NEW).unwrap();
    assert_eq!(read_extended_update(&update.write(NEW), NEW).unwrap(), update);
    properties.apply(update);
    let website = "<StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument><ErrorDocument404Path>404.html</ErrorDocument404Path></StaticWebsite><DefaultServiceVersion>2014-02-14</DefaultServiceVersion>";
    properties.apply(read_extended_update(document(website).as_bytes(), NEW).unwrap());
    let written = text(properties.write_extended(NEW));
    assert_eq!(written, format!("{HEAD}{}", document(&[&*common, sent, website].concat())));
    assert_eq!(text(properties.write(NEW)), format!("{HEAD}{}", document(&common)));
    assert_eq!(ServiceProperties::from_stored(&properties.to_stored()), Some(properties.clone()));
    assert_eq!(read_answer(written.as_bytes()).unwrap(), properties);
}

#[test]
fn extended_properties_have_limits_and_other_services_refuse_them() {
    let retention =
        |inside: &str| document(&format!("<DeleteRetentionPolicy>{inside}</DeleteRetentionPolicy>"));
    let code =
        |body: &str| read_extended_update(body.as_bytes(), NEW).map(|_| ()).map_err(|error| error.code);
    assert_eq!(code(&retention("<Enabled>true</Enabled><Days>365</Days>")), Ok(()));
    for days in ["", "<Days>0</Days>", "<Days>366</Days>"] {
        assert_eq!(code(&retention(&format!("<Enabled>true</Enabled>{days}"))), Err(InvalidXmlDocument));
    }
    assert_eq!(code(&retention("<Enabled>x</Enabled>")), Err(InvalidXmlNodeValue));
    assert_eq!(
        code(&document("<DefaultServiceVersion>new</DefaultServiceVersion>")),
        Err(InvalidXmlNodeValue)
    );
    let body = retention("<Enabled>false</Enabled>");
    assert_eq!(read_update(body.as_bytes(), NEW).unwrap_err().code, InvalidXmlDocument);
}
