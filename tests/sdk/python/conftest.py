"""Fixtures: service clients in both flavours, and a fresh table, queue or container for each test."""

import os
import uuid

import pytest

from flavours import AsyncFlavour, SyncFlavour

pytest.register_assert_rewrite("blob_support")


@pytest.fixture(scope="session")
def connection_string():
    value = os.environ.get("LAZULITE_CONNECTION_STRING")
    if not value:
        pytest.exit("LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it", 2)
    return value


@pytest.fixture(scope="session")
def settings(connection_string):
    """The connection string's values by name."""
    return dict(part.split("=", 1) for part in connection_string.split(";") if part)


@pytest.fixture(scope="session", params=[SyncFlavour, AsyncFlavour], ids=lambda flavour: flavour.name)
def flavour(request):
    chosen = request.param()
    yield chosen
    chosen.close()


@pytest.fixture(scope="session")
def service(flavour, connection_string):
    with flavour.service(connection_string) as client:
        yield client


@pytest.fixture
def table_name():
    """A name that no other test uses."""
    return "t" + uuid.uuid4().hex


@pytest.fixture
def table(service, table_name):
    yield service.create_table(table_name)
    service.delete_table(table_name)


@pytest.fixture(scope="session")
def queues(flavour, connection_string):
    with flavour.queues(connection_string) as client:
        yield client


@pytest.fixture
def queue_name():
    """A name that no other test uses."""
    return "q" + uuid.uuid4().hex


@pytest.fixture
def queue(queues, queue_name):
    yield queues.create_queue(queue_name)
    queues.delete_queue(queue_name)


@pytest.fixture(scope="session")
def blobs(flavour, connection_string):
    with flavour.blobs(connection_string) as client:
        yield client


@pytest.fixture
def container_name():
    """A name that no other test uses."""
    return "c" + uuid.uuid4().hex


@pytest.fixture
def container(blobs, container_name):
    yield blobs.create_container(container_name)
    blobs.delete_container(container_name)
