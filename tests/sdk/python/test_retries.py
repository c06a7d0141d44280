"""Retries: the client's own policy copes with a busy server; a retry sees what it would see with the live service."""

import http.client
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import urlsplit

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

BUSY = b'{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"The server is busy.\\nRequestId:0"}}}'
# Headers that belong to a connection, not to a request.
NOT_FORWARDED = {"host", "connection", "transfer-encoding", "content-length"}


class BusyServer:
    """The server under test behind a proxy that answers 503 to the first `times` requests. With `lost`, the proxy
    passes those on first: the server does the work, but the client does not learn of it."""

    def __init__(self, target, times, lost):
        self.requests = 0
        self.lock = Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self):
                with outer.lock:
                    outer.requests += 1
                    busy = outer.requests <= times
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if busy and not lost:
                    return self.answer(503, {"Content-Type": "application/json"}, BUSY)
                upstream = http.client.HTTPConnection(target, timeout=30)
                headers = {name: value for name, value in self.headers.items() if name.lower() not in NOT_FORWARDED}
                upstream.request(self.command, self.path, body or None, headers)
                response = upstream.getresponse()
                content = response.read()
                upstream.close()
                if busy:
                    return self.answer(503, {"Content-Type": "application/json"}, BUSY)
                return self.answer(response.status, dict(response.getheaders()), content)

            def answer(self, status, headers, body):
                self.send_response_only(status)
                for name, value in headers.items():
                    if name.lower() not in NOT_FORWARDED:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_MERGE = do_DELETE = handle_one

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        Thread(target=self.server.serve_forever, daemon=True).start()
        self.authority = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def behind_busy_server(flavour, settings, table):
    opened = []

    def client(times, lost=False):
        target = urlsplit(settings["TableEndpoint"])
        stub = BusyServer(target.netloc, times, lost)
        key = AzureNamedKeyCredential(settings["AccountName"], settings["AccountKey"])
        service = flavour.service_at(
            f"http://{stub.authority}{target.path}", key, retry_total=2, retry_backoff_factor=0.001
        ).__enter__()
        opened.append((service, stub))
        return service.get_table_client(table.table_name), stub

    yield client
    for service, stub in opened:
        service.__exit__(None, None, None)
        stub.server.shutdown()
        stub.server.server_close()


def entity(row="r", **properties):
    return {"PartitionKey": "p", "RowKey": row, **properties}


def test_an_insert_is_retried_when_the_server_is_busy(table, behind_busy_server):
    client, stub = behind_busy_server(1)
    answer = client.create_entity(entity(n=1))
    assert stub.requests == 2
    found = table.get_entity("p", "r")
    assert found["n"] == 1 and found.metadata["etag"] == answer["etag"]


def test_a_transaction_is_retried_when_the_server_is_busy(table, behind_busy_server):
    client, stub = behind_busy_server(2)
    assert len(client.submit_transaction([("create", entity("a")), ("create", entity("b"))])) == 2
    assert stub.requests == 3
    assert [row["RowKey"] for row in table.list_entities()] == ["a", "b"]


def test_a_listing_is_retried_when_the_server_is_busy(table, behind_busy_server):
    table.create_entity(entity(n=1))
    client, stub = behind_busy_server(1)
    assert [row["n"] for row in client.list_entities()] == [1]
    assert stub.requests == 2


def test_a_server_that_stays_busy_is_reported(behind_busy_server):
    client, stub = behind_busy_server(100)
    with pytest.raises(HttpResponseError) as caught:
        client.get_entity("p", "r")
    assert caught.value.status_code == 503
    assert "ServerBusy" in str(caught.value)
    assert stub.requests == 3


def test_a_retried_insert_whose_first_answer_was_lost_is_a_conflict(table, behind_busy_server):
    client, stub = behind_busy_server(1, lost=True)
    with pytest.raises(ResourceExistsError) as caught:
        client.create_entity(entity(n=1))
    assert "EntityAlreadyExists" in str(caught.value)
    assert stub.requests == 2
    assert table.get_entity("p", "r")["n"] == 1


def test_a_retried_upsert_whose_first_answer_was_lost_succeeds(table, behind_busy_server):
    client, stub = behind_busy_server(1, lost=True)
    answer = client.upsert_entity(entity(n=1))
    assert stub.requests == 2
    assert table.get_entity("p", "r").metadata["etag"] == answer["etag"]


def test_a_refusal_is_not_retried(behind_busy_server):
    client, stub = behind_busy_server(0)
    with pytest.raises(ResourceNotFoundError):
        client.get_entity("p", "missing")
    assert stub.requests == 1
