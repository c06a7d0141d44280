// Limits: the largest accepted, the smallest refused, and requests without valid credentials.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { TableServiceClient } from "@azure/data-tables";

import { all, assertRefused, clientOptions, connectionString, plain, withTable } from "./support.mjs";

const many = (count, value) => Object.fromEntries([...Array(count).keys()].map((n) => [`p${n}`, value]));

function accepted(name, properties) {
  test(name, withTable(async (table) => {
    const sent = { partitionKey: "p", rowKey: "r", ...properties };
    await table.createEntity(sent);
    assert.deepEqual(plain(await table.getEntity("p", "r")), sent);
  }));
}

function refused(name, properties, code, message) {
  test(name, withTable(async (table) => {
    const sent = { partitionKey: "p", rowKey: "r", ...properties };
    await assertRefused(table.createEntity(sent), 400, code, message);
    await assertRefused(table.upsertEntity(sent, "Merge"), 400, code, message);
    await assertRefused(table.upsertEntity(sent, "Replace"), 400, code, message);
    assert.deepEqual(await all(table.listEntities()), []);
  }));
}

describe("limits", () => {
  refused("a string of more than 32 Ki characters", { s: "x".repeat(32769) }, "PropertyValueTooLarge", "(64KB)");
  refused("a string of more than 16 Ki emoji", { s: "😀".repeat(16385) }, "PropertyValueTooLarge");
  refused("a binary of more than 64 KiB", { b: new Uint8Array(65537) }, "PropertyValueTooLarge");
  accepted("252 properties", many(252, 1));
  refused("253 properties", many(253, 1), "TooManyProperties", "up to 252 properties");
  accepted("a property name of 255 characters", { ["n".repeat(255)]: 1 });
  refused("a property name of 256 characters", { ["n".repeat(256)]: 1 }, "PropertyNameTooLong", "(255)");
  refused("a property name with a dash", { "a-b": 1 }, "PropertyNameInvalid");
  accepted("an entity just below 1 MiB", many(16, "x".repeat(32000)));
  refused("an entity above 1 MiB", many(17, "x".repeat(32768)), "EntityTooLarge");
  refused("a date before 1601", { t: new Date("1600-12-31T23:59:59.999Z") }, "OutOfRangeInput");
  refused("a date that is none", { t: { type: "DateTime", value: "never" } }, "InvalidInput");
  refused("a GUID that is none", { g: { type: "Guid", value: "nothing" } }, "InvalidInput");
  refused("an Int64 beyond 64 bits", { l: { type: "Int64", value: "9223372036854775808" } }, "InvalidInput");
  refused("an Int32 beyond 32 bits", { l: { type: "Int32", value: 2147483648 } }, "InvalidInput");

  test("a wrong key is an authentication failure", async () => {
    const wrong = connectionString.replace(/AccountKey=[^;]*/, "AccountKey=" + Buffer.from("wrong".repeat(12)).toString("base64"));
    const client = TableServiceClient.fromConnectionString(wrong, clientOptions);
    await assertRefused(all(client.listTables()), 403, "AuthenticationFailed");
  });
});
