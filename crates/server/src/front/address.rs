//! Finds the account that a request addresses, and the path within it: from the host's first label, or from the path's
//! first segment.
//!
//! Leaves to others: whether the account exists, and what the path means to the service.

/// What a request addresses. Nothing has been authorized yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target<'a> {
    /// The account's name without `-secondary`.
    pub account: &'a str,
    pub is_secondary: bool,
    /// The path within the account, still percent-encoded, without its leading slash.
    pub path: &'a str,
    /// The part of the request's path that names the account: empty, or `/account`.
    pub base_path: &'a str,
    /// Whether the host is that of the account's website.
    pub is_site: bool,
}

const SECONDARY_SUFFIX: &str = "-secondary";
/// In a host name, the account may say which kind of address its name resolves to. It is the same account.
const NETWORK_SUFFIXES: [&str; 2] = ["-ipv6", "-dualstack"];

/// The domains that may follow the account and the service's label in a host name: those of the public and sovereign
/// clouds, and of a developer's own machine.
const DOMAINS: [&str; 5] =
    ["core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de", "localhost"];

/// What stands behind the account in the host names of a service.
#[derive(Clone, Copy)]
pub(crate) struct HostLabels<'a> {
    pub service: &'a str,
    /// For the accounts' websites, if the service has them.
    pub site: Option<&'a str>,
}

/// `host` may have a port. A host without a known suffix means that the path names the account.
pub(crate) fn locate<'a>(
    host: &'a str,
    path: &'a str,
    labels: HostLabels<'_>,
    suffixes: &[String],
) -> Target<'a> {
    if let Some((label, is_site)) = account_label(host, labels, suffixes) {
        let (account, is_secondary) = split_secondary(without_network(label));
        let account = without_network(account);
        let path = path.strip_prefix('/').unwrap_or(path);
        return Target { account, is_secondary, path, base_path: "", is_site };
    }
    let bare = path.strip_prefix('/').unwrap_or(path);
    let segment_len = bare.bytes().position(|byte| byte == b'/').unwrap_or(bare.len());
    let (account, is_secondary) = split_secondary(&bare[..segment_len]);
    let base_len = path.len() - bare.len() + segment_len;
    let rest = &bare[segment_len..];
    // When it reads from the secondary by path, the Python client repeats the account's name.
    let again = rest.strip_prefix('/').and_then(|rest| rest.strip_prefix(account));
    let rest = match again {
        Some(after) if is_secondary && after.starts_with('/') => after,
        _ => rest,
    };
    Target {
        account,
        is_secondary,
        path: rest.strip_prefix('/').unwrap_or(rest),
        base_path: &path[..base_len],
        is_site: false,
    }
}

/// The account's label, and whether the host is that of its website.
fn account_label<'a>(host: &'a str, labels: HostLabels<'_>, suffixes: &[String]) -> Option<(&'a str, bool)> {
    // A bracketed IPv6 address contains colons itself, but it has no label to find anyway.
    let name_len = host.bytes().position(|byte| byte == b':').unwrap_or(host.len());
    // No domain ends with a digit, but addresses do.
    if suffixes.is_empty() && host[..name_len].ends_with(|last: char| last.is_ascii_digit()) {
        return None;
    }
    let dot = host[..name_len].bytes().position(|byte| byte == b'.')?;
    let (label, rest) = (&host[..dot], &host[dot + 1..name_len]);
    let is_domain = |rest: &str| DOMAINS.iter().any(|domain| rest.eq_ignore_ascii_case(domain));
    let is_suffix = |rest: &str| suffixes.iter().any(|suffix| rest.eq_ignore_ascii_case(suffix));
    let is_service =
        |dot: usize| rest[..dot].eq_ignore_ascii_case(labels.service) && is_domain(&rest[dot + 1..]);
    let is_known = rest.bytes().position(|byte| byte == b'.').is_some_and(is_service) || is_suffix(rest);
    if is_known {
        return Some((label, false));
    }
    let site = labels.site?;
    let (zone, after_zone) = rest.split_once('.')?;
    let rest = if is_zone(zone) { after_zone } else { rest };
    let (found, domain) = rest.split_once('.')?;
    let is_site = found.eq_ignore_ascii_case(site) && (is_domain(domain) || is_suffix(domain));
    is_site.then_some((label, true))
}

