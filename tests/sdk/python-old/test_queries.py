"""Queries: filters for every type, select, and pages of at most 1,000 entities."""

import datetime

import pytest
from dateutil.tz import tzutc

from azure.cosmosdb.table import EdmType, EntityProperty

from support import batch_of, entity, int32, refused

GUID = "c9da6455-213d-42c9-9a79-3e9149a5783"


@pytest.fixture(scope="module")
def filled(service):
    name = "filled" + str(id(service))
    service.create_table(name)
    rows = [
        entity(
            f"r{n}",
            n=int32(n),
            text=f"it's {n}",
            int64=2**53 + n,
            double=n + 0.5,
            even=n % 2 == 0,
            time=datetime.datetime(2020, 1, 1 + n, tzinfo=tzutc()),
            guid=EntityProperty(EdmType.GUID, f"{GUID}{n}"),
            bytes=EntityProperty(EdmType.BINARY, bytes([n])),
        )
        for n in range(10)
    ]
    service.commit_batch(name, batch_of(*[("insert_entity", row) for row in rows]))
    yield name
    service.delete_table(name)


@pytest.mark.parametrize(
    "filter, expected",
    [
        ("text eq 'it''s 3'", [3]),
        ("RowKey ge 'r4' and RowKey lt 'r6'", [4, 5]),
        ("n gt 7", [8, 9]),
        (f"int64 ge {2**53 + 8}L", [8, 9]),
        ("double lt 1.6", [0, 1]),
        ("even eq true", [0, 2, 4, 6, 8]),
        ("time eq datetime'2020-01-05T00:00:00Z'", [4]),
        (f"guid eq guid'{GUID}7'", [7]),
        ("bytes eq X'05'", [5]),
        ("n eq 1 or n eq 8", [1, 8]),
        ("not (n lt 8)", [8, 9]),
        ("n eq 99", []),
    ],
)
def test_a_filter(service, filled, filter, expected):
    assert [found.n.value for found in service.query_entities(filled, filter=filter)] == expected


def test_select_chooses_properties(service, filled):
    [found] = service.query_entities(filled, filter="n eq 3", select="n,text")
    assert found.text == "it's 3"
    assert "double" not in found


def test_num_results_bounds_the_whole_listing(service, filled):
    listing = service.query_entities(filled, num_results=3)
    assert [found.n.value for found in listing] == [0, 1, 2]
    assert listing.next_marker
    rest = service.query_entities(filled, marker=listing.next_marker)
    assert [found.n.value for found in rest] == [3, 4, 5, 6, 7, 8, 9]


def test_a_filter_that_is_none_is_refused(service, filled):
    with refused(400, "InvalidInput"):
        list(service.query_entities(filled, filter="n eq eq 1"))


def test_a_query_of_a_missing_table_is_not_found(service, table_name):
    with refused(404, "TableNotFound"):
        list(service.query_entities(table_name))
