//! The account's properties as XML: logging, metrics and CORS rules; and the statistics of its replica.
//!
//! Promises: what is read is within the service's limits; written properties have the service's order of
//! elements, and reading them back returns them. Logging and metrics have no effect: they are kept and shown.

use super::cors::{CorsRule, list_items, split_wildcard_origin};
use super::xml::{self, Element, Writer, invalid_document, invalid_value};
use crate::error::ServiceError;
use crate::model::DateTime;

/// From here on: hour and minute metrics, CORS, and updates that leave elements out.
const VERSION_OF_PARTIAL_UPDATES: &str = "2013-08-15";
/// What logging and metrics call their own version.
const ANALYTICS_VERSION: &str = "1.0";
const RETENTION_DAYS_MAX: u16 = 365;
const TICKS_PER_SECOND: u64 = 10_000_000;

const CORS_RULE_COUNT_MAX: usize = 5;
/// Of all rules together, without the tags.
const CORS_TEXT_BYTES_MAX: usize = 2 * 1024;
const CORS_LITERAL_COUNT_MAX: usize = 64;
const CORS_PREFIX_COUNT_MAX: usize = 2;
/// Of one origin or header name, in UTF-16 units.
const CORS_ITEM_CHARS_MAX: usize = 256;
const CORS_MAX_AGE_SECONDS_MAX: u32 = i32::MAX as u32;
const CORS_METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH"];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceProperties {
    pub logging: Logging,
    pub hour_metrics: Metrics,
    pub minute_metrics: Metrics,
    pub cors: Vec<CorsRule>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Logging {
    pub read: bool,
    pub write: bool,
    pub delete: bool,
    /// `None`: logs are kept for ever.
    pub retention_days: Option<u16>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Metrics {
    pub level: MetricsLevel,
    /// `None`: metrics are kept for ever.
    pub retention_days: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MetricsLevel {
    #[default]
    Off,
    Service,
    ServiceAndApis,
}

/// What a request changes; what is `None` stays as it is.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PropertiesUpdate {
    pub logging: Option<Logging>,
    pub hour_metrics: Option<Metrics>,
    pub minute_metrics: Option<Metrics>,
    pub cors: Option<Vec<CorsRule>>,
}

/// The properties of a new account.
impl Default for ServiceProperties {
    fn default() -> ServiceProperties {
        ServiceProperties {
            logging: Logging::default(),
            hour_metrics: Metrics { level: MetricsLevel::ServiceAndApis, retention_days: Some(7) },
            minute_metrics: Metrics::default(),
            cors: Vec::new(),
        }
    }
}

impl ServiceProperties {
    pub fn apply(&mut self, update: PropertiesUpdate) {
        let PropertiesUpdate { logging, hour_metrics, minute_metrics, cors } = update;
        if let Some(logging) = logging {
            self.logging = logging;
        }
        if let Some(metrics) = hour_metrics {
            self.hour_metrics = metrics;
        }
        if let Some(metrics) = minute_metrics {
            self.minute_metrics = metrics;
        }
        if let Some(rules) = cors {
            self.cors = rules;
        }
    }

    /// The document as a client of this version expects it.
    pub fn write(&self, version: &str) -> Vec<u8> {
        let mut writer = Writer::begin();
        writer.start("StorageServiceProperties");
        write_logging(&self.logging, &mut writer);
        if version < VERSION_OF_PARTIAL_UPDATES {
            write_metrics("Metrics", &self.hour_metrics, &mut writer);
        } else {
            write_metrics("HourMetrics", &self.hour_metrics, &mut writer);
            write_metrics("MinuteMetrics", &self.minute_metrics, &mut writer);
            write_cors(&self.cors, &mut writer);
        }
        writer.end("StorageServiceProperties");
        writer.finish()
    }

    /// The properties as they are kept: the whole document. [`ServiceProperties::from_stored`] reads it.
    pub fn to_stored(&self) -> Vec<u8> {
        self.write(VERSION_OF_PARTIAL_UPDATES)
    }

    /// `None` means that the bytes are not what [`ServiceProperties::to_stored`] wrote.
    pub fn from_stored(stored: &[u8]) -> Option<ServiceProperties> {
        let update = read_update(stored, VERSION_OF_PARTIAL_UPDATES).ok()?;
        Some(ServiceProperties {
            logging: update.logging?,
            hour_metrics: update.hour_metrics?,
            minute_metrics: update.minute_metrics?,
            cors: update.cors?,
        })
    }
}

/// Reads the body of Set Table Service Properties.
pub fn read_update(body: &[u8], version: &str) -> Result<PropertiesUpdate, ServiceError> {
    let root = xml::read(body, "StorageServiceProperties")?;
    if version < VERSION_OF_PARTIAL_UPDATES {
        let [logging, metrics] = root.fields(["Logging", "Metrics"])?;
        return Ok(PropertiesUpdate {
            logging: Some(read_logging(required(logging)?)?),
            hour_metrics: Some(read_metrics(required(metrics)?)?),
            ..PropertiesUpdate::default()
        });
    }
    let [logging, hour_metrics, minute_metrics, cors] =
        root.fields(["Logging", "HourMetrics", "MinuteMetrics", "Cors"])?;
    if root.children.is_empty() {
        return Err(invalid_document("nothing to set"));
    }
    Ok(PropertiesUpdate {
        logging: logging.map(read_logging).transpose()?,
        hour_metrics: hour_metrics.map(read_metrics).transpose()?,
        minute_metrics: minute_metrics.map(read_metrics).transpose()?,
        cors: cors.map(read_cors).transpose()?,
    })
}

fn required(field: Option<&Element>) -> Result<&Element, ServiceError> {
    field.ok_or_else(|| invalid_document("an element is missing"))
}

/// Some clients write `True`.
fn read_boolean(field: Option<&Element>) -> Result<bool, ServiceError> {
    let text = required(field)?.leaf()?.trim();
    match text {
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(invalid_value("not a boolean")),
    }
}

fn check_version(field: Option<&Element>) -> Result<(), ServiceError> {
    if required(field)?.leaf()?.trim() == ANALYTICS_VERSION {
        Ok(())
    } else {
        Err(invalid_value("another version"))
    }
}

fn read_logging(element: &Element) -> Result<Logging, ServiceError> {
    let [version, read, write, delete, retention] =
        element.fields(["Version", "Read", "Write", "Delete", "RetentionPolicy"])?;
    check_version(version)?;
    Ok(Logging {
        read: read_boolean(read)?,
        write: read_boolean(write)?,
        delete: read_boolean(delete)?,
        retention_days: read_retention(required(retention)?)?,
    })
}

fn read_metrics(element: &Element) -> Result<Metrics, ServiceError> {
    let [version, enabled, include_apis, retention] =
        element.fields(["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"])?;
    check_version(version)?;
    // What metrics include does not matter when there are none.
    let level = match read_boolean(enabled)? {
        false => MetricsLevel::Off,
        true if read_boolean(include_apis)? => MetricsLevel::ServiceAndApis,
        true => MetricsLevel::Service,
    };
    Ok(Metrics { level, retention_days: read_retention(required(retention)?)? })
}

fn read_retention(element: &Element) -> Result<Option<u16>, ServiceError> {
    let [enabled, days] = element.fields(["Enabled", "Days"])?;
    if !read_boolean(enabled)? {
        return Ok(None);
    }
    let days: i64 = required(days)?.leaf()?.trim().parse().map_err(invalid_value)?;
    u16::try_from(days)
        .ok()
        .filter(|days| (1..=RETENTION_DAYS_MAX).contains(days))
        .map(Some)
        .ok_or_else(|| invalid_document("days out of range"))
}

fn read_cors(element: &Element) -> Result<Vec<CorsRule>, ServiceError> {
    let rules = element.items("CorsRule", CORS_RULE_COUNT_MAX)?;
    let text_bytes: usize = rules.iter().flat_map(|rule| &rule.children).map(|field| field.text.len()).sum();
    if text_bytes > CORS_TEXT_BYTES_MAX {
        return Err(invalid_document("too much text in the rules"));
    }
    rules.iter().map(read_rule).collect()
}

fn read_rule(element: &Element) -> Result<CorsRule, ServiceError> {
    let [methods, origins, allowed_headers, exposed_headers, max_age] = element.fields([
        "AllowedMethods",
        "AllowedOrigins",
        "AllowedHeaders",
        "ExposedHeaders",
        "MaxAgeInSeconds",
    ])?;
    let max_age: u32 = required(max_age)?.leaf()?.trim().parse().map_err(invalid_value)?;
    if max_age > CORS_MAX_AGE_SECONDS_MAX {
        return Err(invalid_value("too great an age"));
    }
    Ok(CorsRule {
        allowed_origins: read_origins(origins)?,
        allowed_methods: read_methods(methods)?,
        allowed_headers: read_header_names(allowed_headers)?,
        exposed_headers: read_header_names(exposed_headers)?,
        max_age_seconds: max_age,
    })
}

fn read_list(field: Option<&Element>) -> Result<Vec<String>, ServiceError> {
    let list: Vec<String> = list_items(required(field)?.leaf()?).map(str::to_owned).collect();
    if list.iter().any(|item| item.encode_utf16().count() > CORS_ITEM_CHARS_MAX) {
        return Err(invalid_value("too long an item"));
    }
    Ok(list)
}

fn read_origins(field: Option<&Element>) -> Result<Vec<String>, ServiceError> {
    let origins = read_list(field)?;
    if origins.is_empty() || origins.len() > CORS_LITERAL_COUNT_MAX {
        return Err(invalid_value("no origins, or too many"));
    }
    let is_origin = |origin: &String| !origin.contains('*') || split_wildcard_origin(origin).is_some();
    if origins != ["*"] && !origins.iter().all(is_origin) {
        return Err(invalid_value("a wildcard that is neither alone nor a subdomain"));
    }
    Ok(origins)
}

fn read_methods(field: Option<&Element>) -> Result<Vec<String>, ServiceError> {
    let methods = read_list(field)?;
    if methods.is_empty() || !methods.iter().all(|method| CORS_METHODS.contains(&method.as_str())) {
        return Err(invalid_value("no methods, or an unknown one"));
    }
    Ok(methods)
}

fn read_header_names(field: Option<&Element>) -> Result<Vec<String>, ServiceError> {
    let names = read_list(field)?;
    if names == ["*"] {
        return Ok(names);
    }
    let (prefixes, literals): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| name.ends_with('*'));
    if literals.len() > CORS_LITERAL_COUNT_MAX || prefixes.len() > CORS_PREFIX_COUNT_MAX {
        return Err(invalid_value("too many header names"));
    }
    let is_name = |name: &String| !name.strip_suffix('*').unwrap_or(name).contains('*') && name != "*";
    if !names.iter().all(is_name) {
        return Err(invalid_value("a wildcard that is neither alone nor at the end of a name"));
    }
    Ok(names)
}

