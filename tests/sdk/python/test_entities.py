"""Entities: every verb, with and without an etag."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import UpdateMode

IF_NOT_MODIFIED = MatchConditions.IfNotModified
BOTH_MODES = pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE], ids=["merge", "replace"])


def entity(**properties):
    return {"PartitionKey": "p", "RowKey": "r", **properties}


def assert_not_modified(caught):
    assert caught.value.status_code == 412
    assert caught.value.error_code == "UpdateConditionNotSatisfied"
    assert "The update condition specified in the request was not satisfied." in caught.value.message


def assert_missing(caught):
    assert caught.value.status_code == 404
    assert "ResourceNotFound" in str(caught.value)
    assert "The specified resource does not exist." in str(caught.value)


def test_insert_then_get_returns_what_was_sent(table):
    inserted = table.create_entity(entity(name="Ada", age=36))
    found = table.get_entity("p", "r")
    assert dict(found) == entity(name="Ada", age=36)
    assert found.metadata["etag"] == inserted["etag"]


def test_the_etag_has_the_form_of_the_live_service_and_carries_the_timestamp(table):
    inserted = table.create_entity(entity())
    found = table.get_entity("p", "r")
    stamp = found.metadata["timestamp"].tables_service_value
    assert inserted["etag"] == "W/\"datetime'" + stamp.replace(":", "%3A") + "'\""


def test_insert_answers_with_the_version_that_was_asked_for(table):
    inserted = table.create_entity(entity())
    assert inserted["version"] == "2019-02-02"


def test_insert_of_an_existing_entity_is_a_conflict_and_changes_nothing(table):
    table.create_entity(entity(n=1))
    with pytest.raises(ResourceExistsError) as caught:
        table.create_entity(entity(n=2))
    assert caught.value.status_code == 409
    assert "EntityAlreadyExists" in str(caught.value)
    assert "The specified entity already exists." in str(caught.value)
    assert table.get_entity("p", "r")["n"] == 1


def test_get_of_a_missing_entity_is_not_found(table):
    with pytest.raises(ResourceNotFoundError) as caught:
        table.get_entity("p", "r")
    assert_missing(caught)
    assert caught.value.error_code == "ResourceNotFound"


def test_keys_are_case_sensitive(table):
    table.create_entity({"PartitionKey": "P", "RowKey": "R", "n": 1})
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "R")
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("P", "r")
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 2})
    assert table.get_entity("P", "R")["n"] == 1
    assert table.get_entity("p", "r")["n"] == 2


def test_the_same_row_key_lives_in_two_partitions(table):
    table.create_entity({"PartitionKey": "a", "RowKey": "r", "n": 1})
    table.create_entity({"PartitionKey": "b", "RowKey": "r", "n": 2})
    table.delete_entity("a", "r")
    assert table.get_entity("b", "r")["n"] == 2


def test_update_replace_drops_what_it_does_not_mention(table):
    table.create_entity(entity(kept=1, dropped=2))
    table.update_entity(entity(kept=3, added=4), mode=UpdateMode.REPLACE)
    assert dict(table.get_entity("p", "r")) == entity(kept=3, added=4)


def test_update_merge_keeps_what_it_does_not_mention(table):
    table.create_entity(entity(kept=1, changed=2))
    table.update_entity(entity(changed="now text", added=4), mode=UpdateMode.MERGE)
    assert dict(table.get_entity("p", "r")) == entity(kept=1, changed="now text", added=4)


@BOTH_MODES
def test_update_of_a_missing_entity_is_not_found(table, mode):
    with pytest.raises(ResourceNotFoundError) as caught:
        table.update_entity(entity(n=1), mode=mode)
    assert_missing(caught)
    assert list(table.list_entities()) == []


@BOTH_MODES
def test_update_with_the_right_etag_succeeds_and_gives_a_new_one(table, mode):
    etag = table.create_entity(entity(n=1))["etag"]
    updated = table.update_entity(entity(n=2), mode=mode, etag=etag, match_condition=IF_NOT_MODIFIED)
    assert updated["etag"] != etag
    found = table.get_entity("p", "r")
    assert found["n"] == 2
    assert found.metadata["etag"] == updated["etag"]


@BOTH_MODES
def test_update_with_an_old_etag_fails_and_changes_nothing(table, mode):
    old = table.create_entity(entity(n=1))["etag"]
    current = table.update_entity(entity(n=2), mode=mode)["etag"]
    with pytest.raises(ResourceModifiedError) as caught:
        table.update_entity(entity(n=3), mode=mode, etag=old, match_condition=IF_NOT_MODIFIED)
    assert_not_modified(caught)
    found = table.get_entity("p", "r")
    assert found["n"] == 2
    assert found.metadata["etag"] == current


@BOTH_MODES
def test_update_with_an_etag_of_a_missing_entity_is_not_found(table, mode):
    etag = table.create_entity(entity(n=1))["etag"]
    table.delete_entity("p", "r")
    with pytest.raises(ResourceNotFoundError) as caught:
        table.update_entity(entity(n=2), mode=mode, etag=etag, match_condition=IF_NOT_MODIFIED)
    assert_missing(caught)


@BOTH_MODES
def test_upsert_inserts_what_is_missing(table, mode):
    answer = table.upsert_entity(entity(n=1), mode=mode)
    found = table.get_entity("p", "r")
    assert dict(found) == entity(n=1)
    assert found.metadata["etag"] == answer["etag"]


def test_upsert_replace_drops_what_it_does_not_mention(table):
    before = table.create_entity(entity(kept=1, dropped=2))["etag"]
    answer = table.upsert_entity(entity(kept=3), mode=UpdateMode.REPLACE)
    assert dict(table.get_entity("p", "r")) == entity(kept=3)
    assert answer["etag"] != before


def test_upsert_merge_keeps_what_it_does_not_mention(table):
    table.create_entity(entity(kept=1, changed=2))
    table.upsert_entity(entity(changed=3), mode=UpdateMode.MERGE)
    assert dict(table.get_entity("p", "r")) == entity(kept=1, changed=3)


def test_a_null_in_a_merge_leaves_the_stored_value(table):
    table.create_entity(entity(a=1, b=2))
    table.update_entity(entity(a=None, b=3), mode=UpdateMode.MERGE)
    assert dict(table.get_entity("p", "r")) == entity(a=1, b=3)


def test_delete_removes(table):
    table.create_entity(entity())
    table.delete_entity("p", "r")
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "r")


def test_delete_of_a_missing_entity_is_quiet(table):
    # The SDK ignores 404 here, and nothing else.
    assert table.delete_entity("p", "r") is None


def test_delete_with_the_right_etag_removes(table):
    etag = table.create_entity(entity())["etag"]
    table.delete_entity("p", "r", etag=etag, match_condition=IF_NOT_MODIFIED)
    assert list(table.list_entities()) == []


def test_delete_with_an_old_etag_fails_and_keeps_the_entity(table):
    old = table.create_entity(entity(n=1))["etag"]
    table.update_entity(entity(n=2))
    with pytest.raises(ResourceModifiedError) as caught:
        table.delete_entity("p", "r", etag=old, match_condition=IF_NOT_MODIFIED)
    assert_not_modified(caught)
    assert table.get_entity("p", "r")["n"] == 2


def test_delete_takes_the_etag_from_the_entity_itself(table):
    table.create_entity(entity(n=1))
    stale = table.get_entity("p", "r")
    table.update_entity(entity(n=2))
    with pytest.raises(ResourceModifiedError):
        table.delete_entity(stale, match_condition=IF_NOT_MODIFIED)
    fresh = table.get_entity("p", "r")
    table.delete_entity(fresh, match_condition=IF_NOT_MODIFIED)
    assert list(table.list_entities()) == []


def test_an_etag_from_a_listing_is_the_etag(table):
    table.create_entity(entity(n=1))
    (listed,) = table.list_entities()
    assert listed.metadata["etag"] == table.get_entity("p", "r").metadata["etag"]
    listed["n"] = 2
    table.update_entity(listed, match_condition=IF_NOT_MODIFIED, mode=UpdateMode.REPLACE)
    assert table.get_entity("p", "r")["n"] == 2


def test_an_etag_of_a_previous_life_does_not_match_the_next(table):
    old = table.create_entity(entity(n=1))["etag"]
    table.delete_entity("p", "r")
    table.create_entity(entity(n=2))
    with pytest.raises(ResourceModifiedError):
        table.update_entity(entity(n=3), etag=old, match_condition=IF_NOT_MODIFIED)
    assert table.get_entity("p", "r")["n"] == 2


def test_every_write_gives_a_later_timestamp(table):
    table.create_entity(entity(n=0))
    stamps = [table.get_entity("p", "r").metadata["timestamp"].tables_service_value]
    etags = [table.get_entity("p", "r").metadata["etag"]]
    for n in range(1, 20):
        etags.append(table.update_entity(entity(n=n))["etag"])
        stamps.append(table.get_entity("p", "r").metadata["timestamp"].tables_service_value)
    assert len(set(etags)) == len(etags)
    # Pad the trimmed zeros, so that the texts compare as times.
    padded = [stamp[:19] + "." + stamp[20:].rstrip("Z").ljust(7, "0") for stamp in stamps]
    assert padded == sorted(padded) and len(set(padded)) == len(padded)


def test_a_client_timestamp_is_ignored(table):
    table.create_entity(entity(Timestamp="2001-01-01T00:00:00Z"))
    assert table.get_entity("p", "r").metadata["timestamp"].year > 2001


def test_select_returns_only_what_was_asked_for(table):
    table.create_entity(entity(a=1, b="two", c=3.5))
    found = table.get_entity("p", "r", select=["a", "b"])
    assert dict(found) == {"a": 1, "b": "two"}
    assert found.metadata["etag"] == table.get_entity("p", "r").metadata["etag"]


def test_a_selected_property_that_is_missing_is_null(table):
    table.create_entity(entity(a=1))
    assert dict(table.get_entity("p", "r", select=["a", "nothing"])) == {"a": 1, "nothing": None}
