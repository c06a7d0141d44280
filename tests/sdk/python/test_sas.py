"""Shared access signatures from the SDK's own generators: what each field allows and refuses."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import (
    ResourceTypes,
    TableAccessPolicy,
    TableTransactionError,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)

HOUR = timedelta(hours=1)
EVERYTHING = ResourceTypes(service=True, container=True, object=True)
PERMISSION = "AuthorizationPermissionMismatch"
RESOURCE_TYPE = "AuthorizationResourceTypeMismatch"
SCOPE = "AuthorizationFailure"
SIGNATURE = "AuthenticationFailed"


def now():
    return datetime.now(timezone.utc)


def entity(partition="p", row="r", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


class Signer:
    """Clients whose only credential is a signature."""

    def __init__(self, flavour, settings):
        self.flavour = flavour
        self.endpoint = settings["TableEndpoint"]
        self.key = AzureNamedKeyCredential(settings["AccountName"], settings["AccountKey"])
        self.clients = []

    def holder(self, token):
        client = self.flavour.service_at(self.endpoint, AzureSasCredential(token))
        self.clients.append(client.__enter__())
        return self.clients[-1]

    def account(self, permission="rwdlacu", types=EVERYTHING, **options):
        options = {"expiry": now() + HOUR, **options}
        return self.holder(generate_account_sas(self.key, types, permission, **options))

    def table(self, table, permission="raud", **options):
        options = {"expiry": now() + HOUR, "permission": permission, **options}
        name = options.pop("signed_name", table.table_name)
        token = generate_table_sas(self.key, name, **{k: v for k, v in options.items() if v is not None})
        return self.holder(token).get_table_client(table.table_name)

    def close(self):
        for client in self.clients:
            client.__exit__(None, None, None)


@pytest.fixture
def sign(flavour, settings):
    signer = Signer(flavour, settings)
    yield signer
    signer.close()


def assert_refused(call, code, status=403):
    with pytest.raises(HttpResponseError) as caught:
        call()
    assert caught.value.status_code == status
    assert code in str(caught.value)  # Only some calls have the code as a field; the text always contains it.
    if code == SIGNATURE:
        assert isinstance(caught.value, ClientAuthenticationError)


# Each verb on an entity, with the permission letters it needs.
ENTITY_VERBS = {
    "get": ("r", lambda table: table.get_entity("p", "r")["n"]),
    "query": ("r", lambda table: len(list(table.query_entities("PartitionKey eq 'p'")))),
    "create": ("a", lambda table: table.create_entity(entity(row="new"))["etag"]),
    "update": ("u", lambda table: table.update_entity(entity(n=2))["etag"]),
    "upsert": ("au", lambda table: table.upsert_entity(entity(n=3))["etag"]),
    "upsert replace": ("au", lambda table: table.upsert_entity(entity(n=4), mode=UpdateMode.REPLACE)["etag"]),
    "delete": ("d", lambda table: table.delete_entity("p", "r") is None),
}


@pytest.fixture
def filled(table):
    table.create_entity(entity(n=1))
    return table


def check_verb(client, verb, granted):
    needed, call = ENTITY_VERBS[verb]
    if set(needed) <= set(granted):
        assert call(client)
    else:
        assert_refused(lambda: call(client), PERMISSION)


@pytest.mark.parametrize("granted", ["r", "a", "u", "d", "au", "raud"])
@pytest.mark.parametrize("verb", ENTITY_VERBS)
def test_table_sas_sp_allows_its_verbs_and_no_others(filled, sign, verb, granted):
    check_verb(sign.table(filled, granted), verb, granted)


@pytest.mark.parametrize("granted", ["r", "a", "u", "d", "au"])
@pytest.mark.parametrize("verb", ENTITY_VERBS)
def test_account_sas_sp_allows_its_verbs_and_no_others(filled, sign, verb, granted):
    check_verb(sign.account(granted).get_table_client(filled.table_name), verb, granted)


# Each operation on tables and on the service: it needs the resource type and any one of the letters.
SERVICE_VERBS = {
    "list tables": ("c", "l", lambda service, name: list(service.list_tables())),
    "query tables": ("c", "l", lambda service, name: list(service.query_tables("TableName ge 'a'"))),
    "create table": ("c", "cw", lambda service, name: service.create_table(name)),
    "get properties": ("s", "r", lambda service, name: service.get_service_properties()),
    "set properties": ("s", "w", lambda service, name: service.set_service_properties(cors=[]) is None),
}


@pytest.mark.parametrize("granted", ["r", "w", "d", "l", "a", "c", "u"])
@pytest.mark.parametrize("verb", SERVICE_VERBS)
def test_account_sas_sp_on_the_service_and_its_tables(table, sign, table_name, verb, granted):
    _, needed, call = SERVICE_VERBS[verb]
    client = sign.account(granted)
    if granted in needed:
        assert call(client, table_name + "x")
    else:
        assert_refused(lambda: call(client, table_name + "x"), PERMISSION)


@pytest.mark.parametrize("letter", ["s", "c", "o"])
@pytest.mark.parametrize("verb", SERVICE_VERBS)
def test_account_sas_srt_on_the_service_and_its_tables(table, sign, table_name, verb, letter):
    needed, _, call = SERVICE_VERBS[verb]
    client = sign.account(types=ResourceTypes.from_string(letter))
    if letter == needed:
        assert call(client, table_name + "x")
    else:
        assert_refused(lambda: call(client, table_name + "x"), RESOURCE_TYPE)


@pytest.mark.parametrize("letter", ["s", "c", "o"])
@pytest.mark.parametrize("verb", ENTITY_VERBS)
def test_account_sas_srt_on_entities(filled, sign, verb, letter):
    client = sign.account(types=ResourceTypes.from_string(letter)).get_table_client(filled.table_name)
    call = ENTITY_VERBS[verb][1]
    if letter == "o":
        assert call(client)
    else:
        assert_refused(lambda: call(client), RESOURCE_TYPE)


def test_account_sas_deletes_a_table_with_d_and_c(service, table_name, sign):
    service.create_table(table_name)
    # The SDK ignores 404 on delete, and nothing else, so refusals reach the test.
    assert_refused(lambda: sign.account("rwlacu").delete_table(table_name), PERMISSION)
    only_objects = ResourceTypes(object=True)
    assert_refused(lambda: sign.account("d", only_objects).delete_table(table_name), RESOURCE_TYPE)
    sign.account("d", ResourceTypes(container=True)).delete_table(table_name)
    assert list(service.query_tables(f"TableName eq '{table_name}'")) == []


def test_account_sas_ss_must_name_tables(filled, sign):
    from azure.data.tables._shared_access_signature import SharedAccessSignature

    # The generator signs for tables only; the class behind it can sign for any service.
    signer = SharedAccessSignature(sign.key, x_ms_version="2019-02-02")
    for services, allowed in (("b", False), ("qf", False), ("t", True), ("bqtf", True)):
        token = signer.generate_account(services, EVERYTHING, "r", now() + HOUR)
        client = sign.holder(token).get_table_client(filled.table_name)
        if allowed:
            assert client.get_entity("p", "r")["n"] == 1
        else:
            assert_refused(lambda: client.get_entity("p", "r"), "AuthorizationServiceMismatch")


BOTH_KINDS = pytest.mark.parametrize("kind", ["account", "table"])


def reader(sign, kind, table, **options):
    if kind == "account":
        return sign.account("r", **options).get_table_client(table.table_name)
    return sign.table(table, "r", **options)


@BOTH_KINDS
def test_st_opens_the_signature(filled, sign, kind):
    assert reader(sign, kind, filled, start=now() - HOUR).get_entity("p", "r")["n"] == 1
    early = reader(sign, kind, filled, start=now() + HOUR, expiry=now() + 2 * HOUR)
    assert_refused(lambda: early.get_entity("p", "r"), SIGNATURE)


@BOTH_KINDS
def test_se_closes_the_signature(filled, sign, kind):
    assert_refused(lambda: reader(sign, kind, filled, expiry=now() - HOUR).get_entity("p", "r"), SIGNATURE)


@BOTH_KINDS
@pytest.mark.parametrize("text", ["2099-01-01", "2099-01-01T10:00Z", "2099-01-01T10:00:00Z", "2099-01-01T10:00:00.5Z"])
def test_times_may_be_shorter_or_longer(filled, sign, kind, text):
    assert reader(sign, kind, filled, expiry=text).get_entity("p", "r")["n"] == 1


@BOTH_KINDS
def test_sip_names_the_address_or_the_range(filled, sign, kind):
    for good in ("127.0.0.1", "127.0.0.0-127.0.0.255", "0.0.0.0-255.255.255.255"):
        assert reader(sign, kind, filled, ip_address_or_range=good).get_entity("p", "r")["n"] == 1
    for bad in ("10.0.0.1", "127.0.0.2-127.0.0.255", "126.0.0.0-127.0.0.0"):
        client = reader(sign, kind, filled, ip_address_or_range=bad)
        assert_refused(lambda: client.get_entity("p", "r"), "AuthorizationSourceIPMismatch")


@BOTH_KINDS
def test_spr_names_the_protocols(filled, sign, kind):
    assert reader(sign, kind, filled, protocol="https,http").get_entity("p", "r")["n"] == 1
    only_https = reader(sign, kind, filled, protocol="https")
    assert_refused(lambda: only_https.get_entity("p", "r"), "AuthorizationProtocolMismatch")


def test_a_signature_of_another_key_is_refused(filled, sign, settings):
    sign.key = AzureNamedKeyCredential(settings["AccountName"], "d3Jvbmc=")
    for kind in ("account", "table"):
        client = reader(sign, kind, filled)
        assert_refused(lambda: client.get_entity("p", "r"), SIGNATURE)


def test_a_field_that_was_changed_after_signing_is_refused(filled, sign):
    token = generate_table_sas(sign.key, filled.table_name, permission="r", expiry=now() + HOUR)
    client = sign.holder(token.replace("sp=r", "sp=raud")).get_table_client(filled.table_name)
    assert_refused(lambda: client.delete_entity("p", "r"), SIGNATURE)
    assert filled.get_entity("p", "r")["n"] == 1


def test_tn_is_the_table_whatever_its_case(filled, sign):
    for name in (filled.table_name.upper(), filled.table_name.capitalize()):
        assert sign.table(filled, "r", signed_name=name).get_entity("p", "r")["n"] == 1


def test_tn_of_another_table_is_refused(filled, sign):
    client = sign.table(filled, "raud", signed_name="another")
    for _, call in ENTITY_VERBS.values():
        assert_refused(lambda: call(client), SCOPE)
    assert filled.get_entity("p", "r")["n"] == 1


def test_a_table_sas_is_for_entities_only(filled, sign, table_name):
    token = generate_table_sas(sign.key, filled.table_name, permission="raud", expiry=now() + HOUR)
    service = sign.holder(token)
    for call in (
        lambda: list(service.list_tables()),
        lambda: service.create_table(table_name + "x"),
        lambda: service.delete_table(filled.table_name),
        lambda: service.get_service_properties(),
        lambda: service.get_table_client(filled.table_name).get_table_access_policy(),
        lambda: service.get_table_client(filled.table_name).set_table_access_policy({}),
    ):
        assert_refused(call, SCOPE)
    assert filled.get_entity("p", "r")["n"] == 1


def test_an_account_sas_is_not_for_access_policies(filled, sign):
    client = sign.account().get_table_client(filled.table_name)
    assert_refused(client.get_table_access_policy, SCOPE)
    assert_refused(lambda: client.set_table_access_policy({}), SCOPE)


@pytest.fixture
def grid(table):
    """Rows 0 to 4 in each of the partitions a to e."""
    for partition in "abcde":
        table.submit_transaction([("create", entity(partition, str(row))) for row in range(5)])
    return table


def keys(entities):
    return [found["PartitionKey"] + found["RowKey"] for found in entities]


GRID = [partition + str(row) for partition in "abcde" for row in range(5)]


@pytest.mark.parametrize(
    "bounds",
    [
        {"start_pk": "c"},
        {"start_pk": "b", "start_rk": "3"},
        {"end_pk": "c"},
        {"end_pk": "d", "end_rk": "1"},
        {"start_pk": "b", "start_rk": "3", "end_pk": "d", "end_rk": "1"},
        {"start_pk": "c", "start_rk": "2", "end_pk": "c", "end_rk": "2"},
        {"start_pk": "x", "end_pk": "y"},
    ],
    ids=lambda bounds: ",".join(f"{name}={value}" for name, value in bounds.items()),
)
def test_spk_srk_epk_erk_bound_queries_and_writes(grid, sign, bounds):
    low = bounds.get("start_pk", "") + bounds.get("start_rk", "")
    high = bounds.get("end_pk", "~") + bounds.get("end_rk", "~")
    inside = [key for key in GRID if low <= key <= high]
    client = sign.table(grid, **bounds)
    assert keys(client.list_entities()) == inside
    assert keys(client.list_entities(results_per_page=2)) == inside
    for key in GRID:
        change = entity(key[0], key[1], n=1)
        if key in inside:
            assert client.get_entity(key[0], key[1])["RowKey"] == key[1]
            client.update_entity(change)
        else:
            # What is outside does not exist for a reader.
            assert_refused(lambda: client.get_entity(key[0], key[1]), "ResourceNotFound", 404)
            for call in (client.update_entity, client.upsert_entity, client.create_entity):
                assert_refused(lambda: call(change), SCOPE)
            assert_refused(lambda: client.delete_entity(key[0], key[1]), SCOPE)
    assert keys(grid.query_entities("n eq 1")) == inside


def test_a_transaction_needs_every_letter_that_its_operations_need(filled, sign):
    operations = [("create", entity(row="a")), ("update", entity(n=2)), ("delete", entity(row="gone"))]
    filled.create_entity(entity(row="gone"))
    for granted, index in (("ad", 1), ("au", 2), ("ud", 0)):
        with pytest.raises(TableTransactionError) as caught:
            sign.table(filled, granted).submit_transaction(operations)
        found = (caught.value.status_code, caught.value.error_code, caught.value.index)
        assert found == (403, PERMISSION, index)
    assert [row["RowKey"] for row in filled.list_entities()] == ["gone", "r"]
    assert len(sign.table(filled, "aud").submit_transaction(operations)) == 3
    assert [row["RowKey"] for row in filled.list_entities()] == ["a", "r"]


def test_a_transaction_stays_within_the_range(grid, sign):
    client = sign.table(grid, start_pk="c", start_rk="2", end_pk="c", end_rk="4")
    operations = [("update", entity("c", str(row), n=1)) for row in (3, 4, 1)]
    with pytest.raises(TableTransactionError) as caught:
        client.submit_transaction(operations)
    assert (caught.value.status_code, caught.value.error_code, caught.value.index) == (403, SCOPE, 2)
    client.submit_transaction(operations[:2])
    assert keys(grid.query_entities("n eq 1")) == ["c3", "c4"]


def policy(**fields):
    return {"reader": TableAccessPolicy(**fields)}


def with_policy(sign, table, permission=None, expiry=None, start=None):
    return sign.table(table, permission, expiry=expiry, start=start, policy_id="reader")


def test_si_takes_times_and_letters_from_the_policy(filled, sign):
    filled.set_table_access_policy(policy(start=now() - HOUR, expiry=now() + HOUR, permission="r"))
    client = with_policy(sign, filled)
    assert client.get_entity("p", "r")["n"] == 1
    assert_refused(lambda: client.create_entity(entity(row="new")), PERMISSION)


def test_si_and_the_token_complete_each_other(filled, sign):
    filled.set_table_access_policy(policy(permission="r"))
    assert with_policy(sign, filled, expiry=now() + HOUR).get_entity("p", "r")["n"] == 1
    assert_refused(lambda: with_policy(sign, filled).get_entity("p", "r"), SIGNATURE)
    filled.set_table_access_policy(policy(expiry=now() + HOUR))
    assert with_policy(sign, filled, permission="r").get_entity("p", "r")["n"] == 1
    assert_refused(lambda: with_policy(sign, filled).get_entity("p", "r"), SIGNATURE)


def test_si_that_is_not_there_is_refused(filled, sign):
    client = with_policy(sign, filled, permission="r", expiry=now() + HOUR)
    assert_refused(lambda: client.get_entity("p", "r"), SIGNATURE)


def test_changing_the_policy_changes_the_tokens_that_name_it(filled, sign):
    filled.set_table_access_policy(policy(expiry=now() + HOUR, permission="r"))
    client = with_policy(sign, filled)
    assert client.get_entity("p", "r")["n"] == 1
    filled.set_table_access_policy(policy(expiry=now() + HOUR, permission="a"))
    assert_refused(lambda: client.get_entity("p", "r"), PERMISSION)
    client.create_entity(entity(row="new"))
    filled.set_table_access_policy(policy(expiry=now() - HOUR, permission="r"))
    assert_refused(lambda: client.get_entity("p", "r"), SIGNATURE)
    filled.set_table_access_policy(policy(start=now() + HOUR, expiry=now() + 2 * HOUR, permission="r"))
    assert_refused(lambda: client.get_entity("p", "r"), SIGNATURE)
    filled.set_table_access_policy({})
    assert_refused(lambda: client.get_entity("p", "r"), SIGNATURE)
