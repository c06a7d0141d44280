// Keys that need escaping: in the path, in a filter, in a part of a batch and in a continuation token.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  all, assertRefused, entityIn, page, retrieve, service, TableBatch, TableQuery, withTable,
} from "./support.mjs";

const KEYS = [
  "it's", "''", "'", "100%", "%25", "%2F", "a b", "a+b", "a&b=c", "a,b", "(a)", "a;b", "a:b", "a@b", "a$b", "a=b", "a!b",
  "a*b", "~a", "\"a\"", "<a>", "{a}", "[a]", "a|b", "a^b", "`a`", "Grüße", "世界", "🙂", "é", "e\u0301", "a\u00a0b",
  " a ", ".", "..", "",
];

describe("keys", () => {
  for (const key of KEYS) {
    test(`the key ${JSON.stringify(key)}`, withTable(async (table) => {
      const keyed = (properties) => entityIn(key, key, properties);
      await service.insertEntity(table, keyed({ n: 1 }));
      assert.equal((await retrieve(table, key, key)).RowKey._, key);
      await service.mergeEntity(table, keyed({ m: 2 }));
      await service.replaceEntity(table, keyed({ n: 2 }));
      const query = new TableQuery().where("PartitionKey == ? && RowKey == ?", key, key);
      assert.deepEqual((await all(table, query)).map((found) => [found.PartitionKey._, found.n._, found.m]), [[key, 2, undefined]]);
      const batch = new TableBatch();
      batch.mergeEntity(keyed({ m: 3 }));
      await service.executeBatch(table, batch);
      assert.equal((await retrieve(table, key, key)).m._, 3);
      await service.deleteEntity(table, keyed());
      assert.deepEqual(await all(table), []);
    }));
  }

  test("pages go on after keys that need escaping", withTable(async (table) => {
    for (const key of KEYS) await service.insertEntity(table, entityIn(key, key));
    const found = [];
    let token = null;
    do {
      const { entries, continuationToken } = await page(table, new TableQuery().top(1), token);
      found.push(...entries.map((entity) => entity.RowKey._));
      token = continuationToken;
    } while (token);
    assert.deepEqual(found.toSorted(), KEYS.toSorted());
  }));

  for (const key of ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u0000b", "a\u007fb", "a\u0085b"]) {
    test(`the key ${JSON.stringify(key)} is refused`, withTable(async (table) => {
      await assertRefused(service.insertEntity(table, entityIn("p", key)), 400, "OutOfRangeInput");
      await assertRefused(service.insertEntity(table, entityIn(key, "r")), 400, "OutOfRangeInput");
      assert.deepEqual(await all(table), []);
    }));
  }

  test("a key of 1 KiB fits, a longer one does not", withTable(async (table) => {
    await service.insertEntity(table, entityIn("x".repeat(512), "y".repeat(512)));
    await assertRefused(service.insertEntity(table, entityIn("p", "y".repeat(513))), 400, "PropertyValueTooLarge");
  }));
});
