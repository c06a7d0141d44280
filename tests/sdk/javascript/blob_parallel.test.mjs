// Parallel use of blobs: one winner of each race, nothing lost.

import assert from "node:assert/strict";
import { test } from "node:test";

import { blockId, bytesOf, content, put, text, withContainer } from "./blob_support.mjs";

const each = (count, work) => Promise.all(Array.from({ length: count }, (_, number) => work(number)));

test("of those who create the same blob one creates it", withContainer(async (container) => {
  const outcomes = await each(20, (number) => put(container, "b", `${number}`, { conditions: { ifNoneMatch: "*" } })
    .then(() => number, ({ code }) => assert.equal(code, "BlobAlreadyExists")));
  const winners = outcomes.filter((number) => number !== undefined);
  assert.equal(winners.length, 1);
  assert.equal(await text(container.getBlobClient("b")), `${winners[0]}`);
}));

test("a counter with ETags loses no step", withContainer(async (container) => {
  const blob = await put(container, "counter", "0");
  await each(20, async () => {
    for (;;) {
      const { etag } = await blob.getProperties();
      try {
        const value = Number(await text(blob, 0, undefined, { conditions: { ifMatch: etag } }));
        await put(container, "counter", `${value + 1}`, { conditions: { ifMatch: etag } });
        return;
      } catch (error) {
        assert.equal(error.statusCode, 412);
      }
    }
  });
  assert.equal(await text(blob), "20");
}));

test("appends of many are all there", withContainer(async (container) => {
  const log = container.getAppendBlobClient("log");
  await log.create();
  const places = await each(100, async (number) => {
    const line = `${number}`.padStart(4, "0") + "\n";
    return [Number((await log.appendBlock(line, 5)).blobAppendOffset), line];
  });
  const found = await text(log);
  assert.equal(found.length, 500);
  for (const [place, line] of places) assert.equal(found.slice(place, place + 5), line);
}));

test("blocks staged by many are committed by one", withContainer(async (container) => {
  const blob = container.getBlockBlobClient("b");
  const ids = Array.from({ length: 50 }, (_, number) => blockId(`${number}`.padStart(3, "0")));
  await each(50, (number) => blob.stageBlock(ids[number], bytesOf(2000, number + 1), 2000));
  await blob.commitBlockList(ids);
  const expected = Buffer.concat(ids.map((_, number) => bytesOf(2000, number + 1)));
  assert.ok((await content(blob)).equals(expected));
}));
