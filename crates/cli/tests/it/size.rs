//! The memory of an idle server, and the time to its first answer. The numbers are checked in release builds only.

use std::time::Duration;

use testkit::{Request, ServerProcess, Stopwatch, TempDir};

use crate::LAZULITE;

const IDLE_RSS_KIB_MAX: u64 = 40 * 1024;
const FIRST_ANSWER_MAX: Duration = Duration::from_millis(300);

fn rss_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn an_idle_server_is_small_and_answers_soon() {
    let directory = TempDir::new().unwrap();
    let watch = Stopwatch::start();
    let server = ServerProcess::start(LAZULITE, directory.path());
    server.send(Request::get("/Tables")).expect(200);
    let first_answer = watch.elapsed();
    let rss = rss_kib(server.id());
    println!("first answer after {first_answer:?}, {rss} KiB resident");
    if cfg!(debug_assertions) {
        println!("SKIPPED: a debug build is neither small nor quick; run this with --release");
        return;
    }
    assert!(rss < IDLE_RSS_KIB_MAX, "{rss} KiB");
    assert!(first_answer < FIRST_ANSWER_MAX, "{first_answer:?}");
}
