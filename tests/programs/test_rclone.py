"""rclone: copy, check, sync, copy within the service, ranges, delete."""

import pytest
from conftest import FILE_COUNT, Program, assert_same_file, assert_same_tree, installed


@pytest.fixture(scope="module")
def rclone(tmp_path_factory, endpoint, signature):
    settings = tmp_path_factory.mktemp("rclone") / "rclone.conf"
    # Signs of the configuration's own language do not occur in signatures.
    settings.write_text(f"[box]\ntype = azureblob\nsas_url = {endpoint}?{signature}\n")
    return Program(installed("rclone"), {"RCLONE_CONFIG": str(settings), "RCLONE_RETRIES": "1"})


def test_a_tree_goes_there_and_back(rclone, tree, box, tmp_path):
    rclone.run("copy", tree, f"box:{box}/tree", "--transfers", 8)
    assert "0 differences found" in rclone.run("check", tree, f"box:{box}/tree")
    assert f"({FILE_COUNT})" in rclone.run("size", f"box:{box}")
    rclone.run("copy", f"box:{box}/tree", tmp_path / "back", "--transfers", 8)
    assert_same_tree(tree, tmp_path / "back")
    # Nothing is copied twice.
    again = rclone.run("copy", tree, f"box:{box}/tree", "-v", "--stats-one-line")
    assert "Copied (" not in again


def test_a_copy_within_the_service_and_a_purge(rclone, tree, box):
    rclone.run("copy", tree / "a", f"box:{box}/one")
    rclone.run("copy", f"box:{box}/one", f"box:{box}/two")
    assert "0 differences found" in rclone.run("check", f"box:{box}/one", f"box:{box}/two")
    rclone.run("purge", f"box:{box}/one")
    assert rclone.run("lsf", f"box:{box}").split() == ["two/"]


def test_sync_follows_changes_and_deletions(rclone, box, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("kept", "changed", "gone"):
        (source / name).write_text(name)
    rclone.run("sync", source, f"box:{box}")
    (source / "gone").unlink()
    (source / "changed").write_text("new content")
    (source / "new").write_text("new")
    rclone.run("sync", source, f"box:{box}")
    rclone.run("copy", f"box:{box}", tmp_path / "back")
    assert_same_tree(source, tmp_path / "back")


def test_one_large_file(rclone, large, box, tmp_path):
    rclone.run("copyto", large, f"box:{box}/large.bin", "--azureblob-chunk-size", "8M")
    rclone.run("copyto", f"box:{box}/large.bin", tmp_path / "large.bin")
    assert_same_file(large, tmp_path / "large.bin")
    (tmp_path / "large.bin").unlink()
    part = rclone.run("cat", f"box:{box}/large.bin", "--tail", 7)
    assert part.endswith("the end")
