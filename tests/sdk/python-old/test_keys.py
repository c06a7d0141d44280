"""Keys that need escaping: in the path, in a filter, in a part of a batch and in a continuation token."""

import pytest

from support import batch_of, contents, entity, plain, refused

KEYS = [
    "it's", "''", "'", "100%", "%25", "%2F", "a b", "a+b", "a&b=c", "a,b", "(a)", "a;b", "a:b", "a@b", "a$b", "a=b",
    "a!b", "a*b", "~a", '"a"', "<a>", "{a}", "[a]", "a|b", "a^b", "`a`", "Grüße", "世界", "🙂", "é", "e\u0301",
    "a\u00a0b", " a ", ".", "..",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_key(service, table, key):
    keyed = lambda **properties: entity(key, partition_key=key, **properties)
    service.insert_entity(table, keyed(n=1))
    assert service.get_entity(table, key, key).RowKey == key
    service.merge_entity(table, keyed(m=2))
    service.update_entity(table, keyed(n=2))
    quoted = key.replace("'", "''")
    found = list(service.query_entities(table, filter=f"PartitionKey eq '{quoted}' and RowKey eq '{quoted}'"))
    assert [plain(one) for one in found] == [keyed(n=2)]
    service.commit_batch(table, batch_of(("merge_entity", keyed(m=3))))
    assert service.get_entity(table, key, key).m == 3
    service.delete_entity(table, key, key)
    assert contents(service, table) == []


def test_empty_keys(service, table):
    service.insert_entity(table, entity("", partition_key="", n=1))
    service.merge_entity(table, entity("", partition_key="", m=2))
    assert service.get_entity(table, "", "").m == 2
    service.delete_entity(table, "", "")


def test_pages_go_on_after_keys_that_need_escaping(service, table):
    for key in KEYS:
        service.insert_entity(table, entity(key, partition_key=key))
    found, marker = [], None
    while True:
        page = service.query_entities(table, num_results=1, marker=marker)
        found += [one.RowKey for one in page]
        marker = page.next_marker
        if not marker:
            break
    assert sorted(found) == sorted(KEYS)


@pytest.mark.parametrize("key", ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\x7fb", "a\x85b"])
def test_a_forbidden_character_is_refused(service, table, key):
    with refused(400, "OutOfRangeInput"):
        service.insert_entity(table, entity(key))
    with refused(400, "OutOfRangeInput"):
        service.insert_entity(table, entity("r", partition_key=key))
    assert contents(service, table) == []
