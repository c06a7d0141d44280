//! Every operation with each permission letter, and with every two of them: in an account SAS with all resource types
//! and with each alone, in a service SAS for the container and for the blob, and in a stored policy. The list below says
//! by hand, from §7.2 and §7.3, what each operation needs. The server must agree with it and with the table in
//! docs/compat/blob-sas.md. `LAZULITE_BLESS=1` rewrites that table.

use testkit::{Blobs, Request, Response, Sas, percent_encode};

use crate::with_container;

const VERSION: &str = "2025-11-05";
/// The letters with a meaning for blobs in an account SAS.
const ACCOUNT_LETTERS: &str = "rwdxylactf";
/// The letters of a service SAS.
const BLOB_LETTERS: &str = "racwdxyltf";
const BEGIN: &str = "<!-- sas-matrix:begin -->";
const END: &str = "<!-- sas-matrix:end -->";
/// The level of an operation that every resource type opens.
const ANY: &str = "any";
const OVERWRITE: &str = "UnauthorizedBlobOverwrite";
/// The verdict on a copy that may be written, but whose source the caller may not read.
const SOURCE: &str = "CannotVerifyCopySource";

/// What the path names, and so which service SAS can be checked against it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Account,
    Container,
    Blob,
}

struct Case {
    name: &'static str,
    /// The resource type, and sets of letters, each of which is enough; empty when only an account key will do.
    level: &'static str,
    letters: &'static [&'static str],
    place: Place,
    /// Whether a service SAS will do.
    is_of_service: bool,
    /// Whether it replaces a blob, so that `c` alone is refused with a code of its own.
    replaces: bool,
    request: fn(&str) -> Request,
    status: u16,
}

const fn of(
    name: &'static str,
    place: Place,
    level: &'static str,
    letters: &'static [&'static str],
    request: fn(&str) -> Request,
    status: u16,
) -> Case {
    Case { name, level, letters, place, is_of_service: false, replaces: false, request, status }
}

const fn of_blob(
    name: &'static str,
    letters: &'static [&'static str],
    request: fn(&str) -> Request,
    status: u16,
) -> Case {
    let case = of(name, Place::Blob, "o", letters, request, status);
    Case { is_of_service: true, ..case }
}

const fn of_container(
    name: &'static str,
    level: &'static str,
    letters: &'static [&'static str],
    request: fn(&str) -> Request,
    status: u16,
) -> Case {
    of(name, Place::Container, level, letters, request, status)
}

