//! Who may use the admin port: the token, and the rules that keep other web pages out.
//!
//! Promises: where others can reach the port, everything but the health checks needs the token. A web page of another
//! origin gets nothing, not even through a name that resolves to this machine. Comparing tokens takes the same time
//! wherever they differ. All functions are pure.

use std::net::{Ipv4Addr, Ipv6Addr};

use protocol::auth::is_same_secret;

use crate::http::header_names::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use crate::http::parts::RequestParts;

/// The cookie that carries the token for the page.
pub(crate) const COOKIE_NAME: &str = "lazulite-admin";

const SEC_FETCH_SITE: &str = "sec-fetch-site";
const SEC_FETCH_MODE: &str = "sec-fetch-mode";

/// What a request may reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Area {
    /// Whether the server lives and takes requests: for everybody.
    Health,
    /// The page's own files, which other pages may link to.
    Page,
    /// Numbers and findings.
    Api,
    /// The way to the services.
    Passage,
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// It has no token, or a wrong one.
    NoToken,
    /// It comes from a page of another origin.
    OtherOrigin,
    /// It names a host that is not this machine.
    OtherHost,
}

/// `token` is the one that is needed; `None` where only this machine reaches the port.
pub(crate) fn check(area: Area, parts: &RequestParts, token: Option<&str>) -> Result<(), Refused> {
    if area == Area::Health {
        return Ok(());
    }
    let host = text(parts, HOST).unwrap_or_default();
    // Without a token, the address protects the port. A page whose own name resolves to this machine would count as the
    // same origin, but it cannot change the host that it asks for.
    if token.is_none() && !is_loopback_host(host) {
        return Err(Refused::OtherHost);
    }
    if is_of_other_origin(area, parts, host) {
        return Err(Refused::OtherOrigin);
    }
    match token {
        Some(token) if !has_token(area, parts, token) => Err(Refused::NoToken),
        _ => Ok(()),
    }
}

fn is_of_other_origin(area: Area, parts: &RequestParts, host: &str) -> bool {
    for origin in parts.values(ORIGIN) {
        let same = origin.split_once("://");
        if same.is_none_or(|(_, authority)| !authority.eq_ignore_ascii_case(host)) {
            return true;
        }
    }
    match text(parts, SEC_FETCH_SITE) {
        // Not sent by a browser, or by one that is older than this header; it sends `Origin` with what changes
        // something.
        None => false,
        Some("same-origin" | "none") => {
            text(parts, SEC_FETCH_MODE) == Some("navigate") && area == Area::Passage
        }
        // Following a link to the page does no harm: the page that has the link learns nothing.
        Some(_) => {
            !(area == Area::Page
                && parts.method() == "GET"
                && text(parts, SEC_FETCH_MODE) == Some("navigate"))
        }
    }
}

fn has_token(area: Area, parts: &RequestParts, token: &str) -> bool {
    let pairs = parts
        .values(COOKIE)
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let mut sent = pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value);
    if sent.any(|sent| is_same_secret(sent, token)) {
        return true;
    }
    // On the way to a service, this header is the service's.
    let bearer = text(parts, AUTHORIZATION).and_then(|header| header.split_once(' '));
    area != Area::Passage
        && bearer.is_some_and(|(scheme, sent)| {
            scheme.eq_ignore_ascii_case("bearer") && is_same_secret(sent.trim(), token)
        })
}

fn is_loopback_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback()),
        None => {
            name.eq_ignore_ascii_case("localhost")
                || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// A value that is not ASCII is none.
fn text<'p>(parts: &'p RequestParts, name: &str) -> Option<&'p str> {
    parts.header(name).filter(|value| value.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_all(token: Option<&str>, list: &[(&str, &str)], expected: [Result<(), Refused>; 4]) {
        let parts = RequestParts::compose("GET", "/", list.iter().copied()).unwrap();
        let areas = [Area::Health, Area::Page, Area::Api, Area::Passage];
        assert_eq!(areas.map(|area| check(area, &parts, token)), expected, "{list:?}");
    }

    const HERE: (&str, &str) = ("host", "127.0.0.1:10003");

    #[test]
    fn on_this_machine_no_token_is_needed_but_the_host_must_be_this_machine() {
        for host in ["127.0.0.1:10003", "localhost:10003", "LOCALHOST", "[::1]:10003", "127.9.9.9"] {
            check_all(None, &[("host", host)], [Ok(()); 4]);
        }
        let refused = Err(Refused::OtherHost);
        for host in [
            "evil.example:10003",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "",
            "[::2]",
            "[::1].evil.example",
            "localhost:80@evil.example",
            "localhost:evil.example",
            "::1",
        ] {
            check_all(None, &[("host", host)], [Ok(()), refused, refused, refused]);
        }
    }

    #[test]
    fn pages_of_other_origins_get_nothing_but_a_link() {
        let refused = Err(Refused::OtherOrigin);
        check_all(None, &[HERE, ("origin", "http://127.0.0.1:10003")], [Ok(()); 4]);
        for origin in ["http://evil.example", "null", "http://127.0.0.1:10002", "http://localhost:10003"] {
            check_all(None, &[HERE, ("origin", origin)], [Ok(()), refused, refused, refused]);
        }
        for site in ["cross-site", "same-site"] {
            check_all(None, &[HERE, ("sec-fetch-site", site)], [Ok(()), refused, refused, refused]);
            let link = [HERE, ("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
            check_all(None, &link, [Ok(()), Ok(()), refused, refused]);
        }
        let own = [HERE, ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")];
        check_all(None, &own, [Ok(()); 4]);
        // Stored data must not be opened as a page.
        let opened = [HERE, ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "navigate")];
        check_all(None, &opened, [Ok(()), Ok(()), Ok(()), refused]);
    }

    #[test]
    fn elsewhere_the_token_is_needed() {
        let refused = Err(Refused::NoToken);
        let there = ("host", "server.example");
        let none = [Ok(()), refused, refused, refused];
        check_all(Some("secret"), &[there], none);
        check_all(Some("secret"), &[there, ("authorization", "Bearer secreT")], none);
        check_all(Some("secret"), &[there, ("authorization", "Basic secret")], none);
        check_all(Some("secret"), &[there, ("cookie", "lazulite-admin=secre")], none);
        check_all(Some("secret"), &[there, ("cookie", "a=b; lazulite-admin=secret")], [Ok(()); 4]);
        // The header is the service's on the way to a service.
        check_all(
            Some("secret"),
            &[there, ("authorization", "bearer secret")],
            [Ok(()), Ok(()), Ok(()), refused],
        );
    }
}
