//! Protocol versions: dates in a form that sorts as text.

use super::query::Query;

/// Any well-formed date counts as a version, because new versions appear faster than servers are updated.
pub fn is_version(text: &str) -> bool {
    let has_form = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    has_form && ("01"..="12").contains(&&text[5..7]) && ("01"..="31").contains(&&text[8..])
}

/// Where a request with a shared access signature says its version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionOrder {
    /// `api-version`, then the header, then `sv`.
    ParameterFirst,
    /// The header, then `api-version`, then `sv`. With the two oldest versions of `sv` the header does not count.
    HeaderFirst,
}

/// With these versions of `sv` the header does not count.
const VERSIONS_DEAF_TO_HEADER: [&str; 2] = ["2012-02-12", "2013-08-15"];

/// The protocol version that a request names, if it names one. A signature in the query brings a version of its own;
/// without a signature the header counts. `header` must be a valid version.
pub fn protocol_version<'a>(
    query: &Query<'a>,
    header: Option<&'a str>,
    order: VersionOrder,
) -> Option<&'a str> {
    if query.raw("sig").is_none() {
        return header;
    }
    let named = |name: &str| query.raw(name).filter(|text| is_version(text));
    let signed = named("sv");
    match order {
        VersionOrder::ParameterFirst => named("api-version").or(header).or(signed),
        VersionOrder::HeaderFirst => {
            let is_deaf = signed.is_some_and(|version| VERSIONS_DEAF_TO_HEADER.contains(&version));
            header.filter(|_| !is_deaf).or_else(|| named("api-version")).or(signed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_in_the_query_brings_its_version() {
        let check = |query: &str, header: Option<&'static str>, expected: Option<&str>| {
            let order = VersionOrder::ParameterFirst;
            assert_eq!(protocol_version(&Query::split(query), header, order), expected, "{query} {header:?}");
        };
        let header = Some("2020-12-06");
        check("", None, None);
        check("", header, header);
        check("sv=2019-02-02", None, None);
        check("sv=2019-02-02&sig=x", None, Some("2019-02-02"));
        check("sv=2019-02-02&sig=x", header, header);
        check("sv=2019-02-02&sig=x&api-version=2018-03-28", header, Some("2018-03-28"));
        check("sv=x&sig=x&api-version=y", None, None);
        check("api-version=banana&sv=2015-04-05&sig=x", None, Some("2015-04-05"));
        check("api-version=2017-04-17", None, None);
        check("api-version=2017-04-17", header, header);
    }
    #[test]
    fn the_header_may_come_first() {
        let check = |query: &str, expected: Option<&str>| {
            let found = protocol_version(&Query::split(query), Some("2020-12-06"), VersionOrder::HeaderFirst);
            assert_eq!(found, expected, "{query}");
        };
        check("", Some("2020-12-06"));
        check("sv=2019-02-02&sig=x&api-version=2018-03-28", Some("2020-12-06"));
        check("sv=2012-02-12&sig=x&api-version=2018-03-28", Some("2018-03-28"));
        check("sv=2013-08-15&sig=x", Some("2013-08-15"));
    }
}
