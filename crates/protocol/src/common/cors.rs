//! CORS: which of an account's rules applies to a request, and which headers its answer then gets.
//!
//! Owns: the rule, and how origins, methods and header names are matched with it.
//! Leaves to others: reading and writing rules (`service_properties`), and the names of the answer's headers.

use crate::{ErrorCode, ServiceError};

const ANY: &str = "*";

/// One of an account's rules. Its lists keep the order in which they were given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CorsRule {
    /// Either `*` alone, or origins. In an origin, `*` may stand for the beginning of the host.
    pub allowed_origins: Vec<String>,
    pub allowed_methods: Vec<String>,
    /// Header names, prefixes that end with `*`, or `*` alone.
    pub allowed_headers: Vec<String>,
    /// Has the form of `allowed_headers`.
    pub exposed_headers: Vec<String>,
    pub max_age_seconds: u32,
}

/// The answer to a preflight request. Each field but the last is the value of a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreflightAnswer {
    pub allow_origin: String,
    /// The one method that the request asked for.
    pub allow_methods: String,
    /// The headers that the request asked for, as sent.
    pub allow_headers: Option<String>,
    pub max_age_seconds: u32,
    /// Whether to send `Access-Control-Allow-Credentials: true`.
    pub allow_credentials: bool,
}

/// The CORS headers of an ordinary answer. The default is none.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CorsHeaders {
    pub allow_origin: Option<String>,
    pub expose_headers: Option<String>,
    /// Whether to send `Access-Control-Allow-Credentials: true`.
    pub allow_credentials: bool,
    /// Whether to send `Vary: Origin`.
    pub vary_origin: bool,
}

/// Answers `OPTIONS`, given the values of `Origin`, `Access-Control-Request-Method` and
/// `Access-Control-Request-Headers`. The first rule that matches origin and method decides: if it lacks a header, the
/// preflight fails even when a later rule would allow it.
pub fn preflight(
    rules: &[CorsRule],
    origin: Option<&str>,
    method: Option<&str>,
    request_headers: Option<&str>,
) -> Result<PreflightAnswer, ServiceError> {
    let (Some(origin), Some(method)) = (not_empty(origin), not_empty(method)) else {
        return Err(ServiceError::with_detail(
            ErrorCode::InvalidHeaderValue,
            "A required CORS header is not present.",
        ));
    };
    let rule = deciding_rule(rules, origin, method).ok_or(ErrorCode::CorsPreflightFailure)?;
    let request_headers = not_empty(request_headers);
    if !list_items(request_headers.unwrap_or_default()).all(|name| covers(&rule.allowed_headers, name)) {
        return Err(ErrorCode::CorsPreflightFailure.into());
    }
    let any = rule.allows_any_origin();
    Ok(PreflightAnswer {
        allow_origin: if any { ANY } else { origin }.to_owned(),
        allow_methods: method.to_owned(),
        allow_headers: request_headers.map(str::to_owned),
        max_age_seconds: rule.max_age_seconds,
        allow_credentials: !any,
    })
}

/// The CORS headers of the answer to an ordinary request, given the names of the answer's headers in their order.
///
/// Answers to `GET` and `HEAD` may be cached, so they carry CORS headers even when the request has no origin: either
/// they allow every origin, or they say `Vary: Origin`.
pub fn actual<'n>(
    rules: &[CorsRule],
    method: &str,
    origin: Option<&str>,
    response_header_names: impl Iterator<Item = &'n str>,
) -> CorsHeaders {
    let cacheable = matches!(method, "GET" | "HEAD");
    let rule = match not_empty(origin) {
        Some(origin) => deciding_rule(rules, origin, method),
        None if cacheable => rules.iter().find(|rule| rule.allows_any_origin() && rule.allows_method(method)),
        None => None,
    };
    let Some(rule) = rule else {
        return CorsHeaders { vary_origin: cacheable && !rules.is_empty(), ..CorsHeaders::default() };
    };
    let exposed: Vec<&str> =
        response_header_names.filter(|name| covers(&rule.exposed_headers, name)).collect();
    let expose_headers = (!exposed.is_empty()).then(|| exposed.join(","));
    // Without an origin, `rule` is one that allows any origin.
    let concrete_origin = origin.filter(|_| !rule.allows_any_origin());
    CorsHeaders {
        allow_origin: Some(concrete_origin.unwrap_or(ANY).to_owned()),
        expose_headers,
        allow_credentials: concrete_origin.is_some(),
        vary_origin: cacheable && concrete_origin.is_some(),
    }
}

