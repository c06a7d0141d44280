"""`az storage entity query`: filters, select, pages and their markers."""

import pytest


@pytest.fixture
def filled(entity):
    for row, pairs in {
        "a": ["i=1", "s=apple", "b=true", "b@odata.type=Edm.Boolean"],
        "b": ["i=2", "s=O'Brien", "l=1099511627776", "l@odata.type=Edm.Int64"],
        "c": ["i=3", "s=", "g=a455c695-df98-5678-aaaa-81d3367e5a34", "g@odata.type=Edm.Guid"],
        "d": ["s=zürich", "t=2020-06-01T12:00:00Z", "t@odata.type=Edm.DateTime"],
    }.items():
        entity.insert(*pairs, row=row)
    return entity


def test_filters(filled):
    for filter, expected in {
        "i eq 2": "b",
        "i ne 2": "ac",
        "i ge 2": "bc",
        "not (i eq 2)": "acd",
        "nothing ne 1": "",
        "l eq 1099511627776L": "b",
        "i lt 3L": "abc",
        "s eq 'O''Brien'": "b",
        "s eq 'zürich'": "d",
        "b": "a",
        "g eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'": "c",
        "t ge datetime'2020-06-01T12:00:00Z'": "d",
        "PartitionKey eq 'p' and RowKey gt 'a' and RowKey lt 'd'": "bc",
    }.items():
        assert filled.rows(filter) == expected, filter


@pytest.mark.parametrize(
    "filter, words",
    [("aaa bbb ccc", "Syntax error"), ("i eq 5454161346626", "InvalidInput"), ("i eq s", "NotImplemented")],
)
def test_filters_that_are_refused(filled, refused, filter, words):
    refused(words, filled.query, "--filter", filter)


def test_select_returns_the_chosen_properties(filled):
    items = filled.query("--select", "RowKey", "i")["items"]
    assert [(found["RowKey"], found["i"]) for found in items] == [("a", 1), ("b", 2), ("c", 3), ("d", None)]
    assert all("s" not in found for found in items)


def test_pages_and_their_markers(filled):
    seen, marker = [], None
    while marker is None or marker:
        words = ("--marker", *(f"{name}={value}" for name, value in marker.items())) if marker else ()
        page = filled.query("--num-results", "1", *words)
        seen += [found["RowKey"] for found in page["items"]]
        assert len(page["items"]) <= 1
        marker = {name: value for name, value in (page["nextMarker"] or {}).items() if value}
    assert seen == ["a", "b", "c", "d"]
