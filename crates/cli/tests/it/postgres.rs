//! Servers over PostgreSQL: two of them on one database, accounts in it, what is said at the start, moves, backups.
//!
//! Each test has a database of its own on one PostgreSQL. Where there is none, the tests are skipped by name.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use testkit::{
    Credentials, Postgres, RawClient, Request, Response, ServerProcess, TempDir, entity_path, message_xml,
    messages, run_to_exit, system_now,
};

use crate::running::{Running, run, status, within};
use crate::{LAZULITE, refusal};

/// 32 bytes in Base64.
const ACCOUNTS_KEY: &str = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
const OTHER_KEY: &str = "ICIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
/// A second, and what the machine needs.
const NOTICED_WITHIN: Duration = Duration::from_millis(1500);
const MESSAGE_COUNT: usize = 40;

pub struct Database {
    server: Arc<Postgres>,
    url: String,
    /// Of those who use the database in which they can run statements.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Database {
    fn server_or_skip(test: &str) -> Option<Arc<Postgres>> {
        match Postgres::shared() {
            Ok(server) => Some(server),
            Err(reason) => {
                assert!(std::env::var_os("LAZULITE_TEST_POSTGRES").is_none(), "{reason}");
                println!("SKIPPED {test}: {reason}");
                None
            }
        }
    }

    /// A new one.
    pub fn or_skip(test: &str) -> Option<Database> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let server = Database::server_or_skip(test)?;
        let name = format!("cli_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        server.sql(&format!("CREATE DATABASE {name}")).unwrap();
        let url = server.url().strip_suffix("postgres").unwrap().to_owned() + &name;
        Some(Database { server, url, _turn: None })
    }

    /// The one in which the test itself can run statements. One test at a time has it.
    fn with_sql_or_skip(test: &str) -> Option<Database> {
        static TURN: Mutex<()> = Mutex::new(());
        let server = Database::server_or_skip(test)?;
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        server.sql("DROP SCHEMA IF EXISTS lazulite CASCADE").unwrap();
        Some(Database { url: server.url(), server, _turn: Some(turn) })
    }

    pub fn environment(&self) -> [(&str, &str); 2] {
        [("LAZULITE_ENGINE", &self.url), ("LAZULITE_ACCOUNTS_KEY", ACCOUNTS_KEY)]
    }

    pub fn serve(&self, arguments: &[&str]) -> Running {
        let arguments =
            [&["--table-port", "0", "--queue-port", "0", "--admin-port", "0"], arguments].concat();
        Running::start(&arguments, &self.environment())
    }

    pub fn run(&self, arguments: &[&str]) -> String {
        run(arguments, &self.environment()).0
    }

    pub fn refused(&self, arguments: &[&str]) -> String {
        refusal(arguments, &self.environment())
    }
}

