// Queries: filters over every type, the odata`` helper, select, and refusals.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { odata } from "@azure/data-tables";

import { all, assertRefused, plain, sharedTable } from "./support.mjs";

const NOON = new Date("2020-06-01T12:00:00Z");
const GUID = { type: "Guid", value: "a455c695-df98-5678-aaaa-81d3367e5a34" };

const ROWS = [
  { rowKey: "a", i: 1, d: 1.5, s: "apple", b: true, t: NOON },
  { rowKey: "b", i: 2, d: 2.5, s: "O'Brien", b: false, g: GUID },
  { rowKey: "c", i: 3, d: { type: "Double", value: 3 }, s: "Banana", x: new Uint8Array([1, 2, 255]) },
  { rowKey: "d", i: -4, s: "", l: 2n ** 40n },
  { rowKey: "e", s: "zürich 😀", l: 3n, v: "text" },
];

describe("queries", () => {
  const table = sharedTable(async (table) => {
    for (const row of ROWS) await table.createEntity({ partitionKey: "p", ...row });
  });

  const query = (filter, select) => all(table.listEntities({ queryOptions: { filter, select } }));
  const rows = async (filter) => (await query(filter)).map((entity) => entity.rowKey).join("");

  for (const [filter, expected] of [
    ["i eq 2", "b"],
    ["i ne 2", "acd"],
    ["i gt 2", "c"],
    ["i ge 2", "bc"],
    ["i lt 2", "ad"],
    ["i le 2", "abd"],
    ["not (i eq 2)", "acde"],
    ["nothing ne 1", ""],
    ["not (nothing eq 1)", "abcde"],
    ["d eq 3", "c"],
    ["d gt 1.5", "bc"],
    ["l eq 1099511627776L", "d"],
    ["l eq 3", "e"],
    ["l gt 3L", "d"],
    ["i eq 3L", ""],
    ["i lt 3L", "abcd"],
    ["v ne 5", "e"],
    ["v lt 5", "e"],
    ["s eq 'O''Brien'", "b"],
    ["s lt 'a'", "bcd"],
    ["s eq ''", "d"],
    ["b", "a"],
    ["not b", "bcde"],
    ["true", "abcde"],
    ["false", ""],
    ["t gt datetime'2020-06-01T11:59:59.9999999Z'", "a"],
    ["g eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'", "b"],
    ["x eq X'0102ff'", "c"],
    ["x eq binary'0102FF'", "c"],
    ["PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'd'", "bc"],
    ["'c' lt RowKey", "de"],
    ["RowKey eq 'e' or RowKey eq 'a'", "ae"],
    ["i eq 1 or i eq 2 and d eq 9.0", "a"],
    ["(i eq 1 or i eq 2) and d eq 2.5", "b"],
  ]) {
    test(`filter ${filter}`, async () => assert.equal(await rows(filter), expected));
  }

  for (const [filter, expected] of [
    [odata`s eq ${"O'Brien"}`, "b"],
    [odata`s eq ${"zürich 😀"}`, "e"],
    [odata`i ge ${1} and i le ${2}`, "ab"],
    [odata`d lt ${2.75}`, "ab"],
    [odata`b eq ${true}`, "a"],
    [odata`t eq ${NOON}`, "a"],
    [odata`PartitionKey eq ${"p"} and RowKey eq ${"d"}`, "d"],
  ]) {
    test(`odata helper ${filter}`, async () => assert.equal(await rows(filter), expected));
  }

  test("select returns exactly the chosen properties, null where an entity lacks one", async () => {
    const found = await query("i gt 0", ["rowKey", "g"]);
    assert.deepEqual(found.map(plain), [
      { rowKey: "a", g: null },
      { rowKey: "b", g: GUID },
      { rowKey: "c", g: null },
    ]);
    assert.ok(found.every((entity) => entity.etag));
  });

  test("select does not hide properties from the filter", async () => {
    assert.deepEqual((await query("i gt 1", ["s"])).map(plain), [{ s: "O'Brien" }, { s: "Banana" }]);
  });

  for (const [filter, status, code] of [
    ["aaa bbb ccc", 400, "InvalidInput"],
    ["i eq", 400, "InvalidInput"],
    ["i eq 'open", 400, "InvalidInput"],
    ["(i eq 1", 400, "InvalidInput"],
    ["i EQ 1", 400, "InvalidInput"],
    ["i eq 5454161346626", 400, "InvalidInput"],
    ["1", 400, "InvalidInput"],
    ["i eq d", 501, "NotImplemented"],
    ["1 eq 1", 501, "NotImplemented"],
    ["startswith(s,'a')", 501, "NotImplemented"],
  ]) {
    test(`refused: ${filter}`, () => assertRefused(query(filter), status, code));
  }
});
