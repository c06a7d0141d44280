//! Content negotiation: which of the three JSON metadata levels an answer has, and which payloads are accepted.
//!
//! Leaves to others: which operations have a body, and the words of a refusal.

use crate::common::multipart::parameter;
use crate::table::wire::headers::OperationHeaders;
use crate::{ErrorCode, ServiceError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetadataLevel {
    None,
    Minimal,
    Full,
}

impl MetadataLevel {
    /// The `Content-Type` of an answer at this level.
    pub fn content_type(self) -> &'static str {
        match self {
            MetadataLevel::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            MetadataLevel::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            MetadataLevel::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// What an insert asks for with `Prefer`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preference {
    ReturnContent,
    ReturnNoContent,
}

impl Preference {
    pub fn parse(text: Option<&str>) -> Option<Preference> {
        let text = text?.trim();
        if text.eq_ignore_ascii_case("return-content") {
            Some(Preference::ReturnContent)
        } else if text.eq_ignore_ascii_case("return-no-content") {
            Some(Preference::ReturnNoContent)
        } else {
            None
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Preference::ReturnContent => "return-content",
            Preference::ReturnNoContent => "return-no-content",
        }
    }
}

/// The level of an answer with a body: `$format` decides, then `Accept`. A request without either asks for Atom, which
/// is no longer supported.
pub fn response_level(
    format: Option<&str>,
    headers: &OperationHeaders<'_>,
) -> Result<MetadataLevel, ServiceError> {
    match format {
        Some("json") => Ok(MetadataLevel::Minimal),
        Some("atom") | Some("xml") => Err(ErrorCode::AtomFormatNotSupported.into()),
        Some(format) => choose(format),
        None => choose(headers.accept.ok_or(ErrorCode::AtomFormatNotSupported)?),
    }
}

/// The level of an error's answer: the requested level if it is supported, otherwise minimal.
pub fn error_level(format: Option<&str>, accept: Option<&str>) -> MetadataLevel {
    format.or(accept).and_then(|text| choose(text).ok()).unwrap_or(MetadataLevel::Minimal)
}

/// Whether the caller asks for JSON, so that the front end's errors are written in it.
pub fn accepts_json(accept: Option<&str>) -> bool {
    accept.is_some_and(|accept| {
        accept.split(',').any(|range| {
            let media_type = range.split(';').next().unwrap_or_default().trim();
            media_type.eq_ignore_ascii_case("application/json")
        })
    })
}

/// Whether a payload of this type can be read.
pub fn check_content_type(content_type: Option<&str>) -> Result<(), ServiceError> {
    let Some(content_type) = content_type else { return Ok(()) };
    // Fast path: the exact texts that the official clients send.
    if matches!(content_type, "application/json" | "application/json;odata=nometadata") {
        return Ok(());
    }
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return match parameter(content_type, "odata") {
            Some(level) if level.eq_ignore_ascii_case("verbose") => {
                Err(ErrorCode::JsonVerboseFormatNotSupported.into())
            }
            _ => Ok(()),
        };
    }
    if media_type.eq_ignore_ascii_case("application/atom+xml")
        || media_type.eq_ignore_ascii_case("application/xml")
    {
        return Err(ErrorCode::AtomFormatNotSupported.into());
    }
    Err(ErrorCode::MediaTypeNotSupported.into())
}

/// The data service version must be one that supports JSON.
pub fn check_data_service_version(headers: &OperationHeaders<'_>) -> Result<(), ServiceError> {
    let Some(text) = headers.max_data_service_version.or(headers.data_service_version) else { return Ok(()) };
    if matches!(text, "3.0" | "3.0;") {
        return Ok(());
    }
    let version = text.split(';').next().unwrap_or_default().trim();
    match version {
        "3.0" | "3" | "" => Ok(()),
        "1.0" | "2.0" => Ok(()),
        _ => Err(ErrorCode::InvalidInput.into()),
    }
}

/// The first supported media type of an `Accept` list decides.
fn choose(accept: &str) -> Result<MetadataLevel, ServiceError> {
    // Fast path: the exact texts that the official clients send.
    match accept {
        "application/json;odata=minimalmetadata" | "application/json" => return Ok(MetadataLevel::Minimal),
        "application/json;odata=nometadata" => return Ok(MetadataLevel::None),
        "application/json;odata=fullmetadata" => return Ok(MetadataLevel::Full),
        _ => {}
    }
    let mut refusal = ErrorCode::MediaTypeNotSupported;
    for range in accept.split(',') {
        let media_type = range.split(';').next().unwrap_or_default().trim();
        match media_type.to_ascii_lowercase().as_str() {
            "application/json" => match parameter(range, "odata").map(str::to_ascii_lowercase).as_deref() {
                Some("nometadata") => return Ok(MetadataLevel::None),
                Some("fullmetadata") => return Ok(MetadataLevel::Full),
                Some("verbose") => refusal = ErrorCode::JsonVerboseFormatNotSupported,
                _ => return Ok(MetadataLevel::Minimal),
            },
            "*/*" | "application/*" => return Ok(MetadataLevel::Minimal),
            "application/atom+xml" | "application/xml" if refusal == ErrorCode::MediaTypeNotSupported => {
                refusal = ErrorCode::AtomFormatNotSupported;
            }
            _ => {}
        }
    }
    Err(refusal.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: Option<&str>, accept: Option<&str>, expected: Result<MetadataLevel, ErrorCode>) {
        let headers = OperationHeaders { accept, ..OperationHeaders::default() };
        let found = response_level(format, &headers).map_err(|error| error.code);
        assert_eq!(found, expected, "{format:?} {accept:?}");
    }

    #[test]
    fn the_level_follows_format_then_accept() {
        use MetadataLevel::*;
        check(Option::None, Some("application/json;odata=nometadata"), Ok(None));
        check(Option::None, Some("application/json; odata=MinimalMetadata"), Ok(Minimal));
        check(Option::None, Some("Application/JSON;odata=fullmetadata;q=1"), Ok(Full));
        check(Option::None, Some("application/json"), Ok(Minimal));
        check(Option::None, Some("*/*"), Ok(Minimal));
        check(Option::None, Some("text/html, application/json;odata=nometadata"), Ok(None));
        check(
            Option::None,
            Some("application/json;odata=verbose"),
            Err(ErrorCode::JsonVerboseFormatNotSupported),
        );
        check(Option::None, Some("application/atom+xml"), Err(ErrorCode::AtomFormatNotSupported));
        check(
            Option::None,
            Some("application/atom+xml,application/xml"),
            Err(ErrorCode::AtomFormatNotSupported),
        );
        check(Option::None, Some("application/atom+xml,application/json"), Ok(Minimal));
        check(Option::None, Some("text/html"), Err(ErrorCode::MediaTypeNotSupported));
        check(Option::None, Option::None, Err(ErrorCode::AtomFormatNotSupported));
        check(Some("application/json;odata=fullmetadata"), Some("application/json"), Ok(Full));
        check(Some("json"), Option::None, Ok(Minimal));
        check(Some("atom"), Some("application/json"), Err(ErrorCode::AtomFormatNotSupported));
    }
}
