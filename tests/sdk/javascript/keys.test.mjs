// Keys: every legal character survives URLs, bodies, batches, filters and continuation tokens.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { odata } from "@azure/data-tables";

import { all, assertRefused, plain, sharedTable, withTable } from "./support.mjs";

const AWKWARD = [
  "", " ", "a b", " leading", "trailing ", "O'Brien", "''", "'", "100%", "%", "%27", "%2F", "%252F", "a+b", "a&b=c",
  "a,b", "a;b", '"quoted"', "key:with:colons", "..", ".", "(a)", "[a]{b}|^`~", "<a>", "$batch", "@a*!", "ü", "u\u0308",
  "日本語", "😀", "a😀b\u{10ffff}", "\ue000\uffee", "x".repeat(512),
];

// JavaScript compares strings by UTF-16 code unit, as the service does.
const inOrder = [...AWKWARD].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));

describe("keys", () => {
  for (const key of AWKWARD) {
    test(`every verb finds the key ${JSON.stringify(key).slice(0, 24)}`, withTable(async (table) => {
      const ident = { partitionKey: key, rowKey: key };
      const stored = async () => plain(await table.getEntity(key, key));
      await table.createEntity({ ...ident, n: 1 });
      assert.deepEqual(await stored(), { ...ident, n: 1 });
      await table.updateEntity({ ...ident, m: 2 }, "Merge");
      await table.upsertEntity({ ...ident, n: 3 }, "Merge");
      assert.deepEqual(await stored(), { ...ident, n: 3, m: 2 });
      await table.updateEntity({ ...ident, n: 4 }, "Replace");
      const filter = odata`PartitionKey eq ${key} and RowKey eq ${key}`;
      const found = await all(table.listEntities({ queryOptions: { filter } }));
      assert.deepEqual(found.map(plain), [{ ...ident, n: 4 }]);
      await table.submitTransaction([["update", { ...ident, n: 5 }, "Replace"]]);
      assert.deepEqual(await stored(), { ...ident, n: 5 });
      await table.deleteEntity(key, key);
      await table.submitTransaction([["create", { ...ident, n: 6 }]]);
      assert.deepEqual(await stored(), { ...ident, n: 6 });
      await table.submitTransaction([["delete", ident]]);
      assert.deepEqual(await all(table.listEntities()), []);
    }));
  }

  for (const character of ["/", "\\", "#", "?", "\t", "\n", "\u0000", "\u007f", "\u0080", "\u009f"]) {
    test(`the character ${JSON.stringify(character)} is refused`, withTable(async (table) => {
      const text = `a${character}b`;
      await assertRefused(table.createEntity({ partitionKey: text, rowKey: "r" }), 400, "OutOfRangeInput", "The 'PartitionKey' parameter");
      await assertRefused(table.createEntity({ partitionKey: "p", rowKey: text }), 400, "OutOfRangeInput", "The 'RowKey' parameter");
      assert.deepEqual(await all(table.listEntities()), []);
    }));
  }

  test("a missing key is refused", withTable(async (table) => {
    await assertRefused(table.createEntity({ rowKey: "r" }), 400, "PropertiesNeedValue");
    await assertRefused(table.createEntity({ partitionKey: "p" }), 400, "PropertiesNeedValue");
  }));
});

describe("awkward keys together", () => {
  const table = sharedTable(async (table) => {
    for (const key of AWKWARD) await table.createEntity({ partitionKey: key, rowKey: key, own: key });
  });

  test("are listed in UTF-16 order", async () => {
    const listed = await all(table.listEntities());
    assert.deepEqual(listed.map((entity) => entity.rowKey), inOrder);
    assert.ok(listed.every((entity) => entity.own === entity.rowKey && entity.partitionKey === entity.rowKey));
  });

  test("are paged one by one without loss", async () => {
    const pages = await all(table.listEntities().byPage({ maxPageSize: 1 }));
    assert.deepEqual(pages.flat().map((entity) => entity.rowKey), inOrder);
  });
});