/// The argument of each request is the moment of a snapshot of the blob `old`, escaped.
const CASES: &[Case] = &[
    of("List Containers", Place::Account, "s", &["l"], |_| Request::get("/?comp=list"), 200),
    of(
        "Get Blob Service Properties",
        Place::Account,
        "s",
        &["r"],
        |_| Request::get("/?restype=service&comp=properties"),
        200,
    ),
    of("Set Blob Service Properties", Place::Account, "s", &["w"], |_| set_properties(), 202),
    of(
        "Get Blob Service Stats",
        Place::Account,
        "s",
        &["r"],
        |_| Request::get("/?restype=service&comp=stats").path_account("devstoreaccount1-secondary"),
        200,
    ),
    of(
        "Find Blobs by Tags",
        Place::Account,
        "o",
        &["f"],
        |_| Request::get("/?comp=blobs&where=a%3D'b'"),
        200,
    ),
    Case {
        is_of_service: true,
        ..of_container(
            "Get Account Information",
            ANY,
            &[""],
            |_| Request::get("/abc?restype=account&comp=properties"),
            200,
        )
    },
    of_container("Create Container", "c", &["c", "w"], |_| Request::put("/new?restype=container"), 201),
    of_container("Get Container Properties", "c", &["r"], |_| Request::get("/abc?restype=container"), 200),
    of_container("Get Container Metadata", "c", &["r"], |_| container("GET", "metadata"), 200),
    of_container("Set Container Metadata", "c", &["w"], |_| container("PUT", "metadata"), 200),
    of_container("Lease Container", "c", &["w"], |_| lease(container("PUT", "lease"), "acquire"), 201),
    of_container("Delete Container", "c", &["d"], |_| Request::delete("/abc?restype=container"), 202),
    of_container("Get Container ACL", "", &[], |_| container("GET", "acl"), 200),
    of_container("Set Container ACL", "", &[], |_| container("PUT", "acl"), 200),
    Case {
        is_of_service: true,
        ..of_container("List Blobs", "c", &["l"], |_| container("GET", "list"), 200)
    },
    Case {
        is_of_service: true,
        ..of_container(
            "Find Blobs by Tags in Container",
            "o",
            &["f"],
            |_| Request::get("/abc?restype=container&comp=blobs&where=a%3D'b'"),
            200,
        )
    },
    of_blob("Get Blob", &["r"], |_| Request::get("/abc/old"), 200),
    of_blob("Get Blob (a snapshot)", &["r"], |at| Request::get(&format!("/abc/old?snapshot={at}")), 200),
    of_blob("Get Blob Properties", &["r"], |_| Request::head("/abc/old"), 200),
    of_blob("Get Blob Metadata", &["r"], |_| Request::get("/abc/old?comp=metadata"), 200),
    of_blob("Get Block List", &["r"], |_| Request::get("/abc/old?comp=blocklist"), 200),
    of_blob("Get Page Ranges", &["r"], |_| Request::get("/abc/disk?comp=pagelist"), 200),
    of_blob("Get Blob Tags", &["t"], |_| Request::get("/abc/old?comp=tags"), 200),
    of_blob("Set Blob Tags", &["t"], |_| Request::put("/abc/old?comp=tags").xml(TAGS), 204),
    of_blob("Put Blob (a new one)", &["c", "w"], |_| Blobs::put_request("/abc/new", "x"), 201),
    Case {
        replaces: true,
        ..of_blob("Put Blob (over an old one)", &["w"], |_| Blobs::put_request("/abc/old", "x"), 201)
    },
    of_blob(
        "Put Blob (with tags)",
        &["ct", "wt"],
        |_| Blobs::put_request("/abc/new", "x").header("x-ms-tags", "a=b"),
        201,
    ),
    of_blob(
        "Put Blob From URL",
        &["cr", "wr"],
        |_| copy("/abc/new").header("x-ms-blob-type", "BlockBlob"),
        201,
    ),
    of_blob("Copy Blob", &["cr", "wr"], |_| copy("/abc/new"), 202),
    of_blob(
        "Copy Blob From URL",
        &["cr", "wr"],
        |_| copy("/abc/new").header("x-ms-requires-sync", "true"),
        202,
    ),
    of_blob("Put Block", &["w"], |_| Request::put("/abc/new?comp=block&blockid=MQ%3D%3D").bytes("x"), 201),
    of_blob("Put Block List", &["w"], |_| Request::put("/abc/old?comp=blocklist").xml("<BlockList />"), 201),
    of_blob("Append Block", &["a", "w"], |_| Request::put("/abc/log?comp=appendblock").bytes("x"), 201),
    of_blob("Append Blob Seal", &["w"], |_| Request::put("/abc/log?comp=seal"), 200),
    of_blob("Put Page", &["w"], |_| page("update").bytes([7; 512]), 201),
    of_blob("Put Page (clear)", &["w"], |_| page("clear"), 201),
    of_blob("Set Blob Properties", &["w"], |_| Request::put("/abc/old?comp=properties"), 200),
    of_blob("Set Blob Metadata", &["w"], |_| Request::put("/abc/old?comp=metadata"), 200),
    of_blob(
        "Set Blob Tier",
        &["w"],
        |_| Request::put("/abc/old?comp=tier").header("x-ms-access-tier", "Cool"),
        200,
    ),
    of_blob("Snapshot Blob", &["c", "w"], |_| Request::put("/abc/old?comp=snapshot"), 201),
    of_blob("Lease Blob", &["w"], |_| lease(Request::put("/abc/old?comp=lease"), "acquire"), 201),
    of_blob("Lease Blob (break)", &["w", "d"], |_| lease(Request::put("/abc/log?comp=lease"), "break"), 202),
    of_blob("Undelete Blob", &["w"], |_| Request::put("/abc/old?comp=undelete"), 200),
    of_blob("Delete Blob", &["d"], |_| Request::delete("/abc/disk"), 202),
    of_blob(
        "Delete Blob (a snapshot)",
        &["d"],
        |at| Request::delete(&format!("/abc/old?snapshot={at}")),
        202,
    ),
];

const TAGS: &str = "<Tags><TagSet><Tag><Key>c</Key><Value>d</Value></Tag></TagSet></Tags>";

fn set_properties() -> Request {
    let body = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
    Request::put("/?restype=service&comp=properties").xml(body)
}