/// In the clouds, a zone such as `z6` stands between an account and the label of its website.
fn is_zone(label: &str) -> bool {
    let digits = label.strip_prefix(['z', 'Z']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn without_network(label: &str) -> &str {
    NETWORK_SUFFIXES.iter().find_map(|suffix| label.strip_suffix(suffix)).unwrap_or(label)
}

fn split_secondary(label: &str) -> (&str, bool) {
    match label.strip_suffix(SECONDARY_SUFFIX) {
        Some(account) => (account, true),
        None => (label, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_in_the_host_or_in_the_path() {
        let suffixes = ["table.example.org".to_owned()];
        let check =
            |host: &str, path: &str, account: &str, is_secondary: bool, rest: &str, base_path: &str| {
                let expected = Target { account, is_secondary, path: rest, base_path, is_site: false };
                let labels = HostLabels { service: "table", site: None };
                assert_eq!(locate(host, path, labels, &suffixes), expected, "{host} {path}");
            };
        check("127.0.0.1:10002", "/acc/Tables", "acc", false, "Tables", "/acc");
        check("localhost", "/acc-secondary/Tables", "acc", true, "Tables", "/acc-secondary");
        check("localhost", "/acc-secondary/acc/", "acc", true, "", "/acc-secondary");
        check("[::1]:10002", "/acc", "acc", false, "", "/acc");
        check("127.0.0.1", "/", "", false, "", "/");
        check("acc.table.core.windows.net", "/Tables", "acc", false, "Tables", "");
        check("acc-secondary.table.core.windows.net:443", "/", "acc", true, "", "");
        check("acc-ipv6.table.core.windows.net", "/t()", "acc", false, "t()", "");
        check("acc-dualstack.table.core.windows.net", "/t()", "acc", false, "t()", "");
        check("acc-secondary-ipv6.table.core.windows.net", "/t()", "acc", true, "t()", "");
        check("acc-dualstack-secondary.table.core.windows.net", "/t()", "acc", true, "t()", "");
        check("acc.table.example.org", "/t()", "acc", false, "t()", "");
        check("acc.table.localhost:10002", "/t()", "acc", false, "t()", "");
        check("acc.example.org", "/x/t()", "x", false, "t()", "/x");
        check("acc.queue.core.windows.net", "/x/t()", "x", false, "t()", "/x");
        check("acc.web.localhost", "/x/t()", "x", false, "t()", "/x");
    }

    #[test]
    fn websites_have_hosts_of_their_own() {
        let suffixes = ["storage.example.org".to_owned()];
        let labels = HostLabels { service: "service", site: Some("web") };
        let check = |host: &str, site: Option<&str>| {
            let found = locate(host, "/x/y", labels, &suffixes);
            assert_eq!(found.is_site.then_some(found.account), site, "{host}");
            assert_eq!(found.path, if found.base_path.is_empty() { "x/y" } else { "y" }, "{host}");
        };
        check("acc.web.localhost:10000", Some("acc"));
        check("ACC.Web.LocalHost", Some("ACC"));
        check("acc.z6.web.core.windows.net", Some("acc"));
        check("acc-secondary.z22.web.core.windows.net", Some("acc"));
        check("acc.web.storage.example.org", Some("acc"));
        for other in [
            "acc.service.localhost",
            "acc.storage.example.org",
            "web.localhost",
            "acc.z.web.localhost",
            "acc.zx.web.localhost",
            "acc.z6.z6.web.localhost",
            "acc.web.localhost.example.org",
            "acc.web.example.org",
            "acc.web",
            "127.0.0.1:10000",
            "localhost",
            "",
        ] {
            check(other, None);
        }
    }
}
