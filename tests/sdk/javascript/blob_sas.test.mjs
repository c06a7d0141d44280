// Shared access signatures for blobs from the SDK's own generators, stored policies, service properties.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";

import {
  AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, BlobSASPermissions, BlobServiceClient,
  ContainerClient, ContainerSASPermissions, StorageSharedKeyCredential, generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
} from "@azure/storage-blob";

import { all, settings } from "./support.mjs";
import {
  accountKey, assertRefused, blobEndpoint, blobs, blockId, clientOptions, freshContainerName, put, text, withContainer,
} from "./blob_support.mjs";

const HOUR = 3600_000;
const fromNow = (milliseconds) => new Date(Date.now() + milliseconds);
const PERMISSION = [403, "AuthorizationPermissionMismatch"];
const OVERWRITE = [403, "UnauthorizedBlobOverwrite"];
const RESOURCE_TYPE = [403, "AuthorizationResourceTypeMismatch"];
const SCOPE = [403, "AuthorizationFailure"];
const SIGNATURE = [403, "AuthenticationFailed"];

const at = (container, token) => new ContainerClient(`${container.url}?${token}`, undefined, clientOptions);

function withContainerSas(container, letters, { key = accountKey, ...options } = {}) {
  const values = { containerName: container.containerName, expiresOn: fromNow(HOUR), ...options };
  if (letters !== undefined) values.permissions = ContainerSASPermissions.parse(letters);
  return at(container, generateBlobSASQueryParameters(values, key).toString());
}

function blobToken(container, blobName, letters, options = {}) {
  const values = { containerName: container.containerName, blobName, expiresOn: fromNow(HOUR), ...options };
  if (letters !== undefined) values.permissions = BlobSASPermissions.parse(letters);
  return generateBlobSASQueryParameters(values, accountKey).toString();
}

function withAccountSas(letters, { types = "sco", services = "b", key = accountKey, ...options } = {}) {
  const values = {
    permissions: AccountSASPermissions.parse(letters),
    resourceTypes: AccountSASResourceTypes.parse(types).toString(),
    services: AccountSASServices.parse(services).toString(),
    expiresOn: fromNow(HOUR),
    ...options,
  };
  const token = generateAccountSASQueryParameters(values, key).toString();
  return new BlobServiceClient(`${blobEndpoint}?${token}`, undefined, clientOptions);
}

const filled = (work) => withContainer(async (container) => {
  await put(container, "old", "content", { tags: { t: "1" } });
  await container.getAppendBlobClient("log").create();
  await work(container);
});

// Each operation: any one of these letters allows it.
const VERBS = {
  read: ["r", async (box) => assert.equal(await text(box.getBlobClient("old")), "content")],
  properties: ["r", (box) => box.getBlobClient("old").getProperties()],
  "block list": ["r", (box) => box.getBlockBlobClient("old").getBlockList("all")],
  create: ["cw", (box) => put(box, "new")],
  overwrite: ["w", (box) => put(box, "old")],
  stage: ["cw", (box) => box.getBlockBlobClient("new").stageBlock(blockId("1"), "x", 1), "w"],
  append: ["aw", (box) => box.getAppendBlobClient("log").appendBlock("x", 1)],
  metadata: ["w", (box) => box.getBlobClient("old").setMetadata({ a: "b" })],
  tier: ["w", (box) => box.getBlobClient("old").setAccessTier("Cool")],
  snapshot: ["cw", (box) => box.getBlobClient("old").createSnapshot()],
  lease: ["w", (box) => box.getBlobClient("old").getBlobLeaseClient().acquireLease(15)],
  tags: ["t", (box) => box.getBlobClient("old").getTags()],
  delete: ["d", (box) => box.deleteBlob("old")],
  list: ["l", (box) => all(box.listBlobsFlat())],
  find: ["f", (box) => all(box.findBlobsByTags("t = '1'"))],
};

/** From this version on, the letter `c` is enough for blocks. */
const CREATE_COVERS_BLOCKS = "2026-06-06";
let version;