fn container(method: &str, comp: &str) -> Request {
    Request::new(method, &format!("/abc?restype=container&comp={comp}"))
}

fn lease(request: Request, action: &str) -> Request {
    let request = request.header("x-ms-lease-action", action);
    if action == "acquire" { request.header("x-ms-lease-duration", "-1") } else { request }
}

/// The source is read with the caller's own rights.
fn copy(path: &str) -> Request {
    Request::put(path).header("x-ms-copy-source", "http://127.0.0.1/devstoreaccount1/abc/old")
}

fn page(write: &str) -> Request {
    Request::put("/abc/disk?comp=page").header("x-ms-page-write", write).header("x-ms-range", "bytes=0-511")
}

/// Restores the state that every operation expects, and returns the moment of the snapshot.
fn reset(blob: &Blobs<'_>) -> String {
    blob.send(Request::delete("/new?restype=container"));
    blob.send(lease(container("PUT", "lease"), "break").header("x-ms-lease-break-period", "0"));
    blob.send(Request::delete("/abc?restype=container"));
    blob.create("abc");
    blob.send(Blobs::put_request("/abc/old", "content").header("x-ms-tags", "a=b")).expect(201);
    blob.send(Request::put("/abc/log").header("x-ms-blob-type", "AppendBlob")).expect(201);
    blob.send(lease(Request::put("/abc/log?comp=lease"), "acquire").header("x-ms-lease-duration", "15"))
        .expect(201);
    blob.send(lease(Request::put("/abc/log?comp=lease"), "break").header("x-ms-lease-break-period", "0"))
        .expect(202);
    let disk = Request::put("/abc/disk").header("x-ms-blob-type", "PageBlob");
    blob.send(disk.header("x-ms-blob-content-length", "512")).expect(201);
    let taken = blob.send(Request::put("/abc/old?comp=snapshot")).expect(201);
    percent_encode(taken.required("x-ms-snapshot"))
}

/// Everything that an operation could change.
fn state(blob: &Blobs<'_>) -> Vec<String> {
    [
        "/?comp=list&include=metadata",
        "/abc?restype=container&comp=acl",
        "/abc?restype=container&comp=list&include=metadata,tags,snapshots,uncommittedblobs,copy,deleted",
        "/?restype=service&comp=properties",
    ]
    .map(|target| blob.send(Request::get(target)).expect(200).text().to_owned())
    .to_vec()
}

/// `ok` on success, otherwise the error code.
fn verdict(response: &Response, case: &Case) -> String {
    if response.status == case.status {
        return "ok".to_owned();
    }
    let code = response.required("x-ms-error-code");
    if (response.status, code) == (401, "CannotVerifyCopySource") {
        return SOURCE.to_owned();
    }
    assert_eq!(response.status, 403, "{}: neither done nor refused:\n{response:?}", case.name);
    code.to_owned()
}

fn ask(blob: &Blobs<'_>, case: &Case, moment: &str, sas: &Sas) -> String {
    verdict(&blob.send((case.request)(moment).sas(&sas.sign(blob.credentials()))), case)
}

fn expected_of_letters(case: &Case, letters: &str) -> &'static str {
    let has = |set: &&str| set.chars().all(|letter| letters.contains(letter));
    if case.letters.iter().any(has) {
        "ok"
    } else if case.replaces && letters.contains('c') {
        OVERWRITE
    } else if case.letters.contains(&"cr") && letters.contains(['c', 'w']) {
        SOURCE
    } else {
        "AuthorizationPermissionMismatch"
    }
}

fn expected_of_account(case: &Case, types: &str, letters: &str) -> &'static str {
    match case.level {
        _ if letters.is_empty() => "AuthenticationFailed",
        "" => "AuthorizationFailure",
        level if level != ANY && !types.contains(level) => "AuthorizationResourceTypeMismatch",
        _ => expected_of_letters(case, letters),
    }
}

fn expected_of_container(case: &Case, letters: &str) -> &'static str {
    match case.place {
        // The signature is over a container, and the path names none: there is nothing that it could be right for.
        Place::Account => "AuthenticationFailed",
        _ if letters.is_empty() || case.name == "Create Container" => "AuthenticationFailed",
        _ if !case.is_of_service => "AuthorizationFailure",
        _ => expected_of_letters(case, letters),
    }
}

