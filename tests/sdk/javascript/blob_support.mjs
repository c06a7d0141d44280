// Shared by the tests of blobs: clients for the server under test, fresh containers, bytes, and checks for refusals.

import { randomUUID } from "node:crypto";

import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";

import { connectionString, settings } from "./support.mjs";

export { assertRefused, sleep } from "./queue_support.mjs";

export const blobEndpoint = settings.BlobEndpoint.replace(/\/$/, "");
export const accountKey = new StorageSharedKeyCredential(settings.AccountName, settings.AccountKey);

// No retries: they would hide exactly the answers that these tests look for.
export const clientOptions = { retryOptions: { maxTries: 1 } };

export const blobs = BlobServiceClient.fromConnectionString(connectionString, clientOptions);

export const KIB = 1024;
export const MIB = 1024 * KIB;

/** Bytes that differ from place to place and from seed to seed. */
export function bytesOf(size, seed = 1) {
  const bytes = Buffer.alloc(size);
  let state = (seed * 2654435761) >>> 0 || 1;
  for (let at = 0; at < size; at += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[at] = state & 255;
  }
  return bytes;
}

/** A container name that no other test uses. */
export const freshContainerName = () => "c" + randomUUID().replaceAll("-", "");

/** Runs `work` with a fresh, empty container. */
export function withContainer(work) {
  return async () => {
    const container = blobs.getContainerClient(freshContainerName());
    await container.create();
    try {
      await work(container);
    } finally {
      await container.deleteIfExists();
    }
  };
}

/** Puts a block blob and returns its client. */
export async function put(container, name, data = "content", options = {}) {
  const blob = container.getBlockBlobClient(name);
  const body = Buffer.from(data);
  await blob.upload(body, body.length, options);
  return blob;
}

/** The content, from one request. */
export async function content(blob, ...arguments_) {
  const answer = await blob.download(...arguments_);
  const pieces = [];
  for await (const piece of answer.readableStreamBody) pieces.push(piece);
  return Buffer.concat(pieces);
}

export const text = async (blob, ...arguments_) => (await content(blob, ...arguments_)).toString();
export const blockId = (name) => Buffer.from(name).toString("base64");
