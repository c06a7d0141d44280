//! Reads the body of Set Service Properties and checks it against the service's limits.
//!
//! Promises: nothing outside the limits becomes a value; no body causes a panic. Leaves to others: parsing (`xml`), and
//! what a rule allows (`cors`).

use super::{
    ANALYTICS_VERSION, DeleteRetention, ExtensionUpdate, Logging, Metrics, MetricsLevel, PropertiesUpdate,
    StaticWebsite, VERSION_OF_PARTIAL_UPDATES,
};
use crate::ServiceError;
use crate::common::cors::{CorsRule, list_items, split_wildcard_origin};
use crate::common::version::is_version;
use crate::common::xml::{self, Element, invalid_document, invalid_value, refused_document};

const RETENTION_DAYS_MAX: u16 = 365;
const REASON_RETENTION_DAYS: &str =
    "Retention days must be greater than 0 and less than or equal to 365 days.";

/// For the name or the path of one document of a website.
const WEBSITE_PATH_BYTES_MAX: usize = 1024;

const CORS_RULE_COUNT_MAX: usize = 5;
/// For all rules together, without the tags.
const CORS_TEXT_BYTES_MAX: usize = 2 * 1024;
const CORS_LITERAL_COUNT_MAX: usize = 64;
const CORS_PREFIX_COUNT_MAX: usize = 2;
/// For one origin or header name, in UTF-16 units.
const CORS_ITEM_CHARS_MAX: usize = 256;
const CORS_MAX_AGE_SECONDS_MAX: u32 = i32::MAX as u32;
const CORS_METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH"];

/// Reads the body of Set Service Properties.
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
    let fields = root.fields(["Logging", "HourMetrics", "MinuteMetrics", "Cors"])?;
    read_partial(&root, fields)
}

/// Reads the body of Set Service Properties as the services with an [`Extension`](super::Extension) do.
pub fn read_extended_update(body: &[u8], version: &str) -> Result<PropertiesUpdate, ServiceError> {
    let root = xml::read(body, "StorageServiceProperties")?;
    let [logging, metrics, hour_metrics, minute_metrics, cors, retention, website, default_version] = root
        .fields([
            "Logging",
            "Metrics",
            "HourMetrics",
            "MinuteMetrics",
            "Cors",
            "DeleteRetentionPolicy",
            "StaticWebsite",
            "DefaultServiceVersion",
        ])?;
    let is_old = version < VERSION_OF_PARTIAL_UPDATES;
    if is_old != metrics.is_some() || (is_old && logging.is_none()) {
        return Err(invalid_document("elements of another version"));
    }
    let update = read_partial(&root, [logging, hour_metrics.or(metrics), minute_metrics, cors])?;
    Ok(PropertiesUpdate { extension: read_extension(retention, website, default_version)?, ..update })
}

fn read_partial(root: &Element, fields: [Option<&Element>; 4]) -> Result<PropertiesUpdate, ServiceError> {
    if root.children.is_empty() {
        return Err(invalid_document("nothing to set"));
    }
    let [logging, hour_metrics, minute_metrics, cors] = fields;
    Ok(PropertiesUpdate {
        logging: logging.map(read_logging).transpose()?,
        hour_metrics: hour_metrics.map(read_metrics).transpose()?,
        minute_metrics: minute_metrics.map(read_metrics).transpose()?,
        cors: cors.map(read_cors).transpose()?,
        extension: ExtensionUpdate::default(),
    })
}

pub(super) fn read_extension(
    retention: Option<&Element>,
    website: Option<&Element>,
    default_version: Option<&Element>,
) -> Result<ExtensionUpdate, ServiceError> {
    let default_version = default_version.map(|field| field.leaf().map(str::trim)).transpose()?;
    if default_version.is_some_and(|version| !is_version(version)) {
        return Err(invalid_value("not a version"));
    }
    Ok(ExtensionUpdate {
        delete_retention: retention.map(read_delete_retention).transpose()?,
        static_website: website.map(read_static_website).transpose()?,
        default_version: default_version.map(str::to_owned),
    })
}

fn read_delete_retention(element: &Element) -> Result<DeleteRetention, ServiceError> {
    let [enabled, days, permanent] = element.fields(["Enabled", "Days", "AllowPermanentDelete"])?;
    let allow_permanent_delete = permanent.map(|_| read_boolean(permanent)).transpose()?.unwrap_or(false);
    Ok(DeleteRetention { days: read_days(enabled, days)?, allow_permanent_delete })
}

fn read_static_website(element: &Element) -> Result<StaticWebsite, ServiceError> {
    let [enabled, index, default_index, error_document] =
        element.fields(["Enabled", "IndexDocument", "DefaultIndexDocumentPath", "ErrorDocument404Path"])?;
    let text = |field: Option<&Element>| -> Result<Option<String>, ServiceError> {
        let text = field.map(Element::leaf).transpose()?.filter(|text| !text.is_empty());
        if text.is_some_and(|text| text.len() > WEBSITE_PATH_BYTES_MAX) {
            return Err(invalid_value("too long a path"));
        }
        Ok(text.map(str::to_owned))
    };
    Ok(StaticWebsite {
        is_enabled: read_boolean(enabled)?,
        index_document: text(index)?,
        default_index_document_path: text(default_index)?,
        error_document_404_path: text(error_document)?,
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

pub(super) fn read_logging(element: &Element) -> Result<Logging, ServiceError> {
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

pub(super) fn read_metrics(element: &Element) -> Result<Metrics, ServiceError> {
    let [version, enabled, include_apis, retention] =
        element.fields(["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"])?;
    check_version(version)?;
    // What metrics include does not matter when they are disabled.
    let level = match read_boolean(enabled)? {
        false => MetricsLevel::Off,
        true if read_boolean(include_apis)? => MetricsLevel::ServiceAndApis,
        true => MetricsLevel::Service,
    };
    Ok(Metrics { level, retention_days: read_retention(required(retention)?)? })
}

fn read_retention(element: &Element) -> Result<Option<u16>, ServiceError> {
    let [enabled, days] = element.fields(["Enabled", "Days"])?;
    read_days(enabled, days)
}

fn read_days(enabled: Option<&Element>, days: Option<&Element>) -> Result<Option<u16>, ServiceError> {
    if !read_boolean(enabled)? {
        return Ok(None);
    }
    let days: i64 = required(days)?.leaf()?.trim().parse().map_err(invalid_value)?;
    u16::try_from(days)
        .ok()
        .filter(|days| (1..=RETENTION_DAYS_MAX).contains(days))
        .map(Some)
        .ok_or_else(|| refused_document(REASON_RETENTION_DAYS))
}

pub(super) fn read_cors(element: &Element) -> Result<Vec<CorsRule>, ServiceError> {
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
