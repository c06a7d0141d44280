//! `lazulite sas`: its tokens equal those of the test kit, which signs them independently, the server accepts them, and
//! the summary describes what they grant.

use testkit::{Credentials, EMULATOR_KEY, FAR_EXPIRY, Request, Sas, TempDir, entity_json, entity_path};

use crate::running::{Running, run};
use crate::{ACCOUNT_VARIABLES, refusal};

const KEY: &str = "bXkgb3duIGtleSBteSBvd24ga2V5IG15IG93biBrZXk=";

fn server() -> Running {
    let server =
        Running::start(&["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"], &[]);
    server.send(Request::post("/Tables").json(r#"{"TableName":"people"}"#)).expect(201);
    for row in ["1", "2", "3"] {
        server.send(Request::post("/people").json(&entity_json("p", row, ""))).expect(201);
    }
    server
}

/// The token and the summary.
fn mint(options: &[&str]) -> (String, String) {
    let nowhere = TempDir::new().unwrap();
    let location = nowhere.path().join("absent");
    let (token, summary) = run(&[&["sas", "-l", location.to_str().unwrap()], options].concat(), &[]);
    assert_eq!(token.lines().count(), 1, "the token stands alone on standard output");
    assert!(!summary.contains("sig=") && !summary.contains(EMULATOR_KEY), "{summary}");
    (token.trim_end().to_owned(), summary)
}

fn fields(token: &str) -> Vec<&str> {
    let mut fields: Vec<&str> = token.split('&').collect();
    fields.sort_unstable();
    fields
}

/// The command's token has the fields and signature of `expected`, and its summary contains `words`.
#[track_caller]
fn check(options: &[&str], expected: Sas, words: &[&str]) {
    let (token, summary) = mint(options);
    let expected = expected.sign(&Credentials::emulator());
    assert_eq!(fields(&token), fields(&expected), "{options:?}");
    for word in words {
        assert!(summary.contains(word), "{word:?} is not in the summary of {options:?}:\n{summary}");
    }
}

#[test]
fn a_table_token_opens_its_table_and_nothing_else() {
    let server = server();
    let (token, _) = mint(&["--table", "people", "--permissions", "ra", "--expiry", FAR_EXPIRY]);
    let send = |request: Request| server.send(request.sas(&token));
    send(Request::get("/people()")).expect(200);
    send(Request::post("/people").json(&entity_json("p", "new", ""))).expect(201);
    send(Request::delete(&entity_path("people", "p", "1")).header("If-Match", "*"))
        .expect_error(403, "AuthorizationPermissionMismatch");
    send(Request::get("/Tables")).expect_error(403, "AuthorizationFailure");
}

#[test]
fn an_account_token_opens_what_its_letters_say() {
    let server = server();
    let (token, _) = mint(&["--permissions", "rlc", "--expiry", FAR_EXPIRY]);
    let send = |request: Request| server.send(request.sas(&token));
    send(Request::get("/Tables")).expect(200);
    send(Request::get("/people()")).expect(200);
    send(Request::post("/Tables").json(r#"{"TableName":"made"}"#)).expect(201);
    send(Request::delete("/Tables('made')")).expect_error(403, "AuthorizationPermissionMismatch");
    let (token, _) = mint(&["--permissions", "rl", "--expiry", FAR_EXPIRY, "--resource-types", "c"]);
    server.send(Request::get("/Tables").sas(&token)).expect(200);
    let response = server.send(Request::get("/people()").sas(&token));
    response.expect_error(403, "AuthorizationResourceTypeMismatch");
}

#[test]
fn a_range_holds() {
    let server = server();
    let options = ["--table", "people", "--permissions", "r", "--expiry", FAR_EXPIRY];
    let range = ["--start-pk", "p", "--start-rk", "2", "--end-pk", "p", "--end-rk", "2"];
    let (token, _) = mint(&[&options[..], &range].concat());
    let page = server.send(Request::get("/people()").sas(&token)).expect(200).json();
    assert_eq!(page["value"].as_array().unwrap().len(), 1);
    let response = server.send(Request::get(&entity_path("people", "p", "1")).sas(&token));
    response.expect_error(404, "ResourceNotFound");
}

#[test]
fn a_policy_completes_the_token() {
    let server = server();
    let (token, summary) = mint(&["--table", "people", "--policy", "readers"]);
    assert!(summary.contains("readers") && summary.contains("what its policy allows"), "{summary}");
    server.send(Request::get("/people()").sas(&token)).expect_error(403, "AuthenticationFailed");
    let body = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2099-01-01</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    server.send(Request::put("/people?comp=acl").body("application/xml", body)).expect(204);
    server.send(Request::get("/people()").sas(&token)).expect(200);
}

#[test]
fn every_option_becomes_its_field_and_is_told() {
    let base = ["--permissions", "raud", "--expiry", FAR_EXPIRY];
    let table = |more: &[&'static str]| [&["--table", "People"], &base[..], more].concat();
    let plain = || Sas::table("2019-02-02", "People");
    check(
        &table(&[]),
        plain(),
        &["table People", "devstoreaccount1", "read, add, update, delete", FAR_EXPIRY],
    );
    check(&table(&["--start", "2025-01-01"]), plain().set("st", "2025-01-01"), &["not before 2025-01-01"]);
    check(
        &table(&["--ip", "10.0.0.1-10.0.0.9"]),
        plain().set("sip", "10.0.0.1-10.0.0.9"),
        &["only from 10.0.0.1-10.0.0.9"],
    );
    check(&table(&["--protocol", "https"]), plain().set("spr", "https"), &["only over https"]);
    let range = plain().set("spk", "O'Brien & co").set("srk", "ü").set("epk", "z").set("erk", "9");
    check(
        &table(&["--start-pk", "O'Brien & co", "--start-rk", "ü", "--end-pk", "z", "--end-rk", "9"]),
        range,
        &["from PartitionKey O'Brien & co", "RowKey ü", "to PartitionKey z", "RowKey 9"],
    );
    for version in ["2012-02-12", "2013-08-15", "2015-02-21", "2015-04-05", "2020-12-06"] {
        check(&table(&["--sas-version", version]), Sas::table(version, "People"), &[]);
    }
    let account = ["--permissions", "rwdlacu", "--expiry", FAR_EXPIRY];
    let words = [
        "account devstoreaccount1",
        "read",
        "write",
        "delete",
        "list",
        "add",
        "create",
        "update",
        "tables, queues and blobs",
    ];
    let whole = |version: &str| Sas::account(version).set("ss", "tqb");
    check(&account, whole("2019-02-02"), &words);
    for version in ["2015-04-05", "2020-12-06"] {
        check(&[&account[..], &["--sas-version", version]].concat(), whole(version), &[]);
    }
    let narrow = Sas::account("2019-02-02").set("ss", "bt").set("srt", "o");
    check(&[&account[..], &["--services", "bt", "--resource-types", "o"]].concat(), narrow, &[]);
}

#[test]
fn the_key_comes_from_where_the_server_has_it() {
    let data = TempDir::new().unwrap();
    let location = data.path().to_str().unwrap();
    let (added, _) = run(&["account", "add", "added", "-l", location], &[]);
    let key1 = added.lines().find_map(|line| line.strip_prefix("key1: ")).unwrap();
    let options = ["sas", "--permissions", "l", "--expiry", FAR_EXPIRY, "-l", location, "--account"];
    let expected = |account: &str, key: &str| {
        Sas::account("2019-02-02").set("ss", "tqb").set("sp", "l").sign(&Credentials::new(account, key))
    };
    let (token, summary) = run(&[&options[..], &["added"]].concat(), &[]);
    assert_eq!(fields(token.trim_end()), fields(&expected("added", key1)));
    assert!(!summary.contains(key1), "{summary}");
    let accounts = format!("mine:{KEY}");
    for variable in ACCOUNT_VARIABLES {
        let (token, _) = run(&[&options[..], &["mine"]].concat(), &[(variable, &accounts)]);
        assert_eq!(fields(token.trim_end()), fields(&expected("mine", KEY)));
    }
    let server = Running::over(data.path(), &[]);
    server.send(Request::get("/Tables").credentials("added", key1).sas(token_of(&token))).expect(200);
}

fn token_of(output: &str) -> &str {
    output.trim_end()
}

#[test]
fn what_would_be_refused_is_not_minted() {
    let nowhere = TempDir::new().unwrap();
    let location = nowhere.path().join("absent");
    let check = |options: &[&str], part: &str| {
        let sentence = refusal(&[&["sas", "-l", location.to_str().unwrap()], options].concat(), &[]);
        assert!(sentence.contains(part), "{options:?}: {sentence}");
    };
    let good = ["--permissions", "r", "--expiry", FAR_EXPIRY];
    let with = |more: &[&'static str]| [&good[..], more].concat();
    check(&[], "");
    check(&["--permissions", "r"], "se");
    check(&["--expiry", FAR_EXPIRY], "sp");
    check(&["--permissions", "r", "--expiry", "soon"], "time");
    check(&with(&["--start", "soon"]), "time");
    check(&with(&["--ip", "localhost"]), "sip");
    check(&with(&["--protocol", "http"]), "spr");
    check(&with(&["--sas-version", "new"]), "sv");
    check(&with(&["--sas-version", "2013-08-15"]), "sv");
    check(&with(&["--account", "nobody"]), "nobody");
    check(&with(&["--table", "a-b"]), "a-b");
    check(&with(&["--table", "people", "--start-rk", "1"]), "srk");
    check(&with(&["--table", "people", "--end-rk", "1"]), "erk");
    check(&with(&["--start-pk", "a"]), "--table");
    check(&with(&["--policy", "a"]), "--table");
    check(&with(&["--table", "people", "--services", "t"]), "--services");
    check(&with(&["--table", "people", "--end-pk", ""]), "--end-pk");
    check(&with(&["--queue", "A_b"]), "'A_b' is not a queue name");
    check(&with(&["--queue", "jobs", "--start-pk", "a"]), "--start-pk goes with --table");
    check(&with(&["--queue", "jobs", "--table", "people"]), "one table, for one queue");
    check(
        &["--queue", "jobs", "--permissions", "rd", "--expiry", FAR_EXPIRY],
        "no permission 'd', only raup",
    );
    check(&["--permissions", "rz", "--expiry", FAR_EXPIRY], "no permission 'z'");
    check(&with(&["--bogus", "x"]), "bogus");
}