fn expected_of_blob(case: &Case, letters: &str) -> &'static str {
    let is_of_base = !case.name.ends_with("(a snapshot)");
    match case.place {
        // A snapshot has signatures of its own.
        Place::Blob if letters.is_empty() || !is_of_base => "AuthenticationFailed",
        Place::Blob => expected_of_letters(case, letters),
        Place::Account | Place::Container => "AuthenticationFailed",
    }
}

/// Each letter, every two of them, none, and all.
fn some_sets(letters: &str) -> Vec<String> {
    let mut sets = vec![String::new(), letters.to_owned()];
    for (at, first) in letters.char_indices() {
        sets.push(first.to_string());
        sets.extend(letters[at + 1..].chars().map(|second| format!("{first}{second}")));
    }
    sets
}

/// Tries each token. Those that must be refused come first, so that the test can see that they changed nothing.
fn check(blob: &Blobs<'_>, case: &Case, tokens: Vec<(Sas, &'static str)>) {
    let (allowed, refused): (Vec<_>, Vec<_>) = tokens.into_iter().partition(|(_, verdict)| *verdict == "ok");
    let moment = reset(blob);
    let before = state(blob);
    for (sas, expected) in refused {
        assert_eq!(ask(blob, case, &moment, &sas), expected, "{} with {sas:?}", case.name);
    }
    assert_eq!(state(blob), before, "{} was refused, and yet", case.name);
    for (sas, expected) in allowed {
        let moment = reset(blob);
        assert_eq!(ask(blob, case, &moment, &sas), expected, "{} with {sas:?}", case.name);
    }
}

fn account_sas(types: &str, letters: &str) -> Sas {
    Sas::blob_account(VERSION).set("srt", types).set("sp", letters)
}

fn container_sas(letters: &str) -> Sas {
    Sas::container(VERSION, "abc").set("sp", letters)
}

/// A signature for the blob that the operation is about.
fn blob_sas(case: &Case, letters: &str) -> Sas {
    let target = (case.request)("").target;
    let path = target.split('?').next().unwrap_or_default();
    let name = path.strip_prefix("/abc/").unwrap_or("old");
    Sas::blob(VERSION, "abc", name).set("sp", letters)
}

#[test]
fn an_account_sas_opens_what_its_letters_open() {
    let server = with_container();
    for case in CASES {
        let sets = some_sets(ACCOUNT_LETTERS).into_iter();
        let tokens = sets.map(|set| (account_sas("sco", &set), expected_of_account(case, "sco", &set)));
        check(&server.blob(), case, tokens.collect());
    }
}

#[test]
fn an_account_sas_opens_only_the_resource_types_it_names() {
    let server = with_container();
    for case in CASES {
        let mut tokens = Vec::new();
        for types in ["s", "c", "o", "sc", "so", "co"] {
            for letters in ["r", "w", "d", "l", "c", ACCOUNT_LETTERS] {
                tokens.push((account_sas(types, letters), expected_of_account(case, types, letters)));
            }
        }
        check(&server.blob(), case, tokens);
    }
}

#[test]
fn letters_that_mean_nothing_here_open_nothing() {
    let server = with_container();
    for case in CASES {
        let others = ('a'..='z').chain('A'..='Z').filter(|letter| !ACCOUNT_LETTERS.contains(*letter));
        let mut tokens = Vec::new();
        for letter in others.map(String::from) {
            tokens.push((account_sas("sco", &letter), expected_of_account(case, "sco", &letter)));
            tokens.push((container_sas(&letter), expected_of_container(case, &letter)));
        }
        check(&server.blob(), case, tokens);
    }
}

#[test]
fn a_service_sas_opens_the_blobs_of_its_container() {
    let server = with_container();
    server.blob().create("other");
    for case in CASES {
        let sets = some_sets(BLOB_LETTERS).into_iter();
        let tokens = sets.map(|set| (container_sas(&set), expected_of_container(case, &set)));
        check(&server.blob(), case, tokens.collect());
        let elsewhere = ["r", "w", "l", BLOB_LETTERS]
            .map(|letters| (Sas::container(VERSION, "other").set("sp", letters), "AuthenticationFailed"));
        check(&server.blob(), case, elsewhere.to_vec());
    }
}

