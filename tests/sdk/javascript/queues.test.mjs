// Queues: create, list, delete, metadata, and the count of messages.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { QueueClient } from "@azure/storage-queue";

import { all, connectionString } from "./support.mjs";
import {
  accountKey, assertRefused, clientOptions, freshQueueName, peek, queueEndpoint, queues, receive, texts, withQueue,
} from "./queue_support.mjs";

const names = (items) => items.map(({ name }) => name);
const listed = async (options) => names(await all(queues.listQueues(options)));
const count = async (queue) => (await queue.getProperties()).approximateMessagesCount;

describe("creating and deleting", () => {
  test("a created queue is listed and a deleted one is not", async () => {
    const name = freshQueueName();
    assert.deepEqual(await listed({ prefix: name }), []);
    assert.equal((await queues.createQueue(name))._response.status, 201);
    assert.deepEqual(await listed({ prefix: name }), [name]);
    assert.equal((await queues.deleteQueue(name))._response.status, 204);
    assert.deepEqual(await listed({ prefix: name }), []);
  });

  test("creating again with the same metadata changes nothing", withQueue(async (queue) => {
    await queue.setMetadata({ color: "red" });
    await queue.sendMessage("stays");
    for (const metadata of [{ color: "red" }, { COLOR: "red" }]) {
      assert.equal((await queue.create({ metadata }))._response.status, 204);
    }
    assert.deepEqual(texts(await peek(queue)), ["stays"]);
  }));

  test("creating again with other metadata is a conflict", withQueue(async (queue) => {
    await queue.setMetadata({ color: "red" });
    for (const metadata of [undefined, { color: "blue" }, { color: "red", size: "big" }]) {
      await assertRefused(queue.create({ metadata }), 409, "QueueAlreadyExists", "The specified queue already exists.");
    }
    assert.deepEqual((await queue.getProperties()).metadata, { color: "red" });
  }));

  test("createIfNotExists, exists and deleteIfExists say what they did", async () => {
    const queue = queues.getQueueClient(freshQueueName());
    assert.equal(await queue.exists(), false);
    assert.equal((await queue.deleteIfExists()).succeeded, false);
    assert.equal((await queue.createIfNotExists()).succeeded, true);
    assert.equal((await queue.createIfNotExists()).succeeded, false);
    const other = await queue.createIfNotExists({ metadata: { other: "yes" } });
    assert.deepEqual([other.succeeded, other.errorCode], [false, "QueueAlreadyExists"]);
    assert.equal(await queue.exists(), true);
    assert.equal((await queue.deleteIfExists()).succeeded, true);
    assert.equal(await queue.exists(), false);
  });

  test("a queue created again is empty", withQueue(async (queue) => {
    await queue.sendMessage("gone");
    await queue.setMetadata({ old: "yes" });
    await queue.delete();
    await queue.create();
    assert.deepEqual(await peek(queue), []);
    const { metadata, approximateMessagesCount } = await queue.getProperties();
    assert.deepEqual([metadata, approximateMessagesCount], [{}, 0]);
  }));

  test("a missing queue is not found", async () => {
    const missing = queues.getQueueClient(freshQueueName());
    for (const call of [
      () => missing.delete(), () => missing.getProperties(), () => missing.setMetadata({ a: "b" }),
      () => missing.getAccessPolicy(), () => missing.setAccessPolicy([]), () => missing.sendMessage("text"),
      () => missing.receiveMessages(), () => missing.peekMessages(), () => missing.clearMessages(),
      () => missing.deleteMessage("id", "AgAAAAMAAAAAAAAAHFrsOFDq2AE="),
      () => missing.updateMessage("id", "AgAAAAMAAAAAAAAAHFrsOFDq2AE=", "text"),
    ]) {
      await assertRefused(call(), 404, "QueueNotFound");
    }
  });

  for (const name of ["UPPER", "under_score", "-first", "last-", "two--dashes", "dot.ted"]) {
    test(`the name ${name} is refused`, () => assertRefused(queues.createQueue(name), 400, "InvalidResourceName"));
  }

  test("names have three to 63 characters", async () => {
    for (const name of ["ab", "a".repeat(64)]) await assertRefused(queues.createQueue(name), 400, "OutOfRangeInput");
    for (const name of [freshQueueName().padEnd(63, "x"), freshQueueName().slice(-3)]) {
      await queues.createQueue(name);
      await queues.deleteQueue(name);
    }
  });

  test("clients from a connection string and from a URL are the same", withQueue(async (queue) => {
    assert.equal(queue.url, `${queueEndpoint}/${queue.name}`);
    await new QueueClient(connectionString, queue.name, clientOptions).sendMessage("one");
    await new QueueClient(queue.url, accountKey, clientOptions).sendMessage("two");
    assert.deepEqual(texts(await receive(queue, { numberOfMessages: 2 })), ["one", "two"]);
  }));
});

