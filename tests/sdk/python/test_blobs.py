"""Blobs: put, get, properties, metadata, delete, names, sizes."""

import base64
import hashlib
import io

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import BlobType, ContentSettings

from blob_support import KIB, MIB, answer_to, assert_refused, bytes_of, content, names


def md5(data):
    return hashlib.md5(data).digest()


@pytest.mark.parametrize("size", [0, 1, 511, 8 * KIB, 8 * KIB + 1, 300_000, 4 * MIB, 9 * MIB + 7])
def test_what_is_put_is_got(container, size):
    data = bytes_of(size)
    blob = container.upload_blob("b", data)
    assert content(blob) == data
    found = blob.get_blob_properties()
    assert (found.size, found.blob_type, found.name, found.container) == (
        size, BlobType.BLOCKBLOB, "b", container.container_name
    )
    assert bytes(found.content_settings.content_md5) == md5(data)
    assert found.server_encrypted is True


def test_put_answers_with_etag_and_checksums(container):
    blob = container.get_blob_client("b")
    status, headers = answer_to(blob.upload_blob, b"hello world")
    assert status == 201
    assert headers["content-md5"] == "XrY7u+Ae7tCTyyK7j1rNww=="
    assert headers["x-ms-content-crc64"] == "vo7q9sPVKY0="
    assert headers["x-ms-request-server-encrypted"] == "true"
    found = blob.get_blob_properties()
    assert headers["etag"] == found.etag


@pytest.mark.parametrize("source", ["text", "file", "generator", "stream"])
def test_data_come_from_anywhere(container, tmp_path, source):
    data = bytes_of(70_000)
    path = tmp_path / "data"
    path.write_bytes(data)
    if source == "text":
        assert content(container.upload_blob("b", "über 😀"), encoding="utf-8") == "über 😀"
        return
    if source == "generator":
        sent = (data[start : start + 1000] for start in range(0, len(data), 1000))
        blob = container.upload_blob("b", sent)
    elif source == "file":
        with path.open("rb") as file:
            blob = container.upload_blob("b", file)
    else:
        blob = container.upload_blob("b", io.BytesIO(data), length=len(data))
    assert content(blob) == data


def test_overwrite_must_be_asked_for(container):
    blob = container.upload_blob("b", b"one", metadata={"a": "1"}, content_settings=ContentSettings("text/plain"))
    with pytest.raises(ResourceExistsError) as caught:
        blob.upload_blob(b"two")
    assert (caught.value.status_code, caught.value.error_code) == (409, "BlobAlreadyExists")
    assert content(blob) == b"one"
    before = blob.get_blob_properties()
    blob.upload_blob(b"two!", overwrite=True)
    after = blob.get_blob_properties()
    assert content(blob) == b"two!"
    assert after.etag != before.etag
    assert after.creation_time == before.creation_time
    # An overwrite replaces everything.
    assert after.metadata == {}
    assert after.content_settings.content_type == "application/octet-stream"


def test_a_missing_blob_is_not_found(container):
    missing = container.get_blob_client("nope")
    assert not missing.exists()
    for call in (
        missing.download_blob,
        missing.get_blob_properties,
        missing.delete_blob,
        lambda: missing.set_blob_metadata({"a": "b"}),
        lambda: missing.set_http_headers(ContentSettings("text/plain")),
        missing.create_snapshot,
        missing.acquire_lease,
        missing.get_block_list,
        missing.get_page_ranges,
        lambda: missing.append_block(b"x"),
        lambda: missing.set_standard_blob_tier("Cool"),
        missing.get_blob_tags,
        lambda: missing.set_blob_tags({"a": "b"}),
        missing.undelete_blob,
    ):
        with pytest.raises(ResourceNotFoundError) as caught:
            call()
        assert (caught.value.status_code, caught.value.error_code) == (404, "BlobNotFound")


