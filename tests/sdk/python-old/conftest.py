"""Fixtures: the older client in two ways of naming the server, and a fresh table for each test."""

import os
import uuid

import pytest

from azure.cosmosdb.table import TableService
from azure.cosmosdb.table.common.retry import no_retry


@pytest.fixture(scope="session")
def settings():
    """The connection string's values by name."""
    value = os.environ.get("LAZULITE_CONNECTION_STRING")
    if not value:
        pytest.exit("LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it", 2)
    return dict(part.split("=", 1) for part in value.split(";") if part)


@pytest.fixture(scope="session", params=["emulator", "endpoint"])
def connect(request, settings):
    """Makes clients. One that knows the emulator names the account in the parts of a batch; one that only has an
    endpoint names the table alone."""

    def emulator(sas_token=None):
        host = settings["TableEndpoint"].removeprefix("http://").split("/")[0]
        text = f"UseDevelopmentStorage=true;TableEndpoint={host}"
        return TableService(connection_string=text + (f";SharedAccessSignature={sas_token}" if sas_token else ""))

    def endpoint(sas_token=None):
        credential = f"SharedAccessSignature={sas_token}" if sas_token else f"AccountKey={settings['AccountKey']}"
        place = f"AccountName={settings['AccountName']};TableEndpoint={settings['TableEndpoint']}"
        return TableService(connection_string=f"DefaultEndpointsProtocol=http;{place};{credential}")

    def connected(sas_token=None):
        client = (emulator if request.param == "emulator" else endpoint)(sas_token)
        client.retry = no_retry  # Retries would hide exactly the answers that these tests look for.
        return client

    return connected


@pytest.fixture(scope="session")
def service(connect):
    return connect()


@pytest.fixture
def table_name():
    """A name that no other test uses."""
    return "t" + uuid.uuid4().hex


@pytest.fixture
def table(service, table_name):
    service.create_table(table_name, fail_on_exist=True)
    yield table_name
    service.delete_table(table_name)
