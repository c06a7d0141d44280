// Tables: create, list, filter, delete.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { odata } from "@azure/data-tables";

import { all, assertRefused, freshName, service, tableClient, withTable } from "./support.mjs";

async function names(filter) {
  const items = await all(service.listTables(filter ? { queryOptions: { filter } } : {}));
  return items.map((item) => item.name);
}

async function withTables(suffixes, work) {
  const prefix = freshName();
  const created = suffixes.map((suffix) => prefix + suffix);
  for (const name of created) await service.createTable(name);
  try {
    await work(created);
  } finally {
    for (const name of created) await service.deleteTable(name);
  }
}

describe("tables", () => {
  test("a created table is listed and a deleted one is not", async () => {
    const name = freshName();
    assert.ok(!(await names()).includes(name));
    await service.createTable(name);
    assert.equal((await names()).filter((found) => found === name).length, 1);
    await service.deleteTable(name);
    assert.ok(!(await names()).includes(name));
  });

  test("creating a table that exists keeps what is in it", withTable(async (table) => {
    await table.createEntity({ partitionKey: "p", rowKey: "r", n: 7 });
    // The SDK ignores 409 TableAlreadyExists, and nothing else.
    await service.createTable(table.tableName);
    await service.createTable(table.tableName.toUpperCase());
    assert.equal((await table.getEntity("p", "r")).n, 7);
    assert.deepEqual(await names(odata`TableName eq ${table.tableName}`), [table.tableName]);
  }));

  test("creating a table twice answers 409", withTable(async (table) => {
    let status;
    await table.createTable({ onResponse: (response) => (status = response.status) });
    assert.equal(status, 409);
  }));

  test("deleting a table that is not there is quiet", async () => {
    let status;
    await service.deleteTable(freshName(), { onResponse: (response) => (status = response.status) });
    assert.equal(status, 404);
  });

  test("a table is found whatever the case of its name", withTable(async (table) => {
    await table.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
    assert.equal((await tableClient(table.tableName.toUpperCase()).getEntity("p", "r")).n, 1);
  }));

  test("listing keeps the case of names", async () => {
    const name = "Mixed" + freshName().toUpperCase();
    await service.createTable(name);
    assert.ok((await names()).includes(name));
    await service.deleteTable(name);
  });

  test("a table created again is empty", async () => {
    const table = tableClient(freshName());
    await table.createTable();
    await table.createEntity({ partitionKey: "p", rowKey: "r" });
    await table.deleteTable();
    await table.createTable();
    assert.deepEqual(await all(table.listEntities()), []);
    await table.deleteTable();
  });

  test("a filter finds by name and by range, in order", () =>
    withTables(["a", "b", "c", "d", "e"], async (created) => {
      assert.deepEqual(await names(odata`TableName eq ${created[2]}`), [created[2]]);
      const range = odata`TableName ge ${created[1]} and TableName lt ${created[4]}`;
      assert.deepEqual(await names(range), created.slice(1, 4));
      assert.deepEqual(await names(odata`TableName eq ${freshName()}`), []);
    }));

  test("pages give each table once, and a saved token resumes", () =>
    withTables(["a", "b", "c", "d", "e"], async (created) => {
      const filter = odata`TableName ge ${created[0]} and TableName lt ${created[4] + "z"}`;
      const list = () => service.listTables({ queryOptions: { filter } });
      const pages = await all(list().byPage({ maxPageSize: 2 }));
      assert.deepEqual(pages.flat().map((item) => item.name), created);
      assert.ok(pages.every((page) => page.length <= 2));

      const { value: first } = await list().byPage({ maxPageSize: 2 }).next();
      assert.ok(first.continuationToken);
      const rest = await all(list().byPage({ maxPageSize: 2, continuationToken: first.continuationToken }));
      assert.deepEqual([...first, ...rest.flat()].map((item) => item.name), created);
    }));

  for (const [name, code] of [
    ["ab", "OutOfRangeInput"],
    ["a".repeat(64), "OutOfRangeInput"],
    ["1abc", "InvalidResourceName"],
    ["a-b-c", "InvalidResourceName"],
    ["with space", "InvalidResourceName"],
  ]) {
    test(`the name ${name.slice(0, 12)} is refused`, () => assertRefused(service.createTable(name), 400, code));
  }

  test("entities of a missing table are not found", async () => {
    const missing = tableClient(freshName());
    const entity = { partitionKey: "p", rowKey: "r" };
    for (const call of [
      () => missing.createEntity(entity),
      () => missing.getEntity("p", "r"),
      () => missing.upsertEntity(entity, "Replace"),
      () => missing.updateEntity(entity, "Merge"),
      () => missing.deleteEntity("p", "r"),
      () => all(missing.listEntities()),
    ]) {
      await assertRefused(call(), 404, "TableNotFound", "The table specified does not exist.");
    }
  });
});
