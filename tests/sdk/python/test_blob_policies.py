"""Access policies and public access of containers; reads without credentials."""

from datetime import datetime, timezone

import pytest
from azure.storage.blob import AccessPolicy, ContainerSasPermissions

from blob_support import assert_refused, content, names

START = datetime(2021, 6, 8, 2, 5, 9, tzinfo=timezone.utc)
EXPIRY = datetime(2021, 6, 8, 3, 10, 9, tzinfo=timezone.utc)


def moment(text):
    """A time with seven digits of a second, as the SDK hands it on. The last digit is more than Python keeps."""
    return datetime.fromisoformat(text[:-2] + "+00:00") if isinstance(text, str) else text


def policies(container):
    found = container.get_container_access_policy()["signed_identifiers"]
    return {
        item.id: (moment(item.access_policy.start), moment(item.access_policy.expiry), item.access_policy.permission)
        if item.access_policy
        else (None, None, None)
        for item in found
    }


def refused(container, identifiers, code="InvalidXmlDocument"):
    before = policies(container)
    assert_refused(lambda: container.set_container_access_policy(identifiers), 400, code)
    assert policies(container) == before


def test_a_new_container_has_no_policies_and_is_private(container):
    assert policies(container) == {}
    assert container.get_container_access_policy()["public_access"] is None
    assert container.get_container_properties().public_access is None


def test_a_policy_comes_back_as_it_was_set(container):
    letters = ContainerSasPermissions(read=True, write=True, delete=True, list=True)
    container.set_container_access_policy({"id": AccessPolicy(start=START, expiry=EXPIRY, permission=letters)})
    assert policies(container) == {"id": (START, EXPIRY, "rwdl")}


def test_each_field_is_optional(container):
    container.set_container_access_policy(
        {
            "start": AccessPolicy(start=START),
            "expiry": AccessPolicy(expiry=EXPIRY),
            "permission": AccessPolicy(permission="rl"),
            "none": None,
        }
    )
    assert policies(container) == {
        "start": (START, None, None),
        "expiry": (None, EXPIRY, None),
        "permission": (None, None, "rl"),
        "none": (None, None, None),
    }


def test_setting_replaces_all_and_nothing_clears_all(container):
    policy = AccessPolicy(permission="r")
    before = container.get_container_properties().etag
    container.set_container_access_policy({"a": policy, "b": policy})
    assert container.get_container_properties().etag != before
    container.set_container_access_policy({"c": policy})
    assert list(policies(container)) == ["c"]
    container.set_container_access_policy({})
    assert policies(container) == {}


def test_five_are_accepted_and_the_sdk_refuses_six(container):
    five = {f"id{n}": AccessPolicy(permission="r") for n in range(5)}
    container.set_container_access_policy(five)
    assert list(policies(container)) == list(five)
    with pytest.raises(ValueError):
        container.set_container_access_policy({**five, "one too many": AccessPolicy(permission="r")})


def test_an_identifier_has_64_characters_at_most(container):
    container.set_container_access_policy({"x" * 64: AccessPolicy(permission="r")})
    assert list(policies(container)) == ["x" * 64]
    refused(container, {"x" * 65: AccessPolicy(permission="r")})


def test_letters_that_nobody_knows_are_refused(container):
    refused(container, {"a": AccessPolicy(permission="rq")}, "InvalidXmlNodeValue")


def test_the_lease_of_the_container_may_be_named(container):
    lease = container.acquire_lease()
    container.set_container_access_policy({"a": AccessPolicy(permission="r")}, lease=lease)
    container.set_container_access_policy({"b": AccessPolicy(permission="r")})
    assert list(policies(container)) == ["b"]
    lease.release()


@pytest.fixture
def nobody(flavour, settings):
    """A client without credentials."""
    with flavour.blobs_at(settings["BlobEndpoint"]) as client:
        yield client


def filled(container, level):
    container.upload_blob("dir/b", b"content", metadata={"a": "b"})
    container.set_container_access_policy({}, public_access=level)
    return container.container_name


def test_what_is_public_comes_back_as_set(container):
    for level in ("blob", "container", None):
        container.set_container_access_policy({}, public_access=level)
        assert container.get_container_access_policy()["public_access"] == level
        assert container.get_container_properties().public_access == level


def test_a_policy_alone_makes_the_container_private_again(container):
    container.set_container_access_policy({}, public_access="blob")
    container.set_container_access_policy({"a": AccessPolicy(permission="r")})
    assert container.get_container_properties().public_access is None


def test_a_level_that_does_not_exist_is_refused(container):
    assert_refused(lambda: container.set_container_access_policy({}, public_access="all"), 400, "InvalidHeaderValue")


def test_public_blobs_are_read_by_everybody_and_not_listed(container, nobody):
    name = filled(container, "blob")
    blob = nobody.get_blob_client(name, "dir/b")
    assert content(blob) == b"content"
    assert blob.get_blob_properties().metadata == {"a": "b"}
    assert blob.get_block_list()[0] == []
    strangers = nobody.get_container_client(name)
    for call in (
        lambda: list(strangers.list_blobs()),
        strangers.get_container_properties,
        lambda: blob.upload_blob(b"x", overwrite=True),
        blob.delete_blob,
        blob.get_blob_tags,
    ):
        with pytest.raises(Exception) as caught:
            call()
        assert (caught.value.status_code, caught.value.error_code) == (401, "NoAuthenticationInformation")
    assert content(blob) == b"content"


def test_a_public_container_is_listed_by_everybody(container, nobody):
    name = filled(container, "container")
    strangers = nobody.get_container_client(name)
    assert names(strangers.list_blobs()) == ["dir/b"]
    assert names(strangers.walk_blobs()) == ["dir/"]
    assert strangers.get_container_properties().public_access == "container"
    assert content(strangers.get_blob_client("dir/b")) == b"content"
    with pytest.raises(Exception) as caught:
        strangers.get_container_access_policy()
    assert (caught.value.status_code, caught.value.error_code) == (401, "NoAuthenticationInformation")


def test_a_private_container_shows_nothing(container, nobody):
    name = filled(container, None)
    blob = nobody.get_blob_client(name, "dir/b")
    for call in (blob.download_blob, lambda: list(nobody.get_container_client(name).list_blobs())):
        with pytest.raises(Exception) as caught:
            call()
        assert (caught.value.status_code, caught.value.error_code) == (401, "NoAuthenticationInformation")
        assert caught.value.response.headers["WWW-Authenticate"].startswith("Bearer ")


def test_a_missing_blob_in_public_is_not_found(container, nobody):
    name = filled(container, "blob")
    assert_refused(nobody.get_blob_client(name, "nope").download_blob, 404, "BlobNotFound")
