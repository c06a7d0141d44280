// Paging: pages of the requested size, and tokens that another client can use later.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { all, assertRefused, sharedTable, tableClient, withTable } from "./support.mjs";

const PARTITIONS = 3;
const ROWS_PER_PARTITION = 850; // 2,550 rows fill three pages of a thousand

const ALL = [];
for (let p = 0; p < PARTITIONS; p++) {
  for (let n = 0; n < ROWS_PER_PARTITION; n++) ALL.push(`p${p}/${String(n).padStart(5, "0")}`);
}

const keys = (entities) => entities.map((entity) => `${entity.partitionKey}/${entity.rowKey}`);

describe("paging", () => {
  const table = sharedTable(async (table) => {
    for (let p = 0; p < PARTITIONS; p++) {
      for (let start = 0; start < ROWS_PER_PARTITION; start += 50) {
        const actions = [];
        for (let n = start; n < start + 50; n++) {
          actions.push(["create", { partitionKey: `p${p}`, rowKey: String(n).padStart(5, "0"), n }]);
        }
        await table.submitTransaction(actions);
      }
    }
  });

  test("a plain listing follows continuations to the end", async () => {
    assert.deepEqual(keys(await all(table.listEntities())), ALL);
  });

  test("a page without a size has at most 1000", async () => {
    const sizes = (await all(table.listEntities().byPage())).map((page) => page.length);
    assert.equal(sizes.reduce((sum, size) => sum + size), ALL.length);
    assert.equal(Math.max(...sizes), 1000);
  });

  for (const maxPageSize of [1000, 850, 400]) {
    test(`pages of ${maxPageSize}`, async () => {
      const pages = await all(table.listEntities().byPage({ maxPageSize }));
      assert.deepEqual(keys(pages.flat()), ALL);
      assert.equal(pages[0].length, maxPageSize);
      assert.ok(pages.every((page) => page.length <= maxPageSize));
      assert.equal(pages.at(-1).continuationToken, undefined);
    });
  }

  test("a saved token resumes where it stopped, in another client", async () => {
    const { value: first } = await table.listEntities().byPage({ maxPageSize: 700 }).next();
    const { continuationToken } = first;
    assert.ok(continuationToken);
    const other = tableClient(table.tableName);
    const rest = await all(other.listEntities().byPage({ maxPageSize: 700, continuationToken }));
    assert.deepEqual(keys([...first, ...rest.flat()]), ALL);
  });

  test("a filtered listing pages within its filter", async () => {
    const filter = "PartitionKey eq 'p1' and n ge 100 and n lt 160";
    const pages = await all(table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: 25 }));
    assert.deepEqual(keys(pages.flat()), ALL.slice(950, 1010));
    assert.ok(pages.every((page) => page.length <= 25));
  });

  test("more than 1000 per page is refused", async () => {
    await assertRefused(table.listEntities().byPage({ maxPageSize: 1001 }).next(), 400, "InvalidInput");
  });

  test("a token stays good when the entity it names is gone", withTable(async (table) => {
    for (const rowKey of "012345") await table.createEntity({ partitionKey: "p", rowKey });
    const { value: first } = await table.listEntities().byPage({ maxPageSize: 2 }).next();
    await table.deleteEntity("p", "1");
    await table.deleteEntity("p", "2");
    const rest = await all(
      table.listEntities().byPage({ maxPageSize: 2, continuationToken: first.continuationToken }),
    );
    assert.deepEqual(keys(rest.flat()), ["p/3", "p/4", "p/5"]);
  }));
});
