"""Entities as dictionaries, values without their types, and checks for refusals."""

import contextlib

import pytest

from azure.common import AzureHttpError
from azure.cosmosdb.table import EdmType, EntityProperty, TableBatch
from azure.cosmosdb.table.models import AzureBatchOperationError

OLD_ETAG = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\""


def entity(row_key, partition_key="p", **properties):
    return {"PartitionKey": partition_key, "RowKey": row_key, **properties}


def int32(value):
    return EntityProperty(EdmType.INT32, value)


def plain(found):
    """The values of an entity by name, without types, ETag and Timestamp. The client leaves empty keys out."""
    value = lambda one: one.value if isinstance(one, EntityProperty) else one
    return {name: value(one) for name, one in found.items() if name not in ("etag", "Timestamp")}


def contents(service, table):
    return list(service.query_entities(table))


def batch_of(*operations):
    batch = TableBatch()
    for name, *values in operations:
        getattr(batch, name)(*values)
    return batch


@contextlib.contextmanager
def refused(status, code, message=""):
    """Expects the service's refusal with this status and code, from a single operation or from a batch."""
    with pytest.raises(AzureHttpError) as caught:
        yield
    error = caught.value
    assert error.status_code == status, str(error)
    if isinstance(error, AzureBatchOperationError):
        assert error.code == code, str(error)
    else:
        # The client knows the code only from a header; the answer's text holds it in any case.
        assert code in str(error)
        assert error.error_code in (None, code)
    assert message in str(error)
