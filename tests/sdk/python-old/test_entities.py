"""Entities: every write of the older client, its types, and the ETags that it sends as `If-Match`."""

import datetime
import math

import pytest
from dateutil.tz import tzutc

from azure.cosmosdb.table import EdmType, Entity, EntityProperty, TablePayloadFormat

from support import OLD_ETAG, entity, int32, plain, refused

NOT_SATISFIED = (412, "UpdateConditionNotSatisfied", "The update condition specified in the request was not satisfied.")
NOT_FOUND = (404, "ResourceNotFound", "The specified resource does not exist.")


def change(service, name, table, properties, if_match):
    if name == "delete_entity":
        return service.delete_entity(table, "p", "a", if_match)
    return getattr(service, name)(table, entity("a", **properties), if_match)


def test_insert_answers_with_the_etag(service, table):
    etag = service.insert_entity(table, entity("a", n=1))
    # The client makes an entity's ETag from its Timestamp; both must agree.
    assert service.get_entity(table, "p", "a").etag == etag
    assert [found.etag for found in service.query_entities(table)] == [etag]


def test_a_second_insert_conflicts(service, table):
    service.insert_entity(table, entity("a", n=1))
    with refused(409, "EntityAlreadyExists"):
        service.insert_entity(table, entity("a", n=2))
    assert service.get_entity(table, "p", "a").n == 1


TYPES = {
    "text": "Grüße, 世界 🙂 'quoted' \"double\" \\ / < >",
    "empty": "",
    "int32": EntityProperty(EdmType.INT32, -(2**31)),
    "int64": 2**63 - 1,
    "double": 0.1,
    "yes": True,
    "no": False,
    "time": datetime.datetime(2020, 2, 29, 12, 34, 56, tzinfo=tzutc()),
    "guid": EntityProperty(EdmType.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833"),
    "bytes": EntityProperty(EdmType.BINARY, b"\x00\x01\xfe\xff"),
}


@pytest.mark.parametrize("accept", ["JSON_MINIMAL_METADATA", "JSON_FULL_METADATA"])
def test_values_of_every_type_come_back(service, table, accept):
    service.insert_entity(table, entity("a", **TYPES))
    found = service.get_entity(table, "p", "a", accept=getattr(TablePayloadFormat, accept))
    assert plain(found) == plain(entity("a", **TYPES))
    assert found.guid.type == EdmType.GUID
    assert found.bytes.type == EdmType.BINARY


def test_values_without_metadata_need_a_resolver(service, table):
    service.insert_entity(table, entity("a", n=2**40, time=TYPES["time"]))
    types = {"n": EdmType.INT64, "time": EdmType.DATETIME}
    found = service.get_entity(
        table,
        "p",
        "a",
        accept=TablePayloadFormat.JSON_NO_METADATA,
        property_resolver=lambda partition, row, name, value, found: types.get(name),
    )
    assert plain(found) == entity("a", n=2**40, time=TYPES["time"])


def test_infinite_doubles_and_not_a_number_come_back(service, table):
    service.insert_entity(table, entity("a", up=math.inf, down=-math.inf, none=math.nan))
    found = service.get_entity(table, "p", "a")
    assert (found.up, found.down) == (math.inf, -math.inf)
    assert math.isnan(found.none)


def test_null_stores_nothing(service, table):
    service.insert_entity(table, entity("a", n=1, nothing=None))
    assert "nothing" not in service.get_entity(table, "p", "a")


def test_update_drops_properties_and_merge_keeps_them(service, table):
    for row in ("update", "merge"):
        service.insert_entity(table, entity(row, old=1, both=1))
    service.update_entity(table, entity("update", both=2))
    service.merge_entity(table, entity("merge", both=2))
    assert plain(service.get_entity(table, "p", "update")) == entity("update", both=2)
    assert plain(service.get_entity(table, "p", "merge")) == entity("merge", both=2, old=1)


@pytest.mark.parametrize("name", ["insert_or_replace_entity", "insert_or_merge_entity"])
def test_upserts_of_an_absent_and_of_a_present_entity(service, table, name):
    first = getattr(service, name)(table, entity("a", old=1))
    assert service.get_entity(table, "p", "a").etag == first
    second = getattr(service, name)(table, entity("a", new=2))
    found = service.get_entity(table, "p", "a")
    assert found.etag == second != first
    assert ("old" in found) == (name == "insert_or_merge_entity")


@pytest.mark.parametrize("name", ["update_entity", "merge_entity", "delete_entity"])
class TestConditions:
    def test_the_current_etag_passes_and_an_older_one_fails(self, service, table, name):
        first = service.insert_entity(table, entity("a", n=1))
        second = service.merge_entity(table, entity("a", n=2), if_match=first)
        for old in (first, OLD_ETAG):
            with refused(*NOT_SATISFIED):
                change(service, name, table, {"n": 3}, old)
        assert service.get_entity(table, "p", "a").n == 2
        third = change(service, name, table, {"n": 4}, second)
        if name == "delete_entity":
            with refused(*NOT_FOUND):
                service.get_entity(table, "p", "a")
        else:
            assert service.get_entity(table, "p", "a").etag == third

    def test_the_etag_that_the_client_makes_of_a_timestamp_passes(self, service, table, name):
        service.insert_entity(table, entity("a", n=1))
        [found] = service.query_entities(table)
        change(service, name, table, {"n": 2}, found.etag)

    def test_a_missing_entity_is_not_found(self, service, table, name):
        with refused(*NOT_FOUND):
            change(service, name, table, {"n": 1}, "*")


def test_an_entity_that_was_read_can_be_changed_and_sent_back(service, table):
    service.insert_entity(table, entity("a", n=1, small=int32(5)))
    found = service.get_entity(table, "p", "a")
    assert isinstance(found, Entity)
    found.n = 2
    found["n"] = 2
    service.update_entity(table, found, if_match=found.etag)  # It sends Timestamp and etag as properties too.
    changed = service.get_entity(table, "p", "a")
    assert changed.n == 2
    assert changed.small.value == 5


def test_select_chooses_properties(service, table):
    service.insert_entity(table, entity("a", n=1, m=2))
    found = service.get_entity(table, "p", "a", select="n")
    assert found.n == 1
    assert "m" not in found


def test_everything_on_a_missing_table_is_not_found(service, table_name):
    for name in ("insert_entity", "insert_or_replace_entity", "insert_or_merge_entity"):
        with refused(404, "TableNotFound", "The table specified does not exist."):
            getattr(service, name)(table_name, entity("a"))
    with refused(404, "TableNotFound"):
        service.get_entity(table_name, "p", "a")
