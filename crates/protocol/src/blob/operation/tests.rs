//! One line per row of the dispatch table in section 1.1 of the specification, and the requests that have no row.

use super::*;

fn shown(operation: &BlobOperation<'_>) -> String {
    match operation {
        BlobOperation::Service(operation) => format!("{operation:?}"),
        BlobOperation::Account(action) => format!("{action:?}"),
        BlobOperation::Container { container, action } => format!("{action:?} {container}"),
        BlobOperation::Blob { container, blob, revision, action } => {
            let revision = if revision.is_base() { String::new() } else { format!(" {revision:?}") };
            let revision = revision.split('(').next().unwrap();
            format!("{action:?} {container}|{blob}{revision}")
        }
    }
}

/// `request` is a method, a URL within the account, and headers, with blanks between them.
#[track_caller]
fn check(request: &str, expected: Result<&str, ErrorCode>) {
    let mut words = request.split(' ');
    let (method, url) = (words.next().unwrap(), words.next().unwrap());
    let headers: Headers<'_> = words.map(|header| header.split_once(':').unwrap()).collect();
    let (path, query) = url[1..].split_once('?').unwrap_or((&url[1..], ""));
    let query = Query::split(query).with_lower_names();
    let operation = BlobOperation::read(method, path, &query, &headers);
    let found = operation.as_ref().map(shown).map_err(|error| error.code);
    assert_eq!(found.as_deref().map_err(|code| *code), expected, "{request}");
}

#[test]
fn the_account_has_these_operations() {
    check("GET /?comp=list", Ok("ListContainers"));
    check("GET /?restype=service&comp=properties", Ok("GetProperties"));
    check("PUT /?restype=service&comp=properties", Ok("SetProperties"));
    check("GET /?restype=service&comp=stats", Ok("GetStats"));
    for path in ["/", "/abc", "/abc/d/e"] {
        check(&format!("GET {path}?restype=account&comp=properties"), Ok("GetAccountInformation"));
        check(&format!("HEAD {path}?comp=properties&restype=account"), Ok("GetAccountInformation"));
    }
    check("POST /?restype=service&comp=userdelegationkey", Ok("GetUserDelegationKey"));
    check("POST /?comp=batch", Ok("Batch"));
    check("POST /?restype=container&comp=batch", Ok("Batch"));
    check("GET /?restype=container&comp=list", Err(ErrorCode::InvalidQueryParameterValue));
    check("GET /?comp=blobs&where=x", Ok("FindBlobs"));
}

#[test]
fn containers_have_these_operations() {
    let at = |method: &str, query: &str| format!("{method} /abc?restype=container{query}");
    check(&at("PUT", ""), Ok("Create abc"));
    check(&at("DELETE", ""), Ok("Delete abc"));
    for method in ["GET", "HEAD"] {
        check(&at(method, ""), Ok("GetProperties abc"));
        check(&at(method, "&comp=metadata"), Ok("GetMetadata abc"));
        check(&at(method, "&comp=acl"), Ok("GetAcl abc"));
    }
    check(&at("PUT", "&comp=metadata"), Ok("SetMetadata abc"));
    check(&at("PUT", "&comp=acl"), Ok("SetAcl abc"));
    check(&at("PUT", "&comp=lease x-ms-lease-action:acquire"), Ok("Lease(Acquire) abc"));
    check(&at("GET", "&comp=list"), Ok("ListBlobs abc"));
    check(&at("GET", "&comp=blobs&where=x"), Ok("FindBlobs abc"));
    check(&at("POST", "&comp=batch"), Ok("Batch abc"));
    check(&at("PUT", "&comp=undelete"), Ok("Restore abc"));
    check("PUT /$root?restype=container", Ok("Create $root"));
    check("PUT /abc/?restype=container", Ok("Create abc"));
    check("PUT /a%62c?RESTYPE=Container&Comp=Metadata", Ok("SetMetadata abc"));
}

