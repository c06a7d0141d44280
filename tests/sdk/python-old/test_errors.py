"""Refusals as the older client reports them."""

import re

import pytest

from azure.common import AzureHttpError, AzureMissingResourceHttpError
from azure.cosmosdb.table import EdmType, EntityProperty

from support import entity, refused


def test_a_wrong_key_is_not_authentic(connect, request):
    if "endpoint" not in request.node.name:
        pytest.skip("the emulator's key is part of the client")
    with refused(403, "AuthenticationFailed"):
        list(connect(account_key="d3Jvbmc=").list_tables())


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
