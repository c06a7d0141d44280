"""Conditions: ETags, times and tags on reads and writes."""

from datetime import timedelta

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobBlock, ContentSettings

from blob_support import assert_refused, content

DAY = timedelta(days=1)
OTHER = '"0x8D00000000000001"'
IS, IS_NOT = MatchConditions.IfNotModified, MatchConditions.IfModified


@pytest.fixture
def blob(container):
    return container.upload_blob("b", b"content", tags={"status": "done", "prio": "05"})


def met(properties):
    yield {"etag": properties.etag, "match_condition": IS}
    yield {"etag": OTHER, "match_condition": IS_NOT}
    yield {"if_modified_since": properties.last_modified - DAY}
    yield {"if_unmodified_since": properties.last_modified + DAY}
    yield {"if_unmodified_since": properties.last_modified}
    yield {"if_tags_match_condition": "\"status\" = 'done'"}


def unmet(properties):
    yield {"etag": OTHER, "match_condition": IS}
    yield {"etag": properties.etag, "match_condition": IS_NOT}
    yield {"if_modified_since": properties.last_modified}
    yield {"if_unmodified_since": properties.last_modified - DAY}
    yield {"if_tags_match_condition": "\"status\" = 'open'"}


READS = {
    "get": lambda blob, **conditions: content(blob, **conditions),
    "properties": lambda blob, **conditions: blob.get_blob_properties(**conditions).name,
}


@pytest.mark.parametrize("verb", READS)
def test_reads_that_meet_their_condition(blob, verb):
    for conditions in met(blob.get_blob_properties()):
        assert READS[verb](blob, **conditions)


@pytest.mark.parametrize("verb", READS)
def test_reads_that_do_not(blob, verb):
    for number, conditions in enumerate(unmet(blob.get_blob_properties())):
        status = 304 if number in (1, 2) else 412
        assert_refused(lambda: READS[verb](blob, **conditions), status, "ConditionNotMet")


def overwrite(blob, **conditions):
    # The SDK adds If-None-Match: * unless it is told to overwrite.
    blob.upload_blob(b"new", overwrite=True, tags={"status": "done"}, **conditions)


def commit(blob, **conditions):
    blob.stage_block("1", b"new")
    blob.commit_block_list([BlobBlock("1")], tags={"status": "done"}, **conditions)


WRITES = {
    "put": overwrite,
    "commit": commit,
    "metadata": lambda blob, **conditions: blob.set_blob_metadata({"a": "b"}, **conditions),
    "headers": lambda blob, **conditions: blob.set_http_headers(ContentSettings("text/css"), **conditions),
    "snapshot": lambda blob, **conditions: blob.create_snapshot(**conditions),
    "copy": lambda blob, **conditions: blob.start_copy_from_url(
        blob.url.rsplit("/", 1)[0] + "/source", tags={"status": "done"}, **conditions
    ),
    "lease": lambda blob, **conditions: blob.acquire_lease(**conditions).release(),
}


@pytest.mark.parametrize("verb", WRITES)
def test_writes_that_meet_their_condition(container, blob, verb):
    container.upload_blob("source", b"source")
    for number in range(len(list(met(blob.get_blob_properties())))):
        conditions = list(met(blob.get_blob_properties()))[number]
        WRITES[verb](blob, **conditions)


@pytest.mark.parametrize("verb", WRITES)
def test_writes_that_do_not(container, blob, verb):
    container.upload_blob("source", b"source")
    before = blob.get_blob_properties()
    for conditions in unmet(before):
        assert_refused(lambda: WRITES[verb](blob, **conditions), 412, "ConditionNotMet")
    after = blob.get_blob_properties()
    assert (after.etag, after.lease.state) == (before.etag, "available")
    assert content(blob) == b"content"


def test_deletion_has_conditions(blob):
    for conditions in unmet(blob.get_blob_properties()):
        assert_refused(lambda: blob.delete_blob(**conditions), 412, "ConditionNotMet")
    blob.delete_blob(etag=blob.get_blob_properties().etag, match_condition=IS)
    assert not blob.exists()


