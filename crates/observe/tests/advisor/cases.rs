//! Every case of the design guide, alone and all together among noise: the right culprit, the right remedy, and
//! nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use observe::{Advice, Finding, FindingKind, Operation, pattern};

use crate::workload::Generator;

/// One mistake: what a program does every 10 ms, and what is to be said about it.
struct Case {
    table: &'static str,
    kind: FindingKind,
    pattern: &'static str,
    /// What the finding is about.
    subject: &'static str,
    step: fn(&mut Generator, u64),
}

const CASES: &[Case] = &[
    Case {
        table: "People",
        kind: FindingKind::TableScan,
        pattern: pattern::INTER_PARTITION_INDEX,
        subject: "Email eq String",
        step: |on, step| {
            if step.is_multiple_of(50) {
                let key = on.key();
                on.query("People", &format!("Email eq '{key}'"), 12_000, 1);
            }
        },
    },
    Case {
        table: "Cities",
        kind: FindingKind::TableScan,
        pattern: pattern::INDEX_ENTITIES,
        subject: "Country eq String",
        step: |on, step| {
            if step.is_multiple_of(200) {
                on.query("Cities", "Country eq 'FR'", 5000, 70);
            }
        },
    },
    Case {
        table: "Devices",
        kind: FindingKind::TableScan,
        pattern: pattern::INTER_PARTITION_INDEX,
        subject: "RowKey eq String",
        step: |on, step| {
            if step.is_multiple_of(100) {
                on.query("Devices", "RowKey eq 'd17'", 800, 1);
            }
        },
    },
    Case {
        table: "Readings",
        kind: FindingKind::TableScan,
        pattern: pattern::LOG_DATA,
        subject: "Timestamp ge DateTime",
        step: |on, step| {
            if step.is_multiple_of(500) {
                on.query("Readings", "Timestamp ge datetime'2026-01-01T00:00:00Z'", 60_000, 10);
            }
        },
    },
    Case {
        table: "Staff",
        kind: FindingKind::PartitionScan,
        pattern: pattern::INTRA_PARTITION_INDEX,
        subject: "PartitionKey eq String and Email eq String",
        step: |on, step| {
            if step.is_multiple_of(20) {
                on.query("Staff", "PartitionKey eq 'Sales' and Email eq 'j@example.org'", 700, 1);
            }
        },
    },
    Case {
        table: "Teams",
        kind: FindingKind::PartitionScan,
        pattern: pattern::INDEX_ENTITIES,
        subject: "PartitionKey eq String and LastName eq String",
        step: |on, step| {
            if step.is_multiple_of(20) {
                on.query("Teams", "PartitionKey eq 'Sales' and LastName eq 'Jones'", 700, 12);
            }
        },
    },
    Case {
        table: "Ledger",
        kind: FindingKind::PartitionRange,
        pattern: pattern::INTER_PARTITION_INDEX,
        subject: "PartitionKey ge String and PartitionKey lt String and Total gt Double",
        step: |on, step| {
            if step.is_multiple_of(100) {
                on.query(
                    "Ledger",
                    "PartitionKey ge '2026' and PartitionKey lt '2027' and Total gt 9.5",
                    3000,
                    4,
                );
            }
        },
    },
    Case {
        table: "Chats",
        kind: FindingKind::RowRange,
        pattern: pattern::INTRA_PARTITION_INDEX,
        subject: "PartitionKey eq String and RowKey ge String and Unread",
        step: |on, step| {
            if step.is_multiple_of(100) {
                on.query("Chats", "PartitionKey eq 'u1' and RowKey ge '2020' and Unread", 4000, 1);
            }
        },
    },
    Case {
        table: "Invoices",
        kind: FindingKind::OrOfKeys,
        pattern: pattern::COMPOUND_KEY,
        subject: "PartitionKey eq String and (RowKey eq String or ..)",
        step: |on, step| {
            if step.is_multiple_of(10) {
                let filter = "PartitionKey eq 'p' and (RowKey eq '121' or RowKey eq '322' or RowKey eq '7')";
                on.query("Invoices", filter, 3, 3);
            }
        },
    },
    Case {
        table: "Sessions",
        kind: FindingKind::HotPartition,
        pattern: pattern::LOG_DATA,
        subject: "all",
        step: |on, _| {
            for _ in 0..35 {
                let row = on.key();
                on.get("Sessions", "all", &row);
            }
        },
    },
    Case {
        table: "Events",
        kind: FindingKind::Append,
        pattern: pattern::PREPEND_APPEND,
        subject: "",
        step: |on, step| {
            let row = on.key();
            on.write(Operation::InsertEntity, "Events", (&format!("{step:019}"), &row), 1);
        },
    },
    Case {
        table: "Claims",
        kind: FindingKind::Prepend,
        pattern: pattern::PREPEND_APPEND,
        subject: "claims",
        step: |on, step| {
            let row = format!("{:019}", u64::MAX / 2 - step);
            on.write(Operation::InsertEntity, "Claims", ("claims", &row), 1);
        },
    },
    Case {
        table: "Archive",
        kind: FindingKind::GiantPartition,
        pattern: pattern::ONE_TO_MANY,
        subject: "everything",
        step: |on, step| {
            if step.is_multiple_of(10) {
                let row = on.key();
                on.write(Operation::EntityGroupTransaction, "Archive", ("everything", &row), 100);
            }
        },
    },
    Case {
        table: "Profiles",
        kind: FindingKind::WideEntity,
        pattern: pattern::WIDE_ENTITIES,
        subject: "'p' 'wide'",
        step: |on, step| {
            if step.is_multiple_of(1000) {
                on.write_sized(Operation::MergeEntity, "Profiles", ("p", "wide"), 1, 9000, 240);
            }
        },
    },
    Case {
        table: "Documents",
        kind: FindingKind::LargeEntity,
        pattern: pattern::LARGE_ENTITIES,
        subject: "'d' 'large'",
        step: |on, step| {
            if step.is_multiple_of(1000) {
                on.write_sized(Operation::UpdateEntity, "Documents", ("d", "large"), 1, 900 * 1024, 12);
            }
        },
    },
];

