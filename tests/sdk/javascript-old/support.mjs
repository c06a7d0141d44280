// Shared by the tests: the older client with promises, fresh tables, plain entities, and checks for refusals.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before } from "node:test";

import azure from "azure-storage";

export const connectionString = process.env.LAZULITE_CONNECTION_STRING;
if (!connectionString) {
  throw new Error("LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it");
}

/** The connection string's values by name. */
export const settings = Object.fromEntries(
  connectionString.split(";").filter(Boolean).map((part) => [part.split("=")[0], part.slice(part.indexOf("=") + 1)]),
);

export const { TableBatch, TableQuery } = azure;
export const { entityGenerator: as, PayloadFormat } = azure.TableUtilities;

/** A table service whose methods return promises of `{ result, response }`. It does not retry. */
export function promised(service) {
  return new Proxy(service, {
    get: (target, name) => (...values) => new Promise((resolve, reject) => {
      target[name](...values, (error, ...answers) => {
        if (error) reject(error);
        // The response comes last; deletes give no result before it.
        else resolve({ result: answers[0], response: answers.at(-1) });
      });
    }),
  });
}

/** The client itself, for what needs no answer: signatures and addresses. */
export const plainService = azure.createTableService(connectionString);
export const service = promised(plainService);

export function serviceWithSas(token) {
  return promised(azure.createTableServiceWithSas(settings.TableEndpoint, token));
}

/** A table name that no other test uses. */
export function freshName() {
  return "t" + randomUUID().replaceAll("-", "");
}

/** Runs `work` with the name of a fresh, empty table. */
export function withTable(work) {
  return async () => {
    const table = freshName();
    await service.createTable(table);
    try {
      await work(table);
    } finally {
      await service.deleteTable(table);
    }
  };
}

/** The name of one table for all tests of a `describe`, filled once. */
export function sharedTable(fill) {
  const table = freshName();
  before(async () => {
    await service.createTable(table);
    await fill(table);
  });
  after(() => service.deleteTable(table));
  return table;
}

/** An entity in partition `p`. Numbers are Int32, texts String; other types come from `as`. */
export function entity(rowKey, properties = {}) {
  return entityIn("p", rowKey, properties);
}

export function entityIn(partitionKey, rowKey, properties = {}) {
  const typed = { PartitionKey: as.String(partitionKey), RowKey: as.String(rowKey) };
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "number") typed[name] = as.Int32(value);
    else if (typeof value === "string") typed[name] = as.String(value);
    else typed[name] = value;
  }
  return typed;
}

/** The same entity with an ETag for the client to send as `If-Match`. */
export function withEtag(entity, etag) {
  return { ...entity, ".metadata": { etag } };
}

/** The ETag that the client kept of an entity. */
export function etagOf(entity) {
  return entity[".metadata"].etag;
}

/** The values of an entity by name, without types, ETag and Timestamp. */
export function plain(entity) {
  const names = Object.keys(entity).filter((name) => name !== ".metadata" && name !== "Timestamp");
  return Object.fromEntries(names.map((name) => [name, entity[name]._]));
}

export async function retrieve(table, rowKey, partitionKey = "p") {
  return (await service.retrieveEntity(table, partitionKey, rowKey)).result;
}

/** One page of a query. */
export async function page(table, query = new TableQuery(), token = null) {
  return (await service.queryEntities(table, query, token)).result;
}

/** Everything that a query finds, page after page. */
export async function all(table, query = new TableQuery()) {
  const found = [];
  let token = null;
  do {
    const { entries, continuationToken } = await page(table, query, token);
    found.push(...entries);
    token = continuationToken;
  } while (token);
  return found;
}

/** Expects the client's StorageError with this status and code of the service. */
export async function assertRefused(promise, statusCode, code, message) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.name, "StorageError", String(error.stack ?? error));
    assert.equal(error.statusCode, statusCode, error.message);
    assert.equal(error.code, code, error.message);
    if (message) assert.ok(error.message.includes(message), `'${error.message}' does not say '${message}'`);
    return true;
  });
}
