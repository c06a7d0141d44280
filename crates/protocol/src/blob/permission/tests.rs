//! What each operation needs, one line each: sections 7.2, 7.3 and 8 of the specification.

use super::*;
use crate::auth::{DelegationRole, KeyBounds};
use crate::blob::{Headers, KIND};
use crate::common::query::Query;

const OLD: &str = "2025-11-05";
const NEW: &str = "2026-06-06";

/// One line per operation: the request with a header, what an account SAS needs (`srt`, and any one of these letters of
/// `sp`), whether a service SAS for the container or for the blob is enough, the roles, and the public access.
/// `C` is the container `abc`, `B` the blob `d/e` in it.
const TABLE: &[(&str, &str, &str, &str, &str, &str)] = &[
    ("GET /?restype=service&comp=properties", "s", "r", "", "RCO", ""),
    ("GET /?restype=service&comp=stats", "s", "r", "", "RCO", ""),
    ("PUT /?restype=service&comp=properties", "s", "w", "", "", ""),
    ("GET /?comp=list", "s", "l", "", "RCO", ""),
    ("GET /?comp=blobs&where=x", "o", "f", "", "RCO", ""),
    ("PUT C", "c", "cw", "", "CO", ""),
    ("GET C", "c", "r", "", "RCO", "container"),
    ("HEAD C", "c", "r", "", "RCO", "container"),
    ("DELETE C", "c", "d", "", "CO", ""),
    ("GET C&comp=metadata", "c", "r", "", "RCO", "container"),
    ("PUT C&comp=metadata", "c", "w", "", "CO", ""),
    ("GET C&comp=acl", "", "", "", "", ""),
    ("PUT C&comp=acl", "", "", "", "", ""),
    ("PUT C&comp=lease x-ms-lease-action:renew", "c", "w", "", "CO", ""),
    ("PUT C&comp=lease x-ms-lease-action:break", "c", "wd", "", "CO", ""),
    ("GET C&comp=list", "c", "l", "c", "RCO", "container"),
    ("GET C&comp=blobs&where=x", "o", "f", "c", "RCO", ""),
    ("PUT C&comp=undelete", "c", "w", "", "CO", ""),
    ("PUT B x-ms-blob-type:BlockBlob", "o", "cw", "cb", "CO", ""),
    ("PUT B x-ms-blob-type:PageBlob", "o", "cw", "cb", "CO", ""),
    ("PUT B x-ms-copy-source:http://x/y", "o", "cw", "cb", "CO", ""),
    ("PUT B?comp=snapshot", "o", "cw", "cb", "CO", ""),
    ("GET B", "o", "r", "cb", "RCO", "blob"),
    ("HEAD B", "o", "r", "cb", "RCO", "blob"),
    ("DELETE B", "o", "d", "cb", "CO", ""),
    ("DELETE B?versionid=2026-06-26T01:02:03.0000001Z", "o", "x", "cb", "CO", ""),
    ("DELETE B?snapshot=2026-06-26T01:02:03.0000001Z", "o", "d", "cb", "CO", ""),
    ("DELETE B?snapshot=2026-06-26T01:02:03.0000001Z&deletetype=permanent", "o", "y", "cb", "CO", ""),
    ("PUT B?comp=properties", "o", "w", "cb", "CO", ""),
    ("GET B?comp=metadata", "o", "r", "cb", "RCO", "blob"),
    ("PUT B?comp=metadata", "o", "w", "cb", "CO", ""),
    ("PUT B?comp=lease x-ms-lease-action:acquire", "o", "w", "cb", "CO", ""),
    ("PUT B?comp=lease x-ms-lease-action:break", "o", "wd", "cb", "CO", ""),
    ("PUT B?comp=copy&copyid=1 x-ms-copy-action:abort", "o", "w", "cb", "CO", ""),
    ("PUT B?comp=tier", "o", "w", "cb", "CO", ""),
    ("GET B?comp=tags", "o", "t", "cb", "RCO", ""),
    ("PUT B?comp=tags", "o", "t", "cb", "CO", ""),
    ("PUT B?comp=undelete", "o", "w", "cb", "CO", ""),
    ("PUT B?comp=block&blockid=MQ==", "o", "w", "cb", "CO", ""),
    ("PUT B?comp=blocklist", "o", "w", "cb", "CO", ""),
    ("GET B?comp=blocklist", "o", "r", "cb", "RCO", "blob"),
    ("PUT B?comp=appendblock", "o", "aw", "cb", "CO", ""),
    ("PUT B?comp=appendblock x-ms-copy-source:http://x/y", "o", "aw", "cb", "CO", ""),
    ("PUT B?comp=seal", "o", "w", "cb", "CO", ""),
    ("PUT B?comp=page x-ms-page-write:update", "o", "w", "cb", "CO", ""),
    ("PUT B?comp=page x-ms-page-write:clear", "o", "w", "cb", "CO", ""),
    ("GET B?comp=pagelist", "o", "r", "cb", "RCO", "blob"),
];
const LETTERS: &str = "racwdxyltfmeopi";
const ROLES: [(char, RoleSet); 3] = [('R', READER), ('C', CONTRIBUTOR), ('O', OWNER)];

