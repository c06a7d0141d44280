// Entities: every write of the older client, its types, and the ETags that it sends as `If-Match`.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  as, assertRefused, entity, etagOf, freshName, PayloadFormat, plain, retrieve, service, withEtag, withTable,
} from "./support.mjs";

const OLD_ETAG = `W/"datetime'2001-01-01T00%3A00%3A00Z'"`;
const NOT_SATISFIED = [412, "UpdateConditionNotSatisfied", "The update condition specified in the request was not satisfied."];
const NOT_FOUND = [404, "ResourceNotFound", "The specified resource does not exist."];

describe("entities", () => {
  test("insert answers with an etag, and the entity only on request", withTable(async (table) => {
    const quiet = await service.insertEntity(table, entity("a", { n: 1 }));
    assert.equal(quiet.response.statusCode, 204);
    assert.equal(etagOf(quiet.result), etagOf(await retrieve(table, "a")));
    const echoed = await service.insertEntity(table, entity("b", { n: 2 }), { echoContent: true });
    assert.equal(echoed.response.statusCode, 201);
    assert.deepEqual(plain(echoed.result), { PartitionKey: "p", RowKey: "b", n: 2 });
    assert.equal(etagOf(echoed.result), etagOf(await retrieve(table, "b")));
  }));

  test("a second insert conflicts", withTable(async (table) => {
    await service.insertEntity(table, entity("a", { n: 1 }));
    await assertRefused(service.insertEntity(table, entity("a", { n: 2 })), 409, "EntityAlreadyExists");
    assert.equal((await retrieve(table, "a")).n._, 1);
  }));

  for (const [level, payloadFormat] of Object.entries(PayloadFormat)) {
    test(`values of every type come back, ${level}`, withTable(async (table) => {
      const sent = entity("types", {
        text: "Grüße, 世界 🙂 'quoted' \"double\" \\ / < >",
        empty: "",
        int32: as.Int32(-2147483648),
        int64: as.Int64("9223372036854775807"),
        double: as.Double(0.1),
        whole: as.Double(3),
        yes: as.Boolean(true),
        no: as.Boolean(false),
        time: as.DateTime(new Date("2020-02-29T12:34:56.789Z")),
        guid: as.Guid("c9da6455-213d-42c9-9a79-3e9149a57833"),
        bytes: as.Binary(Buffer.from([0, 1, 254, 255])),
      });
      await service.insertEntity(table, sent);
      // Without metadata the client must be told the types.
      const propertyResolver = (partition, row, name) => sent[name]?.$;
      const options = payloadFormat === PayloadFormat.NO_METADATA ? { payloadFormat, propertyResolver } : { payloadFormat };
      const { result } = await service.retrieveEntity(table, "p", "types", options);
      assert.deepEqual(plain(result), plain(sent));
      for (const name of ["int64", "time", "guid", "bytes"]) assert.equal(result[name].$, sent[name].$, name);
    }));
  }

  test("infinite doubles and not a number come back", withTable(async (table) => {
    const values = { up: as.Double(Infinity), down: as.Double(-Infinity), none: as.Double(NaN) };
    await service.insertEntity(table, entity("a", values));
    const found = await retrieve(table, "a");
    assert.deepEqual([found.up._, found.down._, found.none._], [Infinity, -Infinity, NaN]);
  }));

  test("replace drops properties, merge keeps them", withTable(async (table) => {
    for (const row of ["replace", "merge"]) await service.insertEntity(table, entity(row, { old: 1, both: 1 }));
    await service.replaceEntity(table, entity("replace", { both: 2 }));
    await service.mergeEntity(table, entity("merge", { both: 2 }));
    assert.deepEqual(plain(await retrieve(table, "replace")), { PartitionKey: "p", RowKey: "replace", both: 2 });
    assert.deepEqual(plain(await retrieve(table, "merge")), { PartitionKey: "p", RowKey: "merge", both: 2, old: 1 });
  }));

  test("insert or replace and insert or merge, for an absent and a present entity", withTable(async (table) => {
    for (const method of ["insertOrReplaceEntity", "insertOrMergeEntity"]) {
      const first = await service[method](table, entity(method, { old: 1 }));
      assert.equal(etagOf(first.result), etagOf(await retrieve(table, method)));
      const second = await service[method](table, entity(method, { new: 2 }));
      assert.notEqual(etagOf(second.result), etagOf(first.result));
    }
    assert.deepEqual(plain(await retrieve(table, "insertOrReplaceEntity")),
      { PartitionKey: "p", RowKey: "insertOrReplaceEntity", new: 2 });
    assert.deepEqual(plain(await retrieve(table, "insertOrMergeEntity")),
      { PartitionKey: "p", RowKey: "insertOrMergeEntity", new: 2, old: 1 });
  }));

  for (const method of ["mergeEntity", "replaceEntity", "deleteEntity"]) {
    test(`${method} with the current etag passes, with an older one it fails`, withTable(async (table) => {
      const { result } = await service.insertEntity(table, entity("a", { n: 1 }));
      await service.mergeEntity(table, withEtag(entity("a", { n: 2 }), etagOf(result)));
      await assertRefused(service[method](table, withEtag(entity("a", { n: 3 }), etagOf(result))), ...NOT_SATISFIED);
      await assertRefused(service[method](table, withEtag(entity("a", { n: 3 }), OLD_ETAG)), ...NOT_SATISFIED);
      const now = await retrieve(table, "a");
      assert.equal(now.n._, 2);
      const { response } = await service[method](table, withEtag(entity("a", { n: 4 }), etagOf(now)));
      assert.equal(response.statusCode, 204);
      if (method === "deleteEntity") await assertRefused(retrieve(table, "a"), ...NOT_FOUND);
      else assert.equal((await retrieve(table, "a")).n._, 4);
    }));

    test(`${method} of a missing entity is not found`, withTable(async (table) => {
      await assertRefused(service[method](table, entity("missing", { n: 1 })), ...NOT_FOUND);
    }));
  }

  test("an entity that was read can be changed and sent back", withTable(async (table) => {
    await service.insertEntity(table, entity("a", { n: 1, time: as.DateTime(new Date(0)) }));
    const found = await retrieve(table, "a");
    found.n._ = 2;
    await service.replaceEntity(table, found); // Sends Timestamp and ETag too.
    assert.equal((await retrieve(table, "a")).n._, 2);
    found.n._ = 3;
    await assertRefused(service.replaceEntity(table, found), ...NOT_SATISFIED);
  }));

  test("delete without an etag deletes any version", withTable(async (table) => {
    await service.insertEntity(table, entity("a"));
    await service.deleteEntity(table, entity("a"));
    await assertRefused(retrieve(table, "a"), ...NOT_FOUND);
  }));

  test("everything on a missing table is table not found", async () => {
    const missing = freshName();
    await assertRefused(service.insertEntity(missing, entity("a")), 404, "TableNotFound", "The table specified does not exist.");
    for (const method of ["insertOrReplaceEntity", "insertOrMergeEntity"]) {
      await assertRefused(service[method](missing, entity("a")), 404, "TableNotFound");
    }
    await assertRefused(retrieve(missing, "a"), 404, "TableNotFound");
  });
});
