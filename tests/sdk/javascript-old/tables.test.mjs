// Tables: create, look for, list and delete, with the answers that the older client turns into booleans.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { assertRefused, freshName, service, withTable } from "./support.mjs";

describe("tables", () => {
  test("a created table exists until it is deleted", async () => {
    const name = freshName();
    assert.equal((await service.doesTableExist(name)).result.exists, false);
    const { result, response } = await service.createTable(name);
    assert.equal(result.TableName, name);
    assert.equal(response.statusCode, 204); // The client asks for no content.
    assert.equal((await service.doesTableExist(name)).result.exists, true);
    assert.equal((await service.deleteTable(name)).response.statusCode, 204);
    assert.equal((await service.doesTableExist(name)).result.exists, false);
  });

  test("create if not exists says whether it created", async () => {
    const name = freshName();
    assert.equal((await service.createTableIfNotExists(name)).result.created, true);
    assert.equal((await service.createTableIfNotExists(name)).result.created, false);
    await service.deleteTable(name);
  });

  test("delete if exists says whether it deleted", async () => {
    const name = freshName();
    await service.createTable(name);
    assert.equal((await service.deleteTableIfExists(name)).result, true);
    assert.equal((await service.deleteTableIfExists(name)).result, false);
  });

  test("a second create conflicts, in any case of the name", withTable(async (table) => {
    await assertRefused(service.createTable(table), 409, "TableAlreadyExists", "The table specified already exists.");
    await assertRefused(service.createTable(table.toUpperCase()), 409, "TableAlreadyExists");
  }));

  test("delete of a missing table is not found", async () => {
    await assertRefused(service.deleteTable(freshName()), 404, "ResourceNotFound");
  });

  test("tables are listed by prefix, in order", async () => {
    const start = freshName();
    const names = ["a", "b", "c"].map((end) => start + end);
    for (const name of names.toReversed()) await service.createTable(name);
    const { result } = await service.listTablesSegmentedWithPrefix(start, null);
    assert.deepEqual(result.entries, names);
    assert.equal(result.continuationToken, null);
    for (const name of names) await service.deleteTable(name);
  });

  test("tables are listed in pages", async () => {
    const start = freshName();
    const names = ["a", "b", "c", "d", "e"].map((end) => start + end);
    for (const name of names) await service.createTable(name);
    const found = [];
    const sizes = [];
    let token = null;
    do {
      const { result } = await service.listTablesSegmentedWithPrefix(start, token, { maxResults: 2 });
      found.push(...result.entries);
      sizes.push(result.entries.length);
      token = result.continuationToken;
    } while (token);
    assert.deepEqual(found, names);
    assert.deepEqual(sizes, [2, 2, 1]);
    for (const name of names) await service.deleteTable(name);
  });
});
