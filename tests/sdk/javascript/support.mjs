// Shared by the tests: clients for the server under test, fresh tables, and checks for refusals.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before } from "node:test";

import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";

export const connectionString = process.env.LAZULITE_CONNECTION_STRING;
if (!connectionString) {
  throw new Error("LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it");
}

/** The connection string's values by name. */
export const settings = Object.fromEntries(
  connectionString.split(";").filter(Boolean).map((part) => [part.split("=")[0], part.slice(part.indexOf("=") + 1)]),
);

/** The secondary's address. The SDK derives it only from a host name, not from a path after an IP address. */
export const secondaryEndpoint = settings.TableEndpoint.replace(/\/?$/, "-secondary");

export const accountKey = new AzureNamedKeyCredential(settings.AccountName, settings.AccountKey);

// No retries: they would hide exactly the answers that these tests look for.
export const clientOptions = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

export const service = TableServiceClient.fromConnectionString(connectionString, clientOptions);

export function tableClient(name) {
  return TableClient.fromConnectionString(connectionString, name, clientOptions);
}

/** A table name that no other test uses. */
export function freshName() {
  return "t" + randomUUID().replaceAll("-", "");
}

/** Runs `work` with a fresh, empty table. */
export function withTable(work) {
  return async () => {
    const table = tableClient(freshName());
    await table.createTable();
    try {
      await work(table);
    } finally {
      await table.deleteTable();
    }
  };
}

/** One table for all tests of a `describe`, filled once. */
export function sharedTable(fill) {
  const table = tableClient(freshName());
  before(async () => {
    await table.createTable();
    await fill(table);
  });
  after(() => table.deleteTable());
  return table;
}

export async function all(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

/** An entity without the server's additions, to compare it with the one that was sent. */
export function plain(entity) {
  const copy = { ...entity };
  delete copy.etag;
  delete copy.timestamp;
  delete copy["odata.metadata"];
  return copy;
}

/** Expects a RestError with this status and this code of the service. */
export async function assertRefused(promise, statusCode, code, message) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.name, "RestError", String(error.stack ?? error));
    assert.equal(error.statusCode, statusCode, error.message);
    // The code is in the answer's JSON, or in a header when the answer is XML.
    const found = error.code ?? error.details?.odataError?.code ?? error.details?.errorCode;
    assert.equal(found, code, error.message);
    if (message) {
      const text = error.details?.odataError?.message?.value ?? error.message;
      assert.ok(text.includes(message), `'${text}' does not say '${message}'`);
    }
    return true;
  });
}
