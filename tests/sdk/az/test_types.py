"""Property types that `az storage entity insert` can name, both directions."""

import pytest


def annotated(entity, edm, text):
    entity.insert(f"v={text}", f"v@odata.type={edm}")
    return entity.values()["v"]


@pytest.mark.parametrize("n", [0, -1, 2147483647, -2147483648])
def test_int32(entity, n):
    assert annotated(entity, "Edm.Int32", n) == n


@pytest.mark.parametrize("n", [0, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_int64(entity, n):
    assert annotated(entity, "Edm.Int64", n) == {"edm_type": "Edm.Int64", "value": n}


@pytest.mark.parametrize("x", [0.1, -2.5, 5.0, 1e21, 1.7976931348623157e308, 5e-324])
def test_double(entity, x):
    assert annotated(entity, "Edm.Double", x) == x


def test_boolean(entity):
    entity.insert("yes=true", "yes@odata.type=Edm.Boolean")
    assert entity.values() == {"yes": True}


@pytest.mark.parametrize("text", ["1601-01-01T00:00:00Z", "2020-02-29T01:02:03.123456Z", "9999-12-31T23:59:59.999999Z"])
def test_datetime(entity, text):
    found = annotated(entity, "Edm.DateTime", text)
    assert found.replace("+00:00", "Z") == text


def test_guid_comes_back_in_small_letters(entity):
    found = annotated(entity, "Edm.Guid", "C9DA6455-213D-42C9-9A79-3E9149A57833")
    assert found == "c9da6455-213d-42c9-9a79-3e9149a57833"


@pytest.mark.parametrize("text", ["", "text", "a=b", "käse 日本語 😀", "2020-01-01T00:00:00Z", "x" * 32768])
def test_string(entity, text):
    assert annotated(entity, "Edm.String", text) == text


def test_a_string_beyond_32_ki_characters_is_refused(entity, refused):
    refused("'Bad Request'", entity.insert, "v=" + "x" * 32769)
