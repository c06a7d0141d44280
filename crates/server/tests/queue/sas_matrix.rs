//! Every operation with every set of permission letters: in an account SAS with all resource types and with each alone,
//! and in a service SAS. The list below says by hand, from §3.4 and §3.5, what each operation needs. The server must agree
//! with it and with the table in docs/compat/queue-sas.md. `LAZULITE_BLESS=1` rewrites that table.

use testkit::{Message, Queues, Request, Response, Sas, TestServer, message_xml};

use crate::with_queue;

const VERSION: &str = "2025-11-05";
/// The letters with a meaning for queues in an account SAS.
const ACCOUNT_LETTERS: &str = "rwdlacup";
/// The letters of a service SAS.
const QUEUE_LETTERS: &str = "raup";
const BEGIN: &str = "<!-- sas-matrix:begin -->";
const END: &str = "<!-- sas-matrix:end -->";

struct Case {
    name: &'static str,
    /// The resource type and the letters, any one of which is enough; empty when only an account key will do.
    level: &'static str,
    letters: &'static str,
    /// The letter of a service SAS; empty when no service SAS will do.
    of_queue: &'static str,
    /// Whether the path names the queue: otherwise a service SAS has nothing to be checked against.
    names_queue: bool,
    request: fn(&Message) -> Request,
    status: u16,
}

const fn of_service(
    name: &'static str,
    letters: &'static str,
    request: fn(&Message) -> Request,
    status: u16,
) -> Case {
    Case { name, level: "s", letters, of_queue: "", names_queue: false, request, status }
}

const fn of_queue(
    name: &'static str,
    level: &'static str,
    letters: &'static str,
    of_queue: &'static str,
    request: fn(&Message) -> Request,
    status: u16,
) -> Case {
    Case { name, level, letters, of_queue, names_queue: true, request, status }
}

const CASES: &[Case] = &[
    of_service(
        "Get Queue Service Properties",
        "r",
        |_| Request::get("/?restype=service&comp=properties"),
        200,
    ),
    of_service("Set Queue Service Properties", "w", |_| set_properties(), 202),
    of_service(
        "Get Queue Service Stats",
        "r",
        |_| Request::get("/?restype=service&comp=stats").path_account("devstoreaccount1-secondary"),
        200,
    ),
    of_service("List Queues", "l", |_| Request::get("/?comp=list"), 200),
    of_queue("Create Queue", "c", "cw", "", |_| Request::put("/abc"), 204),
    of_queue("Delete Queue", "c", "d", "", |_| Request::delete("/abc"), 204),
    of_queue("Get Queue Metadata", "c", "r", "r", |_| Request::get("/abc?comp=metadata"), 200),
    of_queue("Get Queue Metadata (HEAD)", "c", "r", "r", |_| Request::head("/abc?comp=metadata"), 200),
    of_queue("Set Queue Metadata", "c", "w", "", |_| Request::put("/abc?comp=metadata"), 204),
    of_queue("Get Queue ACL", "", "", "", |_| Request::get("/abc?comp=acl"), 200),
    of_queue("Set Queue ACL", "", "", "", |_| Request::put("/abc?comp=acl"), 204),
    of_queue("Put Message", "o", "a", "a", |_| Request::post("/abc/messages").xml(&message_xml("b")), 201),
    of_queue("Peek Messages", "o", "r", "r", |_| Request::get("/abc/messages?peekonly=true"), 200),
    of_queue("Get Messages", "o", "p", "p", |_| Request::get("/abc/messages"), 200),
    of_queue("Delete Message", "o", "p", "p", |message| message.delete("abc"), 204),
    of_queue("Update Message", "o", "u", "u", |message| message.hide("abc", 0), 204),
    of_queue("Clear Messages", "o", "d", "", |_| Request::delete("/abc/messages"), 204),
];

fn set_properties() -> Request {
    let body = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
    Request::put("/?restype=service&comp=properties").xml(body)
}

/// Restores the state that every operation expects: a queue with one message.
fn reset(queue: &Queues<'_>) -> Message {
    queue.send(Request::put("/abc"));
    queue.send(Request::delete("/abc/messages")).expect(204);
    queue.put("abc", "a")
}