fn write_logging(logging: &Logging, writer: &mut Writer) {
    writer.start("Logging");
    writer.leaf("Version", ANALYTICS_VERSION);
    write_boolean("Read", logging.read, writer);
    write_boolean("Write", logging.write, writer);
    write_boolean("Delete", logging.delete, writer);
    write_retention(logging.retention_days, writer);
    writer.end("Logging");
}

fn write_metrics(name: &str, metrics: &Metrics, writer: &mut Writer) {
    writer.start(name);
    writer.leaf("Version", ANALYTICS_VERSION);
    write_boolean("Enabled", metrics.level != MetricsLevel::Off, writer);
    if metrics.level != MetricsLevel::Off {
        write_boolean("IncludeAPIs", metrics.level == MetricsLevel::ServiceAndApis, writer);
    }
    write_retention(metrics.retention_days, writer);
    writer.end(name);
}

fn write_retention(days: Option<u16>, writer: &mut Writer) {
    writer.start("RetentionPolicy");
    write_boolean("Enabled", days.is_some(), writer);
    if let Some(days) = days {
        writer.leaf("Days", &days.to_string());
    }
    writer.end("RetentionPolicy");
}

fn write_cors(rules: &[CorsRule], writer: &mut Writer) {
    if rules.is_empty() {
        return writer.empty("Cors");
    }
    writer.start("Cors");
    for rule in rules {
        writer.start("CorsRule");
        writer.leaf("AllowedMethods", &rule.allowed_methods.join(","));
        writer.leaf("AllowedOrigins", &rule.allowed_origins.join(","));
        writer.leaf("AllowedHeaders", &rule.allowed_headers.join(","));
        writer.leaf("ExposedHeaders", &rule.exposed_headers.join(","));
        writer.leaf("MaxAgeInSeconds", &rule.max_age_seconds.to_string());
        writer.end("CorsRule");
    }
    writer.end("Cors");
}