#[test]
fn blobs_have_these_operations() {
    let source = "x-ms-copy-source:http://a/b";
    check(&format!("PUT /abc/d {source} x-ms-blob-type:BlockBlob"), Ok("PutFromUrl abc|d"));
    check(&format!("PUT /abc/d {source} x-ms-requires-sync:true"), Ok("CopyFromUrl abc|d"));
    check(&format!("PUT /abc/d {source} x-ms-requires-sync:false"), Ok("Copy abc|d"));
    check(&format!("PUT /abc/d {source}"), Ok("Copy abc|d"));
    check("PUT /abc/d x-ms-blob-type:BlockBlob", Ok("Put(Block) abc|d"));
    check("PUT /abc/d x-ms-blob-type:PageBlob", Ok("Put(Page) abc|d"));
    check("PUT /abc/d x-ms-blob-type:AppendBlob", Ok("Put(Append) abc|d"));
    check("GET /abc/d", Ok("Get abc|d"));
    check("HEAD /abc/d", Ok("GetProperties abc|d"));
    check("DELETE /abc/d", Ok("Delete(Usual) abc|d"));
    check("DELETE /abc/d?deletetype=Permanent", Ok("Delete(Permanent) abc|d"));
    check("PUT /abc/d?comp=properties", Ok("SetProperties abc|d"));
    check("GET /abc/d?comp=metadata", Ok("GetMetadata abc|d"));
    check("HEAD /abc/d?comp=metadata", Ok("GetMetadata abc|d"));
    check("PUT /abc/d?comp=metadata", Ok("SetMetadata abc|d"));
    for (action, shown) in [
        ("acquire", "Acquire"),
        ("renew", "Renew"),
        ("Change", "Change"),
        ("release", "Release"),
        ("break", "Break"),
    ] {
        let expected = format!("Lease({shown}) abc|d");
        check(&format!("PUT /abc/d?comp=lease x-ms-lease-action:{action}"), Ok(&expected));
    }
    check("PUT /abc/d?comp=snapshot", Ok("Snapshot abc|d"));
    check("PUT /abc/d?comp=copy&copyid=1 x-ms-copy-action:abort", Ok("AbortCopy abc|d"));
    check("PUT /abc/d?comp=tier", Ok("SetTier abc|d"));
    check("GET /abc/d?comp=tags", Ok("GetTags abc|d"));
    check("PUT /abc/d?comp=tags", Ok("SetTags abc|d"));
    check("PUT /abc/d?comp=undelete", Ok("Undelete abc|d"));
    check("PUT /abc/d?comp=block&blockid=MQ==", Ok("PutBlock abc|d"));
    check(&format!("PUT /abc/d?comp=block&blockid=MQ== {source}"), Ok("PutBlockFromUrl abc|d"));
    check("PUT /abc/d?comp=blocklist", Ok("PutBlockList abc|d"));
    check("GET /abc/d?comp=blocklist", Ok("GetBlockList abc|d"));
    check("PUT /abc/d?comp=appendblock", Ok("AppendBlock abc|d"));
    check(&format!("PUT /abc/d?comp=appendblock {source}"), Ok("AppendBlockFromUrl abc|d"));
    check("PUT /abc/d?comp=seal", Ok("Seal abc|d"));
    check("PUT /abc/d?comp=page x-ms-page-write:update", Ok("PutPages abc|d"));
    check(&format!("PUT /abc/d?comp=page x-ms-page-write:update {source}"), Ok("PutPagesFromUrl abc|d"));
    check("PUT /abc/d?comp=page x-ms-page-write:clear", Ok("ClearPages abc|d"));
    check("GET /abc/d?comp=pagelist", Ok("GetPageRanges abc|d"));
}

#[test]
fn names_of_blobs_are_taken_as_they_are() {
    check("GET /abc/d/e", Ok("Get abc|d/e"));
    check("GET /abc/d%2Fe", Ok("Get abc|d/e"));
    check("GET /abc//d//", Ok("Get abc|/d//"));
    check("GET /abc/../x/.", Ok("Get abc|../x/."));
    check("GET /abc/a%5Cb+c", Ok("Get abc|a\\b+c"));
    check("GET /photo.png", Ok("Get $root|photo.png"));
    check("GET /$root/photo.png", Ok("Get $root|photo.png"));
    for bad in ["/abc/", "/abc/%zz", "/%ff/b", "//b"] {
        check(&format!("GET {bad}"), Err(ErrorCode::InvalidUri));
    }
}

#[test]
fn snapshots_are_read_deleted_and_tiered_but_not_written() {
    let snapshot = "snapshot=2019-08-28T17%3A07%3A35.2821851Z";
    check(&format!("GET /abc/d?{snapshot}"), Ok("Get abc|d Snapshot"));
    check(&format!("HEAD /abc/d?{snapshot}"), Ok("GetProperties abc|d Snapshot"));
    check(&format!("DELETE /abc/d?{snapshot}"), Ok("Delete(Usual) abc|d Snapshot"));
    check("GET /abc/d?versionid=2019-08-28T17:07:35Z", Ok("Get abc|d Version"));
    for query in ["comp=metadata", "comp=blocklist", "comp=pagelist", "comp=tags"] {
        let action = match query {
            "comp=metadata" => "GetMetadata",
            "comp=blocklist" => "GetBlockList",
            "comp=pagelist" => "GetPageRanges",
            _ => "GetTags",
        };
        check(&format!("GET /abc/d?{query}&{snapshot}"), Ok(&format!("{action} abc|d Snapshot")));
    }
    check(&format!("PUT /abc/d?comp=tier&{snapshot}"), Ok("SetTier abc|d Snapshot"));
    for request in ["comp=metadata", "comp=properties", "comp=snapshot", "comp=blocklist", "comp=seal"] {
        check(&format!("PUT /abc/d?{request}&{snapshot}"), Err(ErrorCode::InvalidOperation));
    }
    let lease = format!("PUT /abc/d?comp=lease&{snapshot} x-ms-lease-action:break");
    check(&lease, Err(ErrorCode::InvalidOperation));
    check("GET /abc/d?snapshot=x", Err(ErrorCode::InvalidQueryParameterValue));
}

