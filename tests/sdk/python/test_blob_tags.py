"""Tags: set, get, find; tiers; batches."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import RehydratePriority, StandardBlobTier

from blob_support import answer_to, assert_refused, content, names


@pytest.fixture
def blob(container):
    return container.upload_blob("b", b"content", tags={"status": "done"})


def test_tags_are_replaced_as_a_whole(blob):
    before = blob.get_blob_properties()
    assert before.tag_count == 1
    assert blob.get_blob_tags() == {"status": "done"}
    blob.set_blob_tags({"a": "1", "with space": "x+y-z./:=_"})
    assert blob.get_blob_tags() == {"a": "1", "with space": "x+y-z./:=_"}
    after = blob.get_blob_properties()
    assert (after.tag_count, after.etag) == (2, before.etag)
    blob.set_blob_tags()
    assert blob.get_blob_tags() == {}
    assert blob.get_blob_properties().tag_count is None


def test_setting_tags_answers_204(blob):
    assert answer_to(blob.set_blob_tags, {"a": "b"})[0] == 204


def test_an_upload_replaces_the_tags(blob):
    blob.upload_blob(b"new", overwrite=True)
    assert blob.get_blob_tags() == {}


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        ({f"t{number}": "x" for number in range(11)}, "TagsTooLarge"),
        ({"bad!": "x"}, "InvalidTags"),
        ({"a": "ü"}, "InvalidTags"),
        ({"": "x"}, "EmptyTagName"),
    ],
    ids=["eleven", "name", "value", "empty"],
)
def test_bad_tags_are_refused(blob, tags, code):
    assert_refused(lambda: blob.set_blob_tags(tags), 400, code)
    assert blob.get_blob_tags() == {"status": "done"}


def test_ten_tags_of_the_longest_names_and_values(blob):
    tags = {f"{number}" + "n" * 127: "v" * 256 for number in range(10)}
    blob.set_blob_tags(tags)
    assert blob.get_blob_tags() == tags


@pytest.fixture
def project(container):
    for name, tags in (
        ("a", {"project": "x", "year": "2020"}),
        ("b", {"project": "x", "year": "2021"}),
        ("c", {"project": "y", "year": "2021"}),
        ("d", None),
    ):
        container.upload_blob(name, b"", tags=tags)
    return container


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("project = 'x'", "ab"),
        ("\"project\" = 'x' AND \"year\" = '2021'", "b"),
        ("\"year\" >= '2021'", "bc"),
        ("\"year\" > '2019' AND \"year\" < '2021'", "a"),
        ("\"project\" = 'z'", ""),
    ],
)
def test_blobs_are_found_in_a_container(project, expression, expected):
    found = list(project.find_blobs_by_tags(expression))
    assert "".join(names(found)) == expected
    assert all(item.container_name == project.container_name for item in found)


def test_blobs_are_found_in_the_account_with_the_tags_that_were_asked_for(blobs, project):
    expression = f"@container = '{project.container_name}' AND \"project\" = 'x'"
    found = list(blobs.find_blobs_by_tags(expression))
    assert names(found) == ["a", "b"]
    assert [item.tags for item in found] == [{"project": "x"}] * 2
    pages = [names(page) for page in blobs.find_blobs_by_tags(expression, results_per_page=1).by_page()]
    assert [name for page in pages for name in page] == ["a", "b"]


def test_an_expression_that_nobody_can_read_is_refused(blobs):
    for expression in ("project is x", "a = 'b' OR c = 'd'", ""):
        with pytest.raises(Exception) as caught:
            list(blobs.find_blobs_by_tags(expression))
        assert caught.value.status_code == 400


def tier(blob):
    found = blob.get_blob_properties()
    return (found.blob_tier, found.blob_tier_inferred, found.archive_status)


def test_tiers_are_set_and_leave_the_etag(blob):
    before = blob.get_blob_properties().etag
    assert tier(blob) == ("Hot", True, None)
    for name in ("Cool", "Cold", "Hot"):
        blob.set_standard_blob_tier(name)
        assert tier(blob) == (name, None, None)
        assert blob.get_blob_properties().blob_tier_change_time is not None
    assert blob.get_blob_properties().etag == before


def test_an_upload_names_its_tier(container):
    blob = container.upload_blob("t", b"x", standard_blob_tier=StandardBlobTier.COOL)
    assert tier(blob)[0] == "Cool"
    # An overwrite inherits it.
    blob.upload_blob(b"y", overwrite=True)
    assert tier(blob)[0] == "Cool"


def test_an_archived_blob_is_not_read_and_comes_back_slowly(blob):
    blob.set_standard_blob_tier("Archive")
    assert tier(blob) == ("Archive", None, None)
    assert_refused(blob.download_blob, 409, "BlobArchived")
    assert blob.get_blob_properties().size == 7
    status, _ = answer_to(blob.set_standard_blob_tier, "Hot", rehydrate_priority=RehydratePriority.standard)
    assert status == 202
    assert tier(blob) == ("Archive", None, "rehydrate-pending-to-hot")
    assert blob.get_blob_properties().rehydrate_priority == "Standard"
    assert_refused(blob.download_blob, 409, "BlobArchived")


def test_a_tier_that_does_not_exist_is_refused(blob):
    with pytest.raises(Exception) as caught:
        blob.set_standard_blob_tier("Warm")
    assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidHeaderValue")


def statuses(answers):
    return [answer.status_code for answer in answers]


def test_a_batch_deletes(container):
    for name in ("a", "b", "dir/ä c"):
        container.upload_blob(name, b"x")
    answers = list(container.delete_blobs("a", "dir/ä c"))
    assert statuses(answers) == [202, 202]
    assert names(container.list_blobs()) == ["b"]


def test_a_batch_tells_what_it_could_not_do(container):
    container.upload_blob("a", b"x")
    answers = list(container.delete_blobs("nope", "a", raise_on_any_failure=False))
    assert statuses(answers) == [404, 202]
    assert answers[0].headers["x-ms-error-code"] == "BlobNotFound"
    assert names(container.list_blobs()) == []


def test_a_batch_that_partly_failed_raises(container):
    container.upload_blob("a", b"x")
    with pytest.raises(Exception) as caught:
        container.delete_blobs("nope", "a")
    assert statuses(caught.value.parts) == [404, 202]
    assert not isinstance(caught.value, ResourceNotFoundError)


def test_a_batch_sets_tiers(container):
    for name in ("a", "b"):
        container.upload_blob(name, b"x")
    assert statuses(container.set_standard_blob_tier_blobs("Cool", "a", "b")) == [200, 200]
    assert [item.blob_tier for item in container.list_blobs()] == ["Cool", "Cool"]


def test_a_batch_of_256_and_not_of_257(container):
    wanted = [f"{number:03}" for number in range(256)]
    for name in wanted[:3]:
        container.upload_blob(name, b"")
    answers = statuses(container.delete_blobs(*wanted, raise_on_any_failure=False))
    assert answers == [202] * 3 + [404] * 253
    with pytest.raises(Exception) as caught:
        list(container.delete_blobs(*wanted, "256", raise_on_any_failure=False))
    assert getattr(caught.value, "status_code", 400) == 400


def test_a_batch_deletes_with_snapshots_and_leases(container):
    first = container.upload_blob("a", b"x")
    first.create_snapshot()
    lease = container.upload_blob("b", b"x").acquire_lease()
    container.upload_blob("c", b"x")
    answers = container.delete_blobs(
        {"name": "a", "delete_snapshots": "include"}, {"name": "b"}, {"name": "c"}, raise_on_any_failure=False
    )
    assert statuses(answers) == [202, 412, 202]
    assert statuses(container.delete_blobs({"name": "b", "lease_id": lease.id})) == [202]
    assert content(container.upload_blob("b", b"new")) == b"new"
