//! Stored access policies as XML: the body of the operations that get and set a container's ACL.
//!
//! Promises: an ACL that was read has at most five policies with distinct identifiers; writing keeps their order.

use super::xml::{self, Element, invalid_document, invalid_value};
use super::xml_write::XmlWriter;
use crate::ServiceError;
use crate::common::{DateTime, StoredPolicy, parse_policy_time};

const POLICY_COUNT_MAX: usize = 5;
/// In UTF-16 units, which is how the service counts characters.
const ID_CHARS_MAX: usize = 64;
const FRACTION_DIGITS_MAX: usize = 7;

/// Reads the policies that replace those of a container. An empty body means no policies. `letters` are the permission
/// letters of the service; each policy has some of them, in this order.
pub fn read_acl(body: &[u8], letters: &str) -> Result<Vec<StoredPolicy>, ServiceError> {
    read_acl_by(body, |text| {
        let mut remaining = letters.chars();
        text.chars().all(|letter| remaining.any(|permission| permission == letter))
    })
}

/// The same for services with another rule for permissions.
pub(crate) fn read_acl_by(
    body: &[u8],
    is_permission: impl Fn(&str) -> bool,
) -> Result<Vec<StoredPolicy>, ServiceError> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let root = xml::read(body, "SignedIdentifiers")?;
    let mut policies: Vec<StoredPolicy> = Vec::new();
    for element in root.items("SignedIdentifier", POLICY_COUNT_MAX)? {
        let policy = read_policy(element, &is_permission)?;
        if policies.iter().any(|other| other.id == policy.id) {
            return Err(invalid_document("an identifier twice"));
        }
        policies.push(policy);
    }
    Ok(policies)
}

fn read_policy(
    element: &Element,
    is_permission: impl Fn(&str) -> bool,
) -> Result<StoredPolicy, ServiceError> {
    let [id, policy] = element.fields(["Id", "AccessPolicy"])?;
    let id = id.ok_or_else(|| invalid_document("no Id"))?.leaf()?;
    if id.is_empty() || id.encode_utf16().count() > ID_CHARS_MAX {
        return Err(invalid_document("an Id that is empty or too long"));
    }
    let mut stored = StoredPolicy { id: id.to_owned(), start: None, expiry: None, permission: None };
    let Some(policy) = policy else { return Ok(stored) };
    let [start, expiry, permission] = policy.fields(["Start", "Expiry", "Permission"])?;
    stored.start = given(start)?.map(read_time).transpose()?;
    stored.expiry = given(expiry)?.map(read_time).transpose()?;
    stored.permission = given(permission)?.map(|text| read_permission(text, is_permission)).transpose()?;
    Ok(stored)
}

/// The text of a field. Older clients send fields that they do not set as empty elements.
fn given(field: Option<&Element>) -> Result<Option<&str>, ServiceError> {
    let Some(field) = field else { return Ok(None) };
    Ok(Some(field.leaf()?).filter(|text| !text.is_empty()))
}

/// `YYYY-MM-DD`, optionally followed by `Thh:mm[:ss[.fffffff]]` and a zone. With a time, the zone is required.
fn read_time(text: &str) -> Result<DateTime, ServiceError> {
    let text = text.trim();
    if let Some((_, clock)) = text.split_once('T') {
        let zone_at = clock.find(['Z', '+', '-']).ok_or_else(|| invalid_value("a time without a zone"))?;
        let fraction_digits = clock[..zone_at].split_once('.').map_or(0, |(_, digits)| digits.len());
        if fraction_digits > FRACTION_DIGITS_MAX {
            return Err(invalid_value("a time with too long a fraction"));
        }
    }
    parse_policy_time(text).ok_or_else(|| invalid_value("not a time"))
}

fn read_permission(text: &str, is_permission: impl Fn(&str) -> bool) -> Result<String, ServiceError> {
    if !is_permission(text) {
        return Err(invalid_value("not permissions, or not in their order"));
    }
    Ok(text.to_owned())
}

/// The policies as the service shows them: fields that were never set are left out.
pub fn write_acl(policies: &[StoredPolicy]) -> Vec<u8> {
    let mut writer = XmlWriter::begin();
    if policies.is_empty() {
        writer.empty("SignedIdentifiers");
        return writer.finish();
    }
    writer.start("SignedIdentifiers");
    for policy in policies {
        writer.start("SignedIdentifier");
        writer.leaf("Id", &policy.id);
        write_policy(policy, &mut writer);
        writer.end("SignedIdentifier");
    }
    writer.end("SignedIdentifiers");
    writer.finish()
}