const SECONDS: u64 = 120;

fn by_table(findings: &[Finding]) -> BTreeMap<&str, Vec<&Finding>> {
    let mut tables = BTreeMap::<&str, Vec<&Finding>>::new();
    for finding in findings {
        tables.entry(&finding.table).or_default().push(finding);
    }
    tables
}

#[track_caller]
fn check(case: &Case, findings: &[&Finding]) {
    let [finding] = findings else {
        panic!("{}: {} findings: {findings:#?}", case.table, findings.len());
    };
    assert_eq!((finding.kind, finding.pattern), (case.kind, case.pattern), "{finding:#?}");
    if !case.subject.is_empty() {
        assert_eq!(finding.subject, case.subject, "{finding:#?}");
    }
    assert!(finding.sketch.contains(case.table), "{finding:#?}");
    assert!(finding.title.contains(case.table) && !finding.explanation.is_empty(), "{finding:#?}");
}

#[test]
fn each_case_alone_is_found() {
    for case in CASES {
        let mut generator = Generator::new(1);
        generator.run(SECONDS, case.step);
        let findings = generator.advisor.findings(generator.now);
        check(case, &findings.iter().collect::<Vec<_>>());
    }
}

#[test]
fn all_cases_are_found_among_each_other_and_noise_and_nothing_else_is() {
    for seed in 1..3 {
        let mut generator = Generator::new(seed);
        generator.run(SECONDS, |on, step| {
            on.well_designed(step);
            for case in CASES {
                (case.step)(on, step);
            }
        });
        let findings = generator.advisor.findings(generator.now);
        let mut tables = by_table(&findings);
        for case in CASES {
            check(case, &tables.remove(case.table).unwrap_or_default());
        }
        assert!(tables.is_empty(), "seed {seed}: {tables:#?}");
    }
}

#[test]
fn a_well_designed_workload_has_no_finding() {
    for seed in 1..3 {
        let mut generator = Generator::new(seed);
        for minute in 0..3 {
            generator.run(60, |on, step| on.well_designed(step));
            let findings = generator.advisor.findings(generator.now);
            assert!(findings.is_empty(), "seed {seed}, minute {minute}: {findings:#?}");
        }
    }
}

#[test]
fn findings_keep_their_ids_and_their_order() {
    let mut generator = Generator::new(5);
    let step = |on: &mut Generator, step: u64| {
        on.well_designed(step);
        for case in CASES {
            (case.step)(on, step);
        }
    };
    generator.run(SECONDS, step);
    let ids = |generator: &Generator| -> Vec<String> {
        generator.advisor.findings(generator.now).into_iter().map(|finding| finding.id).collect()
    };
    let first = ids(&generator);
    assert_eq!(first, ids(&generator));
    let ranks: Vec<usize> =
        generator.advisor.findings(generator.now).iter().map(|finding| finding.rank).collect();
    assert_eq!(ranks, (1..=first.len()).collect::<Vec<_>>());
    // Later the same are found; only what crosses a power of two may move.
    generator.run(20, |on, number| step(on, SECONDS * 100 + number));
    let mut later = ids(&generator);
    let mut sorted = first.clone();
    later.sort();
    sorted.sort();
    assert_eq!(sorted, later);
}

