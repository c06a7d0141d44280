//! Every operation of the service with every set of permission letters: in an account SAS with all resource types and
//! with each alone, and in a service SAS. The list below says by hand, from §8.3 and §8.4, what each operation needs.
//! The server must agree with it and with the table in docs/compat/sas.md. `LAZULITE_BLESS=1` rewrites that table.

use testkit::{Batch, Request, Response, Sas, TestServer, batch_parts, entity_json, entity_path};

const VERSION: &str = "2019-02-02";
/// The letters with a meaning for tables in an account SAS.
const ACCOUNT_LETTERS: &str = "rwdlacu";
/// The letters of a service SAS.
const TABLE_LETTERS: &str = "raud";
const BEGIN: &str = "<!-- sas-matrix:begin -->";
const END: &str = "<!-- sas-matrix:end -->";

/// What a caller needs for the operation.
enum Needs {
    /// This resource type, and all letters of one of these sets.
    Letters(&'static str, &'static [&'static str]),
    /// An account key: no SAS is enough.
    Key,
}

use Needs::{Key, Letters};

struct Case {
    name: &'static str,
    needs: Needs,
    /// Whether a service SAS for the table with the right letters is enough.
    is_of_table: bool,
    request: fn() -> Request,
    status: u16,
}

const fn case(
    name: &'static str,
    needs: Needs,
    is_of_table: bool,
    request: fn() -> Request,
    status: u16,
) -> Case {
    Case { name, needs, is_of_table, request, status }
}

/// The table of §8.3 and the permissions of §8.4, operation by operation.
const CASES: &[Case] = &[
    case(
        "Get Table Service Properties",
        Letters("s", &["r"]),
        false,
        || xml("GET", "/?restype=service&comp=properties"),
        200,
    ),
    case("Set Table Service Properties", Letters("s", &["w"]), false, set_properties, 202),
    case(
        "Get Table Service Stats",
        Letters("s", &["r"]),
        false,
        || xml("GET", "/?restype=service&comp=stats").path_account("devstoreaccount1-secondary"),
        200,
    ),
    case("Query Tables", Letters("c", &["l"]), false, || Request::get("/Tables"), 200),
    case("Get Table", Letters("c", &["l"]), false, || Request::get("/Tables('mytable')"), 200),
    case(
        "Create Table",
        Letters("c", &["c", "w"]),
        false,
        || Request::post("/Tables").json(r#"{"TableName":"made"}"#),
        201,
    ),
    case("Delete Table", Letters("c", &["d"]), false, || Request::delete("/Tables('doomed')"), 204),
    case("Get Table ACL", Key, false, || xml("GET", "/mytable?comp=acl"), 200),
    case(
        "Set Table ACL",
        Key,
        false,
        || Request::put("/mytable?comp=acl").header("Accept", "application/xml"),
        204,
    ),
    case("Query Entities", Letters("o", &["r"]), true, || Request::get("/mytable()"), 200),
    case("Get Entity", Letters("o", &["r"]), true, || Request::get(&old()), 200),
    case(
        "Insert Entity",
        Letters("o", &["a"]),
        true,
        || Request::post("/mytable").json(&entity_json("p", "new", "")),
        201,
    ),
    case("Insert Or Replace Entity", Letters("o", &["au"]), true, || Request::put(&old()).json("{}"), 204),
    case("Insert Or Merge Entity", Letters("o", &["au"]), true, || Request::merge(&old()).json("{}"), 204),
    case(
        "Update Entity",
        Letters("o", &["u"]),
        true,
        || Request::put(&old()).json("{}").header("If-Match", "*"),
        204,
    ),
    case(
        "Merge Entity",
        Letters("o", &["u"]),
        true,
        || Request::merge(&old()).json("{}").header("If-Match", "*"),
        204,
    ),
    case(
        "Delete Entity",
        Letters("o", &["d"]),
        true,
        || Request::delete(&old()).header("If-Match", "*"),
        204,
    ),
    case(
        "$batch: Query Entities",
        Letters("o", &["r"]),
        true,
        || Batch::new().operation("GET", "/mytable()", &[], None).query_request(),
        200,
    ),
    case(
        "$batch: Get Entity",
        Letters("o", &["r"]),
        true,
        || Batch::new().operation("GET", &old(), &[], None).query_request(),
        200,
    ),
    case(
        "$batch: Insert Entity",
        Letters("o", &["a"]),
        true,
        || Batch::new().insert("mytable", &entity_json("p", "new", "")).request(),
        204,
    ),
    case("$batch: Insert Or Replace Entity", Letters("o", &["au"]), true, || change("PUT", &[]), 204),
    case("$batch: Insert Or Merge Entity", Letters("o", &["au"]), true, || change("MERGE", &[]), 204),
    case("$batch: Update Entity", Letters("o", &["u"]), true, || change("PUT", &[("If-Match", "*")]), 204),
    case("$batch: Merge Entity", Letters("o", &["u"]), true, || change("PATCH", &[("If-Match", "*")]), 204),
    case("$batch: Delete Entity", Letters("o", &["d"]), true, || change("DELETE", &[("If-Match", "*")]), 204),
];

fn old() -> String {
    entity_path("mytable", "p", "old")
}

fn xml(method: &str, target: &str) -> Request {
    Request::new(method, target).header("Accept", "application/xml")
}

fn set_properties() -> Request {
    let body = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
    Request::put("/?restype=service&comp=properties").body("application/xml", body)
}

fn change(method: &str, headers: &[(&str, &str)]) -> Request {
    let body = (method != "DELETE").then_some("{}");
    Batch::new().operation(method, &old(), headers, body).request()
}

/// Restores the state that every operation expects.
fn reset(server: &TestServer) {
    server.send(Request::put(&old()).json(r#"{"x":1}"#)).expect(204);
    server.send(Request::delete(&entity_path("mytable", "p", "new")).header("If-Match", "*"));
    server.send(Request::delete("/Tables('made')"));
    server.send(Request::post("/Tables").json(r#"{"TableName":"doomed"}"#));
}

/// Everything that an operation could change.
fn state(server: &TestServer) -> Vec<Vec<u8>> {
    let requests = [
        Request::get("/Tables").header("Accept", "application/json;odata=nometadata"),
        Request::get("/mytable()"),
        xml("GET", "/mytable?comp=acl"),
        xml("GET", "/?restype=service&comp=properties"),
    ];
    requests.map(|request| server.send(request).expect(200).body).to_vec()
}

/// The answer to the operation itself; for a batch, its first part.
fn answer(server: &TestServer, case: &Case, sas: &Sas) -> Response {
    let response = server.send((case.request)().sas(&sas.sign(server.credentials())));
    match response.status {
        202 if case.name.starts_with("$batch") => batch_parts(&response).remove(0),
        _ => response,
    }
}

/// `ok` on success, otherwise the error code.
fn verdict(response: &Response, case: &Case) -> String {
    if response.status == case.status {
        return "ok".to_owned();
    }
    assert_eq!(response.status, 403, "{}: neither done nor refused:\n{response:?}", case.name);
    let is_front_end = response.header("x-ms-error-code").is_some();
    let code = response.error_code();
    if code.starts_with("Authorization") {
        let is_xml = case.name.contains("Service") || case.name.contains("ACL");
        assert_eq!(is_front_end, is_xml, "the shape of {code} to {}:\n{response:?}", case.name);
    } else {
        assert!(is_front_end, "the shape of {code} to {}:\n{response:?}", case.name);
    }
    code
}

/// The verdict for these letters by the list above.
fn expected_of_letters(needed: &[&str], letters: &str) -> &'static str {
    let has_all = |wanted: &&str| wanted.chars().all(|letter| letters.contains(letter));
    if needed.iter().any(has_all) { "ok" } else { "AuthorizationPermissionMismatch" }
}

fn expected_of_account(case: &Case, types: &str, letters: &str) -> &'static str {
    match case.needs {
        _ if letters.is_empty() => "AuthenticationFailed",
        Key => "AuthorizationFailure",
        Letters(level, _) if !types.contains(level) => "AuthorizationResourceTypeMismatch",
        Letters(_, needed) => expected_of_letters(needed, letters),
    }
}

fn expected_of_table(case: &Case, letters: &str) -> &'static str {
    match case.needs {
        _ if letters.is_empty() => "AuthenticationFailed",
        Letters(_, needed) if case.is_of_table => expected_of_letters(needed, letters),
        _ => "AuthorizationFailure",
    }
}

/// Every subset of the letters, the empty one first.
fn subsets(letters: &str) -> Vec<String> {
    let chosen =
        |set: usize| letters.char_indices().filter(move |(at, _)| set >> at & 1 == 1).map(|(_, c)| c);
    (0..1 << letters.len()).map(|set| chosen(set).collect()).collect()
}

/// Tries each token. Those that must be refused come first, so that the test can see that they changed nothing.
fn check(server: &TestServer, case: &Case, tokens: Vec<(Sas, &'static str)>) {
    let (allowed, refused): (Vec<_>, Vec<_>) = tokens.into_iter().partition(|(_, verdict)| *verdict == "ok");
    reset(server);
    let before = state(server);
    for (sas, expected) in refused {
        assert_eq!(verdict(&answer(server, case, &sas), case), expected, "{} with {sas:?}", case.name);
    }
    assert_eq!(state(server), before, "{} was refused, and yet", case.name);
    for (sas, expected) in allowed {
        reset(server);
        assert_eq!(verdict(&answer(server, case, &sas), case), expected, "{} with {sas:?}", case.name);
    }
}

fn account_sas(types: &str, letters: &str) -> Sas {
    Sas::account(VERSION).set("srt", types).set("sp", letters)
}

fn table_sas(letters: &str) -> Sas {
    Sas::table(VERSION, "MyTable").set("sp", letters)
}

fn world() -> TestServer {
    let server = TestServer::with_table("mytable");
    reset(&server);
    server
}

#[test]
fn an_account_sas_opens_what_its_letters_open() {
    let server = world();
    for case in CASES {
        let tokens = subsets(ACCOUNT_LETTERS).into_iter().map(|letters| {
            let expected = expected_of_account(case, "sco", &letters);
            (account_sas("sco", &letters), expected)
        });
        check(&server, case, tokens.collect());
    }
}

#[test]
fn an_account_sas_opens_only_the_resource_types_it_names() {
    let server = world();
    for case in CASES {
        let mut tokens = Vec::new();
        for types in ["s", "c", "o", "sc", "so", "co"] {
            for letters in ["r", "w", "d", "l", "a", "c", "u", "au", ACCOUNT_LETTERS] {
                tokens.push((account_sas(types, letters), expected_of_account(case, types, letters)));
            }
        }
        check(&server, case, tokens);
    }
}

#[test]
fn letters_that_mean_nothing_here_open_nothing() {
    let server = world();
    for case in CASES {
        let others = ('a'..='z').filter(|letter| !ACCOUNT_LETTERS.contains(*letter));
        let tokens = others.chain('A'..='Z').map(|letter| {
            let letters = letter.to_string();
            (account_sas("sco", &letters), expected_of_account(case, "sco", &letters))
        });
        check(&server, case, tokens.collect());
        let others = ('a'..='z').filter(|letter| !TABLE_LETTERS.contains(*letter));
        let tokens = others.map(|letter| {
            let letters = letter.to_string();
            (table_sas(&letters), expected_of_table(case, &letters))
        });
        check(&server, case, tokens.collect());
    }
}

#[test]
fn a_service_sas_opens_the_entities_of_its_table() {
    let server = world();
    for case in CASES {
        let tokens = subsets(TABLE_LETTERS).into_iter().map(|letters| {
            let expected = expected_of_table(case, &letters);
            (table_sas(&letters), expected)
        });
        check(&server, case, tokens.collect());
        let elsewhere = |letters: &str| {
            let expected = if case.needs_permission() {
                "AuthorizationFailure"
            } else {
                expected_of_table(case, letters)
            };
            (Sas::table(VERSION, "doomed").set("sp", letters), expected)
        };
        check(&server, case, ["r", "a", "u", "d", TABLE_LETTERS].map(elsewhere).to_vec());
    }
}

impl Case {
    fn needs_permission(&self) -> bool {
        matches!(self.needs, Letters(..))
    }
}

/// A cell of the table: the server's verdict as one character.
fn cell(server: &TestServer, case: &Case, sas: &Sas) -> &'static str {
    reset(server);
    match verdict(&answer(server, case, sas), case).as_str() {
        "ok" => "✓",
        "AuthorizationPermissionMismatch" => "P",
        "AuthorizationResourceTypeMismatch" => "T",
        "AuthorizationFailure" => "F",
        "AuthenticationFailed" => "A",
        other => panic!("{}: {other}", case.name),
    }
}

/// The table of what the server does.
fn render(server: &TestServer) -> String {
    let letters = |letters: &str| letters.chars().map(|letter| format!(" {letter} |")).collect::<String>();
    let mut text = String::from(
        "Each operation with each permission letter alone, with none, and with all; first with an account SAS of all\n\
         resource types (`srt=sco`), then with all letters and one resource type, then with a service SAS for the table.\n\
         ✓ allowed; else 403 with P `AuthorizationPermissionMismatch`, T `AuthorizationResourceTypeMismatch`,\n\
         F `AuthorizationFailure`, A `AuthenticationFailed`. An upsert needs `a` and `u` together.\n\n",
    );
    text.push_str(&format!(
        "| Operation | needs |{} none | all | srt=s | srt=c | srt=o | table: |{} none | all |\n",
        letters(ACCOUNT_LETTERS),
        letters(TABLE_LETTERS),
    ));
    text.push_str(&format!("|---|---|{}\n", "---|".repeat(7 + 5 + 1 + 4 + 2)));
    for case in CASES {
        let needs = match case.needs {
            Key => "account key".to_owned(),
            Letters(level, needed) => format!("`{level}`: `{}`", needed.join("` or `")),
        };
        text.push_str(&format!("| {} | {needs} |", case.name));
        let singles = ACCOUNT_LETTERS.chars().map(|letter| account_sas("sco", &letter.to_string()));
        let types = ["s", "c", "o"].map(|types| account_sas(types, ACCOUNT_LETTERS));
        let account =
            singles.chain([account_sas("sco", ""), account_sas("sco", ACCOUNT_LETTERS)]).chain(types);
        account.for_each(|sas| text.push_str(&format!(" {} |", cell(server, case, &sas))));
        text.push_str(" |");
        let singles = TABLE_LETTERS.chars().map(|letter| table_sas(&letter.to_string()));
        let table = singles.chain([table_sas(""), table_sas(TABLE_LETTERS)]);
        table.for_each(|sas| text.push_str(&format!(" {} |", cell(server, case, &sas))));
        text.push('\n');
    }
    text
}

#[test]
fn the_matrix_in_compat_md_is_what_the_server_does() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat/sas.md");
    let rendered = render(&world());
    let document = std::fs::read_to_string(path).unwrap_or_default();
    let parts = document
        .split_once(BEGIN)
        .and_then(|(before, rest)| rest.split_once(END).map(|(found, after)| (before, found, after)));
    let (before, found, after) = parts.unwrap_or_else(|| panic!("docs/compat/sas.md has no {BEGIN} … {END}"));
    if std::env::var_os("LAZULITE_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}\n{rendered}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found.trim(), rendered.trim(), "docs/compat/sas.md; LAZULITE_BLESS=1 writes it anew");
}
