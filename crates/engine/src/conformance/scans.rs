//! Promises about scans: order, bounds, and how they resume.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::*;

/// In the order of UTF-16 code units: a surrogate pair (U+10000 and up) sorts before U+E000.
const ORDERED: [&str; 14] = [
    "",
    "\u{0}",
    "\u{0}a",
    "\u{1}",
    " ",
    "A",
    "a",
    "a\u{0}",
    "aa",
    "\u{e9}",
    "\u{d7ff}",
    "\u{1f600}",
    "\u{e000}",
    "\u{ffff}",
];

pub(super) async fn rows_come_in_the_order_of_utf16_code_units(s: Subject) {
    let table = s.table("t").await;
    // Put them in an order other than their own.
    for step in 0..ORDERED.len() {
        let name = ORDERED[step * 5 % ORDERED.len()];
        s.put(table, "p", name, "v").await;
        s.put(table, name, "r", "v").await;
    }
    let rows = KeyRange::rows("p", Unbounded, Unbounded);
    let mut expected: Vec<String> = ORDERED.iter().map(|row| format!("p/{row}")).collect();
    // Partition "p" has the row "r" only if "p" is among the names, which it is not.
    assert_eq!(s.keys(table, &[rows]).await, expected);

    expected = ORDERED.iter().map(|partition| format!("{partition}/r")).collect();
    let others: Vec<String> =
        s.keys(table, &[KeyRange::all()]).await.into_iter().filter(|key| !key.starts_with("p/")).collect();
    assert_eq!(others, expected);
}

pub(super) async fn every_kind_of_range_is_exact(s: Subject) {
    let table = s.table("t").await;
    for partition in ["a", "b", "b\u{0}", "ba", "c"] {
        for row in ["1", "2", "2\u{0}", "3"] {
            s.put(table, partition, row, "v").await;
        }
    }
    let check = async |range: KeyRange, expected: &[&str]| {
        assert_eq!(s.keys(table, std::slice::from_ref(&range)).await, expected, "{range:?}");
    };
    check(KeyRange::point("b", "2"), &["b/2"]).await;
    check(KeyRange::point("b", "x"), &[]).await;
    check(KeyRange::from_key("c", "2\u{0}"), &["c/2\u{0}", "c/3"]).await;
    check(KeyRange::from_key("c", "25"), &["c/3"]).await;
    check(KeyRange::from_key("d", ""), &[]).await;
    check(KeyRange::rows("b", Unbounded, Unbounded), &["b/1", "b/2", "b/2\u{0}", "b/3"]).await;
    check(KeyRange::rows("b", Included("2"), Unbounded), &["b/2", "b/2\u{0}", "b/3"]).await;
    check(KeyRange::rows("b", Excluded("2"), Unbounded), &["b/2\u{0}", "b/3"]).await;
    check(KeyRange::rows("b", Unbounded, Included("2")), &["b/1", "b/2"]).await;
    check(KeyRange::rows("b", Unbounded, Excluded("2")), &["b/1"]).await;
    check(KeyRange::rows("b", Included("2"), Excluded("3")), &["b/2", "b/2\u{0}"]).await;
    check(KeyRange::rows("x", Unbounded, Unbounded), &[]).await;
    let first = |partitions: &[&str]| -> Vec<String> {
        let rows = ["1", "2", "2\u{0}", "3"];
        partitions.iter().flat_map(|p| rows.iter().map(move |r| format!("{p}/{r}"))).collect()
    };
    let check = async |low: Bound<&str>, high: Bound<&str>, expected: &[&str]| {
        let range = KeyRange::partitions(low, high);
        assert_eq!(s.keys(table, &[range]).await, first(expected), "{low:?} {high:?}");
    };
    check(Unbounded, Unbounded, &["a", "b", "b\u{0}", "ba", "c"]).await;
    check(Included("b"), Unbounded, &["b", "b\u{0}", "ba", "c"]).await;
    check(Excluded("b"), Unbounded, &["b\u{0}", "ba", "c"]).await;
    check(Unbounded, Included("b"), &["a", "b"]).await;
    check(Unbounded, Excluded("b"), &["a"]).await;
    check(Excluded("a"), Excluded("ba"), &["b", "b\u{0}"]).await;
    check(Included("bb"), Included("bz"), &[]).await;
}

