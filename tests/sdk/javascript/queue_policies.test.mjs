// Access policies of queues: stored with the queue, returned as set, at most five.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { assertRefused, withQueue } from "./queue_support.mjs";

const startsOn = new Date("2021-06-08T02:05:09Z");
const expiresOn = new Date("2021-06-08T03:10:09Z");
const INVALID = [400, "InvalidXmlDocument"];

/** The policies as plain values, in order. */
const policies = async (queue) =>
  [...(await queue.getAccessPolicy()).signedIdentifiers].map(({ id, accessPolicy = {} }) => ({
    id, startsOn: accessPolicy.startsOn, expiresOn: accessPolicy.expiresOn, permissions: accessPolicy.permissions,
  }));
const ids = async (queue) => (await policies(queue)).map(({ id }) => id);
const policy = (id, fields) => ({ id, startsOn: undefined, expiresOn: undefined, permissions: undefined, ...fields });
const some = (...names) => names.map((id) => ({ id, accessPolicy: { permissions: "r" } }));

describe("queue policies", () => {
  test("a new queue has none", withQueue(async (queue) => assert.deepEqual(await policies(queue), [])));

  test("they come back as they were set, in order", withQueue(async (queue) => {
    await queue.setAccessPolicy([
      { id: "full", accessPolicy: { startsOn, expiresOn, permissions: "raup" } },
      { id: "second", accessPolicy: { startsOn, expiresOn, permissions: "r" } },
    ]);
    assert.deepEqual(await policies(queue), [
      policy("full", { startsOn, expiresOn, permissions: "raup" }),
      policy("second", { startsOn, expiresOn, permissions: "r" }),
    ]);
  }));

  test("each field is optional", withQueue(async (queue) => {
    await queue.setAccessPolicy([
      { id: "start", accessPolicy: { startsOn } },
      { id: "expiry", accessPolicy: { expiresOn } },
      { id: "permission", accessPolicy: { permissions: "up" } },
    ]);
    assert.deepEqual(await policies(queue), [
      policy("start", { startsOn }), policy("expiry", { expiresOn }), policy("permission", { permissions: "up" }),
    ]);
  }));

  test("setting replaces all, and an empty list clears all", withQueue(async (queue) => {
    await queue.setAccessPolicy(some("a", "b"));
    await queue.setAccessPolicy(some("c"));
    assert.deepEqual(await ids(queue), ["c"]);
    await queue.setAccessPolicy([]);
    assert.deepEqual(await ids(queue), []);
    await queue.setAccessPolicy(some("d"));
    await queue.setAccessPolicy();
    assert.deepEqual(await ids(queue), []);
  }));

  test("five are accepted and six refused", withQueue(async (queue) => {
    await queue.setAccessPolicy(some(..."abcde"));
    await assertRefused(queue.setAccessPolicy(some(..."abcdef")), ...INVALID);
    assert.deepEqual(await ids(queue), [..."abcde"]);
  }));

  test("identifiers have 64 characters at most, of any kind, and permissions are of queues", withQueue(async (queue) => {
    const longest = "ü<&>\"' ".padEnd(64, "x");
    await queue.setAccessPolicy(some(longest));
    assert.deepEqual(await ids(queue), [longest]);
    await assertRefused(queue.setAccessPolicy(some(longest + "x")), ...INVALID);
    await assertRefused(queue.setAccessPolicy([{ id: "a", accessPolicy: { permissions: "rd" } }]), ...INVALID);
    assert.deepEqual(await ids(queue), [longest]);
  }));

  test("they go with their queue", withQueue(async (queue) => {
    await queue.setAccessPolicy(some("a"));
    await queue.delete();
    await queue.create();
    assert.deepEqual(await ids(queue), []);
  }));
});
