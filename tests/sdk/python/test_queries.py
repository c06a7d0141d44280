"""Queries: filters over every type, parameters, select, and refusals."""

import uuid
from datetime import datetime, timezone

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty

NOON = datetime(2020, 6, 1, 12, tzinfo=timezone.utc)
GUID = uuid.UUID("a455c695-df98-5678-aaaa-81d3367e5a34")

ROWS = [
    {"RowKey": "a", "i": 1, "d": 1.5, "s": "apple", "b": True, "t": NOON},
    {"RowKey": "b", "i": 2, "d": 2.5, "s": "O'Brien", "b": False, "g": GUID},
    {"RowKey": "c", "i": 3, "d": 3.0, "s": "Banana", "x": b"\x01\x02\xff"},
    {"RowKey": "d", "i": -4, "s": "", "l": EntityProperty(2**40, EdmType.INT64)},
    {"RowKey": "e", "s": "zürich 😀", "l": EntityProperty(3, EdmType.INT64), "v": "text"},
]


@pytest.fixture
def filled(table):
    for row in ROWS:
        table.create_entity({"PartitionKey": "p", **row})
    return table


def rows(found):
    return "".join(entity["RowKey"] for entity in found)


@pytest.mark.parametrize(
    "query, expected",
    [
        # Integers, every operator.
        ("i eq 2", "b"),
        ("i ne 2", "acd"),
        ("i gt 2", "c"),
        ("i ge 2", "bc"),
        ("i lt 2", "ad"),
        ("i le 2", "abd"),
        ("i eq -4", "d"),
        # A missing property fails every comparison, even ne; `not` inverts that.
        ("i ne 99", "abcd"),
        ("not (i eq 2)", "acde"),
        ("nothing eq 1", ""),
        ("nothing ne 1", ""),
        ("not (nothing eq 1)", "abcde"),
        # Doubles; an integer literal widens to a stored double.
        ("d gt 1.5", "bc"),
        ("d eq 3", "c"),
        ("d eq 3.0", "c"),
        ("d le 2.5", "ab"),
        # Int64; an Int32 literal widens to a stored Int64.
        ("l eq 1099511627776L", "d"),
        ("l eq 3L", "e"),
        ("l eq 3", "e"),
        ("l gt 3L", "d"),
        # Types that do not compare: the stored value is 'less'.
        ("i eq 3L", ""),
        ("i lt 3L", "abcd"),
        ("v eq 5", ""),
        ("v ne 5", "e"),
        ("v lt 5", "e"),
        ("v ge 5", ""),
        # Strings: ordinal and case-sensitive.
        ("s eq 'apple'", "a"),
        ("s eq 'Apple'", ""),
        ("s eq 'O''Brien'", "b"),
        ("s lt 'a'", "bcd"),
        ("s ge 'apple' and s lt 'b'", "a"),
        ("s eq ''", "d"),
        ("s eq 'zürich 😀'", "e"),
        # Booleans, also without a comparison.
        ("b eq true", "a"),
        ("b eq false", "b"),
        ("b", "a"),
        ("not b", "bcde"),
        ("true", "abcde"),
        ("false", ""),
        # Dates, GUIDs, binaries.
        ("t eq datetime'2020-06-01T12:00:00Z'", "a"),
        ("t gt datetime'2020-06-01T11:59:59.9999999Z'", "a"),
        ("t gt datetime'2020-06-01T12:00:00Z'", ""),
        ("g eq guid'a455c695-df98-5678-aaaa-81d3367e5a34'", "b"),
        ("g eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'", "b"),
        ("x eq X'0102ff'", "c"),
        ("x eq binary'0102FF'", "c"),
        ("x lt X'0103'", "c"),
        # Keys, and keys with the literal on the left.
        ("PartitionKey eq 'p' and RowKey eq 'c'", "c"),
        ("PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'd'", "bc"),
        ("'c' eq RowKey", "c"),
        ("'c' lt RowKey", "de"),
        ("PartitionKey eq 'other'", ""),
        ("RowKey eq 'e' or RowKey eq 'a'", "ae"),
        ("PartitionKey eq 'p' and (RowKey eq 'd' or RowKey eq 'b') and i gt 0", "b"),
        # `and` binds tighter than `or`; parentheses and `not`.
        ("i eq 1 or i eq 2 and d eq 9.0", "a"),
        ("(i eq 1 or i eq 2) and d eq 2.5", "b"),
        ("not (i eq 1 or i eq 2) and i le 3", "cd"),
        ("not(i eq 1)", "bcde"),
    ],
)
def test_filter(filled, query, expected):
    assert rows(filled.query_entities(query)) == expected


