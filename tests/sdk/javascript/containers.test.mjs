// Containers: create, list, delete, properties, metadata, leases.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";

import { all } from "./support.mjs";
import { assertRefused, blobs, freshContainerName, put, text, withContainer } from "./blob_support.mjs";

const listed = async (options) => (await all(blobs.listContainers(options))).map(({ name }) => name);

describe("containers", () => {
  test("are created, listed and deleted", async () => {
    const name = freshContainerName();
    const container = blobs.getContainerClient(name);
    assert.equal(await container.exists(), false);
    const created = await container.create();
    assert.equal(created._response.status, 201);
    assert.match(created.etag, /^"0x[0-9A-F]+"$/);
    assert.deepEqual(await listed({ prefix: name }), [name]);
    assert.equal(await container.exists(), true);
    await assertRefused(container.create(), 409, "ContainerAlreadyExists");
    assert.equal((await container.createIfNotExists()).succeeded, false);
    const deleted = await container.delete();
    assert.equal(deleted._response.status, 202);
    assert.deepEqual(await listed({ prefix: name }), []);
    await assertRefused(container.delete(), 404, "ContainerNotFound");
    assert.equal((await container.deleteIfExists()).succeeded, false);
  });

  test("are listed page by page, in order, with metadata when asked", async () => {
    const prefix = freshContainerName();
    const names = [..."abcde"].map((letter) => `${prefix}-${letter}`);
    for (const name of names) await blobs.createContainer(name, { metadata: { letter: name.at(-1) } });
    assert.deepEqual(await listed({ prefix }), names);
    const pages = [];
    for await (const page of blobs.listContainers({ prefix, includeMetadata: true }).byPage({ maxPageSize: 2 })) {
      pages.push(page.containerItems.map(({ metadata }) => metadata.letter).join(""));
    }
    assert.deepEqual(pages, ["ab", "cd", "e"]);
    for (const name of names) await blobs.deleteContainer(name);
  });

  for (const [name, code] of [
    ["UPPER", "InvalidResourceName"], ["under_score", "InvalidResourceName"], ["two--dashes", "InvalidResourceName"],
    ["last-", "InvalidResourceName"], ["ab", "OutOfRangeInput"], ["a".repeat(64), "OutOfRangeInput"],
  ]) {
    test(`cannot be called ${name}`, () => assertRefused(blobs.createContainer(name), 400, code));
  }

  test("have metadata, which are replaced as a whole", withContainer(async (container) => {
    await container.setMetadata({ hello: "world", number: "43" });
    assert.deepEqual((await container.getProperties()).metadata, { hello: "world", number: "43" });
    await container.setMetadata({ other: "1" });
    assert.deepEqual((await container.getProperties()).metadata, { other: "1" });
    await container.setMetadata();
    assert.deepEqual((await container.getProperties()).metadata, {});
    await assertRefused(container.setMetadata({ "with-dash": "1" }), 400, "InvalidMetadata");
  }));

  test("have leases that guard their deletion", withContainer(async (container) => {
    const lease = container.getBlobLeaseClient();
    await lease.acquireLease(15);
    const { leaseState, leaseStatus, leaseDuration } = await container.getProperties();
    assert.deepEqual([leaseState, leaseStatus, leaseDuration], ["leased", "locked", "fixed"]);
    await put(container, "b");
    await assertRefused(container.delete(), 412, "LeaseIdMissing");
    const other = { conditions: { leaseId: randomUUID() } };
    await assertRefused(container.delete(other), 412, "LeaseIdMismatchWithContainerOperation");
    const renewed = await lease.renewLease();
    assert.equal(renewed.leaseId, lease.leaseId);
    const next = randomUUID();
    await lease.changeLease(next);
    assert.equal(lease.leaseId, next);
    assert.equal((await lease.breakLease(0)).leaseTime, 0);
    assert.equal((await container.getProperties()).leaseState, "broken");
    await lease.releaseLease();
    assert.equal((await container.getProperties()).leaseState, "available");
  }));

  test("tell the kind of account", async () => {
    const found = await blobs.getAccountInfo();
    assert.deepEqual([found.skuName, found.accountKind], ["Standard_LRS", "StorageV2"]);
  });

  test("that are created again are empty", async () => {
    const container = blobs.getContainerClient(freshContainerName());
    await container.create({ metadata: { old: "yes" } });
    await put(container, "gone");
    await container.delete();
    await container.create();
    assert.deepEqual(await all(container.listBlobsFlat()), []);
    assert.deepEqual((await container.getProperties()).metadata, {});
    await put(container, "new", "text");
    assert.equal(await text(container.getBlobClient("new")), "text");
    await container.delete();
  });
});
