"""Keys: every legal character survives URLs, bodies, batches, filters and continuation tokens."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import UpdateMode

AWKWARD = [
    "",
    " ",
    "a b",
    " leading",
    "trailing ",
    "O'Brien",
    "''",
    "'",
    "100%",
    "%",
    "%27",
    "%2F",
    "%252F",
    "a+b",
    "a&b=c",
    "a,b",
    "a;b",
    '"quoted"',
    "key:with:colons",
    "..",
    ".",
    "(a)",
    "[a]{b}|^`~",
    "<a>",
    "$batch",
    "@a*!",
    "ü",
    "u\u0308",
    "日本語",
    "😀",
    "a😀b\U0010ffff",
    "\ue000\uffee",
    "x" * 512,
]

AWKWARD_KEYS = pytest.mark.parametrize("key", AWKWARD, ids=lambda key: ascii(key)[:24])


@AWKWARD_KEYS
def test_every_verb_finds_an_awkward_key(table, key):
    ident = {"PartitionKey": key, "RowKey": key}
    table.create_entity({**ident, "n": 1})
    assert dict(table.get_entity(key, key)) == {**ident, "n": 1}
    table.update_entity({**ident, "m": 2}, mode=UpdateMode.MERGE)
    table.upsert_entity({**ident, "n": 3}, mode=UpdateMode.MERGE)
    assert dict(table.get_entity(key, key)) == {**ident, "n": 3, "m": 2}
    table.update_entity({**ident, "n": 4}, mode=UpdateMode.REPLACE)
    found = table.query_entities(
        "PartitionKey eq @key and RowKey eq @key", parameters={"key": key}
    )
    assert [dict(entity) for entity in found] == [{**ident, "n": 4}]
    table.delete_entity(key, key)
    assert list(table.list_entities()) == []


@AWKWARD_KEYS
def test_a_transaction_finds_an_awkward_key(table, key):
    ident = {"PartitionKey": key, "RowKey": key}
    table.submit_transaction([("create", {**ident, "n": 1})])
    assert table.get_entity(key, key)["n"] == 1
    table.submit_transaction([("update", {**ident, "n": 2}, {"mode": "replace"})])
    assert table.get_entity(key, key)["n"] == 2
    table.submit_transaction([("delete", ident)])
    with pytest.raises(ResourceNotFoundError):
        table.get_entity(key, key)


def test_all_awkward_keys_live_together_and_are_listed_in_utf16_order(table):
    for row_key in AWKWARD:
        table.create_entity({"PartitionKey": "p", "RowKey": row_key, "own": row_key})
    listed = list(table.list_entities())
    assert all(entity["own"] == entity["RowKey"] for entity in listed)
    assert [entity["RowKey"] for entity in listed] == sorted(AWKWARD, key=lambda key: key.encode("utf-16-be"))


def test_paging_one_by_one_over_awkward_keys_gives_each_once(table):
    for key in AWKWARD:
        table.create_entity({"PartitionKey": key, "RowKey": key})
    pages = table.list_entities(results_per_page=1).by_page()
    listed = [entity["RowKey"] for page in pages for entity in page]
    assert listed == sorted(AWKWARD, key=lambda key: key.encode("utf-16-be"))


def test_order_is_ordinal(table):
    keys = ["10", "2", "B", "a", "b", "bB", "partition-1", "partition-10", "partition-2", "ä", "ﬀ", "😀"]
    for key in reversed(keys):
        table.create_entity({"PartitionKey": key, "RowKey": "r"})
    listed = [entity["PartitionKey"] for entity in table.list_entities()]
    # Supplementary characters sort by their surrogates: the emoji (U+D83D…) before U+FB00.
    assert listed == ["10", "2", "B", "a", "b", "bB", "partition-1", "partition-10", "partition-2", "ä", "😀", "ﬀ"]


@pytest.mark.parametrize("character", ["/", "\\", "#", "?", "\t", "\n", "\r", "\x00", "\x1f", "\x7f", "\x80", "\x9f"], ids=ascii)
@pytest.mark.parametrize("name", ["PartitionKey", "RowKey"])
def test_forbidden_characters_are_refused(table, name, character):
    entity = {"PartitionKey": "p", "RowKey": "r", name: f"a{character}b"}
    with pytest.raises(HttpResponseError) as caught:
        table.create_entity(entity)
    assert caught.value.status_code == 400
    assert "OutOfRangeInput" in str(caught.value)
    assert f"The '{name}' parameter of value" in str(caught.value)
    assert list(table.list_entities()) == []


@pytest.mark.parametrize("name", ["PartitionKey", "RowKey"])
def test_a_missing_key_is_named(table, name):
    entity = {"PartitionKey": "p", "RowKey": "r"}
    del entity[name]
    # The SDK recognises PropertiesNeedValue and names the missing key.
    with pytest.raises(ValueError, match=f"{name} must be present in an entity"):
        table.create_entity(entity)


@pytest.mark.parametrize("name", ["PartitionKey", "RowKey"])
def test_a_key_of_2048_characters_is_too_long(table, name):
    entity = {"PartitionKey": "p", "RowKey": "r", name: "k" * 2048}
    with pytest.raises(HttpResponseError) as caught:
        table.create_entity(entity)
    assert caught.value.status_code == 400
    assert "PropertyValueTooLarge" in str(caught.value) or "KeyValueTooLarge" in str(caught.value)
