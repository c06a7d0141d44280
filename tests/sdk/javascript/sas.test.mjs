// Shared access signatures from the SDK's own generators: what each field allows and refuses.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient, generateAccountSas, generateTableSas,
} from "@azure/data-tables";

import {
  accountKey, all, assertRefused, clientOptions, freshName, plain, secondaryEndpoint, service, settings, withTable,
} from "./support.mjs";

const HOUR = 3600_000;
const fromNow = (milliseconds) => new Date(Date.now() + milliseconds);

const PERMISSION = [403, "AuthorizationPermissionMismatch"];
const RESOURCE_TYPE = [403, "AuthorizationResourceTypeMismatch"];
const SCOPE = [403, "AuthorizationFailure"];
const SIGNATURE = [403, "AuthenticationFailed"];

const NAMES = { r: "query", a: "add", u: "update", d: "delete", w: "write", l: "list" };
const permissions = (letters) => Object.fromEntries([...letters].map((letter) => [NAMES[letter], true]));

/** A client of the whole service whose only credential is a signature. */
const holder = (token, endpoint = settings.TableEndpoint) =>
  new TableServiceClient(endpoint, new AzureSASCredential(token), clientOptions);
const tableHolder = (name, token) =>
  new TableClient(settings.TableEndpoint, name, new AzureSASCredential(token), clientOptions);

const accountToken = (letters, options) => generateAccountSas(accountKey, { permissions: permissions(letters), ...options });

/** A table's client with a signature for that table, or for the table `signedName`. */
function withTableSas(table, letters, { signedName = table.tableName, ...options } = {}) {
  const values = { permissions: letters && permissions(letters), expiresOn: fromNow(HOUR), ...options };
  return tableHolder(table.tableName, generateTableSas(signedName, accountKey, values));
}

const entity = (properties) => ({ partitionKey: "p", rowKey: "r", ...properties });

/** A test with a table that has one entity. */
const withEntity = (work) => withTable(async (table) => {
  await table.createEntity(entity({ n: 1 }));
  await work(table);
});

// Each verb on an entity, with the permission letters it needs.
const ENTITY_VERBS = {
  get: ["r", async (table) => assert.equal((await table.getEntity("p", "r")).n, 1)],
  list: ["r", async (table) => assert.equal((await all(table.listEntities())).length, 1)],
  create: ["a", async (table) => assert.ok((await table.createEntity(entity({ rowKey: "new" }))).etag)],
  update: ["u", async (table) => assert.ok((await table.updateEntity(entity({ n: 2 }), "Merge")).etag)],
  upsert: ["au", async (table) => assert.ok((await table.upsertEntity(entity({ n: 3 }), "Replace")).etag)],
  delete: ["d", async (table) => assert.ok((await table.deleteEntity("p", "r")).requestId)],
};