def test_http_properties_come_back_as_set(container):
    settings = ContentSettings(
        content_type="text/html; charset=utf-8",
        content_encoding="gzip",
        content_language="de-AT",
        content_disposition='attachment; filename="a b.html"',
        cache_control="max-age=17",
    )
    data = b"not really gzip"
    blob = container.upload_blob("b", data, content_settings=settings)
    found = blob.get_blob_properties().content_settings
    assert found.content_type == "text/html; charset=utf-8"
    assert found.content_encoding == "gzip"
    assert found.content_language == "de-AT"
    assert found.content_disposition == 'attachment; filename="a b.html"'
    assert found.cache_control == "max-age=17"
    assert bytes(found.content_md5) == md5(data)
    (listed,) = container.list_blobs()
    assert listed.content_settings.content_language == "de-AT"
    assert listed.content_settings.cache_control == "max-age=17"


def test_setting_http_headers_replaces_all_of_them(container):
    blob = container.upload_blob(
        "b", b"x", content_settings=ContentSettings("text/plain", content_language="de"), metadata={"a": "b"}
    )
    before = blob.get_blob_properties()
    blob.set_http_headers(ContentSettings(content_type="image/png", cache_control="no-cache"))
    found = blob.get_blob_properties()
    assert found.content_settings.content_type == "image/png"
    assert found.content_settings.cache_control == "no-cache"
    assert found.content_settings.content_language is None
    assert found.content_settings.content_md5 is None
    assert found.metadata == {"a": "b"}
    assert found.etag != before.etag
    blob.set_http_headers()
    assert blob.get_blob_properties().content_settings.cache_control is None


def test_metadata_is_replaced_as_a_whole_and_keeps_its_case_in_lists(container):
    blob = container.upload_blob("b", b"x", metadata={"Hello": "World", "num": "42"})
    (listed,) = container.list_blobs(include=["metadata"])
    assert listed.metadata == {"Hello": "World", "num": "42"}
    found = {name.lower(): value for name, value in blob.get_blob_properties().metadata.items()}
    assert found == {"hello": "World", "num": "42"}
    blob.set_blob_metadata({"Other": "1"})
    (listed,) = container.list_blobs(include=["metadata"])
    assert listed.metadata == {"Other": "1"}
    blob.set_blob_metadata()
    assert blob.get_blob_properties().metadata == {}


@pytest.mark.parametrize("metadata", [{"with-dash": "1"}, {"1digit": "1"}])
def test_metadata_names_are_identifiers(container, metadata):
    blob = container.upload_blob("b", b"x")
    assert_refused(lambda: blob.set_blob_metadata(metadata), 400, "InvalidMetadata")
    assert_refused(lambda: container.upload_blob("c", b"x", metadata=metadata), 400, "InvalidMetadata")
    assert names(container.list_blobs()) == ["b"]


def test_metadata_has_8_kib_at_most(container):
    blob = container.upload_blob("b", b"x")
    most = {"a": "x" * 4095, "b": "y" * 4095}
    blob.set_blob_metadata(most)
    assert blob.get_blob_properties().metadata == most
    assert_refused(lambda: blob.set_blob_metadata({**most, "c": "z"}), 400, "MetadataTooLarge")
    assert blob.get_blob_properties().metadata == most


def test_deleting_answers_202_and_the_blob_is_gone(container):
    blob = container.upload_blob("b", b"x")
    status, headers = answer_to(blob.delete_blob)
    assert (status, headers["x-ms-delete-type-permanent"]) == (202, "true")
    assert not blob.exists()
    assert names(container.list_blobs()) == []


NAMES = [
    "plain",
    "with space",
    "folder/file.txt",
    "a//b",
    "trailing/",
    "trailing.",
    "/leading",
    "UPPER and lower",
    "per%cent %2F",
    "plus+amp&hash#question?equals=",
    "über/ñandú/日本語/😀",
    "quote'double\"",
    "back\\slash",
    "semi;colon,comma:colon@at$dollar",
    "tilde~(brackets)[square]{curly}",
    "a..b",
    "x" * 1024,
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:20])
def test_names_of_every_kind(container, name):
    blob = container.get_blob_client(name)
    blob.upload_blob(name.encode())
    assert content(blob) == name.encode()
    assert blob.get_blob_properties().name == name
    assert names(container.list_blobs()) == [name]
    assert names(container.list_blobs(name_starts_with=name[:3])) == [name]
    blob.delete_blob()
    assert names(container.list_blobs()) == []