async function needed(verb) {
  version ??= (await blobs.getProperties())._response.request.headers.get("x-ms-version");
  const [letters, , older] = VERBS[verb];
  return older && version < CREATE_COVERS_BLOCKS ? older : letters;
}

async function refused(promise) {
  await assert.rejects(promise, ({ statusCode, code, details }) => {
    assert.ok([PERMISSION, OVERWRITE].some(([, known]) => known === (code ?? details?.errorCode)), code);
    return statusCode === 403;
  });
}

describe("signatures of containers", () => {
  for (const granted of ["r", "a", "c", "w", "d", "l", "t", "f"]) {
    for (const [verb, [, call]] of Object.entries(VERBS)) {
      test(`sp=${granted} and ${verb}`, filled(async (container) => {
        const box = withContainerSas(container, granted);
        if ((await needed(verb)).includes(granted)) await call(box);
        else await refused(call(box));
      }));
    }
  }

  test("do not create, delete or show containers", filled(async (container) => {
    const box = withContainerSas(container, "racwdl");
    await assertRefused(box.getProperties(), ...SCOPE);
    await assertRefused(box.delete(), ...SCOPE);
    await assertRefused(box.getAccessPolicy(), ...SCOPE);
  }));
});

describe("signatures of blobs", () => {
  test("are for one blob", filled(async (container) => {
    const box = at(container, blobToken(container, "old", "rw"));
    assert.equal(await text(box.getBlobClient("old")), "content");
    await assertRefused(box.getBlobClient("log").download(), ...SIGNATURE);
    await assertRefused(box.getBlobClient("old").delete(), ...PERMISSION);
  }));

  test("are for one snapshot", filled(async (container) => {
    const blob = container.getBlobClient("old");
    const { snapshot } = await blob.createSnapshot();
    await put(container, "old", "changed");
    const box = at(container, blobToken(container, "old", "r", { snapshotTime: snapshot }));
    assert.equal(await text(box.getBlobClient("old").withSnapshot(snapshot)), "content");
    await assert.rejects(box.getBlobClient("old").download(), { statusCode: 403 });
  }));

  test("say what answers say", filled(async (container) => {
    const token = blobToken(container, "old", "r", { contentDisposition: "attachment", contentType: "text/plain" });
    const answer = await fetch(`${container.getBlobClient("old").url}?${token}`);
    assert.deepEqual(
      [answer.status, answer.headers.get("content-disposition"), answer.headers.get("content-type")],
      [200, "attachment", "text/plain"],
    );
  }));

  test("read the source of a copy", filled(async (container) => {
    const box = withContainerSas(container, "rcw");
    const source = `${container.getBlobClient("old").url}?${blobToken(container, "old", "r")}`;
    await box.getBlobClient("copy").syncCopyFromURL(source);
    assert.equal(await text(container.getBlobClient("copy")), "content");
    const wrong = `${container.getBlobClient("old").url}?${blobToken(container, "old", "w")}`;
    await assertRefused(box.getBlobClient("copy").syncCopyFromURL(wrong), 403, "CannotVerifyCopySource");
  }));
});

describe("signatures of accounts", () => {
  const CALLS = {
    "list containers": ["s", "l", (service) => all(service.listContainers({ prefix: "c" }))],
    "get properties": ["s", "r", (service) => service.getProperties()],
    "container properties": ["c", "r", (service, box) => box.getProperties()],
    "list blobs": ["c", "l", (service, box) => all(box.listBlobsFlat())],
    read: ["o", "r", (service, box) => text(box.getBlobClient("old"))],
    delete: ["o", "d", (service, box) => box.deleteBlob("old")],
  };
  for (const [verb, [type, letter, call]] of Object.entries(CALLS)) {
    test(`${verb} needs srt=${type} and sp=${letter}`, filled(async (container) => {
      const use = (service) => call(service, service.getContainerClient(container.containerName));
      for (const other of "rwdlac") {
        if (other !== letter) await assertRefused(use(withAccountSas(other)), ...PERMISSION);
      }
      for (const types of "sco") {
        if (types !== type) await assertRefused(use(withAccountSas("rwdlac", { types })), ...RESOURCE_TYPE);
      }
      await assertRefused(use(withAccountSas("rwdlac", { services: "qt" })), 403, "AuthorizationServiceMismatch");
      await use(withAccountSas(letter, { types: type }));
    }));
  }

  test("create and delete containers", async () => {
    const name = freshContainerName();
    await withAccountSas("c", { types: "c" }).createContainer(name);
    await withAccountSas("d", { types: "c" }).deleteContainer(name);
  });
});