fn deciding_rule<'r>(rules: &'r [CorsRule], origin: &str, method: &str) -> Option<&'r CorsRule> {
    rules.iter().find(|rule| rule.allows_origin(origin) && rule.allows_method(method))
}

impl CorsRule {
    fn allows_any_origin(&self) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed == ANY)
    }

    fn allows_origin(&self, origin: &str) -> bool {
        self.allowed_origins
            .iter()
            .any(|allowed| allowed == ANY || allowed == origin || is_below(allowed, origin))
    }

    fn allows_method(&self, method: &str) -> bool {
        self.allowed_methods.iter().any(|allowed| allowed == method)
    }
}

/// An allowed origin, split around the `*` at the beginning of its host: `http://` and `.contoso.com`.
pub(super) fn split_wildcard_origin(allowed: &str) -> Option<(&str, &str)> {
    let (before, after) = allowed.split_once(ANY)?;
    let begins_host = before.is_empty() || before.ends_with("://");
    let is_domain = after.len() > 1 && after.starts_with('.') && !after.contains(ANY);
    (begins_host && is_domain).then_some((before, after))
}

/// Whether the origin is a subdomain, at any depth, of an allowed origin with a wildcard.
fn is_below(allowed: &str, origin: &str) -> bool {
    let subdomain = split_wildcard_origin(allowed)
        .and_then(|(before, after)| origin.strip_prefix(before)?.strip_suffix(after));
    // `*` may stand only for host labels; otherwise it could swallow the end of another host, or a port.
    subdomain.is_some_and(|labels| {
        labels.split('.').all(|label| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        })
    })
}

/// Whether the list contains the header name: literally, by a prefix, or by `*`. Header names are not case-sensitive.
fn covers(list: &[String], name: &str) -> bool {
    list.iter().any(|item| match item.strip_suffix('*') {
        Some(prefix) => name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
        None => item.eq_ignore_ascii_case(name),
    })
}

