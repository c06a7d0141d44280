//! The commands know queues: `backup`, `restore`, `check`, `account` and `sas`, with a server and without one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::env::SystemClock;
use engine::{Budget, Commit, Effect, Engine, Expect, Flow, Key, KeyRange, Op, Sink, TableId, Version};
use engine_local::{LocalEngine, LocalOptions};

use testkit::{FAR_EXPIRY, RawClient, Request, Response, ServerProcess, TempDir, run_to_exit, system_now};

use crate::running::within;
use crate::{LAZULITE, refusal};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeeds(arguments: &[&str]) -> String {
    let output = run_to_exit(LAZULITE, arguments, &[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}{}", text(&output.stderr));
    said
}

/// A client of the Queue service with the token of an account.
struct Queues<'a> {
    server: &'a ServerProcess,
    token: String,
    account: &'a str,
}

impl<'a> Queues<'a> {
    fn of(server: &'a ServerProcess) -> Queues<'a> {
        let token = succeeds(&["sas", "--permissions", "rwdlacup", "--expiry", FAR_EXPIRY]);
        Queues { server, token: token.trim_end().to_owned(), account: "devstoreaccount1" }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Response {
        let mut request = Request::new(method, path).path_account(self.account).sas(&self.token);
        request =
            request.header("x-ms-version", "2021-12-02").without("Accept").without("DataServiceVersion");
        if !body.is_empty() {
            request = request.body("application/xml", body.to_owned());
        }
        let addr = self.server.queue_addr();
        let credentials = testkit::Credentials::emulator();
        let mut client = RawClient::connect(addr).unwrap();
        client.exchange(&request.to_bytes(addr, &credentials, system_now())).unwrap()
    }

    fn create(&self, queue: &str) {
        self.send("PUT", &format!("/{queue}"), "").expect(201);
    }

    fn put(&self, queue: &str, text: &str) {
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        self.send("POST", &format!("/{queue}/messages"), &body).expect(201);
    }

    /// Ids, dequeue counts and texts of the first messages, without taking them.
    fn peek(&self, queue: &str) -> Vec<[String; 3]> {
        let list = self.send("GET", &format!("/{queue}/messages?peekonly=true&numofmessages=32"), "");
        let list = list.expect(200).text().to_owned();
        let element = |message: &str, name: &str| {
            let (_, rest) = message.split_once(&format!("<{name}>")).unwrap();
            rest.split('<').next().unwrap().to_owned()
        };
        let messages = list.split("<QueueMessage>").skip(1);
        messages
            .map(|message| ["MessageId", "DequeueCount", "MessageText"].map(|name| element(message, name)))
            .collect()
    }

    fn count(&self, queue: &str) -> String {
        let answer = self.send("GET", &format!("/{queue}?comp=metadata"), "").expect(200);
        answer.required("x-ms-approximate-messages-count").to_owned()
    }
}

#[test]
fn queues_are_backed_up_checked_and_restored_elsewhere_and_beside_themselves() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (data, elsewhere, file) = (path("data"), path("elsewhere"), path("b.lzb"));
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    let queues = Queues::of(&server);
    queues.create("jobs");
    queues.create("none");
    for number in 0..10 {
        queues.put("jobs", &format!("{number}"));
    }
    // Taken and back again, so that its dequeue count is 1.
    queues.send("GET", "/jobs/messages?visibilitytimeout=1", "").expect(200);
    assert!(within(Duration::from_secs(20), || queues.peek("jobs").len() == 10));
    let before = queues.peek("jobs");
    assert_eq!(before.iter().filter(|[_, count, _]| count == "1").count(), 1);
    assert_eq!(queues.count("jobs"), "10");

    let counts = "0 tables, 0 entities, 2 queues, 10 messages";
    let said = succeeds(&["backup", &file, "-l", &data]);
    assert!(said.contains(counts), "{said}");
    let said = succeeds(&["check", "--backup", &file]);
    assert!(said.contains(counts) && said.contains("sound"), "{said}");
    let said = succeeds(&["check", "-l", &data]);
    assert!(said.contains("while it is being served") && said.contains(counts), "{said}");

    let said = succeeds(&["restore", &file, "-l", &elsewhere]);
    assert!(said.contains(counts) && said.contains("devstoreaccount1"), "{said}");
    let said = succeeds(&["check", "-l", &elsewhere]);
    assert!(said.contains("at rest") && said.contains(counts) && said.contains("\nsound"), "{said}");
    let copy = ServerProcess::start(LAZULITE, Path::new(&elsewhere));
    assert_eq!(Queues::of(&copy).peek("jobs"), before);
    assert_eq!(Queues::of(&copy).count("jobs"), "10");

    let one = ["restore", &file, "-l", &data, "--queue", "jobs", "--as"];
    let said = succeeds(&[&one[..], &["jobs-2"]].concat());
    assert!(said.contains("0 tables, 0 entities, 1 queues, 10 messages"), "{said}");
    assert_eq!(queues.peek("jobs-2"), before);
    assert!(refusal(&[&one[..], &["jobs-2"]].concat(), &[]).contains("has a queue 'jobs-2' already"));
    assert!(refusal(&[&one[..], &["Jobs"]].concat(), &[]).contains("not the name of a queue"));
    let whole = refusal(&["restore", &file, "-l", &data], &[]);
    assert!(whole.contains("--queue"), "{whole}");
    drop(server);
    succeeds(&[&one[..], &["jobs-3"]].concat());
    let said = succeeds(&["check", "-l", &data]);
    assert!(said.contains("4 queues, 30 messages") && said.contains("\nsound"), "{said}");
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    assert_eq!(Queues::of(&server).count("jobs-3"), "10");
}

#[test]
fn queues_keep_a_new_account_out_until_they_are_purged() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().to_str().unwrap().to_owned();
    for is_running in [true, false] {
        succeeds(&["account", "add", "mine", "-l", &data]);
        let server = ServerProcess::start(LAZULITE, directory.path());
        let token = succeeds(&[
            "sas",
            "--account",
            "mine",
            "-l",
            &data,
            "--permissions",
            "rwdlacup",
            "--expiry",
            FAR_EXPIRY,
        ]);
        let queues = Queues { server: &server, token: token.trim_end().to_owned(), account: "mine" };
        queues.create("one");
        queues.create("two");
        let server = is_running.then_some(server);
        succeeds(&["account", "remove", "mine", "-l", &data]);
        let refused = refusal(&["account", "add", "mine", "-l", &data], &[]);
        assert!(refused.contains("0 tables, 2 queues and 0 containers under the name 'mine'"), "{refused}");
        let purged = succeeds(&["account", "purge", "mine", "-l", &data]);
        assert_eq!(purged, "mine: 0 tables, 2 queues and 0 containers deleted\n");
        drop(server);
    }
}

