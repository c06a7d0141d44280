"""Batches as the older client writes them: lines that end in LF alone, a Content-ID inside, paths without a host."""

import pytest

from support import OLD_ETAG, batch_of, contents, entity, plain, refused


def commit(service, table, *operations):
    return service.commit_batch(table, batch_of(*operations))


def rolled_back(service, table, operations, status, code, index):
    before = contents(service, table)
    with refused(status, code, f"{index}:"):
        commit(service, table, *operations)
    assert contents(service, table) == before


WRITES = {
    "insert_entity": {"new": 2},
    "update_entity": {"new": 2},
    "merge_entity": {"old": 1, "new": 2},
    "insert_or_replace_entity": {"new": 2},
    "insert_or_merge_entity": {"old": 1, "new": 2},
}


@pytest.mark.parametrize("name", WRITES)
def test_one_operation_alone(service, table, name):
    if name != "insert_entity":
        service.insert_entity(table, entity("a", old=1))
    [etag] = commit(service, table, (name, entity("a", new=2)))
    found = service.get_entity(table, "p", "a")
    assert plain(found) == entity("a", **WRITES[name])
    assert found.etag == etag


def test_delete_alone(service, table):
    service.insert_entity(table, entity("a"))
    assert commit(service, table, ("delete_entity", "p", "a")) == [None]
    assert contents(service, table) == []


def test_all_kinds_of_operation_in_one_batch(service, table):
    for name in ("merge", "update", "upsert-merge", "upsert-replace", "delete"):
        service.insert_entity(table, entity(name, old=1))
    etags = commit(
        service,
        table,
        ("insert_entity", entity("insert", new=2)),
        ("merge_entity", entity("merge", new=2)),
        ("update_entity", entity("update", new=2)),
        ("insert_or_merge_entity", entity("upsert-merge", new=2)),
        ("insert_or_replace_entity", entity("upsert-replace", new=2)),
        ("insert_or_merge_entity", entity("upsert-absent", new=2)),
        ("delete_entity", "p", "delete"),
    )
    found = {one.RowKey: one for one in contents(service, table)}
    assert {name: plain(one) for name, one in found.items()} == {
        "insert": entity("insert", new=2),
        "merge": entity("merge", old=1, new=2),
        "update": entity("update", new=2),
        "upsert-absent": entity("upsert-absent", new=2),
        "upsert-merge": entity("upsert-merge", old=1, new=2),
        "upsert-replace": entity("upsert-replace", new=2),
    }
    order = ["insert", "merge", "update", "upsert-merge", "upsert-replace", "upsert-absent"]
    assert etags == [found[name].etag for name in order] + [None]


def test_the_batch_context_commits_at_its_end(service, table):
    with service.batch(table) as batch:
        batch.insert_entity(entity("a", n=1))
        batch.insert_or_merge_entity(entity("b", n=2))
    assert [one.n for one in contents(service, table)] == [1, 2]


def test_a_hundred_operations(service, table):
    etags = commit(service, table, *[("insert_or_replace_entity", entity(f"{n:03}", n=n)) for n in range(100)])
    assert len(etags) == 100
    assert [one.n for one in contents(service, table)] == list(range(100))


@pytest.mark.parametrize("name", ["merge_entity", "update_entity", "delete_entity"])
def test_an_old_etag_fails_at_its_index_and_the_current_one_passes(service, table, name):
    service.insert_entity(table, entity("a", n=1))
    current = service.insert_entity(table, entity("b", n=1))

    def operations(etag):
        target = ("p", "b") if name == "delete_entity" else (entity("b", n=2),)
        return [("insert_or_replace_entity", entity("a", n=2)), (name, *target, etag)]

    rolled_back(service, table, operations(OLD_ETAG), 412, "UpdateConditionNotSatisfied", 1)
    commit(service, table, *operations(current))
    assert [one.n for one in contents(service, table)] == ([2] if name == "delete_entity" else [2, 2])


@pytest.mark.parametrize("name", ["merge_entity", "update_entity", "delete_entity"])
def test_a_missing_entity_fails_at_its_index(service, table, name):
    service.insert_entity(table, entity("a", n=1))
    target = ("p", "missing") if name == "delete_entity" else (entity("missing", n=2),)
    operations = [("merge_entity", entity("a", n=2)), (name, *target)]
    rolled_back(service, table, operations, 404, "ResourceNotFound", 1)


def test_an_insert_of_an_existing_entity_fails_at_its_index(service, table):
    service.insert_entity(table, entity("taken", n=1))
    operations = [("insert_entity", entity(name)) for name in ("a", "b", "taken")]
    rolled_back(service, table, operations, 409, "EntityAlreadyExists", 2)


def test_a_value_that_is_too_large_fails_at_its_index(service, table):
    operations = [("insert_entity", entity("a")), ("insert_entity", entity("b", text="x" * 32769))]
    rolled_back(service, table, operations, 400, "PropertyValueTooLarge", 1)


def test_a_batch_on_a_missing_table_is_not_found(service, table_name):
    with refused(404, "TableNotFound", "0:The table specified does not exist."):
        commit(service, table_name, ("insert_entity", entity("a")), ("insert_entity", entity("b")))


def test_values_that_look_like_a_part_of_a_batch_stay_values(service, table):
    text = "--batch_x\r\n--changeset_x--\nHTTP/1.1 500\r\n\r\n{} Grüße"
    operations = [(name, entity(name, text=text)) for name in ("insert_entity", "insert_or_merge_entity")]
    commit(service, table, *operations)
    assert [one.text for one in contents(service, table)] == [text, text]
