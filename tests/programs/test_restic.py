"""restic: a repository in a container: back up twice, check every pack, restore, prune."""

import os
import signal
import socket
import subprocess

import pytest
from conftest import Program, assert_same_tree, installed

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
READY = "Blob service is successfully listening at "
EMULATOR_PORT = 10000


@pytest.fixture
def emulator(tmp_path):
    """A server where restic expects the emulator: it takes no other address."""
    program = os.environ.get("LAZULITE_SERVER")
    if not program:
        pytest.skip("LAZULITE_SERVER names the server's program; `cargo xtask test` sets it")
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", EMULATOR_PORT)) == 0:
            pytest.skip(f"somebody else listens at port {EMULATOR_PORT}, the only one that restic asks")
    command = [program, "serve", "--services", "blob", "--location", tmp_path / "data", "--no-admin", "--silent"]
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_ACCOUNTS")}
    server = subprocess.Popen(
        [*map(str, command), "--blobPort", str(EMULATOR_PORT)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert READY in server.stdout.readline()
    yield
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=30) == 0
    server.stdout.close()


def use(restic, tree, tmp_path):
    restic.run("init")
    restic.run("backup", ".", cwd=str(tree))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "file").write_text("of the second snapshot")
    restic.run("backup", tmp_path / "more")
    assert "no errors were found" in restic.run("check", "--read-data")
    first = restic.run("snapshots", "--json", "--path", tree).split('"short_id":"')[1].split('"')[0]
    restic.run("restore", first, "--target", tmp_path / "back")
    assert_same_tree(tree, tmp_path / "back" / tree.relative_to("/"))
    restic.run("forget", first, "--prune")
    assert "no errors were found" in restic.run("check", "--read-data")
    assert restic.run("cat", "config")


class Restic(Program):
    def run(self, *arguments, cwd=None, **more):
        arguments = [cwd if argument == "." else argument for argument in arguments]
        return super().run(*arguments, **more)


def test_a_repository(emulator, tree, tmp_path):
    environment = {
        "RESTIC_REPOSITORY": "azure:repository:/",
        "RESTIC_PASSWORD": "secret",
        "RESTIC_CACHE_DIR": str(tmp_path / "cache"),
        "AZURE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_ACCOUNT_KEY": KEY,
    }
    use(Restic(installed("restic"), environment), tree, tmp_path)


def test_a_repository_through_rclone(endpoint, signature, box, tree, tmp_path):
    installed("rclone")
    settings = tmp_path / "rclone.conf"
    settings.write_text(f"[box]\ntype = azureblob\nsas_url = {endpoint}?{signature}\n")
    environment = {
        "RESTIC_REPOSITORY": f"rclone:box:{box}/repository",
        "RESTIC_PASSWORD": "secret",
        "RESTIC_CACHE_DIR": str(tmp_path / "cache"),
        "RCLONE_CONFIG": str(settings),
    }
    use(Restic(installed("restic"), environment), tree, tmp_path)
