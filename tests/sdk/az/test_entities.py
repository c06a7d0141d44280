"""`az storage entity`: every verb."""


def test_insert_gives_the_etag_that_show_gives(entity):
    inserted = entity.insert("name=Ada", "age=36")
    found = entity.show()
    assert found["etag"] == inserted["etag"]
    assert (found["PartitionKey"], found["RowKey"], found["name"], found["age"]) == ("p", "r", "Ada", 36)
    assert inserted["version"] == "2019-02-02"


def test_insert_of_an_existing_entity_is_a_conflict_and_changes_nothing(entity, refused):
    entity.insert("n=1")
    refused("The specified entity already exists.", entity.insert, "n=2")
    assert entity.values() == {"n": 1}


def test_insert_can_merge_with_what_exists(entity):
    entity.insert("a=1", "b=2")
    entity.insert("b=3", if_exists="merge")
    assert entity.values() == {"a": 1, "b": 3}


def test_insert_can_replace_what_exists(entity):
    entity.insert("a=1", "b=2")
    entity.insert("b=3", if_exists="replace")
    assert entity.values() == {"b": 3}


def test_merge_keeps_what_it_does_not_mention(entity):
    first = entity.insert("kept=1", "changed=2")
    answer = entity.change("merge", "changed=now text")
    assert entity.values() == {"kept": 1, "changed": "now text"}
    assert entity.show()["etag"] == answer["etag"] != first["etag"]


def test_replace_drops_what_it_does_not_mention(entity):
    first = entity.insert("kept=1", "dropped=2")
    answer = entity.change("replace", "kept=3")
    assert entity.values() == {"kept": 3}
    assert entity.show()["etag"] == answer["etag"] != first["etag"]


def test_merge_and_replace_of_a_missing_entity_are_refused(entity, refused):
    refused("The specified resource does not exist.", entity.change, "merge", "n=1")
    refused("The specified resource does not exist.", entity.change, "replace", "n=1")
    assert entity.query()["items"] == []


def test_show_of_a_missing_entity_is_not_found(entity, refused):
    assert refused("ResourceNotFound", entity.show) == 3


def test_show_returns_the_chosen_properties(entity):
    entity.insert("a=1", "b=2")
    found = entity.show(select=["a", "nothing"])
    assert {name: found[name] for name in ("a", "nothing")} == {"a": 1, "nothing": None}
    assert "b" not in found and "RowKey" not in found


def test_delete_removes(entity, refused):
    entity.insert("n=1")
    entity.delete()
    assert entity.query()["items"] == []
    refused("ResourceNotFound", entity.show)


def test_delete_minds_the_etag(az, entity, table, refused):
    old = entity.insert("n=1")["etag"]
    current = entity.change("merge", "n=2")["etag"]
    command = ("entity", "delete", "--table-name", table, "--partition-key", "p", "--row-key", "r", "--if-match")
    refused("UpdateConditionNotSatisfied", az, *command, old)
    assert entity.values() == {"n": 2}
    az(*command, current)
    assert entity.query()["items"] == []


def test_keys_with_awkward_characters_are_found(entity):
    keys = ["O'Brien", "a b", "100%", "%2F", "a+b", "a&b", "ü", "日本語", "😀", "..", "(a)"]
    for n, key in enumerate(keys, 1):
        entity.insert(f"n={n}", row=key)
    for n, key in enumerate(keys, 1):
        assert entity.values(key) == {"n": n}
    assert sorted(found["RowKey"] for found in entity.query()["items"]) == sorted(keys)


def test_forbidden_characters_in_keys_are_refused(entity, refused):
    for character in "/\\#?":
        refused("'Bad Request'", lambda key: entity.insert(row=key), f"a{character}b")
    assert entity.query()["items"] == []


def test_a_missing_table_is_not_found(az, table_name, refused):
    refused("TableNotFound", az, "entity", "query", "--table-name", table_name)
    keys = ("PartitionKey=p", "RowKey=r")
    refused("'Not Found'", az, "entity", "insert", "--table-name", table_name, "--entity", *keys)