def test_names_differ_by_case(container):
    for name in ("a", "A"):
        container.upload_blob(name, name.encode())
    assert names(container.list_blobs()) == ["A", "a"]
    assert content(container.get_blob_client("A")) == b"A"


def test_a_name_of_1025_characters_is_refused(container):
    blob = container.get_blob_client("x" * 1025)
    error = assert_refused(lambda: blob.upload_blob(b"x"), 400, "OutOfRangeInput")
    assert "length" in error.message or "range" in error.message


def test_content_md5_is_checked(container):
    blob = container.get_blob_client("b")
    right = base64.b64encode(md5(b"data")).decode()
    wrong = base64.b64encode(md5(b"other")).decode()
    error = assert_refused(lambda: blob.upload_blob(b"data", headers={"Content-MD5": wrong}), 400, "Md5Mismatch")
    assert (error.additional_info["userspecifiedmd5"], error.additional_info["servercalculatedmd5"]) == (wrong, right)
    assert not blob.exists()
    blob.upload_blob(b"data", headers={"Content-MD5": right})
    assert content(blob) == b"data"


def test_the_stored_md5_is_checked_on_put(container):
    blob = container.get_blob_client("b")
    settings = ContentSettings(content_md5=bytearray(md5(b"other")))
    assert_refused(lambda: blob.upload_blob(b"data", content_settings=settings), 400, "Md5Mismatch")
    blob.upload_blob(b"data", content_settings=ContentSettings(content_md5=bytearray(md5(b"data"))))
    assert bytes(blob.get_blob_properties().content_settings.content_md5) == md5(b"data")


def test_uploads_and_downloads_that_check_their_content(container):
    data = bytes_of(300_000)
    blob = container.get_blob_client("b")
    blob.upload_blob(data, validate_content=True)
    assert content(blob, validate_content=True) == data


def test_checksums_of_crc64_are_computed_by_the_service(container):
    blob = container.get_blob_client("b")
    assert_refused(
        lambda: blob.upload_blob(b"data", headers={"x-ms-content-crc64": "AAAAAAAAAAA="}), 400, "Crc64Mismatch"
    )
    blob.upload_blob(b"hello world", headers={"x-ms-content-crc64": "vo7q9sPVKY0="})
    assert content(blob) == b"hello world"


def test_a_blob_client_made_from_its_url(flavour, settings, container):
    blob = container.upload_blob("dir/ä b", b"x")
    assert blob.url.endswith("/dir/%C3%A4%20b")
    with flavour.blobs_at(settings["BlobEndpoint"], settings["AccountKey"]) as service:
        assert content(service.get_blob_client(container.container_name, "dir/ä b")) == b"x"


def test_the_type_of_a_blob_does_not_change_in_place(container):
    blob = container.upload_blob("b", b"x")
    assert_refused(blob.create_append_blob, 409, "InvalidBlobType")
    assert_refused(lambda: blob.create_page_blob(512), 409, "InvalidBlobType")
    assert_refused(lambda: blob.upload_blob(b"y", blob_type="AppendBlob", overwrite=True), 409, "InvalidBlobType")
    assert content(blob) == b"x"


def test_a_failed_condition_is_a_modified_error(container):
    blob = container.upload_blob("b", b"x")
    with pytest.raises(ResourceModifiedError) as caught:
        blob.upload_blob(b"y", overwrite=True, etag='"0x1"', match_condition=MatchConditions.IfNotModified)
    assert (caught.value.status_code, caught.value.error_code) == (412, "ConditionNotMet")
    assert content(blob) == b"x"

