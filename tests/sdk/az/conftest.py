"""Fixtures: the command line with a key or a signature, and a fresh table, queue or container for each test."""

import uuid

import pytest

from commands import CONNECTION_STRING, Refused, load, run


@pytest.fixture(scope="session")
def az():
    """Runs `az storage …` with the account's key."""
    if not CONNECTION_STRING:
        pytest.exit("LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask conformance` sets it", 2)
    load()
    return lambda *arguments: run(*arguments, AZURE_STORAGE_CONNECTION_STRING=CONNECTION_STRING)


@pytest.fixture(scope="session")
def az_with_sas():
    """Runs `az storage …` for tables with a signature as the only credential."""
    return with_sas("Table")


@pytest.fixture(scope="session")
def az_with_queue_sas():
    """The same for queues."""
    return with_sas("Queue")


@pytest.fixture(scope="session")
def az_with_blob_sas():
    """The same for blobs."""
    return with_sas("Blob")


def with_sas(service):
    settings = dict(part.split("=", 1) for part in CONNECTION_STRING.split(";") if part)
    endpoint, account = settings[f"{service}Endpoint"], settings["AccountName"]
    option = f"--{service.lower()}-endpoint"
    return lambda token, *arguments: run(
        *arguments, option, endpoint, "--account-name", account, "--sas-token", token
    )


@pytest.fixture
def queue_name():
    """A name that no other test uses."""
    return "q" + uuid.uuid4().hex


@pytest.fixture
def queue(az, queue_name):
    assert az("queue", "create", "--name", queue_name) == {"created": True}
    return queue_name


@pytest.fixture
def container_name():
    """A name that no other test uses."""
    return "c" + uuid.uuid4().hex


@pytest.fixture
def container(az, container_name):
    assert az("container", "create", "--name", container_name) == {"created": True}
    return container_name


@pytest.fixture
def table_name():
    """A name that no other test uses."""
    return "t" + uuid.uuid4().hex


@pytest.fixture
def table(az, table_name):
    assert az("table", "create", "--name", table_name) == {"created": True}
    return table_name


@pytest.fixture
def refused():
    """Expects a command to fail with a message that contains these words."""

    def expect(words, command, *arguments):
        with pytest.raises(Refused) as caught:
            command(*arguments)
        assert words in caught.value.text
        return caught.value.status

    return expect


@pytest.fixture
def entity(az, table):
    """Commands on entities of the test's table."""

    class Entity:
        def insert(self, *pairs, row="r", **options):
            extra = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
            keys = ("PartitionKey=p", f"RowKey={row}")
            return az("entity", "insert", "--table-name", table, "--entity", *keys, *pairs, *extra)

        def change(self, verb, *pairs, row="r"):
            keys = ("PartitionKey=p", f"RowKey={row}")
            return az("entity", verb, "--table-name", table, "--entity", *keys, *pairs)

        def show(self, row="r", partition="p", select=()):
            chosen = ("--select", *select) if select else ()
            command = ("entity", "show", "--table-name", table, "--partition-key", partition, "--row-key", row)
            return az(*command, *chosen)

        def values(self, row="r"):
            """An entity's properties, without keys and the server's additions."""
            added = ("PartitionKey", "RowKey", "Timestamp", "etag")
            return {name: value for name, value in self.show(row).items() if name not in added}

        def delete(self, row="r"):
            command = ("entity", "delete", "--table-name", table, "--partition-key", "p", "--row-key", row)
            return az(*command)

        def query(self, *options):
            return az("entity", "query", "--table-name", table, *options)

        def rows(self, filter):
            return "".join(found["RowKey"] for found in self.query("--filter", filter)["items"])

    return Entity()
