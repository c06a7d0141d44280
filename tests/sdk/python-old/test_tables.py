"""Tables: create, look for, list and delete, with the answers that the older client turns into booleans."""

import pytest

from azure.common import AzureConflictHttpError, AzureMissingResourceHttpError

from support import refused


def test_a_created_table_exists_until_it_is_deleted(service, table_name):
    assert not service.exists(table_name)
    assert service.create_table(table_name) is True
    assert service.exists(table_name)
    assert service.create_table(table_name) is False
    assert service.delete_table(table_name) is True
    assert not service.exists(table_name)
    assert service.delete_table(table_name) is False


def test_a_second_create_conflicts(service, table):
    with refused(409, "TableAlreadyExists", "The table specified already exists."):
        service.create_table(table, fail_on_exist=True)
    with pytest.raises(AzureConflictHttpError):
        service.create_table(table.upper(), fail_on_exist=True)


def test_delete_of_a_missing_table_is_not_found(service, table_name):
    with refused(404, "ResourceNotFound"):
        service.delete_table(table_name, fail_not_exist=True)
    with pytest.raises(AzureMissingResourceHttpError):
        service.delete_table(table_name, fail_not_exist=True)


def test_a_name_that_is_none_is_refused(service):
    with refused(400, "InvalidResourceName"):
        service.create_table("no-name", fail_on_exist=True)
    with refused(400, "OutOfRangeInput"):
        service.create_table("a", fail_on_exist=True)


def test_tables_are_listed_in_pages(service, table_name):
    names = [table_name + end for end in "abcde"]
    for name in names:
        service.create_table(name)
    found, marker, sizes = [], None, []
    while True:
        page = service.list_tables(num_results=2, marker=marker)
        tables = list(page)
        sizes.append(len(tables))
        found += [table.name for table in tables]
        marker = page.next_marker
        if not marker:
            break
    assert [name for name in found if name.startswith(table_name)] == names
    assert max(sizes) == 2
    assert set(names) <= {table.name for table in service.list_tables()}
    for name in names:
        service.delete_table(name)
