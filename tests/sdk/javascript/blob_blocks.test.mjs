// Blocks, appended blocks and pages.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";

import { all } from "./support.mjs";
import { assertRefused, blockId, bytesOf, content, put, text, withContainer } from "./blob_support.mjs";

const PAGE = 512;
const sizes = (blocks) => (blocks ?? []).map(({ name, size }) => [Buffer.from(name, "base64").toString(), size]);

describe("blocks", () => {
  test("are staged, listed and committed in the order of the list", withContainer(async (container) => {
    const blob = container.getBlockBlobClient("b");
    await blob.stageBlock(blockId("1"), "one", 3);
    await blob.stageBlock(blockId("2"), "two!", 4);
    assert.equal(await blob.exists(), false);
    assert.deepEqual(sizes((await blob.getBlockList("uncommitted")).uncommittedBlocks).sort(), [["1", 3], ["2", 4]]);
    await blob.commitBlockList([blockId("2"), blockId("1"), blockId("2")]);
    assert.equal(await text(blob), "two!onetwo!");
    const list = await blob.getBlockList("all");
    assert.deepEqual(sizes(list.committedBlocks), [["2", 4], ["1", 3], ["2", 4]]);
    assert.deepEqual(sizes(list.uncommittedBlocks), []);
    await assertRefused(blob.commitBlockList([blockId("3")]), 400, "InvalidBlockList");
  }));

  test("bring properties, metadata, tags and a tier", withContainer(async (container) => {
    const blob = container.getBlockBlobClient("b");
    await blob.commitBlockList([], {
      blobHTTPHeaders: { blobContentType: "text/css" }, metadata: { a: "b" }, tags: { t: "1" }, tier: "Cool",
    });
    const found = await blob.getProperties();
    assert.deepEqual(
      [found.contentLength, found.contentType, found.metadata, found.accessTier, found.tagCount],
      [0, "text/css", { a: "b" }, "Cool", 1],
    );
  }));

  test("come from other blobs", withContainer(async (container) => {
    const source = await put(container, "source", "0123456789");
    const blob = container.getBlockBlobClient("b");
    await blob.stageBlockFromURL(blockId("1"), source.url, 2, 3);
    await blob.stageBlockFromURL(blockId("2"), source.url);
    await blob.commitBlockList([blockId("1"), blockId("2")]);
    assert.equal(await text(blob), "2340123456789");
    await blob.syncUploadFromURL(source.url);
    assert.equal(await text(blob), "0123456789");
    await assertRefused(
      blob.stageBlockFromURL(blockId("3"), container.getBlobClient("nope").url), 404, "CannotVerifyCopySource",
    );
  }));

  test("of one blob have ids of one length", withContainer(async (container) => {
    const blob = container.getBlockBlobClient("b");
    await blob.stageBlock(blockId("aa"), "x", 1);
    await assertRefused(blob.stageBlock(blockId("aaa"), "x", 1), 400, "InvalidBlobOrBlock");
    await assertRefused(blob.stageBlock(blockId("bb"), "", 0), 400, "InvalidHeaderValue");
    await assertRefused(blob.stageBlock("not base64!", "x", 1), 400, "InvalidQueryParameterValue");
  }));
});

describe("append blobs", () => {
  const withLog = (work) => withContainer(async (container) => {
    const log = container.getAppendBlobClient("log");
    await log.create({ metadata: { a: "b" } });
    await work(log, container);
  });

  test("grow", withLog(async (log) => {
    const first = await log.appendBlock("one", 3);
    const second = await log.appendBlock("two!", 4);
    assert.deepEqual([first.blobAppendOffset, second.blobAppendOffset], ["0", "3"]);
    assert.equal(second.blobCommittedBlockCount, 2);
    assert.equal(await text(log), "onetwo!");
    const found = await log.getProperties();
    assert.deepEqual([found.blobType, found.blobCommittedBlockCount, found.metadata], ["AppendBlob", 2, { a: "b" }]);
  }));

  test("have conditions of their own", withLog(async (log) => {
    await log.appendBlock("0123", 4, { conditions: { appendPosition: 0, maxSize: 4 } });
    const position = { conditions: { appendPosition: 3 } };
    await assertRefused(log.appendBlock("x", 1, position), 412, "AppendPositionConditionNotMet");
    await assertRefused(log.appendBlock("x", 1, { conditions: { maxSize: 4 } }), 412, "MaxBlobSizeConditionNotMet");
    assert.equal(await text(log), "0123");
  }));

  test("are sealed", withLog(async (log) => {
    await log.appendBlock("last", 4);
    assert.equal((await log.seal()).isSealed, true);
    await assertRefused(log.appendBlock("x", 1), 409, "BlobIsSealed");
    assert.equal((await log.getProperties()).isSealed, true);
  }));

  test("take blocks from other blobs", withLog(async (log, container) => {
    const source = await put(container, "source", "0123456789");
    await log.appendBlockFromURL(source.url, 3, 4);
    assert.equal(await text(log), "3456");
  }));

  test("do not replace blobs of another type", withLog(async (log, container) => {
    await assertRefused(container.getBlockBlobClient("log").upload("x", 1), 409, "InvalidBlobType");
    await assertRefused(container.getPageBlobClient("log").create(PAGE), 409, "InvalidBlobType");
    await assertRefused(container.getBlockBlobClient("log").getBlockList("all"), 409, "InvalidBlobType");
  }));
});

