// Pages of another origin can read and write with a shared access signature only when a CORS rule allows it.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import { fetchFrom, openBrowser, openOrigin, skip } from "./browser.mjs";
import { entityUrl, owner, setRules } from "./service.mjs";

const table = "t" + randomUUID().replaceAll("-", "");
const JSON_HEADERS = { accept: "application/json;odata=nometadata", "content-type": "application/json" };
let browser, friend, stranger;

before(async () => {
  if (skip) return;
  [browser, friend, stranger] = await Promise.all([openBrowser(), openOrigin(), openOrigin()]);
  assert.equal((await owner("POST", "/Tables", JSON.stringify({ TableName: table }))).status, 201);
  assert.equal((await owner("PUT", `/${table}(PartitionKey='p',RowKey='r')`, '{"x":"seen"}')).status, 204);
});

after(async () => {
  if (skip) return;
  await setRules();
  await owner("DELETE", `/Tables('${table}')`);
  await Promise.all([browser.close(), friend.close(), stranger.close()]);
});

/** Fetches that entity from a page of `who`'s origin. */
function ask(who, method, rowKey, { body, headers = JSON_HEADERS, permissions } = {}) {
  const url = entityUrl(table, "p", rowKey, permissions);
  return fetchFrom(browser.context, who.origin, url, { method, headers, body, cache: "no-store" });
}

/** The entity as the owner reads it, or undefined. */
async function stored(rowKey) {
  const { status, text } = await owner("GET", `/${table}(PartitionKey='p',RowKey='${rowKey}')`);
  return status === 200 ? JSON.parse(text) : undefined;
}

function refusedByBrowser(outcome) {
  assert.match(outcome.error ?? `status ${outcome.status}`, /Failed to fetch/);
}

test("without rules a page of another origin sees nothing", { skip }, async () => {
  await setRules();
  refusedByBrowser(await ask(friend, "GET", "r"));
  // A plain read needs no preflight, so the server runs it. The browser then hides the answer from the page.
  refusedByBrowser(await ask(friend, "GET", "r", { headers: {} }));
  refusedByBrowser(await ask(friend, "PUT", "written", { body: "{}" }));
  assert.equal(await stored("written"), undefined);
});

test("a rule lets its origin read, and exposes the headers it names", { skip }, async () => {
  await setRules({ origins: friend.origin, methods: "GET", exposed: "etag,x-ms-request-id" });
  const { status, body, headers } = await ask(friend, "GET", "r");
  assert.equal(status, 200);
  assert.equal(JSON.parse(body).x, "seen");
  assert.match(headers.etag, /^W\/"datetime'/);
  assert.match(headers["x-ms-request-id"], /^[0-9a-f-]{36}$/);
  assert.equal(headers["x-ms-version"], undefined, "not exposed, so not shown");
});

test("a rule lets its origin insert, replace, merge and delete", { skip }, async () => {
  await setRules({ origins: friend.origin, methods: "GET,PUT,MERGE,PATCH,POST,DELETE" });
  assert.equal((await ask(friend, "PUT", "w", { body: '{"x":1,"y":2}' })).status, 204);
  assert.deepEqual([(await stored("w")).x, (await stored("w")).y], [1, 2]);
  assert.equal((await ask(friend, "MERGE", "w", { body: '{"x":3}' })).status, 204);
  assert.equal((await ask(friend, "PATCH", "w", { body: '{"z":4}' })).status, 204);
  const { x, y, z } = await stored("w");
  assert.deepEqual([x, y, z], [3, 2, 4]);
  const read = await ask(friend, "GET", "w");
  assert.equal(JSON.parse(read.body).y, 2);
  const headers = { ...JSON_HEADERS, "if-match": read.headers.etag };
  assert.equal((await ask(friend, "DELETE", "w", { headers })).status, 204);
  assert.equal(await stored("w"), undefined);
});

test("another origin is refused what the rule gives to one", { skip }, async () => {
  await setRules({ origins: friend.origin, methods: "GET,PUT,DELETE" });
  refusedByBrowser(await ask(stranger, "GET", "r"));
  refusedByBrowser(await ask(stranger, "GET", "r", { headers: {} }));
  refusedByBrowser(await ask(stranger, "PUT", "written", { body: "{}" }));
  assert.equal(await stored("written"), undefined, "the preflight kept the write away");
  refusedByBrowser(await ask(stranger, "DELETE", "r", { headers: { "if-match": "*" } }));
  assert.equal((await stored("r")).x, "seen");
});

test("a method that the rule does not name is refused", { skip }, async () => {
  await setRules({ origins: friend.origin, methods: "GET" });
  assert.equal((await ask(friend, "GET", "r")).status, 200);
  refusedByBrowser(await ask(friend, "PUT", "written", { body: "{}" }));
  refusedByBrowser(await ask(friend, "DELETE", "r", { headers: { "if-match": "*" } }));
  assert.equal(await stored("written"), undefined);
  assert.equal((await stored("r")).x, "seen");
});

test("a header that the rule does not name is refused", { skip }, async () => {
  await setRules({ origins: friend.origin, methods: "GET", headers: "content-type,x-ms-*" });
  const headers = { ...JSON_HEADERS, "x-ms-client-request-id": "from-a-page" };
  assert.equal((await ask(friend, "GET", "r", { headers })).status, 200);
  refusedByBrowser(await ask(friend, "GET", "r", { headers: { ...headers, "x-other": "1" } }));
});

test("a rule for everybody lets every page read", { skip }, async () => {
  await setRules({ origins: "*", methods: "GET", exposed: "*" });
  for (const who of [friend, stranger]) {
    const { status, body, headers } = await ask(who, "GET", "r");
    assert.equal(status, 200);
    assert.equal(JSON.parse(body).x, "seen");
    for (const name of ["etag", "x-ms-version", "x-ms-request-id", "date"]) {
      assert.ok(headers[name], `${name} is exposed`);
    }
  }
});

test("a rule opens no door that the token keeps shut, and the page reads why", { skip }, async () => {
  await setRules({ origins: friend.origin, methods: "GET,PUT" });
  const outcome = await ask(friend, "PUT", "written", { body: "{}", permissions: "r" });
  assert.equal(outcome.status, 403);
  assert.equal(JSON.parse(outcome.body)["odata.error"].code, "AuthorizationPermissionMismatch");
  assert.equal(await stored("written"), undefined);
  const url = entityUrl(table, "p", "r").replace(/sig=[^&]*/, "sig=AAAA");
  const forged = await fetchFrom(browser.context, friend.origin, url, { headers: JSON_HEADERS });
  assert.equal(forged.status, 403);
  assert.equal(JSON.parse(forged.body)["odata.error"].code, "AuthenticationFailed");
});

test("a rule that is taken away is gone at once", { skip }, async () => {
  await setRules({ origins: friend.origin, methods: "GET,PUT" });
  assert.equal((await ask(friend, "PUT", "kept", { body: '{"x":1}' })).status, 204);
  await setRules();
  refusedByBrowser(await ask(friend, "PUT", "kept", { body: '{"x":2}' }));
  refusedByBrowser(await ask(friend, "GET", "kept"));
  assert.equal((await stored("kept")).x, 1);
});