#[test]
fn a_service_sas_opens_its_blob() {
    let server = with_container();
    for case in CASES.iter().filter(|case| !case.name.contains("Copy") && !case.name.contains("URL")) {
        let sets = some_sets("racwdxyt").into_iter();
        let tokens = sets.map(|set| (blob_sas(case, &set), expected_of_blob(case, &set)));
        check(&server.blob(), case, tokens.collect());
        let elsewhere = ["r", "w", "racwdxyt"]
            .map(|letters| (Sas::blob(VERSION, "abc", "other").set("sp", letters), "AuthenticationFailed"));
        check(&server.blob(), case, elsewhere.to_vec());
    }
}

#[test]
fn a_stored_policy_opens_what_its_letters_open() {
    let server = with_container();
    let blob = server.blob();
    for case in CASES.iter().filter(|case| case.place != Place::Account) {
        for letters in BLOB_LETTERS.chars().map(String::from).chain([BLOB_LETTERS.to_owned()]) {
            let moment = reset(&blob);
            let policy = format!(
                "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>{letters}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
            );
            blob.send(container("PUT", "acl").xml(&policy)).expect(200);
            let sas = Sas::container(VERSION, "abc").without("sp").set("si", "p");
            let expected = expected_of_container(case, &letters);
            assert_eq!(ask(&blob, case, &moment, &sas), expected, "{} {letters}", case.name);
        }
    }
}

/// A cell of the table: the server's verdict as one character.
fn cell(blob: &Blobs<'_>, case: &Case, sas: &Sas) -> &'static str {
    let moment = reset(blob);
    match ask(blob, case, &moment, sas).as_str() {
        "ok" => "✓",
        "AuthorizationPermissionMismatch" => "P",
        "AuthorizationResourceTypeMismatch" => "T",
        "AuthorizationFailure" => "F",
        "AuthenticationFailed" => "A",
        OVERWRITE => "O",
        SOURCE => "S",
        other => panic!("{}: {other}", case.name),
    }
}

/// The table of what the server does.
fn render(blob: &Blobs<'_>) -> String {
    let letters = |letters: &str| letters.chars().map(|letter| format!(" {letter} |")).collect::<String>();
    let mut text = String::from(
        "Each operation with each permission letter alone, and with all; first with an account SAS of all resource types\n\
         (`srt=sco`), then with all letters and one resource type, then with a service SAS for the container.\n\
         ✓ allowed; else 403 with P `AuthorizationPermissionMismatch`, O `UnauthorizedBlobOverwrite`,\n\
         T `AuthorizationResourceTypeMismatch`, F `AuthorizationFailure`, A `AuthenticationFailed`; or 401 with\n\
         S `CannotVerifyCopySource`, because the token does not open the source.\n\n",
    );
    text.push_str(&format!(
        "| Operation | needs |{} all | srt=s | srt=c | srt=o | container: |{} all |\n",
        letters(ACCOUNT_LETTERS),
        letters(BLOB_LETTERS),
    ));
    text.push_str(&format!("|---|---|{}\n", "---|".repeat(10 + 4 + 1 + 10 + 1)));
    for case in CASES {
        let needs = match case.level {
            "" => "account key".to_owned(),
            ANY => "any credentials".to_owned(),
            level => {
                let sets: Vec<String> = case.letters.iter().map(|set| format!("`{set}`")).collect();
                format!("`{level}`: {}", sets.join(" or "))
            }
        };
        text.push_str(&format!("| {} | {needs} |", case.name));
        let singles = ACCOUNT_LETTERS.chars().map(|letter| account_sas("sco", &letter.to_string()));
        let types = ["s", "c", "o"].map(|types| account_sas(types, ACCOUNT_LETTERS));
        let account = singles.chain([account_sas("sco", ACCOUNT_LETTERS)]).chain(types);
        account.for_each(|sas| text.push_str(&format!(" {} |", cell(blob, case, &sas))));
        text.push_str("  |");
        let singles = BLOB_LETTERS.chars().map(|letter| container_sas(&letter.to_string()));
        let of_container = singles.chain([container_sas(BLOB_LETTERS)]);
        of_container.for_each(|sas| text.push_str(&format!(" {} |", cell(blob, case, &sas))));
        text.push('\n');
    }
    text
}

#[test]
fn the_document_shows_what_the_server_does() {
    let server = with_container();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat/blob-sas.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    let table = format!("\n{}", render(&server.blob()));
    if std::env::var_os("LAZULITE_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, table, "docs/compat/blob-sas.md is out of date: LAZULITE_BLESS=1 rewrites it");
}
