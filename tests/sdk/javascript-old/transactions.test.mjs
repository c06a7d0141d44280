// Batches as the older client writes them: lines that end in LF alone, `Content-ID`, `MERGE`, `type=entry`.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  all, as, assertRefused, entity, etagOf, freshName, plain, retrieve, service, TableBatch, withEtag, withTable,
} from "./support.mjs";

const OLD_ETAG = `W/"datetime'2001-01-01T00%3A00%3A00Z'"`;

function batchOf(...operations) {
  const batch = new TableBatch();
  for (const [operation, ...values] of operations) batch[operation](...values);
  return batch;
}

/** Executes a batch. Returns the results of its operations. */
async function execute(table, ...operations) {
  return (await service.executeBatch(table, batchOf(...operations))).result;
}

/** Expects failure at `index` and an unchanged table. */
async function assertRolledBack(table, operations, index, statusCode, code) {
  const before = await all(table);
  const start = index === undefined ? undefined : `${index}:`;
  await assertRefused(execute(table, ...operations), statusCode, code, start);
  assert.deepEqual(await all(table), before);
}

describe("transactions", () => {
  const WRITES = {
    insertEntity: { old: undefined, new: 2 },
    replaceEntity: { old: undefined, new: 2 },
    mergeEntity: { old: 1, new: 2 },
    insertOrReplaceEntity: { old: undefined, new: 2 },
    insertOrMergeEntity: { old: 1, new: 2 },
  };
  for (const [operation, expected] of Object.entries(WRITES)) {
    test(`${operation} alone in a batch`, withTable(async (table) => {
      if (operation !== "insertEntity") await service.insertEntity(table, entity("a", { old: 1 }));
      const [{ error, response, entity: answer }] = await execute(table, [operation, entity("a", { new: 2 })]);
      assert.equal(error, null);
      assert.equal(response.statusCode, 204);
      const found = await retrieve(table, "a");
      assert.equal(etagOf(answer), etagOf(found));
      assert.deepEqual({ old: found.old?._, new: found.new._ }, expected);
    }));
  }

  test("deleteEntity alone in a batch", withTable(async (table) => {
    await service.insertEntity(table, entity("a"));
    const [{ response }] = await execute(table, ["deleteEntity", entity("a")]);
    assert.equal(response.statusCode, 204);
    assert.deepEqual(await all(table), []);
  }));

  test("retrieveEntity in a batch returns the entity", withTable(async (table) => {
    const sent = entity("it's 100%", { n: 1, text: "Grüße", bytes: as.Binary(Buffer.from([1, 2])) });
    const { result } = await service.insertEntity(table, sent);
    const [found] = await execute(table, ["retrieveEntity", "p", "it's 100%"]);
    assert.equal(found.response.statusCode, 200);
    assert.deepEqual(plain(found.entity), plain(sent));
    assert.equal(etagOf(found.entity), etagOf(result));
  }));

  test("retrieveEntity of a missing entity in a batch is not found", withTable(async (table) => {
    await assertRefused(execute(table, ["retrieveEntity", "p", "missing"]), 404, "ResourceNotFound");
  }));

  test("all kinds of operation in one batch", withTable(async (table) => {
    for (const name of ["merge", "replace", "upsert-merge", "upsert-replace", "delete"]) {
      await service.insertEntity(table, entity(name, { old: 1 }));
    }
    const results = await execute(table,
      ["insertEntity", entity("insert", { new: 2 })],
      ["mergeEntity", entity("merge", { new: 2 })],
      ["replaceEntity", entity("replace", { new: 2 })],
      ["insertOrMergeEntity", entity("upsert-merge", { new: 2 })],
      ["insertOrReplaceEntity", entity("upsert-replace", { new: 2 })],
      ["insertOrMergeEntity", entity("upsert-absent", { new: 2 })],
      ["deleteEntity", entity("delete")]);
    const found = await all(table);
    assert.deepEqual(found.map(plain), [
      { PartitionKey: "p", RowKey: "insert", new: 2 },
      { PartitionKey: "p", RowKey: "merge", new: 2, old: 1 },
      { PartitionKey: "p", RowKey: "replace", new: 2 },
      { PartitionKey: "p", RowKey: "upsert-absent", new: 2 },
      { PartitionKey: "p", RowKey: "upsert-merge", new: 2, old: 1 },
      { PartitionKey: "p", RowKey: "upsert-replace", new: 2 },
    ]);
    assert.deepEqual(results.map((one) => one.response.statusCode), [204, 204, 204, 204, 204, 204, 204]);
    const etags = Object.fromEntries(found.map((entity) => [entity.RowKey._, etagOf(entity)]));
    const order = ["insert", "merge", "replace", "upsert-merge", "upsert-replace", "upsert-absent"];
    assert.deepEqual(results.slice(0, 6).map((one) => etagOf(one.entity)), order.map((name) => etags[name]));
  }));

  test("inserts in a batch return the entity on request", withTable(async (table) => {
    const results = await execute(table,
      ["insertEntity", entity("a", { text: "Grüße\r\n'" }), { echoContent: true }],
      ["insertEntity", entity("b", { n: 2 })],
      ["insertEntity", entity("c", { n: 3 }), { echoContent: true }]);
    assert.deepEqual(results.map((one) => one.response.statusCode), [201, 204, 201]);
    assert.equal(results[0].entity.text._, "Grüße\r\n'");
    assert.equal(results[2].entity.n._, 3);
    // The client finds the operation by the Content-ID of the answer; it sends none for the first.
    assert.deepEqual(results.map((one) => one.response.headers["content-id"]), [undefined, "1", "2"]);
  }));

  test("a hundred operations", withTable(async (table) => {
    const operations = [];
    for (let n = 0; n < 100; n++) operations.push(["insertOrMergeEntity", entity(String(n).padStart(3, "0"), { n })]);
    assert.equal((await execute(table, ...operations)).length, 100);
    assert.deepEqual((await all(table)).map((entity) => entity.n._), [...Array(100).keys()]);
  }));

  for (const operation of ["mergeEntity", "replaceEntity", "deleteEntity"]) {
    test(`${operation} with an old etag fails at its index, with the current one it passes`, withTable(async (table) => {
      await service.insertEntity(table, entity("a", { n: 1 }));
      const { result } = await service.insertEntity(table, entity("b", { n: 1 }));
      const operations = (etag) => [
        ["insertOrReplaceEntity", entity("a", { n: 2 })],
        [operation, withEtag(entity("b", { n: 2 }), etag)],
      ];
      await assertRolledBack(table, operations(OLD_ETAG), 1, 412, "UpdateConditionNotSatisfied");
      await execute(table, ...operations(etagOf(result)));
      const expected = operation === "deleteEntity" ? [2] : [2, 2];
      assert.deepEqual((await all(table)).map((entity) => entity.n._), expected);
    }));

    test(`${operation} of a missing entity fails at its index`, withTable(async (table) => {
      await service.insertEntity(table, entity("a", { n: 1 }));
      const operations = [["mergeEntity", entity("a", { n: 2 })], [operation, entity("missing", { n: 2 })]];
      await assertRolledBack(table, operations, 1, 404, "ResourceNotFound");
    }));
  }

  test("an insert of an existing entity fails at its index", withTable(async (table) => {
    await service.insertEntity(table, entity("taken", { n: 1 }));
    const operations = [0, 1, 2].map((n) => ["insertEntity", entity(n === 2 ? "taken" : `new${n}`)]);
    await assertRolledBack(table, operations, 2, 409, "EntityAlreadyExists");
  }));

  test("the same row twice is refused", withTable(async (table) => {
    const operations = [["insertEntity", entity("a")], ["insertOrMergeEntity", entity("a", { n: 1 })]];
    await assertRolledBack(table, operations, 1, 400, "InvalidDuplicateRow");
  }));

  test("a value that is too large fails at its index", withTable(async (table) => {
    const operations = [["insertEntity", entity("a")], ["insertEntity", entity("b", { text: "x".repeat(32769) })]];
    await assertRolledBack(table, operations, 1, 400, "PropertyValueTooLarge");
  }));

  test("a batch on a missing table is table not found", async () => {
    const operations = [["insertEntity", entity("a")], ["insertEntity", entity("b")]];
    await assertRefused(execute(freshName(), ...operations), 404, "TableNotFound", "0:The table specified does not exist.");
  });

  test("values that look like a part of a batch stay values", withTable(async (table) => {
    const text = "--batch_x\r\n--changeset_x--\nHTTP/1.1 500\r\n\r\n{}";
    await execute(table, ["insertEntity", entity("a", { text })], ["insertOrReplaceEntity", entity("b", { text })]);
    assert.deepEqual((await all(table)).map((entity) => entity.text._), [text, text]);
  }));
});
