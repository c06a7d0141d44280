"""AzCopy: upload, download, copies between containers of the service, sync, remove."""

import os
import uuid

import pytest
from conftest import FILE_COUNT, Program, assert_same_file, assert_same_tree, installed


@pytest.fixture(scope="module")
def azcopy(tmp_path_factory):
    logs = str(tmp_path_factory.mktemp("azcopy"))
    environment = {
        "AZCOPY_LOG_LOCATION": logs,
        "AZCOPY_JOB_PLAN_LOCATION": logs,
        "AZCOPY_DISABLE_SYSLOG": "true",
        "AZCOPY_CONCURRENCY_VALUE": "8",
    }
    program = os.environ.get("LAZULITE_AZCOPY") or installed("azcopy")
    return Program(program, environment)


@pytest.fixture
def url(endpoint, signature):
    return lambda path: f"{endpoint}/{path}?{signature}"


def copy(azcopy, *arguments):
    said = azcopy.run("copy", "--skip-version-check", *arguments)
    assert "Final Job Status: Completed" in said, said[-3000:]
    return said


def test_a_tree_goes_there_and_back(azcopy, tree, box, url, tmp_path):
    said = copy(azcopy, f"{tree}/*", url(box), "--recursive", "--put-md5", "--from-to", "LocalBlob")
    assert f"Number of File Transfers Completed: {FILE_COUNT}" in said
    (tmp_path / "back").mkdir()
    copy(
        azcopy, url(f"{box}/*"), tmp_path / "back", "--recursive", "--from-to", "BlobLocal",
        "--check-md5", "FailIfDifferentOrMissing",
    )
    assert_same_tree(tree, tmp_path / "back")


def test_a_container_is_copied_by_the_service(azcopy, service, tree, box, url, tmp_path):
    copy(azcopy, f"{tree}/a", url(box), "--recursive", "--from-to", "LocalBlob")
    other = "p" + uuid.uuid4().hex
    # AzCopy creates the destination.
    copy(azcopy, url(box), url(other), "--recursive", "--from-to", "BlobBlob")
    copy(azcopy, url(f"{other}/*"), tmp_path, "--recursive", "--from-to", "BlobLocal")
    assert_same_tree(tree / "a", tmp_path / "a")
    service.delete_container(other)


def test_sync_follows_changes_and_deletions(azcopy, service, box, url, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("kept", "changed", "gone"):
        (source / name).write_text(name)
    sync = ("sync", "--skip-version-check", source, url(box), "--from-to", "LocalBlob")
    azcopy.run(*sync, "--delete-destination", "true")
    (source / "gone").unlink()
    (source / "changed").write_text("new content")
    os.utime(source / "changed", (4_000_000_000, 4_000_000_000))
    azcopy.run(*sync, "--delete-destination", "true")
    container = service.get_container_client(box)
    assert sorted(container.list_blob_names()) == ["changed", "kept"]
    assert container.download_blob("changed").readall() == b"new content"


def test_one_large_file(azcopy, large, box, url, tmp_path):
    copy(azcopy, large, url(f"{box}/large.bin"), "--from-to", "LocalBlob", "--block-size-mb", "8", "--put-md5")
    copy(azcopy, url(f"{box}/large.bin"), url(f"{box}/copy.bin"), "--from-to", "BlobBlob")
    copy(azcopy, url(f"{box}/copy.bin"), tmp_path / "large.bin", "--from-to", "BlobLocal")
    assert_same_file(large, tmp_path / "large.bin")
    (tmp_path / "large.bin").unlink()


def test_remove(azcopy, service, tree, box, url):
    copy(azcopy, f"{tree}/a", url(box), "--recursive", "--from-to", "LocalBlob")
    azcopy.run("remove", "--skip-version-check", url(box), "--recursive", "--from-to", "BlobTrash")
    assert list(service.get_container_client(box).list_blob_names()) == []
