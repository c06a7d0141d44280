// Paging: pages of at most 1,000 entities, continuation tokens, and filters across them.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { entityIn, page, service, sharedTable, TableBatch, TableQuery } from "./support.mjs";

const row = (n) => String(n).padStart(4, "0");

describe("paging", () => {
  const table = sharedTable(async (table) => {
    for (const partition of ["a", "b"]) {
      for (let start = 0; start < 700; start += 100) {
        const batch = new TableBatch();
        for (let n = start; n < start + 100; n++) batch.insertEntity(entityIn(partition, row(n), { n }));
        await service.executeBatch(table, batch);
      }
    }
  });

  async function pages(query) {
    const sizes = [];
    const keys = [];
    let token = null;
    do {
      const { entries, continuationToken } = await page(table, query, token);
      sizes.push(entries.length);
      keys.push(...entries.map((entity) => entity.PartitionKey._ + entity.RowKey._));
      token = continuationToken;
    } while (token);
    assert.deepEqual(keys, keys.toSorted());
    assert.equal(new Set(keys).size, keys.length);
    return sizes;
  }

  test("a page has at most a thousand entities", async () => {
    assert.deepEqual(await pages(new TableQuery()), [1000, 400]);
  });

  test("top is the size of every page", async () => {
    assert.deepEqual(await pages(new TableQuery().top(500)), [500, 500, 400]);
  });

  test("a filter holds on every page", async () => {
    const sizes = await pages(new TableQuery().top(90).where("n >= ?", 600));
    assert.equal(sizes.reduce((sum, size) => sum + size), 200);
  });

  test("select holds on every page", async () => {
    const query = new TableQuery().select("PartitionKey", "RowKey");
    assert.deepEqual(await pages(query), [1000, 400]);
  });

  test("a token can be kept as JSON and used later", async () => {
    const first = await page(table, new TableQuery().top(1));
    const token = JSON.parse(JSON.stringify(first.continuationToken));
    const second = await page(table, new TableQuery().top(1), token);
    assert.equal(second.entries[0].RowKey._, row(1));
  });
});
