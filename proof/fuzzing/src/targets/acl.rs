//! A table's access policies as XML: reads them, writes them, and reads them again.

use protocol::common::acl::{read_acl, write_acl};
use protocol::table::KIND;

use crate::golden::distinct;
use crate::{Golden, Outcome, Target};

pub const TARGET: Target = Target {
    name: "acl",
    run,
    input_bytes_max: 64 * 1024,
    tokens: &[
        b"<SignedIdentifiers>",
        b"</SignedIdentifiers>",
        b"<SignedIdentifiers/>",
        b"<SignedIdentifier>",
        b"</SignedIdentifier>",
        b"<Id>",
        b"</Id>",
        b"<Id>a</Id>",
        b"<AccessPolicy>",
        b"</AccessPolicy>",
        b"<AccessPolicy/>",
        b"<Start>",
        b"</Start>",
        b"<Expiry>",
        b"</Expiry>",
        b"<Permission>",
        b"</Permission>",
        b"<Permission/>",
        b"raud",
        b"ud",
        b"2020-01-01",
        b"2020-01-01T00:00:00.0000000Z",
        b"2020-01-01T00:00+14:00",
        b"0001-01-01T00:00:00Z",
        b"9999-12-31T23:59:59.9999999Z",
        b"<",
        b">",
        b"/>",
        b"</",
        b"&",
        b"&amp;",
        b"&lt;",
        b"&#x41;",
        b"&#0;",
        b"&x;",
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<?xml version=\"1.0\" encoding=\"utf-8\"?>",
        b"<!DOCTYPE a>",
        b" xmlns='x'",
        b"a:",
        b"\"",
        b" ",
        b"\r\n",
        b"\t",
        b"\xEF\xBB\xBF",
        b"\xF0\x9F\x92\x8E",
        b"\x00",
        b"\xFF",
    ],
    seeds,
};

const BY_HAND: [&str; 3] = [
    "<SignedIdentifiers><SignedIdentifier><Id> a &amp; b </Id><AccessPolicy><Start>2020-01-01</Start><Expiry>2030-01-01T00:00:00.1234567Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>b</Id></SignedIdentifier></SignedIdentifiers>",
    "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<SignedIdentifiers xmlns=\"x\">\r\n <!-- c --> <SignedIdentifier><Id><![CDATA[<c>]]></Id><AccessPolicy><Permission>au</Permission><Start/></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
    "<SignedIdentifiers/>",
];

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let bodies = golden.bodies("<").into_iter();
    let policies = bodies.filter(|body| body.windows(17).any(|window| window == b"SignedIdentifiers"));
    distinct(policies.chain(BY_HAND.iter().map(|text| text.as_bytes().to_vec())))
}

pub fn run(input: &[u8]) -> Outcome {
    let policies = match read_acl(input, KIND.policy_letters) {
        Ok(policies) => policies,
        Err(error) => return error.into(),
    };
    let written = write_acl(&policies);
    let again = read_acl(&written, KIND.policy_letters).unwrap_or_else(|error| {
        panic!("written policies cannot be read: {} {}", error.code.name(), written.escape_ascii())
    });
    assert_eq!(policies, again, "{}", written.escape_ascii());
    Outcome::Accepted(match policies.len() {
        0 => "none",
        1 => "one",
        _ => "several",
    })
}