fn with_operation<T>(request: &str, look: impl FnOnce(&BlobOperation<'_>) -> T) -> T {
    let request = request.replace(" C", " /abc?restype=container").replace(" B", " /abc/d%2Fe");
    let mut words = request.split(' ');
    let (method, url) = (words.next().unwrap(), words.next().unwrap());
    let headers: Headers<'_> = words.map(|header| header.split_once(':').unwrap()).collect();
    let (path, query) = url[1..].split_once('?').unwrap_or((&url[1..], ""));
    look(&BlobOperation::read(method, path, &Query::split(query), &headers).unwrap())
}

fn authorize_at(version: &str, grant: &Grant, request: &str, sets_tags: bool) -> Result<(), ErrorCode> {
    with_operation(request, |operation| {
        grant.authorize(&KIND, &operation.need(version, sets_tags)).map_err(|error| error.code)
    })
}

fn authorize(grant: &Grant, request: &str) -> Result<(), ErrorCode> {
    authorize_at(OLD, grant, request, false)
}

fn account_sas(services: &str, types: &str, letters: &str) -> Grant {
    Grant::AccountSas {
        services: LetterSet::parse(services),
        resource_types: LetterSet::parse(types),
        permissions: LetterSet::parse(letters),
    }
}

fn service_sas(resource: &str, letters: &str) -> Grant {
    let (resource, permissions) = (resource.into(), LetterSet::parse(letters));
    Grant::ServiceSas { resource, permissions, bounds: KeyBounds::default() }
}

#[test]
fn an_account_sas_needs_the_service_the_level_and_one_letter() {
    for (request, level, any_of, ..) in TABLE {
        if level.is_empty() {
            let all = account_sas("b", "sco", LETTERS);
            assert_eq!(authorize(&all, request), Err(ErrorCode::AuthorizationFailure), "{request}");
            continue;
        }
        for letter in LETTERS.chars() {
            let found = authorize(&account_sas("b", level, &letter.to_string()), request);
            let expected =
                any_of.contains(letter).then_some(()).ok_or(ErrorCode::AuthorizationPermissionMismatch);
            assert_eq!(found, expected, "{request} {letter}");
        }
        let others: String = "sco".chars().filter(|other| !level.contains(*other)).collect();
        let elsewhere = authorize(&account_sas("b", &others, LETTERS), request);
        assert_eq!(elsewhere, Err(ErrorCode::AuthorizationResourceTypeMismatch), "{request}");
        let foreign = authorize(&account_sas("qt", "sco", LETTERS), request);
        assert_eq!(foreign, Err(ErrorCode::AuthorizationServiceMismatch), "{request}");
    }
}

#[test]
fn a_service_sas_reaches_blobs_and_their_list() {
    for (request, _, any_of, resources, ..) in TABLE {
        for (letter, resource) in [('c', "abc"), ('b', "abc/d/e")] {
            for permission in LETTERS.chars() {
                let found = authorize(&service_sas(resource, &permission.to_string()), request);
                let expected = match resources.contains(letter) {
                    false => Err(ErrorCode::AuthorizationFailure),
                    true if any_of.contains(permission) => Ok(()),
                    true => Err(ErrorCode::AuthorizationPermissionMismatch),
                };
                assert_eq!(found, expected, "{request} {resource} {permission}");
            }
        }
        for other in ["other", "abc/d", "abc/d/e/f", "abc/D/e", "other/d/e"] {
            let found = authorize(&service_sas(other, LETTERS), request);
            assert_eq!(found, Err(ErrorCode::AuthorizationFailure), "{request} {other}");
        }
    }
}

#[test]
fn roles_allow_what_their_definitions_say() {
    for (request, level, _, _, roles, _) in TABLE {
        assert_eq!(authorize(&Grant::Everything, request), Ok(()), "{request}");
        for (letter, role) in ROLES {
            let found = authorize(&Grant::Roles(role), request);
            let refusal = match level {
                &"" => ErrorCode::ResourceNotFound,
                _ => ErrorCode::AuthorizationPermissionMismatch,
            };
            assert_eq!(found, roles.contains(letter).then_some(()).ok_or(refusal), "{request} {letter}");
        }
    }
}

#[test]
fn anonymous_callers_read_what_is_public() {
    for (request, .., access) in TABLE {
        with_operation(request, |operation| {
            assert!(!operation.is_public(None), "{request}");
            assert_eq!(operation.is_public(Some(PublicAccess::Blob)), *access == "blob", "{request}");
            let is_public = operation.is_public(Some(PublicAccess::Container));
            assert_eq!(is_public, !access.is_empty(), "{request}");
        });
    }
}

#[test]
fn tags_on_the_way_need_their_own_letter() {
    for request in ["PUT B x-ms-blob-type:BlockBlob", "PUT B x-ms-copy-source:http://x/y"] {
        for (letters, is_enough) in [("c", false), ("w", false), ("t", false), ("ct", true), ("wt", true)] {
            let found = authorize_at(OLD, &service_sas("abc", letters), request, true);
            assert_eq!(found.is_ok(), is_enough, "{request} {letters}");
        }
    }
    for (letters, is_enough) in [("w", false), ("ct", false), ("wt", true)] {
        let found = authorize_at(OLD, &service_sas("abc", letters), "PUT B?comp=blocklist", true);
        assert_eq!(found.is_ok(), is_enough, "{letters}");
    }
}

#[test]
fn permissions_change_with_the_version() {
    let create = service_sas("abc", "c");
    for request in ["PUT B?comp=block&blockid=MQ==", "PUT B?comp=blocklist"] {
        let refused = Err(ErrorCode::AuthorizationPermissionMismatch);
        assert_eq!(authorize_at(OLD, &create, request, false), refused);
        assert_eq!(authorize_at(NEW, &create, request, false), Ok(()));
    }
    let request = "PUT B?comp=lease x-ms-lease-action:break";
    assert!(authorize_at("2017-04-17", &service_sas("abc", "d"), request, false).is_err());
}

#[test]
fn replacing_needs_the_permission_to_write() {
    let code = |grant: Grant| authorize_overwrite(&grant).map_err(|error| error.code);
    assert_eq!(code(Grant::Everything), Ok(()));
    assert_eq!(code(service_sas("abc", "w")), Ok(()));
    assert_eq!(code(service_sas("abc", "rlac")), Err(ErrorCode::UnauthorizedBlobOverwrite));
    assert_eq!(code(account_sas("b", "o", "c")), Err(ErrorCode::UnauthorizedBlobOverwrite));
}

#[test]
fn some_operations_need_nothing_but_credentials() {
    for request in ["POST /?comp=batch", "POST C&comp=batch", "GET /?restype=account&comp=properties"] {
        assert_eq!(authorize(&service_sas("abc", "r"), request), Ok(()));
        with_operation(request, |operation| assert!(!operation.is_public(Some(PublicAccess::Container))));
    }
    let role = |grant| authorize_delegation(grant).map_err(|error| error.code);
    assert_eq!(role(&Grant::Roles(READER)), Ok(DelegationRole::Reader));
    assert_eq!(role(&Grant::Roles(OWNER)), Ok(DelegationRole::Writer));
    assert_eq!(role(&Grant::Roles(RoleSet::NONE)), Err(ErrorCode::AuthorizationPermissionMismatch));
    assert_eq!(role(&Grant::Everything), Err(ErrorCode::AuthenticationFailed));
    assert_eq!(
        Grant::Everything.authorize(&KIND, &source_need("abc", "d")).map_err(|error| error.code),
        Ok(())
    );
}
