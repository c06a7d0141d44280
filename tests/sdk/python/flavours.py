"""The two clients of each SDK behind one interface.

Every test takes its clients from the fixtures in conftest.py and runs twice: with the synchronous client as it is,
and with the asyncio client (aiohttp) driven from synchronous code by the wrappers here. The wrappers only wait
for results; they change neither arguments nor results.
"""

import asyncio
import inspect

from azure.core.async_paging import AsyncItemPaged
from azure.data.tables import TableServiceClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient
from azure.storage.blob import BlobLeaseClient, BlobServiceClient
from azure.storage.blob.aio import BlobClient as AsyncBlobClient
from azure.storage.blob.aio import BlobLeaseClient as AsyncBlobLeaseClient
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient
from azure.storage.blob.aio import ContainerClient as AsyncContainerClient
from azure.storage.blob.aio import StorageStreamDownloader as AsyncDownloader
from azure.storage.queue import QueueServiceClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient
from azure.storage.queue.aio import QueueServiceClient as AsyncQueueServiceClient

# No retries: they would hide exactly the answers that these tests look for.
CLIENT_OPTIONS = {"retry_total": 0}


class SyncFlavour:
    name = "sync"

    def service(self, connection_string, **options):
        return TableServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS, **options)

    def service_at(self, endpoint, credential, **options):
        return TableServiceClient(endpoint, credential=credential, **{**CLIENT_OPTIONS, **options})

    def queues(self, connection_string, **options):
        return QueueServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS, **options)

    def queues_at(self, endpoint, credential, **options):
        return QueueServiceClient(endpoint, credential=credential, **CLIENT_OPTIONS, **options)

    def blobs(self, connection_string, **options):
        return BlobServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS, **options)

    def blobs_at(self, endpoint, credential=None, **options):
        return BlobServiceClient(endpoint, credential=credential, **CLIENT_OPTIONS, **options)

    def lease(self, client, lease_id):
        return BlobLeaseClient(client, lease_id=lease_id)

    def close(self):
        pass


class AsyncFlavour:
    name = "aio"

    def __init__(self):
        self.loop = asyncio.new_event_loop()

    def service(self, connection_string, **options):
        client = AsyncTableServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS, **options)
        return Waiting(client, self.loop)

    def service_at(self, endpoint, credential, **options):
        client = AsyncTableServiceClient(endpoint, credential=credential, **{**CLIENT_OPTIONS, **options})
        return Waiting(client, self.loop)

    def queues(self, connection_string, **options):
        client = AsyncQueueServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS, **options)
        return Waiting(client, self.loop)

    def queues_at(self, endpoint, credential, **options):
        client = AsyncQueueServiceClient(endpoint, credential=credential, **CLIENT_OPTIONS, **options)
        return Waiting(client, self.loop)

    def blobs(self, connection_string, **options):
        client = AsyncBlobServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS, **options)
        return Waiting(client, self.loop)

    def blobs_at(self, endpoint, credential=None, **options):
        client = AsyncBlobServiceClient(endpoint, credential=credential, **CLIENT_OPTIONS, **options)
        return Waiting(client, self.loop)

    def lease(self, client, lease_id):
        return Waiting(AsyncBlobLeaseClient(inside(client), lease_id=lease_id), self.loop)

    def close(self):
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


# What the asyncio clients hand out that has calls of its own to wait for.
CLIENTS = (
    AsyncTableClient,
    AsyncQueueClient,
    AsyncBlobClient,
    AsyncContainerClient,
    AsyncBlobLeaseClient,
    AsyncDownloader,
)


class Waiting:
    """An asyncio client whose calls wait for their result."""

    def __init__(self, client, loop):
        self._client = client
        self._loop = loop

    def __enter__(self):
        self._loop.run_until_complete(self._client.__aenter__())
        return self

    def __exit__(self, *exception):
        self._loop.run_until_complete(self._client.__aexit__(*exception))

    def __getattr__(self, name):
        member = getattr(self._client, name)
        if not callable(member):
            return member

        def call(*arguments, **options):
            # A client that is an argument is handed on as it is.
            options = {name: inside(value) for name, value in options.items()}
            result = member(*map(inside, arguments), **options)
            if inspect.isawaitable(result):
                result = self._loop.run_until_complete(result)
            if isinstance(result, AsyncItemPaged) or hasattr(result, "__anext__"):
                return WaitingItems(result, self._loop)
            if isinstance(result, CLIENTS):
                return Waiting(result, self._loop)
            return result

        return call


def inside(value):
    return value._client if isinstance(value, Waiting) else value


class WaitingItems:
    """An asynchronous listing as an ordinary iterator."""

    def __init__(self, iterator, loop):
        self._iterator = iterator
        self._loop = loop

    def __iter__(self):
        return self

    def __next__(self):
        try:
            item = self._loop.run_until_complete(self._iterator.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
        if hasattr(item, "__anext__"):  # a page
            return WaitingItems(item, self._loop)
        return item

    def __getattr__(self, name):
        return getattr(self._iterator, name)

    def by_page(self, continuation_token=None):
        return WaitingItems(self._iterator.by_page(continuation_token), self._loop)

    @property
    def continuation_token(self):
        return self._iterator.continuation_token
