// Lists of blobs: prefixes, pages, hierarchies, what they include.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { all } from "./support.mjs";
import { assertRefused, blockId, put, withContainer } from "./blob_support.mjs";

const TREE = ["a/1", "a/2", "a/b/3", "a/b/4", "a/c/5", "b", "b/6", "c/", "d"];
const withTree = (work) => withContainer(async (container) => {
  for (const name of TREE) await put(container, name, name);
  await work(container);
});
const names = async (items) => (await all(items)).map(({ name }) => name);

describe("lists", () => {
  test("are in order and by prefix", withTree(async (container) => {
    assert.deepEqual(await names(container.listBlobsFlat()), TREE);
    assert.deepEqual(await names(container.listBlobsFlat({ prefix: "a/b" })), ["a/b/3", "a/b/4"]);
    assert.deepEqual(await names(container.listBlobsFlat({ prefix: "z" })), []);
  }));

  for (const maxPageSize of [1, 2, 4, 9, 10]) {
    test(`come in pages of ${maxPageSize}`, withTree(async (container) => {
      const pages = [];
      for await (const page of container.listBlobsFlat().byPage({ maxPageSize })) {
        pages.push(page.segment.blobItems.map(({ name }) => name));
      }
      assert.deepEqual(pages.flat(), TREE);
      assert.ok(pages.slice(0, -1).every((page) => page.length === maxPageSize));
    }));
  }

  test("resume from a token", withTree(async (container) => {
    const first = await container.listBlobsFlat().byPage({ maxPageSize: 3 }).next();
    const { continuationToken } = first.value;
    const rest = [];
    for await (const page of container.listBlobsFlat().byPage({ continuationToken, maxPageSize: 5 })) {
      rest.push(...page.segment.blobItems.map(({ name }) => name));
    }
    assert.deepEqual(rest, TREE.slice(3));
  }));

  test("show one level of a hierarchy", withTree(async (container) => {
    const level = async (prefix) => (await all(container.listBlobsByHierarchy("/", { prefix })))
      .map(({ kind, name }) => `${kind} ${name}`).sort();
    assert.deepEqual(await level(""), ["blob b", "blob d", "prefix a/", "prefix b/", "prefix c/"]);
    assert.deepEqual(await level("a/"), ["blob a/1", "blob a/2", "prefix a/b/", "prefix a/c/"]);
  }));

  test("page through a hierarchy without repeating a prefix", withTree(async (container) => {
    const found = [];
    for await (const page of container.listBlobsByHierarchy("/").byPage({ maxPageSize: 1 })) {
      found.push(...(page.segment.blobPrefixes ?? []).map(({ name }) => name));
      found.push(...page.segment.blobItems.map(({ name }) => name));
    }
    assert.deepEqual(found, ["a/", "b", "b/", "c/", "d"]);
  }));

  test("include what is asked for", withContainer(async (container) => {
    const blob = await put(container, "b", "one", { metadata: { Key: "value" }, tags: { t: "1" } });
    const { snapshot } = await blob.createSnapshot();
    await (await container.getBlobClient("copy").beginCopyFromURL(blob.url)).pollUntilDone();
    await container.getBlockBlobClient("staged").stageBlock(blockId("1"), "x", 1);
    const items = await all(container.listBlobsFlat({
      includeSnapshots: true, includeMetadata: true, includeUncommitedBlobs: true, includeCopy: true, includeTags: true,
    }));
    assert.deepEqual(
      items.map((item) => [item.name, item.snapshot]),
      [["b", snapshot], ["b", undefined], ["copy", undefined], ["staged", undefined]],
    );
    assert.deepEqual(items[1].tags, { t: "1" });
    assert.deepEqual(items[1].metadata, { Key: "value" });
    assert.equal(items[2].properties.copyStatus, "success");
    assert.equal(items[3].properties.contentLength, 0);
  }));

  test("show properties", withContainer(async (container) => {
    const blob = await put(container, "b", "x", { blobHTTPHeaders: { blobContentLanguage: "de" } });
    const [{ properties }] = await all(container.listBlobsFlat());
    const found = await blob.getProperties();
    assert.equal(properties.etag, found.etag.replaceAll('"', ""));
    assert.deepEqual(
      [properties.contentLength, properties.contentLanguage, properties.blobType, properties.accessTier],
      [1, "de", "BlockBlob", "Hot"],
    );
    assert.deepEqual(properties.createdOn, found.createdOn);
    assert.equal(properties.leaseState, "available");
  }));

  test("refuse a page of nothing", withContainer(async (container) => {
    await assertRefused(
      container.listBlobsFlat().byPage({ maxPageSize: -1 }).next(), 400, "OutOfRangeQueryParameterValue",
    );
  }));
});
