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

/// The protocol version that a request names, if it names one. When the query carries a shared access signature,
/// `api-version` takes precedence over the header, and the header over `sv`. `header` must be a valid version.
pub fn protocol_version<'a>(query: &Query<'a>, header: Option<&'a str>) -> Option<&'a str> {
    if query.raw("sig").is_none() {
        return header;
    }
    let named = |name: &str| query.raw(name).filter(|text| is_version(text));
    named("api-version").or(header).or_else(|| named("sv"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_in_the_query_brings_its_version() {
        let check = |query: &str, header: Option<&'static str>, expected: Option<&str>| {
            assert_eq!(protocol_version(&Query::split(query), header), expected, "{query} {header:?}");
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
}
