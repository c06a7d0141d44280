// The public REST interface, one function per operation, through the passage of the page's own origin.
//
// Promises: every request is signed for the service's own path; every failure is a ServiceFailure with the service's
// code and message. Nothing private is used. Leaves to others: what to do with the answers.

import { signFull, signTable } from "./sign.js";
import { newGuid, readEntity, readPage, writeEntity } from "./types.js";
import { escapeXml, readXml } from "./xml.js";

const TABLE_VERSION = "2019-02-02";
/** Of queues and blobs. */
const COMMON_VERSION = "2021-12-02";
const JSON_TYPE = "application/json;odata=minimalmetadata";
export const PAGE_ENTITIES_MAX = 1000;

export class ServiceFailure extends Error {
  constructor(status, code, message) {
    super(message || `The service answered ${status}.`);
    this.status = status;
    this.code = code;
  }
}

/** Percent-encodes like encodeURIComponent, and the quote too, so that the path is the same text everywhere. */
export function encode(text) {
  return encodeURIComponent(text).replace(/'/g, "%27");
}

function keyPredicate(table, partitionKey, rowKey) {
  const quoted = (key) => `'${encodeURIComponent(key.replaceAll("'", "''"))}'`;
  return `/${encode(table)}(PartitionKey=${quoted(partitionKey)},RowKey=${quoted(rowKey)})`;
}

function queryText(parameters) {
  return [...parameters].map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
}

/** Sends one request. `path` is relative to the account and percent-encoded; `body` is text, or a file as it is. */
export async function send(connection, service, method, path, { query = {}, headers = {}, body, signal } = {}) {
  const { account, key, sas } = connection;
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value);
  const own = `/${account}${path}`;
  const all = {
    "x-ms-version": service === "table" ? TABLE_VERSION : COMMON_VERSION,
    "x-ms-client-request-id": `explorer-${newGuid()}`,
    ...headers,
  };
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  if (key) {
    const date = new Date().toUTCString();
    all["x-ms-date"] = date;
    all.authorization =
      service === "table"
        ? await signTable(account, key, own, parameters, date)
        : await signFull(account, key, method, own, parameters, all, bytes?.size ?? bytes?.length);
  } else {
    for (const [name, value] of sas) parameters.set(name, value);
  }
  const search = queryText(parameters);
  let response;
  try {
    const url = `/storage/${service}${own}${search ? `?${search}` : ""}`;
    response = await fetch(url, { method, headers: all, body: bytes, signal, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceFailure(0, "Unreachable", "The server does not answer.");
  }
  if (!response.ok) throw await failureOf(response);
  return response;
}

async function failureOf(response) {
  const text = await response.text();
  let code = response.headers.get("x-ms-error-code") ?? "";
  let message = "";
  try {
    if (text.trimStart().startsWith("{")) {
      const error = JSON.parse(text)["odata.error"];
      code = error.code;
      message = error.message.value;
    } else if (text.includes("<")) {
      const error = readXml(text);
      code = error.textOf("Code") || error.textOf("m:code");
      message = error.textOf("Message") || error.textOf("m:message");
    }
  } catch {
    // Not an answer of the service: the status has to do.
  }
  // The lines that follow name the request and the time, for those who read the server's log.
  return new ServiceFailure(response.status, code, message.split("\nRequestId:")[0]);
}

const table = (connection, method, path, options = {}) =>
  send(connection, "table", method, path, { ...options, headers: { accept: JSON_TYPE, ...options.headers } });
const queue = (connection, method, path, options) => send(connection, "queue", method, path, options);

// Tables

/** One page of table names, and where the next begins. */
export async function listTables(connection, next, signal) {
  const response = await table(connection, "GET", "/Tables", { query: { NextTableName: next }, signal });
  const names = JSON.parse(await response.text()).value.map((one) => one.TableName);
  return { names, next: response.headers.get("x-ms-continuation-nexttablename") ?? undefined };
}

export async function createTable(connection, name) {
  const headers = { "content-type": "application/json", prefer: "return-no-content" };
  await table(connection, "POST", "/Tables", { headers, body: JSON.stringify({ TableName: name }) });
}

export async function deleteTable(connection, name) {
  await table(connection, "DELETE", `/Tables('${encodeURIComponent(name)}')`);
}

/** What the server says about a query: its plan, and how many entities it examined and returned. */
function explained(response) {
  const text = response.headers.get("x-lazulite-plan");
  if (!text) return undefined;
  const [kind, ...parts] = text.split(";").map((part) => part.trim());
  const numbers = Object.fromEntries(parts.map((part) => part.split("=")));
  return { kind, examined: Number(numbers.examined), returned: Number(numbers.returned) };
}

/** One page of a query: entities, the continuation, the plan, and how long the text was. */
export async function queryEntities(
  connection,
  name,
  { filter, select, top = PAGE_ENTITIES_MAX, token, signal } = {},
) {
  const query = {
    $filter: filter || undefined,
    $select: select,
    $top: String(top),
    NextPartitionKey: token?.partition,
    NextRowKey: token?.row,
  };
  const headers = { "x-lazulite-explain": "1" };
  const response = await table(connection, "GET", `/${encode(name)}()`, { query, headers, signal });
  const text = await response.text();
  const partition = response.headers.get("x-ms-continuation-nextpartitionkey");
  const row = response.headers.get("x-ms-continuation-nextrowkey") ?? undefined;
  return {
    entities: readPage(text),
    next: partition === null ? undefined : { partition, row },
    plan: explained(response),
    size: text.length,
  };
}

export async function getEntity(connection, name, partitionKey, rowKey) {
  return readEntity(await (await table(connection, "GET", keyPredicate(name, partitionKey, rowKey))).text());
}

export async function insertEntity(connection, name, partitionKey, rowKey, properties) {
  const headers = { "content-type": "application/json", prefer: "return-no-content" };
  await table(connection, "POST", `/${encode(name)}`, {
    headers,
    body: writeEntity(partitionKey, rowKey, properties),
  });
}

/** Replaces an entity if it still has this ETag. */
export async function replaceEntity(connection, name, partitionKey, rowKey, properties, etag) {
  const headers = { "content-type": "application/json", "if-match": etag };
  const body = writeEntity(partitionKey, rowKey, properties);
  await table(connection, "PUT", keyPredicate(name, partitionKey, rowKey), { headers, body });
}

export async function deleteEntity(connection, name, partitionKey, rowKey, etag) {
  await table(connection, "DELETE", keyPredicate(name, partitionKey, rowKey), { headers: { "if-match": etag } });
}

// Queues

const XML = { "content-type": "application/xml" };

export async function listQueues(connection, marker, signal) {
  const response = await queue(connection, "GET", "/", { query: { comp: "list", marker }, signal });
  const list = readXml(await response.text());
  const names = (list.one("Queues")?.all("Queue") ?? []).map((one) => one.textOf("Name"));
  return { names, next: list.textOf("NextMarker") || undefined };
}

export async function createQueue(connection, name) {
  await queue(connection, "PUT", `/${encode(name)}`);
}

export async function deleteQueue(connection, name) {
  await queue(connection, "DELETE", `/${encode(name)}`);
}

/** How many messages a queue holds, visible or not, and its metadata. */
export async function queueProperties(connection, name, signal) {
  const response = await queue(connection, "GET", `/${encode(name)}`, { query: { comp: "metadata" }, signal });
  const metadata = [...response.headers].filter(([header]) => header.startsWith("x-ms-meta-"));
  return {
    count: Number(response.headers.get("x-ms-approximate-messages-count")),
    metadata: metadata.map(([header, value]) => [header.slice("x-ms-meta-".length), value]),
  };
}

function messagesIn(text) {
  return readXml(text)
    .all("QueueMessage")
    .map((one) => ({
      id: one.textOf("MessageId"),
      inserted: one.textOf("InsertionTime"),
      expires: one.textOf("ExpirationTime"),
      receipt: one.textOf("PopReceipt"),
      visible: one.textOf("TimeNextVisible"),
      count: Number(one.textOf("DequeueCount") || 0),
      text: one.textOf("MessageText"),
    }));
}

export async function peekMessages(connection, name, count = 32) {
  const query = { peekonly: "true", numofmessages: String(count) };
  return messagesIn(await (await queue(connection, "GET", `/${encode(name)}/messages`, { query })).text());
}

export async function takeMessages(connection, name, count, visibility) {
  const query = { numofmessages: String(count), visibilitytimeout: String(visibility) };
  return messagesIn(await (await queue(connection, "GET", `/${encode(name)}/messages`, { query })).text());
}

function messageBody(text) {
  return `<QueueMessage><MessageText>${escapeXml(text)}</MessageText></QueueMessage>`;
}

export async function putMessage(connection, name, text, { visibility, timeToLive }) {
  const query = { visibilitytimeout: String(visibility), messagettl: String(timeToLive) };
  await queue(connection, "POST", `/${encode(name)}/messages`, { query, headers: XML, body: messageBody(text) });
}

/** Changes a taken message; `text` may be left out. Returns the new receipt and when it becomes visible. */
export async function updateMessage(connection, name, { id, receipt }, visibility, text) {
  const query = { popreceipt: receipt, visibilitytimeout: String(visibility) };
  const rest = text === undefined ? {} : { headers: XML, body: messageBody(text) };
  const response = await queue(connection, "PUT", `/${encode(name)}/messages/${encode(id)}`, { query, ...rest });
  return {
    receipt: response.headers.get("x-ms-popreceipt"),
    visible: response.headers.get("x-ms-time-next-visible"),
  };
}

export async function deleteMessage(connection, name, { id, receipt }) {
  await queue(connection, "DELETE", `/${encode(name)}/messages/${encode(id)}`, { query: { popreceipt: receipt } });
}

export async function clearMessages(connection, name) {
  await queue(connection, "DELETE", `/${encode(name)}/messages`);
}

// The admin endpoints

/** Reads one of the admin port's JSON answers. */
export async function admin(path, signal) {
  const response = await fetch(path, { signal, cache: "no-store" });
  if (!response.ok) throw new ServiceFailure(response.status, "", `${path} answered ${response.status}.`);
  return response.json();
}
