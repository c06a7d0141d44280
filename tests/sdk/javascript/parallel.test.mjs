// Parallel use: with many requests in flight nothing is lost and nothing is invented.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { all, withTable } from "./support.mjs";

const range = (count) => [...Array(count).keys()];

describe("parallel use", () => {
  test("inserts and reads in flight together", withTable(async (table) => {
    const found = await Promise.all(
      range(300).map(async (n) => {
        const [partitionKey, rowKey] = [`p${n % 7}`, String(n)];
        await table.createEntity({ partitionKey, rowKey, n });
        return (await table.getEntity(partitionKey, rowKey)).n;
      }),
    );
    assert.deepEqual(found, range(300));
    const listed = (await all(table.listEntities())).map((entity) => entity.n);
    assert.deepEqual(listed.sort((a, b) => a - b), range(300));
  }));

  test("of inserts of the same entity one wins", withTable(async (table) => {
    const results = await Promise.allSettled(
      range(40).map((winner) => table.createEntity({ partitionKey: "p", rowKey: "r", winner })),
    );
    const winners = range(40).filter((n) => results[n].status === "fulfilled");
    assert.equal(winners.length, 1);
    assert.equal((await table.getEntity("p", "r")).winner, winners[0]);
    assert.ok(results.every((result) => result.status === "fulfilled" || result.reason.statusCode === 409));
  }));

  test("counting with etags loses no update", withTable(async (table) => {
    await table.createEntity({ partitionKey: "p", rowKey: "r", count: 0 });
    const addOne = async () => {
      for (;;) {
        const entity = await table.getEntity("p", "r");
        try {
          await table.updateEntity({ partitionKey: "p", rowKey: "r", count: entity.count + 1 }, "Replace", { etag: entity.etag });
          return;
        } catch (error) {
          if (error.statusCode !== 412) throw error;
        }
      }
    };
    await Promise.all(range(8).map(async () => { for (const _ of range(10)) await addOne(); }));
    assert.equal((await table.getEntity("p", "r")).count, 80);
  }));

  test("merges of different properties all stay", withTable(async (table) => {
    await Promise.all(range(100).map((n) => table.upsertEntity({ partitionKey: "p", rowKey: "r", [`p${n}`]: n }, "Merge")));
    const found = await table.getEntity("p", "r");
    for (const n of range(100)) assert.equal(found[`p${n}`], n);
  }));

  test("readers see all of a transaction or nothing", withTable(async (table) => {
    const rows = range(20).map((n) => String(n).padStart(2, "0"));
    const write = (n) => table.submitTransaction(rows.map((rowKey) => ["upsert", { partitionKey: "p", rowKey, n }, "Replace"]));
    const read = async () => new Set((await all(table.listEntities())).map((entity) => entity.n)).size;
    await write(0);
    const seen = await Promise.all(range(60).map((n) => (n % 2 ? write(n).then(() => 1) : read())));
    assert.ok(seen.every((values) => values === 1));
  }));
});
