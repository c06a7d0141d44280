// Copies, snapshots, soft delete, tags, tiers, batches.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";

import { all } from "./support.mjs";
import { accountKey, assertRefused, blobs, put, text, withContainer } from "./blob_support.mjs";

const names = async (items) => (await all(items)).map(({ name }) => name);

describe("copies", () => {
  test("are complete at once", withContainer(async (container) => {
    const source = await put(container, "source", "content", {
      blobHTTPHeaders: { blobContentType: "image/png" }, metadata: { a: "b" }, tags: { t: "1" },
    });
    const copy = container.getBlobClient("copy");
    const done = await (await copy.beginCopyFromURL(source.url, { intervalInMs: 10 })).pollUntilDone();
    assert.equal(done.copyStatus, "success");
    const found = await copy.getProperties();
    assert.deepEqual([found.contentType, found.metadata, found.copyProgress], ["image/png", { a: "b" }, "7/7"]);
    assert.deepEqual((await copy.getTags()).tags, {});
    assert.equal(await text(copy), "content");
    await assertRefused(copy.abortCopyFromURL(found.copyId), 409, "NoPendingCopyOperation");
  }));

  test("by the synchronous form", withContainer(async (container) => {
    const source = await put(container, "source", "content");
    const copy = container.getBlobClient("copy");
    assert.equal((await copy.syncCopyFromURL(source.url)).copyStatus, "success");
    assert.equal(await text(copy), "content");
    await assertRefused(
      copy.syncCopyFromURL(container.getBlobClient("nope").url), 404, "CannotVerifyCopySource",
    );
  }));

  test("have conditions on their source", withContainer(async (container) => {
    const source = await put(container, "source", "content");
    const copy = container.getBlobClient("copy");
    const sourceConditions = { ifMatch: '"0x1"' };
    await assertRefused(copy.beginCopyFromURL(source.url, { sourceConditions }), 412, "SourceConditionNotMet");
    assert.equal(await copy.exists(), false);
  }));
});

describe("snapshots", () => {
  test("stay as they were, and guard their blob", withContainer(async (container) => {
    const blob = await put(container, "b", "first");
    const { snapshot } = await blob.createSnapshot({ metadata: { own: "yes" } });
    await put(container, "b", "second");
    const old = blob.withSnapshot(snapshot);
    assert.equal(await text(old), "first");
    assert.deepEqual((await old.getProperties()).metadata, { own: "yes" });
    await assertRefused(blob.delete(), 409, "SnapshotsPresent");
    await (await blob.beginCopyFromURL(old.url)).pollUntilDone();
    assert.equal(await text(blob), "first");
    await blob.delete({ deleteSnapshots: "only" });
    assert.equal(await old.exists(), false);
    await blob.delete({ deleteSnapshots: "include" });
    assert.equal(await blob.exists(), false);
  }));
});

describe("soft delete", () => {
  const keep = (enabled) => blobs.setProperties({ deleteRetentionPolicy: enabled ? { enabled, days: 2 } : { enabled } });
  after(() => keep(false));

  test("brings blobs back", withContainer(async (container) => {
    await keep(true);
    const blob = await put(container, "b", "content");
    await blob.delete();
    assert.deepEqual(await names(container.listBlobsFlat()), []);
    const [item] = await all(container.listBlobsFlat({ includeDeleted: true }));
    assert.deepEqual([item.name, item.deleted, item.properties.remainingRetentionDays], ["b", true, 1]);
    await blob.undelete();
    assert.equal(await text(blob), "content");
    await keep(false);
    await blob.delete();
    await assertRefused(blob.undelete(), 404, "BlobNotFound");
  }));
});

describe("tags", () => {
  test("are set, shown and found", withContainer(async (container) => {
    const blob = await put(container, "a", "x", { tags: { project: "x", year: "2020" } });
    await put(container, "b", "x", { tags: { project: "x", year: "2021" } });
    assert.deepEqual((await blob.getTags()).tags, { project: "x", year: "2020" });
    assert.deepEqual(await names(container.findBlobsByTags("project = 'x' AND year > '2020'")), ["b"]);
    const everywhere = `@container = '${container.containerName}' AND project = 'x'`;
    assert.deepEqual(await names(blobs.findBlobsByTags(everywhere)), ["a", "b"]);
    await blob.setTags({ other: "1" });
    assert.deepEqual(await names(blobs.findBlobsByTags(everywhere)), ["b"]);
    const many = Object.fromEntries(Array.from({ length: 11 }, (_, number) => [`t${number}`, "x"]));
    await assertRefused(blob.setTags(many), 400, "TagsTooLarge");
    await assertRefused(all(blobs.findBlobsByTags("nonsense")), 400, "InvalidQueryParameterValue");
  }));
});

describe("tiers", () => {
  test("are set, and the archive is slow", withContainer(async (container) => {
    const blob = await put(container, "b", "x");
    assert.equal((await blob.getProperties()).accessTierInferred, true);
    await blob.setAccessTier("Cool");
    let found = await blob.getProperties();
    assert.deepEqual([found.accessTier, found.accessTierInferred], ["Cool", undefined]);
    assert.ok(found.accessTierChangedOn);
    await blob.setAccessTier("Archive");
    await assertRefused(blob.download(), 409, "BlobArchived");
    assert.equal((await blob.setAccessTier("Hot"))._response.status, 202);
    found = await blob.getProperties();
    assert.deepEqual([found.accessTier, found.archiveStatus], ["Archive", "rehydrate-pending-to-hot"]);
  }));
});

describe("batches", () => {
  test("delete, and tell what they could not do", withContainer(async (container) => {
    for (const name of ["a", "b", "c d/ä"]) await put(container, name);
    const client = blobs.getBlobBatchClient();
    const urls = ["a", "nope", "c d/ä"].map((name) => container.getBlobClient(name).url);
    const { subResponses, subResponsesSucceededCount } = await client.deleteBlobs(urls, accountKey);
    assert.deepEqual(subResponses.map(({ status }) => status), [202, 404, 202]);
    assert.equal(subResponses[1].errorCode, "BlobNotFound");
    assert.equal(subResponsesSucceededCount, 2);
    assert.deepEqual(await names(container.listBlobsFlat()), ["b"]);
  }));

  test("set tiers", withContainer(async (container) => {
    for (const name of ["a", "b"]) await put(container, name);
    const urls = ["a", "b"].map((name) => container.getBlobClient(name).url);
    const { subResponses } = await container.getBlobBatchClient().setBlobsAccessTier(urls, accountKey, "Cool");
    assert.deepEqual(subResponses.map(({ status }) => status), [200, 200]);
    assert.equal((await container.getBlobClient("b").getProperties()).accessTier, "Cool");
  }));
});
