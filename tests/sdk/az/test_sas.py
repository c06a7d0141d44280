"""`az storage table generate-sas`, and commands with a signature as the only credential."""

import pytest

EXPIRY = ("--expiry", "2099-01-01T00:00Z")

# `az` prints these texts instead of the service's codes. For an insert it prints only the status.
BAD_SIGNATURE = "Authentication failure."
NO_PERMISSION = "You do not have the required permissions"
OUT_OF_SCOPE = "The request may be blocked by network rules"
FORBIDDEN = "'Forbidden'"


@pytest.fixture
def sign(az, table, entity):
    entity.insert("n=1")
    return lambda *options: az("table", "generate-sas", "--name", table, *options)


@pytest.fixture
def holder(az_with_sas, table):
    """Reads and writes with a signature."""

    class Holder:
        def read(self, token):
            command = ("entity", "show", "--table-name", table, "--partition-key", "p", "--row-key", "r")
            return az_with_sas(token, *command)["n"]

        def write(self, token, row="new", partition="p"):
            keys = (f"PartitionKey={partition}", f"RowKey={row}")
            return az_with_sas(token, "entity", "insert", "--table-name", table, "--entity", *keys)["etag"]

        def rows(self, token):
            items = az_with_sas(token, "entity", "query", "--table-name", table)["items"]
            return "".join(found["RowKey"] for found in items)

    return Holder()


def test_permissions_allow_what_they_name_and_no_more(sign, holder, refused):
    reader, writer = sign("--permissions", "r", *EXPIRY), sign("--permissions", "a", *EXPIRY)
    assert holder.read(reader) == 1
    refused(FORBIDDEN, holder.write, reader)
    assert holder.write(writer).startswith("W/")
    refused(NO_PERMISSION, holder.read, writer)


def test_an_expired_signature_is_refused(sign, holder, refused):
    refused(BAD_SIGNATURE, holder.read, sign("--permissions", "r", "--expiry", "2020-01-01T00:00Z"))


def test_a_signature_of_the_future_is_refused(sign, holder, refused):
    refused(BAD_SIGNATURE, holder.read, sign("--permissions", "r", "--start", "2098-01-01T00:00Z", *EXPIRY))


def test_https_only_is_refused_over_http(sign, holder, refused):
    refused("AuthorizationProtocolMismatch", holder.read, sign("--permissions", "r", "--https-only", *EXPIRY))


def test_a_range_bounds_queries_and_writes(sign, holder, entity, refused):
    for row in "abcde":
        entity.insert(row=row)
    bounds = ("--start-pk", "p", "--start-rk", "b", "--end-pk", "p", "--end-rk", "d")
    token = sign("--permissions", "ra", *bounds, *EXPIRY)
    assert holder.rows(token) == "bcd"
    assert holder.write(token, "cc").startswith("W/")
    refused(FORBIDDEN, holder.write, token, "x")
    refused(FORBIDDEN, lambda token: holder.write(token, "c", partition="q"), token)


def test_a_policy_gives_a_signature_its_permissions_and_takes_them_away(az, sign, holder, table, refused):
    place = ("--table-name", table, "--name", "reader")
    az("table", "policy", "create", *place, "--permissions", "r", *EXPIRY)
    token = sign("--policy-name", "reader")
    assert holder.read(token) == 1
    refused(FORBIDDEN, holder.write, token)
    az("table", "policy", "delete", *place)
    refused(BAD_SIGNATURE, holder.read, token)


def test_a_signature_of_one_table_is_not_for_another(az, sign, az_with_sas, table_name, refused):
    other = table_name + "other"
    az("table", "create", "--name", other)
    token = sign("--permissions", "raud", *EXPIRY)
    refused(OUT_OF_SCOPE, az_with_sas, token, "entity", "query", "--table-name", other)
    refused(OUT_OF_SCOPE, az_with_sas, token, "table", "list")