/// Everything that an operation could change.
fn state(queue: &Queues<'_>) -> Vec<String> {
    [
        "/?comp=list&include=metadata",
        "/abc?comp=acl",
        "/abc/messages?peekonly=true&numofmessages=32",
        "/?restype=service&comp=properties",
    ]
    .map(|target| queue.send(Request::get(target)).expect(200).text().to_owned())
    .to_vec()
}

/// `ok` on success, otherwise the error code.
fn verdict(response: &Response, case: &Case) -> String {
    if response.status == case.status {
        return "ok".to_owned();
    }
    assert_eq!(response.status, 403, "{}: neither done nor refused:\n{response:?}", case.name);
    let code = response.required("x-ms-error-code").to_owned();
    if !case.name.ends_with("(HEAD)") {
        assert_eq!(response.error_code(), code, "{}", case.name);
    }
    code
}

fn ask(queue: &Queues<'_>, case: &Case, message: &Message, sas: &Sas) -> String {
    verdict(&queue.send((case.request)(message).sas(&sas.sign(queue.credentials()))), case)
}

fn expected_of_letters(needed: &str, letters: &str) -> &'static str {
    if needed.chars().any(|letter| letters.contains(letter)) {
        "ok"
    } else {
        "AuthorizationPermissionMismatch"
    }
}

fn expected_of_account(case: &Case, types: &str, letters: &str) -> &'static str {
    match case.level {
        _ if letters.is_empty() => "AuthenticationFailed",
        "" => "AuthorizationFailure",
        level if !types.contains(level) => "AuthorizationResourceTypeMismatch",
        _ => expected_of_letters(case.letters, letters),
    }
}

fn expected_of_queue(case: &Case, letters: &str) -> &'static str {
    match case.of_queue {
        // The signature is over a queue, and the path names none: there is nothing that it could be right for.
        _ if letters.is_empty() || !case.names_queue => "AuthenticationFailed",
        // Trap 16.
        "" => "AuthorizationFailure",
        needed => expected_of_letters(needed, letters),
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
    let queue = server.queue();
    let (allowed, refused): (Vec<_>, Vec<_>) = tokens.into_iter().partition(|(_, verdict)| *verdict == "ok");
    let message = reset(&queue);
    let before = state(&queue);
    for (sas, expected) in refused {
        assert_eq!(ask(&queue, case, &message, &sas), expected, "{} with {sas:?}", case.name);
    }
    assert_eq!(state(&queue), before, "{} was refused, and yet", case.name);
    for (sas, expected) in allowed {
        let message = reset(&queue);
        assert_eq!(ask(&queue, case, &message, &sas), expected, "{} with {sas:?}", case.name);
    }
}

fn account_sas(types: &str, letters: &str) -> Sas {
    Sas::queue_account(VERSION).set("srt", types).set("sp", letters)
}

fn queue_sas(letters: &str) -> Sas {
    Sas::queue(VERSION, "abc").set("sp", letters)
}

#[test]
fn an_account_sas_opens_what_its_letters_open() {
    let server = with_queue();
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
    let server = with_queue();
    for case in CASES {
        let mut tokens = Vec::new();
        for types in ["s", "c", "o", "sc", "so", "co"] {
            for letters in ["r", "w", "d", "l", "a", "c", "u", "p", ACCOUNT_LETTERS] {
                tokens.push((account_sas(types, letters), expected_of_account(case, types, letters)));
            }
        }
        check(&server, case, tokens);
    }
}

#[test]
fn letters_that_mean_nothing_here_open_nothing() {
    let server = with_queue();
    for case in CASES {
        let others = ('a'..='z').filter(|letter| !ACCOUNT_LETTERS.contains(*letter));
        let tokens = others.chain('A'..='Z').map(|letter| {
            let letters = letter.to_string();
            (account_sas("sco", &letters), expected_of_account(case, "sco", &letters))
        });
        check(&server, case, tokens.collect());
        let others = ('a'..='z').filter(|letter| !QUEUE_LETTERS.contains(*letter));
        let tokens = others.map(|letter| {
            let letters = letter.to_string();
            (queue_sas(&letters), expected_of_queue(case, &letters))
        });
        check(&server, case, tokens.collect());
    }
}

