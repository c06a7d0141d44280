// Shared access signatures for queues from the SDK's own generators: what each field allows and refuses.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, QueueClient, QueueSASPermissions,
  QueueServiceClient, StorageSharedKeyCredential, generateAccountSASQueryParameters,
  generateQueueSASQueryParameters,
} from "@azure/storage-queue";

import { all, settings } from "./support.mjs";
import {
  accountKey, assertRefused, clientOptions, freshQueueName, peek, queueEndpoint, queues, receive, texts, withQueue,
} from "./queue_support.mjs";

const HOUR = 3600_000;
const fromNow = (milliseconds) => new Date(Date.now() + milliseconds);

const PERMISSION = [403, "AuthorizationPermissionMismatch"];
const RESOURCE_TYPE = [403, "AuthorizationResourceTypeMismatch"];
const SCOPE = [403, "AuthorizationFailure"];
const SIGNATURE = [403, "AuthenticationFailed"];

const queueAt = (name, token) => new QueueClient(`${queueEndpoint}/${name}?${token}`, undefined, clientOptions);

/** A queue's client with a signature for that queue, or for the queue `queueName`. */
function withQueueSas(queue, letters, { key = accountKey, ...options } = {}) {
  const values = { queueName: queue.name, expiresOn: fromNow(HOUR), ...options };
  if (letters !== undefined) values.permissions = QueueSASPermissions.parse(letters);
  return queueAt(queue.name, generateQueueSASQueryParameters(values, key).toString());
}

/** A client of the whole service with an account's signature. */
function withAccountSas(letters, { types = "sco", services = "q", key = accountKey, ...options } = {}) {
  const values = {
    permissions: AccountSASPermissions.parse(letters),
    resourceTypes: AccountSASResourceTypes.parse(types).toString(),
    services: AccountSASServices.parse(services).toString(),
    expiresOn: fromNow(HOUR),
    ...options,
  };
  const token = generateAccountSASQueryParameters(values, key).toString();
  return new QueueServiceClient(`${queueEndpoint}?${token}`, undefined, clientOptions);
}

/** A test with a queue of two messages, of which the first is taken. */
const withMessages = (work) => withQueue(async (queue) => {
  await queue.sendMessage("taken");
  await queue.sendMessage("one");
  const [taken] = await receive(queue);
  await work(queue, taken);
});

// Each verb on messages, with the permission letter it needs.
const VERBS = {
  properties: ["r", async (queue) => assert.equal((await queue.getProperties()).approximateMessagesCount, 2)],
  peek: ["r", async (queue) => assert.deepEqual(texts(await peek(queue)), ["one"])],
  send: ["a", async (queue) => assert.ok((await queue.sendMessage("new")).messageId)],
  update: ["u", async (queue, { messageId, popReceipt }) => assert.ok(await queue.updateMessage(messageId, popReceipt, "x", 0))],
  receive: ["p", async (queue) => assert.deepEqual(texts(await receive(queue)), ["one"])],
  delete: ["p", async (queue, { messageId, popReceipt }) => assert.ok(await queue.deleteMessage(messageId, popReceipt))],
};

describe("queue SAS", () => {
  for (const granted of ["r", "a", "u", "p", "raup"]) {
    for (const [verb, [needed, call]] of Object.entries(VERBS)) {
      const allowed = granted.includes(needed);
      test(`sp=${granted} ${allowed ? "allows" : "refuses"} ${verb}`, withMessages(async (queue, taken) => {
        const client = withQueueSas(queue, granted);
        await (allowed ? call(client, taken) : assertRefused(call(client, taken), ...PERMISSION));
      }));
    }
  }

  test("is for messages only", withQueue(async (queue) => {
    const client = withQueueSas(queue, "raup");
    for (const call of [
      () => client.create(), () => client.delete(), () => client.clearMessages(), () => client.getAccessPolicy(),
      () => client.setAccessPolicy([]), () => client.setMetadata({ a: "b" }),
    ]) {
      await assertRefused(call(), ...SCOPE);
    }
  }));

  test("of another queue is refused", withQueue(async (queue) => {
    await assertRefused(peek(withQueueSas(queue, "r", { queueName: "another" })), ...SIGNATURE);
  }));

  test("changed after signing is refused", withQueue(async (queue) => {
    const url = withQueueSas(queue, "r").url.replace("sp=r", "sp=raup");
    await assertRefused(new QueueClient(url, undefined, clientOptions).sendMessage("text"), ...SIGNATURE);
  }));

  test("from the client's own generator", withQueue(async (queue) => {
    const url = queue.generateSasUrl({ permissions: QueueSASPermissions.parse("ap"), expiresOn: fromNow(HOUR) });
    const client = new QueueClient(await url, undefined, clientOptions);
    await client.sendMessage("text");
    assert.deepEqual(texts(await receive(client)), ["text"]);
    await assertRefused(peek(client), ...PERMISSION);
  }));
});

// Each operation: it needs the resource type and any one of the letters of an account SAS.
const ACCOUNT_VERBS = {
  "list queues": ["s", "l", (service) => all(service.listQueues())],
  "get properties": ["s", "r", (service) => service.getProperties()],
  create: ["c", "cw", (service) => service.createQueue(freshQueueName())],
  "get metadata": ["c", "r", (service, queue) => queue.getProperties()],
  "set metadata": ["c", "w", (service, queue) => queue.setMetadata({ a: "b" })],
  "delete queue": ["c", "d", (service, queue) => queue.delete()],
  send: ["o", "a", (service, queue) => queue.sendMessage("new")],
  peek: ["o", "r", (service, queue) => queue.peekMessages()],
  receive: ["o", "p", (service, queue) => queue.receiveMessages()],
  update: ["o", "u", (service, queue, { messageId, popReceipt }) => queue.updateMessage(messageId, popReceipt, "x", 0)],
  "delete message": ["o", "p", (service, queue, { messageId, popReceipt }) => queue.deleteMessage(messageId, popReceipt)],
  clear: ["o", "d", (service, queue) => queue.clearMessages()],
};

