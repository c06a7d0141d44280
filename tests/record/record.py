"""Records the requests that the official Python clients send, for the tests of our own client.

Run it with the environment of the Python suite (`cargo xtask test --only python` makes it):

    target/sdk/python/bin/python tests/record/record.py

It sends nothing: a session answers every request itself. Dates and identifiers are fixed, so a second run writes the
same files unless the clients have changed. `crates/client/tests/recorded.rs` makes the same calls and compares.

To add a call: add a function to the list of its file below, run the script, and add the same call to `recorded.rs`.
"""

import datetime
import importlib.metadata
import io
import json
import pathlib
import uuid

import requests
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.pipeline.transport import RequestsTransport
from azure.data import tables
from azure.data.tables import TableServiceClient, UpdateMode, _base_client, _policies as table_policies
from azure.storage import queue as queues
from azure.storage.queue import QueueServiceClient
from azure.storage.queue._shared import policies as queue_policies

DATE = "Tue, 21 Sep 2021 00:50:22 GMT"
ID = "01234567-89ab-4def-8123-456789abcdef"
QUEUE_VERSION = "2025-11-05"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
SAS = "sv=2019-02-02&ss=tq&srt=sco&sp=rwdlacup&se=2030-01-01T00%3A00%3A00Z&sig=c2lnbmF0dXJl%2B%2F%3D"
OUT = pathlib.Path(__file__).parents[2] / "crates" / "client" / "tests" / "recorded"

uuid.uuid1 = lambda *_: uuid.UUID(ID)
_base_client.uuid4 = lambda: uuid.UUID(ID)
table_policies.format_date_time = lambda _: DATE
queue_policies.format_date_time = lambda _: DATE

ETAG = "W/\"datetime'2021-09-21T00%3A50%3A22.07Z'\""
MESSAGE = (
    "<QueueMessagesList><QueueMessage><MessageId>5974b586-0df3-4e2d-ad0c-18e3892bfca2</MessageId>"
    "<InsertionTime>Tue, 21 Sep 2021 00:50:22 GMT</InsertionTime><ExpirationTime>Tue, 28 Sep 2021 00:50:22 GMT</ExpirationTime>"
    "<PopReceipt>pop</PopReceipt><TimeNextVisible>Tue, 21 Sep 2021 00:50:52 GMT</TimeNextVisible>"
    "<DequeueCount>1</DequeueCount><MessageText>hello</MessageText></QueueMessage></QueueMessagesList>"
)
PROPERTIES = (
    "<StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><Cors /></StorageServiceProperties>"
)
STATS = (
    "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Tue, 21 Sep 2021 00:50:22 GMT</LastSyncTime>"
    "</GeoReplication></StorageServiceStats>"
)


