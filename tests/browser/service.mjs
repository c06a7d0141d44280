// The services as the account's owner uses them: requests signed with the key, CORS rules, SAS tokens. Written from the
// protocol reference, without the SDK and without the server's own code.

import { createHmac } from "node:crypto";

const connectionString = process.env.LAZULITE_CONNECTION_STRING;
if (!connectionString) {
  throw new Error("LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it");
}

const settings = Object.fromEntries(
  connectionString.split(";").filter(Boolean).map((part) => [part.split("=")[0], part.slice(part.indexOf("=") + 1)]),
);

const endpoint = settings.TableEndpoint.replace(/\/$/, "");
const queueEndpoint = settings.QueueEndpoint.replace(/\/$/, "");
const blobEndpoint = settings.BlobEndpoint.replace(/\/$/, "");
const VERSION = "2019-02-02";

function hmac(text) {
  return createHmac("sha256", Buffer.from(settings.AccountKey, "base64")).update(text, "utf8").digest("base64");
}

/** Sends a request as the account's owner. `target` is relative to the account. Resolves to status and body. */
export async function owner(method, target, body, contentType = "application/json") {
  const url = new URL(endpoint + target);
  const date = new Date().toUTCString();
  const comp = url.searchParams.get("comp");
  const resource = `/${settings.AccountName}${url.pathname}${comp ? `?comp=${comp}` : ""}`;
  const headers = {
    "x-ms-date": date,
    "x-ms-version": VERSION,
    accept: "application/json;odata=nometadata",
    authorization: `SharedKeyLite ${settings.AccountName}:${hmac(`${date}\n${resource}`)}`,
  };
  if (body !== undefined) headers["content-type"] = contentType;
  if (method === "DELETE") headers["if-match"] = "*";
  const response = await fetch(url, { method, headers, body });
  return { status: response.status, text: await response.text() };
}

/** Sends a request to the Queue service as the owner. */
export function queueOwner(method, target, body) {
  return ownerOf(queueEndpoint, "q", method, target, body);
}

/** Sends a request to the Blob service as the owner. */
export function blobOwner(method, target, body, headers = {}) {
  return ownerOf(blobEndpoint, "b", method, target, body, headers);
}

/** The owner has a token for everything. */
async function ownerOf(endpoint, services, method, target, body, more = {}) {
  const url = new URL(endpoint + target);
  // Tags of blobs came with this version.
  const [permissions, version] = services === "b" ? ["rwdlacupt", "2019-12-12"] : ["rwdlacup", VERSION];
  const [types, expiry] = ["sco", inAnHour()];
  const text = [settings.AccountName, permissions, services, types, "", expiry, "", "", version, ""].join("\n");
  const token = { sv: version, ss: services, srt: types, sp: permissions, se: expiry, sig: hmac(text) };
  for (const [name, value] of Object.entries(token)) url.searchParams.set(name, value);
  const headers = body === undefined ? more : { "content-type": "application/xml", ...more };
  const response = await fetch(url, { method, headers, body });
  return { status: response.status, text: await response.text() };
}

/** Replaces the Table service's CORS rules. Each has the strings origins, methods, headers and exposed. */
export async function setRules(...rules) {
  const put = (target, body) => owner("PUT", target, body, "application/xml");
  await putRules(put, rules);
}

/** Replaces the Queue service's CORS rules. */
export async function setQueueRules(...rules) {
  await putRules((target, body) => queueOwner("PUT", target, body), rules);
}

/** Replaces the Blob service's CORS rules. */
export async function setBlobRules(...rules) {
  await putRules((target, body) => blobOwner("PUT", target, body), rules);
}

async function putRules(put, rules) {
  const element = ({ origins, methods, headers = "*", exposed = "etag" }) =>
    `<CorsRule><AllowedOrigins>${origins}</AllowedOrigins><AllowedMethods>${methods}</AllowedMethods>` +
    `<AllowedHeaders>${headers}</AllowedHeaders><ExposedHeaders>${exposed}</ExposedHeaders>` +
    // The browser may cache nothing, so that each test sees its own rules.
    `<MaxAgeInSeconds>0</MaxAgeInSeconds></CorsRule>`;
  const body = `<StorageServiceProperties><Cors>${rules.map(element).join("")}</Cors></StorageServiceProperties>`;
  const { status, text } = await put("/?restype=service&comp=properties", body);
  if (status !== 202) throw new Error(`the rules were not taken: ${status} ${text}`);
}

function inAnHour() {
  return new Date(Date.now() + 3600_000).toISOString().slice(0, 19) + "Z";
}

/** The URL below a queue, with a token that lets its holder do `permissions` with its messages for an hour. */
export function queueUrl(queue, rest, permissions = "raup") {
  const expiry = inAnHour();
  const resource = `/queue/${settings.AccountName}/${queue}`;
  const signature = hmac([permissions, "", expiry, resource, "", "", "", VERSION].join("\n"));
  const url = new URL(`${queueEndpoint}/${queue}${rest}`);
  const token = { sv: VERSION, sp: permissions, se: expiry, sig: signature };
  for (const [name, value] of Object.entries(token)) url.searchParams.set(name, value);
  return url.href;
}

/** The URL below a container, with a token that lets its holder do `permissions` with its blobs for an hour. */
export function blobUrl(container, rest, permissions = "racwdl") {
  const expiry = inAnHour();
  const resource = `/blob/${settings.AccountName}/${container}`;
  const lines = [permissions, "", expiry, resource, "", "", "", VERSION, "c", "", "", "", "", "", ""];
  const url = new URL(`${blobEndpoint}/${container}${rest}`);
  const token = { sv: VERSION, sr: "c", sp: permissions, se: expiry, sig: hmac(lines.join("\n")) };
  for (const [name, value] of Object.entries(token)) url.searchParams.set(name, value);
  return url.href;
}

/** The URL of an entity, with a token that lets its holder do `permissions` in that table for an hour. */
export function entityUrl(table, partitionKey, rowKey, permissions = "raud") {
  const expiry = inAnHour();
  const resource = `/table/${settings.AccountName}/${table.toLowerCase()}`;
  const signature = hmac([permissions, "", expiry, resource, "", "", "", VERSION, "", "", "", ""].join("\n"));
  const token = new URLSearchParams({ sv: VERSION, tn: table, sp: permissions, se: expiry, sig: signature });
  return `${endpoint}/${table}(PartitionKey='${partitionKey}',RowKey='${rowKey}')?${token}`;
}
