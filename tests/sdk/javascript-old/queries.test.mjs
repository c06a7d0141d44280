// Queries as the older client writes them: filters for every type, operators, select and top.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  all, as, assertRefused, entity, freshName, page, plain, service, sharedTable, TableBatch, TableQuery,
} from "./support.mjs";

const GUID = "c9da6455-213d-42c9-9a79-3e9149a57833";
const time = (n) => new Date(Date.UTC(2020, 0, 1 + n, 1, 2, 3, 4));

describe("queries", () => {
  const table = sharedTable(async (table) => {
    const batch = new TableBatch();
    for (let n = 0; n < 10; n++) {
      batch.insertEntity(entity(`r${n}`, {
        n,
        text: `it's ${n}`,
        int64: as.Int64(String(9007199254740990n + BigInt(n))),
        double: as.Double(n + 0.5),
        even: as.Boolean(n % 2 === 0),
        time: as.DateTime(time(n)),
        guid: as.Guid(GUID.replace(/3$/, String(n))),
        bytes: as.Binary(Buffer.from([n])),
      }));
    }
    await service.executeBatch(table, batch);
  });
  const found = async (query) => (await all(table, query)).map((entity) => entity.n._);
  const where = (...condition) => new TableQuery().where(...condition);

  const filters = {
    "text with a quote": [where("text == ?", "it's 3"), [3]],
    "a range of texts": [where("RowKey >= ? && RowKey < ?", "r4", "r6"), [4, 5]],
    "int32": [where("n > ?int32?", 7), [8, 9]],
    "int64": [where("int64 >= ?int64?", "9007199254740998"), [8, 9]],
    "double": [where("double < ?double?", 1.6), [0, 1]],
    "boolean": [where("even == ?bool?", true), [0, 2, 4, 6, 8]],
    "date": [where("time == ?date?", time(4)), [4]],
    "guid": [where("guid == ?guid?", GUID.replace(/3$/, "7")), [7]],
    "binary": [where("bytes == ?binary?", Buffer.from([5])), [5]],
    "or": [where("n == ?", 1).or("n == ?", 8), [1, 8]],
    "and": [where("n > ?", 2).and("even == ?", false), [3, 5, 7, 9]],
    "not": [where("not (n < ?)", 8), [8, 9]],
    "combined": [
      where(TableQuery.combineFilters(TableQuery.int32Filter("n", "ge", 3), "and", TableQuery.booleanFilter("even", "ne", true))),
      [3, 5, 7, 9],
    ],
    "nothing": [where("n == ?", 99), []],
  };
  for (const [name, [query, expected]] of Object.entries(filters)) {
    test(`a filter by ${name}`, async () => assert.deepEqual(await found(query), expected));
  }

  test("select returns only the chosen properties, with null for absent ones", async () => {
    const query = new TableQuery().select(["n", "absent"]).where("n == ?", 3);
    const [entity] = await all(table, query);
    assert.equal(entity.n._, 3);
    assert.equal(entity.text, undefined);
    assert.equal(entity.absent?._ ?? null, null);
  });

  test("top bounds a page", async () => {
    const { entries, continuationToken } = await page(table, new TableQuery().top(3));
    assert.deepEqual(entries.map((entity) => entity.n._), [0, 1, 2]);
    assert.ok(continuationToken);
  });

  test("an entity resolver gets whole entities", async () => {
    const options = { entityResolver: (entity) => plain(entity).n * 2 };
    const { result } = await service.queryEntities(table, where("n < ?", 3), null, options);
    assert.deepEqual(result.entries, [0, 2, 4]);
  });

  test("a filter that is none is refused", async () => {
    await assertRefused(all(table, where("n eq eq 1")), 400, "InvalidInput");
  });

  test("a query of a missing table is table not found", async () => {
    await assertRefused(all(freshName()), 404, "TableNotFound");
  });
});