describe("listing", () => {
  const prefix = freshQueueName();
  const five = [..."abcde"].map((letter) => `${prefix}-${letter}`);
  before(async () => {
    for (const [n, name] of five.entries()) {
      await queues.createQueue(name, { metadata: n % 2 ? { number: String(n) } : undefined });
    }
  });
  after(() => Promise.all(five.map((name) => queues.deleteQueue(name))));

  test("by prefix comes in order", async () => {
    assert.deepEqual(await listed({ prefix }), five);
    assert.deepEqual(await listed({ prefix: five[3] }), [five[3]]);
    assert.deepEqual(await listed({ prefix: `${prefix}z` }), []);
  });

  test("gives metadata only when asked", async () => {
    const metadata = async (options) => (await all(queues.listQueues({ prefix, ...options }))).map((item) => item.metadata);
    assert.deepEqual(await metadata(), Array(5).fill(undefined));
    const found = (await metadata({ includeMetadata: true })).map((item) => item || {});
    assert.deepEqual(found, [{}, { number: "1" }, {}, { number: "3" }, {}]);
  });

  for (const maxPageSize of [1, 2, 5, 6]) {
    test(`in pages of ${maxPageSize} gives each once`, async () => {
      const pages = await all(queues.listQueues({ prefix }).byPage({ maxPageSize }));
      const expected = [];
      for (let start = 0; start < 5; start += maxPageSize) expected.push(five.slice(start, start + maxPageSize));
      assert.deepEqual(pages.map((page) => names(page.queueItems)), expected);
      assert.deepEqual([pages[0].prefix, pages[0].maxPageSize, pages.at(-1).continuationToken], [prefix, maxPageSize, ""]);
    });
  }

  test("resumes from a saved token", async () => {
    const first = await queues.listQueues({ prefix }).byPage({ maxPageSize: 2 }).next();
    const { continuationToken } = first.value;
    const rest = await all(queues.listQueues({ prefix }).byPage({ maxPageSize: 2, continuationToken }));
    assert.deepEqual(names(first.value.queueItems.concat(...rest.map((page) => page.queueItems))), five);
  });

  test("a page size of zero is refused", async () => {
    const page = queues.listQueues().byPage({ maxPageSize: 0 }).next();
    await assertRefused(page, 400, "OutOfRangeQueryParameterValue");
  });
});

describe("metadata and count", () => {
  test("metadata is replaced as a whole", withQueue(async (queue) => {
    const metadata = async () => (await queue.getProperties()).metadata;
    assert.deepEqual(await metadata(), {});
    await queue.setMetadata({ hello: "world", number: "43", _x1: "a b" });
    assert.deepEqual(await metadata(), { hello: "world", number: "43", _x1: "a b" });
    await queue.setMetadata({ other: "1" });
    assert.deepEqual(await metadata(), { other: "1" });
    await queue.setMetadata();
    assert.deepEqual(await metadata(), {});
  }));

  test("metadata names are identifiers and everything together has 8 KiB", withQueue(async (queue) => {
    await assertRefused(queue.setMetadata({ "with-dash": "1" }), 400, "InvalidMetadata");
    await assertRefused(queue.setMetadata({ "1digit": "1" }), 400, "InvalidMetadata");
    await queue.setMetadata({ a: "x".repeat(4095), b: "y".repeat(4095) });
    await assertRefused(queue.setMetadata({ a: "x".repeat(4095), b: "y".repeat(4096) }), 400, "MetadataTooLarge");
  }));

  test("the count is of visible and invisible messages", withQueue(async (queue) => {
    assert.equal(await count(queue), 0);
    await queue.sendMessage("later", { visibilityTimeout: 60 });
    await queue.sendMessage("now");
    assert.equal(await count(queue), 2);
    const [taken] = await receive(queue);
    assert.equal(await count(queue), 2);
    await queue.deleteMessage(taken.messageId, taken.popReceipt);
    assert.equal(await count(queue), 1);
    await queue.clearMessages();
    assert.equal(await count(queue), 0);
  }));
});
