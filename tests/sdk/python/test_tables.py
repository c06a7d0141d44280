"""Tables: create, list, filter, delete."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError


def names(items):
    return [item.name for item in items]


@pytest.fixture
def five_tables(service, table_name):
    created = [f"{table_name}{letter}" for letter in "abcde"]
    for name in created:
        service.create_table(name)
    yield created
    for name in created:
        service.delete_table(name)


def test_a_created_table_is_listed_and_a_deleted_one_is_not(service, table_name):
    assert table_name not in names(service.list_tables())
    client = service.create_table(table_name)
    assert client.table_name == table_name
    assert names(service.list_tables()).count(table_name) == 1
    service.delete_table(table_name)
    assert table_name not in names(service.list_tables())


def test_a_table_client_creates_and_deletes_its_own_table(service, table_name):
    client = service.get_table_client(table_name)
    created = client.create_table()
    assert created.name == table_name
    client.delete_table()
    assert table_name not in names(service.list_tables())


def test_creating_a_table_twice_is_a_conflict(service, table):
    with pytest.raises(ResourceExistsError) as caught:
        service.create_table(table.table_name)
    assert caught.value.status_code == 409
    assert caught.value.error_code == "TableAlreadyExists"
    assert "The table specified already exists." in caught.value.message


def test_table_names_conflict_whatever_their_case(service, table):
    with pytest.raises(ResourceExistsError) as caught:
        service.create_table(table.table_name.upper())
    assert caught.value.error_code == "TableAlreadyExists"


def test_a_table_is_found_whatever_the_case_of_its_name(service, table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 1})
    other = service.get_table_client(table.table_name.upper())
    assert other.get_entity("p", "r")["n"] == 1


def test_listing_keeps_the_case_of_names(service, table_name):
    mixed = "Mixed" + table_name.upper()
    service.create_table(mixed)
    try:
        assert mixed in names(service.list_tables())
    finally:
        service.delete_table(mixed)


def test_create_if_not_exists_creates_once_and_keeps_what_is_there(service, table_name):
    client = service.create_table_if_not_exists(table_name)
    client.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 7})
    again = service.create_table_if_not_exists(table_name)
    assert again.get_entity("p", "r")["n"] == 7
    assert names(service.list_tables()).count(table_name) == 1
    service.delete_table(table_name)


def test_deleting_a_table_that_is_not_there_is_quiet(service, table_name):
    # The SDK ignores 404 here, and nothing else.
    assert service.delete_table(table_name) is None


def test_a_table_created_again_is_empty(service, table_name):
    first = service.create_table(table_name)
    first.create_entity({"PartitionKey": "p", "RowKey": "r"})
    service.delete_table(table_name)
    second = service.create_table(table_name)
    assert list(second.list_entities()) == []
    service.delete_table(table_name)


def test_query_tables_by_name(service, five_tables):
    found = service.query_tables("TableName eq @name", parameters={"name": five_tables[2]})
    assert names(found) == [five_tables[2]]


def test_query_tables_by_range_comes_in_order(service, five_tables):
    found = service.query_tables(
        "TableName ge @low and TableName lt @high", parameters={"low": five_tables[1], "high": five_tables[4]}
    )
    assert names(found) == five_tables[1:4]


def test_query_tables_without_a_match_is_empty(service, table_name):
    assert names(service.query_tables(f"TableName eq '{table_name}'")) == []


def test_listing_tables_page_by_page_gives_each_once(service, five_tables):
    low, high = five_tables[0], five_tables[-1] + "z"
    pages = service.query_tables(f"TableName ge '{low}' and TableName lt '{high}'", results_per_page=2).by_page()
    found = [names(page) for page in pages]
    assert [name for page in found for name in page] == five_tables
    assert all(len(page) <= 2 for page in found)


def test_listing_tables_resumes_from_a_saved_token(service, five_tables):
    low, high = five_tables[0], five_tables[-1] + "z"
    query = f"TableName ge '{low}' and TableName lt '{high}'"
    pages = service.query_tables(query, results_per_page=2).by_page()
    first = names(next(pages))
    token = pages.continuation_token
    assert token
    rest = service.query_tables(query, results_per_page=2).by_page(continuation_token=token)
    assert first + [name for page in rest for name in names(page)] == five_tables


@pytest.mark.parametrize("name", ["ab", "a" * 64, "1abc", "a-b-c", "with space", "ünicode"])
def test_illegal_table_names_are_refused(service, name):
    # The SDK turns InvalidResourceName and OutOfRangeInput into ValueError, and passes on everything else.
    with pytest.raises(ValueError, match="Storage table names must be alphanumeric"):
        service.create_table(name)


def test_the_longest_and_the_shortest_names_work(service, table_name):
    longest = (table_name + "x" * 63)[:63]
    shortest = "q" + table_name[1:3]
    for name in (longest, shortest):
        service.create_table(name)
        assert names(service.query_tables(f"TableName eq '{name}'")) == [name]
        service.delete_table(name)


def test_the_name_tables_is_reserved(service):
    with pytest.raises((HttpResponseError, ValueError)):
        service.create_table("tables")


def test_entities_of_a_missing_table_are_not_found(service, table_name):
    missing = service.get_table_client(table_name)
    entity = {"PartitionKey": "p", "RowKey": "r"}
    for call in (
        lambda: missing.create_entity(entity),
        lambda: missing.get_entity("p", "r"),
        lambda: missing.upsert_entity(entity),
        lambda: missing.update_entity(entity),
        lambda: list(missing.list_entities()),
    ):
        with pytest.raises(ResourceNotFoundError) as caught:
            call()
        assert caught.value.status_code == 404
        assert "TableNotFound" in str(caught.value)
