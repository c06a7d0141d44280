"""`az storage blob`: upload, download, batches of files, sync by batches, lists, copies, snapshots, leases, tiers, SAS."""

import filecmp
import random
import uuid

import pytest

EXPIRY = ("--expiry", "2099-01-01T00:00Z")


@pytest.fixture
def blob(az, container, tmp_path):
    """A blob called `b`."""
    (tmp_path / "content").write_text("content")
    az("blob", "upload", "--container-name", container, "--name", "b", "--file", str(tmp_path / "content"))
    return ("--container-name", container, "--name", "b")


def names(items):
    return [item["name"] for item in items]


@pytest.mark.parametrize("size", [0, 1, 100_000, 70 * 1024 * 1024])
def test_a_file_goes_there_and_back(az, container, tmp_path, size):
    (tmp_path / "sent").write_bytes(random.Random(1).randbytes(size))
    place = ("--container-name", container, "--name", "dir/ä b")
    az("blob", "upload", *place, "--file", str(tmp_path / "sent"))
    az("blob", "download", *place, "--file", str(tmp_path / "back"))
    assert filecmp.cmp(tmp_path / "sent", tmp_path / "back", shallow=False)
    shown = az("blob", "show", *place)
    assert (shown["properties"]["contentLength"], shown["properties"]["blobType"]) == (size, "BlockBlob")


def test_an_upload_does_not_replace_unless_told(az, blob, tmp_path, refused):
    file = ("--file", str(tmp_path / "content"))
    refused("already exists", az, "blob", "upload", *blob, *file, "--overwrite", "false")
    az("blob", "upload", *blob, *file, "--overwrite")


def test_a_missing_blob_does_not_exist(az, container, refused):
    place = ("--container-name", container, "--name", "nope")
    assert az("blob", "exists", *place) == {"exists": False}
    refused("BlobNotFound", az, "blob", "delete", *place)


@pytest.fixture
def tree(tmp_path):
    seeded = random.Random(3)
    for folder in ("tree", "tree/a", "tree/a/b c", "tree/ü"):
        (tmp_path / folder).mkdir()
        for number in range(25):
            size = seeded.randrange(20_000) if number else 0
            (tmp_path / folder / f"{number:02}.bin").write_bytes(seeded.randbytes(size))
    return tmp_path / "tree"


def assert_same(left, right):
    def files(root):
        return sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())

    assert files(left) == files(right)
    for name in files(left):
        assert filecmp.cmp(left / name, right / name, shallow=False), name


def test_upload_batch_and_download_batch(az, container, tree, tmp_path):
    sent = az("blob", "upload-batch", "--destination", container, "--source", str(tree))
    assert len(sent) == 100
    (tmp_path / "back").mkdir()
    az("blob", "download-batch", "--destination", str(tmp_path / "back"), "--source", container)
    assert_same(tree, tmp_path / "back")


def test_batches_by_pattern_and_into_a_folder(az, container, tree, tmp_path):
    target = ("--destination", container, "--destination-path", "in/here")
    az("blob", "upload-batch", *target, "--source", str(tree), "--pattern", "a/*")
    found = names(az("blob", "list", "--container-name", container, "--num-results", "*"))
    assert len(found) == 50
    assert all(name.startswith("in/here/a/") for name in found)
    deleted = az("blob", "delete-batch", "--source", container, "--pattern", "in/here/a/b c/*")
    assert deleted is None or len(deleted) == 25
    assert len(az("blob", "list", "--container-name", container, "--num-results", "*")) == 25


def test_a_second_batch_brings_the_container_up_to_date(az, container, tree, tmp_path):
    """What `az storage blob sync` does with AzCopy: changed and new files go there, and what is gone is deleted."""
    az("blob", "upload-batch", "--destination", container, "--source", str(tree))
    (tree / "a" / "01.bin").write_bytes(b"changed")
    (tree / "a" / "new").write_bytes(b"new")
    (tree / "ü" / "02.bin").unlink()
    az("blob", "upload-batch", "--destination", container, "--source", str(tree), "--overwrite")
    az("blob", "delete", "--container-name", container, "--name", "ü/02.bin")
    (tmp_path / "back").mkdir()
    az("blob", "download-batch", "--destination", str(tmp_path / "back"), "--source", container)
    assert_same(tree, tmp_path / "back")


def test_lists_by_prefix_delimiter_and_page(az, container, tree):
    az("blob", "upload-batch", "--destination", container, "--source", str(tree), "--pattern", "a/*")
    level = az("blob", "list", "--container-name", container, "--delimiter", "/", "--prefix", "a/")
    assert len(level) == 26 and "a/b c/" in names(level)
    some = az("blob", "list", "--container-name", container, "--num-results", "10")
    assert len([item for item in some if "name" in item]) == 10


def test_metadata_and_properties(az, blob):
    az("blob", "metadata", "update", *blob, "--metadata", "colour=red")
    assert az("blob", "metadata", "show", *blob) == {"colour": "red"}
    az("blob", "update", *blob, "--content-type", "text/css", "--content-language", "de")
    settings = az("blob", "show", *blob)["properties"]["contentSettings"]
    assert (settings["contentType"], settings["contentLanguage"]) == ("text/css", "de")


