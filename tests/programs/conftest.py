"""What the programs are given: a server, containers, signatures, and files to copy."""

import os
import random
import shutil
import subprocess
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient, ResourceTypes, generate_account_sas

MIB = 1024 * 1024
FILE_COUNT = int(os.environ.get("LAZULITE_PROGRAM_FILES", "300"))
LARGE_MIB = int(os.environ.get("LAZULITE_PROGRAM_LARGE_MIB", "64"))
# A program that hangs must not stop the gate; the full run moves gigabytes.
TIMEOUT_SECONDS = 300 if FILE_COUNT <= 300 else 3600


class Program:
    """Runs a program and returns what it printed. A failure shows it."""

    def __init__(self, path, environment):
        self.path, self.environment = str(path), environment

    def run(self, *arguments, expect=0, **more):
        environment = {**os.environ, **self.environment, **more}
        done = subprocess.run(
            [self.path, *map(str, arguments)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_SECONDS,
            text=True,
            errors="replace",
        )
        assert done.returncode == expect, f"{arguments} ended with {done.returncode}:\n{done.stdout[-4000:]}"
        return done.stdout


def installed(name):
    found = shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture(scope="session")
def settings():
    text = os.environ.get("LAZULITE_CONNECTION_STRING")
    if not text:
        pytest.exit("LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask programs` sets it", 2)
    return dict(part.split("=", 1) for part in text.split(";") if part)


@pytest.fixture(scope="session")
def endpoint(settings):
    return settings["BlobEndpoint"].rstrip("/")


@pytest.fixture(scope="session")
def signature(settings):
    """An account's signature for everything that the programs do."""
    return generate_account_sas(
        settings["AccountName"],
        settings["AccountKey"],
        ResourceTypes(service=True, container=True, object=True),
        "rwdlactf",
        datetime.now(timezone.utc) + timedelta(days=1),
    )


@pytest.fixture(scope="session")
def service():
    with BlobServiceClient.from_connection_string(os.environ["LAZULITE_CONNECTION_STRING"]) as client:
        yield client


@pytest.fixture
def box(service):
    """The name of a fresh container."""
    name = "p" + uuid.uuid4().hex
    service.create_container(name)
    yield name
    service.delete_container(name)


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A tree of files of every size up to 100 KB, some with names that must be encoded."""
    root, seeded = tmp_path_factory.mktemp("tree"), random.Random(7)
    folders = ["", "a", "a/b", "a/b/c d", "ü/日本", "many"]
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for number in range(FILE_COUNT):
        folder = folders[number % len(folders)] if number % 10 else "many"
        name = f"{number:05} ä+&%.txt" if number % 5 == 0 else f"{number:05}.bin"
        size = seeded.choice([0, 1, 100, 4096, 8192, 8193]) if number % 3 else seeded.randrange(100_000)
        (root / folder / name).write_bytes(seeded.randbytes(size))
    return root


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    path, seeded = tmp_path_factory.mktemp("large") / "large.bin", random.Random(9)
    with path.open("wb") as file:
        for _ in range(LARGE_MIB):
            file.write(seeded.randbytes(MIB))
        # Not a multiple of anything.
        file.write(b"the end")
    return path


def assert_same_tree(left, right):
    def files(root):
        return sorted(path.relative_to(root) for path in Path(root).rglob("*") if path.is_file())

    assert files(left) == files(right)
    for name in files(left):
        assert_same_file(Path(left) / name, Path(right) / name)


def assert_same_file(left, right):
    assert left.stat().st_size == right.stat().st_size, right
    with left.open("rb") as one, right.open("rb") as other:
        while piece := one.read(8 * MIB):
            assert piece == other.read(len(piece)), right
