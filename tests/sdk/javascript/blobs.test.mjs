// Blobs: put, get, properties, metadata, names, ranges, checksums.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { Readable } from "node:stream";

import { all } from "./support.mjs";
import {
  KIB, MIB, assertRefused, blobs, bytesOf, content, put, text, withContainer,
} from "./blob_support.mjs";

const md5 = (data) => createHash("md5").update(data).digest();

describe("blobs", () => {
  for (const size of [0, 1, 8 * KIB, 8 * KIB + 1, 300_000, 4 * MIB + 1]) {
    test(`of ${size} bytes come back as they were put`, withContainer(async (container) => {
      const data = bytesOf(size);
      const blob = await put(container, "b", data);
      assert.ok((await content(blob)).equals(data));
      assert.ok((await blob.downloadToBuffer()).equals(data));
      const found = await blob.getProperties();
      assert.deepEqual([found.contentLength, found.blobType], [size, "BlockBlob"]);
      assert.deepEqual(Buffer.from(found.contentMD5), md5(data));
    }));
  }

  test("answer with their checksums", withContainer(async (container) => {
    const blob = container.getBlockBlobClient("b");
    const answer = await blob.upload("hello world", 11);
    assert.equal(answer._response.status, 201);
    assert.equal(Buffer.from(answer.contentMD5).toString("base64"), "XrY7u+Ae7tCTyyK7j1rNww==");
    assert.equal(answer._response.headers.get("x-ms-content-crc64"), "vo7q9sPVKY0=");
    assert.equal(answer.isServerEncrypted, true);
  }));

  test("are replaced with everything that belongs to them", withContainer(async (container) => {
    const options = { metadata: { a: "1" }, blobHTTPHeaders: { blobContentType: "text/plain" } };
    const blob = await put(container, "b", "one", options);
    const before = await blob.getProperties();
    await put(container, "b", "two!");
    const after = await blob.getProperties();
    assert.equal(await text(blob), "two!");
    assert.notEqual(after.etag, before.etag);
    assert.deepEqual(after.createdOn, before.createdOn);
    assert.deepEqual([after.metadata, after.contentType], [{}, "application/octet-stream"]);
  }));

  test("that are not there are not found", withContainer(async (container) => {
    const missing = container.getBlockBlobClient("nope");
    assert.equal(await missing.exists(), false);
    await assertRefused(missing.download(), 404, "BlobNotFound");
    await assertRefused(missing.getProperties(), 404, "BlobNotFound");
    await assertRefused(missing.delete(), 404, "BlobNotFound");
    await assertRefused(missing.setMetadata({ a: "b" }), 404, "BlobNotFound");
    await assertRefused(missing.createSnapshot(), 404, "BlobNotFound");
    assert.equal((await missing.deleteIfExists()).succeeded, false);
    const nowhere = blobs.getContainerClient("nowhere").getBlockBlobClient("b");
    await assertRefused(nowhere.upload("x", 1), 404, "ContainerNotFound");
  }));

  test("have properties, which are replaced as a whole", withContainer(async (container) => {
    const headers = {
      blobContentType: "text/html", blobContentEncoding: "identity", blobContentLanguage: "de",
      blobContentDisposition: "attachment", blobCacheControl: "max-age=17",
    };
    const blob = await put(container, "b", "x", { blobHTTPHeaders: headers });
    let found = await blob.getProperties();
    assert.deepEqual(
      [found.contentType, found.contentEncoding, found.contentLanguage, found.contentDisposition, found.cacheControl],
      ["text/html", "identity", "de", "attachment", "max-age=17"],
    );
    await blob.setHTTPHeaders({ blobContentType: "image/png" });
    found = await blob.getProperties();
    assert.deepEqual([found.contentType, found.contentLanguage, found.contentMD5], ["image/png", undefined, undefined]);
  }));

  test("have metadata whose case lists keep", withContainer(async (container) => {
    const blob = await put(container, "b", "x", { metadata: { Hello: "World" } });
    const [item] = await all(container.listBlobsFlat({ includeMetadata: true }));
    assert.deepEqual(item.metadata, { Hello: "World" });
    await blob.setMetadata({ Other: "1" });
    assert.deepEqual((await blob.getProperties()).metadata, { other: "1" });
    await assertRefused(blob.setMetadata({ a: "x".repeat(8193) }), 400, "MetadataTooLarge");
  }));

  for (const name of [
    "with space", "folder/file.txt", "a//b", "trailing/", "per%cent %2F", "plus+amp&hash#question?", "日本語/😀",
    "quote'double\"", "back\\slash", "semi;colon,comma:at@$", "x".repeat(1024),
  ]) {
    test(`may be called ${name.slice(0, 20)}`, withContainer(async (container) => {
      const blob = await put(container, name, name);
      assert.equal(await text(blob), name);
      const items = await all(container.listBlobsFlat());
      assert.deepEqual(items.map((item) => item.name), [name]);
      await blob.delete();
    }));
  }

  test("check what they are told about their content", withContainer(async (container) => {
    const blob = container.getBlockBlobClient("b");
    const wrong = { blobHTTPHeaders: { blobContentMD5: md5("other") } };
    await assertRefused(blob.upload("data", 4, wrong), 400, "Md5Mismatch");
    assert.equal(await blob.exists(), false);
    await blob.upload("data", 4, { blobHTTPHeaders: { blobContentMD5: md5("data") } });
    const part = await blob.download(1, 2, { rangeGetContentMD5: true });
    assert.deepEqual(Buffer.from(part.contentMD5), md5("at"));
    assert.deepEqual(Buffer.from(part.blobContentMD5), md5("data"));
    const crc = await blob.download(1, 2, { rangeGetContentCrc64: true });
    assert.equal(crc.contentCrc64.length, 8);
    assert.ok(crc.contentCrc64);
  }));

  test("are read in parts", withContainer(async (container) => {
    const data = bytesOf(100_000);
    const blob = await put(container, "b", data);
    for (const [offset, count] of [[0, 1], [99_999, 1], [8190, 4], [50_000, 50_000], [10, 200_000]]) {
      const answer = await blob.download(offset, count);
      assert.equal(answer._response.status, 206);
      const end = Math.min(offset + count, 100_000);
      assert.equal(answer.contentRange, `bytes ${offset}-${end - 1}/100000`);
      assert.ok((await content(blob, offset, count)).equals(data.subarray(offset, end)));
    }
    assert.ok((await content(blob, 99_990)).equals(data.subarray(99_990)));
    await assertRefused(blob.download(100_000, 1), 416, "InvalidRange");
    const empty = await put(container, "empty", "");
    assert.equal((await content(empty)).length, 0);
    await assertRefused(empty.download(0, 1), 416, "InvalidRange");
  }));

  test("come from streams and go to buffers in parallel", withContainer(async (container) => {
    const data = bytesOf(3 * MIB + 5);
    const blob = container.getBlockBlobClient("b");
    await blob.uploadStream(Readable.from([data.subarray(0, MIB), data.subarray(MIB)]), 256 * KIB, 4);
    assert.equal((await blob.getBlockList("committed")).committedBlocks.length, 13);
    assert.ok((await blob.downloadToBuffer(0, undefined, { blockSize: 100_000, concurrency: 4 })).equals(data));
    await blob.uploadData(data.subarray(1), { blockSize: 512 * KIB, maxSingleShotSize: KIB, concurrency: 3 });
    assert.ok((await blob.downloadToBuffer()).equals(data.subarray(1)));
  }));

  test("are read without credentials where the container is public", withContainer(async (container) => {
    const blob = await put(container, "b", "public");
    assert.equal((await fetch(blob.url)).status, 404);
    await container.setAccessPolicy("blob");
    const answer = await fetch(blob.url);
    assert.deepEqual([answer.status, await answer.text()], [200, "public"]);
    const listing = await fetch(`${container.url}?restype=container&comp=list`);
    assert.equal(listing.status, 404);
    await container.setAccessPolicy("container");
    assert.equal((await fetch(`${container.url}?restype=container&comp=list`)).status, 200);
    await container.setAccessPolicy();
    assert.equal((await container.getAccessPolicy()).blobPublicAccess, undefined);
  }));
});