@pytest.mark.parametrize(
    "query, parameters, expected",
    [
        ("s eq @name", {"name": "O'Brien"}, "b"),
        ("s eq @name", {"name": "zürich 😀"}, "e"),
        ("i ge @low and i le @high", {"low": 1, "high": 2}, "ab"),
        ("l eq @big", {"big": 2**40}, "d"),
        ("d lt @limit", {"limit": 2.75}, "ab"),
        ("b eq @flag", {"flag": True}, "a"),
        ("b eq @flag", {"flag": False}, "b"),
        ("t eq @when", {"when": NOON}, "a"),
        ("g eq @id", {"id": GUID}, "b"),
        ("x eq @bytes", {"bytes": b"\x01\x02\xff"}, "c"),
        ("PartitionKey eq @pk and RowKey eq @rk", {"pk": "p", "rk": "d"}, "d"),
    ],
)
def test_filter_with_parameters(filled, query, parameters, expected):
    assert rows(filled.query_entities(query, parameters=parameters)) == expected


def test_timestamp_can_be_filtered(filled):
    stamps = {entity["RowKey"]: entity.metadata["timestamp"].tables_service_value for entity in filled.list_entities()}
    assert rows(filled.query_entities(f"Timestamp eq datetime'{stamps['c']}'")) == "c"
    assert rows(filled.query_entities(f"Timestamp gt datetime'{stamps['c']}'")) == "de"


def test_an_empty_filter_is_no_filter(filled):
    assert rows(filled.query_entities("")) == "abcde"


def test_results_come_in_key_order_over_partitions(table):
    for partition in ("2", "10", "1"):
        for row in ("b", "a"):
            table.create_entity({"PartitionKey": partition, "RowKey": row})
    listed = [(entity["PartitionKey"], entity["RowKey"]) for entity in table.list_entities()]
    assert listed == [("1", "a"), ("1", "b"), ("10", "a"), ("10", "b"), ("2", "a"), ("2", "b")]
    some = table.query_entities("PartitionKey eq '2' or PartitionKey eq '10'")
    assert [entity["PartitionKey"] for entity in some] == ["10", "10", "2", "2"]


def test_select_returns_exactly_the_chosen_properties(filled):
    found = filled.query_entities("RowKey eq 'a'", select=["RowKey", "i"])
    assert [dict(entity) for entity in found] == [{"RowKey": "a", "i": 1}]


def test_select_as_text(filled):
    found = filled.query_entities("RowKey eq 'b'", select="PartitionKey,RowKey,s")
    assert [dict(entity) for entity in found] == [{"PartitionKey": "p", "RowKey": "b", "s": "O'Brien"}]


def test_a_selected_property_that_an_entity_lacks_is_null(filled):
    found = filled.list_entities(select=["RowKey", "g"])
    # The SDK leaves out a key that is null but keeps a null property.
    assert [dict(entity) for entity in found] == [
        {"RowKey": "a", "g": None},
        {"RowKey": "b", "g": GUID},
        {"RowKey": "c", "g": None},
        {"RowKey": "d", "g": None},
        {"RowKey": "e", "g": None},
    ]


def test_select_does_not_hide_properties_from_the_filter(filled):
    found = filled.query_entities("i gt 1", select=["s"])
    assert [dict(entity) for entity in found] == [{"s": "O'Brien"}, {"s": "Banana"}]


def test_a_query_on_both_keys_that_finds_nothing_is_empty(filled):
    assert list(filled.query_entities("PartitionKey eq 'p' and RowKey eq 'zz'")) == []


@pytest.mark.parametrize(
    "query, status, code",
    [
        ("aaa bbb ccc", 400, "InvalidInput"),
        ("i eq", 400, "InvalidInput"),
        ("i eq 'open", 400, "InvalidInput"),
        ("(i eq 1", 400, "InvalidInput"),
        ("i EQ 1", 400, "InvalidInput"),
        ("i eq 5454161346626", 400, "InvalidInput"),
        ("1", 400, "InvalidInput"),
        ("t eq datetime'never'", 400, "InvalidInput"),
        ("g eq guid'nothex'", 400, "InvalidInput"),
        ("i eq d", 501, "NotImplemented"),
        ("1 eq 1", 501, "NotImplemented"),
        ("startswith(s,'a')", 501, "NotImplemented"),
    ],
)
def test_filters_that_are_refused(filled, query, status, code):
    with pytest.raises(HttpResponseError) as caught:
        list(filled.query_entities(query))
    assert caught.value.status_code == status
    assert caught.value.error_code == code
