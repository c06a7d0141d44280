// Service properties and statistics: stored for the account, returned as set, each part independent of the others.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { TableClient, TableServiceClient } from "@azure/data-tables";

import { accountKey, assertRefused, clientOptions, secondaryEndpoint, service, withTable } from "./support.mjs";

const off = { enabled: false };
const fiveDays = { enabled: true, days: 5 };
const noLogging = { version: "1.0", delete: false, read: false, write: false, retentionPolicy: off };
const noMetrics = { version: "1.0", enabled: false, retentionPolicy: off };
const rule = (allowedOrigins) => ({
  allowedOrigins, allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 0,
});

const read = async () => {
  const { logging, hourMetrics, minuteMetrics, cors } = await service.getProperties();
  // Through JSON, which drops members that are undefined.
  return JSON.parse(JSON.stringify({ logging, hourMetrics, minuteMetrics, cors }));
};

describe("properties", () => {
  beforeEach(() => service.setProperties({ logging: noLogging, hourMetrics: noMetrics, minuteMetrics: noMetrics, cors: [] }));

  test("everything can be off", async () => {
    assert.deepEqual(await read(), { logging: noLogging, hourMetrics: noMetrics, minuteMetrics: noMetrics, cors: [] });
  });

  test("logging comes back as set", async () => {
    const logging = { version: "1.0", delete: true, read: true, write: true, retentionPolicy: fiveDays };
    await service.setProperties({ logging });
    assert.deepEqual((await read()).logging, logging);
  });

  for (const part of ["hourMetrics", "minuteMetrics"]) {
    for (const includeAPIs of [true, false]) {
      test(`${part} with includeAPIs ${includeAPIs} comes back as set`, async () => {
        const metrics = { version: "1.0", enabled: true, includeAPIs, retentionPolicy: fiveDays };
        await service.setProperties({ [part]: metrics });
        assert.deepEqual((await read())[part], metrics);
      });
    }
  }

  test("CORS rules come back as set, in order", async () => {
    const cors = [
      rule("www.xyz.com"),
      {
        allowedOrigins: "http://www.fabrikam.com,http://*.contoso.com",
        allowedMethods: "GET,PUT,MERGE,PATCH",
        allowedHeaders: "x-ms-meta-target*,x-ms-meta-customheader",
        exposedHeaders: "x-ms-meta-data*,x-ms-meta-customheader",
        maxAgeInSeconds: 500,
      },
    ];
    await service.setProperties({ cors });
    assert.deepEqual((await read()).cors, cors);
  });

  test("a part that is left out stays", async () => {
    const logging = { ...noLogging, read: true };
    const hourMetrics = { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: fiveDays };
    await service.setProperties({ logging });
    await service.setProperties({ hourMetrics });
    await service.setProperties({ cors: [rule("*")] });
    assert.deepEqual(await read(), { logging, hourMetrics, minuteMetrics: noMetrics, cors: [rule("*")] });
  });

  test("five rules are accepted and six refused", async () => {
    const six = [..."abcdef"].map((letter) => rule(`http://${letter}.example`));
    await service.setProperties({ cors: six.slice(0, 5) });
    await assertRefused(service.setProperties({ cors: six }), 400, "InvalidXmlDocument");
    assert.deepEqual((await read()).cors, six.slice(0, 5));
  });

  test("retention is one to 365 days", async () => {
    const metrics = (days) => ({ version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: { enabled: true, days } });
    for (const days of [1, 365]) {
      await service.setProperties({ minuteMetrics: metrics(days) });
      assert.equal((await read()).minuteMetrics.retentionPolicy.days, days);
    }
    for (const days of [0, 366]) {
      await assertRefused(service.setProperties({ minuteMetrics: metrics(days) }), 400, "InvalidXmlDocument");
    }
    assert.equal((await read()).minuteMetrics.retentionPolicy.days, 365);
  });

  test("setting answers 202", async () => {
    let status;
    await service.setProperties({ cors: [] }, { onResponse: (response) => (status = response.status) });
    assert.equal(status, 202);
  });
});

describe("the secondary", () => {
  const secondary = new TableServiceClient(secondaryEndpoint, accountKey, clientOptions);

  test("gives statistics, the primary does not", async () => {
    const before = Math.floor(Date.now() / 1000) * 1000;
    const { geoReplication } = await secondary.getStatistics();
    assert.equal(geoReplication.status, "live");
    const synced = geoReplication.lastSyncTime.getTime();
    assert.ok(before <= synced && synced <= Date.now());
    await assertRefused(service.getStatistics(), 400, "InvalidQueryParameterValue");
  });

  test("reads but does not write", withTable(async (table) => {
    await table.createEntity({ partitionKey: "p", rowKey: "r", n: 1 });
    const other = new TableClient(secondaryEndpoint, table.tableName, accountKey, clientOptions);
    assert.equal((await other.getEntity("p", "r")).n, 1);
    const write = other.createEntity({ partitionKey: "p", rowKey: "s" });
    await assertRefused(write, 403, "InsufficientAccountPermissions", "Write operations are not allowed.");
    await assertRefused(secondary.setProperties({ cors: [] }), 403, "InsufficientAccountPermissions");
  }));
});