fn write_boolean(name: &str, value: bool, writer: &mut Writer) {
    writer.leaf(name, if value { "true" } else { "false" });
}

/// The document of Get Table Service Stats. The status is `live`, `bootstrap` or `unavailable`.
pub fn write_stats(status: &str, last_sync: DateTime) -> Vec<u8> {
    let mut writer = Writer::begin();
    writer.start("StorageServiceStats");
    writer.start("GeoReplication");
    writer.leaf("Status", status);
    writer.leaf("LastSyncTime", &http_date(last_sync));
    writer.end("GeoReplication");
    writer.end("StorageServiceStats");
    writer.finish()
}

/// RFC 1123. Nothing was replicated before 1970, so earlier instants are written as its beginning.
fn http_date(date: DateTime) -> String {
    let ticks = date.ticks().saturating_sub(DateTime::UNIX_EPOCH.ticks());
    let seconds = std::time::Duration::from_secs(ticks / TICKS_PER_SECOND);
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + seconds)
}

#[cfg(test)]
mod tests {
    use super::super::xml::hostile::{check_refusal, mutations, truncations};
    use super::*;
    use crate::error::ErrorCode;
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

    /// Reads the element alone, and finds it again in the document of an account that it was applied to.
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
        assert!(
            update.logging.as_ref().is_some_and(|logging| logging.read && logging.retention_days == Some(5))
        );
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
        assert_eq!(
            (after.cors.len(), &after.logging, &after.hour_metrics),
            (1, &new.logging, &new.hour_metrics)
        );
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
            &LOGGING
                .replace("<Enabled>true</Enabled><Days>5</Days>", "<Enabled>false</Enabled><Days>0</Days>"),
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
        for name in
            ["AllowedMethods", "AllowedOrigins", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds"]
        {
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

    /// A rule in which one element has this text.
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
                .map(|(field, usual)| {
                    format!("<{field}>{}</{field}>", if *field == name { text } else { usual })
                })
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
        for origins in ["", " ", ",", "*,http://a.com", "http://*", "http://w*.a.com", "http://a.*.com", "**"]
        {
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
        // Eight items of 255 bytes with their commas, and the texts of the other elements.
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
        check("unavailable", "1601-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT");
        check("live", "9999-12-31T23:59:59Z", "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
