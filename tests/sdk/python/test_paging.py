"""Paging: pages of the requested size, and tokens that another client can use later."""

import pytest
from azure.core.exceptions import HttpResponseError

PARTITIONS = 3
ROWS_PER_PARTITION = 850  # 2,550 rows fill three pages of a thousand


@pytest.fixture(scope="module")
def many(service):
    import uuid

    name = "t" + uuid.uuid4().hex
    client = service.create_table(name)
    for partition in range(PARTITIONS):
        for start in range(0, ROWS_PER_PARTITION, 50):
            client.submit_transaction(
                [
                    ("create", {"PartitionKey": f"p{partition}", "RowKey": f"{row:05}", "n": row})
                    for row in range(start, start + 50)
                ]
            )
    yield client
    service.delete_table(name)


def all_keys():
    return [(f"p{partition}", f"{row:05}") for partition in range(PARTITIONS) for row in range(ROWS_PER_PARTITION)]


def keys(entities):
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]


def test_a_plain_listing_follows_continuations_to_the_end(many):
    assert keys(many.list_entities()) == all_keys()


def test_a_page_without_a_size_has_at_most_1000(many):
    sizes = [len(list(page)) for page in many.list_entities().by_page()]
    assert sum(sizes) == PARTITIONS * ROWS_PER_PARTITION
    assert max(sizes) == 1000


@pytest.mark.parametrize("size", [1000, 999, 850, 400])
def test_pages_have_the_size_asked_for(many, size):
    pages = [keys(page) for page in many.list_entities(results_per_page=size).by_page()]
    assert [key for page in pages for key in page] == all_keys()
    assert all(len(page) <= size for page in pages)
    assert len(pages[0]) == size


def test_a_saved_token_resumes_where_it_stopped(many, flavour, connection_string):
    pages = many.list_entities(results_per_page=700).by_page()
    first = keys(next(pages))
    token = pages.continuation_token
    assert set(token) == {"PartitionKey", "RowKey"} and all(token.values())

    # A new client, as after a restart of the application.
    with flavour.service(connection_string) as other:
        resumed = other.get_table_client(many.table_name).list_entities(results_per_page=700)
        rest = [keys(page) for page in resumed.by_page(continuation_token=token)]
    assert first + [key for page in rest for key in page] == all_keys()


def test_a_token_can_be_used_twice(many):
    pages = many.list_entities(results_per_page=10).by_page()
    next(pages)
    token = pages.continuation_token
    once = keys(next(many.list_entities(results_per_page=10).by_page(continuation_token=token)))
    twice = keys(next(many.list_entities(results_per_page=10).by_page(continuation_token=token)))
    assert once == twice == all_keys()[10:20]


def test_the_last_page_has_no_token(many):
    pages = many.list_entities(results_per_page=1000).by_page()
    for page in pages:
        list(page)
    assert not pages.continuation_token


def test_a_filtered_listing_pages_within_its_filter(many):
    query = "PartitionKey eq 'p1' and n ge 100 and n lt 160"
    pages = [keys(page) for page in many.query_entities(query, results_per_page=25).by_page()]
    assert [key for page in pages for key in page] == [("p1", f"{row:05}") for row in range(100, 160)]
    assert all(len(page) <= 25 for page in pages)


def test_a_filter_that_matches_here_and_there_finds_all(many):
    found = many.query_entities("n eq 0 or n eq 849")
    assert keys(found) == [(f"p{p}", row) for p in range(PARTITIONS) for row in ("00000", "00849")]


def test_a_token_stays_good_when_the_entity_it_names_is_gone(table):
    for row in range(6):
        table.create_entity({"PartitionKey": "p", "RowKey": str(row)})
    pages = table.list_entities(results_per_page=2).by_page()
    assert [key[1] for key in keys(next(pages))] == ["0", "1"]
    token = pages.continuation_token
    table.delete_entity("p", "1")
    table.delete_entity("p", "2")
    rest = table.list_entities(results_per_page=2).by_page(continuation_token=token)
    assert [key[1] for page in rest for key in keys(page)] == ["3", "4", "5"]


def test_more_than_1000_per_page_is_refused(many):
    with pytest.raises(HttpResponseError) as caught:
        next(many.list_entities(results_per_page=1001).by_page())
    assert caught.value.status_code == 400
    assert caught.value.error_code == "InvalidInput"
