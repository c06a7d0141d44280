// Service properties: the XML that the older client writes, read back.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { service } from "./support.mjs";

describe("properties", () => {
  test("logging, metrics and CORS rules come back as they were set", async () => {
    const before = (await service.getServiceProperties()).result;
    const rule = {
      AllowedMethods: ["GET", "PUT"],
      AllowedOrigins: ["http://www.example.com"],
      AllowedHeaders: ["x-ms-meta-data*", "x-ms-meta-abc"],
      ExposedHeaders: ["*"],
      MaxAgeInSeconds: 500,
    };
    const retention = { Enabled: true, Days: 7 };
    const set = {
      Logging: { Version: "1.0", Delete: true, Read: false, Write: true, RetentionPolicy: retention },
      HourMetrics: { Version: "1.0", Enabled: true, IncludeAPIs: true, RetentionPolicy: retention },
      MinuteMetrics: { Version: "1.0", Enabled: false, RetentionPolicy: { Enabled: false } },
      Cors: { CorsRule: [rule] },
    };
    try {
      await service.setServiceProperties(set);
      const { result } = await service.getServiceProperties();
      assert.deepEqual(result.Logging, set.Logging);
      assert.deepEqual(result.HourMetrics, set.HourMetrics);
      assert.equal(result.MinuteMetrics.Enabled, false);
      assert.deepEqual(result.Cors.CorsRule, [rule]);
    } finally {
      await service.setServiceProperties(before);
    }
  });
});
