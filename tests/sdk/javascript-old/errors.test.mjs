// Refusals as the older client reports them: status, code and message, from JSON and from XML.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import azure from "azure-storage";

import { as, assertRefused, entity, promised, service, settings, withTable } from "./support.mjs";

describe("errors", () => {
  test("a wrong key is not authentic", async () => {
    const key = Buffer.from("wrong").toString("base64");
    const other = promised(azure.createTableService(settings.AccountName, key, settings.TableEndpoint));
    await assertRefused(other.listTablesSegmented(null), 403, "AuthenticationFailed");
    await assertRefused(other.getServiceProperties(), 403, "AuthenticationFailed");
  });

  test("an error names the request", withTable(async (table) => {
    await assert.rejects(service.retrieveEntity(table, "p", "missing"), (error) => {
      assert.match(error.requestId, /^[0-9a-f-]{36}$/);
      assert.match(error.message, /RequestId:[0-9a-f-]{36}\nTime:\d{4}-/);
      return true;
    });
  }));

  const REFUSED = {
    "a text that is too long": [{ text: "x".repeat(32769) }, "PropertyValueTooLarge"],
    "an entity that is too large": [
      Object.fromEntries([...Array(17).keys()].map((n) => [`p${n}`, "x".repeat(32768)])), "EntityTooLarge",
    ],
    "a name that is no name": [{ "a-b": 1 }, "PropertyNameInvalid"],
    "a name that is too long": [{ ["n".repeat(256)]: 1 }, "PropertyNameTooLong"],
    "too many properties": [Object.fromEntries([...Array(253).keys()].map((n) => [`p${n}`, n])), "TooManyProperties"],
    "an Int64 that is no number": [{ n: as.Int64("many") }, "InvalidInput"],
    "a date before 1601": [{ time: as.DateTime("1600-12-31T23:59:59Z") }, "OutOfRangeInput"],
  };
  for (const [name, [properties, code]] of Object.entries(REFUSED)) {
    test(`${name} is refused`, withTable(async (table) => {
      await assertRefused(service.insertEntity(table, entity("a", properties)), 400, code);
    }));
  }
});
