"""The table design guide's patterns that need blobs (docs/patterns): races, crashes, counts, and the wrong ways."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient

import blob_patterns
from blob_patterns import Log, NameIndex, Photos
from blob_support import KIB, bytes_of, names
from flavours import CLIENT_OPTIONS
from own_server import OwnServer

THREADS = 8
NOW = timedelta(0)
DAY = datetime(2026, 1, 31, tzinfo=timezone.utc)
PAGES = Path(__file__).parents[3] / "docs" / "patterns"
COUNTED = "<!-- counted by tests/sdk/python/test_blob_patterns.py -->"
END = "<!-- end -->"


class Counting(RequestsTransport):
    """Counts requests and the bytes of their payloads."""

    requests = sent = received = 0

    def send(self, request, **options):
        answer = super().send(request, **options)
        self.requests += 1
        self.sent += int(request.headers.get("Content-Length") or 0)
        self.received += int(answer.headers.get("Content-Length") or 0)
        return answer

    def cost(self, action):
        """Requests, KiB sent and KiB received of an action."""
        before = (self.requests, self.sent, self.received)
        action()
        requests, sent, received = (
            now - then for now, then in zip((self.requests, self.sent, self.received), before, strict=True)
        )
        return [requests, round(sent / KIB), round(received / KIB)]


class Place:
    """A fresh table and a fresh container, with the synchronous clients, because threads and processes race here."""

    def __init__(self, connection_string, table=None, container=None):
        self.connection_string = connection_string
        self.counting = Counting()
        options = {**CLIENT_OPTIONS, "transport": self.counting}
        self.tables = TableServiceClient.from_connection_string(connection_string, **options)
        self.blobs = BlobServiceClient.from_connection_string(connection_string, **options)
        name = uuid.uuid4().hex
        self.table = self.tables.get_table_client(table or "t" + name)
        self.container = self.blobs.get_container_client(container or "c" + name)
        if not table:
            self.table.create_table()
            self.container.create_container()

    def again(self, connection_string):
        """The same table and container behind another address."""
        return Place(connection_string, self.table.table_name, self.container.container_name)

    def writer(self, what, label="w", dies="never"):
        """A process that writes until it is killed."""
        names = [self.table.table_name, self.container.container_name]
        return subprocess.Popen(
            [sys.executable, blob_patterns.__file__, what, self.connection_string, *names, label, dies],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def remove(self):
        self.table.delete_table()
        self.container.delete_container()


@pytest.fixture
def place(connection_string):
    made = Place(connection_string)
    yield made
    made.remove()


def in_threads(function, inputs):
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, inputs))


def killed(writer, after_lines=0, after_seconds=0.0):
    """Kills a writer that has acknowledged so many writes, a moment later. Returns all that it acknowledged."""
    head = [writer.stdout.readline() for _ in range(after_lines)]
    assert all(head), "the writer ended by itself"
    time.sleep(after_seconds)
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().splitlines(keepends=True)
    writer.stdout.close()
    assert writer.wait() == -signal.SIGKILL
    return [line.split() for line in head + rest if line.endswith("\n")]


def payloads_after(number):
    """What a photo may be after this acknowledged write: the next one may be done without an acknowledgement."""
    return [f"{int(number) + step:06}".encode() * 2000 for step in (0, 3)]


def checked(page, name, head, rows):
    """Compares a page's counts with what was counted; `LAZULITE_WRITE_COUNTS` puts them there."""
    path = PAGES / f"{page}.md"
    is_number = [isinstance(cell, int) for cell in rows[0]]
    texts = [head, *([f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    rule = ["-" * (width - 1) + (":" if right else "-") for width, right in zip(widths, is_number, strict=True)]

    def line(cells):
        placed = zip(cells, widths, is_number, strict=True)
        return f"| {' | '.join(text.rjust(width) if right else text.ljust(width) for text, width, right in placed)} |"

    text = "\n".join([f"{name}:", "", line(texts[0]), line(rule), *map(line, texts[1:])])
    page_text = path.read_text()
    if os.environ.get("LAZULITE_WRITE_COUNTS"):
        before, rest = page_text.split(COUNTED)
        old, after = rest.split(END, 1)
        path.write_text(f"{before}{COUNTED}\n\n{text}\n\n{END}{after}")
        return
    assert text in page_text, f"{path.name} should show:\n{text}"


# Large entities


def test_a_payload_larger_than_an_entity_comes_back(place):
    photos = Photos(place.table, place.container)
    payload = bytes_of(5_000_000)
    photos.write("000123", "photo", payload)
    entity, found = photos.read("000123", "photo")
    assert found == payload and entity["Length"] == 5_000_000
    photos.write("000123", "photo", b"smaller")
    assert photos.read("000123", "photo")[1] == b"smaller"
    assert len(list(place.container.list_blobs())) == 1
    photos.delete("000123", "photo")
    assert photos.read("000123", "photo") is None
    assert list(place.container.list_blobs()) == []


def test_readers_and_writers_of_one_photo_meet_whole_payloads_and_leave_no_orphan(place):
    photos = Photos(place.table, place.container)

    def payload(number):
        return bytes([number]) * (1000 + number)

    photos.write("000123", "photo", payload(0))

    def work(number):
        if number % 3 == 0:
            photos.write("000123", "photo", payload(number))
            return True
        entity, found = photos.read("000123", "photo")
        return found == payload(found[0]) and entity["Length"] == len(found)

    assert all(in_threads(work, range(120)))
    assert list(photos.orphans(NOW)) == []
    assert len(list(place.container.list_blobs())) == 1


def test_a_writer_killed_between_blob_and_entity_leaves_an_orphan_that_the_cleaner_finds(place):
    photos = Photos(place.table, place.container)
    photos.write("000123", "w-0", b"before")
    writer = place.writer("photos", dies="between")
    assert writer.communicate()[0] == "" and writer.returncode == -signal.SIGKILL
    assert photos.read("000123", "w-0")[1] == b"before"
    # A cleaner that allows for live writers leaves it, because a live writer may be about to name it.
    assert photos.clean(timedelta(hours=1)) == []
    orphans = photos.clean(NOW)
    assert len(orphans) == 1 and orphans[0].startswith("000123/w-0/")
    assert photos.read("000123", "w-0")[1] == b"before"
    assert len(list(place.container.list_blobs())) == 1


def test_writers_killed_anywhere_leave_no_entity_without_its_payload(place):
    photos = Photos(place.table, place.container)
    chance = random.Random(1)
    for kill in range(4):
        writers = [place.writer("photos", f"w{number}") for number in range(2)]
        acknowledged = [line for writer in writers for line in killed(writer, 3, chance.random() / 5)]
        last = dict(acknowledged)
        assert len(last) == 6, kill
        for key, number in last.items():
            entity, found = photos.read("000123", key)
            assert len(found) == entity["Length"] and found in payloads_after(number)
    photos.clean(NOW)
    named = {entity["Blob"] for entity in place.table.list_entities()}
    assert set(names(place.container.list_blobs())) == named
    assert len(named) == 6


def test_a_server_killed_while_photos_are_written_has_every_acknowledged_one(tmp_path):
    with OwnServer(tmp_path) as server:
        place = Place(server.connection_string)
        writer = place.writer("photos")
        acknowledged = [writer.stdout.readline() for _ in range(40)]
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        # The clients' own retries go on for a while; what was acknowledged is known already.
        acknowledged = [line.split() for line in acknowledged] + killed(writer)
    with OwnServer(tmp_path) as server:
        place = place.again(server.connection_string)
        photos = Photos(place.table, place.container)
        last = dict(acknowledged)
        assert len(last) == 3
        for key, number in last.items():
            assert photos.read("000123", key)[1] in payloads_after(number)
        photos.clean(NOW)
        assert len(list(place.container.list_blobs())) == 3


def test_the_wrong_ways_lose_or_mix_payloads(place):
    """The entity first, and one name for all payloads: what a crash in the middle leaves of each."""
    photos = Photos(place.table, place.container)
    place.table.create_entity({"PartitionKey": "000123", "RowKey": "first", "Blob": "000123/first/1", "Length": 3})
    with pytest.raises(ResourceNotFoundError):
        photos.read("000123", "first")

    fixed = "000123/fixed/0"
    place.container.upload_blob(fixed, b"old payload")
    place.table.create_entity({"PartitionKey": "000123", "RowKey": "fixed", "Blob": fixed, "Length": 11})
    place.container.upload_blob(fixed, b"new", overwrite=True)
    entity, found = photos.read("000123", "fixed")
    assert (entity["Length"], found) == (11, b"new")


def test_a_payload_in_a_blob_costs_few_requests_and_no_base64(place):
    photos = Photos(place.table, place.container)
    rows = []
    for size in (100, 1_000, 10_000):
        payload = bytes_of(size * KIB)
        key = f"{size:06}"

        def write_rows():
            chunk = 15 * 64 * KIB
            for number, start in enumerate(range(0, len(payload), chunk)):
                piece = payload[start : start + chunk]
                properties = {f"P{at:02}": piece[at * 64 * KIB : (at + 1) * 64 * KIB] for at in range(15)}
                place.table.create_entity({"PartitionKey": key, "RowKey": f"{number:06}", **properties})

        def read_rows():
            parts = []
            for entity in place.table.query_entities(f"PartitionKey eq '{key}'"):
                parts += [entity[f"P{at:02}"] for at in range(15)]
            assert b"".join(parts) == payload

        rows.append([size, "write", "rows", *place.counting.cost(write_rows)])
        # One of the requests finds out which blob the entity named before.
        rows.append([size, "write", "blob", *place.counting.cost(lambda: photos.write(key, "photo", payload))])
        place.table.delete_entity(key, "photo")
        rows.append([size, "read", "rows", *place.counting.cost(read_rows)])
        entity = {"PartitionKey": key, "RowKey": "photo", "Blob": names(place.container.list_blobs(key))[0]}
        place.table.create_entity({**entity, "Length": len(payload)})
        rows.append([size, "read", "blob", *place.counting.cost(lambda: photos.read(key, "photo"))])
    head = ["KiB", "what", "where", "requests", "KiB sent", "KiB received"]
    checked("large_entities", "A payload in rows of 960 KiB, and in a blob", head, rows)


# Index entities


def test_employees_are_found_by_name_and_the_table_has_the_last_word(place):
    index = NameIndex(place.table, place.container)
    index.hire("Sales", "000152", "Jones")
    index.hire("Support", "000310", "Jones")
    index.hire("Sales", "000223", "Smith")
    assert [found["RowKey"] for found in index.named("Jones")] == ["000152", "000310"]
    index.dismiss("Sales", "000152", "Jones")
    assert [found["RowKey"] for found in index.named("Jones")] == ["000310"]
    assert index.keys("Jones") == {"Support!000310"}
    # An employee who has another name by now is on the old list only.
    place.table.update_entity({"PartitionKey": "Support", "RowKey": "000310", "LastName": "Miller"})
    assert list(index.named("Jones")) == []
    assert list(index.named("Nobody")) == []


def test_many_who_change_one_list_lose_nothing(place):
    index = NameIndex(place.table, place.container)
    in_threads(lambda number: index.hire("Sales", f"{number:06}", "Jones"), range(120))
    in_threads(lambda number: index.dismiss("Sales", f"{number:06}", "Jones"), range(0, 120, 2))
    assert [found["RowKey"] for found in index.named("Jones")] == [f"{number:06}" for number in range(1, 120, 2)]
    assert len(index.keys("Jones")) == 60
    assert index.refused > 0


def test_of_those_who_read_the_same_list_one_writes_it_and_the_rest_read_again(place):
    """All read before anybody writes: with ETags the others are refused; without, one of them is left."""
    for name, is_careful in (("Jones", True), ("Smith", False)):
        index = NameIndex(place.table, place.container)
        index.hire("Sales", "000000", name)
        met = threading.Barrier(THREADS)
        waits = threading.local()

        def meet_once():
            if not getattr(waits, "done", False):
                waits.done = True
                met.wait(30)

        index.after_read = meet_once

        def careless(number):
            keys = index.keys(name)
            meet_once()
            place.container.upload_blob(name, "\n".join(keys | {f"Sales!{number:06}"}), overwrite=True)

        hire = (lambda number: index.hire("Sales", f"{number:06}", name)) if is_careful else careless
        in_threads(hire, range(1, THREADS + 1))
        if is_careful:
            assert len(index.keys(name)) == THREADS + 1
            assert index.refused >= THREADS - 1
        else:
            assert len(index.keys(name)) == 2, "all but one of the eight are lost, and the one from before is kept"


def test_writers_killed_anywhere_leave_nobody_who_is_not_found(place):
    chance = random.Random(2)
    acknowledged = 0
    for kill in range(4):
        writers = [place.writer("names", f"k{kill}w{number}") for number in range(2)]
        acknowledged += sum(len(killed(writer, 4, chance.random() / 5)) for writer in writers)
    writer = place.writer("names", "between", dies="between")
    assert writer.communicate()[0] == "" and writer.returncode == -signal.SIGKILL
    index = NameIndex(place.table, place.container)
    employed = sorted(entity["RowKey"] for entity in place.table.list_entities())
    assert sorted(found["RowKey"] for found in index.named("Jones")) == employed
    assert len(employed) >= acknowledged >= 32
    # The one who died in between is on the list and not in the table.
    assert "Sales!between-000000" in index.keys("Jones")
    assert "between-000000" not in employed


def test_the_table_first_is_the_wrong_way(place):
    index = NameIndex(place.table, place.container)
    # A writer that dies after the entity and before the list leaves this.
    place.table.create_entity({"PartitionKey": "Sales", "RowKey": "000152", "LastName": "Jones"})
    assert list(index.named("Jones")) == []


def test_a_list_too_long_for_an_entity_fits_into_a_blob(place):
    keys = [f"Sales!{number:06}" for number in range(100_000)]
    place.container.upload_blob("Jones", "\n".join(keys))
    index = NameIndex(place.table, place.container)
    assert index.keys("Jones") == set(keys)
    with pytest.raises(HttpResponseError) as refused:
        place.table.create_entity({"PartitionKey": "Names", "RowKey": "Jones", "Employees": "\n".join(keys)[:40_000]})
    assert (refused.value.status_code, "PropertyValueTooLarge" in str(refused.value)) == (400, True)
    rows = []
    for count in (100, 10_000, 100_000):
        place.container.upload_blob("Jones", "\n".join(keys[:count]), overwrite=True)
        add = place.counting.cost(lambda: index.hire("Sales", "999999", "Jones"))
        rows.append([count, "hire one more", *add])
        rows.append([count, "read the keys", *place.counting.cost(lambda: index.keys("Jones"))])
    head = ["keys", "what", "requests", "KiB sent", "KiB received"]
    checked("index_entities", "A list of keys in a blob", head, rows)


# Log data


def lines_of(hour, sources=4, count=60):
    """A line each minute from each source."""
    start = DAY + timedelta(hours=hour)
    return [(start + timedelta(minutes=at), f"source {source}") for at in range(count) for source in range(sources)]


def test_an_hour_is_read_back_whole_and_alone(place):
    logs = [Log(place.container) for _ in range(4)]
    written = [line for hour in (0, 9, 15, 16, 23) for line in lines_of(hour)]
    random.Random(3).shuffle(written)
    in_threads(lambda numbered: logs[numbered[0] % 4].append(*numbered[1]), enumerate(written))
    wanted = sorted(f"{time.isoformat()} {text}" for time, text in lines_of(15))
    assert Log(place.container).read(DAY + timedelta(hours=15)) == wanted
    assert Log(place.container).read(DAY + timedelta(hours=14)) == []
    # The hours of a day, as folders.
    folders = names(place.container.walk_blobs(f"{DAY:%Y/%m/%d/}"))
    assert folders == [f"2026/01/31/{hour:02}00/" for hour in (0, 9, 15, 16, 23)]


def test_writers_who_fill_a_part_together_go_on_in_the_next_and_lose_nothing(place):
    size_max = 2000
    logs = [Log(place.container, size_max) for _ in range(THREADS)]
    times = [DAY + timedelta(seconds=number) for number in range(400)]
    in_threads(lambda number: logs[number % THREADS].append(times[number], f"{number:04}"), range(400))
    assert Log(place.container).read(DAY) == [f"{time.isoformat()} {number:04}" for number, time in enumerate(times)]
    parts = list(place.container.list_blobs())
    line = len(f"{DAY.isoformat()} 0000\n")
    assert [part.size for part in parts[:-1]] == [size_max // line * line] * (len(parts) - 1)
    assert len(parts) == -(-400 // (size_max // line))


def test_a_reader_of_the_current_hour_sees_whole_lines_and_all_of_them_in_the_end(place):
    log = Log(place.container)
    log.append(DAY, "first")
    seen = []
    done = threading.Event()

    def read():
        reader = Log(place.container)
        while not done.is_set():
            seen.append(reader.read(DAY))

    reader = threading.Thread(target=read)
    reader.start()
    in_threads(lambda number: log.append(DAY + timedelta(seconds=number), f"line {number}"), range(200))
    done.set()
    reader.join()
    whole = set(log.read(DAY))
    assert len(whole) == 201
    assert all(set(lines) <= whole for lines in seen)
    assert [len(lines) for lines in seen] == sorted(len(lines) for lines in seen)


def test_a_server_and_writers_that_are_killed_lose_no_acknowledged_line(tmp_path):
    acknowledged = []
    with OwnServer(tmp_path) as server:
        place = Place(server.connection_string)
        acknowledged += killed(place.writer("log", "a"), 20, 0.05)
        writers = [place.writer("log", label) for label in ("b", "c")]
        heads = [[writer.stdout.readline() for _ in range(20)] for writer in writers]
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        acknowledged += [line.split() for head in heads for line in head]
        for writer in writers:
            acknowledged += killed(writer)
    with OwnServer(tmp_path) as server:
        found = Log(place.again(server.connection_string).container).read(DAY + timedelta(hours=15))
        texts = {line.split()[1] for line in found}
        assert len(found) == len(texts), "no line twice"
        assert {key for key, _ in acknowledged} <= texts
        # Each writer may have had one line on the way.
        assert len(acknowledged) <= len(texts) <= len(acknowledged) + 3


def test_an_hour_costs_one_list_and_its_parts(place):
    """By time first the hour is one prefix. By source first it is a list for each source, or a list of everything."""
    sources = 8
    by_source = place.blobs.create_container("c" + uuid.uuid4().hex)
    text = "\n".join("a line of the log" for _ in range(100))
    blobs = [(f"{DAY:%Y/%m/%d}/{hour:02}00/", f"{source:06}.log") for hour in range(24) for source in range(sources)]
    in_threads(lambda blob: place.container.upload_blob(blob[0] + blob[1], text), blobs)
    in_threads(lambda blob: by_source.upload_blob(f"{blob[1]}/{blob[0]}", text), blobs)
    listed = {}

    def read(container, prefixes, wanted):
        found = [blob.name for prefix in prefixes for blob in container.list_blobs(prefix)]
        hour = [name for name in found if wanted in name]
        for name in hour:
            container.download_blob(name).readall()
        assert len(hour) == sources
        listed["names"] = len(found)

    hour = f"{DAY:%Y/%m/%d}/1500/"
    ways = [
        ("by time", place.container, [hour]),
        ("by source, a list for each", by_source, [f"{source:06}.log/{hour}" for source in range(sources)]),
        ("by source, one list of all", by_source, [None]),
    ]
    rows = []
    for way, container, prefixes in ways:
        requests, *_ = place.counting.cost(lambda: read(container, prefixes, hour))
        rows.append([way, requests, listed["names"]])
    place.blobs.delete_container(by_source.container_name)
    head = ["layout", "requests", "names listed"]
    checked("log_data", "One hour of a day of logs in blobs, from 8 sources", head, rows)
