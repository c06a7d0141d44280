"""Access policies: stored with the table, returned as set, at most five."""

from datetime import datetime, timezone

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableAccessPolicy, TableSasPermissions

START = datetime(2021, 6, 8, 2, 5, 9, tzinfo=timezone.utc)
EXPIRY = datetime(2021, 6, 8, 3, 10, 9, tzinfo=timezone.utc)


def fields(policy):
    return (policy.start, policy.expiry, policy.permission) if policy else (None, None, None)


def test_a_new_table_has_no_policies(table):
    assert table.get_table_access_policy() == {}


def test_a_policy_comes_back_as_it_was_set(table):
    full = TableAccessPolicy(start=START, expiry=EXPIRY, permission=TableSasPermissions(read=True, delete=True))
    table.set_table_access_policy({"id": full})
    (found,) = table.get_table_access_policy().values()
    assert fields(found) == (START, EXPIRY, "rd")


def test_times_come_back_with_seven_digits_of_a_second(table):
    table.set_table_access_policy({"id": TableAccessPolicy(start="2021-06-08", expiry="2021-06-08T03:10:09.25Z")})
    seen = []
    table.get_table_access_policy(raw_response_hook=lambda response: seen.append(response.http_response.text()))
    assert "<Start>2021-06-08T00:00:00.0000000Z</Start>" in seen[0]
    assert "<Expiry>2021-06-08T03:10:09.2500000Z</Expiry>" in seen[0]


def test_each_field_is_optional(table):
    table.set_table_access_policy(
        {
            "start": TableAccessPolicy(start=START),
            "expiry": TableAccessPolicy(expiry=EXPIRY),
            "permission": TableAccessPolicy(permission="raud"),
            "none": None,
        }
    )
    assert {name: fields(found) for name, found in table.get_table_access_policy().items()} == {
        "start": (START, None, None),
        "expiry": (None, EXPIRY, None),
        "permission": (None, None, "raud"),
        "none": (None, None, None),
    }


def test_setting_replaces_all_and_nothing_clears_all(table):
    policy = TableAccessPolicy(permission="r")
    table.set_table_access_policy({"a": policy, "b": policy})
    table.set_table_access_policy({"c": policy})
    assert list(table.get_table_access_policy()) == ["c"]
    table.set_table_access_policy({})
    assert table.get_table_access_policy() == {}


def test_five_are_accepted_and_six_refused(table):
    policies = {f"id{n}": TableAccessPolicy(permission="r") for n in range(5)}
    table.set_table_access_policy(policies)
    assert list(table.get_table_access_policy()) == list(policies)
    policies["one too many"] = TableAccessPolicy(permission="r")
    # The SDK sends the request and reports the refusal in its own words.
    with pytest.raises(ValueError, match="Too many access policies provided") as caught:
        table.set_table_access_policy(policies)
    refusal = caught.value.__context__
    assert (refusal.status_code, refusal.error_code) == (400, "InvalidXmlDocument")
    assert len(table.get_table_access_policy()) == 5


def test_an_identifier_has_64_characters_at_most(table):
    table.set_table_access_policy({"x" * 64: TableAccessPolicy(permission="r")})
    assert list(table.get_table_access_policy()) == ["x" * 64]
    with pytest.raises(HttpResponseError) as caught:
        table.set_table_access_policy({"x" * 65: TableAccessPolicy(permission="r")})
    assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidXmlDocument")


def test_identifiers_may_hold_any_text(table):
    names = ["ü 😀", "<&>\"'", " "]
    table.set_table_access_policy({name: TableAccessPolicy(permission="r") for name in names})
    assert list(table.get_table_access_policy()) == names


def test_policies_go_with_their_table(service, table_name):
    table = service.create_table(table_name)
    table.set_table_access_policy({"a": TableAccessPolicy(permission="r")})
    service.delete_table(table_name)
    service.create_table(table_name)
    assert table.get_table_access_policy() == {}
    service.delete_table(table_name)


def test_policies_of_a_missing_table_are_not_found(service, table_name):
    missing = service.get_table_client(table_name)
    for call in (missing.get_table_access_policy, lambda: missing.set_table_access_policy({})):
        with pytest.raises(ResourceNotFoundError) as caught:
            call()
        assert (caught.value.status_code, caught.value.error_code) == (404, "TableNotFound")
