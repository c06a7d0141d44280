//! When etcd's key counts, and when it does not.

use std::sync::Mutex as TestMutex;

use engine::env::ticks;

use super::*;

/// Both clocks, apart from each other.
struct TwoClocks(TestMutex<(Duration, u64)>);

impl TwoClocks {
    fn advance(&self, monotonic: Duration, wall: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = (now.0 + monotonic, now.1 + ticks(wall));
    }
}

impl Clock for TwoClocks {
    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().0
    }

    fn now_ticks(&self) -> u64 {
        self.0.lock().unwrap().1
    }
}

struct Scene {
    clock: TwoClocks,
    server: DatabaseServer,
}

fn scene() -> Scene {
    let clock = TwoClocks(TestMutex::new((Duration::from_secs(50), 7_000)));
    Scene { clock, server: DatabaseServer::new("run".to_owned(), None) }
}

impl Scene {
    fn key_seen(&self, term: u64, remaining: Duration) {
        let lineage = Lineage { system_identifier: "1".to_owned(), timeline: 1 };
        let until = self.clock.monotonic() + remaining;
        let until_ticks = self.clock.now_ticks() + ticks(remaining);
        self.server.leads(&ProvenLead { lineage, term, until, until_ticks });
    }

    fn barrier(&self) {
        let number = self.server.begin_barrier();
        self.server.barrier_confirmed(number);
    }

    fn leads(&self, barrier_needed: u64) -> bool {
        self.server.leads_now(barrier_needed, &self.clock)
    }
}

const FOUR: Duration = Duration::from_secs(4);

#[test]
fn a_key_counts_behind_a_barrier_and_until_its_end() {
    let s = scene();
    let session = s.server.next_barrier();
    s.barrier();
    assert!(!s.leads(session), "without a key");
    s.key_seen(3, FOUR);
    assert!(!s.leads(session), "the barrier began before the holder of the key was seen");
    let begun_before = s.server.begin_barrier();
    let newer = s.server.next_barrier();
    s.barrier();
    assert!(s.leads(session) && s.leads(newer));
    let newest = s.server.next_barrier();
    assert!(!s.leads(newest), "its session began after the barrier, perhaps after a crash");
    s.server.barrier_confirmed(begun_before);
    assert!(!s.leads(newest), "a barrier that is confirmed late began no later for that");
    s.clock.advance(FOUR - Duration::from_nanos(1), FOUR - Duration::from_micros(1));
    assert!(s.leads(session));
    s.clock.advance(Duration::from_nanos(1), Duration::ZERO);
    assert!(!s.leads(session), "the time is over");
    s.key_seen(3, FOUR);
    assert!(s.leads(session), "renewed by the same holder");
    s.key_seen(4, FOUR);
    assert!(!s.leads(session), "somebody has taken it anew");
    s.barrier();
    assert!(s.leads(session));
}

#[test]
fn after_a_warning_a_later_barrier_is_needed() {
    let s = scene();
    let session = s.server.next_barrier();
    s.key_seen(3, FOUR);
    s.barrier();
    assert!(s.leads(session));
    let under_way = s.server.begin_barrier();
    s.server.distrust();
    assert!(!s.leads(session));
    s.server.barrier_confirmed(under_way);
    assert!(!s.leads(session), "it began before the warning");
    s.barrier();
    assert!(s.leads(session));
}

#[test]
fn a_machine_that_was_suspended_trusts_no_key_from_before() {
    let s = scene();
    let session = s.server.next_barrier();
    s.key_seen(3, FOUR);
    s.barrier();
    s.clock.advance(Duration::from_millis(1), Duration::from_secs(60));
    assert!(!s.leads(session));
}

#[test]
fn a_server_that_is_alone_needs_neither_key_nor_barrier() {
    let s = scene();
    s.server.is_alone_until(s.clock.monotonic() + ALONE_FOR);
    assert!(s.leads(1));
    s.clock.advance(ALONE_FOR, ALONE_FOR);
    assert!(!s.leads(1));
}
