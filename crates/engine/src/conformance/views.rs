//! Promises about what a reader sees of the commits around it.

use std::sync::mpsc;
use std::thread;

use super::*;

/// Has another thread commit while the scan is at its first row.
struct Interrupted {
    inner: Collect,
    go: Option<mpsc::SyncSender<()>>,
    done: mpsc::Receiver<()>,
}

impl Sink for Interrupted {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if let Some(go) = self.go.take() {
            go.send(()).expect("the writer waits");
            self.done.recv().expect("the writer commits while a scan is under way");
        }
        self.inner.row(key, version, value)
    }
}

pub(super) async fn a_scan_sees_nothing_of_a_commit_made_meanwhile(s: Subject) {
    let table = s.table("t").await;
    let before = s.put(table, "p", "a", "old").await;
    // More rows than any engine reads ahead.
    let fill =
        |from: usize| (from..from + 100).map(|n| op(&format!("m{n:04}"), Expect::Any, put("old"))).collect();
    for from in (0..2000).step_by(100) {
        s.engine.commit(batch(table, "p", fill(from))).await.expect("put");
    }
    s.put(table, "p", "y", "old").await;
    s.put(table, "p", "z", "old").await;

    let (go, wait) = mpsc::sync_channel(1);
    let (finish, done) = mpsc::sync_channel(1);
    let engine = s.engine.clone();
    // A thread with its own runtime, because the scan's worker is busy inside the sink.
    let writer = thread::spawn(move || {
        wait.recv().expect("the scan reaches its first row");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let ops = vec![
            op("a", Expect::Any, put("new")),
            op("n", Expect::Absent, put("new")),
            op("y", Expect::Present, Effect::Delete),
            op("z", Expect::Any, put("new")),
        ];
        let version = runtime.block_on(engine.commit(batch(table, "p", ops))).expect("committed");
        finish.send(()).expect("the scan waits");
        version
    });
    let mut sink = Interrupted { inner: Collect::default(), go: Some(go), done };
    assert_eq!(s.scan(table, GENEROUS, &mut sink).await, None);
    let after = writer.join().expect("the writer ends");

    let rows = &sink.inner.rows;
    assert_eq!(rows.len(), 2003);
    assert!(rows.iter().all(|(_, version, value)| *version < after && value == b"old"));
    assert_eq!(rows[0].1, before);
    // The next scan sees all of it.
    let names = s.keys(table, &[KeyRange::all()]).await;
    assert!(names.contains(&"p/n".to_owned()) && !names.contains(&"p/y".to_owned()));
    assert_eq!(s.value(table, "p", "z").await.as_deref(), Some("new"));
}

pub(super) async fn a_scan_never_sees_half_a_commit(s: Subject) {
    let table = s.table("t").await;
    let pair = |round: usize| {
        let value = round.to_string();
        vec![op("first", Expect::Any, put(&value)), op("second", Expect::Any, put(&value))]
    };
    s.engine.commit(batch(table, "p", pair(0))).await.expect("put");
    let fill = (0..100).map(|n| op(&format!("m{n:03}"), Expect::Any, put("v"))).collect();
    s.engine.commit(batch(table, "p", fill)).await.expect("put");

    let writers: Vec<_> = (1..=4)
        .map(|writer| {
            let engine = s.engine.clone();
            tokio::spawn(async move {
                for round in 0..25 {
                    engine.commit(batch(table, "p", pair(writer * 1000 + round))).await.expect("put");
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let mut last = 0;
    while !writers.iter().all(|writer| writer.is_finished()) {
        let mut sink = Collect::default();
        s.scan(table, GENEROUS, &mut sink).await;
        let find = |name: &str| {
            sink.rows.iter().find(|(key, _, _)| &*key.row == name).expect("the row is there").clone()
        };
        let (first, second) = (find("first"), find("second"));
        assert_eq!((first.1, &first.2), (second.1, &second.2), "both rows are of one commit");
        assert!(first.1.ticks() >= last, "a later scan sees no earlier state");
        last = first.1.ticks();
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.expect("the writer ends");
    }
}

pub(super) async fn a_read_after_an_acknowledged_commit_sees_it(s: Subject) {
    let table = s.table("t").await;
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let engine = s.engine.clone();
            tokio::spawn(async move {
                let row = format!("r{task}");
                for round in 0..20 {
                    let value = round.to_string();
                    let commit = Commit::one(table, "p", op(&row, Expect::Any, put(&value)));
                    let version = engine.commit(commit).await.expect("put");
                    let expected = Some(Row { version, value: value.into() });
                    let got = engine.get(table, Key { partition: "p", row: &row }).await;
                    assert_eq!(read(got), expected);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("every read saw its own write");
    }
}
