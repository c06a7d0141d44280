// Shared by the tests of queues: clients for the server under test, fresh queues, and checks for refusals.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";

import { connectionString, settings } from "./support.mjs";

export const queueEndpoint = settings.QueueEndpoint.replace(/\/$/, "");

/** The secondary's address. The SDK has none of its own. */
export const queueSecondaryEndpoint = `${queueEndpoint}-secondary`;

export const accountKey = new StorageSharedKeyCredential(settings.AccountName, settings.AccountKey);

// No retries: they would hide exactly the answers that these tests look for.
export const clientOptions = { retryOptions: { maxTries: 1 } };

export const queues = QueueServiceClient.fromConnectionString(connectionString, clientOptions);

/** A queue name that no other test uses. */
export function freshQueueName() {
  return "q" + randomUUID().replaceAll("-", "");
}

/** Runs `work` with a fresh, empty queue. */
export function withQueue(work) {
  return async () => {
    const queue = queues.getQueueClient(freshQueueName());
    await queue.create();
    try {
      await work(queue);
    } finally {
      await queue.deleteIfExists();
    }
  };
}

export const receive = async (queue, options) => (await queue.receiveMessages(options)).receivedMessageItems;
export const peek = async (queue, options) => (await queue.peekMessages(options)).peekedMessageItems;
export const texts = (messages) => messages.map(({ messageText }) => messageText);
export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** The next message. Waits for one that becomes visible soon. */
export async function receiveSoon(queue) {
  for (let tries = 0; tries < 100; tries += 1) {
    const [message] = await receive(queue);
    if (message) return message;
    await sleep(50);
  }
  throw new Error("no message became visible");
}

/** Expects a RestError with this status and this code of the service. */
export async function assertRefused(promise, statusCode, code, message) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.name, "RestError", String(error.stack ?? error));
    assert.equal(error.statusCode, statusCode, error.message);
    assert.equal(error.code ?? error.details?.errorCode, code, error.message);
    // The reason stands beside the message, which is all that the SDK passes on.
    const text = error.response.bodyAsText;
    if (message) assert.ok(text.includes(message), `'${text}' does not say '${message}'`);
    return true;
  });
}
