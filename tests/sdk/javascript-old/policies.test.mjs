// Stored access policies: set, read back, replaced, cleared and refused.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { assertRefused, freshName, service, withTable } from "./support.mjs";

const START = new Date("2020-01-02T03:04:05Z");
const EXPIRY = new Date("2099-12-31T23:59:59Z");

async function policies(table) {
  return (await service.getTableAcl(table)).result.signedIdentifiers;
}

describe("policies", () => {
  test("a new table has none", withTable(async (table) => assert.deepEqual(await policies(table), {})));

  test("policies come back as they were set", withTable(async (table) => {
    const set = {
      reader: { Start: START, Expiry: EXPIRY, Permissions: "r" },
      "it's <&> Grüße": { Expiry: EXPIRY, Permissions: "raud" },
    };
    const { response } = await service.setTableAcl(table, set);
    assert.equal(response.statusCode, 204);
    const found = await policies(table);
    assert.deepEqual(Object.keys(found).toSorted(), Object.keys(set).toSorted());
    assert.equal(new Date(found.reader.Start).getTime(), START.getTime());
    assert.equal(new Date(found.reader.Expiry).getTime(), EXPIRY.getTime());
    assert.equal(found.reader.Permissions, "r");
    assert.equal(found["it's <&> Grüße"].Permissions, "raud");
  }));

  test("setting replaces all, and nothing clears all", withTable(async (table) => {
    await service.setTableAcl(table, { a: { Permissions: "r", Expiry: EXPIRY }, b: { Permissions: "a", Expiry: EXPIRY } });
    await service.setTableAcl(table, { c: { Permissions: "d", Expiry: EXPIRY } });
    assert.deepEqual(Object.keys(await policies(table)), ["c"]);
    await service.setTableAcl(table, {});
    assert.deepEqual(await policies(table), {});
  }));

  test("a sixth policy is refused", withTable(async (table) => {
    const six = Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [`p${n}`, { Permissions: "r", Expiry: EXPIRY }]));
    await assertRefused(service.setTableAcl(table, six), 400, "InvalidXmlDocument");
    assert.deepEqual(await policies(table), {});
  }));

  test("policies of a missing table are not found", async () => {
    const missing = freshName();
    await assertRefused(service.getTableAcl(missing), 404, "TableNotFound");
    await assertRefused(service.setTableAcl(missing, {}), 404, "TableNotFound");
  });
});