describe("account SAS of queues", () => {
  for (const [verb, [neededType, needed, call]] of Object.entries(ACCOUNT_VERBS)) {
    test(`${verb} needs ${neededType} and one of ${needed}`, async () => {
      const ask = (service, queue, taken) => call(service, service.getQueueClient(queue.name), taken);
      for (const letter of "rwdlacup") {
        await withMessages(async (queue, taken) => {
          const answer = ask(withAccountSas(letter), queue, taken);
          await (needed.includes(letter) ? answer : assertRefused(answer, ...PERMISSION));
        })();
      }
      for (const types of "sco") {
        await withMessages(async (queue, taken) => {
          const answer = ask(withAccountSas("rwdlacup", { types }), queue, taken);
          await (types === neededType ? answer : assertRefused(answer, ...RESOURCE_TYPE));
        })();
      }
    });
  }

  test("must name queues", withQueue(async (queue) => {
    const peekAs = (services) => peek(withAccountSas("r", { services }).getQueueClient(queue.name));
    for (const services of ["q", "bqtf"]) assert.deepEqual(await peekAs(services), []);
    for (const services of ["b", "tf"]) await assertRefused(peekAs(services), 403, "AuthorizationServiceMismatch");
  }));

  test("is not for access policies", withQueue(async (queue) => {
    const client = withAccountSas("rwdlacup").getQueueClient(queue.name);
    await assertRefused(client.getAccessPolicy(), ...SCOPE);
    await assertRefused(client.setAccessPolicy([]), ...SCOPE);
  }));
});

for (const [kind, reader] of Object.entries({
  "queue SAS": (queue, options) => withQueueSas(queue, "r", options),
  "account SAS": (queue, options) => withAccountSas("r", options).getQueueClient(queue.name),
})) {
  describe(`fields of a ${kind}`, () => {
    test("st and se bound the time", withQueue(async (queue) => {
      assert.deepEqual(await peek(reader(queue, { startsOn: fromNow(-HOUR) })), []);
      await assertRefused(peek(reader(queue, { startsOn: fromNow(HOUR), expiresOn: fromNow(2 * HOUR) })), ...SIGNATURE);
      await assertRefused(peek(reader(queue, { expiresOn: fromNow(-HOUR) })), ...SIGNATURE);
    }));

    test("sip names addresses and spr protocols", withQueue(async (queue) => {
      for (const ipRange of [{ start: "127.0.0.1" }, { start: "127.0.0.0", end: "127.0.0.255" }]) {
        assert.deepEqual(await peek(reader(queue, { ipRange })), []);
      }
      await assertRefused(peek(reader(queue, { ipRange: { start: "10.0.0.1" } })), 403, "AuthorizationSourceIPMismatch");
      assert.deepEqual(await peek(reader(queue, { protocol: "https,http" })), []);
      await assertRefused(peek(reader(queue, { protocol: "https" })), 403, "AuthorizationProtocolMismatch");
    }));

    test("another key is refused", withQueue(async (queue) => {
      const key = new StorageSharedKeyCredential(settings.AccountName, "d3Jvbmc=");
      await assertRefused(peek(reader(queue, { key })), ...SIGNATURE);
    }));
  });
}

describe("stored policies", () => {
  const set = (queue, accessPolicy) => queue.setAccessPolicy([{ id: "worker", accessPolicy }]);
  const holder = (queue, letters, expiresOn) => withQueueSas(queue, letters, { identifier: "worker", expiresOn });

  test("give times and letters, and take them away", withQueue(async (queue) => {
    await set(queue, { startsOn: fromNow(-HOUR), expiresOn: fromNow(HOUR), permissions: "r" });
    const client = holder(queue);
    assert.deepEqual(await peek(client), []);
    await assertRefused(client.sendMessage("text"), ...PERMISSION);
    await set(queue, { expiresOn: fromNow(HOUR), permissions: "a" });
    await assertRefused(peek(client), ...PERMISSION);
    await client.sendMessage("text");
    await set(queue, { expiresOn: fromNow(-HOUR), permissions: "a" });
    await assertRefused(client.sendMessage("text"), ...SIGNATURE);
    await queue.setAccessPolicy([]);
    await assertRefused(client.sendMessage("text"), ...SIGNATURE);
  }));

  test("and the token complete each other", withQueue(async (queue) => {
    await set(queue, { permissions: "r" });
    assert.deepEqual(await peek(holder(queue, undefined, fromNow(HOUR))), []);
    await assertRefused(peek(holder(queue)), ...SIGNATURE);
    await set(queue, { expiresOn: fromNow(HOUR) });
    assert.deepEqual(await peek(holder(queue, "r")), []);
    await assertRefused(peek(holder(queue)), ...SIGNATURE);
  }));
});

describe("credentials of queues", () => {
  test("none at all, or a wrong key, are refused", withQueue(async (queue) => {
    await assertRefused(new QueueClient(queue.url, undefined, clientOptions).peekMessages(), 401, "NoAuthenticationInformation");
    const key = new StorageSharedKeyCredential(settings.AccountName, "d3Jvbmc=");
    await assertRefused(new QueueClient(queue.url, key, clientOptions).peekMessages(), ...SIGNATURE);
    assert.equal(await queues.getQueueClient(queue.name).exists(), true);
  }));
});
