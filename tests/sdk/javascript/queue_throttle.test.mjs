// Scalability targets (`--throttle`): a queue is a partition, and the client's own retries get all the work done.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";

import { ACCOUNT, KEY, skip, withServer } from "./own_server.mjs";
import { assertRefused, receive } from "./queue_support.mjs";

const TARGET = 40;
const COUNT = 100;
const CALLERS = 10;
// Some may come at once after a pause; the rest cannot come faster than the target.
const SHORTEST_MS = (1000 * (COUNT - 10)) / TARGET;
// The default policy with shorter pauses, and more of them in return.
const RETRIES = { maxTries: 30, retryDelayInMs: 20, maxRetryDelayInMs: 200 };
const range = (count) => [...Array(count).keys()];

/** Runs `work` with two queues on a server with a target of its own. */
function withTarget(retryOptions, work) {
  return withServer([`--throttle=partition=${TARGET}`], async (endpoints) => {
    const queues = new QueueServiceClient(endpoints.Queue, new StorageSharedKeyCredential(ACCOUNT, KEY), { retryOptions });
    const [hot, calm] = ["hot", "calm"].map((name) => queues.getQueueClient(name));
    await hot.create();
    await calm.create();
    await work(hot, calm);
  });
}

describe("throttle of queues", () => {
  test("retries get all the work of parallel callers done", { skip }, withTarget(RETRIES, async (hot) => {
    const numbers = range(COUNT);
    const call = async () => { while (numbers.length > 0) await hot.sendMessage(String(numbers.shift())); };
    const started = performance.now();
    await Promise.all(range(CALLERS).map(call));
    assert.ok(performance.now() - started > SHORTEST_MS);
    const found = [];
    while (found.length < COUNT) {
      const messages = await receive(hot, { numberOfMessages: 32, visibilityTimeout: 600 });
      assert.ok(messages.length > 0, `only ${found.length} messages`);
      found.push(...messages.map(({ messageText }) => Number(messageText)));
    }
    assert.deepEqual(found.sort((a, b) => a - b), range(COUNT));
  }));

  test("without retries the server says that it is busy, and other queues go on", { skip }, withTarget({ maxTries: 1 }, async (hot, calm) => {
    const results = await Promise.allSettled(range(COUNT).map((n) => hot.sendMessage(String(n))));
    const refused = results.filter(({ status }) => status === "rejected");
    assert.ok(refused.length > 0 && refused.length < COUNT, `${refused.length} of ${COUNT}`);
    for (const { reason } of refused) await assertRefused(Promise.reject(reason), 503, "ServerBusy");
    await calm.sendMessage("calm");
    assert.equal((await hot.getProperties()).approximateMessagesCount, COUNT - refused.length);
  }));
});