pub(super) async fn several_ranges_make_one_scan(s: Subject) {
    let table = s.table("t").await;
    for partition in ["a", "b", "c"] {
        for row in 0..10 {
            s.put(table, partition, &row.to_string(), "v").await;
        }
    }
    let ranges = KeyRange::normalize(vec![
        KeyRange::rows("c", Included("8"), Unbounded),
        KeyRange::point("b", "missing"),
        KeyRange::point("a", "5"),
        KeyRange::rows("b", Included("2"), Excluded("4")),
        KeyRange::point("b", "3"),
    ]);
    assert_eq!(s.keys(table, &ranges).await, ["a/5", "b/2", "b/3", "c/8", "c/9"]);

    // Stopped in the second range, the scan resumes there and continues with the third.
    let mut sink = Collect::at_most(2);
    let resume = read(s.engine.scan(table, &ranges, GENEROUS, &mut sink).await);
    let resume = resume.expect("three rows are left");
    assert_eq!(resume.as_key(), Key { partition: "b", row: "3" });
    let rest = KeyRange::from_key(&resume.partition, &resume.row);
    let rest: Vec<KeyRange> = ranges.iter().filter_map(|range| range.intersect(&rest)).collect();
    assert_eq!(s.keys(table, &rest).await, ["b/3", "c/8", "c/9"]);
}

pub(super) async fn no_range_and_an_empty_range_give_nothing(s: Subject) {
    let table = s.table("t").await;
    s.put(table, "p", "r", "v").await;
    assert!(s.keys(table, &[]).await.is_empty());
    assert!(s.keys(table, &[KeyRange::rows("p", Included("z"), Excluded("a"))]).await.is_empty());
    assert!(s.keys(TableId(table.0 + 1), &[KeyRange::all()]).await.is_empty());
}

async fn numbered(s: &Subject, count: usize) -> (TableId, Vec<String>) {
    let table = s.table("numbered").await;
    let names: Vec<String> = (0..count).map(|n| format!("{n:05}")).collect();
    for chunk in names.chunks(100) {
        let ops = chunk.iter().map(|row| op(row, Expect::Absent, put("v"))).collect();
        s.engine.commit(batch(table, "p", ops)).await.expect("put");
    }
    (table, names.iter().map(|name| format!("p/{name}")).collect())
}

fn rest(resume: &OwnedKey) -> [KeyRange; 1] {
    [KeyRange::from_key(&resume.partition, &resume.row)]
}

pub(super) async fn a_stopped_scan_resumes_with_the_very_row(s: Subject) {
    let (table, names) = numbered(&s, 10).await;
    let mut sink = Collect::at_most(4);
    let resume = s.scan(table, GENEROUS, &mut sink).await.expect("six rows are left");
    assert_eq!(sink.names(), names[..4]);
    assert_eq!(resume.as_key(), Key { partition: "p", row: "00004" });
    assert_eq!(s.keys(table, &rest(&resume)).await, names[4..]);

    let mut sink = Collect::at_most(0);
    let resume = s.scan(table, GENEROUS, &mut sink).await.expect("nothing was taken");
    assert_eq!(resume.as_key(), Key { partition: "p", row: "00000" });
}

pub(super) async fn a_scan_resumes_after_its_row_budget(s: Subject) {
    let (table, names) = numbered(&s, 700).await;
    // Pages smaller and larger than the slices an engine may work in.
    for page in [1, 7, 256, 300, 699, 700, 701] {
        let budget = Budget { rows_examined_max: page, ..GENEROUS };
        let mut ranges = vec![KeyRange::all()];
        let mut sink = Collect::default();
        let mut pages = 0;
        loop {
            let before = sink.rows.len() as u64;
            let resume = read(s.engine.scan(table, &ranges, budget, &mut sink).await);
            pages += 1;
            let examined = sink.rows.len() as u64 - before;
            match resume {
                Some(key) => {
                    assert_eq!(examined, page);
                    ranges = rest(&key).to_vec();
                }
                None => break,
            }
        }
        assert_eq!(sink.names(), names);
        assert_eq!(pages, names.len().div_ceil(page as usize), "page size {page}");
    }
}

