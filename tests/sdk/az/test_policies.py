"""`az storage table policy`: create, show, update, list, delete."""


def test_a_policy_comes_back_as_it_was_set(az, table):
    assert az("table", "policy", "list", "--table-name", table) == {}
    place = ("--table-name", table, "--name", "reader")
    times = ("--start", "2021-06-08T02:05:09Z", "--expiry", "2030-06-08T03:10:09Z")
    az("table", "policy", "create", *place, "--permissions", "rd", *times)
    found = az("table", "policy", "show", *place)
    assert found == {
        "start": "2021-06-08T02:05:09+00:00", "expiry": "2030-06-08T03:10:09+00:00", "permission": "rd",
    }
    assert az("table", "policy", "list", "--table-name", table) == {"reader": found}


def test_a_policy_can_be_changed_and_deleted(az, table):
    place = ("--table-name", table, "--name", "reader")
    az("table", "policy", "create", *place, "--permissions", "r")
    az("table", "policy", "create", "--table-name", table, "--name", "other", "--permissions", "a")
    az("table", "policy", "update", *place, "--permissions", "raud")
    assert az("table", "policy", "show", *place)["permission"] == "raud"
    az("table", "policy", "delete", *place)
    assert list(az("table", "policy", "list", "--table-name", table)) == ["other"]


def test_more_than_five_policies_are_refused(az, table, refused):
    for n in range(5):
        az("table", "policy", "create", "--table-name", table, "--name", f"id{n}", "--permissions", "r")
    sixth = ("table", "policy", "create", "--table-name", table, "--name", "id5", "--permissions", "r")
    refused("Too many access policies", az, *sixth)
    assert len(az("table", "policy", "list", "--table-name", table)) == 5


def test_policies_of_a_missing_table_are_not_found(az, table_name, refused):
    refused("TableNotFound", az, "table", "policy", "list", "--table-name", table_name)
