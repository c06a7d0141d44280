"""`az storage table`: create, list, exists, delete."""

import pytest


def names(az):
    return [table["name"] for table in az("table", "list")]


def test_a_created_table_exists_and_is_listed(az, table):
    assert az("table", "exists", "--name", table) == {"exists": True}
    assert names(az).count(table) == 1


def test_creating_a_table_twice_keeps_what_is_in_it(az, table, entity):
    entity.insert("n=7")
    assert az("table", "create", "--name", table) == {"created": True}
    assert entity.values() == {"n": 7}


def test_creating_a_table_twice_can_be_made_to_fail(az, table, refused):
    refused("The table specified already exists.", az, "table", "create", "--name", table, "--fail-on-exist")


def test_a_missing_table_does_not_exist(az, table_name):
    assert az("table", "exists", "--name", table_name) == {"exists": False}


def test_a_deleted_table_is_gone(az, table):
    assert az("table", "delete", "--name", table) == {"deleted": True}
    assert az("table", "exists", "--name", table) == {"exists": False}
    assert table not in names(az)


def test_deleting_a_missing_table_says_so(az, table_name, refused):
    assert az("table", "delete", "--name", table_name) == {"deleted": False}
    refused("The specified resource does not exist.", az, "table", "delete", "--name", table_name, "--fail-not-exist")


@pytest.mark.parametrize("name", ["ab", "1abc", "a-b-c"])
def test_illegal_names_are_refused(az, refused, name):
    refused("Storage table names must be alphanumeric", az, "table", "create", "--name", name)


def test_listing_is_in_order_and_can_be_cut(az, table_name):
    created = [table_name + letter for letter in "abc"]
    for name in reversed(created):
        az("table", "create", "--name", name)
    assert [name for name in names(az) if name in created] == created
    assert len(az("table", "list", "--num-results", "2")) == 2


def test_statistics_come_from_the_secondary(az):
    found = az("table", "stats")["geoReplication"]
    assert found["status"] == "live" and found["lastSyncTime"].endswith("+00:00")
