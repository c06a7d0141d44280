// Pages of another origin can upload, read and delete blobs with a shared access signature only when a CORS rule of the
// Blob service allows it. The rules of the other services do not count.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import { fetchFrom, openBrowser, openOrigin, skip } from "./browser.mjs";
import { blobOwner, blobUrl, setBlobRules, setQueueRules } from "./service.mjs";

const container = "c" + randomUUID();
const ALL = "GET,HEAD,PUT,DELETE";
let browser, friend, stranger;

before(async () => {
  if (skip) return;
  [browser, friend, stranger] = await Promise.all([openBrowser(), openOrigin(), openOrigin()]);
  assert.equal((await blobOwner("PUT", `/${container}?restype=container`)).status, 201);
});

after(async () => {
  if (skip) return;
  await setBlobRules();
  await blobOwner("DELETE", `/${container}?restype=container`);
  await Promise.all([browser.close(), friend.close(), stranger.close()]);
});

/** Fetches from a page of `who`'s origin. `rest` follows the container's name. */
function ask(who, method, rest, { body, headers = {}, permissions } = {}) {
  const url = blobUrl(container, rest, permissions);
  return fetchFrom(browser.context, who.origin, url, { method, headers, body, cache: "no-store" });
}

const put = (who, name, body, options) =>
  ask(who, "PUT", `/${name}`, { body, headers: { "x-ms-blob-type": "BlockBlob" }, ...options });

/** What the owner finds in a blob. */
const content = async (name) => {
  const { status, text } = await blobOwner("GET", `/${container}/${name}`);
  return status === 200 ? text : status;
};

function refusedByBrowser(outcome) {
  assert.match(outcome.error ?? `status ${outcome.status}`, /Failed to fetch/);
}

test("without rules a page of another origin writes nothing and sees nothing", { skip }, async () => {
  await setBlobRules();
  await setQueueRules({ origins: "*", methods: "GET,PUT" });
  refusedByBrowser(await put(friend, "a", "text"));
  assert.equal(await content("a"), 404);
  await setQueueRules();
});

test("a rule lets its origin upload, read, list and delete", { skip }, async () => {
  await setBlobRules({ origins: friend.origin, methods: ALL, exposed: "x-ms-*,etag,content-range" });
  const uploaded = await put(friend, "b", "from a page");
  assert.equal(uploaded.status, 201);
  assert.match(uploaded.headers.etag, /^"0x/);
  assert.equal(await content("b"), "from a page");
  const part = await ask(friend, "GET", "/b", { headers: { "x-ms-range": "bytes=5-5" } });
  assert.deepEqual([part.status, part.body, part.headers["content-range"]], [206, "a", "bytes 5-5/11"]);
  const block = await ask(friend, "PUT", "/c?comp=block&blockid=MQ%3D%3D", { body: "block" });
  assert.equal(block.status, 201);
  const list = "<BlockList><Latest>MQ==</Latest></BlockList>";
  assert.equal((await ask(friend, "PUT", "/c?comp=blocklist", { body: list })).status, 201);
  assert.equal(await content("c"), "block");
  const names = (await ask(friend, "GET", "?restype=container&comp=list")).body;
  assert.deepEqual([...names.matchAll(/<Name>([^<]*)<\/Name>/g)].map((found) => found[1]), ["b", "c"]);
  assert.equal((await ask(friend, "DELETE", "/b")).status, 202);
  assert.equal(await content("b"), 404);
});

test("another origin and another method are refused", { skip }, async () => {
  await setBlobRules({ origins: friend.origin, methods: "GET" });
  refusedByBrowser(await ask(stranger, "GET", "/c"));
  refusedByBrowser(await put(friend, "d", "text"));
  assert.equal(await content("d"), 404, "the preflight kept the blob away");
  assert.equal((await ask(friend, "GET", "/c")).status, 200);
});

test("a rule opens no door that the token keeps shut, and the page reads why", { skip }, async () => {
  await setBlobRules({ origins: friend.origin, methods: ALL });
  const outcome = await put(friend, "d", "text", { permissions: "r" });
  assert.equal(outcome.status, 403);
  assert.match(outcome.body, /<Code>AuthorizationPermissionMismatch<\/Code>/);
});

test("everybody reads what is public, if a rule allows their origin", { skip }, async () => {
  await setBlobRules({ origins: "*", methods: "GET" });
  const [url] = blobUrl(container, "/c").split("?");
  const read = () => fetchFrom(browser.context, stranger.origin, url, { cache: "no-store" });
  assert.equal((await read()).status, 404);
  const made = await blobOwner("PUT", `/${container}-public?restype=container`, undefined, { "x-ms-blob-public-access": "blob" });
  assert.equal(made.status, 201);
  await blobOwner("PUT", `/${container}-public/c`, "open", { "x-ms-blob-type": "BlockBlob" });
  const open = url.replace(container, `${container}-public`);
  const outcome = await fetchFrom(browser.context, stranger.origin, open, { cache: "no-store" });
  assert.deepEqual([outcome.status, outcome.body], [200, "open"]);
  await blobOwner("DELETE", `/${container}-public?restype=container`);
});