/// Lets time pass at every row.
struct Slow {
    inner: Collect,
    clock: Arc<FakeClock>,
    each: Duration,
}

impl Sink for Slow {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        self.clock.advance(self.each);
        self.inner.row(key, version, value)
    }
}

pub(super) async fn a_scan_resumes_after_its_time_budget(s: Subject) {
    let (table, names) = numbered(&s, 500).await;
    let budget = Budget { time_max: Duration::from_millis(50), ..GENEROUS };
    let mut slow = Slow { inner: Collect::default(), clock: s.clock.clone(), each: Duration::from_millis(1) };
    let resume = s.scan(table, budget, &mut slow).await.expect("the time is used up");
    let taken = slow.inner.rows.len();
    // The engine need not read the clock at every row.
    assert!((50..150).contains(&taken), "{taken} rows in 50 ms at 1 ms each");
    assert_eq!(slow.inner.names(), names[..taken]);
    assert_eq!(s.keys(table, &rest(&resume)).await, names[taken..]);
}

/// Passes over all rows but every seventh, and notes what it was asked and shown.
#[derive(Default)]
struct EverySeventh {
    shown: Collect,
    asked_count: u64,
    /// The value of a row that it did not pass over, until it is shown.
    wanted: Option<Vec<u8>>,
}

impl Sink for EverySeventh {
    fn passes_over(&mut self, _version: Version, value: &[u8]) -> bool {
        assert_eq!(self.wanted, None, "a row that was not passed over was not shown");
        self.asked_count += 1;
        let passes = value.last().is_none_or(|last| last % 7 != 0);
        self.wanted = (!passes).then(|| value.to_vec());
        passes
    }

    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        // An engine that never asks shows every row.
        if self.asked_count > 0 {
            assert_eq!(self.wanted.take().as_deref(), Some(value), "a row that was passed over was shown");
        }
        self.shown.row(key, version, value)
    }
}

pub(super) async fn a_row_that_is_passed_over_is_examined_and_not_seen(s: Subject) {
    let table = s.table("numbered").await;
    let names: Vec<String> = (0..500).map(|n| format!("{n:05}")).collect();
    for chunk in names.chunks(100) {
        let ops = chunk.iter().map(|row| op(row, Expect::Absent, put(row))).collect();
        s.engine.commit(batch(table, "p", ops)).await.expect("put");
    }
    let mut whole = Collect::default();
    assert_eq!(s.scan(table, GENEROUS, &mut whole).await, None);
    // Pages of rows examined, not of rows shown; a page may show none.
    for page in [1, 3, 50, 1000] {
        let budget = Budget { rows_examined_max: page, ..GENEROUS };
        let (mut ranges, mut sink, mut resumed) = (vec![KeyRange::all()], EverySeventh::default(), 0);
        while let Some(key) = read(s.engine.scan(table, &ranges, budget, &mut sink).await) {
            ranges = rest(&key).to_vec();
            resumed += 1;
        }
        assert_eq!(resumed, names.len().div_ceil(page as usize) - 1, "page size {page}");
        if sink.asked_count > 0 {
            assert_eq!(sink.asked_count, names.len() as u64);
            let is_wanted = |value: &[u8]| value.last().is_some_and(|last| last % 7 == 0);
            let wanted: Vec<_> = whole.rows.iter().filter(|row| is_wanted(&row.2)).cloned().collect();
            assert!(!wanted.is_empty() && wanted.len() < names.len());
            assert_eq!(sink.shown.rows, wanted);
        } else {
            assert_eq!(sink.shown.rows, whole.rows);
        }
    }
}

