"""Limits: the largest accepted, the smallest refused, and requests without valid credentials."""

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import EdmType, EntityProperty

IDENT = {"PartitionKey": "p", "RowKey": "r"}


def assert_refused(table, properties, code, status=400):
    for verb in (table.create_entity, table.upsert_entity):
        with pytest.raises(HttpResponseError) as caught:
            verb({**IDENT, **properties})
        assert caught.value.status_code == status
        assert code in str(caught.value)
    assert list(table.list_entities()) == []


def assert_stored(table, properties):
    table.create_entity({**IDENT, **properties})
    assert dict(table.get_entity("p", "r")) == {**IDENT, **properties}


def test_a_string_of_32768_units_is_the_longest(table):
    assert_stored(table, {"s": "x" * 32768})


@pytest.mark.parametrize("value", ["x" * 32769, "😀" * 16385], ids=["ascii", "emoji"])
def test_a_longer_string_is_refused(table, value):
    assert_refused(table, {"s": value}, "PropertyValueTooLarge")


def test_a_binary_above_64_kib_is_refused(table):
    assert_refused(table, {"b": b"x" * 65537}, "PropertyValueTooLarge")


def test_252_properties_are_the_most(table):
    assert_stored(table, {f"p{n:03}": n for n in range(252)})


def test_253_properties_are_too_many(table):
    assert_refused(table, {f"p{n:03}": n for n in range(253)}, "TooManyProperties")


def test_a_property_name_of_255_characters_is_the_longest(table):
    assert_stored(table, {"n" * 255: 1})


def test_a_longer_property_name_is_refused(table):
    assert_refused(table, {"n" * 256: 1}, "PropertyNameTooLong")


@pytest.mark.parametrize("name", ["with-dash", "with space", "1digit", "a.b", "a!"])
def test_a_property_name_that_is_no_identifier_is_refused(table, name):
    assert_refused(table, {name: 1}, "PropertyNameInvalid")


def test_an_entity_just_below_1_mib_is_stored(table):
    assert_stored(table, {f"s{n:02}": "x" * 32000 for n in range(16)})


def test_an_entity_above_1_mib_is_refused(table):
    assert_refused(table, {f"s{n:02}": "x" * 32768 for n in range(17)}, "EntityTooLarge")


@pytest.mark.parametrize("value", ["1600-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00Z"])
def test_a_date_before_1601_is_out_of_range(table, value):
    assert_refused(table, {"t": EntityProperty(value, EdmType.DATETIME)}, "OutOfRangeInput")


@pytest.mark.parametrize(
    "value",
    [
        EntityProperty("not a date", EdmType.DATETIME),
        EntityProperty("not a guid", EdmType.GUID),
        EntityProperty("not a number", EdmType.DOUBLE),
    ],
    ids=lambda value: value.edm_type.value,
)
def test_a_value_that_does_not_fit_its_type_is_refused(table, value):
    assert_refused(table, {"v": value}, "InvalidInput")


def test_a_wrong_key_is_an_authentication_error(flavour, connection_string):
    parts = dict(part.split("=", 1) for part in connection_string.strip(";").split(";"))
    parts["AccountKey"] = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkgd3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkgLi4uIQ=="
    wrong = ";".join(f"{name}={value}" for name, value in parts.items())
    with flavour.service(wrong) as client:
        with pytest.raises(ClientAuthenticationError) as caught:
            list(client.list_tables())
        assert caught.value.status_code == 403
        assert caught.value.error_code == "AuthenticationFailed"