def test_a_copy_and_a_batch_of_copies(az, container, blob, container_name):
    copied = az(
        "blob", "copy", "start", "--destination-container", container, "--destination-blob", "copy",
        "--source-container", container, "--source-blob", "b",
    )
    assert copied["copy_status"] == "success"
    other = container_name[:20] + "-other"
    az("container", "create", "--name", other)
    az("blob", "copy", "start-batch", "--destination-container", other, "--source-container", container)
    assert names(az("blob", "list", "--container-name", other)) == ["b", "copy"]


def test_snapshots(az, blob, tmp_path, refused):
    snapshot = az("blob", "snapshot", *blob)["snapshot"]
    (tmp_path / "content").write_text("changed")
    az("blob", "upload", *blob, "--file", str(tmp_path / "content"), "--overwrite")
    az("blob", "download", *blob, "--snapshot", snapshot, "--file", str(tmp_path / "old"))
    assert (tmp_path / "old").read_text() == "content"
    refused("SnapshotsPresent", az, "blob", "delete", *blob)
    az("blob", "delete", *blob, "--delete-snapshots", "include")
    assert az("blob", "exists", *blob) == {"exists": False}


def test_soft_delete(az, blob, tmp_path):
    az("blob", "service-properties", "delete-policy", "update", "--enable", "true", "--days-retained", "2")
    assert az("blob", "service-properties", "delete-policy", "show")["days"] == 2
    az("blob", "delete", *blob)
    (found,) = az("blob", "list", *blob[:2], "--include", "d")
    assert (found["name"], found["deleted"]) == ("b", True)
    az("blob", "undelete", *blob)
    assert az("blob", "exists", *blob) == {"exists": True}
    az("blob", "service-properties", "delete-policy", "update", "--enable", "false")


def test_leases(az, blob, refused):
    place = ("--container-name", blob[1], "--blob-name", "b")
    lease = az("blob", "lease", "acquire", *place, "--lease-duration", "15")
    refused("LeaseIdMissing", az, "blob", "metadata", "update", *blob, "--metadata", "a=b")
    new = str(uuid.uuid4())
    az("blob", "lease", "change", *place, "--lease-id", lease, "--proposed-lease-id", new)
    az("blob", "metadata", "update", *blob, "--metadata", "a=b", "--lease-id", new)
    az("blob", "lease", "release", *place, "--lease-id", new)


def test_tiers(az, blob, refused, tmp_path):
    az("blob", "set-tier", *blob, "--tier", "Archive")
    assert az("blob", "show", *blob)["properties"]["blobTier"] == "Archive"
    refused("BlobArchived", az, "blob", "download", *blob, "--file", str(tmp_path / "back"))
    az("blob", "set-tier", *blob, "--tier", "Hot", "--rehydrate-priority", "High")
    # `az` does not show that the blob is on its way; it has not arrived.
    assert az("blob", "show", *blob)["properties"]["blobTier"] == "Archive"


def test_append_and_page_blobs(az, container, tmp_path):
    (tmp_path / "page").write_bytes(bytes(512) + b"x" * 512)
    (tmp_path / "log").write_text("line\n")
    for kind, file in (("page", "page"), ("append", "log")):
        place = ("--container-name", container, "--name", kind)
        az("blob", "upload", *place, "--file", str(tmp_path / file), "--type", kind)
        az("blob", "download", *place, "--file", str(tmp_path / "back"))
        assert filecmp.cmp(tmp_path / file, tmp_path / "back", shallow=False)
    place = ("--container-name", container, "--name", "append")
    az("blob", "upload", *place, "--file", str(tmp_path / "log"), "--type", "append", "--overwrite", "false")
    assert az("blob", "show", *place)["properties"]["contentLength"] == 10


def test_a_signature_allows_what_it_names_and_no_more(az, az_with_blob_sas, blob, tmp_path, refused):
    reader = az("blob", "generate-sas", *blob, "--permissions", "r", *EXPIRY)
    download = ("blob", "download", *blob, "--file", str(tmp_path / "back"))
    az_with_blob_sas(reader, *download)
    assert (tmp_path / "back").read_text() == "content"
    refused("You do not have the required permissions", az_with_blob_sas, reader, "blob", "delete", *blob)
    box = az("container", "generate-sas", "--name", blob[1], "--permissions", "l", *EXPIRY)
    assert names(az_with_blob_sas(box, "blob", "list", *blob[:2])) == ["b"]
    refused("You do not have the required permissions", az_with_blob_sas, box, *download)


def test_an_account_signature(az, az_with_blob_sas, blob):
    token = az(
        "account", "generate-sas", "--services", "b", "--resource-types", "sco", "--permissions", "rl", *EXPIRY
    )
    assert blob[1] in names(az_with_blob_sas(token, "container", "list", "--prefix", blob[1]))
    assert az_with_blob_sas(token, "blob", "exists", *blob) == {"exists": True}
