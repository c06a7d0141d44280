//! What the Blob service contributes to the common code: its `ServiceKind`, its roles and its service SAS.
//!
//! Its operations are not here yet: authentication needs no more than this.

use crate::auth::sas::text;
use crate::auth::{
    KeyBounds, MalformedSas, RoleSet, ScopeParameter, ServiceKind, ServiceScope, SharedKeyForm,
};
use crate::common::percent::percent_decode;
use crate::common::query::Query;
use crate::common::version::VersionOrder;

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
/// The first version that signs the encryption scope.
const VERSION_ENCRYPTION_SCOPE: &str = "2020-12-06";

pub const KIND: ServiceKind = ServiceKind {
    name: "Blob",
    label: "blob",
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

/// `sr` says how much of the path is signed: the container or the blob. Directories (`sr=d`) are not known.
fn read_scope(query: &Query<'_>, path: &str) -> Result<ServiceScope, MalformedSas> {
    let path = percent_decode(path).ok_or(MalformedSas("the path is not percent-encoded UTF-8"))?;
    let (container, blob) = path.split_once('/').unwrap_or((&path, ""));
    let kind = text(query, "sr")?;
    let resource = match &*kind {
        "c" => container.to_owned(),
        "b" | "bs" | "bv" if !blob.is_empty() => format!("{container}/{blob}"),
        _ => return Err(MalformedSas("sr names no resource that the path has")),
    };
    if container.is_empty() {
        return Err(MalformedSas("the path names no container"));
    }
    let version = text(query, "sv")?;
    let moment = match &*kind {
        "bs" => "snapshot",
        "bv" => "versionid",
        _ => "",
    };
    let has_headers = &*version >= VERSION_RESPONSE_HEADERS;
    let mut parameters = Vec::with_capacity(8);
    for (name, is_signed) in [
        ("sr", &*version >= VERSION_RESOURCE_KIND),
        (moment, &*version >= VERSION_RESOURCE_KIND),
        ("ses", &*version >= VERSION_ENCRYPTION_SCOPE),
        ("rscc", has_headers),
        ("rscd", has_headers),
        ("rsce", has_headers),
        ("rscl", has_headers),
        ("rsct", has_headers),
    ] {
        // A blob or a container has no moment, but the line for it is signed.
        let value = if name.is_empty() { String::new() } else { text(query, name)?.into_owned() };
        parameters.push(ScopeParameter { name, value, is_signed });
    }
    let policy = text(query, "si")?.into_owned();
    Ok(ServiceScope { label: KIND.label, resource, policy, parameters, bounds: KeyBounds::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{AccountKey, SasToken};

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
        for path in ["mycontainer", blob] {
            check(
                &format!("sr=c&sp=racwdl&{times}&sv=2025-11-05"),
                path,
                "HSrwk2GupZkG+qZQtwOf7VS9s4gd2+aiGgQnNA+XYWQ=",
            );
        }
        check(
            &format!("sr=bs&sp=r&{expiry}&sv=2025-11-05&snapshot=2026-06-26T01:02:03.0000001Z"),
            blob,
            "vgoLAlLWWCAtnGXuERKq6OOCml2lQOvtt9Gwu0a203c=",
        );
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
        for (terms, path) in [("sr=b", "container"), ("sr=x", "container/blob"), ("sr=c", ""), ("", "c/b")] {
            let text = format!("sv=2025-11-05&sp=r&se=2030-01-01&{terms}&{signature}");
            assert!(SasToken::read(&Query::split(&text), path, &KIND).is_err(), "{terms} {path}");
        }
    }
}
