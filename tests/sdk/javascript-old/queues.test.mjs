// Queues and messages with the older client, which encodes texts in Base64 unless told otherwise.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import azure from "azure-storage";

import { assertRefused, connectionString, freshName, promised, settings } from "./support.mjs";

const plainQueues = azure.createQueueService(connectionString);
plainQueues.messageEncoder = new azure.QueueMessageEncoder.TextXmlQueueMessageEncoder();
const queues = promised(plainQueues);

/** Runs `work` with the name of a fresh, empty queue. */
function withQueue(work) {
  return async () => {
    const queue = "q" + freshName().slice(1);
    await queues.createQueue(queue);
    try {
      await work(queue);
    } finally {
      await queues.deleteQueueIfExists(queue);
    }
  };
}

const receive = async (queue, options = {}) => (await queues.getMessages(queue, options)).result;
const peek = async (queue) => (await queues.peekMessages(queue, { numOfMessages: 32 })).result;
const texts = (messages) => messages.map(({ messageText }) => messageText);

describe("queues of the older client", () => {
  test("create, exist, list and delete", withQueue(async (queue) => {
    assert.equal((await queues.createQueueIfNotExists(queue)).result.created, false);
    assert.equal((await queues.doesQueueExist(queue)).result.exists, true);
    const { entries } = (await queues.listQueuesSegmentedWithPrefix(queue, null, { include: "metadata" })).result;
    assert.deepEqual(entries.map(({ name }) => name), [queue]);
    await queues.deleteQueue(queue);
    assert.equal((await queues.doesQueueExist(queue)).result.exists, false);
    await assertRefused(queues.deleteQueue(queue), 404, "QueueNotFound");
    assert.equal((await queues.deleteQueueIfExists(queue)).result, false);
  }));

  test("pages of queues", async () => {
    const prefix = "q" + freshName().slice(1);
    const names = [..."abc"].map((letter) => `${prefix}-${letter}`);
    for (const name of names) await queues.createQueue(name);
    const first = (await queues.listQueuesSegmentedWithPrefix(prefix, null, { maxResults: 2 })).result;
    const second = (await queues.listQueuesSegmentedWithPrefix(prefix, first.continuationToken)).result;
    assert.deepEqual([...first.entries, ...second.entries].map(({ name }) => name), names);
    assert.deepEqual([first.entries.length, second.continuationToken], [2, null]);
    for (const name of names) await queues.deleteQueue(name);
  });

  test("metadata and count", withQueue(async (queue) => {
    await queues.setQueueMetadata(queue, { hello: "world" });
    await queues.createMessage(queue, "text");
    const { result } = await queues.getQueueMetadata(queue);
    assert.deepEqual([result.metadata, result.approximateMessageCount], [{ hello: "world" }, 1]);
  }));

  test("texts come back as sent", withQueue(async (queue) => {
    const sent = ["plain", "grüße 漢字 😀", "<a>&amp; & 'q'</a>", "  spaces  "];
    for (const text of sent) await queues.createMessage(queue, text);
    assert.deepEqual(texts(await peek(queue)), sent);
    assert.deepEqual(texts(await receive(queue, { numOfMessages: 32 })), sent);
  }));

  test("its own encoding is Base64", withQueue(async (queue) => {
    const encoding = azure.createQueueService(connectionString);
    encoding.messageEncoder = new azure.QueueMessageEncoder.TextBase64QueueMessageEncoder();
    await promised(encoding).createMessage(queue, "grüße");
    assert.deepEqual(texts(await peek(queue)), ["Z3LDvMOfZQ=="]);
    assert.deepEqual(texts((await promised(encoding).getMessages(queue)).result), ["grüße"]);
  }));

  test("take, update, delete and clear", withQueue(async (queue) => {
    const { result: sent } = await queues.createMessage(queue, "old", { messageTimeToLive: 100 });
    assert.ok(sent.messageId && sent.popReceipt);
    const [taken] = await receive(queue, { visibilityTimeout: 60 });
    assert.deepEqual([taken.messageId, Number(taken.dequeueCount)], [sent.messageId, 1]);
    assert.deepEqual(await receive(queue), []);
    const { result: updated } = await queues.updateMessage(queue, taken.messageId, taken.popReceipt, 0, { messageText: "new" });
    assert.deepEqual(texts(await peek(queue)), ["new"]);
    const stale = queues.deleteMessage(queue, taken.messageId, taken.popReceipt);
    await assertRefused(stale, 404, "MessageNotFound");
    await queues.deleteMessage(queue, taken.messageId, updated.popReceipt);
    await queues.createMessage(queue, "more");
    await queues.clearMessages(queue);
    assert.deepEqual(await peek(queue), []);
  }));

  test("refusals", withQueue(async (queue) => {
    await assertRefused(queues.createQueue(queue, { metadata: { other: "yes" } }), 409, "QueueAlreadyExists");
    await assertRefused(queues.createMessage(queue, "x".repeat(65_537)), 413, "RequestBodyTooLarge");
    await assertRefused(receive(queue, { numOfMessages: 33 }), 400, "OutOfRangeQueryParameterValue");
  }));

  test("policies and signatures", withQueue(async (queue) => {
    const expiry = new Date(Date.now() + 3600_000);
    await queues.setQueueAcl(queue, { worker: { Permissions: "ap", Expiry: expiry } });
    assert.equal((await queues.getQueueAcl(queue)).result.signedIdentifiers.worker.Permissions, "ap");
    const holder = (policy) => promised(azure.createQueueServiceWithSas(
      settings.QueueEndpoint, plainQueues.generateSharedAccessSignature(queue, policy)));
    const stored = holder({ Id: "worker" });
    await stored.createMessage(queue, "text");
    await assertRefused(stored.peekMessages(queue), 403, "AuthorizationPermissionMismatch");
    const reader = holder({ AccessPolicy: { Permissions: "r", Expiry: expiry } });
    assert.equal((await reader.peekMessages(queue)).result.length, 1);
    await assertRefused(reader.getMessages(queue), 403, "AuthorizationPermissionMismatch");
    const expired = holder({ AccessPolicy: { Permissions: "r", Expiry: new Date(Date.now() - 3600_000) } });
    await assertRefused(expired.peekMessages(queue), 403, "AuthenticationFailed");
  }));

  test("properties of the service", async () => {
    const rule = { AllowedOrigins: ["http://a.example"], AllowedMethods: ["GET"], AllowedHeaders: [], ExposedHeaders: [], MaxAgeInSeconds: 5 };
    await queues.setServiceProperties({ Cors: { CorsRule: [rule] } });
    const { Cors } = (await queues.getServiceProperties()).result;
    assert.deepEqual([Cors.CorsRule.length, Cors.CorsRule[0].AllowedOrigins], [1, ["http://a.example"]]);
    await queues.setServiceProperties({ Cors: {} });
  });
});
