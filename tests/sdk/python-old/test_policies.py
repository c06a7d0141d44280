"""Stored access policies: set, read back, replaced, cleared and refused."""

import datetime

from azure.cosmosdb.table import TablePermissions
from azure.cosmosdb.table.common.models import AccessPolicy

from support import refused

START = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
EXPIRY = datetime.datetime(2099, 12, 31, 23, 59, 59, tzinfo=datetime.timezone.utc)


def test_a_new_table_has_none(service, table):
    assert service.get_table_acl(table) == {}


def test_policies_come_back_as_they_were_set(service, table):
    policies = {
        "reader": AccessPolicy(TablePermissions.QUERY, EXPIRY, START),
        "it's all": AccessPolicy(TablePermissions(query=True, add=True, update=True, delete=True), EXPIRY),
        "empty": AccessPolicy(),
    }
    service.set_table_acl(table, policies)
    found = service.get_table_acl(table)
    assert found.keys() == policies.keys()
    assert found["reader"].start == START
    assert found["reader"].expiry == EXPIRY
    assert found["reader"].permission == "r"
    assert found["it's all"].permission == "raud"
    assert found["it's all"].start is None
    assert found["empty"].permission is None


def test_setting_replaces_all_and_nothing_clears_all(service, table):
    reader = AccessPolicy(TablePermissions.QUERY, EXPIRY)
    service.set_table_acl(table, {"a": reader, "b": reader})
    service.set_table_acl(table, {"c": reader})
    assert list(service.get_table_acl(table)) == ["c"]
    service.set_table_acl(table)
    assert service.get_table_acl(table) == {}


def test_policies_of_a_missing_table_are_not_found(service, table_name):
    with refused(404, "TableNotFound"):
        service.get_table_acl(table_name)
    with refused(404, "TableNotFound"):
        service.set_table_acl(table_name, {})
