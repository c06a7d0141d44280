// Transactions: all or nothing, and the index of the operation that failed.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { TableTransaction } from "@azure/data-tables";

import { all, assertRefused, freshName, plain, tableClient, withTable } from "./support.mjs";

const OLD_ETAG = `W/"datetime'2001-01-01T00%3A00%3A00Z'"`;

const entity = (rowKey, properties) => ({ partitionKey: "p", rowKey, ...properties });
const row = (n) => String(n).padStart(3, "0");
const contents = (table) => all(table.listEntities());

/** Expects failure at `index` (null where the service gives none) and an unchanged table. */
async function assertRolledBack(table, actions, index, statusCode, code) {
  const before = await contents(table);
  await assertRefused(table.submitTransaction(actions), statusCode, code, index === null ? undefined : `${index}:`);
  assert.deepEqual(await contents(table), before);
}

describe("transactions", () => {
  test("all kinds of operation in one transaction", withTable(async (table) => {
    for (const name of ["update-merge", "update-replace", "upsert-merge", "upsert-replace", "delete"]) {
      await table.createEntity(entity(name, { old: 1 }));
    }
    const transaction = new TableTransaction();
    transaction.createEntity(entity("create", { new: 2 }));
    transaction.updateEntity(entity("update-merge", { new: 2 }), "Merge");
    transaction.updateEntity(entity("update-replace", { new: 2 }), "Replace");
    transaction.upsertEntity(entity("upsert-merge", { new: 2 }), "Merge");
    transaction.upsertEntity(entity("upsert-replace", { new: 2 }), "Replace");
    transaction.upsertEntity(entity("upsert-absent", { new: 2 }), "Merge");
    transaction.deleteEntity("p", "delete");
    const answer = await table.submitTransaction(transaction.actions);

    const found = await contents(table);
    assert.deepEqual(found.map(plain), [
      entity("create", { new: 2 }),
      entity("update-merge", { old: 1, new: 2 }),
      entity("update-replace", { new: 2 }),
      entity("upsert-absent", { new: 2 }),
      entity("upsert-merge", { old: 1, new: 2 }),
      entity("upsert-replace", { new: 2 }),
    ]);
    assert.equal(answer.status, 202);
    assert.deepEqual(answer.subResponses.map((part) => part.status), [204, 204, 204, 204, 204, 204, 204]);
    const etag = (name) => found.find((entity) => entity.rowKey === name).etag;
    const order = ["create", "update-merge", "update-replace", "upsert-merge", "upsert-replace", "upsert-absent"];
    assert.deepEqual(answer.subResponses.map((part) => part.etag), [...order.map(etag), undefined]);
    assert.equal(answer.getResponseForEntity("create").etag, etag("create"));
  }));

  test("a hundred inserts", withTable(async (table) => {
    const actions = [];
    for (let n = 0; n < 100; n++) actions.push(["create", entity(row(n), { n })]);
    const answer = await table.submitTransaction(actions);
    const found = await contents(table);
    assert.deepEqual(found.map((entity) => entity.n), [...Array(100).keys()]);
    assert.deepEqual(answer.subResponses.map((part) => part.etag), found.map((entity) => entity.etag));
  }));

  test("a hundred mixed operations", withTable(async (table) => {
    const first = [];
    for (let n = 0; n < 75; n++) first.push(["create", entity(row(n), { n })]);
    await table.submitTransaction(first);
    const actions = [];
    const expected = [];
    for (let n = 0; n < 25; n++) actions.push(["delete", entity(row(n))]);
    for (let n = 25; n < 50; n++) {
      actions.push(["update", entity(row(n), { n: -n }), "Replace"]);
      expected.push(entity(row(n), { n: -n }));
    }
    for (let n = 50; n < 75; n++) {
      actions.push(["upsert", entity(row(n), { m: n }), "Merge"]);
      expected.push(entity(row(n), { n, m: n }));
    }
    for (let n = 75; n < 100; n++) {
      actions.push(["create", entity(row(n), { n })]);
      expected.push(entity(row(n), { n }));
    }
    const answer = await table.submitTransaction(actions);
    assert.equal(answer.subResponses.length, 100);
    assert.deepEqual((await contents(table)).map(plain), expected);
  }));

  for (const index of [0, 1, 50, 99]) {
    test(`an insert of an existing entity fails at index ${index}`, withTable(async (table) => {
      await table.createEntity(entity("taken", { n: 1 }));
      const actions = [];
      for (let n = 0; n < 100; n++) actions.push(["create", entity(n === index ? "taken" : row(n), { n: 2 })]);
      await assertRolledBack(table, actions, index, 409, "EntityAlreadyExists");
    }));
  }

  test("an update of a missing entity fails at its index", withTable(async (table) => {
    await table.createEntity(entity("there", { n: 1 }));
    for (const mode of ["Merge", "Replace"]) {
      const actions = [
        ["update", entity("there", { n: 2 }), mode],
        ["upsert", entity("new", { n: 2 }), mode],
        ["update", entity("missing", { n: 2 }), mode],
      ];
      await assertRolledBack(table, actions, 2, 404, "ResourceNotFound");
    }
  }));

  test("a delete of a missing entity fails at its index", withTable(async (table) => {
    await table.createEntity(entity("there", { n: 1 }));
    const actions = [
      ["delete", entity("there")],
      ["delete", entity("missing")],
      ["create", entity("new")],
    ];
    await assertRolledBack(table, actions, 1, 404, "ResourceNotFound");
  }));

  test("an old etag fails at its index, the right one passes", withTable(async (table) => {
    await table.createEntity(entity("a", { n: 1 }));
    const { etag } = await table.createEntity(entity("b", { n: 1 }));
    const actions = (etag) => [
      ["upsert", entity("a", { n: 2 }), "Replace"],
      ["update", entity("b", { n: 2 }), "Replace", { etag }],
    ];
    await assertRolledBack(table, actions(OLD_ETAG), 1, 412, "UpdateConditionNotSatisfied");
    await table.submitTransaction(actions(etag));
    assert.deepEqual((await contents(table)).map((entity) => entity.n), [2, 2]);
  }));

  test("the same row twice is refused", withTable(async (table) => {
    await table.createEntity(entity("there", { n: 1 }));
    const actions = [
      ["create", entity("a")],
      ["upsert", entity("there", { n: 2 }), "Merge"],
      ["update", entity("there", { n: 3 }), "Merge"],
    ];
    await assertRolledBack(table, actions, 2, 400, "InvalidDuplicateRow");
  }));

  test("more than a hundred operations are refused", withTable(async (table) => {
    const actions = [];
    for (let n = 0; n < 101; n++) actions.push(["create", entity(row(n))]);
    await assertRolledBack(table, actions, 99, 400, "InvalidInput");
  }));

  test("a value that is too large fails at its index", withTable(async (table) => {
    await table.createEntity(entity("there", { n: 1 }));
    const actions = [
      ["upsert", entity("there", { n: 2 }), "Merge"],
      ["create", entity("big", { text: "x".repeat(32769) })],
    ];
    await assertRolledBack(table, actions, 1, 400, "PropertyValueTooLarge");
  }));

  test("a failing single operation is reported", withTable(async (table) => {
    await table.createEntity(entity("taken", { n: 1 }));
    // The live service gives no index here.
    await assertRolledBack(table, [["create", entity("taken", { n: 2 })]], null, 409, "EntityAlreadyExists");
  }));

  test("a transaction on a missing table is not found", async () => {
    const missing = tableClient(freshName());
    const actions = [["create", entity("a")], ["create", entity("b")]];
    await assertRefused(missing.submitTransaction(actions), 404, "TableNotFound", "0:The table specified does not exist.");
  });

  test("a body above 4 MiB is too large", withTable(async (table) => {
    const text = "x".repeat(32768);
    const actions = [];
    for (let n = 0; n < 70; n++) actions.push(["create", entity(row(n), { a: text, b: text })]);
    await assertRefused(table.submitTransaction(actions), 413, "RequestBodyTooLarge");
    assert.deepEqual(await contents(table), []);
  }));

  test("values with braces and boundaries in them do not confuse anybody", withTable(async (table) => {
    const text = "{}--changeset_x\r\n--batch_x--\r\nHTTP/1.1 500 {\"odata.error\":{}}";
    const answer = await table.submitTransaction([["create", entity("a", { text })], ["upsert", entity("b{}", { text }), "Merge"]]);
    assert.equal(answer.subResponses.length, 2);
    assert.deepEqual((await contents(table)).map((entity) => entity.text), [text, text]);
  }));
});
