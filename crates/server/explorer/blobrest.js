// Containers and blobs by the public REST interface, one function per operation.
//
// Promises: a file is sent as the browser reads it from the disk, and a content arrives as a stream; neither is ever
// whole in memory here. A name is one segment of a path, so that no browser takes its dots for directions. Leaves to
// others: sending and refusals (rest.js), what to do with the answers.

import { encode, send, ServiceFailure } from "./rest.js";
import { base64Of } from "./types.js";
import { escapeXml, readXml } from "./xml.js";

/** Larger files are sent in blocks of this size, or of more where a blob could not have so many blocks. */
export const BLOCK_BYTES = 8 * 1024 * 1024;
const BLOCK_COUNT_MAX = 50_000;
const BLOCKS_AT_ONCE = 2;

const blob = (connection, method, path, options) => send(connection, "blob", method, path, options);

function place(container, name) {
  if (name === "." || name === "..")
    throw new ServiceFailure(0, "", `A browser cannot ask for a blob that is called ${name}`);
  return `/${encode(container)}/${encode(name)}`;
}

/** The text of a name; one with characters that XML does not have is percent-encoded. */
function nameIn(element) {
  const found = element.one("Name");
  return found?.attributes.Encoded === "true" ? decodeURIComponent(found.text) : (found?.text ?? "");
}

// Containers

export async function listContainers(connection, marker, signal) {
  const response = await blob(connection, "GET", "/", { query: { comp: "list", marker }, signal });
  const list = readXml(await response.text());
  const names = (list.one("Containers")?.all("Container") ?? []).map(nameIn);
  return { names, next: list.textOf("NextMarker") || undefined };
}

export async function createContainer(connection, name) {
  await blob(connection, "PUT", `/${encode(name)}`, { query: { restype: "container" } });
}

export async function deleteContainer(connection, name) {
  await blob(connection, "DELETE", `/${encode(name)}`, { query: { restype: "container" } });
}

/** Who may read it without a signature, its lease and its metadata. */
export async function containerProperties(connection, name, signal) {
  const response = await blob(connection, "HEAD", `/${encode(name)}`, { query: { restype: "container" }, signal });
  const { headers } = response;
  const metadata = [...headers].filter(([header]) => header.startsWith("x-ms-meta-"));
  return {
    access: headers.get("x-ms-blob-public-access") ?? "",
    lease: headers.get("x-ms-lease-state") ?? "",
    metadata: metadata.map(([header, value]) => [header.slice("x-ms-meta-".length), value]),
  };
}

// Lists of blobs

function blobIn(element) {
  const properties = element.one("Properties");
  const pairs = (parent) => (parent?.children ?? []).map((one) => [one.name, one.text]);
  const tags = element.one("Tags")?.one("TagSet")?.all("Tag") ?? [];
  return {
    name: nameIn(element),
    snapshot: element.textOf("Snapshot") || undefined,
    type: properties?.textOf("BlobType") ?? "",
    size: Number(properties?.textOf("Content-Length") ?? 0),
    modified: properties?.textOf("Last-Modified") ?? "",
    etag: properties?.textOf("Etag") ?? "",
    encoding: properties?.textOf("Content-Encoding") ?? "",
    properties: pairs(properties).filter(([, text]) => text !== ""),
    metadata: pairs(element.one("Metadata")),
    tags: tags.map((tag) => [tag.textOf("Key"), tag.textOf("Value")]),
  };
}

/** One page of a list: folders ({folder}) and blobs in their common order, and where the next page begins. */
export async function listBlobs(connection, container, { prefix, delimiter, marker, include, max, signal } = {}) {
  const query = {
    restype: "container",
    comp: "list",
    prefix: prefix || undefined,
    delimiter,
    marker,
    include,
    maxresults: max && String(max),
  };
  const response = await blob(connection, "GET", `/${encode(container)}`, { query, signal });
  const list = readXml(await response.text());
  const entries = (list.one("Blobs")?.children ?? []).map((one) =>
    one.name === "BlobPrefix" ? { folder: nameIn(one) } : blobIn(one),
  );
  return { entries, next: list.textOf("NextMarker") || undefined };
}

/** Everything about one blob; undefined if there is none. */
export async function describeBlob(connection, container, name, signal) {
  const find = (include) => listBlobs(connection, container, { prefix: name, include, max: 1, signal });
  // A signature may allow listing and not the tags.
  const { entries } = await find("metadata,tags").catch((error) => {
    if (error.status !== 403) throw error;
    return find("metadata");
  });
  return entries[0]?.name === name ? entries[0] : undefined;
}

/** The first snapshots of a blob, the oldest first, and whether there are more. */
export async function listSnapshots(connection, container, name, max, signal) {
  const { entries } = await listBlobs(connection, container, {
    prefix: name,
    include: "snapshots",
    max: max + 1,
    signal,
  });
  const found = entries.filter((one) => one.name === name && one.snapshot);
  return { snapshots: found.slice(0, max), isCut: found.length > max };
}

// Blobs

/** The answer to a read, whose body is a stream. `last` is the last byte that is wanted. */
export async function getBlob(connection, container, name, { snapshot, last, signal } = {}) {
  const headers = last === undefined ? {} : { "x-ms-range": `bytes=0-${last}` };
  return blob(connection, "GET", place(container, name), { query: { snapshot }, headers, signal });
}

/** Deletes a blob if it still has this ETag, with its snapshots; or one snapshot. */
export async function deleteBlob(connection, container, { name, snapshot, etag }) {
  const headers = { "if-match": etag };
  if (!snapshot) headers["x-ms-delete-snapshots"] = "include";
  await blob(connection, "DELETE", place(container, name), { query: { snapshot }, headers });
}

const blockId = (index) => base64Of(new TextEncoder().encode(String(index).padStart(6, "0")));

/**
 * Sends a file: small ones in one request, larger ones in blocks that become visible together. `progress` hears how
 * many bytes have arrived. Unless `overwrite`, a blob that is there already is left alone.
 */
export async function uploadFile(connection, container, name, file, { overwrite, progress, signal }) {
  const path = place(container, name);
  const type = { "x-ms-blob-content-type": file.type || "application/octet-stream" };
  const condition = overwrite ? {} : { "if-none-match": "*" };
  const binary = { "content-type": "application/octet-stream" };
  if (file.size <= BLOCK_BYTES) {
    const headers = { ...binary, ...type, ...condition, "x-ms-blob-type": "BlockBlob" };
    await blob(connection, "PUT", path, { headers, body: file, signal });
    progress(file.size);
    return;
  }
  const size = Math.max(BLOCK_BYTES, Math.ceil(file.size / BLOCK_COUNT_MAX));
  const count = Math.ceil(file.size / size);
  let [next, arrived] = [0, 0];
  const work = async () => {
    while (next < count) {
      const index = next++;
      const part = file.slice(index * size, (index + 1) * size);
      const query = { comp: "block", blockid: blockId(index) };
      await blob(connection, "PUT", path, { query, headers: binary, body: part, signal });
      arrived += part.size;
      progress(arrived);
    }
  };
  await Promise.all(Array.from({ length: BLOCKS_AT_ONCE }, work));
  const blocks = Array.from({ length: count }, (_, index) => `<Latest>${escapeXml(blockId(index))}</Latest>`);
  const body = `<?xml version="1.0" encoding="utf-8"?><BlockList>${blocks.join("")}</BlockList>`;
  const headers = { "content-type": "application/xml", ...type, ...condition };
  await blob(connection, "PUT", path, { query: { comp: "blocklist" }, headers, body, signal });
}
