"""Counts what the clients send and receive, request by request, retries included.

The transport is the last thing before the wire, below the retries. Each step of a load says which operation it asks
for; everything else is taken from the requests and answers themselves.
"""

import json
import re
from collections import Counter
from contextlib import contextmanager

from azure.core.pipeline.transport import AioHttpTransport, RequestsTransport


class Traffic:
    def __init__(self):
        self.requests = Counter()  # by service, operation, status and error code
        self.received = Counter()  # bytes that the server received, by service and operation
        self.sent = Counter()
        self._step = None

    @contextmanager
    def of(self, operation, refused_part=""):
        """Everything inside is this operation. `refused_part`: the code inside a batch, which is a success outside."""
        self._step = (operation, refused_part)
        yield
        self._step = None

    def transport(self, flavour, service):
        kind = {"sync": CountingTransport, "aio": AsyncCountingTransport}[flavour.name]
        return kind(self, service)

    def count(self, service, request, status, body):
        assert self._step, f"a request outside any step: {request.method} {request.url}"
        operation, refused_part = self._step
        error = code_in(body) if status >= 400 else refused_part
        self.requests[service, operation, str(status), error] += 1
        self.received[service, operation] += len(bytes_of(request))
        self.sent[service, operation] += len(body)

    def by_operation(self):
        counts = Counter()
        for (service, operation, _, _), count in self.requests.items():
            counts[service, operation] += count
        return counts


def bytes_of(request):
    data = request.data or b""
    return data.encode() if isinstance(data, str) else data


def code_in(body):
    """The code of an error, which is JSON from one service and XML from the other."""
    text = body.decode("utf-8-sig")
    if text.startswith("{"):
        return json.loads(text)["odata.error"]["code"]
    return re.search("<(?:m:)?[Cc]ode>(.*?)</", text)[1]


class CountingTransport(RequestsTransport):
    def __init__(self, traffic, service):
        super().__init__()
        self.traffic, self.service = traffic, service

    def send(self, request, **options):
        response = super().send(request, **options)
        self.traffic.count(self.service, request, response.status_code, response.read())
        return response


class AsyncCountingTransport(AioHttpTransport):
    def __init__(self, traffic, service):
        super().__init__()
        self.traffic, self.service = traffic, service

    async def send(self, request, **options):
        response = await super().send(request, **options)
        body = response.content if response.is_stream_consumed else await response.read()
        self.traffic.count(self.service, request, response.status_code, body)
        return response
