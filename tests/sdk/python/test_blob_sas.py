"""Shared access signatures for blobs from the SDK's own generators: what each field allows and refuses."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob import (
    AccessPolicy,
    BlobBlock,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from blob_support import answer_to, bytes_of, content, names

HOUR = timedelta(hours=1)
EVERYTHING = ResourceTypes(service=True, container=True, object=True)
PERMISSION = "AuthorizationPermissionMismatch"
RESOURCE_TYPE = "AuthorizationResourceTypeMismatch"
OVERWRITE = "UnauthorizedBlobOverwrite"
SCOPE = "AuthorizationFailure"
SIGNATURE = "AuthenticationFailed"


def now():
    return datetime.now(timezone.utc)


class Signer:
    """Clients whose only credential is a signature."""

    def __init__(self, flavour, settings):
        self.flavour = flavour
        self.endpoint = settings["BlobEndpoint"]
        self.name = settings["AccountName"]
        self.key = settings["AccountKey"]
        self.clients = []

    def holder(self, token):
        client = self.flavour.blobs_at(self.endpoint, AzureSasCredential(token))
        self.clients.append(client.__enter__())
        return self.clients[-1]

    def account(self, permission="rwdlacupxytfi", types=EVERYTHING, **options):
        options = {"expiry": now() + HOUR, **options}
        return self.holder(generate_account_sas(self.name, self.key, types, permission, **options))

    def container_token(self, container, permission, **options):
        options = {"expiry": now() + HOUR, "permission": permission, **options}
        options = {key: value for key, value in options.items() if value is not None}
        return generate_container_sas(self.name, container.container_name, self.key, **options)

    def container(self, container, permission="racwdxyltf", **options):
        token = self.container_token(container, permission, **options)
        return self.holder(token).get_container_client(container.container_name)

    def blob_token(self, container, name, permission, **options):
        options = {"expiry": now() + HOUR, "permission": permission, **options}
        options = {key: value for key, value in options.items() if value is not None}
        return generate_blob_sas(self.name, container.container_name, name, account_key=self.key, **options)

    def blob(self, container, name, permission="racwdxyt", **options):
        token = self.blob_token(container, name, permission, **options)
        return self.holder(token).get_blob_client(container.container_name, name)

    def close(self):
        for client in self.clients:
            client.__exit__(None, None, None)


@pytest.fixture
def sign(flavour, settings):
    signer = Signer(flavour, settings)
    yield signer
    signer.close()


def assert_refused(call, *codes):
    with pytest.raises(HttpResponseError) as caught:
        call()
    assert caught.value.status_code == 403
    assert caught.value.error_code in codes
    if caught.value.error_code == SIGNATURE:
        assert isinstance(caught.value, ClientAuthenticationError)


@pytest.fixture
def filled(container):
    container.upload_blob("old", b"content", tags={"t": "1"})
    container.get_blob_client("log").create_append_blob()
    container.get_blob_client("disk").create_page_blob(512)
    return container


def lease(container):
    held = container.get_blob_client("old").acquire_lease()
    held.release()
    return held


def commit(container):
    container.get_blob_client("old").commit_block_list([])
    return True


def done(result):
    return result is not False


# Each operation on blobs: any one of these letters allows it, and the call.
VERBS = {
    "read": ("r", lambda box: content(box.get_blob_client("old"))),
    "properties": ("r", lambda box: box.get_blob_client("old").get_blob_properties()),
    "block list": ("r", lambda box: done(box.get_blob_client("old").get_block_list())),
    "page ranges": ("r", lambda box: done(box.get_blob_client("disk").get_page_ranges())),
    "create": ("cw", lambda box: box.upload_blob("new", b"x")),
    "overwrite": ("w", lambda box: box.upload_blob("old", b"x", overwrite=True)),
    "stage": ("cw", lambda box: done(box.get_blob_client("new").stage_block("1", b"x"))),
    "commit": ("w", commit),
    "append": ("aw", lambda box: box.get_blob_client("log").append_block(b"x")),
    "seal": ("w", lambda box: box.get_blob_client("log").seal_append_blob()),
    "page": ("w", lambda box: box.get_blob_client("disk").upload_page(bytes_of(512), offset=0, length=512)),
    "metadata": ("w", lambda box: box.get_blob_client("old").set_blob_metadata({"a": "b"})),
    "headers": ("w", lambda box: box.get_blob_client("old").set_http_headers()),
    "tier": ("w", lambda box: done(box.get_blob_client("old").set_standard_blob_tier("Cool"))),
    "snapshot": ("cw", lambda box: box.get_blob_client("old").create_snapshot()),
    "lease": ("w", lease),
    "tags": ("t", lambda box: box.get_blob_client("old").get_blob_tags()),
    "set tags": ("t", lambda box: box.get_blob_client("old").set_blob_tags({"a": "b"})),
    "delete": ("d", lambda box: done(box.delete_blob("old"))),
    "list": ("l", lambda box: names(box.list_blobs())),
    "find": ("f", lambda box: names(box.find_blobs_by_tags("t = '1'"))),
}


@pytest.mark.parametrize("granted", ["r", "a", "c", "w", "d", "l", "t", "f", "racwdltf"])
@pytest.mark.parametrize("verb", VERBS)
def test_container_sas_sp_allows_its_verbs_and_no_others(filled, sign, verb, granted):
    needed, call = VERBS[verb]
    client = sign.container(filled, granted)
    if set(needed) & set(granted):
        assert call(client)
    else:
        assert_refused(lambda: call(client), PERMISSION, OVERWRITE)


@pytest.mark.parametrize("granted", list("rwdlactf"))
@pytest.mark.parametrize("verb", VERBS)
def test_account_sas_sp_allows_its_verbs_and_no_others(filled, sign, verb, granted):
    needed, call = VERBS[verb]
    client = sign.account(granted).get_container_client(filled.container_name)
    if granted in needed:
        assert call(client)
    else:
        assert_refused(lambda: call(client), PERMISSION, OVERWRITE)


# Operations on the account and on containers: resource type, letters, and the call.
ACCOUNT_VERBS = {
    "list containers": ("s", "l", lambda service, box: names(service.list_containers(name_starts_with="c"))),
    "get properties": ("s", "r", lambda service, box: service.get_service_properties()),
    "set properties": ("s", "w", lambda service, box: service.set_service_properties(cors=[]) is None),
    "container properties": ("c", "r", lambda service, box: box.get_container_properties()),
    "container metadata": ("c", "w", lambda service, box: box.set_container_metadata({"a": "b"})),
    "container lease": ("c", "w", lambda service, box: done(box.acquire_lease().release())),
    "list blobs": ("c", "l", lambda service, box: names(box.list_blobs())),
    "read": ("o", "r", lambda service, box: content(box.get_blob_client("old"))),
    "delete": ("o", "d", lambda service, box: done(box.delete_blob("old"))),
}


@pytest.mark.parametrize("granted", list("rwdlac"))
@pytest.mark.parametrize("verb", ACCOUNT_VERBS)
def test_account_sas_and_operations_on_containers(filled, sign, verb, granted):
    _, needed, call = ACCOUNT_VERBS[verb]
    client = sign.account(granted)
    box = client.get_container_client(filled.container_name)
    if granted in needed:
        assert call(client, box)
    else:
        assert_refused(lambda: call(client, box), PERMISSION)


@pytest.mark.parametrize("letter", ["s", "c", "o"])
@pytest.mark.parametrize("verb", ACCOUNT_VERBS)
def test_account_sas_srt_names_the_resources(filled, sign, verb, letter):
    needed, _, call = ACCOUNT_VERBS[verb]
    client = sign.account(types=ResourceTypes.from_string(letter))
    box = client.get_container_client(filled.container_name)
    if letter == needed:
        assert call(client, box)
    else:
        assert_refused(lambda: call(client, box), RESOURCE_TYPE)


def test_account_sas_creates_and_deletes_a_container(blobs, container_name, sign):
    assert_refused(lambda: sign.account("rdl").create_container(container_name), PERMISSION)
    sign.account("c", ResourceTypes(container=True)).create_container(container_name)
    assert_refused(lambda: sign.account("rwlac").delete_container(container_name), PERMISSION)
    sign.account("d", ResourceTypes(container=True)).delete_container(container_name)
    assert names(blobs.list_containers(name_starts_with=container_name)) == []


def test_account_sas_ss_must_name_blobs(filled, sign):
    from azure.storage.blob._shared.shared_access_signature import SharedAccessSignature

    signer = SharedAccessSignature(sign.name, account_key=sign.key)
    for services, allowed in (("q", False), ("tf", False), ("b", True), ("bqt", True)):
        token = signer.generate_account(services, EVERYTHING, "r", now() + HOUR)
        blob = sign.holder(token).get_blob_client(filled.container_name, "old")
        if allowed:
            assert content(blob) == b"content"
        else:
            assert_refused(lambda blob=blob: content(blob), "AuthorizationServiceMismatch")


def test_a_create_only_signature_does_not_overwrite(filled, sign):
    client = sign.container(filled, "rlac")
    client.upload_blob("new", b"x")
    assert_refused(lambda: client.upload_blob("new", b"y", overwrite=True), OVERWRITE)
    assert content(client.get_blob_client("new")) == b"x"


def test_tags_of_an_upload_need_their_own_letter(filled, sign):
    assert_refused(lambda: sign.container(filled, "w").upload_blob("new", b"x", tags={"a": "b"}), PERMISSION)
    sign.container(filled, "wt").upload_blob("new", b"x", tags={"a": "b"})
    assert filled.get_blob_client("new").get_blob_tags() == {"a": "b"}


def test_a_blob_sas_is_for_that_blob_only(filled, sign):
    token = sign.blob_token(filled, "old", "rwd")
    service = sign.holder(token)
    assert content(service.get_blob_client(filled.container_name, "old")) == b"content"
    assert_refused(lambda: content(service.get_blob_client(filled.container_name, "log")), SIGNATURE)
    box = service.get_container_client(filled.container_name)
    assert_refused(lambda: list(box.list_blobs()), SIGNATURE, SCOPE)


def test_a_service_sas_is_not_for_containers(filled, sign):
    box = sign.container(filled)
    for call in (
        box.get_container_properties,
        lambda: box.set_container_metadata({"a": "b"}),
        box.acquire_lease,
        box.delete_container,
        box.get_container_access_policy,
        lambda: box.set_container_access_policy({}),
    ):
        assert_refused(call, SCOPE)


def test_an_account_sas_is_not_for_access_policies(filled, sign):
    box = sign.account().get_container_client(filled.container_name)
    assert_refused(box.get_container_access_policy, SCOPE)
    assert_refused(lambda: box.set_container_access_policy({}), SCOPE)


def test_a_snapshot_has_a_signature_of_its_own(filled, sign):
    moment = filled.get_blob_client("old").create_snapshot()["snapshot"]
    filled.upload_blob("old", b"changed", overwrite=True)
    token = sign.blob_token(filled, "old", "r", snapshot=moment)
    service = sign.holder(token)
    assert content(service.get_blob_client(filled.container_name, "old", snapshot=moment)) == b"content"
    assert_refused(lambda: content(service.get_blob_client(filled.container_name, "old")), SIGNATURE, SCOPE)
    # That of the blob does not reach its snapshots; that of the container does.
    only = sign.holder(sign.blob_token(filled, "old", "r"))
    assert content(only.get_blob_client(filled.container_name, "old")) == b"changed"
    assert_refused(
        lambda: content(only.get_blob_client(filled.container_name, "old", snapshot=moment)), SIGNATURE, SCOPE
    )
    box = sign.container(filled, "r")
    assert content(box.get_blob_client("old", snapshot=moment)) == b"content"


def test_answers_say_what_the_signature_says(filled, sign):
    blob = sign.blob(
        filled,
        "old",
        "r",
        cache_control="no-cache",
        content_disposition="attachment; filename=a.txt",
        content_encoding="utf-8",
        content_language="fr",
        content_type="text/plain",
    )
    for call in (blob.download_blob, blob.get_blob_properties):
        _, headers = answer_to(call)
        assert headers["cache-control"] == "no-cache"
        assert headers["content-disposition"] == "attachment; filename=a.txt"
        assert headers["content-encoding"] == "utf-8"
        assert headers["content-language"] == "fr"
        assert headers["content-type"] == "text/plain"


BOTH_KINDS = pytest.mark.parametrize("kind", ["account", "container", "blob"])


def reader(sign, kind, container, **options):
    if kind == "account":
        return sign.account("r", **options).get_blob_client(container.container_name, "old")
    if kind == "container":
        return sign.container(container, "r", **options).get_blob_client("old")
    return sign.blob(container, "old", "r", **options)


@BOTH_KINDS
def test_st_opens_the_signature(filled, sign, kind):
    assert content(reader(sign, kind, filled, start=now() - HOUR)) == b"content"
    early = reader(sign, kind, filled, start=now() + HOUR, expiry=now() + 2 * HOUR)
    assert_refused(lambda: content(early), SIGNATURE)


@BOTH_KINDS
def test_se_closes_the_signature(filled, sign, kind):
    assert_refused(lambda: content(reader(sign, kind, filled, expiry=now() - HOUR)), SIGNATURE)


@BOTH_KINDS
def test_sip_names_the_address_or_the_range(filled, sign, kind):
    for good in ("127.0.0.1", "127.0.0.0-127.0.0.255"):
        assert content(reader(sign, kind, filled, ip=good)) == b"content"
    for bad in ("10.0.0.1", "127.0.0.2-127.0.0.255"):
        assert_refused(lambda bad=bad: content(reader(sign, kind, filled, ip=bad)), "AuthorizationSourceIPMismatch")


@BOTH_KINDS
def test_spr_names_the_protocols(filled, sign, kind):
    assert content(reader(sign, kind, filled, protocol="https,http")) == b"content"
    assert_refused(lambda: content(reader(sign, kind, filled, protocol="https")), "AuthorizationProtocolMismatch")


@BOTH_KINDS
def test_a_signature_of_another_key_is_refused(filled, sign, kind):
    sign.key = "d3Jvbmc="
    assert_refused(lambda: content(reader(sign, kind, filled)), SIGNATURE)


def test_a_field_that_was_changed_after_signing_is_refused(filled, sign):
    token = sign.container_token(filled, "r")
    box = sign.holder(token.replace("sp=r", "sp=rw")).get_container_client(filled.container_name)
    assert_refused(lambda: box.upload_blob("new", b"x"), SIGNATURE)


def policy(**fields):
    return {"worker": AccessPolicy(**fields)}


def with_policy(sign, container, kind, permission=None, expiry=None):
    options = {"expiry": expiry, "policy_id": "worker"}
    if kind == "container":
        return sign.container(container, permission, **options).get_blob_client("old")
    return sign.blob(container, "old", permission, **options)


KINDS = pytest.mark.parametrize("kind", ["container", "blob"])


@KINDS
def test_si_takes_times_and_letters_from_the_policy(filled, sign, kind):
    filled.set_container_access_policy(policy(start=now() - HOUR, expiry=now() + HOUR, permission="r"))
    client = with_policy(sign, filled, kind)
    assert content(client) == b"content"
    assert_refused(lambda: client.set_blob_metadata({"a": "b"}), PERMISSION)


@KINDS
def test_si_and_the_token_complete_each_other(filled, sign, kind):
    filled.set_container_access_policy(policy(permission="r"))
    assert content(with_policy(sign, filled, kind, expiry=now() + HOUR)) == b"content"
    assert_refused(lambda: content(with_policy(sign, filled, kind)), SIGNATURE)


@KINDS
def test_changing_the_policy_changes_the_tokens_that_name_it(filled, sign, kind):
    assert_refused(lambda: content(with_policy(sign, filled, kind)), SIGNATURE)
    filled.set_container_access_policy(policy(expiry=now() + HOUR, permission="r"))
    client = with_policy(sign, filled, kind)
    assert content(client) == b"content"
    filled.set_container_access_policy(policy(expiry=now() + HOUR, permission="w"))
    assert_refused(lambda: content(client), PERMISSION)
    filled.set_container_access_policy(policy(expiry=now() - HOUR, permission="r"))
    assert_refused(lambda: content(client), SIGNATURE)
    filled.set_container_access_policy({})
    assert_refused(lambda: content(client), SIGNATURE)


def test_a_copy_reads_its_source_by_the_signature_in_the_url(filled, sign):
    destination = sign.container(filled, "rcw").get_blob_client("copy")
    source = filled.get_blob_client("old")
    destination.start_copy_from_url(f"{source.url}?{sign.blob_token(filled, 'old', 'r')}")
    assert content(destination) == b"content"
    # What properties show does not give access.
    assert "sig=" not in destination.get_blob_properties().copy.source
    with pytest.raises(HttpResponseError) as caught:
        destination.start_copy_from_url(f"{source.url}?{sign.blob_token(filled, 'old', 'w')}")
    assert (caught.value.status_code, caught.value.error_code) == (403, "CannotVerifyCopySource")


def test_blocks_from_a_signed_url(filled, sign):
    source = f"{filled.get_blob_client('old').url}?{sign.blob_token(filled, 'old', 'r')}"
    blob = filled.get_blob_client("new")
    blob.stage_block_from_url("1", source, source_offset=0, source_length=4)
    blob.commit_block_list([BlobBlock("1")])
    assert content(blob) == b"cont"


def test_a_batch_with_an_account_sas(filled, sign):
    filled.upload_blob("a", b"x")
    answers = sign.account("rwd").get_container_client(filled.container_name).delete_blobs("a", "old")
    assert [answer.status_code for answer in answers] == [202, 202]
