"""Lists of blobs: prefixes, pages, hierarchies, what they include."""

import pytest
from azure.storage.blob import BlobPrefix, ContentSettings, StandardBlobTier

from blob_support import assert_refused, bytes_of, names

TREE = ["a/1", "a/2", "a/b/3", "a/b/4", "a/c/5", "b", "b/6", "c/", "d"]


@pytest.fixture
def tree(container):
    for name in TREE:
        container.upload_blob(name, name.encode())
    return container


def test_names_come_in_order(tree):
    assert names(tree.list_blobs()) == sorted(TREE)
    assert list(tree.list_blob_names()) == sorted(TREE)


def test_capitals_come_first_and_other_letters_last(container):
    mixed = ["b", "A", "a", "B", "ä", "_", "0", "日", "😀"]
    for name in mixed:
        container.upload_blob(name, b"")
    assert names(container.list_blobs()) == ["0", "A", "B", "_", "a", "b", "ä", "日", "😀"]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("a/", ["a/1", "a/2", "a/b/3", "a/b/4", "a/c/5"]),
        ("a/b", ["a/b/3", "a/b/4"]),
        ("b", ["b", "b/6"]),
        ("z", []),
        ("d", ["d"]),
        ("dd", []),
    ],
)
def test_a_prefix_selects(tree, prefix, expected):
    assert names(tree.list_blobs(name_starts_with=prefix)) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 10])
def test_pages_give_each_once(tree, size):
    pages = [names(page) for page in tree.list_blobs(results_per_page=size).by_page()]
    assert pages == [sorted(TREE)[start : start + size] for start in range(0, len(TREE), size)]


def test_a_list_resumes_from_a_saved_token_although_blobs_come_and_go(tree):
    pages = tree.list_blobs(results_per_page=3).by_page()
    assert names(next(pages)) == ["a/1", "a/2", "a/b/3"]
    token = pages.continuation_token
    tree.delete_blob("a/b/4")
    tree.upload_blob("a/b/5", b"")
    tree.upload_blob("a/0", b"")
    rest = [name for page in tree.list_blobs(results_per_page=3).by_page(token) for name in names(page)]
    assert rest == ["a/b/5", "a/c/5", "b", "b/6", "c/", "d"]


def test_a_page_size_of_zero_is_refused(tree):
    assert_refused(lambda: list(tree.list_blobs(results_per_page=0)), 400, "OutOfRangeQueryParameterValue")


def walk(container, prefix=None, **options):
    """In order: the SDK puts the prefixes of a page in front of its blobs."""
    return sorted(names(container.walk_blobs(name_starts_with=prefix, **options)))


def test_a_hierarchy_shows_one_level(tree):
    assert walk(tree) == ["a/", "b", "b/", "c/", "d"]
    assert walk(tree, "a/") == ["a/1", "a/2", "a/b/", "a/c/"]
    assert walk(tree, "a/b/") == ["a/b/3", "a/b/4"]
    assert walk(tree, "a") == ["a/"]
    assert walk(tree, "c/") == ["c/"]


def test_a_hierarchy_is_walked_downwards(flavour, tree):
    if flavour.name == "aio":
        pytest.skip("prefixes of the asyncio client are listings of their own")

    def below(items):
        found = []
        for item in items:
            found.extend(below(item) if isinstance(item, BlobPrefix) else [item.name])
        return found

    # The blob `c/` is its own folder: the client would ask for it forever.
    tree.delete_blob("c/")
    assert sorted(below(tree.walk_blobs())) == ["a/1", "a/2", "a/b/3", "a/b/4", "a/c/5", "b", "b/6", "d"]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_pages_of_a_hierarchy_give_each_once(tree, size):
    pages = [names(page) for page in tree.walk_blobs(results_per_page=size).by_page()]
    assert sorted(name for page in pages for name in page) == ["a/", "b", "b/", "c/", "d"]
    assert all(len(page) == size for page in pages[:-1])


@pytest.mark.parametrize(("delimiter", "expected"), [("/b/", ["a/1", "a/2", "a/b/", "a/c/5", "b", "b/6", "c/", "d"])])
def test_delimiters_may_be_longer(tree, delimiter, expected):
    assert walk(tree, delimiter=delimiter) == expected


def test_many_names_below_one_prefix_are_one_entry(container):
    for number in range(120):
        container.upload_blob(f"dir/{number:03}", b"")
    container.upload_blob("end", b"")
    assert walk(container, results_per_page=1) == ["dir/", "end"]
    assert len(names(container.list_blobs(name_starts_with="dir/0"))) == 100


def test_each_blob_shows_its_properties(container):
    data = bytes_of(1000)
    blob = container.upload_blob(
        "b", data, content_settings=ContentSettings("text/css", content_encoding="br"), standard_blob_tier=StandardBlobTier.COOL
    )
    container.get_blob_client("p").create_page_blob(1024, sequence_number="5")
    container.get_blob_client("q").create_append_blob()
    block, page, append = container.list_blobs()
    properties = blob.get_blob_properties()
    assert (block.size, block.etag, block.last_modified, block.creation_time) == (
        1000, properties.etag.strip('"'), properties.last_modified, properties.creation_time
    )
    assert block.content_settings.content_md5 == properties.content_settings.content_md5
    assert (block.content_settings.content_type, block.content_settings.content_encoding) == ("text/css", "br")
    assert (block.blob_tier, block.blob_tier_inferred) == ("Cool", None)
    assert (block.blob_type, page.blob_type, append.blob_type) == ("BlockBlob", "PageBlob", "AppendBlob")
    assert (page.size, page.page_blob_sequence_number) == (1024, 5)
    assert (block.lease.status, block.lease.state) == ("unlocked", "available")
    assert block.server_encrypted is True


def test_a_list_includes_what_is_asked_for(container):
    blob = container.upload_blob("b", b"one", metadata={"Key": "value"}, tags={"t": "1"})
    snapshot = blob.create_snapshot()["snapshot"]
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(blob.url)
    container.get_blob_client("staged").stage_block("1", b"x")
    plain = list(container.list_blobs())
    assert names(plain) == ["b", "copy"]
    assert [item.metadata for item in plain] == [{}, {}]
    everything = list(
        container.list_blobs(include=["snapshots", "metadata", "uncommittedblobs", "copy", "tags"])
    )
    assert [(item.name, item.snapshot) for item in everything] == [
        ("b", snapshot), ("b", None), ("copy", None), ("staged", None)
    ]
    assert [item.metadata for item in everything[:3]] == [{"Key": "value"}] * 3
    assert everything[1].tags == {"t": "1"} and everything[1].tag_count == 1
    assert (everything[2].copy.status, everything[2].copy.progress) == ("success", "3/3")
    assert everything[3].size == 0


def test_something_unknown_to_include_is_refused(container):
    assert_refused(lambda: list(container.list_blobs(include=["nonsense"])), 400, "InvalidQueryParameterValue")


def test_names_that_xml_cannot_carry_are_refused_or_encoded(container):
    # U+FFFE is no character for names; what XML must escape comes back as it was.
    for name in ("a&b", "a<b>", "quote\"'", "tab is not allowed"):
        container.upload_blob(name, b"")
    assert names(container.list_blobs()) == sorted(["a&b", "a<b>", "quote\"'", "tab is not allowed"])
