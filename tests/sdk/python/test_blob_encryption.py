"""Keys of customers and encryption scopes: stored by name, asked for on every read."""

import base64
import hashlib

import pytest
from azure.core.exceptions import ServiceRequestError
from azure.storage.blob import BlobBlock, CustomerProvidedEncryptionKey

from blob_support import assert_refused, content


def key_of(text):
    raw = hashlib.sha256(text).digest()
    digest = base64.b64encode(hashlib.sha256(raw).digest()).decode()
    return CustomerProvidedEncryptionKey(base64.b64encode(raw).decode(), digest)


KEY, OTHER = key_of(b"one"), key_of(b"two")


@pytest.fixture
def secret(container):
    return container.get_blob_client("secret")


def headers(key):
    """The SDK sends keys over HTTPS only, so the headers are written by hand here."""
    return {
        "x-ms-encryption-key": key.key_value,
        "x-ms-encryption-key-sha256": key.key_hash,
        "x-ms-encryption-algorithm": "AES256",
    }


def test_the_sdk_wants_https_for_keys(secret):
    with pytest.raises((ValueError, ServiceRequestError)):
        secret.upload_blob(b"x", cpk=KEY)


def test_a_blob_of_a_key_is_read_with_that_key(secret):
    secret.upload_blob(b"content", headers=headers(KEY))
    assert content(secret, headers=headers(KEY)) == b"content"
    found = secret.get_blob_properties(headers=headers(KEY))
    assert found.encryption_key_sha256 == KEY.key_hash
    assert_refused(lambda: content(secret), 409, "BlobUsesCustomerSpecifiedEncryption")
    assert_refused(
        lambda: content(secret, headers=headers(OTHER)), 409, "BlobCustomerSpecifiedEncryptionMismatch"
    )


def test_a_key_for_a_blob_without_one_is_refused(secret):
    secret.upload_blob(b"content")
    assert_refused(
        lambda: content(secret, headers=headers(KEY)), 409, "BlobDoesNotUseCustomerSpecifiedEncryption"
    )


def test_blocks_of_a_key(secret):
    secret.stage_block("1", b"one", headers=headers(KEY))
    secret.commit_block_list([BlobBlock("1")], headers=headers(KEY))
    assert content(secret, headers=headers(KEY)) == b"one"


def test_a_scope_comes_back(container):
    blob = container.upload_blob("b", b"x", encryption_scope="scope1")
    assert blob.get_blob_properties().encryption_scope == "scope1"
    (listed,) = container.list_blobs()
    assert listed.encryption_scope == "scope1"