/// The items of a comma-separated list, trimmed. Empty items are skipped.
pub(super) fn list_items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn not_empty(header: Option<&str>) -> Option<&str> {
    header.filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule written as `origins methods allowed exposed`, with commas in each list; `-` is an empty list.
    fn rule(text: &str) -> CorsRule {
        let mut lists =
            text.split(' ').map(|list| list_items(list.trim_matches('-')).map(str::to_owned).collect());
        let mut next = || lists.next().unwrap_or_default();
        CorsRule {
            allowed_origins: next(),
            allowed_methods: next(),
            allowed_headers: next(),
            exposed_headers: next(),
            max_age_seconds: 60,
        }
    }

    fn rules(texts: &[&str]) -> Vec<CorsRule> {
        texts.iter().map(|text| rule(text)).collect()
    }

    const NONE: &[&str] = &[];
    const EXACT: &[&str] = &["http://a.com,http://b.com GET,HEAD,PUT x-ms-*,accept etag"];
    const EVERY: &[&str] = &["* GET,HEAD,PUT * *"];

    /// `origin method headers`, or the code.
    #[track_caller]
    fn check_preflight(
        texts: &[&str],
        origin: &str,
        method: &str,
        headers: Option<&str>,
        expected: Result<&str, ErrorCode>,
    ) {
        let found = preflight(&rules(texts), Some(origin), Some(method), headers);
        let shown = found.map_err(|error| error.code).map(|answer| {
            assert_eq!(answer.max_age_seconds, 60);
            assert_eq!(answer.allow_credentials, answer.allow_origin != "*");
            assert_eq!(answer.allow_headers.as_deref(), headers.filter(|headers| !headers.is_empty()));
            format!("{} {}", answer.allow_origin, answer.allow_methods)
        });
        assert_eq!(
            shown.as_deref().map_err(|code| *code),
            expected,
            "{texts:?}: {origin} {method} {headers:?}"
        );
    }

    #[test]
    fn a_preflight_repeats_what_was_asked_for() {
        let answer = preflight(
            &rules(&["http://www.contoso.com PUT,GET content-type,accept,x-ms-* *"]),
            Some("http://www.contoso.com"),
            Some("PUT"),
            Some("content-type,accept"),
        );
        let expected = PreflightAnswer {
            allow_origin: "http://www.contoso.com".to_owned(),
            allow_methods: "PUT".to_owned(),
            allow_headers: Some("content-type,accept".to_owned()),
            max_age_seconds: 60,
            allow_credentials: true,
        };
        assert_eq!(answer.unwrap(), expected);
    }

    #[test]
    fn a_preflight_needs_an_origin_and_a_method() {
        for (origin, method) in
            [(None, None), (Some("http://a.com"), None), (None, Some("GET")), (Some(""), Some("GET"))]
        {
            for texts in [NONE, EXACT, EVERY] {
                let error = preflight(&rules(texts), origin, method, None).unwrap_err();
                assert_eq!(error.code, ErrorCode::InvalidHeaderValue);
                assert_eq!(error.message(), "A required CORS header is not present.");
            }
        }
    }

    #[test]
    fn a_preflight_matches_origin_method_and_headers() {
        let refused = Err(ErrorCode::CorsPreflightFailure);
        check_preflight(NONE, "http://a.com", "GET", None, refused);
        check_preflight(EXACT, "http://a.com", "GET", None, Ok("http://a.com GET"));
        check_preflight(EXACT, "http://b.com", "PUT", Some(""), Ok("http://b.com PUT"));
        check_preflight(EXACT, "http://A.com", "GET", None, refused);
        check_preflight(EXACT, "https://a.com", "GET", None, refused);
        check_preflight(EXACT, "http://a.com:80", "GET", None, refused);
        check_preflight(EXACT, "http://c.com", "GET", None, refused);
        check_preflight(EXACT, "http://a.com", "DELETE", None, refused);
        check_preflight(EXACT, "http://a.com", "get", None, refused);
        check_preflight(EXACT, "*", "GET", None, refused);
        check_preflight(EVERY, "http://a.com", "GET", Some("x, y"), Ok("* GET"));
        check_preflight(EVERY, "null", "PUT", None, Ok("* PUT"));
        check_preflight(EVERY, "http://a.com", "POST", None, refused);

        check_preflight(EXACT, "http://a.com", "GET", Some("accept"), Ok("http://a.com GET"));
        check_preflight(EXACT, "http://a.com", "GET", Some("ACCEPT, X-MS-Date ,"), Ok("http://a.com GET"));
        check_preflight(EXACT, "http://a.com", "GET", Some("x-ms-"), Ok("http://a.com GET"));
        check_preflight(EXACT, "http://a.com", "GET", Some("x-ms"), refused);
        check_preflight(EXACT, "http://a.com", "GET", Some("accept,content-type"), refused);
        check_preflight(EXACT, "http://a.com", "GET", Some("accept-language"), refused);
        check_preflight(EXACT, "http://a.com", "GET", Some("x-mé"), refused);
        check_preflight(&["* GET - -"], "http://a.com", "GET", None, Ok("* GET"));
        check_preflight(&["* GET - -"], "http://a.com", "GET", Some("accept"), refused);
    }

    #[test]
    fn the_first_rule_with_origin_and_method_decides() {
        let refused = Err(ErrorCode::CorsPreflightFailure);
        let texts = &["http://a.com GET accept", "http://a.com PUT *", "* GET,PUT *"];
        check_preflight(texts, "http://a.com", "GET", Some("accept"), Ok("http://a.com GET"));
        // A later rule would allow this header.
        check_preflight(texts, "http://a.com", "GET", Some("x"), refused);
        check_preflight(texts, "http://a.com", "PUT", Some("x"), Ok("http://a.com PUT"));
        check_preflight(texts, "http://b.com", "GET", Some("x"), Ok("* GET"));
        check_preflight(texts, "http://b.com", "POST", Some("x"), refused);
    }

    #[track_caller]
    fn check_origin(allowed: &str, origin: &str, expected: bool) {
        let found = rule(&format!("{allowed} GET")).allows_origin(origin);
        assert_eq!(found, expected, "{allowed}: {origin}");
    }

    #[test]
    fn a_wildcard_stands_for_subdomains() {
        check_origin("http://*.contoso.com", "http://www.contoso.com", true);
        check_origin("http://*.contoso.com", "http://a.b-c.contoso.com", true);
        check_origin("http://*.contoso.com:81", "http://www.contoso.com:81", true);
        check_origin("*.contoso.com", "www.contoso.com", true);
        check_origin("http://*.contoso.com", "http://contoso.com", false);
        check_origin("http://*.contoso.com", "http://.contoso.com", false);
        check_origin("http://*.contoso.com", "https://www.contoso.com", false);
        check_origin("http://*.contoso.com", "http://www.contoso.com:81", false);
        check_origin("http://*.contoso.com", "http://www.Contoso.com", false);
        check_origin("http://*.contoso.com", "http://wwwcontoso.com", false);
        check_origin("http://*.contoso.com", "http://evil.com/.contoso.com", false);
        check_origin("http://*.contoso.com", "http://evil.com:80.contoso.com", false);
        check_origin("http://*.contoso.com", "http://evil.com#.contoso.com", false);
        check_origin("http://*.contoso.com", "http://a..contoso.com", false);
        check_origin("http://*.contoso.com", "http://é.contoso.com", false);
        check_origin("*.contoso.com", "http://www.contoso.com", false);
        check_origin("http://w*.contoso.com", "http://www.contoso.com", false);
        check_origin("http://*", "http://www.contoso.com", false);
        check_origin("http://*.a.*", "http://x.a.b", false);
        check_origin("http://*.contoso.com", "http://*.contoso.com", true);
    }

    const HEADERS: [&str; 4] = ["x-ms-request-id", "Server", "ETag", "Date"];

    /// `allow-origin expose-headers`, then the flags.
    #[track_caller]
    fn check_actual(texts: &[&str], method: &str, origin: Option<&str>, expected: &str) {
        let found = actual(&rules(texts), method, origin, HEADERS.into_iter());
        let shown = [
            found.allow_origin.as_deref(),
            found.expose_headers.as_deref(),
            found.allow_credentials.then_some("credentials"),
            found.vary_origin.then_some("vary"),
        ];
        let shown: Vec<&str> = shown.into_iter().flatten().collect();
        assert_eq!(shown.join(" "), expected, "{texts:?}: {method} {origin:?}");
    }

    const ALL_EXPOSED: &str = "* x-ms-request-id,Server,ETag,Date";

    #[test]
    fn reads_follow_the_table_of_the_service() {
        for method in ["GET", "HEAD"] {
            check_actual(NONE, method, None, "");
            check_actual(EXACT, method, None, "vary");
            check_actual(EVERY, method, None, ALL_EXPOSED);
            check_actual(NONE, method, Some("http://a.com"), "");
            check_actual(EXACT, method, Some("http://a.com"), "http://a.com ETag credentials vary");
            check_actual(EXACT, method, Some("http://c.com"), "vary");
            check_actual(EVERY, method, Some("http://a.com"), ALL_EXPOSED);
            check_actual(EVERY, method, Some(""), ALL_EXPOSED);
        }
        // A rule for other methods does not match, but it still counts as a rule.
        check_actual(&["* PUT * *"], "GET", None, "vary");
        check_actual(&["* PUT * *"], "GET", Some("http://a.com"), "vary");
        // When an exact rule and one for any origin both match, the first one decides.
        let both = &["http://a.com GET * -", "* GET * -"];
        check_actual(both, "GET", Some("http://a.com"), "http://a.com credentials vary");
        check_actual(both, "GET", Some("http://b.com"), "*");
        check_actual(both, "GET", None, "*");
        check_actual(&["http://*.com GET * -"], "GET", Some("http://a.com"), "http://a.com credentials vary");
    }

    #[test]
    fn writes_never_vary_and_need_an_origin() {
        check_actual(EXACT, "PUT", Some("http://a.com"), "http://a.com ETag credentials");
        check_actual(EXACT, "PUT", Some("http://c.com"), "");
        check_actual(EXACT, "PUT", None, "");
        check_actual(EXACT, "POST", Some("http://a.com"), "");
        check_actual(EVERY, "PUT", Some("http://c.com"), ALL_EXPOSED);
        check_actual(EVERY, "PUT", None, "");
        check_actual(EVERY, "MERGE", Some("http://a.com"), "");
        check_actual(EXACT, "OPTIONS", None, "");
    }

    #[test]
    fn exposed_headers_are_those_of_the_answer() {
        let check = |list: &str, expected: &str| {
            check_actual(&[&format!("* GET - {list}")], "GET", Some("o"), expected);
        };
        check("-", "*");
        check("x-other", "*");
        check("etag,DATE", "* ETag,Date");
        check("date,etag", "* ETag,Date");
        check("X-MS-*", "* x-ms-request-id");
        check("x-ms-request-id*", "* x-ms-request-id");
        check("x-ms-request-ids*", "*");
        check("s*,etag,x-*", "* x-ms-request-id,Server,ETag");
    }
}
