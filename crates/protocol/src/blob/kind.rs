//! What the Blob service contributes to the common code: its `ServiceKind`, its roles and its service SAS.

use crate::auth::sas::{DEPTH, text};
use crate::auth::{
    KeyBounds, MalformedSas, RoleSet, ScopeParameter, ServiceKind, ServiceScope, SharedKeyForm,
};
use crate::common::percent::percent_decode;
use crate::common::query::Query;
use crate::common::version::VersionOrder;

use super::name::{BlobName, ContainerName, ROOT_CONTAINER};
use super::versions;

/// Storage Blob Data Reader.
pub const READER: RoleSet = RoleSet(1);
/// Storage Blob Data Contributor.
pub const CONTRIBUTOR: RoleSet = RoleSet(2);
/// Storage Blob Data Owner: here an owner may do no more than a contributor.
pub const OWNER: RoleSet = RoleSet(4);

/// The first version that signs the response headers a SAS sets.
const VERSION_RESPONSE_HEADERS: &str = "2013-08-15";
/// The first version that signs the kind of resource and the snapshot.
const VERSION_RESOURCE_KIND: &str = "2018-11-09";
/// The first version in which a user delegation SAS may be bound to headers and parameters.
const VERSION_BOUND_REQUESTS: &str = "2026-04-06";
/// The first version that signs the encryption scope.
const VERSION_ENCRYPTION_SCOPE: &str = "2020-12-06";

pub const KIND: ServiceKind = ServiceKind {
    name: "Blob",
    label: "blob",
    site_label: Some("web"),
    letter: "b",
    port: 10000,
    server_header: "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0",
    version_default: "2026-06-06",
    version_order: VersionOrder::HeaderFirst,
    ignores_parameter_case: true,
    shared_key: SharedKeyForm::Full,
    policy_letters: "racwdxyltfmeopi",
    roles: &[
        ("Storage Blob Data Reader", "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", READER),
        ("Storage Blob Data Contributor", "ba92f5b4-2d11-453d-a403-e96b0029c9fe", CONTRIBUTOR),
        ("Storage Blob Data Owner", "b7e6dc6d-f1e8-4753-8033-0f276bb0955b", OWNER),
    ],
    role_of_basic_tokens: OWNER,
    read_service_scope: read_scope,
};

/// `sr` says how much of the path is signed: the container, the blob, or a directory that the blob's name begins with.
fn read_scope(query: &Query<'_>, path: &str) -> Result<ServiceScope, MalformedSas> {
    let malformed = MalformedSas("the path is not percent-encoded UTF-8");
    let decoded = |raw| percent_decode(raw).ok_or(malformed);
    let kind = text(query, "sr")?;
    let is = |restype: &str| query.raw("restype").is_some_and(|sent| sent.eq_ignore_ascii_case(restype));
    // Get Account Information is asked of any path, so there the signature says whether this one is a container's.
    let is_container = is("container") || (is("account") && kind == "c");
    let (container, blob) = match path.split_once('/') {
        Some((container, blob)) => (decoded(container)?, decoded(blob)?),
        None if is_container => (decoded(path)?, "".into()),
        // A path of one segment is that of a blob without a container.
        None => (ROOT_CONTAINER.into(), decoded(path)?),
    };
    let depth = text(query, DEPTH)?;
    let resource = match &*kind {
        "c" => container.clone().into_owned(),
        "b" | "bs" | "bv" if !blob.is_empty() => format!("{container}/{blob}"),
        "d" if is_within_depth(&depth, &blob) => format!("{container}/{blob}"),
        _ => return Err(MalformedSas("sr names no resource that the path has")),
    };
    if container.is_empty() || (container == ROOT_CONTAINER && blob.is_empty() && path.is_empty()) {
        return Err(MalformedSas("the path names no container"));
    }
    let version = text(query, "sv")?;
    let is_of_blob = matches!(&*kind, "b" | "d") && &*version >= versions::SNAPSHOT_SAS;
    let names_moment = |name| query.raw(name).is_some_and(|value| !value.is_empty());
    if (is_of_blob && (names_moment("snapshot") || names_moment("versionid")))
        || (kind == "bs" && !names_moment("snapshot"))
        || (kind == "bv" && !names_moment("versionid"))
    {
        return Err(MalformedSas("sr is not for the snapshot or version of the request"));
    }
    // These tokens are bound to headers and parameters of the request, which are not looked at here.
    let is_delegated = query.raw("skoid").is_some();
    let is_bound = is_delegated && &*version >= VERSION_BOUND_REQUESTS;
    if is_bound && (names_moment("srh") || names_moment("srq")) {
        return Err(MalformedSas("srh and srq are not supported"));
    }
    let moment = match &*kind {
        "bs" => "snapshot",
        "bv" => "versionid",
        _ => "",
    };
    let mut parameters = Vec::with_capacity(11);
    for (name, is_signed) in signed_names(&version, moment, is_bound) {
        // A blob or a container has no moment, but the line for it is signed.
        let value = if name.is_empty() { String::new() } else { text(query, name)?.into_owned() };
        parameters.push(ScopeParameter { name, value, is_signed });
    }
    if kind == "d" {
        parameters.push(ScopeParameter { name: DEPTH, value: depth.into_owned(), is_signed: false });
    }
    let policy = text(query, "si")?.into_owned();
    Ok(ServiceScope { label: KIND.label, resource, policy, parameters, bounds: KeyBounds::default() })
}

