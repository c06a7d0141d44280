"""Refusals as the older client reports them."""

import re

import pytest

from azure.common import AzureMissingResourceHttpError
from azure.cosmosdb.table import EdmType, EntityProperty, TableService
from azure.cosmosdb.table.common.retry import no_retry

from support import entity, refused


def test_a_wrong_key_is_not_authentic(settings):
    place = f"AccountName={settings['AccountName']};TableEndpoint={settings['TableEndpoint']}"
    other = TableService(connection_string=f"DefaultEndpointsProtocol=http;{place};AccountKey=d3Jvbmc=")
    other.retry = no_retry
    with refused(403, "AuthenticationFailed"):
        list(other.list_tables())


def test_an_error_names_the_request(service, table):
    with pytest.raises(AzureMissingResourceHttpError) as caught:
        service.get_entity(table, "p", "missing")
    assert re.search(r"RequestId:[0-9a-f-]{36}\\nTime:\d{4}-", str(caught.value))


REFUSED = {
    "a text that is too long": ({"text": "x" * 32769}, "PropertyValueTooLarge"),
    "an entity that is too large": ({f"p{n}": "x" * 32768 for n in range(17)}, "EntityTooLarge"),
    "a name that is no name": ({"a-b": 1}, "PropertyNameInvalid"),
    "a guid that is none": ({"g": EntityProperty(EdmType.GUID, "none")}, "InvalidInput"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_insert_is_refused(service, table, name):
    properties, code = REFUSED[name]
    with refused(400, code):
        service.insert_entity(table, entity("a", **properties))