#[test]
fn other_verbs_are_refused() {
    for request in [
        "POST /?comp=list",
        "HEAD /?comp=list",
        "GET /?comp=batch",
        "GET /?restype=service&comp=userdelegationkey",
        "DELETE /?restype=service&comp=properties",
        "PUT /?restype=account&comp=properties",
        "POST /abc?restype=container",
        "DELETE /abc?restype=container&comp=metadata",
        "HEAD /abc?restype=container&comp=list",
        "GET /abc?restype=container&comp=lease",
        "POST /abc/d",
        "DELETE /abc/d?comp=metadata",
        "GET /abc/d?comp=block",
        "HEAD /abc/d?comp=tags",
        "PATCH /abc/d",
    ] {
        check(request, Err(ErrorCode::UnsupportedHttpVerb));
    }
    check("BREW /abc/d", Err(ErrorCode::InvalidHttpVerb));
}

#[test]
fn unknown_components_and_resources_are_refused() {
    check("GET /", Err(ErrorCode::InvalidUri));
    for request in [
        "GET /?comp=x",
        "GET /?comp=properties",
        "GET /?restype=service&comp=list",
        "GET /?restype=container&comp=list",
        "GET /?restype=account",
        "GET /abc?comp=list",
        "GET /abc?restype=container&comp=x",
        "GET /abc?restype=service&comp=properties",
        "GET /abc/d?restype=container",
        "GET /abc/d?comp=list",
        "GET /abc/d?comp=%zz",
        "POST /abc/d?comp=query",
        "PUT /abc/d?comp=incrementalcopy",
        "PUT /abc/d?comp=expiry",
        "DELETE /abc/d?comp=immutabilityPolicies",
        "DELETE /abc/d?deletetype=x",
    ] {
        check(request, Err(ErrorCode::InvalidQueryParameterValue));
    }
    let query = Query::split("comp=%58");
    let error = BlobOperation::read("GET", "abc/d", &query, &Headers::default()).unwrap_err();
    let elements: Vec<_> = error.elements().collect();
    assert_eq!(elements, [("QueryParameterName", "comp"), ("QueryParameterValue", "X"), ("Reason", "")]);
}

#[test]
fn headers_that_name_the_operation_are_needed() {
    for request in [
        "PUT /abc/d",
        "PUT /abc?restype=container&comp=lease",
        "PUT /abc/d?comp=lease",
        "PUT /abc/d?comp=page",
        "PUT /abc/d?comp=copy&copyid=1",
    ] {
        check(request, Err(ErrorCode::MissingRequiredHeader));
    }
    for request in [
        "PUT /abc/d x-ms-blob-type:Blob",
        "PUT /abc/d?comp=lease x-ms-lease-action:take",
        "PUT /abc/d?comp=page x-ms-page-write:x",
        "PUT /abc/d?comp=copy&copyid=1 x-ms-copy-action:go",
        "PUT /abc/d x-ms-copy-source:http://a/b x-ms-requires-sync:x",
    ] {
        check(request, Err(ErrorCode::InvalidHeaderValue));
    }
    let error = BlobOperation::read("PUT", "abc/d", &Query::default(), &Headers::default()).unwrap_err();
    assert_eq!(error.elements().collect::<Vec<_>>(), [("HeaderName", "x-ms-blob-type")]);
}

#[test]
fn reads_are_no_writes() {
    let is_write = |method: &str, url: &str| {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-lease-action", "renew")];
        let headers: Headers<'_> = headers.into_iter().collect();
        BlobOperation::read(method, path, &Query::split(query), &headers).unwrap().is_write()
    };
    for url in
        ["?comp=list", "abc?restype=container", "abc?restype=container&comp=list", "abc/d", "abc/d?comp=tags"]
    {
        assert!(!is_write("GET", url), "{url}");
    }
    assert!(!is_write("POST", "?restype=service&comp=userdelegationkey"));
    for url in
        ["abc?restype=container", "abc/d", "abc/d?comp=lease", "abc/d?comp=tier", "abc/d?comp=undelete"]
    {
        assert!(is_write("PUT", url), "{url}");
    }
    assert!(is_write("POST", "?comp=batch"));
}
