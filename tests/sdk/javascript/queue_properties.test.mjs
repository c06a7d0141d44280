// Properties and statistics of the Queue service: each part independent of the others and of the Table service.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { QueueServiceClient } from "@azure/storage-queue";

import { service as tables } from "./support.mjs";
import {
  accountKey, assertRefused, clientOptions, peek, queueSecondaryEndpoint, queues, texts, withQueue,
} from "./queue_support.mjs";

const off = { enabled: false };
const fiveDays = { enabled: true, days: 5 };
const noLogging = { version: "1.0", deleteProperty: false, read: false, write: false, retentionPolicy: off };
const noMetrics = { version: "1.0", enabled: false, retentionPolicy: off };
const rule = (allowedOrigins) => ({
  allowedOrigins, allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 0,
});

const read = async () => {
  const { queueAnalyticsLogging, hourMetrics, minuteMetrics, cors } = await queues.getProperties();
  // Through JSON, which drops members that are undefined.
  return JSON.parse(JSON.stringify({ queueAnalyticsLogging, hourMetrics, minuteMetrics, cors }));
};

describe("queue properties", () => {
  beforeEach(() =>
    queues.setProperties({
      queueAnalyticsLogging: noLogging, hourMetrics: noMetrics, minuteMetrics: noMetrics, cors: [],
    }));

  test("everything can be off", async () => {
    assert.deepEqual(await read(), {
      queueAnalyticsLogging: noLogging, hourMetrics: noMetrics, minuteMetrics: noMetrics, cors: [],
    });
  });

  test("logging and metrics come back as set", async () => {
    const queueAnalyticsLogging = { version: "1.0", deleteProperty: true, read: true, write: true, retentionPolicy: fiveDays };
    const metrics = (includeAPIs) => ({ version: "1.0", enabled: true, includeAPIs, retentionPolicy: fiveDays });
    const properties = { queueAnalyticsLogging, hourMetrics: metrics(true), minuteMetrics: metrics(false), cors: [] };
    const answer = await queues.setProperties(properties);
    assert.equal(answer._response.status, 202);
    assert.deepEqual(await read(), properties);
  });

  test("CORS rules come back as set, in order", async () => {
    const cors = [
      rule("www.xyz.com"),
      {
        allowedOrigins: "http://www.fabrikam.com,http://*.contoso.com",
        allowedMethods: "GET,PUT,POST,DELETE",
        allowedHeaders: "x-ms-meta-target*,x-ms-meta-customheader",
        exposedHeaders: "x-ms-meta-data*,x-ms-meta-customheader",
        maxAgeInSeconds: 500,
      },
    ];
    await queues.setProperties({ cors });
    assert.deepEqual((await read()).cors, cors);
  });

  test("a part that is left out stays", async () => {
    await queues.setProperties({ queueAnalyticsLogging: { ...noLogging, read: true } });
    await queues.setProperties({ cors: [rule("*")] });
    const found = await read();
    assert.deepEqual(found.queueAnalyticsLogging, { ...noLogging, read: true });
    assert.deepEqual(found.cors, [rule("*")]);
  });

  test("five rules are accepted and six refused", async () => {
    const six = [..."abcdef"].map((letter) => rule(`http://${letter}.example`));
    await queues.setProperties({ cors: six.slice(0, 5) });
    await assertRefused(queues.setProperties({ cors: six }), 400, "InvalidXmlDocument");
    assert.deepEqual((await read()).cors, six.slice(0, 5));
  });

  test("retention is one to 365 days", async () => {
    const minuteMetrics = (days) => ({ ...noMetrics, enabled: true, includeAPIs: true, retentionPolicy: { enabled: true, days } });
    await queues.setProperties({ minuteMetrics: minuteMetrics(365) });
    for (const days of [0, 366]) {
      await assertRefused(queues.setProperties({ minuteMetrics: minuteMetrics(days) }), 400, "InvalidXmlDocument");
    }
    assert.equal((await read()).minuteMetrics.retentionPolicy.days, 365);
  });

  test("tables and queues have their own", async () => {
    await queues.setProperties({ cors: [rule("http://only-queues.example")] });
    const { cors } = await tables.getProperties();
    assert.ok(!cors.some(({ allowedOrigins }) => allowedOrigins === "http://only-queues.example"));
  });
});

describe("the secondary of queues", () => {
  const secondary = new QueueServiceClient(queueSecondaryEndpoint, accountKey, clientOptions);

  test("gives statistics, the primary does not", async () => {
    const before = Math.floor(Date.now() / 1000) * 1000;
    const { geoReplication } = await secondary.getStatistics();
    assert.equal(geoReplication.status, "live");
    const synced = geoReplication.lastSyncOn.getTime();
    assert.ok(before <= synced && synced <= Date.now());
    await assertRefused(queues.getStatistics(), 400, "InvalidQueryParameterValue");
  });

  test("reads but does not write", withQueue(async (queue) => {
    await queue.sendMessage("text");
    const other = secondary.getQueueClient(queue.name);
    assert.deepEqual(texts(await peek(other)), ["text"]);
    for (const write of [() => other.sendMessage("more"), () => other.receiveMessages(), () => other.delete()]) {
      await assertRefused(write(), 403, "InsufficientAccountPermissions");
    }
    assert.equal((await other.getProperties()).approximateMessagesCount, 1);
  }));
});
