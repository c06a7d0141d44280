"""The table design guide's patterns that need blobs: payloads, index lists and logs outside the table.

Each class is one pattern, written with the official clients as an application would write it. The tests are in
test_blob_patterns.py, the explanations in docs/patterns. As a program, this file is a writer that a test may kill.
"""

import os
import signal
import sys
import uuid
from datetime import datetime, timedelta, timezone

from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import TableClient, UpdateMode
from azure.storage.blob import BlobServiceClient


class Photos:
    """Large entities: the payload is a blob, and the entity has its name.

    Every write makes a blob of a new name and then points the entity at it, so a payload never changes and a writer
    that dies leaves a blob that nobody names. `between` runs between the two steps.
    """

    def __init__(self, table, container, between=lambda: None):
        self.table, self.container, self.between = table, container, between

    def write(self, employee, name, payload):
        blob = f"{employee}/{name}/{uuid.uuid4().hex}"
        self.container.upload_blob(blob, payload)
        self.between()
        entity = {"PartitionKey": employee, "RowKey": name, "Blob": blob, "Length": len(payload)}
        while True:
            before = self._entity(employee, name)
            try:
                if before is None:
                    self.table.create_entity(entity)
                    return
                etag = before.metadata["etag"]
                self.table.update_entity(
                    entity, UpdateMode.REPLACE, etag=etag, match_condition=MatchConditions.IfNotModified
                )
                # We alone replaced this name, so nobody else deletes it.
                self.container.delete_blob(before["Blob"])
                return
            except (ResourceExistsError, ResourceModifiedError, ResourceNotFoundError):
                continue

    def read(self, employee, name):
        while (entity := self._entity(employee, name)) is not None:
            try:
                return entity, self.container.download_blob(entity["Blob"]).readall()
            except ResourceNotFoundError:
                # A writer has replaced the payload since, or the entity was wrong from the beginning.
                if (self._entity(employee, name) or {}).get("Blob") == entity["Blob"]:
                    raise
        return None

    def delete(self, employee, name):
        """The entity goes first: a blob without an entity is garbage, an entity without its blob is a loss."""
        entity = self._entity(employee, name)
        if entity is not None:
            etag = entity.metadata["etag"]
            self.table.delete_entity(entity, etag=etag, match_condition=MatchConditions.IfNotModified)
            self.between()
            self.container.delete_blob(entity["Blob"])

    def orphans(self, age):
        """Blobs older than `age` that no entity names. No live writer may take as long as `age`."""
        latest = datetime.now(timezone.utc) - age
        for blob in self.container.list_blobs():
            employee, name, _ = blob.name.split("/")
            if blob.last_modified <= latest and (self._entity(employee, name) or {}).get("Blob") != blob.name:
                yield blob.name

    def clean(self, age):
        found = list(self.orphans(age))
        for name in found:
            self.container.delete_blob(name)
        return found

    def _entity(self, employee, name):
        try:
            return self.table.get_entity(employee, name)
        except ResourceNotFoundError:
            return None


class NameIndex:
    """Index entities: for each last name a blob that lists the keys of the employees, changed under its ETag.

    A key is on the list before its employee is in the table, and leaves the list after it. So a writer that dies may
    leave a key without an employee, which readers pass over, and never an employee that nobody finds. `read` runs
    after a list was read and before it is written; `between` runs between list and table.
    """

    def __init__(self, table, container, read=lambda: None, between=lambda: None):
        self.table, self.container, self.after_read, self.between = table, container, read, between
        self.refused = 0

    def hire(self, department, number, last_name):
        self._change(last_name, lambda keys: keys | {f"{department}!{number}"})
        self.between()
        self.table.upsert_entity({"PartitionKey": department, "RowKey": number, "LastName": last_name})

    def dismiss(self, department, number, last_name):
        self.table.delete_entity(department, number)
        self.between()
        self._change(last_name, lambda keys: keys - {f"{department}!{number}"})

    def keys(self, last_name):
        try:
            return set(self.container.download_blob(last_name).readall().decode().split())
        except ResourceNotFoundError:
            return set()

    def named(self, last_name):
        """The employees of this name, read one by one. The table has the last word."""
        for key in sorted(self.keys(last_name)):
            try:
                found = self.table.get_entity(*key.split("!"))
            except ResourceNotFoundError:
                continue
            if found["LastName"] == last_name:
                yield found

    def _change(self, last_name, change):
        blob = self.container.get_blob_client(last_name)
        while True:
            try:
                found = blob.download_blob()
                before = set(found.readall().decode().split())
                condition = {
                    "overwrite": True,
                    "etag": found.properties.etag,
                    "match_condition": MatchConditions.IfNotModified,
                }
            except ResourceNotFoundError:
                before, condition = set(), {"overwrite": False}
            self.after_read()
            try:
                blob.upload_blob("\n".join(sorted(change(before))), **condition)
                return
            except (ResourceModifiedError, ResourceExistsError):
                self.refused += 1


class Log:
    """Log data: append blobs whose names begin with the hour. Writers share them, because appending is atomic."""

    def __init__(self, container, size_max=64 * 1024 * 1024):
        self.container, self.size_max, self.part = container, size_max, {}

    @staticmethod
    def hour(time):
        return f"{time:%Y/%m/%d/%H00/}"

    def append(self, time, line):
        """Appends a line to the last part of its hour; the part after it when this one is full."""
        hour = self.hour(time)
        while True:
            part = self.part.get(hour, 0)
            blob = self.container.get_blob_client(f"{hour}{part:06}.log")
            try:
                blob.append_block(f"{time.isoformat()} {line}\n", maxsize_condition=self.size_max)
                return
            except ResourceNotFoundError:
                try:
                    blob.create_append_blob(match_condition=MatchConditions.IfMissing)
                except (ResourceExistsError, ResourceModifiedError):
                    pass  # Another writer was faster, and we append to what it made.
            except HttpResponseError as error:
                if error.error_code not in ("MaxBlobSizeConditionNotMet", "BlockCountExceedsLimit"):
                    raise
                self.part[hour] = part + 1

    def read(self, hour):
        """The lines of an hour in order of time, and of their text where times are equal."""
        lines = []
        for blob in self.container.list_blobs(name_starts_with=self.hour(hour)):
            lines += self.container.download_blob(blob.name).readall().decode().splitlines()
        return sorted(lines)


def kill_myself():
    os.kill(os.getpid(), signal.SIGKILL)


def main(what, connection_string, table, container, label, dies):
    """Writes until it is killed, and says what was acknowledged."""
    container = BlobServiceClient.from_connection_string(connection_string).get_container_client(container)
    table = TableClient.from_connection_string(connection_string, table)
    between = kill_myself if dies == "between" else lambda: None
    photos, names, log = Photos(table, container, between), NameIndex(table, container, between=between), Log(container)
    start = datetime(2026, 1, 31, 15, tzinfo=timezone.utc)
    for number in range(1_000_000):
        key = f"{label}-{number:06}"
        if what == "photos":
            # A few names, written again and again.
            key = f"{label}-{number % 3}"
            photos.write("000123", key, f"{number:06}".encode() * 2000)
        elif what == "names":
            names.hire("Sales", key, "Jones")
        else:
            log.append(start + timedelta(milliseconds=number), key)
        print(f"{key} {number}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
