//! `--throttle` and `--fail-on-scan`: the server is as strict as a program should expect.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use testkit::{
    EMULATOR_ACCOUNT, EMULATOR_KEY, RawClient, Request, ServerProcess, Stopwatch, TempDir, entity_json,
    entity_path,
};

use crate::{LAZULITE, refusal};

/// What a partition or an account may get in a second when a client asks for twice as much.
const TARGET: f64 = 500.0;
/// After a pause, a tenth of a second's worth of the target may come at once.
const BURST: Duration = Duration::from_millis(100);
const ROUND: Duration = Duration::from_secs(4);
/// Rounds until the client kept its pace throughout one. A busy machine may stop it for a while.
const ROUND_COUNT_MAX: usize = 8;
const CLIENT_COUNT: usize = 6;
/// Between two requests of the caller who stays far below the target.
const CALM_PAUSE: Duration = Duration::from_millis(50);

fn start(directory: &TempDir, option: &str) -> ServerProcess {
    start_with_accounts(directory, option, &format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY}"))
}

fn start_with_accounts(directory: &TempDir, option: &str, accounts: &str) -> ServerProcess {
    let ports = ["--table-port", "0", "--queue-port", "0", "--no-admin", option];
    let environment = [("LAZULITE_ACCOUNTS", accounts)];
    let server = ServerProcess::start_with(LAZULITE, directory.path(), &ports, &environment);
    for table in ["people", "orders"] {
        let create = Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}"));
        server.send(create).expect(201);
    }
    server
}

#[test]
fn targets_are_enforced() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, "--throttle=partition=1");
    let get = |partition: &str| server.send(Request::get(&entity_path("people", partition, "r")));
    get("p").expect_error(404, "ResourceNotFound");
    get("p").expect_error(503, "ServerBusy");
    get("q").expect_error(404, "ResourceNotFound");
}

/// What a client saw of one round.
struct Round {
    took: Duration,
    /// When each answer came, in order, and whether it was one of success.
    answers: Vec<(Duration, bool)>,
}

impl Round {
    fn per_second(&self, count: usize) -> f64 {
        count as f64 / self.took.as_secs_f64()
    }

    fn admitted(&self) -> usize {
        self.answers.iter().filter(|(_, is_admitted)| *is_admitted).count()
    }

    /// Whether the client always asked for more than the target. In a longer pause than the burst covers, a part of
    /// the target goes unused.
    fn kept_its_pace(&self) -> bool {
        let is_gapless = self.answers.windows(2).all(|pair| pair[1].0 - pair[0].0 < BURST);
        is_gapless && self.per_second(self.answers.len()) >= 1.5 * TARGET
    }
}

/// Asks for twice the target, by several connections, each request at its own time whatever became of those before.
fn ask_for_twice_the_target(server: &ServerProcess, request: &Request) -> Round {
    // Signed once: the client must be quick, and a signature stays valid for minutes.
    let bytes = server.bytes_of(request);
    let next = AtomicU64::new(0);
    let watch = Stopwatch::start();
    let ask = || {
        let mut client = RawClient::connect(server.addr()).unwrap();
        let mut answers = Vec::new();
        loop {
            let due = Duration::from_secs_f64(next.fetch_add(1, Ordering::Relaxed) as f64 / (2.0 * TARGET));
            if due >= ROUND || watch.elapsed() >= ROUND {
                return answers;
            }
            std::thread::sleep(due.saturating_sub(watch.elapsed()));
            let response = client.exchange(&bytes).unwrap();
            let is_admitted = response.status == 200;
            if !is_admitted {
                response.expect_error(503, "ServerBusy");
            }
            answers.push((watch.elapsed(), is_admitted));
        }
    };
    let mut answers: Vec<(Duration, bool)> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENT_COUNT).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let took = watch.elapsed();
    answers.sort();
    Round { took, answers }
}

/// Rounds of the greedy request until one of them can be judged, while the calm one is sent now and then.
fn check_that_the_target_holds(server: &ServerProcess, greedy: &Request, calm: &Request) {
    let calm_bytes = server.bytes_of(calm);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let calm = scope.spawn(|| {
            let mut client = RawClient::connect(server.addr()).unwrap();
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                client.exchange(&calm_bytes).unwrap().expect(200);
                count += 1;
                std::thread::sleep(CALM_PAUSE);
            }
            count
        });
        let rounds = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            check_rounds(|| ask_for_twice_the_target(server, greedy));
        }));
        is_over.store(true, Ordering::Relaxed);
        assert!(calm.join().unwrap() >= 20, "the calm caller was hardly there");
        if let Err(panic) = rounds {
            std::panic::resume_unwind(panic);
        }
    });
}

fn check_rounds(mut round: impl FnMut() -> Round) {
    for _ in 0..ROUND_COUNT_MAX {
        let round = round();
        let (sent, admitted) = (round.answers.len(), round.admitted());
        let story = format!("{admitted} of {sent} in {:?}", round.took);
        let burst = TARGET * BURST.as_secs_f64();
        let most = 1.05 * TARGET * round.took.as_secs_f64() + burst;
        // Nobody gets more, however the machine fares.
        assert!(admitted as f64 <= most, "{story}");
        if round.kept_its_pace() {
            assert!(round.per_second(admitted) >= 0.95 * TARGET, "{story}");
            return;
        }
        println!("the client did not keep its pace, so it asks again: {story}");
    }
    panic!("in no round did the client ask for more than the target all the time");
}

#[test]
fn twice_the_target_of_a_partition_gets_the_target() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, "--throttle=partition=500");
    for partition in ["hot", "calm"] {
        let entity = entity_json(partition, "r", "\"n\":1");
        server.send(Request::post("/people").json(&entity)).expect(201);
    }
    let get = |partition: &str| Request::get(&entity_path("people", partition, "r"));
    check_that_the_target_holds(&server, &get("hot"), &get("calm"));
}

#[test]
fn twice_the_target_of_an_account_gets_the_target() {
    const CALM_KEY: &str = "Y2FsbQ==";
    let directory = TempDir::new().unwrap();
    let accounts = format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY};calm:{CALM_KEY}");
    let server = start_with_accounts(&directory, "--throttle=account=500", &accounts);
    let list = Request::get("/Tables");
    check_that_the_target_holds(&server, &list, &list.clone().credentials("calm", CALM_KEY));
}

#[test]
fn scans_are_refused() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, "--fail-on-scan=People");
    server.send(Request::get("/people()")).expect_error(400, "ScanRefused");
    server.send(Request::get("/orders()")).expect(200);
}

#[test]
fn mistakes_are_told_before_anything_is_opened() {
    for (option, part) in [
        ("--throttle=2000", "--throttle takes partition=N and account=N"),
        ("--throttle=partition=0", "at least 1"),
        ("--fail-on-scan=my-table", "'my-table' is not a table name"),
    ] {
        let said = refusal(&["--in-memory", "--table-port", "0", "--queue-port", "0", option], &[]);
        assert!(said.contains(part), "{said}");
    }
}
