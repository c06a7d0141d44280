"""Paging: listings across pages of at most 1,000 entities."""

import pytest

from support import batch_of, entity


@pytest.fixture(scope="module")
def large(service):
    name = "large" + str(id(service))
    service.create_table(name)
    for partition in "ab":
        for start in range(0, 700, 100):
            rows = [entity(f"{n:04}", partition_key=partition, n=n) for n in range(start, start + 100)]
            service.commit_batch(name, batch_of(*[("insert_entity", row) for row in rows]))
    yield name
    service.delete_table(name)


def keys(listing):
    return [found.PartitionKey + found.RowKey for found in listing]


def test_a_listing_goes_on_by_itself(service, large):
    answers = []
    service.response_callback = lambda response: answers.append(response.status)
    try:
        found = keys(service.query_entities(large))
    finally:
        service.response_callback = None
    assert found == [f"{partition}{n:04}" for partition in "ab" for n in range(700)]
    assert answers == [200, 200]


def test_a_marker_goes_on_where_a_listing_stopped(service, large):
    found, marker, sizes = [], None, []
    while True:
        page = service.query_entities(large, num_results=500, marker=marker)
        found += keys(page)
        sizes.append(len(list(page.items)))
        marker = page.next_marker
        if not marker:
            break
    assert len(found) == 1400 == len(set(found))
    assert sizes == [500, 500, 400]


def test_a_filter_holds_on_every_page(service, large):
    assert len(keys(service.query_entities(large, filter="n ge 100"))) == 1200
