// Scalability targets (`--throttle`): the client's own retries get all the work done, at the pace of the target.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";

import { ACCOUNT, KEY, skip, withServer } from "./own_server.mjs";
import { all, assertRefused } from "./support.mjs";

const TARGET = 40;
const COUNT = 100;
const CALLERS = 10;
// Some may come at once after a pause; the rest cannot come faster than the target.
const SHORTEST_MS = (1000 * (COUNT - 10)) / TARGET;
// The default policy with shorter pauses, and more of them in return.
const RETRIES = { maxRetries: 30, retryDelayInMs: 20, maxRetryDelayInMs: 200 };
const range = (count) => [...Array(count).keys()];
const entity = (n, partitionKey = "hot") => ({ partitionKey, rowKey: String(n).padStart(3, "0"), n });

/** Runs `work` with a table on a server with a target of its own. */
function withTarget(retryOptions, work) {
  return withServer([`--throttle=partition=${TARGET}`], async (endpoints) => {
    const options = { allowInsecureConnection: true, retryOptions };
    const table = new TableClient(endpoints.Table, "people", new AzureNamedKeyCredential(ACCOUNT, KEY), options);
    await table.createTable();
    await work(table);
  });
}

describe("throttle", () => {
  test("retries get all the work of parallel callers done", { skip }, withTarget(RETRIES, async (table) => {
    const numbers = range(COUNT);
    const call = async () => { while (numbers.length > 0) await table.createEntity(entity(numbers.shift())); };
    const started = performance.now();
    await Promise.all(range(CALLERS).map(call));
    assert.ok(performance.now() - started > SHORTEST_MS);
    assert.deepEqual((await all(table.listEntities())).map(({ n }) => n), range(COUNT));
  }));

  test("retries get transactions done", { skip }, withTarget(RETRIES, async (table) => {
    for (const first of range(5)) {
      await table.submitTransaction(range(20).map((n) => ["create", entity(20 * first + n)]));
    }
    assert.equal((await all(table.listEntities())).length, COUNT);
  }));

  test("without retries the server says that it is busy, and other partitions go on", { skip }, withTarget({ maxRetries: 0 }, async (table) => {
    const results = await Promise.allSettled(range(COUNT).map((n) => table.createEntity(entity(n))));
    const refused = results.filter(({ status }) => status === "rejected");
    assert.ok(refused.length > 0 && refused.length < COUNT, `${refused.length} of ${COUNT}`);
    for (const { reason } of refused) await assertRefused(Promise.reject(reason), 503, "ServerBusy");
    await table.createEntity(entity(0, "calm"));
    assert.equal((await all(table.listEntities())).length, COUNT - refused.length + 1);
  }));
});
