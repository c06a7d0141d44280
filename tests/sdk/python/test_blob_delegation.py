"""Bearer tokens and user delegation signatures, over HTTPS, because the SDK sends tokens over nothing else."""

import base64
import json
import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.credentials import AccessToken, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import generate_blob_sas, generate_container_sas

from blob_support import content, names
from own_server import ACCOUNT, KEY, OwnServer

HOUR = timedelta(hours=1)
WHO, WHERE = "11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"


def now():
    return datetime.now(timezone.utc)


def token():
    claims = {
        "iss": "https://sts.windows.net/0/",
        "aud": "https://storage.azure.com",
        "nbf": 1_000_000_000,
        "iat": 1_000_000_000,
        "exp": int(time.time()) + 3600,
        "oid": WHO,
        "tid": WHERE,
    }

    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return AccessToken(f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}.{part('signature')}", claims["exp"])


class Credential:
    def get_token(self, *scopes, **options):
        return token()


class AsyncCredential:
    async def get_token(self, *scopes, **options):
        return token()

    async def close(self):
        pass


class Stage:
    def __init__(self, flavour, server, authority):
        self.flavour, self.server, self.authority = flavour, server, authority
        self.clients = []

    def client(self, credential):
        options = {"connection_verify": str(self.authority)}
        client = self.flavour.blobs_at(self.server.endpoints["Blob"], credential, **options)
        self.clients.append(client.__enter__())
        return self.clients[-1]

    def bearer(self):
        return self.client(AsyncCredential() if self.flavour.name == "aio" else Credential())


@pytest.fixture
def stage(flavour, tmp_path):
    with OwnServer(tmp_path / "data", "--https", "--oauth", "basic") as server:
        (authority,) = (tmp_path / "data").rglob("ca.pem")
        stage = Stage(flavour, server, authority)
        yield stage
        for client in stage.clients:
            client.__exit__(None, None, None)


def assert_refused(call, code):
    with pytest.raises(HttpResponseError) as caught:
        call()
    assert (caught.value.status_code, caught.value.error_code) == (403, code)


def test_the_holder_of_a_token_works_with_blobs(stage):
    service = stage.bearer()
    box = service.create_container("box")
    box.upload_blob("b", b"content")
    assert content(box.get_blob_client("b")) == b"content"
    assert names(service.list_containers()) == ["box"]
    box.upload_blob("c", b"more")
    assert [answer.status_code for answer in box.delete_blobs("b")] == [202]
    assert names(box.list_blobs()) == ["c"]


def test_a_user_delegation_key_signs_for_others(stage):
    service = stage.bearer()
    key = service.get_user_delegation_key(now() - HOUR, now() + HOUR)
    assert (key.signed_oid, key.signed_tid, key.signed_service) == (WHO, WHERE, "b")
    box = service.create_container("box")
    box.upload_blob("b", b"content")
    box.upload_blob("other", b"other")
    signed = generate_blob_sas(
        ACCOUNT, "box", "b", user_delegation_key=key, permission="r", expiry=now() + HOUR
    )
    reader = stage.client(AzureSasCredential(signed)).get_blob_client("box", "b")
    assert content(reader) == b"content"
    assert_refused(lambda: reader.set_blob_metadata({"a": "b"}), "AuthorizationPermissionMismatch")
    stranger = stage.client(AzureSasCredential(signed)).get_blob_client("box", "other")
    assert_refused(stranger.download_blob, "AuthenticationFailed")
    signed = generate_container_sas(
        ACCOUNT, "box", user_delegation_key=key, permission="rl", expiry=now() + HOUR
    )
    lister = stage.client(AzureSasCredential(signed)).get_container_client("box")
    assert names(lister.list_blobs()) == ["b", "other"]
    assert_refused(lambda: lister.upload_blob("new", b"x"), "AuthorizationPermissionMismatch")


def test_a_user_delegation_signature_ends_with_its_key(stage):
    service = stage.bearer()
    service.create_container("box").upload_blob("b", b"content")
    key = service.get_user_delegation_key(now() - 2 * HOUR, now() + HOUR)
    for changed in ({"signed_oid": WHERE}, {"value": base64.b64encode(b"x" * 32).decode()}):
        other = service.get_user_delegation_key(now() - HOUR, now() + HOUR)
        for name, value in changed.items():
            setattr(other, name, value)
        signed = generate_blob_sas(
            ACCOUNT, "box", "b", user_delegation_key=other, permission="r", expiry=now() + HOUR
        )
        client = stage.client(AzureSasCredential(signed)).get_blob_client("box", "b")
        assert_refused(client.download_blob, "AuthenticationFailed")
    signed = generate_blob_sas(
        ACCOUNT, "box", "b", user_delegation_key=key, permission="r", expiry=now() - timedelta(minutes=1)
    )
    expired = stage.client(AzureSasCredential(signed)).get_blob_client("box", "b")
    assert_refused(expired.download_blob, "AuthenticationFailed")


def test_only_the_holder_of_a_token_gets_a_key(stage):
    service = stage.client({"account_name": ACCOUNT, "account_key": KEY})
    assert_refused(lambda: service.get_user_delegation_key(now(), now() + HOUR), "AuthenticationFailed")
