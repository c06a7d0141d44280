"""Shared access signatures for queues from the SDK's own generators: what each field allows and refuses."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.queue import AccessPolicy, ResourceTypes, generate_account_sas, generate_queue_sas

HOUR = timedelta(hours=1)
EVERYTHING = ResourceTypes(service=True, container=True, object=True)
PERMISSION = "AuthorizationPermissionMismatch"
RESOURCE_TYPE = "AuthorizationResourceTypeMismatch"
SCOPE = "AuthorizationFailure"
SIGNATURE = "AuthenticationFailed"


def now():
    return datetime.now(timezone.utc)


class Signer:
    """Clients whose only credential is a signature."""

    def __init__(self, flavour, settings):
        self.flavour = flavour
        self.endpoint = settings["QueueEndpoint"]
        self.name = settings["AccountName"]
        self.key = settings["AccountKey"]
        self.clients = []

    def holder(self, token):
        client = self.flavour.queues_at(self.endpoint, AzureSasCredential(token))
        self.clients.append(client.__enter__())
        return self.clients[-1]

    def account(self, permission="rwdlacup", types=EVERYTHING, **options):
        options = {"expiry": now() + HOUR, **options}
        return self.holder(generate_account_sas(self.name, self.key, types, permission, **options))

    def queue(self, queue, permission="raup", **options):
        options = {"expiry": now() + HOUR, "permission": permission, **options}
        name = options.pop("signed_name", queue.queue_name)
        token = generate_queue_sas(
            self.name, name, self.key, **{key: value for key, value in options.items() if value is not None}
        )
        return self.holder(token).get_queue_client(queue.queue_name)

    def close(self):
        for client in self.clients:
            client.__exit__(None, None, None)


@pytest.fixture
def sign(flavour, settings):
    signer = Signer(flavour, settings)
    yield signer
    signer.close()


def assert_refused(call, code, status=403):
    with pytest.raises(HttpResponseError) as caught:
        call()
    assert (caught.value.status_code, caught.value.error_code) == (status, code)
    if code == SIGNATURE:
        assert isinstance(caught.value, ClientAuthenticationError)


@pytest.fixture
def filled(queue):
    """A queue with three messages. The first is taken, so that it can be updated and deleted."""
    for text in ("taken", "one", "two"):
        queue.send_message(text)
    return queue, queue.receive_message()


# Each verb on messages, with the permission letter it needs.
MESSAGE_VERBS = {
    "properties": ("r", lambda queue, taken: queue.get_queue_properties().approximate_message_count == 3),
    "peek": ("r", lambda queue, taken: queue.peek_messages()[0].content == "one"),
    "send": ("a", lambda queue, taken: queue.send_message("new").id),
    "update": ("u", lambda queue, taken: queue.update_message(taken, visibility_timeout=0).pop_receipt),
    "receive": ("p", lambda queue, taken: queue.receive_message().content == "one"),
    "delete": ("p", lambda queue, taken: queue.delete_message(taken) is None),
}


@pytest.mark.parametrize("granted", ["r", "a", "u", "p", "raup"])
@pytest.mark.parametrize("verb", MESSAGE_VERBS)
def test_queue_sas_sp_allows_its_verbs_and_no_others(filled, sign, verb, granted):
    queue, taken = filled
    needed, call = MESSAGE_VERBS[verb]
    client = sign.queue(queue, granted)
    if needed in granted:
        assert call(client, taken)
    else:
        assert_refused(lambda: call(client, taken), PERMISSION)


def create(service, name):
    service.create_queue(name)
    return True


# Each operation: it needs the resource type and any one of the letters of an account SAS.
ACCOUNT_VERBS = {
    "list queues": ("s", "l", lambda service, queue, taken: list(service.list_queues())),
    "get properties": ("s", "r", lambda service, queue, taken: service.get_service_properties()),
    "set properties": ("s", "w", lambda service, queue, taken: service.set_service_properties(cors=[]) is None),
    "create": ("c", "cw", lambda service, queue, taken: create(service, queue.queue_name + "-new")),
    "get metadata": ("c", "r", lambda service, queue, taken: queue.get_queue_properties().name),
    "set metadata": ("c", "w", lambda service, queue, taken: queue.set_queue_metadata({"a": "b"})),
    "send": ("o", "a", lambda service, queue, taken: queue.send_message("new").id),
    "peek": ("o", "r", lambda service, queue, taken: queue.peek_messages()),
    "receive": ("o", "p", lambda service, queue, taken: queue.receive_message()),
    "update": ("o", "u", lambda service, queue, taken: queue.update_message(taken, visibility_timeout=0)),
    "delete message": ("o", "p", lambda service, queue, taken: queue.delete_message(taken) is None),
    "clear": ("o", "d", lambda service, queue, taken: queue.clear_messages() is None),
}


@pytest.mark.parametrize("granted", list("rwdlacup"))
@pytest.mark.parametrize("verb", ACCOUNT_VERBS)
def test_account_sas_sp_allows_its_verbs_and_no_others(filled, sign, verb, granted):
    queue, taken = filled
    _, needed, call = ACCOUNT_VERBS[verb]
    client = sign.account(granted)
    mine = client.get_queue_client(queue.queue_name)
    if granted in needed:
        assert call(client, mine, taken)
    else:
        assert_refused(lambda: call(client, mine, taken), PERMISSION)


@pytest.mark.parametrize("letter", ["s", "c", "o"])
@pytest.mark.parametrize("verb", ACCOUNT_VERBS)
def test_account_sas_srt_names_the_resources(filled, sign, verb, letter):
    queue, taken = filled
    needed, _, call = ACCOUNT_VERBS[verb]
    client = sign.account(types=ResourceTypes.from_string(letter))
    mine = client.get_queue_client(queue.queue_name)
    if letter == needed:
        assert call(client, mine, taken)
    else:
        assert_refused(lambda: call(client, mine, taken), RESOURCE_TYPE)


def test_account_sas_deletes_a_queue_with_d_and_c(queues, queue_name, sign):
    queues.create_queue(queue_name)
    assert_refused(lambda: sign.account("rwlacup").delete_queue(queue_name), PERMISSION)
    assert_refused(lambda: sign.account("d", ResourceTypes(object=True)).delete_queue(queue_name), RESOURCE_TYPE)
    sign.account("d", ResourceTypes(container=True)).delete_queue(queue_name)
    assert list(queues.list_queues(name_starts_with=queue_name)) == []


def test_account_sas_ss_must_name_queues(queue, sign):
    from azure.storage.queue._shared.shared_access_signature import SharedAccessSignature

    queue.send_message("text")
    # The generator signs for queues only; the class behind it can sign for any service.
    signer = SharedAccessSignature(sign.name, account_key=sign.key)
    for services, allowed in (("b", False), ("bf", False), ("q", True), ("bqf", True)):
        token = signer.generate_account(services, EVERYTHING, "r", now() + HOUR)
        client = sign.holder(token).get_queue_client(queue.queue_name)
        if allowed:
            assert client.peek_messages()[0].content == "text"
        else:
            assert_refused(client.peek_messages, "AuthorizationServiceMismatch")


BOTH_KINDS = pytest.mark.parametrize("kind", ["account", "queue"])


def reader(sign, kind, queue, **options):
    if kind == "account":
        return sign.account("r", **options).get_queue_client(queue.queue_name)
    return sign.queue(queue, "r", **options)


@BOTH_KINDS
def test_st_opens_the_signature(queue, sign, kind):
    assert reader(sign, kind, queue, start=now() - HOUR).peek_messages() == []
    early = reader(sign, kind, queue, start=now() + HOUR, expiry=now() + 2 * HOUR)
    assert_refused(early.peek_messages, SIGNATURE)


@BOTH_KINDS
def test_se_closes_the_signature(queue, sign, kind):
    expired = reader(sign, kind, queue, expiry=now() - HOUR)
    assert_refused(expired.peek_messages, SIGNATURE)
    assert_refused(expired.get_queue_properties, SIGNATURE)


@BOTH_KINDS
@pytest.mark.parametrize("text", ["2099-01-01", "2099-01-01T10:00Z", "2099-01-01T10:00:00Z"])
def test_times_may_be_shorter(queue, sign, kind, text):
    assert reader(sign, kind, queue, expiry=text).peek_messages() == []


@BOTH_KINDS
def test_sip_names_the_address_or_the_range(queue, sign, kind):
    for good in ("127.0.0.1", "127.0.0.0-127.0.0.255"):
        assert reader(sign, kind, queue, ip=good).peek_messages() == []
    for bad in ("10.0.0.1", "127.0.0.2-127.0.0.255"):
        assert_refused(reader(sign, kind, queue, ip=bad).peek_messages, "AuthorizationSourceIPMismatch")


@BOTH_KINDS
def test_spr_names_the_protocols(queue, sign, kind):
    assert reader(sign, kind, queue, protocol="https,http").peek_messages() == []
    assert_refused(reader(sign, kind, queue, protocol="https").peek_messages, "AuthorizationProtocolMismatch")


@BOTH_KINDS
def test_a_signature_of_another_key_is_refused(queue, sign, kind):
    sign.key = "d3Jvbmc="
    assert_refused(reader(sign, kind, queue).peek_messages, SIGNATURE)


def test_a_field_that_was_changed_after_signing_is_refused(queue, sign):
    token = generate_queue_sas(sign.name, queue.queue_name, sign.key, permission="r", expiry=now() + HOUR)
    client = sign.holder(token.replace("sp=r", "sp=raup")).get_queue_client(queue.queue_name)
    assert_refused(lambda: client.send_message("text"), SIGNATURE)
    assert queue.peek_messages() == []


def test_a_signature_of_another_queue_is_refused(queue, sign):
    client = sign.queue(queue, "raup", signed_name="another")
    assert_refused(client.peek_messages, SIGNATURE)
    assert_refused(lambda: client.send_message("text"), SIGNATURE)


def test_a_wrong_account_key_is_refused(flavour, settings, queue):
    key = {"account_name": settings["AccountName"], "account_key": "d3Jvbmc="}
    with flavour.queues_at(settings["QueueEndpoint"], key) as client:
        assert_refused(client.get_queue_client(queue.queue_name).peek_messages, SIGNATURE)


def test_a_queue_sas_is_for_messages_only(queue, sign):
    token = generate_queue_sas(sign.name, queue.queue_name, sign.key, permission="raup", expiry=now() + HOUR)
    service = sign.holder(token)
    mine = service.get_queue_client(queue.queue_name)
    for call in (
        mine.create_queue,
        mine.delete_queue,
        mine.clear_messages,
        mine.get_queue_access_policy,
        lambda: mine.set_queue_access_policy({}),
        lambda: mine.set_queue_metadata({"a": "b"}),
    ):
        assert_refused(call, SCOPE)


def test_an_account_sas_is_not_for_access_policies(queue, sign):
    client = sign.account().get_queue_client(queue.queue_name)
    assert_refused(client.get_queue_access_policy, SCOPE)
    assert_refused(lambda: client.set_queue_access_policy({}), SCOPE)


def policy(**fields):
    return {"worker": AccessPolicy(**fields)}


def with_policy(sign, queue, permission=None, expiry=None, start=None):
    return sign.queue(queue, permission, expiry=expiry, start=start, policy_id="worker")


def test_si_takes_times_and_letters_from_the_policy(queue, sign):
    queue.set_queue_access_policy(policy(start=now() - HOUR, expiry=now() + HOUR, permission="r"))
    client = with_policy(sign, queue)
    assert client.peek_messages() == []
    assert_refused(lambda: client.send_message("text"), PERMISSION)


def test_si_and_the_token_complete_each_other(queue, sign):
    queue.set_queue_access_policy(policy(permission="r"))
    assert with_policy(sign, queue, expiry=now() + HOUR).peek_messages() == []
    assert_refused(with_policy(sign, queue).peek_messages, SIGNATURE)
    queue.set_queue_access_policy(policy(expiry=now() + HOUR))
    assert with_policy(sign, queue, permission="r").peek_messages() == []
    assert_refused(with_policy(sign, queue).peek_messages, SIGNATURE)


def test_si_that_is_not_there_is_refused(queue, sign):
    client = with_policy(sign, queue, permission="r", expiry=now() + HOUR)
    assert_refused(client.peek_messages, SIGNATURE)


def test_changing_the_policy_changes_the_tokens_that_name_it(queue, sign):
    queue.set_queue_access_policy(policy(expiry=now() + HOUR, permission="r"))
    client = with_policy(sign, queue)
    assert client.peek_messages() == []
    queue.set_queue_access_policy(policy(expiry=now() + HOUR, permission="a"))
    assert_refused(client.peek_messages, PERMISSION)
    client.send_message("text")
    queue.set_queue_access_policy(policy(expiry=now() - HOUR, permission="a"))
    assert_refused(lambda: client.send_message("text"), SIGNATURE)
    queue.set_queue_access_policy({})
    assert_refused(lambda: client.send_message("text"), SIGNATURE)