class Answering(requests.adapters.BaseAdapter):
    """Keeps each request, and answers with what the call under way has prepared."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.answer = (200, {}, "")

    def send(self, request, **_):
        body = request.body or b""
        if not isinstance(body, (bytes, str)):
            body = body.read()
        self.seen.append({
            "method": request.method,
            "url": request.url,
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "body": body if isinstance(body, str) else body.decode(),
        })
        status, headers, text = self.answer
        response = requests.Response()
        response.status_code = status
        response.headers = requests.structures.CaseInsensitiveDict(headers)
        kind = {"<": "application/xml", "{": "application/json"}.get(text[:1])
        if kind:
            response.headers.setdefault("content-type", kind)
        response.raw = io.BytesIO(text.encode())
        response.url = request.url
        response.request = request
        response.reason = "as recorded"
        return response

    def close(self):
        pass


ADAPTER = Answering()


def transport():
    session = requests.Session()
    session.mount("http://", ADAPTER)
    session.mount("https://", ADAPTER)
    return RequestsTransport(session=session, session_owner=False)


def answers(status=200, headers=None, text=""):
    ADAPTER.answer = (status, headers or {}, text)


KEYED = AzureNamedKeyCredential(ACCOUNT, KEY)
EMULATED = TableServiceClient(f"http://127.0.0.1:10002/{ACCOUNT}", credential=KEYED, transport=transport())
IN_AZURE = TableServiceClient(f"https://{ACCOUNT}.table.core.windows.net", credential=KEYED, transport=transport())
SIGNED = TableServiceClient(
    f"https://{ACCOUNT}.table.core.windows.net", credential=AzureSasCredential(SAS), transport=transport())
PEOPLE = EMULATED.get_table_client("people")
PEOPLE_IN_AZURE = IN_AZURE.get_table_client("people")
QUEUES = QueueServiceClient(
    f"http://127.0.0.1:10001/{ACCOUNT}", credential={"account_name": ACCOUNT, "account_key": KEY},
    transport=transport(), api_version=QUEUE_VERSION)
QUEUES_IN_AZURE = QueueServiceClient(
    f"https://{ACCOUNT}.queue.core.windows.net", credential=KEY, transport=transport(), api_version=QUEUE_VERSION)
QUEUES_SIGNED = QueueServiceClient(
    f"https://{ACCOUNT}.queue.core.windows.net", credential=AzureSasCredential(SAS), transport=transport(),
    api_version=QUEUE_VERSION)
ORDERS = QUEUES.get_queue_client("orders")
NO_TABLES = '{"value":[]}'


def at(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)


# Each function is one call; its name is the name of the recording.

def create_table():
    answers(201, text='{"TableName":"people"}')
    EMULATED.create_table("people")


def create_table_in_azure():
    answers(201, text='{"TableName":"people"}')
    IN_AZURE.create_table("people")


def create_table_with_sas():
    answers(201, text='{"TableName":"people"}')
    SIGNED.create_table("people")


def delete_table():
    answers(204)
    EMULATED.delete_table("people")


def list_tables():
    answers(text=NO_TABLES)
    list(EMULATED.list_tables())


def query_tables():
    answers(text=NO_TABLES)
    list(EMULATED.query_tables("TableName ge 'a b'", results_per_page=7))


def list_tables_resumed():
    answers(text=NO_TABLES)
    list(next(EMULATED.list_tables(results_per_page=7).by_page(continuation_token="1!8!cGVvcGxl")))


def list_tables_with_sas():
    answers(text=NO_TABLES)
    list(SIGNED.list_tables())


def table_properties():
    answers(text=PROPERTIES)
    EMULATED.get_service_properties()


def table_properties_in_azure():
    answers(text=PROPERTIES)
    IN_AZURE.get_service_properties()


def set_table_properties():
    answers(202)
    EMULATED.set_service_properties(
        analytics_logging=tables.TableAnalyticsLogging(
            read=True, write=False, delete=True,
            retention_policy=tables.TableRetentionPolicy(enabled=True, days=5)),
        hour_metrics=tables.TableMetrics(
            enabled=True, include_apis=True, retention_policy=tables.TableRetentionPolicy(enabled=True, days=7)),
        minute_metrics=tables.TableMetrics(
            enabled=False, retention_policy=tables.TableRetentionPolicy(enabled=False)),
        cors=[tables.TableCorsRule(
            ["https://a.example", "https://b.example"], ["GET", "PUT"], max_age_in_seconds=500,
            exposed_headers=["x-ms-meta-*"], allowed_headers=["x-ms-*"])])


def table_stats():
    answers(text=STATS)
    IN_AZURE.get_service_stats()


def table_policies_():
    answers(text="<SignedIdentifiers />")
    PEOPLE.get_table_access_policy()


def set_table_policies():
    answers(204)
    PEOPLE.set_table_access_policy({
        "readers": tables.TableAccessPolicy(
            start=at("2021-01-01T00:00:00"), expiry=at("2030-01-01T00:00:00"), permission="r"),
    })


def queue_properties():
    answers(text=PROPERTIES)
    QUEUES.get_service_properties()


def queue_properties_in_azure():
    answers(text=PROPERTIES)
    QUEUES_IN_AZURE.get_service_properties()


def set_queue_properties():
    answers(202)
    QUEUES.set_service_properties(
        hour_metrics=queues.Metrics(
            enabled=True, include_apis=True, retention_policy=queues.RetentionPolicy(enabled=True, days=7)),
        cors=[queues.CorsRule(
            ["https://a.example"], ["GET"], max_age_in_seconds=5, exposed_headers=["a"], allowed_headers=["b"])])


def queue_stats():
    answers(text=STATS)
    QUEUES_IN_AZURE.get_service_stats()


def list_queues():
    answers(text='<EnumerationResults><Queues /><NextMarker /></EnumerationResults>')
    list(QUEUES.list_queues(name_starts_with="or", include_metadata=True, results_per_page=9))


def create_queue():
    answers(201)
    # Without metadata: this client then sends them a second time, in a header `x-ms-meta`, by mistake.
    QUEUES.create_queue("orders")


def create_queue_with_sas():
    answers(201)
    QUEUES_SIGNED.create_queue("orders")


def delete_queue():
    answers(204)
    QUEUES.delete_queue("orders")


def queue_metadata():
    answers(headers={"x-ms-approximate-messages-count": "3"})
    ORDERS.get_queue_properties()


def set_queue_metadata():
    answers(204)
    # These names sort differently by their bytes than in the order that the service signs.
    ORDERS.set_queue_metadata({"colour": "red", "a_b": "1", "a1": "2"})


def queue_policies_():
    answers(text="<SignedIdentifiers />")
    ORDERS.get_queue_access_policy()


def set_queue_policies():
    answers(204)
    ORDERS.set_queue_access_policy({
        "readers": queues.AccessPolicy(
            start=at("2021-01-01T00:00:00"), expiry=at("2030-01-01T00:00:00"), permission="r"),
    })


def send_message():
    answers(201, text=MESSAGE)
    ORDERS.send_message("<hello> & ö", visibility_timeout=5, time_to_live=60)


def receive_messages():
    answers(text=MESSAGE)
    list(next(ORDERS.receive_messages(messages_per_page=4, visibility_timeout=30).by_page()))


def peek_messages():
    answers(text=MESSAGE)
    ORDERS.peek_messages(max_messages=4)


def update_message():
    answers(204, {"x-ms-popreceipt": "pop2", "x-ms-time-next-visible": DATE})
    ORDERS.update_message(
        "5974b586-0df3-4e2d-ad0c-18e3892bfca2", pop_receipt="AgAA+/ pop=", content="again", visibility_timeout=9)


def delete_message():
    answers(204)
    ORDERS.delete_message("5974b586-0df3-4e2d-ad0c-18e3892bfca2", pop_receipt="AgAA+/ pop=")


def clear_messages():
    answers(204)
    ORDERS.clear_messages()


ADA = {
    "PartitionKey": "it's",
    "RowKey": "a b+ö%",
    "Name": "Ada",
    "Age": 36,
    "Score": 1.5,
    "Active": True,
    "Visits": (2**40, tables.EdmType.INT64),
    "Seen": at("2021-09-21T00:50:22"),
    "Badge": uuid.UUID(ID),
    "Photo": b"\x00\x01\xfe",
}
SMALL = {"PartitionKey": "p", "RowKey": "r", "Name": "Ada"}


def insert_entity():
    answers(204, {"etag": ETAG})
    PEOPLE.create_entity(ADA)


def insert_entity_in_azure():
    answers(204, {"etag": ETAG})
    PEOPLE_IN_AZURE.create_entity(SMALL)


def get_entity():
    answers(text='{"PartitionKey":"p","RowKey":"r"}')
    PEOPLE.get_entity("p", "r")


def get_entity_with_escapes():
    answers(text='{"PartitionKey":"p","RowKey":"r"}')
    PEOPLE.get_entity("it's", "a b(ö)%+&=,;:@!$*~.", select=["Name", "Age"])


def query_entities():
    answers(text=NO_TABLES)
    list(PEOPLE.query_entities("PartitionKey eq 'it''s' and Age gt 5", select=["Name", "Age"], results_per_page=3))


def query_entities_resumed():
    answers(text=NO_TABLES)
    token = {"PartitionKey": "1!4!cCAx", "RowKey": "1!4!cis-"}
    list(next(PEOPLE.list_entities().by_page(continuation_token=token)))


def upsert_replace():
    answers(204, {"etag": ETAG})
    PEOPLE.upsert_entity(SMALL, mode=UpdateMode.REPLACE)


def upsert_merge():
    answers(204, {"etag": ETAG})
    PEOPLE.upsert_entity(SMALL, mode=UpdateMode.MERGE)


def replace_if_match():
    answers(204, {"etag": ETAG})
    PEOPLE.update_entity(
        SMALL, mode=UpdateMode.REPLACE, etag=ETAG, match_condition=MatchConditions.IfNotModified)


def merge_any():
    answers(204, {"etag": ETAG})
    PEOPLE.update_entity(SMALL, mode=UpdateMode.MERGE)


def delete_if_match():
    answers(204)
    PEOPLE.delete_entity("p", "r", etag=ETAG, match_condition=MatchConditions.IfNotModified)


def delete_any():
    answers(204)
    PEOPLE.delete_entity("p", "r")


def transaction():
    part = "HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n"
    parts = "".join(
        f"--inner\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{part}\r\n"
        for _ in range(6))
    body = f"--outer\r\nContent-Type: multipart/mixed; boundary=inner\r\n\r\n{parts}--inner--\r\n--outer--\r\n"
    answers(202, {"content-type": "multipart/mixed; boundary=outer"}, body)
    keys = [dict(SMALL, RowKey=f"r{number}") for number in range(6)]
    PEOPLE.submit_transaction([
        ("create", keys[0]),
        ("upsert", keys[1], {"mode": "replace"}),
        ("upsert", keys[2], {"mode": "merge"}),
        ("update", keys[3], {"mode": "replace", "etag": ETAG, "match_condition": MatchConditions.IfNotModified}),
        ("update", keys[4], {"mode": "merge"}),
        ("delete", keys[5]),
    ])


FILES = {
    "tables": [
        create_table, create_table_in_azure, create_table_with_sas, delete_table, list_tables, query_tables,
        list_tables_resumed, list_tables_with_sas, table_properties, table_properties_in_azure,
        set_table_properties, table_stats, table_policies_, set_table_policies,
    ],
    "queues": [
        queue_properties, queue_properties_in_azure, set_queue_properties, queue_stats, list_queues, create_queue,
        create_queue_with_sas, delete_queue, queue_metadata, set_queue_metadata, queue_policies_,
        set_queue_policies,
    ],
    "messages": [send_message, receive_messages, peek_messages, update_message, delete_message, clear_messages],
    "entities": [
        insert_entity, insert_entity_in_azure, get_entity, get_entity_with_escapes, query_entities,
        query_entities_resumed, upsert_replace, upsert_merge, replace_if_match, merge_any, delete_if_match,
        delete_any, transaction,
    ],
}


def record(call):
    ADAPTER.seen.clear()
    call()
    # Only the first request counts: a call may go on to a second page.
    return {"name": call.__name__.rstrip("_"), "answer": dict(zip(("status", "headers", "body"), ADAPTER.answer)),
            **ADAPTER.seen[0]}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, calls in FILES.items():
        package = "azure-data-tables" if name in ("tables", "entities") else "azure-storage-queue"
        document = {
            "sdk": f"{package} {importlib.metadata.version(package)}",
            "date": DATE,
            "id": ID,
            "calls": [record(call) for call in calls],
        }
        (OUT / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