/// Writes nothing for a policy without any field, as the live service does, whether it was set as an empty element or
/// not at all.
fn write_policy(policy: &StoredPolicy, writer: &mut XmlWriter) {
    if policy.start.is_none() && policy.expiry.is_none() && policy.permission.is_none() {
        return;
    }
    writer.start("AccessPolicy");
    for (name, time) in [("Start", policy.start), ("Expiry", policy.expiry)] {
        if let Some(time) = time {
            writer.leaf(name, &time.to_padded());
        }
    }
    if let Some(permission) = &policy.permission {
        writer.leaf("Permission", permission);
    }
    writer.end("AccessPolicy");
}

#[cfg(test)]
mod tests {
    use super::super::xml::hostile::{check_refusal, mutations, truncations};
    use super::*;

    const LETTERS: &str = "raud";
    use crate::ErrorCode;

    const HEAD: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

    fn document(identifiers: &str) -> String {
        format!("<SignedIdentifiers>{identifiers}</SignedIdentifiers>")
    }

    /// Reads one body, and writes the result.
    #[track_caller]
    fn check(body: &str, expected: Result<&str, ErrorCode>) {
        let written = read_acl(body.as_bytes(), LETTERS)
            .map(|policies| String::from_utf8(write_acl(&policies)).unwrap())
            .map_err(|error| error.code);
        let expected = expected.map(|document| format!("{HEAD}{document}"));
        assert_eq!(written, expected, "{body}");
    }

    /// One policy with these fields.
    #[track_caller]
    fn check_policy(fields: &str, expected: Result<&str, ErrorCode>) {
        let body =
            |policy: &str| document(&format!("<SignedIdentifier><Id>i</Id>{policy}</SignedIdentifier>"));
        let expected = expected.map(body);
        check(
            &body(&format!("<AccessPolicy>{fields}</AccessPolicy>")),
            expected.as_deref().map_err(|code| *code),
        );
    }

    #[track_caller]
    fn check_time(text: &str, expected: Option<&str>) {
        let fields = format!("<Start>{text}</Start>");
        let policy = expected.map(|time| format!("<AccessPolicy><Start>{time}</Start></AccessPolicy>"));
        check_policy(&fields, policy.as_deref().ok_or(ErrorCode::InvalidXmlNodeValue));
    }

    #[test]
    fn the_recorded_exchange_is_repeated_byte_for_byte() {
        check(
            "<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy><Start>2021-06-08T02:05:09Z</Start><Expiry>2021-06-08T03:10:09Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
            Ok(
                "<SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start><Expiry>2021-06-08T03:10:09.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
            ),
        );
    }

    #[test]
    fn no_policies_are_an_empty_element() {
        check("", Ok("<SignedIdentifiers />"));
        check("<SignedIdentifiers />", Ok("<SignedIdentifiers />"));
        check("<?xml version=\"1.0\"?><SignedIdentifiers> </SignedIdentifiers>", Ok("<SignedIdentifiers />"));
        check(" ", Err(ErrorCode::InvalidXmlDocument));
        check("<SignedIdentifier />", Err(ErrorCode::InvalidXmlDocument));
    }

    #[test]
    fn fields_that_are_not_set_are_left_out() {
        check_policy("", Ok(""));
        check_policy("<Start /><Expiry></Expiry><Permission/>", Ok(""));
        check_policy(
            "<Permission>raud</Permission>",
            Ok("<AccessPolicy><Permission>raud</Permission></AccessPolicy>"),
        );
        check_policy(
            "<Expiry>2030-01-01</Expiry><Start/>",
            Ok("<AccessPolicy><Expiry>2030-01-01T00:00:00.0000000Z</Expiry></AccessPolicy>"),
        );
        check(
            &document("<SignedIdentifier><Id>x</Id></SignedIdentifier>"),
            Ok(&document("<SignedIdentifier><Id>x</Id></SignedIdentifier>")),
        );
    }

    #[test]
    fn times_are_read_in_four_forms() {
        check_time("2021-06-08", Some("2021-06-08T00:00:00.0000000Z"));
        check_time("2021-06-08T02:05Z", Some("2021-06-08T02:05:00.0000000Z"));
        check_time("2021-06-08T02:05:09Z", Some("2021-06-08T02:05:09.0000000Z"));
        check_time("2021-06-08T02:05:09.5Z", Some("2021-06-08T02:05:09.5000000Z"));
        check_time("2021-06-08T02:05:09.1234567Z", Some("2021-06-08T02:05:09.1234567Z"));
        check_time("2021-06-08T02:05+02:00", Some("2021-06-08T00:05:00.0000000Z"));
        check_time("2021-06-08T22:05:09-02:00", Some("2021-06-09T00:05:09.0000000Z"));
        check_time("\n 2021-06-08 ", Some("2021-06-08T00:00:00.0000000Z"));
        check_time(" ", None);
        check_time("2021-06", None);
        check_time("2021-02-29", None);
        check_time("2021-06-08Z", None);
        check_time("2021-06-08T02:05", None);
        check_time("2021-06-08T02:05:09", None);
        check_time("2021-06-08T02:05:09.12345678Z", None);
        check_time("2021-06-08T", None);
        check_time("2021-06-08T25:00Z", None);
        check_time("2021-06-08 02:05:09Z", None);
        check_time("Tue, 08 Jun 2021 02:05:09 GMT", None);
        check_time("soon", None);
    }

