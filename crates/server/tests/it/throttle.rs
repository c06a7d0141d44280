//! Scalability targets: what goes over them is 503 `ServerBusy`, and nobody else notices. The clock stands still unless a
//! test moves it, so that rates are exact.

use std::sync::Arc;
use std::time::Duration;

use engine::env::FakeClock;
use observe::Targets;
use testkit::{Batch, Request, Response, TestServer, entity_json, entity_path};

struct World {
    server: TestServer,
    clock: Arc<FakeClock>,
}

impl World {
    fn new(partition: u32, account: u32) -> World {
        let clock = Arc::new(FakeClock::default());
        let targets =
            Targets { partition_rows_per_second: partition, account_operations_per_second: account };
        let options = TestServer::options().clock(clock.clone());
        let server = options.front(move |front| front.targets = Some(targets)).start();
        server.create_table("people");
        World { server, clock }
    }

    /// With targets for partitions alone.
    fn of_partitions(partition: u32) -> World {
        World::new(partition, 1_000_000)
    }

    fn pass(&self, milliseconds: u64) {
        self.clock.advance(Duration::from_millis(milliseconds));
    }

    fn get(&self, partition: &str) -> Response {
        self.server.send(Request::get(&entity_path("people", partition, "r")))
    }

    fn batch(&self, partition: &str, rows: std::ops::Range<u32>) -> Response {
        let insert = |batch: Batch, row: u32| {
            batch.insert("people", &entity_json(partition, &format!("{row:03}"), ""))
        };
        self.server.send(rows.fold(Batch::new(), insert).request())
    }

    fn list(&self, filter: &str) -> Response {
        self.server.send(Request::get("/people()").query("$filter", filter))
    }
}

/// Sends a request every five milliseconds of ten seconds: at twice the target of 100 a second. Returns how many were
/// answered well; the others must be told that the server is busy.
fn answered_at_twice_the_target(world: &World, mut send: impl FnMut(u32) -> Response) -> u32 {
    let mut answered = 0;
    for n in 0..2000 {
        world.pass(5);
        let response = send(n);
        match response.status {
            503 => drop(response.expect_error(503, "ServerBusy")),
            200 | 204 => answered += 1,
            other => panic!("{other}: {response:?}"),
        }
    }
    answered
}

#[test]
fn a_client_at_twice_the_target_gets_the_target_and_other_partitions_notice_nothing() {
    let world = World::of_partitions(100);
    for partition in ["hot", "calm"] {
        world.server.insert("people", partition, "r", "");
    }
    let answered = answered_at_twice_the_target(&world, |n| {
        if n % 10 == 0 {
            world.get("calm").expect(200);
        }
        world.get("hot")
    });
    assert!((1000..=1050).contains(&answered), "{answered}");
}

#[test]
fn writes_have_the_same_target_as_reads() {
    let world = World::of_partitions(100);
    let path = entity_path("people", "hot", "r");
    let answered = answered_at_twice_the_target(&world, |n| {
        if n % 2 == 0 { world.server.send(Request::put(&path).json("{}")) } else { world.get("hot") }
    });
    assert!((1000..=1050).contains(&answered), "{answered}");
}

#[test]
fn a_transaction_counts_its_entities_and_is_refused_as_a_whole() {
    let world = World::of_partitions(100);
    world.batch("p", 0..50).expect(202);
    world.batch("p", 50..51).expect_error(503, "ServerBusy");
    world.batch("q", 0..50).expect(202);
    // Half a second's worth was taken, and a tenth may be ahead.
    world.pass(390);
    world.batch("p", 50..51).expect_error(503, "ServerBusy");
    world.pass(20);
    world.batch("p", 50..51).expect(202);
    world.pass(1000);
    assert_eq!(
        world.list("PartitionKey eq 'p'").expect(200).json()["value"].as_array().map(Vec::len),
        Some(51)
    );
}

#[test]
fn a_query_counts_the_entities_that_it_returns() {
    let world = World::of_partitions(100);
    world.batch("p", 0..40).expect(202);
    world.pass(1000);
    world.list("PartitionKey eq 'p' and RowKey lt '030'").expect(200);
    world.list("PartitionKey eq 'p'").expect_error(503, "ServerBusy");
    world.get("p").expect_error(503, "ServerBusy");
    world.pass(210);
    world.get("p").expect(404);
    world.pass(1000);
    // Rows that are looked at and left out cost nothing, and neither does a query over several partitions.
    for _ in 0..5 {
        world.list("PartitionKey eq 'p' and Age gt 7").expect(200);
        world.list("PartitionKey ge 'p'").expect(200);
    }
    world.get("p").expect(404);
}

#[test]
fn an_account_has_a_target_of_its_own_which_strangers_do_not_use_up() {
    let world = World::new(1_000_000, 50);
    world.pass(1000);
    let list = || world.server.send(Request::get("/Tables"));
    for _ in 0..100 {
        world.server.send(Request::get("/Tables").unsigned());
    }
    // A tenth of a second's worth at once, and the one that is being let in.
    for _ in 0..6 {
        list().expect(200);
    }
    list().expect_message(503, "ServerBusy", "Operations per second is over the account limit.");
    world.pass(20);
    list().expect(200);
    list().expect_error(503, "ServerBusy");
}

#[test]
fn a_queue_is_a_partition_and_its_messages_are_counted() {
    let world = World::of_partitions(100);
    let queues = world.server.queue();
    for queue in ["hot", "calm"] {
        queues.create(queue);
        for _ in 0..10 {
            queues.put(queue, "text");
        }
        world.pass(1000);
    }
    for _ in 0..3 {
        let taken = queues.send(Request::get("/hot/messages?numofmessages=32&visibilitytimeout=1"));
        assert_eq!(taken.expect(200).elements("MessageId").len(), 10);
        world.pass(2000);
    }
    for _ in 0..2 {
        queues.send(Request::get("/hot/messages?peekonly=true&numofmessages=32")).expect(200);
    }
    queues.send(Request::get("/hot/messages?peekonly=true")).expect_error(503, "ServerBusy");
    queues.send(Request::get("/calm/messages?peekonly=true")).expect(200);
    world.pass(200);
    queues.send(Request::get("/hot/messages?peekonly=true")).expect(200);
}

#[test]
fn without_targets_nothing_is_counted() {
    let server = TestServer::with_table("people");
    server.insert("people", "p", "r", "");
    for _ in 0..500 {
        server.get("people", "p", "r").expect(200);
    }
}