#[test]
fn a_queue_token_opens_its_queue_and_nothing_else() {
    let server = ServerProcess::start_anywhere(
        LAZULITE,
        &["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &[],
    );
    let all = Queues::of(&server);
    all.create("jobs");
    all.create("other");
    let options = ["sas", "--queue", "jobs", "--permissions", "ra", "--expiry", FAR_EXPIRY];
    let output = run_to_exit(LAZULITE, &options, &[]);
    let said = text(&output.stderr);
    assert!(said.contains("Grants on queue jobs of devstoreaccount1: read, add"), "{said}");
    let token = text(&output.stdout).trim_end().to_owned();
    let jobs = Queues { server: &server, token, account: "devstoreaccount1" };
    jobs.put("jobs", "hello");
    assert_eq!(jobs.peek("jobs").len(), 1);
    let taken = jobs.send("GET", "/jobs/messages", "").expect(403);
    assert_eq!(taken.required("x-ms-error-code"), "AuthorizationPermissionMismatch");
    assert_eq!(jobs.send("GET", "/other/messages?peekonly=true", "").status, 403);

    let output = run_to_exit(LAZULITE, &["sas", "--queue", "jobs", "--policy", "takers"], &[]);
    let token = text(&output.stdout).trim_end().to_owned();
    let by_policy = Queues { server: &server, token, account: "devstoreaccount1" };
    assert_eq!(by_policy.send("GET", "/jobs/messages", "").status, 403);
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>takers</Id><AccessPolicy><Expiry>2099-01-01</Expiry><Permission>p</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    // Only the account's key may set policies.
    let endpoint = loadgen::endpoint::Endpoint::development(server.queue_addr());
    let signer = loadgen::queue_request::QueueSigner::of(&endpoint).unwrap();
    let set = signer.request("PUT", "/jobs", &[("comp", "acl")], policies);
    assert_eq!(loadgen::table::ask(&endpoint, &set).unwrap().0, 204);
    by_policy.send("GET", "/jobs/messages", "").expect(200);
}

/// The last row of each queue: the expiry row of a message.
struct LastRows(Vec<(TableId, String)>);

impl Sink for LastRows {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        match self.0.last_mut() {
            Some((_, row)) if key.partition.is_empty() => key.row.clone_into(row),
            _ => {
                let id = engine::TableRecord::read(value).unwrap().id;
                self.0.push((id, String::new()));
            }
        }
        Flow::Continue
    }
}

#[test]
fn a_message_without_its_expiry_row_is_damage() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().to_str().unwrap().to_owned();
    let server = ServerProcess::start(LAZULITE, directory.path());
    Queues::of(&server).create("jobs");
    Queues::of(&server).put("jobs", "hello");
    assert_eq!(server.stop(), Some(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(SystemClock::new());
        let engine = LocalEngine::open(directory.path(), LocalOptions::new(server::FAMILIES, clock)).unwrap();
        let budget = Budget::UNBOUNDED;
        let mut last = LastRows(Vec::new());
        engine.scan(TableId::CATALOGUE, &[KeyRange::all()], budget, &mut last).await.unwrap();
        // Storage Analytics has tables, too.
        last.0.retain(|(id, _)| id.family() == queues::FAMILY);
        let queue = last.0[0].0;
        engine.scan(queue, &[KeyRange::all()], budget, &mut last).await.unwrap();
        let row = last.0[0].1.as_str();
        assert!(row.starts_with('x'), "{row}");
        let op = Op { row: row.into(), expect: Expect::Present, effect: Effect::Delete };
        engine.commit(Commit::one(queue, "", op)).await.unwrap();
        engine.close().await;
    });
    for is_running in [false, true] {
        let server = is_running.then(|| ServerProcess::start(LAZULITE, directory.path()));
        let output = run_to_exit(LAZULITE, &["check", "-l", &data], &[]);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("tables.redb: queue devstoreaccount1/jobs: the message "), "{said}");
        assert!(said.contains("has no expiry row") && said.contains("DAMAGED: 1 findings"), "{said}");
        drop(server);
    }
}
