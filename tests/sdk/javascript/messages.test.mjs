// Messages: send, receive, peek, update, delete, clear.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { assertRefused, peek, receive, receiveSoon, sleep, texts, withQueue } from "./queue_support.mjs";

const TEXT_BYTES_MAX = 65_536;
const WEEK = 604_800;
const NEVER = Date.parse("9999-12-31T23:59:59Z");
const RANGE = [400, "OutOfRangeQueryParameterValue"];
const GONE = [404, "MessageNotFound"];

/** Checks that `moment` is `seconds` from now. Times on the wire are cut to whole seconds. */
const assertAround = (moment, seconds) =>
  assert.ok(Math.abs(moment.getTime() - Date.now() - seconds * 1000) < 5000, `${moment} is not in ${seconds} s`);

describe("sending, receiving, peeking", () => {
  test("a sent message is described", withQueue(async (queue) => {
    const sent = await queue.sendMessage("text");
    assert.equal(sent._response.status, 201);
    assert.match(sent.messageId, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.ok(sent.popReceipt);
    assertAround(sent.insertedOn, 0);
    assert.deepEqual(sent.nextVisibleOn, sent.insertedOn);
    assert.equal(sent.expiresOn - sent.insertedOn, WEEK * 1000);
  }));

  test("a received message is described", withQueue(async (queue) => {
    const sent = await queue.sendMessage("text");
    const [message] = await receive(queue);
    const { messageId, insertedOn, expiresOn } = sent;
    const { popReceipt, nextVisibleOn, ...rest } = message;
    assert.deepEqual(rest, { messageId, insertedOn, expiresOn, dequeueCount: 1, messageText: "text" });
    assert.notEqual(popReceipt, sent.popReceipt);
    assertAround(nextVisibleOn, 30);
  }));

  test("a peeked message has no receipt", withQueue(async (queue) => {
    const { messageId, insertedOn, expiresOn } = await queue.sendMessage("text");
    const [message] = await peek(queue);
    assert.deepEqual({ ...message }, { messageId, insertedOn, expiresOn, dequeueCount: 0, messageText: "text" });
  }));

  for (const [name, text] of Object.entries({
    empty: "",
    unicode: "grüße 漢字 😀 \u00a0 e\u0301",
    XML: "<a href=\"x\">&amp; & ]]> 'q' <![CDATA[y]]></a>",
    // No line feed: the SDK removes those from everything that it sends.
    "white space": "  leading, trailing, \t tab  ",
    "only white space": "   ",
    JSON: '{"a": [1, 2.5, null]}',
    Base64: Buffer.from("hello>>?").toString("base64"),
    number: "0012.50",
  })) {
    test(`text comes back as sent: ${name}`, withQueue(async (queue) => {
      await queue.sendMessage(text);
      assert.deepEqual(texts(await peek(queue)), [text]);
      assert.deepEqual(texts(await receive(queue)), [text]);
    }));
  }

  test("a text has 64 KiB of UTF-8 at most", withQueue(async (queue) => {
    for (const letter of ["x", "漢", "&"]) {
      let most = letter.repeat(Math.floor(TEXT_BYTES_MAX / Buffer.byteLength(letter)));
      most += "x".repeat(TEXT_BYTES_MAX - Buffer.byteLength(most));
      await queue.sendMessage(most);
      assert.equal((await receive(queue))[0].messageText, most);
      await assertRefused(queue.sendMessage(most + "x"), 413, "RequestBodyTooLarge");
    }
    await assertRefused(queue.sendMessage("x".repeat(1_048_576)), 413, "RequestBodyTooLarge");
    assert.deepEqual(await peek(queue), []);
  }));

  test("characters outside of XML are refused", withQueue(async (queue) => {
    for (const text of ["a\u0001b", "a\ufffeb"]) await assertRefused(queue.sendMessage(text), 400, "InvalidXmlDocument");
    assert.deepEqual(await peek(queue), []);
  }));

  test("time to live", withQueue(async (queue) => {
    const expiry = async (messageTimeToLive) => (await queue.sendMessage("text", { messageTimeToLive })).expiresOn;
    assertAround(await expiry(100), 100);
    assertAround(await expiry(10 * WEEK), 10 * WEEK);
    assert.equal((await expiry(-1)).getTime(), NEVER);
    assert.equal((await expiry(Number.MAX_SAFE_INTEGER)).getTime(), NEVER);
    for (const seconds of [0, -2]) await assertRefused(expiry(seconds), 400, "InvalidQueryParameterValue");
  }));

  test("a message is gone when it has expired", withQueue(async (queue) => {
    const sent = await queue.sendMessage("short", { messageTimeToLive: 1 });
    await queue.sendMessage("long");
    await sleep(1200);
    assert.deepEqual(texts(await peek(queue, { numberOfMessages: 32 })), ["long"]);
    assert.deepEqual(texts(await receive(queue, { numberOfMessages: 32 })), ["long"]);
    assert.equal((await queue.getProperties()).approximateMessagesCount, 1);
    await assertRefused(queue.deleteMessage(sent.messageId, sent.popReceipt), ...GONE);
  }));

  test("visibility must end before the message does, and within a week", withQueue(async (queue) => {
    const send = (visibilityTimeout, messageTimeToLive) => queue.sendMessage("text", { visibilityTimeout, messageTimeToLive });
    const reason = "messagettl must be greater than visibilitytimeout";
    await assertRefused(send(10, 10), 400, "InvalidQueryParameterValue", reason);
    assertAround((await send(9, 10)).nextVisibleOn, 9);
    assertAround((await send(WEEK, -1)).nextVisibleOn, WEEK);
    const { messageId, popReceipt } = await send(0, -1);
    for (const seconds of [-1, WEEK + 1]) {
      await assertRefused(send(seconds, -1), ...RANGE);
      await assertRefused(receive(queue, { visibilityTimeout: seconds }), ...RANGE);
      await assertRefused(queue.updateMessage(messageId, popReceipt, "text", seconds), ...RANGE);
    }
    await assertRefused(receive(queue, { visibilityTimeout: 0 }), ...RANGE);
  }));

  test("a message sent invisible appears on time", withQueue(async (queue) => {
    const { messageId } = await queue.sendMessage("later", { visibilityTimeout: 1 });
    assert.deepEqual([await receive(queue), await peek(queue)], [[], []]);
    assert.equal((await receiveSoon(queue)).messageId, messageId);
  }));

  test("a received message comes back with a higher count", withQueue(async (queue) => {
    await queue.sendMessage("again");
    const [first] = await receive(queue, { visibilityTimeout: 1 });
    assert.deepEqual(await receive(queue), []);
    const second = await receiveSoon(queue);
    assert.deepEqual([second.messageId, first.dequeueCount, second.dequeueCount], [first.messageId, 1, 2]);
    await assertRefused(queue.deleteMessage(first.messageId, first.popReceipt), ...GONE);
    await assertRefused(queue.updateMessage(first.messageId, first.popReceipt, "x"), ...GONE);
    await queue.deleteMessage(second.messageId, second.popReceipt);
  }));

  test("messages come first in, first out, up to 32 at a time", withQueue(async (queue) => {
    const sent = [...Array(40).keys()].map(String);
    for (const text of sent) await queue.sendMessage(text);
    assert.deepEqual(texts(await peek(queue, { numberOfMessages: 32 })), sent.slice(0, 32));
    assert.deepEqual(texts(await receive(queue)), ["0"]);
    assert.deepEqual(texts(await receive(queue, { numberOfMessages: 32 })), sent.slice(1, 33));
    assert.deepEqual(texts(await receive(queue, { numberOfMessages: 32 })), sent.slice(33));
    assert.deepEqual(await receive(queue, { numberOfMessages: 32 }), []);
    for (const numberOfMessages of [0, 33]) {
      await assertRefused(receive(queue, { numberOfMessages }), ...RANGE);
      await assertRefused(peek(queue, { numberOfMessages }), ...RANGE);
    }
  }));

  test("peeking changes nothing", withQueue(async (queue) => {
    await queue.sendMessage("text");
    for (let times = 0; times < 3; times += 1) assert.equal((await peek(queue))[0].dequeueCount, 0);
    assert.equal((await receive(queue))[0].dequeueCount, 1);
    assert.deepEqual(await peek(queue), []);
  }));
});

describe("updating, deleting, clearing", () => {
  test("an update changes text and visibility", withQueue(async (queue) => {
    await queue.sendMessage("old");
    const [message] = await receive(queue);
    const updated = await queue.updateMessage(message.messageId, message.popReceipt, "new <&>", 0);
    assert.notEqual(updated.popReceipt, message.popReceipt);
    assertAround(updated.nextVisibleOn, 0);
    const [again] = await receive(queue);
    const { messageId, insertedOn, expiresOn, dequeueCount, messageText } = again;
    assert.deepEqual([messageId, insertedOn, expiresOn], [message.messageId, message.insertedOn, message.expiresOn]);
    assert.deepEqual([dequeueCount, messageText], [2, "new <&>"]);
  }));

  test("an update without text keeps the text, with empty text empties it", withQueue(async (queue) => {
    const sent = await queue.sendMessage("stays");
    const updated = await queue.updateMessage(sent.messageId, sent.popReceipt, undefined, 0);
    assert.deepEqual(texts(await peek(queue)), ["stays"]);
    await queue.updateMessage(sent.messageId, updated.popReceipt, "", 0);
    assert.deepEqual(texts(await peek(queue)), [""]);
  }));

  test("an update extends the time", withQueue(async (queue) => {
    await queue.sendMessage("text");
    const [message] = await receive(queue, { visibilityTimeout: 1 });
    const updated = await queue.updateMessage(message.messageId, message.popReceipt, undefined, 100);
    assertAround(updated.nextVisibleOn, 100);
    await sleep(1200);
    assert.deepEqual(await receive(queue), []);
    await queue.deleteMessage(message.messageId, updated.popReceipt);
  }));

  test("an update with too much text is refused", withQueue(async (queue) => {
    const { messageId, popReceipt } = await queue.sendMessage("old");
    const text = "x".repeat(TEXT_BYTES_MAX);
    await assertRefused(queue.updateMessage(messageId, popReceipt, text + "x", 0), 413, "RequestBodyTooLarge");
    await queue.updateMessage(messageId, popReceipt, text, 0);
    assert.deepEqual(texts(await peek(queue)), [text]);
  }));

  test("only the newest receipt works", withQueue(async (queue) => {
    const sent = await queue.sendMessage("text");
    const [taken] = await receive(queue);
    const updated = await queue.updateMessage(taken.messageId, taken.popReceipt, undefined, 30);
    for (const stale of [sent.popReceipt, taken.popReceipt]) {
      await assertRefused(queue.deleteMessage(taken.messageId, stale), ...GONE);
      await assertRefused(queue.updateMessage(taken.messageId, stale, "x", 0), ...GONE);
    }
    assert.equal((await queue.deleteMessage(taken.messageId, updated.popReceipt))._response.status, 204);
    await assertRefused(queue.deleteMessage(taken.messageId, updated.popReceipt), ...GONE);
  }));

  test("a message is deleted after its time when nobody took it", withQueue(async (queue) => {
    await queue.sendMessage("slow");
    const [message] = await receive(queue, { visibilityTimeout: 1 });
    await sleep(1200);
    await queue.deleteMessage(message.messageId, message.popReceipt);
    assert.deepEqual(await peek(queue), []);
  }));

  test("malformed receipts and unknown messages are refused", withQueue(async (queue) => {
    const { messageId, popReceipt } = await queue.sendMessage("text");
    const malformed = [400, "InvalidQueryParameterValue", "Invalid pop receipt format"];
    await assertRefused(queue.deleteMessage(messageId, "no receipt!"), ...malformed);
    await assertRefused(queue.updateMessage(messageId, "no receipt!", "x", 0), ...malformed);
    await assertRefused(queue.deleteMessage("00000000-0000-0000-0000-000000000000", popReceipt), ...GONE);
    await assertRefused(queue.deleteMessage("no-guid", popReceipt), ...GONE);
    assert.deepEqual(texts(await peek(queue)), ["text"]);
  }));

  test("clearing removes visible and invisible messages", withQueue(async (queue) => {
    for (let n = 0; n < 3; n += 1) await queue.sendMessage("text");
    const [taken] = await receive(queue);
    await queue.sendMessage("later", { visibilityTimeout: 60 });
    assert.equal((await queue.clearMessages())._response.status, 204);
    assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
    await assertRefused(queue.deleteMessage(taken.messageId, taken.popReceipt), ...GONE);
    await queue.clearMessages();
    await queue.sendMessage("new");
    assert.deepEqual(texts(await receive(queue, { numberOfMessages: 32 })), ["new"]);
  }));
});