    #[test]
    fn permissions_are_letters_in_their_order() {
        for text in ["r", "a", "u", "d", "ra", "rd", "aud", "raud"] {
            let fields = format!("<Permission>{text}</Permission>");
            check_policy(&fields, Ok(&format!("<AccessPolicy>{fields}</AccessPolicy>")));
        }
        for text in ["x", "R", "rr", "ar", "dua", "raudx", " r", "r ", "r,a", "rq"] {
            check_policy(&format!("<Permission>{text}</Permission>"), Err(ErrorCode::InvalidXmlNodeValue));
        }
    }

    #[test]
    fn identifiers_are_few_short_and_distinct() {
        let one = |id: &str| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>");
        let some = |count: usize| document(&(0..count).map(|at| one(&at.to_string())).collect::<String>());
        check(&some(5), Ok(&some(5)));
        check(&some(6), Err(ErrorCode::InvalidXmlDocument));

        for id in ["x".repeat(64), "\u{1F600}".repeat(32), "a &lt;&amp;&gt; b".to_owned(), " ".to_owned()] {
            check(&document(&one(&id)), Ok(&document(&one(&id))));
        }
        for id in ["x".repeat(65), "\u{1F600}".repeat(33), String::new(), "<b/>".to_owned()] {
            check(&document(&one(&id)), Err(ErrorCode::InvalidXmlDocument));
        }
        check(&document(&[one("a"), one("A")].concat()), Ok(&document(&[one("a"), one("A")].concat())));
        check(&document(&[one("a"), one("a")].concat()), Err(ErrorCode::InvalidXmlDocument));
    }

    #[test]
    fn what_is_not_of_the_schema_is_refused() {
        for identifiers in [
            "x",
            "<Id>a</Id>",
            "<SignedIdentifier />",
            "<SignedIdentifier><AccessPolicy /></SignedIdentifier>",
            "<SignedIdentifier><Id>a</Id><Id>b</Id></SignedIdentifier>",
            "<SignedIdentifier><Id>a</Id><AccessPolicy /><AccessPolicy /></SignedIdentifier>",
            "<SignedIdentifier><Id>a</Id><AccessPolicy>r</AccessPolicy></SignedIdentifier>",
            "<SignedIdentifier><Id>a</Id><AccessPolicy><Start><b/></Start></AccessPolicy></SignedIdentifier>",
            "<SignedIdentifier><Id>a</Id><AccessPolicy><Other/></AccessPolicy></SignedIdentifier>",
            "<SignedIdentifier><Id>a</Id><SignedIdentifier><Id>b</Id></SignedIdentifier></SignedIdentifier>",
            "<SignedIdentifier><Id>a</Id>",
        ] {
            check(&document(identifiers), Err(ErrorCode::InvalidXmlDocument));
        }
    }

    #[test]
    fn no_body_makes_the_reader_panic_and_what_is_taken_is_kept() {
        let policies = read_acl(
            document("<SignedIdentifier><Id>a&lt;</Id><AccessPolicy><Start>2021-06-08</Start><Expiry>2021-06-08T02:05Z</Expiry><Permission>ra</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>b</Id></SignedIdentifier>")
                .as_bytes(),
            LETTERS,
        )
        .unwrap();
        let full = write_acl(&policies);
        assert_eq!(read_acl(&full, LETTERS).unwrap(), policies);
        for truncated in truncations(&full).skip(1) {
            check_refusal(&read_acl(truncated, LETTERS).unwrap_err());
        }
        let (mut taken, mut refused) = (0, 0);
        for body in mutations(&[&full, &write_acl(&[]), &write_acl(&policies[1..])], 20_000) {
            match read_acl(&body, LETTERS) {
                Ok(policies) => {
                    taken += 1;
                    assert_eq!(read_acl(&write_acl(&policies), LETTERS).unwrap(), policies);
                }
                Err(error) => {
                    refused += 1;
                    check_refusal(&error);
                }
            }
        }
        assert!(taken > 1_000 && refused > 1_000, "{taken} taken, {refused} refused");
    }
}