#[test]
fn a_service_sas_opens_the_messages_and_the_metadata_of_its_queue() {
    let server = with_queue();
    server.queue().create("other");
    for case in CASES {
        let tokens = subsets(QUEUE_LETTERS).into_iter().map(|letters| {
            let expected = expected_of_queue(case, &letters);
            (queue_sas(&letters), expected)
        });
        check(&server, case, tokens.collect());
        let elsewhere = ["r", "a", "u", "p", QUEUE_LETTERS]
            .map(|letters| (Sas::queue(VERSION, "other").set("sp", letters), "AuthenticationFailed"));
        check(&server, case, elsewhere.to_vec());
    }
}

#[test]
fn a_stored_policy_opens_what_its_letters_open() {
    let server = with_queue();
    let queue = server.queue();
    for letters in subsets(QUEUE_LETTERS).into_iter().skip(1) {
        for case in CASES.iter().filter(|case| case.names_queue) {
            let message = reset(&queue);
            let policy = format!(
                "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>{letters}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
            );
            queue.send(Request::put("/abc?comp=acl").xml(&policy)).expect(204);
            let sas = Sas::queue(VERSION, "abc").without("sp").set("si", "p");
            assert_eq!(
                ask(&queue, case, &message, &sas),
                expected_of_queue(case, &letters),
                "{} {letters}",
                case.name
            );
        }
    }
}

/// A cell of the table: the server's verdict as one character.
fn cell(queue: &Queues<'_>, case: &Case, sas: &Sas) -> &'static str {
    let message = reset(queue);
    match ask(queue, case, &message, sas).as_str() {
        "ok" => "✓",
        "AuthorizationPermissionMismatch" => "P",
        "AuthorizationResourceTypeMismatch" => "T",
        "AuthorizationFailure" => "F",
        "AuthenticationFailed" => "A",
        other => panic!("{}: {other}", case.name),
    }
}

/// The table of what the server does.
fn render(queue: &Queues<'_>) -> String {
    let letters = |letters: &str| letters.chars().map(|letter| format!(" {letter} |")).collect::<String>();
    let mut text = String::from(
        "Each operation with each permission letter alone, with none, and with all; first with an account SAS of all\n\
         resource types (`srt=sco`), then with all letters and one resource type, then with a service SAS for the queue.\n\
         ✓ allowed; else 403 with P `AuthorizationPermissionMismatch`, T `AuthorizationResourceTypeMismatch`,\n\
         F `AuthorizationFailure`, A `AuthenticationFailed`.\n\n",
    );
    text.push_str(&format!(
        "| Operation | needs |{} none | all | srt=s | srt=c | srt=o | queue: |{} none | all |\n",
        letters(ACCOUNT_LETTERS),
        letters(QUEUE_LETTERS),
    ));
    text.push_str(&format!("|---|---|{}\n", "---|".repeat(8 + 5 + 1 + 4 + 2)));
    for case in CASES {
        let needs = match case.level {
            "" => "account key".to_owned(),
            level => {
                let letters: Vec<String> = case.letters.chars().map(|letter| format!("`{letter}`")).collect();
                format!("`{level}`: {}", letters.join(" or "))
            }
        };
        text.push_str(&format!("| {} | {needs} |", case.name));
        let singles = ACCOUNT_LETTERS.chars().map(|letter| account_sas("sco", &letter.to_string()));
        let types = ["s", "c", "o"].map(|types| account_sas(types, ACCOUNT_LETTERS));
        let account =
            singles.chain([account_sas("sco", ""), account_sas("sco", ACCOUNT_LETTERS)]).chain(types);
        account.for_each(|sas| text.push_str(&format!(" {} |", cell(queue, case, &sas))));
        text.push_str("  |");
        let singles = QUEUE_LETTERS.chars().map(|letter| queue_sas(&letter.to_string()));
        let of_queue = singles.chain([queue_sas(""), queue_sas(QUEUE_LETTERS)]);
        of_queue.for_each(|sas| text.push_str(&format!(" {} |", cell(queue, case, &sas))));
        text.push('\n');
    }
    text
}

#[test]
fn the_document_shows_what_the_server_does() {
    let server = with_queue();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat/queue-sas.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    let table = format!("\n{}", render(&server.queue()));
    if std::env::var_os("LAZULITE_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, table, "docs/compat/queue-sas.md is out of date: LAZULITE_BLESS=1 rewrites it");
}