/// The names of the particular parameters, in the order in which they are signed, and whether this version signs them.
fn signed_names(version: &str, moment: &'static str, is_bound: bool) -> [(&'static str, bool); 10] {
    let has_headers = version >= VERSION_RESPONSE_HEADERS;
    [
        ("sr", version >= VERSION_RESOURCE_KIND),
        (moment, version >= VERSION_RESOURCE_KIND),
        ("ses", version >= VERSION_ENCRYPTION_SCOPE),
        ("srh", is_bound),
        ("srq", is_bound),
        ("rscc", has_headers),
        ("rscd", has_headers),
        ("rsce", has_headers),
        ("rscl", has_headers),
        ("rsct", has_headers),
    ]
}

/// The scope of a service SAS for a container, or for one blob in it, for those who make tokens.
pub fn new_scope(
    version: &str,
    container: &ContainerName,
    blob: Option<&BlobName>,
    policy: String,
) -> ServiceScope {
    let (kind, resource) = match blob {
        Some(blob) => ("b", format!("{container}/{blob}")),
        None => ("c", container.as_str().to_owned()),
    };
    let parameter = |(name, is_signed): (&'static str, bool)| {
        let value = if name == "sr" { kind.to_owned() } else { String::new() };
        ScopeParameter { name, value, is_signed }
    };
    let parameters = signed_names(version, "", false).into_iter().map(parameter).collect();
    ServiceScope { label: KIND.label, resource, policy, parameters, bounds: KeyBounds::default() }
}