describe("table SAS", () => {
  for (const granted of ["r", "a", "u", "d", "au", "raud"]) {
    for (const [verb, [needed, call]] of Object.entries(ENTITY_VERBS)) {
      const allowed = [...needed].every((letter) => granted.includes(letter));
      test(`sp=${granted} ${allowed ? "allows" : "refuses"} ${verb}`, withEntity(async (table) => {
        const client = withTableSas(table, granted);
        await (allowed ? call(client) : assertRefused(call(client), ...PERMISSION));
      }));
    }
  }

  test("tn is the table whatever its case", withEntity(async (table) => {
    await ENTITY_VERBS.get[1](withTableSas(table, "r", { signedName: table.tableName.toUpperCase() }));
  }));

  test("tn of another table is refused", withEntity(async (table) => {
    const client = withTableSas(table, "raud", { signedName: "another" });
    for (const [, call] of Object.values(ENTITY_VERBS)) await assertRefused(call(client), ...SCOPE);
  }));

  test("it is for entities only", withEntity(async (table) => {
    const values = { permissions: permissions("raud"), expiresOn: fromNow(HOUR) };
    const token = generateTableSas(table.tableName, accountKey, values);
    const [client, ofTable] = [holder(token), tableHolder(table.tableName, token)];
    await assertRefused(all(client.listTables()), ...SCOPE);
    await assertRefused(client.createTable(freshName()), ...SCOPE);
    await assertRefused(client.deleteTable(table.tableName), ...SCOPE);
    await assertRefused(client.getProperties(), ...SCOPE);
    await assertRefused(ofTable.getAccessPolicy(), ...SCOPE);
    await assertRefused(ofTable.setAccessPolicy([]), ...SCOPE);
    await ENTITY_VERBS.get[1](table);
  }));

  test("a field that was changed after signing is refused", withEntity(async (table) => {
    const values = { permissions: permissions("r"), expiresOn: fromNow(HOUR) };
    const token = generateTableSas(table.tableName, accountKey, values).replace("sp=r", "sp=raud");
    await assertRefused(tableHolder(table.tableName, token).deleteEntity("p", "r"), ...SIGNATURE);
    await ENTITY_VERBS.get[1](table);
  }));

  test("a transaction needs every letter that its operations need", withEntity(async (table) => {
    await table.createEntity(entity({ rowKey: "gone" }));
    const actions = [["create", entity({ rowKey: "a" })], ["update", entity({ n: 2 })], ["delete", entity({ rowKey: "gone" })]];
    for (const [granted, index] of [["ad", 1], ["au", 2], ["ud", 0]]) {
      const refused = withTableSas(table, granted).submitTransaction(actions);
      await assertRefused(refused, ...PERMISSION, `${index}:`);
    }
    assert.deepEqual((await all(table.listEntities())).map(plain), [entity({ rowKey: "gone" }), entity({ n: 1 })]);
    await withTableSas(table, "aud").submitTransaction(actions);
    assert.deepEqual((await all(table.listEntities())).map((found) => found.rowKey), ["a", "r"]);
  }));
});

describe("table SAS ranges", () => {
  const GRID = [..."abc"].flatMap((partition) => [..."0123"].map((row) => partition + row));
  const key = (text) => ({ partitionKey: text[0], rowKey: text[1] });
  const keys = async (entities) => (await all(entities)).map((found) => found.partitionKey + found.rowKey);

  for (const bounds of [
    { startPartitionKey: "b" },
    { startPartitionKey: "b", startRowKey: "2" },
    { endPartitionKey: "b" },
    { endPartitionKey: "b", endRowKey: "1" },
    { startPartitionKey: "a", startRowKey: "3", endPartitionKey: "c", endRowKey: "0" },
    { startPartitionKey: "b", startRowKey: "2", endPartitionKey: "b", endRowKey: "2" },
  ]) {
    test(`${JSON.stringify(bounds)} bounds queries and writes`, withTable(async (table) => {
      for (const partition of "abc") {
        await table.submitTransaction([..."0123"].map((row) => ["create", key(partition + row)]));
      }
      const low = (bounds.startPartitionKey ?? "") + (bounds.startRowKey ?? "");
      const high = (bounds.endPartitionKey ?? "~") + (bounds.endRowKey ?? "~");
      const inside = GRID.filter((text) => low <= text && text <= high);
      const client = withTableSas(table, "raud", bounds);
      assert.deepEqual(await keys(client.listEntities()), inside);
      assert.deepEqual((await all(client.listEntities().byPage({ maxPageSize: 1 }))).flat().length, inside.length);
      for (const text of GRID) {
        const change = { ...key(text), n: 1 };
        if (inside.includes(text)) {
          await client.updateEntity(change, "Merge");
        } else {
          // What is outside does not exist for a reader.
          await assertRefused(client.getEntity(text[0], text[1]), 404, "ResourceNotFound");
          await assertRefused(client.updateEntity(change, "Merge"), ...SCOPE);
          await assertRefused(client.upsertEntity(change, "Replace"), ...SCOPE);
          await assertRefused(client.createEntity(change), ...SCOPE);
          await assertRefused(client.deleteEntity(text[0], text[1]), ...SCOPE);
        }
      }
      assert.deepEqual(await keys(table.listEntities({ queryOptions: { filter: "n eq 1" } })), inside);
    }));
  }

  test("a transaction stays within the range", withTable(async (table) => {
    const bounds = { startPartitionKey: "c", startRowKey: "2", endPartitionKey: "c", endRowKey: "4" };
    const client = withTableSas(table, "raud", bounds);
    const actions = ["c2", "c3", "c1"].map((text) => ["create", key(text)]);
    await assertRefused(client.submitTransaction(actions), ...SCOPE, "2:");
    await client.submitTransaction(actions.slice(0, 2));
    assert.deepEqual(await keys(table.listEntities()), ["c2", "c3"]);
  }));
});