#[test]
fn findings_disappear_when_their_cause_does() {
    let mut generator = Generator::new(6);
    generator.run(SECONDS, |on, step| {
        for case in CASES {
            (case.step)(on, step);
        }
    });
    let kinds = |generator: &Generator| -> Vec<FindingKind> {
        let mut kinds: Vec<FindingKind> =
            generator.advisor.findings(generator.now).iter().map(|finding| finding.kind).collect();
        kinds.sort();
        kinds
    };
    assert_eq!(kinds(&generator).len(), CASES.len());
    // The program was mended: its heat is over within a minute, its queries within ten.
    generator.run(60, |on, step| on.well_designed(step));
    assert!(!kinds(&generator).contains(&FindingKind::HotPartition));
    generator.now += Duration::from_secs(540);
    generator.run(1, |on, step| on.well_designed(step));
    let stored = [FindingKind::GiantPartition, FindingKind::LargeEntity, FindingKind::WideEntity];
    assert_eq!(kinds(&generator), stored);
    // What was stored is still there, until it is changed or deleted.
    generator.write(Operation::UpdateEntity, "Documents", ("d", "large"), 1);
    assert_eq!(kinds(&generator), [FindingKind::GiantPartition, FindingKind::WideEntity]);
    generator.delete_table("archive");
    assert_eq!(kinds(&generator), [FindingKind::WideEntity]);
    generator.now += Duration::from_secs(3700);
    assert!(kinds(&generator).is_empty());
}

#[test]
fn findings_are_json_and_the_memory_bound_is_told() {
    let mut generator = Generator::new(7);
    generator.run(SECONDS, |on, step| {
        for case in CASES {
            (case.step)(on, step);
        }
        on.query("Hostile", "X eq '</script>\"\\'", 1000, 1);
        on.get("Hostile", "</script>\u{2028}\"\\\n", "row");
    });
    let advisor = &generator.advisor;
    let text = advisor.findings_json(generator.now);
    assert!(!text.contains('<') && !text.contains('\n'));
    let findings: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(findings.len(), CASES.len() + 1);
    for finding in &findings {
        for name in
            ["id", "severity", "kind", "account", "title", "explanation", "remedy", "sketch", "pattern"]
        {
            assert!(finding[name].as_str().is_some_and(|text| !text.is_empty()), "{name} of {finding}");
        }
        assert!(finding["numbers"].as_object().is_some_and(|numbers| !numbers.is_empty()), "{finding}");
    }
    let hot: Vec<serde_json::Value> =
        serde_json::from_str(&advisor.hot_partitions_json(generator.now)).unwrap();
    assert_eq!(hot[0]["partition"], "all");
    assert!(hot[0]["per_second"].as_f64().is_some_and(|rate| (2900.0..4200.0).contains(&rate)), "{}", hot[0]);
    let month: serde_json::Value = serde_json::from_str(&advisor.month_json(generator.now)).unwrap();
    assert_eq!(month["currency"], "USD");
    // About 3,800 requests a second.
    let cost = month["transactions_cost"].as_f64().unwrap();
    assert!((300.0..400.0).contains(&cost), "{month}");
    println!("the advisor's memory is at most {} bytes", advisor.memory_bound_bytes());
}

#[test]
fn writing_the_same_keys_again_in_their_order_is_no_growth() {
    for operation in [Operation::InsertOrReplaceEntity, Operation::InsertOrMergeEntity] {
        let mut generator = Generator::new(8);
        let upsert = |on: &mut Generator, step: u64| {
            on.write(operation, "Stock", (&format!("{:06}", step % 600), "item"), 1);
            on.write(operation, "Prices", (&format!("{:06}", 600 - step % 600), "item"), 1);
        };
        generator.run(24, upsert);
        let findings = generator.advisor.findings(generator.now);
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

#[test]
fn upserts_and_transactions_that_append_are_growth() {
    // How many writers there are, which overtake each other. Transactions are all looked at, so more would hide it.
    let operations = [
        (Operation::InsertEntity, 16),
        (Operation::InsertOrReplaceEntity, 16),
        (Operation::InsertOrMergeEntity, 16),
        (Operation::EntityGroupTransaction, 4),
    ];
    for (operation, writers) in operations {
        let mut generator = Generator::new(9);
        generator.run(24, |on, step| {
            let key = step + on.random.u64(..writers);
            on.write(operation, "Log", (&format!("{key:09}"), "r"), 1);
        });
        let kinds: Vec<FindingKind> =
            generator.advisor.findings(generator.now).iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::Append], "{operation:?}");
    }
}