describe("page blobs", () => {
  const withDisk = (work) => withContainer(async (container) => {
    const disk = container.getPageBlobClient("disk");
    await disk.create(8 * PAGE, { blobSequenceNumber: 3 });
    await work(disk, container);
  });
  const ranges = async (disk) => (await disk.getPageRanges()).pageRange.map(({ offset, count }) => [offset, count]);

  test("are written and cleared by pages", withDisk(async (disk) => {
    const data = bytesOf(3 * PAGE);
    assert.ok((await content(disk)).equals(Buffer.alloc(8 * PAGE)));
    const written = await disk.uploadPages(data, PAGE, 3 * PAGE);
    assert.equal(written.blobSequenceNumber, 3);
    // The SDK calls the distance from the first byte to the last one a count.
    assert.deepEqual(await ranges(disk), [[PAGE, 3 * PAGE - 1]]);
    await disk.clearPages(2 * PAGE, PAGE);
    const expected = Buffer.concat([Buffer.alloc(PAGE), data, Buffer.alloc(4 * PAGE)]);
    expected.fill(0, 2 * PAGE, 3 * PAGE);
    assert.ok((await content(disk)).equals(expected));
    assert.equal((await ranges(disk)).length, 2);
  }));

  test("refuse what does not fit", withDisk(async (disk) => {
    await assertRefused(disk.uploadPages(bytesOf(PAGE), 8 * PAGE, PAGE), 416, "InvalidPageRange");
    await assertRefused(disk.uploadPages(bytesOf(100), 0, 100), 400, "InvalidHeaderValue");
    await assertRefused(disk.uploadPages(bytesOf(PAGE), 100, PAGE), 400, "InvalidHeaderValue");
    await assertRefused(disk.resize(100), 400, "InvalidHeaderValue");
  }));

  test("are resized and numbered", withDisk(async (disk) => {
    await disk.resize(2 * PAGE);
    assert.equal((await disk.getProperties()).contentLength, 2 * PAGE);
    await disk.updateSequenceNumber("max", 2);
    assert.equal((await disk.getProperties()).blobSequenceNumber, 3);
    await disk.updateSequenceNumber("increment");
    assert.equal((await disk.getProperties()).blobSequenceNumber, 4);
    const unmet = { conditions: { ifSequenceNumberEqualTo: 7 } };
    await assertRefused(disk.uploadPages(bytesOf(PAGE), 0, PAGE, unmet), 412, "SequenceNumberConditionNotMet");
  }));

  test("show what changed since a snapshot", withDisk(async (disk) => {
    await disk.uploadPages(bytesOf(PAGE), 0, PAGE);
    const { snapshot } = await disk.createSnapshot();
    await disk.uploadPages(bytesOf(PAGE, 2), PAGE, PAGE);
    await disk.clearPages(0, PAGE);
    const diff = await disk.getPageRangesDiff(0, 8 * PAGE, snapshot);
    assert.deepEqual(diff.pageRange.map(({ offset }) => offset), [PAGE]);
    assert.deepEqual(diff.clearRange.map(({ offset }) => offset), [0]);
    const items = await all(disk.listPageRangesDiff(0, 8 * PAGE, snapshot));
    assert.deepEqual(items.map(({ start, isClear }) => [start, isClear]).sort(), [[0, true], [PAGE, false]]);
  }));

  test("take pages from other blobs", withDisk(async (disk, container) => {
    const data = bytesOf(2 * PAGE);
    const source = await put(container, "source", data);
    const sourceContentMD5 = createHash("md5").update(data.subarray(PAGE)).digest();
    await disk.uploadPagesFromURL(source.url, PAGE, 2 * PAGE, PAGE, { sourceContentMD5 });
    assert.ok((await content(disk, 2 * PAGE, PAGE)).equals(data.subarray(PAGE)));
  }));
});
