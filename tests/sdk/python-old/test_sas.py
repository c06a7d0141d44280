"""Signatures that the older client makes itself: for a table, for ranges of keys, by policy, and for the account."""

import datetime

import pytest

from azure.cosmosdb.table import TablePermissions
from azure.cosmosdb.table.common.models import AccessPolicy, AccountPermissions, ResourceTypes

from support import batch_of, contents, entity, refused

FORBIDDEN = (403, "AuthorizationPermissionMismatch")
OUT_OF_SCOPE = (403, "AuthorizationFailure")
NOT_AUTHENTIC = (403, "AuthenticationFailed")


def in_minutes(minutes):
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) + datetime.timedelta(minutes=minutes)


@pytest.fixture
def table_sas(service, table, connect):
    def signed(permission, expiry=None, **options):
        expiry = expiry or in_minutes(10)
        return connect(sas_token=service.generate_table_shared_access_signature(table, permission, expiry, **options))

    return signed


@pytest.fixture
def account_sas(service, connect):
    def signed(permission, types=ResourceTypes(service=True, container=True, object=True), **options):
        token = service.generate_account_shared_access_signature(types, permission, in_minutes(10), **options)
        return connect(sas_token=token)

    return signed


ALL = TablePermissions(query=True, add=True, update=True, delete=True)


def test_all_permissions_do_everything_to_the_table(service, table, table_sas):
    sas = table_sas(ALL)
    sas.insert_entity(table, entity("a", n=1))
    sas.merge_entity(table, entity("a", n=2))
    sas.update_entity(table, entity("a", n=3))
    sas.insert_or_replace_entity(table, entity("b", n=1))
    sas.insert_or_merge_entity(table, entity("b", n=2))
    operations = [
        ("insert_entity", entity("c")),
        ("merge_entity", entity("a", m=1)),
        ("delete_entity", "p", "b"),
    ]
    sas.commit_batch(table, batch_of(*operations))
    assert [found.RowKey for found in sas.query_entities(table)] == ["a", "c"]
    assert sas.get_entity(table, "p", "a").m == 1
    sas.delete_entity(table, "p", "a")


NEEDS = {
    "r": lambda sas, table: sas.get_entity(table, "p", "there"),
    "a": lambda sas, table: sas.insert_entity(table, entity("new")),
    "u": lambda sas, table: sas.merge_entity(table, entity("there", n=2)),
    "d": lambda sas, table: sas.delete_entity(table, "p", "there"),
}


@pytest.mark.parametrize("needed", NEEDS)
def test_one_permission_is_enough_and_all_others_are_not(service, table, table_sas, needed):
    service.insert_entity(table, entity("there", n=1))
    with refused(*FORBIDDEN):
        NEEDS[needed](table_sas(TablePermissions(_str="raud".replace(needed, ""))), table)
    NEEDS[needed](table_sas(TablePermissions(_str=needed)), table)


def test_a_range_of_keys_bounds_reads_and_writes(service, table, table_sas):
    for partition in "abc":
        for row in "123":
            service.insert_entity(table, entity(row, partition_key=partition))
    sas = table_sas(ALL, start_pk="b", start_rk="2", end_pk="c", end_rk="1")
    assert [one.PartitionKey + one.RowKey for one in sas.query_entities(table)] == ["b2", "b3", "c1"]
    sas.merge_entity(table, entity("3", partition_key="b", n=1))
    for partition, row in (("a", "3"), ("b", "1"), ("c", "2")):
        with refused(*OUT_OF_SCOPE):
            sas.merge_entity(table, entity(row, partition_key=partition, n=1))
    with refused(*OUT_OF_SCOPE):
        operations = [("merge_entity", entity(row, partition_key="b", n=2)) for row in "21"]
        sas.commit_batch(table, batch_of(*operations))


def test_a_range_over_a_partition_whose_key_needs_escaping(service, table, table_sas):
    key = "it's 100% Grüße"
    for partition in (key, "other"):
        service.insert_entity(table, entity("r", partition_key=partition))
    sas = table_sas(TablePermissions.QUERY, start_pk=key, end_pk=key)
    assert [one.PartitionKey for one in sas.query_entities(table)] == [key]


def test_a_stored_policy_gives_its_permissions_until_it_is_removed(service, table, connect):
    service.insert_entity(table, entity("there"))
    service.set_table_acl(table, {"reader": AccessPolicy(TablePermissions.QUERY, in_minutes(10))})
    sas = connect(sas_token=service.generate_table_shared_access_signature(table, id="reader"))
    sas.get_entity(table, "p", "there")
    with refused(*FORBIDDEN):
        sas.delete_entity(table, "p", "there")
    service.set_table_acl(table)
    with refused(*NOT_AUTHENTIC):
        sas.get_entity(table, "p", "there")


def test_a_signature_holds_between_its_start_and_its_expiry_only(service, table, table_sas):
    service.insert_entity(table, entity("there"))
    table_sas(TablePermissions.QUERY, start=in_minutes(-5)).get_entity(table, "p", "there")
    for options in ({"start": in_minutes(5)}, {"start": in_minutes(-9), "expiry": in_minutes(-5)}):
        with refused(*NOT_AUTHENTIC):
            table_sas(TablePermissions.QUERY, **options).get_entity(table, "p", "there")


def test_a_signature_for_other_addresses_or_https_alone_does_not_hold(service, table, table_sas):
    service.insert_entity(table, entity("there"))
    table_sas(TablePermissions.QUERY, ip="127.0.0.0-127.0.0.9", protocol="https,http").get_entity(table, "p", "there")
    with refused(403, "AuthorizationSourceIPMismatch"):
        table_sas(TablePermissions.QUERY, ip="10.1.2.3").get_entity(table, "p", "there")
    with refused(403, "AuthorizationProtocolMismatch"):
        table_sas(TablePermissions.QUERY, protocol="https").get_entity(table, "p", "there")


def test_an_account_signature_creates_fills_lists_and_deletes_tables(table_name, account_sas):
    sas = account_sas(AccountPermissions(_str="rwdlau"))
    assert sas.create_table(table_name, fail_on_exist=True)
    sas.insert_entity(table_name, entity("a", n=1))
    assert [one.n for one in contents(sas, table_name)] == [1]
    assert table_name in {table.name for table in sas.list_tables()}
    assert sas.get_table_service_properties()
    assert sas.delete_table(table_name, fail_not_exist=True)


def test_an_account_signature_holds_for_its_permissions_and_resources_only(service, table, account_sas):
    service.insert_entity(table, entity("there"))
    reader = account_sas(AccountPermissions(read=True))
    reader.get_entity(table, "p", "there")
    with refused(*FORBIDDEN):
        reader.delete_entity(table, "p", "there")
    with refused(403, "AuthorizationResourceTypeMismatch"):
        account_sas(AccountPermissions(read=True), ResourceTypes(service=True)).get_entity(table, "p", "there")
