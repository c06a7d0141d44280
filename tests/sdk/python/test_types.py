"""Property types: values come back equal and of the same type, also at the extremes."""

import math
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from azure.data.tables import EdmType, EntityProperty, UpdateMode

INT64 = EdmType.INT64


def roundtrip(table, value):
    """The value as read by point read, by listing, and after an update: all three must agree."""
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "v": value})
    point = table.get_entity("p", "r")["v"]
    (listed,) = table.list_entities()
    assert same(listed["v"], point)
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "v": point}, mode=UpdateMode.REPLACE)
    again = table.get_entity("p", "r")["v"]
    assert same(again, point), "reading, writing back and reading changed the value"
    table.delete_entity("p", "r")
    return point


def same(a, b):
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("value", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_int32(table, value):
    found = roundtrip(table, value)
    assert type(found) is int and found == value


@pytest.mark.parametrize("value", [0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_int64(table, value):
    assert roundtrip(table, EntityProperty(value, INT64)) == EntityProperty(value, INT64)


@pytest.mark.parametrize("value", [True, False])
def test_boolean(table, value):
    assert roundtrip(table, value) is value


@pytest.mark.parametrize(
    "value",
    [
        0.0, 1.0, -1.0, 0.1, 1 / 3, 3.1, 4.81516, 1e15, 1e16, 1e-5, 1e21, 1e22, 1e23, 123456789012345.12,
        2.0**53, 2.0**53 + 2, 1.7976931348623157e308, -1.7976931348623157e308, 2.2250738585072014e-308, 5e-324,
        float("inf"), float("-inf"),
    ],
)  # fmt: skip
def test_double(table, value):
    found = roundtrip(table, value)
    assert type(found) is float and found == value


def test_double_nan(table):
    assert math.isnan(roundtrip(table, float("nan")))


def test_double_negative_zero_keeps_its_sign(table):
    found = roundtrip(table, -0.0)
    assert found == 0.0 and math.copysign(1, found) == -1


def test_a_whole_number_sent_as_double_stays_a_double(table):
    found = roundtrip(table, EntityProperty(5.0, EdmType.DOUBLE))
    assert type(found) is float and found == 5.0


@pytest.mark.parametrize(
    "value",
    [
        datetime(1601, 1, 1, tzinfo=timezone.utc),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
        datetime(1970, 1, 1, tzinfo=timezone.utc),
        datetime(2000, 2, 29, 12, 30, 15, 250000, tzinfo=timezone.utc),
        datetime(2024, 2, 29, 23, 59, 59, 1, tzinfo=timezone.utc),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
    ],
    ids=str,
)
def test_datetime(table, value):
    assert roundtrip(table, value) == value


def test_a_datetime_with_an_offset_is_the_same_instant(table):
    value = datetime(2020, 1, 1, 2, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    found = roundtrip(table, value)
    assert found == value and found.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "sent, returned",
    [
        # 100 ns, the finest the service stores; Python cannot hold it but the SDK passes the text through.
        ("1601-01-01T00:00:00.0000001Z", "1601-01-01T00:00:00.0000001Z"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
        ("2020-01-01T01:02:03.1234567Z", "2020-01-01T01:02:03.1234567Z"),
        # Trailing zeros are trimmed, and the point with them.
        ("2020-01-01T01:02:03.1200000Z", "2020-01-01T01:02:03.12Z"),
        ("2020-01-01T01:02:03.000Z", "2020-01-01T01:02:03Z"),
        ("2020-01-01T01:02:03Z", "2020-01-01T01:02:03Z"),
        # Without a zone it is UTC; with an offset it is converted.
        ("2020-01-01T01:02:03", "2020-01-01T01:02:03Z"),
        ("2020-01-01T01:02:03+05:30", "2019-12-31T19:32:03Z"),
    ],
)
def test_datetime_text(table, sent, returned):
    found = roundtrip(table, EntityProperty(sent, EdmType.DATETIME))
    assert found.tables_service_value == returned


@pytest.mark.parametrize(
    "value",
    [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833")],
    ids=str,
)
def test_guid(table, value):
    assert roundtrip(table, value) == value


def test_a_guid_in_capitals_is_the_same_guid(table):
    sent = EntityProperty("C9DA6455-213D-42C9-9A79-3E9149A57833", EdmType.GUID)
    assert roundtrip(table, sent) == uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833")


@pytest.mark.parametrize(
    "value",
    [b"", b"\x00", bytes(range(256)), b"\xff" * 3, b"\x00\xff" * (32 * 1024)],
    ids=["empty", "zero", "all-bytes", "ff", "64KiB"],
)
def test_binary(table, value):
    found = roundtrip(table, value)
    assert type(found) is bytes and found == value


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "  leading and trailing  ",
        "line\r\nbreak\ttab\x0b\x00\x1f end",
        "quotes ' \" \\ / {} [] : , \u2028 \u2029",
        "käse ß 日本語 العربية \u0301",
        "😀 \U0001f469\u200d\U0001f680 \U0010ffff \U00010000",
        "\ufffd \ufeff \ue000 \uffff",
        "NaN", "Infinity", "true", "null", "1", "2020-01-01T00:00:00Z", "c9da6455-213d-42c9-9a79-3e9149a57833",
        "x" * 32768,
        "é" * 32768,
        "😀" * 16384,
    ],
    ids=lambda value: ascii(value)[:40],
)  # fmt: skip
def test_string(table, value):
    found = roundtrip(table, value)
    assert type(found) is str and found == value


def test_all_types_in_one_entity(table):
    sent = {
        "PartitionKey": "p",
        "RowKey": "r",
        "text": "text",
        "int32": -7,
        "int64": EntityProperty(2**40, INT64),
        "double": 2.5,
        "boolean": False,
        "date": datetime(2021, 3, 4, 5, 6, 7, 890000, tzinfo=timezone.utc),
        "guid": uuid.UUID("a455c695-df98-5678-aaaa-81d3367e5a34"),
        "binary": b"\x00\x01\x02",
    }
    table.create_entity(sent)
    assert dict(table.get_entity("p", "r")) == sent


def test_none_is_not_stored(table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "a": None, "b": 1})
    assert dict(table.get_entity("p", "r")) == {"PartitionKey": "p", "RowKey": "r", "b": 1}


def test_merge_may_change_the_type_of_a_property(table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "v": "text"})
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "v": EntityProperty(5, INT64)}, mode=UpdateMode.MERGE)
    assert table.get_entity("p", "r")["v"] == EntityProperty(5, INT64)


def test_property_names_are_case_sensitive_and_may_be_unicode(table):
    sent = {"PartitionKey": "p", "RowKey": "r", "Name": 1, "name": 2, "_x": 3, "größe": 4, "timestamp": "mine", "rowkey": 5}
    table.create_entity(sent)
    assert dict(table.get_entity("p", "r")) == sent
