// Leases of blobs, and conditions on reads and writes.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";

import { assertRefused, put, sleep, text, withContainer } from "./blob_support.mjs";

const withBlob = (work) => withContainer(async (container) => {
  await work(await put(container, "b", "content", { tags: { status: "done" } }), container);
});
const state = async (blob) => {
  const { leaseState, leaseStatus, leaseDuration } = await blob.getProperties();
  return [leaseState, leaseStatus, leaseDuration];
};

describe("leases", () => {
  test("are acquired, renewed, changed and released", withBlob(async (blob) => {
    const lease = blob.getBlobLeaseClient();
    assert.equal((await lease.acquireLease(15))._response.status, 201);
    assert.deepEqual(await state(blob), ["leased", "locked", "fixed"]);
    await lease.renewLease();
    const next = randomUUID();
    await lease.changeLease(next);
    await assertRefused(blob.getBlobLeaseClient().acquireLease(15), 409, "LeaseAlreadyPresent");
    await lease.releaseLease();
    assert.deepEqual(await state(blob), ["available", "unlocked", undefined]);
    await assertRefused(lease.renewLease(), 409, "LeaseIdMismatchWithLeaseOperation");
  }));

  for (const seconds of [0, 14, 61]) {
    test(`do not last ${seconds} seconds`, withBlob(async (blob) => {
      await assertRefused(blob.getBlobLeaseClient().acquireLease(seconds), 400, "InvalidHeaderValue");
    }));
  }

  test("are broken", withBlob(async (blob) => {
    const lease = blob.getBlobLeaseClient();
    await lease.acquireLease(60);
    assert.equal((await lease.breakLease(1)).leaseTime, 1);
    assert.deepEqual(await state(blob), ["breaking", "locked", undefined]);
    await sleep(1100);
    assert.deepEqual(await state(blob), ["broken", "unlocked", undefined]);
    await assertRefused(lease.renewLease(), 409, "LeaseIsBrokenAndCannotBeRenewed");
    const conditions = { leaseId: lease.leaseId };
    await assertRefused(blob.setMetadata({ a: "b" }, { conditions }), 412, "LeaseLost");
  }));

  test("guard every write", withBlob(async (blob, container) => {
    const lease = blob.getBlobLeaseClient();
    await lease.acquireLease(60);
    const writes = [
      (options) => blob.upload("new", 3, options),
      (options) => blob.setMetadata({ a: "b" }, options),
      (options) => blob.setHTTPHeaders({ blobContentType: "text/css" }, options),
      (options) => blob.stageBlock("MQ==", "x", 1, options),
      (options) => blob.commitBlockList([], options),
      (options) => blob.setTags({ a: "b" }, options),
      (options) => blob.delete(options),
    ];
    for (const write of writes) {
      await assertRefused(write({}), 412, "LeaseIdMissing");
      await assertRefused(
        write({ conditions: { leaseId: randomUUID() } }), 412, "LeaseIdMismatchWithBlobOperation",
      );
      await write({ conditions: { leaseId: lease.leaseId } });
    }
    assert.equal(await blob.exists(), false);
    await put(container, "b");
    await assertRefused(
      blob.setMetadata({}, { conditions: { leaseId: lease.leaseId } }), 412, "LeaseNotPresentWithBlobOperation",
    );
  }));
});

describe("conditions", () => {
  const DAY = 86_400_000;

  test("of reads", withBlob(async (blob) => {
    const { etag, lastModified } = await blob.getProperties();
    const met = [
      { ifMatch: etag }, { ifNoneMatch: '"0x1"' }, { ifModifiedSince: new Date(lastModified - DAY) },
      { ifUnmodifiedSince: lastModified }, { tagConditions: "status = 'done'" },
    ];
    for (const conditions of met) assert.equal(await text(blob, 0, undefined, { conditions }), "content");
    const unmet = [
      [{ ifMatch: '"0x1"' }, 412], [{ ifUnmodifiedSince: new Date(lastModified - DAY) }, 412],
      [{ tagConditions: "status = 'open'" }, 412],
    ];
    for (const [conditions, status] of unmet) {
      await assertRefused(blob.download(0, undefined, { conditions }), status, "ConditionNotMet");
    }
    for (const conditions of [{ ifNoneMatch: etag }, { ifModifiedSince: lastModified }]) {
      await assertRefused(blob.getProperties({ conditions }), 304, "ConditionNotMet");
    }
  }));

  test("of writes", withBlob(async (blob) => {
    const { etag, lastModified } = await blob.getProperties();
    for (const conditions of [
      { ifMatch: '"0x1"' }, { ifNoneMatch: etag }, { ifModifiedSince: lastModified },
      { ifUnmodifiedSince: new Date(lastModified - DAY) }, { tagConditions: "status = 'open'" },
    ]) {
      await assertRefused(blob.upload("new", 3, { conditions }), 412, "ConditionNotMet");
      await assertRefused(blob.setMetadata({ a: "b" }, { conditions }), 412, "ConditionNotMet");
      await assertRefused(blob.delete({ conditions }), 412, "ConditionNotMet");
    }
    await blob.upload("new", 3, { conditions: { ifMatch: etag } });
    await assertRefused(blob.upload("newer", 5, { conditions: { ifMatch: etag } }), 412, "ConditionNotMet");
    assert.equal(await text(blob), "new");
  }));

  test("for blobs that are there or not", withBlob(async (blob, container) => {
    await assertRefused(blob.upload("x", 1, { conditions: { ifNoneMatch: "*" } }), 409, "BlobAlreadyExists");
    await blob.upload("x", 1, { conditions: { ifMatch: "*" } });
    const other = container.getBlockBlobClient("other");
    await assertRefused(other.upload("x", 1, { conditions: { ifMatch: "*" } }), 412, "ConditionNotMet");
    await other.upload("x", 1, { conditions: { ifNoneMatch: "*" } });
    const missing = container.getBlobClient("nope");
    await assertRefused(missing.download(0, undefined, { conditions: { ifMatch: "*" } }), 404, "BlobNotFound");
    await assertRefused(
      blob.download(0, undefined, { conditions: { ifNoneMatch: "*" } }), 400, "UnsatisfiableCondition",
    );
  }));
});