/// Whether a blob's name has this many segments. The root is no directory that a token can be for.
fn is_within_depth(depth: &str, blob: &str) -> bool {
    let segment_count = memchr::memchr_iter(b'/', blob.as_bytes()).count() + 1;
    depth.parse::<usize>().is_ok_and(|depth| depth >= 1 && depth <= segment_count) && !blob.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{
        AccountKey, Connection, DelegatedScope, DelegationKey, DelegationRole, SasScope, SasTerms, SasToken,
    };
    use crate::common::DateTime;

    const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    /// The test vectors of the blob specification, section 7.1.
    #[test]
    fn the_published_vectors_verify() {
        let keys = [AccountKey::from_base64(KEY).unwrap()];
        let check = |terms: &str, path: &str, signature: &str| {
            let text = format!("{terms}&sig={signature}");
            let query = Query::split(&text);
            let token = SasToken::read(&query, path, &KIND).unwrap().unwrap();
            let signed = token.terms().string_to_sign("devstoreaccount1");
            assert!(token.verify("devstoreaccount1", &keys), "{signed:?}");
        };
        let blob = "mycontainer/hello.txt";
        let times = "st=2026-06-26T00:00:00Z&se=2026-06-27T00:00:00Z";
        let expiry = "se=2026-06-27T00:00:00Z";
        check(
            &format!("sr=b&sp=rw&{times}&spr=https,http&sv=2025-11-05"),
            blob,
            "agzhxYRT2oqinretBt3JKuaaTPwn7BTR4mJowI7uxyc=",
        );
        check(
            &format!("sr=b&sp=rw&{times}&spr=https,http&sv=2019-12-12"),
            blob,
            "3SPhOHvmJxNkL/RXbmuEx31QD6qMMnYyJzIUWTHgxgU=",
        );
        // A signature for the container also covers the blobs in it.
        for (path, restype) in [("mycontainer", "&restype=container"), (blob, "")] {
            check(
                &format!("sr=c{restype}&sp=racwdl&{times}&sv=2025-11-05"),
                path,
                "HSrwk2GupZkG+qZQtwOf7VS9s4gd2+aiGgQnNA+XYWQ=",
            );
        }
        check(
            &format!("sr=bs&sp=r&{expiry}&sv=2025-11-05&snapshot=2026-06-26T01:02:03.0000001Z"),
            blob,
            "vgoLAlLWWCAtnGXuERKq6OOCml2lQOvtt9Gwu0a203c=",
        );
        for path in ["mycontainer/dir1/dir2", "mycontainer/dir1/dir2/c"] {
            check(
                &format!("sr=d&sdd=2&sp=rl&{expiry}&sv=2025-11-05"),
                path,
                "TQqY0uGO2dYoDMTQFWwsFiTBLhCwmB7CrnQyvV+CK0E=",
            );
        }
        check(
            &format!("sr=b&sp=r&{expiry}&rscd=attachment;%20filename=a.txt&rsct=text/plain&sv=2025-11-05"),
            blob,
            "2NkbpVYBiMF0ECs49bb81GmTrgTv+INkVjBlNEZRXz8=",
        );
        check(
            &format!("sr=b&sp=r&{expiry}&spr=https,http&sv=2017-11-09"),
            blob,
            "u94wJj+TKRr2ReJlQWKEzuaHuEF1Dqkl6A4+y8tN2ZY=",
        );
        check(
            &format!("sr=b&sp=r&{expiry}&sv=2014-02-14"),
            blob,
            "rpIIAJXts1/eSEFt7rdwXgah3wrrSIi2k7wt/rbo+eg=",
        );
    }

    #[test]
    fn a_signature_needs_a_resource_that_the_path_has() {
        let signature = format!("sig={}%3D", "A".repeat(43));
        for (terms, path) in [
            ("sr=b&restype=container", "container"),
            ("sr=b", ""),
            ("sr=x", "container/blob"),
            ("sr=c", ""),
            ("", "c/b"),
            ("sr=b&snapshot=2026-06-26T01:02:03.0000001Z", "c/b"),
            ("sr=b&versionid=2026-06-26T01:02:03.0000001Z", "c/b"),
            ("sr=bs", "c/b"),
            ("sr=bv&snapshot=2026-06-26T01:02:03.0000001Z", "c/b"),
            ("sr=d", "c/b"),
            ("sr=d&sdd=1", "c/"),
            ("sr=d&sdd=x", "c/b"),
            ("sr=d&sdd=0", "c/b"),
            ("sr=d&sdd=2", "c/b"),
        ] {
            let text = format!("sv=2025-11-05&sp=r&se=2030-01-01&{terms}&{signature}");
            assert!(SasToken::read(&Query::split(&text), path, &KIND).is_err(), "{terms} {path}");
        }
    }

    #[test]
    fn a_signature_for_a_directory_covers_what_is_in_it() {
        let keys = [AccountKey::from_base64(KEY).unwrap()];
        let text = "sr=d&sdd=2&sp=rl&se=2026-06-27T00:00:00Z&sv=2025-11-05&sig=TQqY0uGO2dYoDMTQFWwsFiTBLhCwmB7CrnQyvV%2BCK0E%3D";
        let query = Query::split(text);
        for (path, is_right) in [
            ("mycontainer/dir1/dir2", true),
            ("mycontainer/dir1%2Fdir2/a/b", true),
            ("mycontainer/dir1/dir2x", false),
            ("mycontainer/dir1/x", false),
            ("other/dir1/dir2", false),
        ] {
            let token = SasToken::read(&query, path, &KIND).unwrap().unwrap();
            assert_eq!(token.verify("devstoreaccount1", &keys), is_right, "{path}");
            let SasScope::Service(scope) = &token.terms().scope else { unreachable!() };
            assert_eq!(scope.resource, path.replace("%2F", "/"));
        }
        assert!(SasToken::read(&query, "mycontainer/dir1", &KIND).is_err());
    }

    #[test]
    fn blobs_without_a_container_are_in_the_root() {
        let resource = |terms: &str, path: &str| {
            let text = format!("sv=2025-11-05&{terms}");
            read_scope(&Query::split(&text), path).map(|scope| scope.resource)
        };
        assert_eq!(resource("sr=b", "photo.png"), Ok("$root/photo.png".to_owned()));
        assert_eq!(resource("sr=c", "photo.png"), Ok("$root".to_owned()));
        assert_eq!(resource("sr=c&restype=container", "abc"), Ok("abc".to_owned()));
        assert_eq!(resource("sr=b", "a%2Fb"), Ok("$root/a/b".to_owned()));
    }

    fn delegated(version: &str) -> SasTerms<'static> {
        let text = format!("sv={version}&sr=b&skoid=oid");
        let service = read_scope(&Query::split(&text), "c/b").unwrap();
        let key = DelegationKey {
            object_id: "oid".into(),
            tenant_id: "tid".into(),
            start: "2026-06-26T00:00:00Z".into(),
            expiry: "2026-06-28T00:00:00Z".into(),
            service: "b".into(),
            version: "2020-12-06".into(),
        };
        let agents = ["saoid", "suoid", "scid", "skdutid", ""].map(Into::into);
        let scope = SasScope::Delegated(Box::new(DelegatedScope { service, key, agents }));
        SasTerms {
            permissions: "r".into(),
            expiry: "2026-06-27T00:00:00Z".into(),
            ..SasTerms::new(version.to_owned(), scope)
        }
    }

    /// The lines of section 7.4.
    #[test]
    fn a_user_delegation_sas_signs_more_with_every_version() {
        let check = |version: &str, expected: &str| {
            let expected = expected.replace(' ', "\n");
            assert_eq!(delegated(version).string_to_sign("acct"), expected, "{version}");
        };
        let start = "r  2026-06-27T00:00:00Z /blob/acct/c/b oid tid 2026-06-26T00:00:00Z 2026-06-28T00:00:00Z b 2020-12-06";
        // `sip` and `spr` are empty, as is the moment; five lines are those of response headers.
        check("2018-11-09", &format!("{start}   2018-11-09 b      "));
        check("2020-02-10", &format!("{start} saoid suoid scid   2020-02-10 b      "));
        check("2020-12-06", &format!("{start} saoid suoid scid   2020-12-06 b       "));
        check("2025-07-05", &format!("{start} saoid suoid scid skdutid    2025-07-05 b       "));
        check("2026-04-06", &format!("{start} saoid suoid scid skdutid    2026-04-06 b         "));
    }

    #[test]
    fn delegation_keys_are_verified_and_pass_on_no_more_than_their_holder_may() {
        let account_key = AccountKey::from_base64(KEY).unwrap();
        let at = |text: &str| DateTime::parse(text).unwrap();
        let connection = Connection { peer: [127, 0, 0, 1].into(), is_https: true };
        let check = |role, permissions: &str, is_right: bool| {
            let mut terms = delegated("2025-07-05");
            terms.permissions = permissions.to_owned().into();
            let SasScope::Delegated(scope) = &terms.scope else { unreachable!() };
            let key = AccountKey::from_base64(&scope.key.derive("acct", &account_key, role)).unwrap();
            let text = terms.mint("acct", &key).unwrap();
            let query = Query::split(&text);
            let token = SasToken::read(&query, "c/b", &KIND).unwrap().unwrap();
            let keys = [account_key.clone()];
            assert_eq!(token.verify("acct", &keys), is_right, "{role:?} {permissions}");
            assert!(!token.verify("other", &keys));
            assert!(token.grant(&[], at("2026-06-26T12:00:00Z"), &connection).is_ok());
            assert!(token.grant(&[], at("2026-06-25T12:00:00Z"), &connection).is_err());
            for (from, to) in
                [("skoid=oid", "skoid=x"), ("ske=2026-06-28", "ske=2026-07-28"), ("sp=", "sp=l")]
            {
                let forged = text.replace(from, to);
                let query = Query::split(&forged);
                let token = SasToken::read(&query, "c/b", &KIND).unwrap().unwrap();
                assert!(!token.verify("acct", &keys), "{to}");
            }
        };
        check(DelegationRole::Reader, "r", true);
        check(DelegationRole::Reader, "rw", false);
        check(DelegationRole::Writer, "r", true);
        check(DelegationRole::Writer, "racwd", true);
        // The key of the account itself is no delegation key.
        let text = delegated("2025-07-05").mint("acct", &account_key).unwrap();
        let token_query = Query::split(&text);
        let token = SasToken::read(&token_query, "c/b", &KIND).unwrap().unwrap();
        assert!(!token.verify("acct", &[account_key]));
    }

    #[test]
    fn a_user_delegation_sas_is_for_one_service_and_unbound() {
        let text = delegated("2026-04-06").mint("acct", &AccountKey::from_base64(KEY).unwrap()).unwrap();
        let read =
            |text: &str| SasToken::read(&Query::split(text), "c/b", &KIND).map(|token| token.is_some());
        assert_eq!(read(&text), Ok(true));
        for (from, to) in [
            ("sks=b", "sks=q"),
            ("sr=b", "sr=b&srh=x-ms-date"),
            ("sr=b", "sr=b&sduoid=x"),
            ("sr=b", "sr=b&si=policy"),
            ("sv=2026-04-06", "sv=2017-11-09"),
        ] {
            assert!(read(&text.replace(from, to)).is_err(), "{to}");
        }
    }
}
