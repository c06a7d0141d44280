// Entities: every verb, with and without an etag.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { all, assertRefused, plain, withTable } from "./support.mjs";

const entity = (properties) => ({ partitionKey: "p", rowKey: "r", ...properties });
const stored = async (table) => plain(await table.getEntity("p", "r"));

const NOT_SATISFIED = [412, "UpdateConditionNotSatisfied", "The update condition specified in the request was not satisfied."];
const MISSING = [404, "ResourceNotFound", "The specified resource does not exist."];

describe("entities", () => {
  test("insert then get returns what was sent", withTable(async (table) => {
    const inserted = await table.createEntity(entity({ name: "Ada", age: 36 }));
    const found = await table.getEntity("p", "r");
    assert.deepEqual(plain(found), entity({ name: "Ada", age: 36 }));
    assert.equal(found.etag, inserted.etag);
    assert.equal(inserted.preferenceApplied, "return-no-content");
    assert.equal(inserted.version, "2019-02-02");
  }));

  test("the etag has the form of the live service and carries the timestamp", withTable(async (table) => {
    await table.createEntity(entity());
    const { etag, timestamp } = await table.getEntity("p", "r");
    assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,6}[1-9])?Z$/);
    assert.equal(etag, `W/"datetime'${timestamp.replaceAll(":", "%3A")}'"`);
  }));

  test("insert of an existing entity is a conflict and changes nothing", withTable(async (table) => {
    await table.createEntity(entity({ n: 1 }));
    await assertRefused(table.createEntity(entity({ n: 2 })), 409, "EntityAlreadyExists", "The specified entity already exists.");
    assert.deepEqual(await stored(table), entity({ n: 1 }));
  }));

  test("get of a missing entity is not found", withTable(async (table) => {
    await assertRefused(table.getEntity("p", "r"), ...MISSING);
  }));

  test("update replace drops what it does not mention", withTable(async (table) => {
    await table.createEntity(entity({ kept: 1, dropped: 2 }));
    await table.updateEntity(entity({ kept: 3, added: 4 }), "Replace");
    assert.deepEqual(await stored(table), entity({ kept: 3, added: 4 }));
  }));

  test("update merge keeps what it does not mention", withTable(async (table) => {
    await table.createEntity(entity({ kept: 1, changed: 2 }));
    await table.updateEntity(entity({ changed: "now text", added: 4 }), "Merge");
    assert.deepEqual(await stored(table), entity({ kept: 1, changed: "now text", added: 4 }));
  }));

  for (const mode of ["Merge", "Replace"]) {
    test(`${mode} of a missing entity is not found`, withTable(async (table) => {
      await assertRefused(table.updateEntity(entity({ n: 1 }), mode), ...MISSING);
      assert.deepEqual(await all(table.listEntities()), []);
    }));

    test(`${mode} with the right etag succeeds and gives a new one`, withTable(async (table) => {
      const { etag } = await table.createEntity(entity({ n: 1 }));
      const updated = await table.updateEntity(entity({ n: 2 }), mode, { etag });
      assert.notEqual(updated.etag, etag);
      const found = await table.getEntity("p", "r");
      assert.equal(found.n, 2);
      assert.equal(found.etag, updated.etag);
    }));

    test(`${mode} with an old etag fails and changes nothing`, withTable(async (table) => {
      const { etag: old } = await table.createEntity(entity({ n: 1 }));
      const { etag: current } = await table.updateEntity(entity({ n: 2 }), mode);
      await assertRefused(table.updateEntity(entity({ n: 3 }), mode, { etag: old }), ...NOT_SATISFIED);
      const found = await table.getEntity("p", "r");
      assert.equal(found.n, 2);
      assert.equal(found.etag, current);
    }));

    test(`${mode} with an etag of a missing entity is not found`, withTable(async (table) => {
      const { etag } = await table.createEntity(entity({ n: 1 }));
      await table.deleteEntity("p", "r");
      await assertRefused(table.updateEntity(entity({ n: 2 }), mode, { etag }), ...MISSING);
    }));

    test(`upsert ${mode} inserts what is missing`, withTable(async (table) => {
      const { etag } = await table.upsertEntity(entity({ n: 1 }), mode);
      const found = await table.getEntity("p", "r");
      assert.deepEqual(plain(found), entity({ n: 1 }));
      assert.equal(found.etag, etag);
    }));
  }

  test("upsert replace drops, upsert merge keeps", withTable(async (table) => {
    await table.createEntity(entity({ a: 1, b: 2 }));
    await table.upsertEntity(entity({ b: 3 }), "Merge");
    assert.deepEqual(await stored(table), entity({ a: 1, b: 3 }));
    await table.upsertEntity(entity({ c: 4 }), "Replace");
    assert.deepEqual(await stored(table), entity({ c: 4 }));
  }));

  test("a null in a merge leaves the stored value, in a replace it removes it", withTable(async (table) => {
    await table.createEntity(entity({ a: 1, b: 2 }));
    await table.updateEntity(entity({ a: null, b: 3 }), "Merge");
    assert.deepEqual(await stored(table), entity({ a: 1, b: 3 }));
    await table.updateEntity(entity({ a: null, b: 4 }), "Replace");
    assert.deepEqual(await stored(table), entity({ b: 4 }));
  }));

  test("delete removes; delete of a missing entity is not found", withTable(async (table) => {
    await table.createEntity(entity());
    await table.deleteEntity("p", "r");
    await assertRefused(table.getEntity("p", "r"), ...MISSING);
    await assertRefused(table.deleteEntity("p", "r"), ...MISSING);
  }));

  test("delete minds the etag", withTable(async (table) => {
    const { etag: old } = await table.createEntity(entity({ n: 1 }));
    const { etag } = await table.updateEntity(entity({ n: 2 }), "Replace");
    await assertRefused(table.deleteEntity("p", "r", { etag: old }), ...NOT_SATISFIED);
    assert.equal((await table.getEntity("p", "r")).n, 2);
    await table.deleteEntity("p", "r", { etag });
    assert.deepEqual(await all(table.listEntities()), []);
  }));

  test("what was read can be sent back as it is", withTable(async (table) => {
    await table.createEntity(entity({ n: 1, big: 5n, when: new Date(0) }));
    const [listed] = await all(table.listEntities());
    assert.equal(listed.etag, (await table.getEntity("p", "r")).etag);
    listed.n = 2;
    await table.updateEntity(listed, "Replace", { etag: listed.etag });
    assert.deepEqual(await stored(table), entity({ n: 2, big: 5n, when: new Date(0) }));
  }));

  test("an etag of a previous life does not match the next", withTable(async (table) => {
    const { etag: old } = await table.createEntity(entity({ n: 1 }));
    await table.deleteEntity("p", "r");
    await table.createEntity(entity({ n: 2 }));
    await assertRefused(table.updateEntity(entity({ n: 3 }), "Merge", { etag: old }), ...NOT_SATISFIED);
  }));

  test("a malformed etag is refused", withTable(async (table) => {
    await table.createEntity(entity({ n: 1 }));
    await assertRefused(table.updateEntity(entity({ n: 2 }), "Merge", { etag: "nonsense" }), 400, "InvalidInput");
    assert.equal((await table.getEntity("p", "r")).n, 1);
  }));

  test("every write gives a new etag", withTable(async (table) => {
    const etags = [(await table.createEntity(entity({ n: 0 }))).etag];
    for (let n = 1; n < 20; n++) etags.push((await table.updateEntity(entity({ n }), "Merge")).etag);
    assert.equal(new Set(etags).size, 20);
  }));

  test("select returns exactly what was asked for, null for what is missing", withTable(async (table) => {
    await table.createEntity(entity({ a: 1, b: "two", c: 3.5 }));
    const found = await table.getEntity("p", "r", { queryOptions: { select: ["a", "rowKey", "nothing"] } });
    assert.deepEqual(plain(found), { rowKey: "r", a: 1, nothing: null });
    assert.ok(found.etag);
  }));
});
