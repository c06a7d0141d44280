// Parallel use of queues: many takers never hold the same message, and nothing is lost.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { freshQueueName, queues, receive, withQueue } from "./queue_support.mjs";

const range = (count) => [...Array(count).keys()];

describe("parallel use of queues", () => {
  test("each message is taken once", withQueue(async (queue) => {
    await Promise.all(range(300).map((n) => queue.sendMessage(String(n))));
    assert.equal((await queue.getProperties()).approximateMessagesCount, 300);
    const taken = [];
    await Promise.all(range(16).map(async (taker) => {
      for (;;) {
        const messages = await receive(queue, { numberOfMessages: [1, 2, 5, 32][taker % 4], visibilityTimeout: 300 });
        if (messages.length === 0) return;
        for (const { messageId, popReceipt, messageText, dequeueCount } of messages) {
          assert.equal(dequeueCount, 1);
          taken.push(Number(messageText));
          await queue.deleteMessage(messageId, popReceipt);
        }
      }
    }));
    assert.deepEqual(taken.sort((a, b) => a - b), range(300));
    assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
  }));

  test("of the takers of a single message one gets it", withQueue(async (queue) => {
    await queue.sendMessage("one");
    const takings = await Promise.all(range(20).map(() => receive(queue)));
    assert.equal(takings.flat().length, 1);
  }));

  test("of those who delete the same message one succeeds", withQueue(async (queue) => {
    const { messageId, popReceipt } = await queue.sendMessage("one");
    const results = await Promise.allSettled(range(20).map(() => queue.deleteMessage(messageId, popReceipt)));
    assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
    assert.ok(results.every(({ status, reason }) => status === "fulfilled" || reason.code === "MessageNotFound"));
  }));

  test("of those who create the same queue one creates it", async () => {
    const queue = queues.getQueueClient(freshQueueName());
    const answers = await Promise.all(range(20).map(() => queue.create()));
    assert.deepEqual(answers.map(({ _response }) => _response.status).sort(), [201, ...Array(19).fill(204)]);
    await queue.delete();
  });
});