fn create(server: &Running, table: &str) -> Response {
    server.send(Request::post("/Tables").json(&format!(r#"{{"TableName":"{table}"}}"#)))
}

fn put(server: &Running, table: &str, row: &str, text: &str) -> Response {
    server.send(Request::put(&entity_path(table, "p", row)).json(&format!(r#"{{"Text":"{text}"}}"#)))
}

fn get(server: &Running, table: &str, row: &str) -> Response {
    server.send(Request::get(&entity_path(table, "p", row)))
}

fn drop_table(server: &Running, table: &str) -> Response {
    server.send(Request::delete(&format!("/Tables('{table}')")))
}

fn etag(response: &Response) -> String {
    response.header("etag").expect("an ETag").to_owned()
}

/// The key on the line that begins with `label`.
fn key(output: &str, label: &str) -> String {
    let line = output.lines().find_map(|line| line.strip_prefix(label));
    line.unwrap_or_else(|| panic!("no {label:?} in:\n{output}")).trim().to_owned()
}

#[test]
fn what_one_server_writes_another_reads_at_once() {
    let Some(database) = Database::or_skip("what_one_server_writes_another_reads_at_once") else { return };
    let (one, other) = (database.serve(&[]), database.serve(&[]));
    assert!(one.said().contains("Data in postgres://127.0.0.1:"), "{}", one.said());
    create(&one, "people").expect(201);
    let written = put(&one, "people", "a", "first");
    let read = get(&other, "people", "a").expect(200);
    assert_eq!(etag(&read), etag(&written));
    // Both know the table's id by now. A new one of the same name counts at the other server at once.
    put(&other, "people", "a", "second").expect(204);
    drop_table(&one, "people").expect(204);
    create(&one, "people").expect(201);
    get(&other, "people", "a").expect(404);
    put(&other, "people", "b", "of the new table").expect(204);
    get(&one, "people", "b").expect(200);
    drop_table(&other, "people").expect(204);
    create(&other, "people").expect(201);
    let page = one.send(Request::get("/people()")).expect(200);
    assert!(page.text().contains(r#""value":[]"#), "{}", page.text());
    put(&other, "people", "c", "of the third table").expect(204);
    get(&one, "people", "c").expect(200);
    // A table that is gone is gone everywhere within a second.
    drop_table(&one, "people").expect(204);
    assert!(within(NOTICED_WITHIN, || put(&other, "people", "d", "x").status == 404));
    let said = one.stop() + &other.stop();
    assert!(!said.contains(database.server.password()), "{said}");
}

fn send_to_queue(server: &ServerProcess, request: Request) -> Response {
    let addr = server.queue_addr();
    let bytes = request.to_queue_bytes(addr, &Credentials::emulator(), system_now());
    RawClient::connect(addr).unwrap().exchange(&bytes).unwrap().of_queue()
}

#[test]
fn takers_at_two_servers_never_hold_the_same_message() {
    let test = "takers_at_two_servers_never_hold_the_same_message";
    let Some(database) = Database::or_skip(test) else { return };
    let arguments = ["--table-port", "0", "--queue-port", "0", "--no-admin"];
    let start = || ServerProcess::start_anywhere(LAZULITE, &arguments, &database.environment());
    let servers = [start(), start()];
    send_to_queue(&servers[0], Request::put("/jobs")).expect(201);
    let put = |n: usize| {
        let request = Request::post("/jobs/messages").xml(&message_xml(&n.to_string()));
        send_to_queue(&servers[n % 2], request).expect(201);
    };
    (0..MESSAGE_COUNT).for_each(put);
    let taken = Mutex::new(Vec::new());
    let take = |worker: usize| {
        let server = &servers[worker % 2];
        while taken.lock().unwrap().len() < MESSAGE_COUNT {
            let get = Request::get("/jobs/messages?numofmessages=5&visibilitytimeout=600");
            for message in messages(&send_to_queue(server, get).expect(200)) {
                assert_eq!(message.dequeue_count, "1");
                // The receipt of one server is good at the other.
                send_to_queue(&servers[(worker + 1) % 2], message.delete("jobs")).expect(204);
                taken.lock().unwrap().push(message.text);
            }
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let take = &take;
            scope.spawn(move || take(worker));
        }
    });
    let mut taken = taken.into_inner().unwrap();
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), MESSAGE_COUNT);
    // A queue that one server clears is another table to the engine.
    put(0);
    send_to_queue(&servers[1], Request::delete("/jobs/messages")).expect(204);
    put(0);
    let peek = Request::get("/jobs/messages?peekonly=true&numofmessages=32");
    for server in &servers {
        assert_eq!(messages(&send_to_queue(server, peek.clone()).expect(200)).len(), 1);
    }
}

#[test]
fn accounts_live_in_the_database_and_count_everywhere_within_a_second() {
    let test = "accounts_live_in_the_database_and_count_everywhere_within_a_second";
    let Some(database) = Database::with_sql_or_skip(test) else { return };
    let added = database.run(&["account", "add", "mine"]);
    let (key1, key2) = (key(&added, "key1:"), key(&added, "key2:"));
    let servers = [database.serve(&["--profile", "server"]), database.serve(&[])];
    let become_all = |key: &str, expected: u16| {
        for server in &servers {
            assert!(within(NOTICED_WITHIN, || status(server, "mine", key) == expected), "{expected}");
        }
    };
    become_all(&key1, 200);
    let new1 = key(&database.run(&["account", "rotate", "mine"]), "key1 of mine:");
    become_all(&key1, 403);
    become_all(&new1, 200);
    become_all(&key2, 200);
    let listed = database.run(&["account", "list"]);
    assert!(listed.starts_with("mine  key1 "), "{listed}");
    let refused = database.refused(&["account", "add", "mine"]);
    assert!(refused.contains("already exists"), "{refused}");
    let create = Request::post("/Tables").json(r#"{"TableName":"kept"}"#).credentials("mine", &new1);
    servers[0].send(create).expect(201);
    database.run(&["account", "remove", "mine"]);
    become_all(&new1, 404);
    let refused = database.refused(&["account", "add", "mine"]);
    assert!(refused.contains("1 tables, 0 queues and 0 containers"), "{refused}");
    assert!(database.run(&["account", "purge", "mine"]).contains("1 tables"));
    database.run(&["account", "add", "mine"]);
    // Neither what is stored nor what is said shows a key.
    let secrets = [&key1, &key2, &new1];
    let rows = "SELECT encode(body, 'escape') FROM lazulite.rows WHERE table_id = 1";
    let stored = database.server.sql(rows).unwrap();
    let said: String = servers.into_iter().map(Running::stop).collect();
    for secret in secrets {
        assert!(!stored.contains(secret.as_str()) && !said.contains(secret.as_str()));
    }
    // With another key, or none, nobody learns anything, and a server does not start without its accounts.
    for (environment, part) in [
        (vec![("LAZULITE_ENGINE", &*database.url)], "LAZULITE_ACCOUNTS_KEY"),
        (
            vec![("LAZULITE_ENGINE", &*database.url), ("LAZULITE_ACCOUNTS_KEY", OTHER_KEY)],
            "sealed with another key",
        ),
        (vec![("LAZULITE_ENGINE", &*database.url), ("LAZULITE_ACCOUNTS_KEY", "short")], "32 random bytes"),
    ] {
        for arguments in [&["account", "list"][..], &["--table-port", "0", "--queue-port", "0", "--no-admin"]]
        {
            let sentence = refusal(arguments, &environment);
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}

#[test]
fn what_is_wrong_at_the_start_is_one_sentence_without_secrets() {
    let test = "what_is_wrong_at_the_start_is_one_sentence_without_secrets";
    let Some(database) = Database::with_sql_or_skip(test) else { return };
    let (server, secret) = (&database.server, database.server.password());
    server.sql("CREATE ROLE cli_nobody LOGIN PASSWORD 'a-secret-of-the-tests'").unwrap();
    server.sql("CREATE ROLE cli_reader LOGIN PASSWORD 'a-secret-of-the-tests'").unwrap();
    server.sql("ALTER ROLE cli_reader SET default_transaction_read_only = on").unwrap();
    let ports = ["--table-port", "0", "--queue-port", "0", "--no-admin"];
    let nobody = database.url.replace("//postgres:", "//cli_nobody:");
    let wrong = [
        (format!("http://u:{secret}@h/"), "takes the URL of a PostgreSQL database"),
        (
            format!("postgres://u:{secret}@127.0.0.1:1/postgres"),
            "no PostgreSQL server that takes writes is reachable",
        ),
        (database.url.replace(secret, "wrong-secret"), "does not accept the user or the password"),
        (nobody, "may not create the schema lazulite"),
        (database.url.replace("//postgres:", "//cli_reader:"), "takes writes"),
    ];
    for (url, part) in &wrong {
        let sentence = refusal(&ports, &[("LAZULITE_ENGINE", url)]);
        assert!(sentence.contains(part), "{sentence}");
        assert!(!sentence.contains("secret"), "{sentence}");
    }
    // The statements that it prints are those that it would run.
    let sql = run(&["engine", "schema"], &[]).0;
    server.sql(&sql).unwrap();
    server.sql("UPDATE lazulite.meta SET format = 1000").unwrap();
    let newer = refusal(&ports, &[("LAZULITE_ENGINE", &database.url)]);
    assert!(newer.contains("newer version"), "{newer}");
    let https = refusal(&[&ports[..], &["--https"]].concat(), &[("LAZULITE_ENGINE", &database.url)]);
    assert!(https.contains("--cert and --key"), "{https}");
    let both = refusal(&[&ports[..], &["-l", "d", "--engine", "postgres://h/d"]].concat(), &[]);
    assert!(both.contains("give one of them"), "{both}");
}

#[test]
fn an_engine_may_be_named_in_the_configuration_file() {
    let Some(database) = Database::or_skip("an_engine_may_be_named_in_the_configuration_file") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("lazulite.toml");
    let text = format!("engine = \"{}\"\naccounts-key = \"{ACCOUNTS_KEY}\"\n", database.url);
    std::fs::write(&path, text).unwrap();
    let config = ["--config", path.to_str().unwrap()];
    let added = run(&[&["account", "add", "filed"][..], &config].concat(), &[]).0;
    let ports = ["--table-port", "0", "--queue-port", "0", "--no-admin"];
    let server = Running::start(&[&ports[..], &config].concat(), &[]);
    assert_eq!(status(&server, "filed", &key(&added, "key1:")), 200);
    let sas = ["sas", "--account", "filed", "--permissions", "r", "--expiry", "2099-01-01T00:00:00Z"];
    let token = run(&[&sas[..], &config].concat(), &[]).0;
    assert!(token.contains("sig="), "{token}");
    server.stop();
}

#[test]
fn a_store_moves_there_and_back_with_its_etags_and_accounts() {
    let Some(database) = Database::or_skip("a_store_moves_there_and_back_with_its_etags_and_accounts") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let (first, back) = (directory.path().join("first"), directory.path().join("back"));
    let (first_text, back_text) = (first.to_str().unwrap(), back.to_str().unwrap());
    let added = run(&["account", "add", "mine", "-l", first_text], &[]).0;
    let key1 = key(&added, "key1:");
    let server = Running::over(&first, &[]);
    create(&server, "people").expect(201);
    create(&server, "empty").expect(201);
    for row in 0..60 {
        put(&server, "people", &format!("{row:04}"), "text").expect(204);
    }
    let written = etag(&get(&server, "people", "0007"));
    let acl = "<SignedIdentifiers><SignedIdentifier><Id>one</Id></SignedIdentifier></SignedIdentifiers>";
    server.send(Request::put("/people?comp=acl").xml(acl)).expect(204);
    let busy = database.refused(&["move", "--from", first_text, "--to", "engine"]);
    assert!(busy.contains("stop it first"), "{busy}");
    server.stop();

    let without_key =
        refusal(&["move", "--from", first_text, "--to", "engine"], &[("LAZULITE_ENGINE", &database.url)]);
    assert!(without_key.contains("LAZULITE_ACCOUNTS_KEY"), "{without_key}");
    let moved = database.run(&["move", "--from", first_text, "--to", "engine"]);
    assert!(moved.contains("2 tables, 0 queues, ") && moved.contains(" 1 accounts moved"), "{moved}");
    let server = database.serve(&[]);
    let read = get(&server, "people", "0007").expect(200);
    assert_eq!(etag(&read), written);
    assert_eq!(status(&server, "mine", &key1), 200);
    let policies = server.send(Request::get("/people?comp=acl")).expect(200);
    assert!(policies.text().contains("<Id>one</Id>"), "{}", policies.text());
    let newer = etag(&put(&server, "people", "0007", "newer"));
    assert_ne!(newer, written);
    server.stop();
    let again = database.refused(&["move", "--from", first_text, "--to", "engine"]);
    assert!(again.contains("is not empty"), "{again}");
    let checked = database.run(&["check"]);
    assert!(checked.contains("2 tables, 60 entities") && checked.ends_with("sound\n"), "{checked}");

    database.run(&["move", "--from", "engine", "--to", back_text]);
    let server = Running::over(&back, &[]);
    assert_eq!(etag(&get(&server, "people", "0007")), newer);
    assert_eq!(status(&server, "mine", &key1), 200);
    assert!(server.send(Request::get("/people?comp=acl")).text().contains("<Id>one</Id>"));
    server.stop();
    let checked = run(&["check", "-l", back_text], &[]).0;
    assert!(checked.contains("2 tables, 60 entities") && checked.ends_with("sound\n"), "{checked}");
}

#[test]
fn an_interrupted_move_goes_on_and_is_not_served_before() {
    let test = "an_interrupted_move_goes_on_and_is_not_served_before";
    let Some(database) = Database::with_sql_or_skip(test) else { return };
    let directory = TempDir::new().unwrap();
    let first = directory.path().join("first");
    let first_text = first.to_str().unwrap();
    let server = Running::over(&first, &[]);
    create(&server, "people").expect(201);
    for row in 0..30 {
        put(&server, "people", &format!("{row:04}"), "text").expect(204);
    }
    server.stop();
    // The last step of a move fails, because nobody may delete the note.
    let arguments = ["move", "--from", first_text, "--to", "engine"];
    let sql = run(&["engine", "schema"], &[]).0;
    database.server.sql(&sql).unwrap();
    let trap = "CREATE FUNCTION lazulite.trap() RETURNS trigger LANGUAGE plpgsql AS \
                $$ BEGIN RAISE EXCEPTION 'not now'; END $$; \
                CREATE TRIGGER trap BEFORE DELETE ON lazulite.rows FOR EACH ROW EXECUTE FUNCTION lazulite.trap()";
    database.server.sql(trap).unwrap();
    let failed = database.refused(&arguments);
    assert!(failed.contains("not now"), "{failed}");
    let ports = ["--table-port", "0", "--queue-port", "0", "--no-admin"];
    let refused = database.refused(&ports);
    assert!(refused.contains("is not complete"), "{refused}");
    database.server.sql("DROP TRIGGER trap ON lazulite.rows").unwrap();
    let moved = database.run(&arguments);
    assert!(moved.contains("1 tables, 0 queues, "), "{moved}");
    let server = database.serve(&[]);
    get(&server, "people", "0029").expect(200);
    server.stop();
}

#[test]
fn a_backup_of_a_database_restores_into_a_directory_and_the_other_way() {
    let test = "a_backup_of_a_database_restores_into_a_directory_and_the_other_way";
    let Some(database) = Database::or_skip(test) else { return };
    let Some(other) = Database::or_skip(test) else { return };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("backup.lzb");
    let (file, elsewhere) = (file.to_str().unwrap(), directory.path().join("elsewhere"));
    let server = database.serve(&[]);
    create(&server, "people").expect(201);
    let written = etag(&put(&server, "people", "a", "first"));
    assert!(database.run(&["backup", file]).contains("1 tables, 1 entities"));
    run(&["restore", file, "-l", elsewhere.to_str().unwrap()], &[]);
    other.run(&["restore", file]);
    let refused = other.refused(&["restore", file]);
    assert!(refused.contains("has tables, queues or containers already"), "{refused}");
    // One table beside the others, while a server runs.
    database.run(&["restore", file, "--table", "people", "--as", "again"]);
    get(&server, "again", "a").expect(200);
    server.stop();
    for server in [Running::over(&elsewhere, &[]), other.serve(&[])] {
        assert_eq!(etag(&get(&server, "people", "a")), written);
        server.stop();
    }
}

#[test]
fn a_server_without_a_leader_is_not_ready() {
    if Database::server_or_skip("a_server_without_a_leader_is_not_ready").is_none() {
        return;
    }
    // Its own PostgreSQL, because it is stopped.
    let mut server = Postgres::start().unwrap();
    let url = server.url();
    let arguments = ["--table-port", "0", "--queue-port", "0", "--admin-port", "0"];
    let front = Running::start(&arguments, &[("LAZULITE_ENGINE", &url)]);
    let line = front.line_with("Explorer and metrics at ");
    let address = line.rsplit_once("http://").unwrap().1.trim_end_matches('/').to_owned();
    let ready = || {
        let answer = http_get(&address, "/readyz");
        answer.split(' ').nth(1).map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(ready(), "200");
    server.sql("ALTER SYSTEM SET default_transaction_read_only = on").unwrap();
    server.crash_and_restart().unwrap();
    assert!(within(Duration::from_secs(10), || ready() == "503"));
    server.sql("ALTER SYSTEM RESET default_transaction_read_only").unwrap();
    server.sql("SELECT pg_reload_conf()").unwrap();
    assert!(within(Duration::from_secs(10), || ready() == "200"));
    front.stop();
}

fn http_get(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_schema_is_printed_without_a_database() {
    let output = run_to_exit(LAZULITE, &["engine", "schema"], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("CREATE SCHEMA IF NOT EXISTS lazulite;"), "{text}");
}
