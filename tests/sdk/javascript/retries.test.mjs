// Retries: the client's own policy copes with a busy server, and a retry sees what it would see with the live service.

import assert from "node:assert/strict";
import http from "node:http";
import { describe, test } from "node:test";

import { TableClient } from "@azure/data-tables";

import { accountKey, all, assertRefused, plain, settings, withTable } from "./support.mjs";

const BUSY = JSON.stringify({ "odata.error": { code: "ServerBusy", message: { lang: "en-US", value: "The server is busy." } } });
const entity = (properties) => ({ partitionKey: "p", rowKey: "r", ...properties });

/**
 * Runs `work` with the table behind a proxy that answers 503 to the first `times` requests. With `lost`, the proxy
 * passes those on first: the server does the work, but the client does not learn of it.
 */
function withBusyServer({ times, lost = false }, work) {
  return withTable(async (table) => {
    const target = new URL(settings.TableEndpoint);
    const counter = { requests: 0 };
    const proxy = http.createServer((request, response) => {
      counter.requests += 1;
      const busy = counter.requests <= times;
      const answerBusy = () => response.writeHead(503, { "content-type": "application/json" }).end(BUSY);
      if (busy && !lost) {
        request.resume().on("end", answerBusy);
        return;
      }
      const { method, url: path, headers } = request;
      const upstream = http.request({ host: target.hostname, port: target.port, method, path, headers }, (answer) => {
        if (busy) {
          answer.resume().on("end", answerBusy);
        } else {
          answer.pipe(response.writeHead(answer.statusCode, answer.headers));
        }
      });
      request.pipe(upstream);
    });
    await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${proxy.address().port}${target.pathname}`;
    const retryOptions = { maxRetries: 2, retryDelayInMs: 1, maxRetryDelayInMs: 5 };
    const client = new TableClient(url, table.tableName, accountKey, { allowInsecureConnection: true, retryOptions });
    try {
      await work(client, table, counter);
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });
}

describe("retries", () => {
  test("an insert is retried when the server is busy", withBusyServer({ times: 1 }, async (client, table, counter) => {
    const { etag } = await client.createEntity(entity({ n: 1 }));
    assert.equal(counter.requests, 2);
    const found = await table.getEntity("p", "r");
    assert.deepEqual([plain(found), found.etag], [entity({ n: 1 }), etag]);
  }));

  test("a transaction is retried when the server is busy", withBusyServer({ times: 2 }, async (client, table, counter) => {
    await client.submitTransaction([["create", entity({ rowKey: "a" })], ["create", entity({ rowKey: "b" })]]);
    assert.equal(counter.requests, 3);
    assert.deepEqual((await all(table.listEntities())).map((found) => found.rowKey), ["a", "b"]);
  }));

  test("a listing is retried when the server is busy", withBusyServer({ times: 1 }, async (client, table, counter) => {
    await table.createEntity(entity({ n: 1 }));
    assert.deepEqual((await all(client.listEntities())).map(plain), [entity({ n: 1 })]);
    assert.equal(counter.requests, 2);
  }));

  test("a server that stays busy is reported", withBusyServer({ times: 100 }, async (client, table, counter) => {
    await assertRefused(client.getEntity("p", "r"), 503, "ServerBusy");
    assert.equal(counter.requests, 3);
  }));

  test("a retried insert whose first answer was lost is a conflict", withBusyServer({ times: 1, lost: true }, async (client, table, counter) => {
    await assertRefused(client.createEntity(entity({ n: 1 })), 409, "EntityAlreadyExists");
    assert.equal(counter.requests, 2);
    assert.deepEqual(plain(await table.getEntity("p", "r")), entity({ n: 1 }));
  }));

  test("a retried upsert whose first answer was lost succeeds", withBusyServer({ times: 1, lost: true }, async (client, table) => {
    const { etag } = await client.upsertEntity(entity({ n: 1 }), "Merge");
    assert.equal((await table.getEntity("p", "r")).etag, etag);
  }));

  test("a refusal is not retried", withBusyServer({ times: 0 }, async (client, table, counter) => {
    await assertRefused(client.getEntity("p", "missing"), 404, "ResourceNotFound");
    assert.equal(counter.requests, 1);
  }));
});