describe("account SAS", () => {
  for (const granted of ["r", "a", "u", "d", "au"]) {
    for (const [verb, [needed, call]] of Object.entries(ENTITY_VERBS)) {
      const allowed = [...needed].every((letter) => granted.includes(letter));
      test(`sp=${granted} ${allowed ? "allows" : "refuses"} ${verb}`, withEntity(async (table) => {
        const client = tableHolder(table.tableName, accountToken(granted));
        await (allowed ? call(client) : assertRefused(call(client), ...PERMISSION));
      }));
    }
  }

  // Each operation on tables and on the service, with the resource type and the letter it needs.
  const SERVICE_VERBS = {
    listTables: ["c", "l", async (client) => assert.ok(Array.isArray(await all(client.listTables())))],
    createTable: ["c", "w", async (client) => {
      const name = freshName();
      await client.createTable(name);
      await service.deleteTable(name);
    }],
    getProperties: ["s", "r", async (client) => assert.ok((await client.getProperties()).logging)],
    getStatistics: ["s", "r", async (client) => assert.ok((await client.getStatistics()).geoReplication), secondaryEndpoint],
  };

  for (const [verb, [type, letter, call, endpoint]] of Object.entries(SERVICE_VERBS)) {
    for (const granted of "rwdlau") {
      test(`sp=${granted} ${granted === letter ? "allows" : "refuses"} ${verb}`, async () => {
        const client = holder(accountToken(granted), endpoint);
        await (granted === letter ? call(client) : assertRefused(call(client), ...PERMISSION));
      });
    }
    for (const resourceTypes of "sco") {
      test(`srt=${resourceTypes} ${resourceTypes === type ? "allows" : "refuses"} ${verb}`, async () => {
        const client = holder(accountToken("rwdlau", { resourceTypes }), endpoint);
        await (resourceTypes === type ? call(client) : assertRefused(call(client), ...RESOURCE_TYPE));
      });
    }
  }

  for (const resourceTypes of "sco") {
    test(`srt=${resourceTypes} ${resourceTypes === "o" ? "allows" : "refuses"} entities`, withEntity(async (table) => {
      const client = tableHolder(table.tableName, accountToken("rwdlau", { resourceTypes }));
      const { get, list, update, upsert } = ENTITY_VERBS;
      for (const [, call] of [get, list, update, upsert]) {
        await (resourceTypes === "o" ? call(client) : assertRefused(call(client), ...RESOURCE_TYPE));
      }
    }));
  }

  for (const [services, allowed] of [[{ blob: true }, false], [{ queue: true, file: true }, false], [{ blob: true, table: true }, true]]) {
    test(`ss of ${Object.keys(services)} is ${allowed ? "accepted" : "refused"}`, withEntity(async (table) => {
      const client = tableHolder(table.tableName, accountToken("r", { services }));
      const read = ENTITY_VERBS.get[1](client);
      await (allowed ? read : assertRefused(read, 403, "AuthorizationServiceMismatch"));
    }));
  }

  for (const version of ["2019-02-02", "2018-11-09", "2015-04-05"]) {
    test(`sv=${version} is accepted`, withEntity(async (table) => {
      await ENTITY_VERBS.get[1](tableHolder(table.tableName, accountToken("r", { version })));
    }));
  }

  test("it is not for access policies", withEntity(async (table) => {
    const client = tableHolder(table.tableName, accountToken("rwdlau"));
    await assertRefused(client.getAccessPolicy(), ...SCOPE);
    await assertRefused(client.setAccessPolicy([]), ...SCOPE);
  }));
});