def test_appends_and_pages_have_conditions(container):
    log = container.get_blob_client("log")
    log.create_append_blob()
    assert_refused(lambda: log.append_block(b"x", etag=OTHER, match_condition=IS), 412, "ConditionNotMet")
    log.append_block(b"x", etag=log.get_blob_properties().etag, match_condition=IS)
    disk = container.get_blob_client("disk")
    disk.create_page_blob(512)
    assert_refused(
        lambda: disk.upload_page(bytes(512), offset=0, length=512, etag=OTHER, match_condition=IS),
        412,
        "ConditionNotMet",
    )
    disk.upload_page(bytes(512), offset=0, length=512, etag=disk.get_blob_properties().etag, match_condition=IS)
    assert content(log) == b"x"


def test_a_missing_blob_and_if_match(container):
    missing = container.get_blob_client("nope")
    assert_refused(lambda: missing.download_blob(etag=OTHER, match_condition=IS), 404, "BlobNotFound")
    assert_refused(
        lambda: missing.upload_blob(b"x", overwrite=True, etag=OTHER, match_condition=IS), 412, "ConditionNotMet"
    )
    missing.upload_blob(b"x", overwrite=True, etag=OTHER, match_condition=IS_NOT)


def test_only_what_is_missing_is_created(container):
    blob = container.get_blob_client("b")
    blob.upload_blob(b"first", overwrite=True, match_condition=MatchConditions.IfMissing)
    assert_refused(
        lambda: blob.upload_blob(b"second", overwrite=True, match_condition=MatchConditions.IfMissing),
        409,
        "BlobAlreadyExists",
    )
    blob.stage_block("1", b"x")
    assert_refused(
        lambda: blob.commit_block_list([BlobBlock("1")], match_condition=MatchConditions.IfMissing),
        409,
        "BlobAlreadyExists",
    )
    assert content(blob) == b"first"


def test_only_what_is_there_is_replaced(container, blob):
    blob.upload_blob(b"new", overwrite=True, match_condition=MatchConditions.IfPresent)
    missing = container.get_blob_client("nope")
    assert_refused(
        lambda: missing.upload_blob(b"x", overwrite=True, match_condition=MatchConditions.IfPresent),
        412,
        "ConditionNotMet",
    )


@pytest.mark.parametrize(
    ("expression", "is_met"),
    [
        ("\"status\" = 'done' AND \"prio\" >= '05'", True),
        ("\"status\" = 'open' OR \"prio\" < '06'", True),
        ("(\"status\" = 'open' OR \"prio\" < '06') AND \"status\" <> 'lost'", True),
        ("\"prio\" > '05'", False),
        ("\"missing\" = 'x'", False),
    ],
)
def test_tags_are_compared(blob, expression, is_met):
    if is_met:
        assert content(blob, if_tags_match_condition=expression) == b"content"
    else:
        assert_refused(lambda: content(blob, if_tags_match_condition=expression), 412, "ConditionNotMet")


def test_an_expression_that_nobody_can_read_is_refused(blob):
    assert_refused(lambda: content(blob, if_tags_match_condition="status is done"), 400, "InvalidHeaderValue")


def test_a_downloader_notices_that_the_blob_changed(flavour, connection_string, container):
    options = {"max_single_get_size": 1024, "max_chunk_get_size": 1024}
    container.upload_blob("b", bytes(5000))
    with flavour.blobs(connection_string, **options) as service:
        blob = service.get_blob_client(container.container_name, "b")
        downloader = blob.download_blob()
        container.upload_blob("b", b"\x01" * 5000, overwrite=True)
        assert_refused(downloader.readall, 412, "ConditionNotMet")


def test_what_is_not_modified_has_no_body(blob):
    etag = blob.get_blob_properties().etag
    error = assert_refused(lambda: blob.download_blob(etag=etag, match_condition=IS_NOT), 304, "ConditionNotMet")
    assert "<Error>" not in str(error)
    assert error.response.headers.get("Content-Length", "0") == "0"
