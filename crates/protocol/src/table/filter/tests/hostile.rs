//! What hostile filters cost: bounded stack, linear time, and never a panic.

use super::matching::{Row, matches};
use super::*;

/// Parsing, matching and dropping must manage with this much stack: half of a worker thread's.
const STACK_BYTES: usize = 1 << 20;

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap().join().unwrap();
}

fn nested(open: &str, middle: &str, close: &str, depth: usize) -> String {
    format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn filters_nest_as_deep_as_allowed_on_a_small_stack() {
    on_a_small_stack(|| {
        let max = NESTING_DEPTH_MAX;
        let deepest = [
            nested("(", "x eq 3", ")", max),
            nested("not ", "x eq 3", "", max),
            nested("not(", "x eq 3", ")", max / 2),
            nested("(x eq 3 and (x eq 4 or ", "x eq 3", "))", max / 2),
            // The deepest tree: an `or` over an `and` in each group.
            nested("x eq 4 or x eq 3 and (", "x eq 3", ")", max),
            nested("x eq 4 or x eq 3 and not not not (", "x eq 3", ")", max / 4),
            nested("x eq 4 or x eq 3 and not (", "x eq 3", ")", max / 2),
        ];
        for text in deepest {
            let filter = parse(&text, Schema::Entities).unwrap().unwrap();
            assert!(filter.matches(&Row(Some(Value::Int32(3)))));
        }
        let too_deep = [
            nested("(", "x eq 3", ")", max + 1),
            nested("not ", "x eq 3", "", max + 1),
            nested("not(", "x eq 3", ")", max / 2 + 1),
            nested("f(", "x", ")", max + 1),
            nested("- ", "x", "", max + 1),
            "(".repeat(60_000),
            "not ".repeat(15_000),
            "f(".repeat(30_000),
            "-".repeat(60_000),
        ];
        for text in too_deep {
            check_invalid(&text, "Recursion depth exceeded allowed limit.");
        }
    });
}

#[test]
fn nesting_is_counted_where_it_is_open_only() {
    let text = vec!["((not (x eq 3)))"; 1_000].join(" or ");
    assert!(!matches(&text, Some(Value::Int32(3))));
    let text = vec!["not not x"; 1_000].join(" and ");
    assert!(matches(&text, Some(Value::Boolean(true))));
}

#[test]
fn long_filters_are_wide_and_not_deep() {
    on_a_small_stack(|| {
        let terms = |term: &str, word: &str| vec![term; 60_000 / (term.len() + word.len())].join(word);
        let Expr::Or(list) = parsed(&terms("x eq 4", " or "), Schema::Entities) else { panic!("not a list") };
        assert_eq!(list.len(), 6_000);
        assert!(!matches(&terms("x eq 4", " or "), Some(Value::Int32(3))));
        assert!(matches(&terms("x eq 3", " and "), Some(Value::Int32(3))));
        assert!(!matches(&terms("(x eq 3 and x eq 4)", " or "), Some(Value::Int32(3))));

        // Long texts of other kinds are accepted or refused in time linear in their length.
        for piece in [
            "'", "''", "(", ")", "()", "not ", "-", "- ", "5", "5 ", "e", "a ", "a or ", "a,", "f(", "f(a,",
            "f(),",
        ] {
            for start in ["", "x eq ", "f(", "("] {
                let text = format!("{start}{}", piece.repeat(60_000 / piece.len()));
                let _ = parse(&text, Schema::Entities);
            }
        }
    });
}

#[test]
fn no_text_makes_the_parser_panic() {
    const CORPUS: [&str; 12] = [
        "PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'",
        "not(x eq 1) or (y ne 2L and z gt 1.5e-3D)",
        "x le datetime'2020-01-01T00:00:00.1234567Z' or x eq datetimeoffset'2020-01-01T00:00:00+01:00'",
        "x eq guid'c9da6455-213d-42c9-9a79-3e9149a57833' and X'00ff' ne y",
        "startswith(a, 'x') and contains(b, tolower('Y'))",
        "((a)) and not not b or true and false eq null",
        "x eq 'O''Neil' or x eq '' or x eq 'é\u{1F600}'",
        "-a add 5 mul 3 sub x div 2 mod 7 eq -INF",
        "x eq NaN or x lt INF or x gt 1.5f or x ge 3M",
        "größe eq -2147483648 and 名前 eq 9223372036854775807L",
        "a/any(x: x eq 1) or b.c eq [1] or $d eq {2}",
        "TableName ge 'My' and TableName lt 'Mz'",
    ];
    const PIECES: [&str; 24] = [
        "'",
        "''",
        "(",
        ")",
        ",",
        " ",
        "-",
        ".",
        "e",
        "L",
        "not ",
        " and ",
        " or ",
        " eq ",
        "X'",
        "datetime'",
        "f(",
        "0",
        "9999999999",
        "\u{1F600}",
        "\u{301}",
        "\0",
        "/",
        "null",
    ];
    // Xorshift from a fixed seed.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound.max(1) as u64) as usize
    };
    let row = Row(Some(Value::Int32(3)));
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..150_000 {
        let mut text: Vec<char> = CORPUS[below(CORPUS.len())].chars().collect();
        for _ in 0..=below(4) {
            let (at, to) = (below(text.len() + 1), below(text.len() + 1));
            match below(4) {
                0 => drop(text.drain(at.min(to)..at.max(to))),
                1 => drop(text.splice(at..at, PIECES[below(PIECES.len())].chars())),
                2 => {
                    let copy = text[at.min(to)..at.max(to)].to_vec();
                    text.splice(at..at, copy.into_iter().take(40));
                }
                _ => {
                    let other: Vec<char> = CORPUS[below(CORPUS.len())].chars().collect();
                    let from = below(other.len());
                    text.splice(at.., other[from..].iter().copied());
                }
            }
        }
        let text: String = text.into_iter().collect();
        let schema = if below(2) == 0 { Schema::Entities } else { Schema::Tables };
        match parse(&text, schema) {
            Ok(filter) => {
                taken += 1;
                let _ = filter.is_some_and(|filter| filter.matches(&row));
            }
            Err(error) => {
                refused += 1;
                assert!(matches!(error.code, ErrorCode::InvalidInput | ErrorCode::NotImplemented), "{text}");
            }
        }
    }
    assert!(taken > 1_000 && refused > 1_000, "{taken} taken, {refused} refused");
}
