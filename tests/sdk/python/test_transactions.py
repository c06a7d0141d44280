"""Transactions: all or nothing, and the index of the operation that failed."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableTransactionError, UpdateMode

OLD_ETAG = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\""


def entity(row, **properties):
    return {"PartitionKey": "p", "RowKey": row, **properties}


def contents(table):
    """Everything in the table with etags, which a rollback must leave unchanged."""
    return [(dict(found), found.metadata["etag"]) for found in table.list_entities()]


def assert_rolled_back(table, before, operations, index, code, status):
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction(operations)
    assert caught.value.index == index
    assert caught.value.error_code == code
    assert caught.value.status_code == status
    assert contents(table) == before


def test_all_kinds_of_operation_in_one_transaction(table):
    for row in ("update-merge", "update-replace", "upsert-merge", "upsert-replace", "delete"):
        table.create_entity(entity(row, old=1))
    answers = table.submit_transaction(
        [
            ("create", entity("create", new=2)),
            ("update", entity("update-merge", new=2), {"mode": UpdateMode.MERGE}),
            ("update", entity("update-replace", new=2), {"mode": UpdateMode.REPLACE}),
            ("upsert", entity("upsert-merge", new=2), {"mode": UpdateMode.MERGE}),
            ("upsert", entity("upsert-replace", new=2), {"mode": UpdateMode.REPLACE}),
            ("upsert", entity("upsert-merge-absent", new=2), {"mode": UpdateMode.MERGE}),
            ("upsert", entity("upsert-replace-absent", new=2), {"mode": UpdateMode.REPLACE}),
            ("delete", entity("delete")),
        ]
    )
    found = {row["RowKey"]: row for row in table.list_entities()}
    assert {row: dict(properties) for row, properties in found.items()} == {
        "create": entity("create", new=2),
        "update-merge": entity("update-merge", old=1, new=2),
        "update-replace": entity("update-replace", new=2),
        "upsert-merge": entity("upsert-merge", old=1, new=2),
        "upsert-replace": entity("upsert-replace", new=2),
        "upsert-merge-absent": entity("upsert-merge-absent", new=2),
        "upsert-replace-absent": entity("upsert-replace-absent", new=2),
    }
    # One answer per operation, in order; all but the delete carry the new etag.
    order = ["create", "update-merge", "update-replace", "upsert-merge", "upsert-replace"]
    order += ["upsert-merge-absent", "upsert-replace-absent"]
    assert [answer["etag"] for answer in answers[:-1]] == [found[row].metadata["etag"] for row in order]
    assert answers[-1] == {}


def test_a_hundred_inserts(table):
    answers = table.submit_transaction([("create", entity(f"{n:03}", n=n)) for n in range(100)])
    assert len(answers) == 100
    found = list(table.list_entities())
    assert [row["n"] for row in found] == list(range(100))
    assert [row.metadata["etag"] for row in found] == [answer["etag"] for answer in answers]


def test_a_hundred_mixed_operations(table):
    table.submit_transaction([("create", entity(f"{n:03}", n=n)) for n in range(75)])
    operations = [("delete", entity(f"{n:03}")) for n in range(25)]
    operations += [("update", entity(f"{n:03}", n=-n), {"mode": "replace"}) for n in range(25, 50)]
    operations += [("upsert", entity(f"{n:03}", m=n), {"mode": "merge"}) for n in range(50, 75)]
    operations += [("create", entity(f"{n:03}", n=n)) for n in range(75, 100)]
    assert len(table.submit_transaction(operations)) == 100
    expected = [entity(f"{n:03}", n=-n) for n in range(25, 50)]
    expected += [entity(f"{n:03}", n=n, m=n) for n in range(50, 75)]
    expected += [entity(f"{n:03}", n=n) for n in range(75, 100)]
    assert [dict(row) for row in table.list_entities()] == expected


def test_one_operation_is_a_transaction_too(table):
    (answer,) = table.submit_transaction([("create", entity("r", text="ü 😀"))])
    found = table.get_entity("p", "r")
    assert found["text"] == "ü 😀" and found.metadata["etag"] == answer["etag"]


@pytest.mark.parametrize("index", [0, 1, 50, 99])
def test_an_insert_of_an_existing_entity_fails_at_its_index(table, index):
    table.create_entity(entity("taken", n=1))
    operations = [("create", entity(f"{n:03}")) for n in range(100)]
    operations[index] = ("create", entity("taken", n=2))
    assert_rolled_back(table, contents(table), operations, index, "EntityAlreadyExists", 409)


@pytest.mark.parametrize("mode", ["merge", "replace"])
def test_an_update_of_a_missing_entity_fails_at_its_index(table, mode):
    table.create_entity(entity("there", n=1))
    operations = [
        ("update", entity("there", n=2), {"mode": mode}),
        ("upsert", entity("new", n=2)),
        ("update", entity("missing", n=2), {"mode": mode}),
    ]
    assert_rolled_back(table, contents(table), operations, 2, "ResourceNotFound", 404)


def test_a_delete_of_a_missing_entity_fails_at_its_index(table):
    table.create_entity(entity("there", n=1))
    operations = [("delete", entity("there")), ("delete", entity("missing")), ("create", entity("new"))]
    assert_rolled_back(table, contents(table), operations, 1, "ResourceNotFound", 404)


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_an_old_etag_fails_at_its_index(table, verb):
    table.create_entity(entity("a", n=1))
    table.create_entity(entity("b", n=1))
    condition = {"etag": OLD_ETAG, "match_condition": MatchConditions.IfNotModified}
    operations = [("upsert", entity("a", n=2)), ("create", entity("c")), (verb, entity("b", n=2), condition)]
    assert_rolled_back(table, contents(table), operations, 2, "UpdateConditionNotSatisfied", 412)


def test_right_etags_let_it_pass(table):
    a = table.create_entity(entity("a", n=1))["etag"]
    b = table.create_entity(entity("b", n=1))["etag"]
    only_if = MatchConditions.IfNotModified
    table.submit_transaction(
        [
            ("update", entity("a", n=2), {"etag": a, "match_condition": only_if, "mode": "replace"}),
            ("delete", entity("b"), {"etag": b, "match_condition": only_if}),
        ]
    )
    assert [dict(row) for row in table.list_entities()] == [entity("a", n=2)]


def test_the_same_row_twice_is_refused(table):
    table.create_entity(entity("there", n=1))
    operations = [("create", entity("a")), ("upsert", entity("there", n=2)), ("update", entity("there", n=3))]
    assert_rolled_back(table, contents(table), operations, 2, "InvalidDuplicateRow", 400)


def test_more_than_a_hundred_operations_are_refused(table):
    operations = [("create", entity(f"{n:03}")) for n in range(101)]
    assert_rolled_back(table, [], operations, 99, "InvalidInput", 400)


def test_a_bad_value_fails_at_its_index(table):
    table.create_entity(entity("there", n=1))
    operations = [("upsert", entity("there", n=2)), ("create", entity("big", text="x" * 32769))]
    assert_rolled_back(table, contents(table), operations, 1, "PropertyValueTooLarge", 400)


def test_a_bad_key_fails_at_its_index(table):
    operations = [("create", entity("a")), ("create", entity("b/c"))]
    assert_rolled_back(table, [], operations, 1, "OutOfRangeInput", 400)


def test_a_failing_single_operation_is_reported(table):
    table.create_entity(entity("taken", n=1))
    assert_rolled_back(
        table, contents(table), [("create", entity("taken", n=2))], 0, "EntityAlreadyExists", 409
    )


def test_a_transaction_on_a_missing_table_is_not_found(service, table_name):
    missing = service.get_table_client(table_name)
    with pytest.raises(HttpResponseError) as caught:
        missing.submit_transaction([("create", entity("a")), ("create", entity("b"))])
    assert caught.value.status_code == 404
    assert caught.value.error_code == "TableNotFound"


def test_mixed_partitions_are_refused_before_anything_is_sent(table):
    operations = [("create", entity("a")), ("create", {"PartitionKey": "q", "RowKey": "b"})]
    with pytest.raises(ValueError, match="Partition Keys in the batch must all be the same"):
        table.submit_transaction(operations)
    assert list(table.list_entities()) == []


def test_a_body_above_4_mib_is_too_large(table):
    from azure.data.tables import RequestTooLargeError

    text = "x" * 32768
    operations = [("create", entity(f"{n:03}", a=text, b=text)) for n in range(70)]
    with pytest.raises(RequestTooLargeError) as caught:
        table.submit_transaction(operations)
    assert caught.value.status_code == 413
    assert list(table.list_entities()) == []


def test_a_body_just_below_4_mib_is_stored(table):
    text = "x" * 32768
    answers = table.submit_transaction([("create", entity(f"{n:03}", a=text)) for n in range(100)])
    assert len(answers) == 100
    assert all(row["a"] == text for row in table.list_entities())


def test_after_a_failure_the_same_rows_can_be_written(table):
    operations = [("create", entity("a")), ("delete", entity("missing"))]
    with pytest.raises(TableTransactionError):
        table.submit_transaction(operations)
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "a")
    table.submit_transaction([("create", entity("a", n=1))])
    assert table.get_entity("p", "a")["n"] == 1
