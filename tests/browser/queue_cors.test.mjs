// Pages of another origin can put and take messages with a shared access signature only when a CORS rule of the Queue
// service allows it. The rules of the Table service do not count.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import { fetchFrom, openBrowser, openOrigin, skip } from "./browser.mjs";
import { queueOwner, queueUrl, setQueueRules, setRules } from "./service.mjs";

const queue = "q" + randomUUID();
const ALL = "GET,PUT,POST,DELETE";
let browser, friend, stranger;

before(async () => {
  if (skip) return;
  [browser, friend, stranger] = await Promise.all([openBrowser(), openOrigin(), openOrigin()]);
  assert.equal((await queueOwner("PUT", `/${queue}`)).status, 201);
});

after(async () => {
  if (skip) return;
  await setQueueRules();
  await queueOwner("DELETE", `/${queue}`);
  await Promise.all([browser.close(), friend.close(), stranger.close()]);
});

/** Fetches from a page of `who`'s origin. `rest` follows the queue's name. */
function ask(who, method, rest, { text, headers = {}, permissions } = {}) {
  const body = text === undefined ? undefined : message(text);
  if (body !== undefined) headers = { "content-type": "application/xml", ...headers };
  const url = queueUrl(queue, rest, permissions);
  return fetchFrom(browser.context, who.origin, url, { method, headers, body, cache: "no-store" });
}

function message(text) {
  return `<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`;
}

function field(body, name) {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(body)?.[1];
}

/** The texts of the messages that wait, as the owner sees them. */
async function waiting() {
  const { text } = await queueOwner("GET", `/${queue}/messages?peekonly=true&numofmessages=32`);
  return [...text.matchAll(/<MessageText>([^<]*)<\/MessageText>/g)].map((found) => found[1]);
}

async function start(...rules) {
  await queueOwner("DELETE", `/${queue}/messages`);
  await setQueueRules(...rules);
}

function refusedByBrowser(outcome) {
  assert.match(outcome.error ?? `status ${outcome.status}`, /Failed to fetch/);
}

test("without rules a page of another origin puts nothing and sees nothing", { skip }, async () => {
  await start();
  await setRules({ origins: "*", methods: ALL });
  refusedByBrowser(await ask(friend, "POST", "/messages", { text: "a" }));
  assert.deepEqual(await waiting(), []);
  await queueOwner("POST", `/${queue}/messages`, message("b"));
  refusedByBrowser(await ask(friend, "GET", "/messages?peekonly=true"));
  await setRules();
});

test("a rule lets its origin put, peek, take, update and delete", { skip }, async () => {
  await start({ origins: friend.origin, methods: ALL, exposed: "x-ms-*" });
  assert.equal((await ask(friend, "POST", "/messages", { text: "first" })).status, 201);
  assert.equal(field((await ask(friend, "GET", "/messages?peekonly=true")).body, "MessageText"), "first");
  const taken = await ask(friend, "GET", "/messages?visibilitytimeout=30");
  assert.equal(taken.status, 200);
  const id = field(taken.body, "MessageId");
  const receipt = encodeURIComponent(field(taken.body, "PopReceipt"));
  const place = `/messages/${id}?popreceipt=${receipt}&visibilitytimeout=0`;
  const updated = await ask(friend, "PUT", place, { text: "second" });
  assert.equal(updated.status, 204);
  assert.deepEqual(await waiting(), ["second"]);
  const next = encodeURIComponent(updated.headers["x-ms-popreceipt"]);
  assert.equal((await ask(friend, "DELETE", `/messages/${id}?popreceipt=${next}`)).status, 204);
  assert.deepEqual(await waiting(), []);
});

test("another origin and another method are refused", { skip }, async () => {
  await start({ origins: friend.origin, methods: "GET" });
  refusedByBrowser(await ask(stranger, "GET", "/messages?peekonly=true"));
  refusedByBrowser(await ask(friend, "POST", "/messages", { text: "a" }));
  assert.deepEqual(await waiting(), [], "the preflight kept the message away");
  assert.equal((await ask(friend, "GET", "/messages?peekonly=true")).status, 200);
});

test("a header that the rule does not name is refused", { skip }, async () => {
  await start({ origins: friend.origin, methods: "GET", headers: "x-ms-*" });
  const headers = { "x-ms-client-request-id": "from-a-page" };
  assert.equal((await ask(friend, "GET", "/messages?peekonly=true", { headers })).status, 200);
  refusedByBrowser(await ask(friend, "GET", "/messages?peekonly=true", { headers: { ...headers, "x-other": "1" } }));
});

test("a rule opens no door that the token keeps shut, and the page reads why", { skip }, async () => {
  await start({ origins: friend.origin, methods: ALL });
  const outcome = await ask(friend, "POST", "/messages", { text: "a", permissions: "r" });
  assert.equal(outcome.status, 403);
  assert.equal(field(outcome.body, "Code"), "AuthorizationPermissionMismatch");
  assert.deepEqual(await waiting(), []);
});
