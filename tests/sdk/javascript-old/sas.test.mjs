// Signatures that the older client makes itself: for a table, for ranges of keys, by policy, and for the account.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import azure from "azure-storage";

import {
  assertRefused, connectionString, entity, entityIn, freshName, plainService, service, serviceWithSas, TableBatch, TableQuery,
  withTable,
} from "./support.mjs";

const inMinutes = (minutes) => new Date(Date.now() + minutes * 60_000);
const FORBIDDEN = [403, "AuthorizationPermissionMismatch"];
const OUT_OF_SCOPE = [403, "AuthorizationFailure"];
const NOT_AUTHENTIC = [403, "AuthenticationFailed"];

function tableSas(table, policy) {
  const shared = { AccessPolicy: { Expiry: inMinutes(10), ...policy } };
  return serviceWithSas(plainService.generateSharedAccessSignature(table, shared));
}

function accountSas(policy) {
  const shared = { AccessPolicy: { Services: "t", ResourceTypes: "sco", Permissions: "rwdlau", Expiry: inMinutes(10), ...policy } };
  return serviceWithSas(azure.generateAccountSharedAccessSignature(connectionString, undefined, shared));
}

const query = (service, table) => service.queryEntities(table, new TableQuery(), null).then(({ result }) => result.entries);
const keys = (entities) => entities.map((entity) => entity.PartitionKey._ + entity.RowKey._);

