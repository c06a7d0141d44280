//! Queries: filters over every type, select, and refusals. The SDK has no filter builder: filters are text,
//! and it writes their blanks as `+`.

use azure_data_tables::prelude::*;
use serde_json::json;

use crate::support::*;

async fn query_table() -> TableClient {
    let table = new_table().await;
    for (row, values) in [
        (
            "a",
            json!({"i": 1, "d": 1.5, "s": "apple", "b": true,
                   "t": "2020-06-01T12:00:00Z", "t@odata.type": "Edm.DateTime"}),
        ),
        (
            "b",
            json!({"i": 2, "d": 2.5, "s": "O'Brien", "b": false,
                   "g": "a455c695-df98-5678-aaaa-81d3367e5a34", "g@odata.type": "Edm.Guid"}),
        ),
        ("c", json!({"i": 3, "d": 3.0, "s": "Banana", "x": "AQL/", "x@odata.type": "Edm.Binary"})),
        ("d", json!({"i": -4, "s": "", "l": "1099511627776", "l@odata.type": "Edm.Int64"})),
        ("e", json!({"s": "zürich 😀 + &", "l": "3", "l@odata.type": "Edm.Int64", "v": "text"})),
    ] {
        insert(&table, entity(row, values)).await.unwrap();
    }
    table
}

async fn check(table: &TableClient, filter: &'static str, expected: &str) {
    let found = all(table.query().filter(filter)).await.unwrap();
    assert_eq!(rows(&found).concat(), expected, "{filter}");
}

#[tokio::test]
async fn comparisons_of_numbers() {
    let table = query_table().await;
    check(&table, "i eq 2", "b").await;
    check(&table, "i ne 2", "acd").await;
    check(&table, "i gt 2", "c").await;
    check(&table, "i ge 2", "bc").await;
    check(&table, "i lt 2", "ad").await;
    check(&table, "i le 2", "abd").await;
    check(&table, "d gt 1.5", "bc").await;
    check(&table, "d eq 3", "c").await;
    check(&table, "l eq 1099511627776L", "d").await;
    check(&table, "l gt 3L", "d").await;
}

#[tokio::test]
async fn a_literal_is_widened_to_the_stored_type_but_not_narrowed() {
    let table = query_table().await;
    check(&table, "l eq 3", "e").await;
    check(&table, "i eq 3L", "").await;
    check(&table, "i lt 3L", "abcd").await;
    check(&table, "v ne 5", "e").await;
    check(&table, "v lt 5", "e").await;
}

#[tokio::test]
async fn comparisons_with_a_missing_property_are_false() {
    let table = query_table().await;
    check(&table, "nothing eq 1", "").await;
    check(&table, "nothing ne 1", "").await;
    check(&table, "not (nothing eq 1)", "abcde").await;
}

#[tokio::test]
async fn comparisons_of_text() {
    let table = query_table().await;
    check(&table, "s eq 'O''Brien'", "b").await;
    check(&table, "s lt 'a'", "bcd").await;
    check(&table, "s eq ''", "d").await;
    check(&table, "s eq 'zürich 😀 + &'", "e").await;
}

#[tokio::test]
async fn booleans_stand_alone() {
    let table = query_table().await;
    check(&table, "b", "a").await;
    check(&table, "not b", "bcde").await;
    check(&table, "true", "abcde").await;
    check(&table, "false", "").await;
}

#[tokio::test]
async fn comparisons_of_dates_guids_and_binaries() {
    let table = query_table().await;
    check(&table, "t gt datetime'2020-06-01T11:59:59.9999999Z'", "a").await;
    check(&table, "t gt datetime'2020-06-01T12:00:00Z'", "").await;
    check(&table, "g eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'", "b").await;
    check(&table, "x eq X'0102ff'", "c").await;
    check(&table, "x eq binary'0102FF'", "c").await;
}

#[tokio::test]
async fn keys_and_logic() {
    let table = query_table().await;
    check(&table, "PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'd'", "bc").await;
    check(&table, "'c' lt RowKey", "de").await;
    check(&table, "RowKey eq 'e' or RowKey eq 'a'", "ae").await;
    check(&table, "i eq 1 or i eq 2 and d eq 9.0", "a").await;
    check(&table, "(i eq 1 or i eq 2) and d eq 2.5", "b").await;
    check(&table, "not (i eq 2)", "acde").await;
}

#[tokio::test]
async fn what_cannot_be_read_is_refused() {
    let table = query_table().await;
    for filter in ["aaa bbb ccc", "i eq", "i eq 'open", "(i eq 1", "i EQ 1", "i eq 5454161346626", "1"] {
        assert_refused(all(table.query().filter(filter)).await, 400, "InvalidInput");
    }
}

#[tokio::test]
async fn what_the_service_does_not_do_is_refused() {
    let table = query_table().await;
    for filter in ["i eq d", "1 eq 1", "startswith(s,'a')"] {
        assert_refused(all(table.query().filter(filter)).await, 501, "NotImplemented");
    }
}

#[tokio::test]
async fn select_returns_exactly_the_chosen_properties_and_null_where_an_entity_lacks_one() {
    let table = query_table().await;
    let found = all(table.query().filter("i gt 0").select("RowKey,d,g")).await.unwrap();
    assert_eq!(rows(&found), ["a", "b", "c"]);
    let guid = json!("a455c695-df98-5678-aaaa-81d3367e5a34");
    assert_eq!(
        found.into_iter().map(plain).collect::<Vec<_>>(),
        [
            json!({"d": 1.5, "g": null}),
            json!({"d": 2.5, "g": guid, "g@odata.type": "Edm.Guid"}),
            json!({"d": 3.0, "g": null})
        ]
    );
}

#[tokio::test]
async fn select_does_not_hide_properties_from_the_filter() {
    let table = query_table().await;
    let found = all(table.query().filter("i gt 1").select("s")).await.unwrap();
    assert_eq!(
        found.into_iter().map(plain).collect::<Vec<_>>(),
        [json!({"s": "O'Brien"}), json!({"s": "Banana"})]
    );
}