pub(super) async fn a_scan_resumes_where_the_row_is_gone(s: Subject) {
    let (table, names) = numbered(&s, 10).await;
    let budget = Budget { rows_examined_max: 4, ..GENEROUS };
    let resume = s.scan(table, budget, &mut Collect::default()).await.expect("six rows are left");
    let gone = op(&resume.row, Expect::Present, Effect::Delete);
    s.engine.commit(Commit::one(table, "p", gone)).await.expect("deleted");
    assert_eq!(s.keys(table, &rest(&resume)).await, names[5..]);
}

pub(super) async fn one_row_is_examined_whatever_the_budget(s: Subject) {
    let (table, names) = numbered(&s, 5).await;
    for budget in [
        Budget { rows_examined_max: 0, time_max: Duration::ZERO, ..GENEROUS },
        Budget { rows_examined_max: 0, ..GENEROUS },
        Budget { time_max: Duration::ZERO, ..GENEROUS },
    ] {
        let mut sink = Collect::default();
        let mut ranges = [KeyRange::all()];
        for _ in 0..names.len() {
            match read(s.engine.scan(table, &ranges, budget, &mut sink).await) {
                Some(resume) => ranges = rest(&resume),
                None => break,
            }
        }
        assert_eq!(sink.names(), names, "{budget:?}");
    }
}

pub(super) async fn a_used_up_budget_at_the_end_is_the_end(s: Subject) {
    let (table, names) = numbered(&s, 10).await;
    let mut sink = Collect::default();
    let budget = Budget { rows_examined_max: 10, ..GENEROUS };
    assert_eq!(s.scan(table, budget, &mut sink).await, None);
    assert_eq!(sink.names(), names);
    // There is nothing to resume with either when only empty ranges are left.
    let ranges = [KeyRange::point("p", "00000"), KeyRange::point("p", "nothing"), KeyRange::point("q", "")];
    let budget = Budget { rows_examined_max: 1, ..GENEROUS };
    assert_eq!(read(s.engine.scan(table, &ranges, budget, &mut Collect::default()).await), None);
}

/// A seeded random number generator, for deterministic runs.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // Steele and Vigna's splitmix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }

    fn name(&mut self) -> String {
        let characters = ['\u{0}', '\u{1}', 'a', 'b', '\u{e000}', '\u{ffff}', '\u{1f600}'];
        (0..self.roll(3)).map(|_| characters[self.roll(characters.len())]).collect()
    }

    fn bound<'a>(&mut self, name: &'a str) -> Bound<&'a str> {
        [Included(name), Excluded(name), Unbounded][self.roll(3)]
    }

    fn range(&mut self) -> KeyRange {
        let (a, b, partition) = (self.name(), self.name(), self.name());
        let (low, high) = (self.bound(&a), self.bound(&b));
        match self.roll(5) {
            0 => KeyRange::point(&a, &b),
            1 => KeyRange::from_key(&a, &b),
            2 => KeyRange::partitions(low, high),
            _ => KeyRange::rows(&partition, low, high),
        }
    }
}

pub(super) async fn random_keys_and_ranges_agree_with_a_plain_model(s: Subject) {
    let table = s.table("t").await;
    let mut dice = Dice(1);
    let mut model = Vec::new();
    for _ in 0..150 {
        let (partition, row) = (dice.name(), dice.name());
        s.put(table, &partition, &row, "v").await;
        model.push((partition, row));
    }
    model.sort_by_cached_key(|(partition, row)| {
        let units = |string: &str| string.encode_utf16().collect::<Vec<u16>>();
        (units(partition), units(row))
    });
    model.dedup();
    for _ in 0..300 {
        let count = 1 + dice.roll(3);
        let ranges = KeyRange::normalize((0..count).map(|_| dice.range()).collect());
        let expected: Vec<String> = model
            .iter()
            .filter(|(partition, row)| ranges.iter().any(|range| range.contains(partition, row)))
            .map(|(partition, row)| format!("{partition}/{row}"))
            .collect();
        assert_eq!(s.keys(table, &ranges).await, expected, "{ranges:?}");
    }
}