describe("sas", () => {
  test("a signature with all permissions does everything to its table", withTable(async (table) => {
    const sas = tableSas(table, { Permissions: "raud" });
    await sas.insertEntity(table, entity("a", { n: 1 }));
    await sas.mergeEntity(table, entity("a", { n: 2 }));
    await sas.replaceEntity(table, entity("a", { n: 3 }));
    await sas.insertOrReplaceEntity(table, entity("b", { n: 1 }));
    await sas.insertOrMergeEntity(table, entity("b", { n: 2 }));
    const batch = new TableBatch();
    batch.insertEntity(entity("c", { n: 1 }));
    batch.mergeEntity(entity("a", { m: 1 }));
    batch.deleteEntity(entity("b"));
    await sas.executeBatch(table, batch);
    assert.deepEqual(keys(await query(sas, table)), ["pa", "pc"]);
    assert.equal((await sas.retrieveEntity(table, "p", "a")).result.m._, 1);
    await sas.deleteEntity(table, entity("a"));
  }));

  const NEEDS = {
    r: (sas, table) => sas.retrieveEntity(table, "p", "there"),
    a: (sas, table) => sas.insertEntity(table, entity("new")),
    u: (sas, table) => sas.mergeEntity(table, entity("there", { n: 2 })),
    d: (sas, table) => sas.deleteEntity(table, entity("there")),
  };
  for (const [needed, operation] of Object.entries(NEEDS)) {
    test(`the permission ${needed} alone is enough, all others are not`, withTable(async (table) => {
      await service.insertEntity(table, entity("there", { n: 1 }));
      const others = "raud".replace(needed, "");
      await assertRefused(operation(tableSas(table, { Permissions: others }), table), ...FORBIDDEN);
      await operation(tableSas(table, { Permissions: needed }), table);
    }));
  }

  test("a range of keys bounds reads and writes", withTable(async (table) => {
    for (const partition of ["a", "b", "c"]) {
      for (const row of ["1", "2", "3"]) await service.insertEntity(table, entityIn(partition, row));
    }
    const sas = tableSas(table, { Permissions: "raud", StartPk: "b", StartRk: "2", EndPk: "c", EndRk: "1" });
    assert.deepEqual(keys(await query(sas, table)), ["b2", "b3", "c1"]);
    await sas.mergeEntity(table, entityIn("b", "3", { n: 1 }));
    for (const [partition, row] of [["a", "3"], ["b", "1"], ["c", "2"]]) {
      await assertRefused(sas.mergeEntity(table, entityIn(partition, row, { n: 1 })), ...OUT_OF_SCOPE);
    }
    await assertRefused(sas.insertEntity(table, entityIn("d", "1")), ...OUT_OF_SCOPE);
    const batch = new TableBatch();
    batch.mergeEntity(entityIn("b", "2", { n: 1 }));
    batch.mergeEntity(entityIn("b", "1", { n: 1 }));
    await assertRefused(sas.executeBatch(table, batch), ...OUT_OF_SCOPE);
  }));

  test("a range over a partition whose key needs escaping", withTable(async (table) => {
    const key = "it's 100% Grüße";
    for (const partition of [key, "other"]) await service.insertEntity(table, entityIn(partition, "r"));
    const sas = tableSas(table, { Permissions: "r", StartPk: key, EndPk: key });
    assert.deepEqual(keys(await query(sas, table)), [`${key}r`]);
  }));

  test("a stored policy gives its permissions until it is removed", withTable(async (table) => {
    await service.insertEntity(table, entity("there"));
    await service.setTableAcl(table, { reader: { Permissions: "r", Expiry: inMinutes(10) } });
    const sas = serviceWithSas(plainService.generateSharedAccessSignature(table, { Id: "reader" }));
    await sas.retrieveEntity(table, "p", "there");
    await assertRefused(sas.deleteEntity(table, entity("there")), ...FORBIDDEN);
    await service.setTableAcl(table, {});
    await assertRefused(sas.retrieveEntity(table, "p", "there"), ...NOT_AUTHENTIC);
  }));

  test("a signature holds between its start and its expiry only", withTable(async (table) => {
    await service.insertEntity(table, entity("there"));
    const permitted = { Permissions: "r" };
    await tableSas(table, { ...permitted, Start: inMinutes(-5) }).retrieveEntity(table, "p", "there");
    for (const times of [{ Start: inMinutes(5) }, { Start: inMinutes(-9), Expiry: inMinutes(-5) }]) {
      await assertRefused(tableSas(table, { ...permitted, ...times }).retrieveEntity(table, "p", "there"), ...NOT_AUTHENTIC);
    }
  }));

  test("a signature for other addresses or HTTPS alone does not hold", withTable(async (table) => {
    await service.insertEntity(table, entity("there"));
    await tableSas(table, { Permissions: "r", IPAddressOrRange: "127.0.0.1" }).retrieveEntity(table, "p", "there");
    await tableSas(table, { Permissions: "r", IPAddressOrRange: "127.0.0.0-127.0.0.9", Protocols: "https,http" })
      .retrieveEntity(table, "p", "there");
    const other = tableSas(table, { Permissions: "r", IPAddressOrRange: "10.1.2.3" });
    await assertRefused(other.retrieveEntity(table, "p", "there"), 403, "AuthorizationSourceIPMismatch");
    const secure = tableSas(table, { Permissions: "r", Protocols: "https" });
    await assertRefused(secure.retrieveEntity(table, "p", "there"), 403, "AuthorizationProtocolMismatch");
  }));

  test("a signature for one table does not open another", withTable(async (table) => {
    const other = freshName();
    await service.createTable(other);
    await assertRefused(query(tableSas(table, { Permissions: "raud" }), other), ...OUT_OF_SCOPE);
    await service.deleteTable(other);
  }));

  test("a signature for a table neither creates nor deletes it", withTable(async (table) => {
    const sas = tableSas(table, { Permissions: "raud" });
    await assertRefused(sas.deleteTable(table), ...OUT_OF_SCOPE);
    await assertRefused(sas.createTable(freshName()), ...OUT_OF_SCOPE);
  }));

  test("an account signature creates, fills, lists and deletes tables", async () => {
    const sas = accountSas({});
    const table = freshName();
    await sas.createTable(table);
    await sas.insertEntity(table, entity("a", { n: 1 }));
    assert.deepEqual(keys(await query(sas, table)), ["pa"]);
    assert.deepEqual((await sas.listTablesSegmentedWithPrefix(table, null)).result.entries, [table]);
    assert.ok((await sas.getServiceProperties()).result);
    await sas.deleteTable(table);
  });

  test("an account signature holds for its permissions and resources only", withTable(async (table) => {
    await service.insertEntity(table, entity("there"));
    const reader = accountSas({ Permissions: "r" });
    await reader.retrieveEntity(table, "p", "there");
    await assertRefused(reader.deleteEntity(table, entity("there")), ...FORBIDDEN);
    await assertRefused(accountSas({ ResourceTypes: "s" }).retrieveEntity(table, "p", "there"), 403, "AuthorizationResourceTypeMismatch");
    await assertRefused(accountSas({ Services: "b" }).retrieveEntity(table, "p", "there"), 403, "AuthorizationServiceMismatch");
  }));
});
