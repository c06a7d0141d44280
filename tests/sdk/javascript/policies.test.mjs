// Access policies: stored with the table, returned as set, at most five.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { assertRefused, freshName, tableClient, withTable } from "./support.mjs";

// Whole seconds, because the SDK sends no fractions.
const start = new Date("2021-06-08T02:05:09Z");
const expiry = new Date("2021-06-08T03:10:09Z");

/** The policies as plain values, in order. */
const policies = async (table) =>
  [...(await table.getAccessPolicy())].map(({ id, accessPolicy = {} }) => {
    const { start, expiry, permission } = accessPolicy;
    return { id, start, expiry, permission };
  });
const policy = (id, fields) => ({ id, start: undefined, expiry: undefined, permission: undefined, ...fields });

describe("policies", () => {
  test("a new table has none", withTable(async (table) => {
    assert.deepEqual(await policies(table), []);
  }));

  test("they come back as they were set, in order", withTable(async (table) => {
    await table.setAccessPolicy([
      { id: "full", accessPolicy: { start, expiry, permission: "raud" } },
      { id: "second", accessPolicy: { start, expiry, permission: "r" } },
    ]);
    assert.deepEqual(await policies(table), [
      policy("full", { start, expiry, permission: "raud" }),
      policy("second", { start, expiry, permission: "r" }),
    ]);
  }));

  test("each field is optional", withTable(async (table) => {
    await table.setAccessPolicy([
      { id: "start", accessPolicy: { start } },
      { id: "expiry", accessPolicy: { expiry } },
      { id: "permission", accessPolicy: { permission: "a" } },
      { id: "none" },
    ]);
    assert.deepEqual(await policies(table), [
      policy("start", { start }), policy("expiry", { expiry }), policy("permission", { permission: "a" }), policy("none"),
    ]);
  }));

  test("times come back with seven digits of a second", withTable(async (table) => {
    await table.setAccessPolicy([{ id: "a", accessPolicy: { start, expiry, permission: "r" } }]);
    let body;
    await table.getAccessPolicy({ onResponse: (response) => (body = response.bodyAsText) });
    assert.match(body, /<Start>2021-06-08T02:05:09\.0000000Z<\/Start><Expiry>2021-06-08T03:10:09\.0000000Z<\/Expiry>/);
  }));

  test("setting replaces all, and an empty list clears all", withTable(async (table) => {
    const some = (...ids) => ids.map((id) => ({ id, accessPolicy: { permission: "r" } }));
    await table.setAccessPolicy(some("a", "b"));
    await table.setAccessPolicy(some("c"));
    assert.deepEqual((await policies(table)).map(({ id }) => id), ["c"]);
    await table.setAccessPolicy([]);
    assert.deepEqual(await policies(table), []);
  }));

  test("five are accepted and six refused", withTable(async (table) => {
    const six = [..."abcdef"].map((id) => ({ id, accessPolicy: { permission: "r" } }));
    await table.setAccessPolicy(six.slice(0, 5));
    assert.equal((await policies(table)).length, 5);
    await assertRefused(table.setAccessPolicy(six), 400, "InvalidXmlDocument");
    assert.equal((await policies(table)).length, 5);
  }));

  test("an identifier has 64 characters at most, of any kind", withTable(async (table) => {
    const longest = "ü<&>\"' ".padEnd(64, "x");
    await table.setAccessPolicy([{ id: longest, accessPolicy: { permission: "r" } }]);
    assert.deepEqual(await policies(table), [policy(longest, { permission: "r" })]);
    await assertRefused(table.setAccessPolicy([{ id: longest + "x", accessPolicy: {} }]), 400, "InvalidXmlDocument");
  }));

  test("they go with their table", withTable(async (table) => {
    await table.setAccessPolicy([{ id: "a", accessPolicy: { permission: "r" } }]);
    await table.deleteTable();
    await table.createTable();
    assert.deepEqual(await policies(table), []);
  }));

  test("those of a missing table are not found", async () => {
    const missing = tableClient(freshName());
    await assertRefused(missing.getAccessPolicy(), 404, "TableNotFound");
    await assertRefused(missing.setAccessPolicy([]), 404, "TableNotFound");
  });
});