for (const [kind, reader] of [
  ["account SAS", (table, options) => tableHolder(table.tableName, accountToken("r", options))],
  ["table SAS", (table, options) => withTableSas(table, "r", options)],
]) {
  describe(`${kind} bounds`, () => {
    const read = ENTITY_VERBS.get[1];
    const accepted = (name, options) => test(name, withEntity((table) => read(reader(table, options()))));
    const refused = (name, options, refusal) =>
      test(name, withEntity((table) => assertRefused(read(reader(table, options())), ...refusal)));

    accepted("st in the past is accepted", () => ({ startsOn: fromNow(-HOUR) }));
    refused("st in the future is refused", () => ({ startsOn: fromNow(HOUR), expiresOn: fromNow(2 * HOUR) }), SIGNATURE);
    refused("se in the past is refused", () => ({ expiresOn: fromNow(-HOUR) }), SIGNATURE);
    accepted("sip of this address is accepted", () => ({ ipRange: { start: "127.0.0.1" } }));
    accepted("sip of a range is accepted", () => ({ ipRange: { start: "127.0.0.0", end: "127.0.0.255" } }));
    for (const ipRange of [{ start: "10.0.0.1" }, { start: "127.0.0.2", end: "127.0.0.255" }]) {
      refused(`sip of ${ipRange.start} is refused`, () => ({ ipRange }), [403, "AuthorizationSourceIPMismatch"]);
    }
    accepted("spr of both protocols is accepted", () => ({ protocol: "https,http" }));
    refused("spr of https alone is refused over http", () => ({ protocol: "https" }), [403, "AuthorizationProtocolMismatch"]);

    test("the signature of another key is refused", withEntity(async (table) => {
      const wrong = new AzureNamedKeyCredential(settings.AccountName, "d3Jvbmc=");
      const token = kind === "account SAS"
        ? generateAccountSas(wrong, { permissions: permissions("r") })
        : generateTableSas(table.tableName, wrong, { permissions: permissions("r"), expiresOn: fromNow(HOUR) });
      await assertRefused(read(tableHolder(table.tableName, token)), ...SIGNATURE);
    }));
  });
}

describe("stored policies", () => {
  const policy = (accessPolicy) => [{ id: "reader", accessPolicy }];
  const client = (table, letters, options) =>
    withTableSas(table, letters, { identifier: "reader", expiresOn: undefined, ...options });
  const read = ENTITY_VERBS.get[1];

  test("si takes times and letters from the policy", withEntity(async (table) => {
    await table.setAccessPolicy(policy({ start: fromNow(-HOUR), expiry: fromNow(HOUR), permission: "r" }));
    await read(client(table));
    await assertRefused(ENTITY_VERBS.create[1](client(table)), ...PERMISSION);
  }));

  test("si and the token complete each other", withEntity(async (table) => {
    await table.setAccessPolicy(policy({ permission: "r" }));
    await read(client(table, undefined, { expiresOn: fromNow(HOUR) }));
    await assertRefused(read(client(table)), ...SIGNATURE);
    await table.setAccessPolicy(policy({ expiry: fromNow(HOUR) }));
    await read(client(table, "r"));
    await assertRefused(read(client(table)), ...SIGNATURE);
  }));

  test("si that is not there is refused", withEntity(async (table) => {
    await assertRefused(read(client(table, "r", { expiresOn: fromNow(HOUR) })), ...SIGNATURE);
  }));

  test("changing the policy changes the tokens that name it", withEntity(async (table) => {
    await table.setAccessPolicy(policy({ expiry: fromNow(HOUR) }));
    const reader = client(table, "r");
    await read(reader);
    await table.setAccessPolicy(policy({ expiry: fromNow(-HOUR) }));
    await assertRefused(read(reader), ...SIGNATURE);
    await table.setAccessPolicy(policy({ start: fromNow(HOUR), expiry: fromNow(2 * HOUR) }));
    await assertRefused(read(reader), ...SIGNATURE);
    await table.setAccessPolicy(policy({ expiry: fromNow(HOUR) }));
    await read(reader);
    await table.setAccessPolicy([]);
    await assertRefused(read(reader), ...SIGNATURE);
  }));
});