describe("fields", () => {
  const read = (box) => box.getBlobClient("old").getProperties();
  const readers = {
    account: (container, options) => withAccountSas("r", options).getContainerClient(container.containerName),
    container: (container, options) => withContainerSas(container, "r", options),
  };
  for (const [kind, reader] of Object.entries(readers)) {
    test(`of ${kind} signatures`, filled(async (container) => {
      await read(reader(container, { startsOn: fromNow(-HOUR) }));
      await assertRefused(
        read(reader(container, { startsOn: fromNow(HOUR), expiresOn: fromNow(2 * HOUR) })), ...SIGNATURE,
      );
      await assertRefused(read(reader(container, { expiresOn: fromNow(-HOUR) })), ...SIGNATURE);
      await read(reader(container, { ipRange: { start: "127.0.0.0", end: "127.0.0.255" } }));
      await assertRefused(
        read(reader(container, { ipRange: { start: "10.0.0.1" } })), 403, "AuthorizationSourceIPMismatch",
      );
      await assertRefused(read(reader(container, { protocol: "https" })), 403, "AuthorizationProtocolMismatch");
      const key = new StorageSharedKeyCredential(settings.AccountName, "d3Jvbmc=");
      await assertRefused(read(reader(container, { key })), ...SIGNATURE);
    }));
  }
});

describe("stored policies", () => {
  const policy = (permissions, expiresOn = fromNow(HOUR)) => [{ id: "p", accessPolicy: { permissions, expiresOn } }];

  test("come back as set", withContainer(async (container) => {
    const startsOn = new Date("2021-06-08T02:05:09Z");
    await container.setAccessPolicy("blob", [{ id: "x", accessPolicy: { startsOn, permissions: "rl" } }]);
    const { blobPublicAccess, signedIdentifiers } = await container.getAccessPolicy();
    assert.equal(blobPublicAccess, "blob");
    assert.deepEqual(signedIdentifiers[0].accessPolicy.startsOn, startsOn);
    assert.equal(signedIdentifiers[0].accessPolicy.permissions, "rl");
    const six = Array.from({ length: 6 }, (_, id) => ({ id: `${id}`, accessPolicy: { permissions: "r" } }));
    await assertRefused(container.setAccessPolicy(undefined, six), 400, "InvalidXmlDocument");
  }));

  test("complete signatures and end them", filled(async (container) => {
    const box = withContainerSas(container, undefined, { identifier: "p", expiresOn: undefined });
    await assertRefused(box.getBlobClient("old").getProperties(), ...SIGNATURE);
    await container.setAccessPolicy(undefined, policy("r"));
    await box.getBlobClient("old").getProperties();
    await container.setAccessPolicy(undefined, policy("w"));
    await assertRefused(box.getBlobClient("old").getProperties(), ...PERMISSION);
    await container.setAccessPolicy(undefined, policy("r", fromNow(-HOUR)));
    await assertRefused(box.getBlobClient("old").getProperties(), ...SIGNATURE);
  }));
});

describe("service properties", () => {
  after(() => blobs.setProperties({ cors: [], staticWebsite: { enabled: false } }));

  test("come back as set", async () => {
    const rule = {
      allowedOrigins: "http://a.example", allowedMethods: "GET,PUT", allowedHeaders: "x-ms-meta-*",
      exposedHeaders: "etag", maxAgeInSeconds: 7,
    };
    await blobs.setProperties({ cors: [rule], staticWebsite: { enabled: true, indexDocument: "index.html" } });
    const found = await blobs.getProperties();
    assert.deepEqual(found.cors, [rule]);
    assert.equal(found.staticWebsite.indexDocument, "index.html");
  });
});
