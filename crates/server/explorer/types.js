// The types of properties: what the service stores, as type and text.
//
// Promises: a value is held as the text that the wire has, so an Int64 keeps all of its digits, a DateTime its 100
// ns, a Double its sign and its point. Checking says in plain words what is wrong before the service would. Leaves to
// others: how values are edited (forms.js) and shown (grid.js).

import { NumberText, readJson } from "./json.js";

export const TYPES = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"];
export const STRING_UNITS_MAX = 32_768;
export const BINARY_BYTES_MAX = 65_536;
export const KEY_UNITS_MAX = 512;
export const PROPERTIES_MAX = 252;
const SYSTEM = new Set(["PartitionKey", "RowKey", "Timestamp"]);

/** One entity as it was read. `properties` is a Map from name to {type, text}, in the order of the payload. */
export class Entity {
  constructor(partitionKey, rowKey, timestamp, etag, properties) {
    this.partitionKey = partitionKey;
    this.rowKey = rowKey;
    this.timestamp = timestamp;
    this.etag = etag;
    this.properties = properties;
  }
  /** The value in a column of the grid; undefined if there is none. */
  value(name) {
    if (name === "PartitionKey") return { type: "String", text: this.partitionKey };
    if (name === "RowKey") return { type: "String", text: this.rowKey };
    if (name === "Timestamp") return { type: "DateTime", text: this.timestamp };
    return this.properties.get(name);
  }
  get key() {
    return entityKey(this.partitionKey, this.rowKey);
  }
}

/** A text that is different for different keys. Keys contain no control characters. */
export function entityKey(partitionKey, rowKey) {
  return `${partitionKey}\u0000${rowKey}`;
}

/** Reads one entity from its members: a Map, as readJson makes them. */
export function entityFrom(members) {
  const properties = new Map();
  for (const [name, raw] of members) {
    if (name.startsWith("odata.") || name.includes("@") || SYSTEM.has(name) || raw === null) continue;
    const annotated = members.get(`${name}@odata.type`);
    properties.set(name, valueFrom(raw, typeof annotated === "string" ? annotated.replace(/^Edm\./, "") : undefined));
  }
  const text = (name) => members.get(name) ?? "";
  return new Entity(text("PartitionKey"), text("RowKey"), text("Timestamp"), text("odata.etag"), properties);
}

function valueFrom(raw, annotated) {
  if (raw instanceof NumberText) {
    return { type: annotated ?? (/[.eE]/.test(raw.text) ? "Double" : "Int32"), text: raw.text };
  }
  if (typeof raw === "boolean") return { type: "Boolean", text: String(raw) };
  return { type: annotated ?? "String", text: String(raw) };
}

export function readPage(text) {
  return readJson(text).get("value").map(entityFrom);
}

export function readEntity(text) {
  return entityFrom(readJson(text));
}

/** The members of a payload: `"name@odata.type":"Edm.X","name":…`. */
export function writeProperty(name, { type, text }) {
  const label = JSON.stringify(name);
  const annotated = (json) => `${JSON.stringify(`${name}@odata.type`)}:"Edm.${type}",${label}:${json}`;
  switch (type) {
    case "String":
      return `${label}:${JSON.stringify(text)}`;
    case "Boolean":
      return `${label}:${text}`;
    case "Int32":
      return `${label}:${BigInt(text)}`;
    case "Double":
      // With its type a Double may be text, and text keeps what a JSON number cannot say.
      return annotated(JSON.stringify(text));
    default:
      return annotated(JSON.stringify(text));
  }
}

/** The payload of an insert or an update. */
export function writeEntity(partitionKey, rowKey, properties) {
  const keys = [`"PartitionKey":${JSON.stringify(partitionKey)}`, `"RowKey":${JSON.stringify(rowKey)}`];
  return `{${[...keys, ...[...properties].map(([name, value]) => writeProperty(name, value))].join(",")}}`;
}

/** What is wrong with a value, in words for its author; undefined if nothing is. */
export function problem({ type, text }) {
  switch (type) {
    case "String":
      return text.length > STRING_UNITS_MAX
        ? `A string holds at most 32,768 characters; this has ${text.length.toLocaleString("en")}.`
        : undefined;
    case "Int32":
      return integerProblem(text, 32n);
    case "Int64":
      return integerProblem(text, 64n);
    case "Double":
      return doubleProblem(text);
    case "Boolean":
      return text === "true" || text === "false" ? undefined : "Either true or false.";
    case "DateTime":
      return dateProblem(text);
    case "Guid":
      return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
        ? undefined
        : "32 hexadecimal digits, as in a455c695-df98-4678-aaaa-81d3367e5a34.";
    case "Binary":
      return binaryProblem(text);
    default:
      return `Unknown type ${type}.`;
  }
}

function integerProblem(text, bits) {
  if (!/^-?[0-9]{1,20}$/.test(text)) return "A whole number, digits only.";
  const value = BigInt(text);
  const limit = 1n << (bits - 1n);
  if (value >= limit || value < -limit) return `Between ${-limit} and ${limit - 1n}.`;
}

function doubleProblem(text) {
  if (["NaN", "Infinity", "-Infinity"].includes(text)) return undefined;
  if (!/^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$/.test(text)) {
    return "A number such as 0.5 or 1E-05, or one of NaN, Infinity, -Infinity.";
  }
  if (!Number.isFinite(Number(text))) return "Too large for a Double; the largest is 1.7976931348623157E+308.";
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?Z$/;

function dateProblem(text) {
  const found = DATE.exec(text);
  if (!found) return "UTC, as in 2026-01-31T08:30:00.1234567Z: up to seven digits after the point.";
  const [, year, month, day, hour, minute, second] = found.map(Number);
  const date = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  date.setUTCFullYear(year);
  const same = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  if (!same || hour > 23 || minute > 59 || second > 59) return "There is no such date or time.";
  if (year < 1601) return "The service stores dates from the year 1601 to 9999.";
}

function binaryProblem(text) {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0)
    return "Base64: A-Z a-z 0-9 + / and = at the end.";
  if (byteLength(text) > BINARY_BYTES_MAX) return "At most 65,536 bytes.";
}

/** How many bytes a Base64 text stands for. */
export function byteLength(base64) {
  return (base64.length / 4) * 3 - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
}

export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
}

export function base64Of(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

/** What is wrong with a key. */
export function keyProblem(text) {
  if (text.length > KEY_UNITS_MAX) return `At most ${KEY_UNITS_MAX} characters.`;
  // eslint-disable-next-line no-control-regex
  if (/[/\\#?\u0000-\u001f\u007f-\u009f]/.test(text)) return "No / \\ # ? and no control characters.";
}

/** What is wrong with the name of a property. */
export function nameProblem(name) {
  if (name === "") return "A name is needed.";
  if (name.length > 255) return "At most 255 characters.";
  if (SYSTEM.has(name)) return `${name} is the service's own.`;
  if (!/^[\p{L}_][\p{L}\p{N}\p{Mn}\p{Mc}\p{Pc}\p{Cf}]*$/u.test(name)) {
    return "Letters, digits and _; the first is no digit.";
  }
}

/** A value as a literal of a filter. */
export function literal({ type, text }) {
  switch (type) {
    case "String":
      return `'${text.replaceAll("'", "''")}'`;
    case "Int64":
      return `${text}L`;
    case "Double":
      if (text === "NaN") return text;
      if (text.endsWith("Infinity")) return text.replace("Infinity", "INF");
      return /[.eE]/.test(text) ? text : `${text}.0`;
    case "DateTime":
      return `datetime'${text}'`;
    case "Guid":
      return `guid'${text}'`;
    case "Binary":
      return `X'${[...bytesOf(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}'`;
    default:
      return text;
  }
}

/** A first value for a property of this type. */
export function emptyValue(type) {
  const texts = {
    String: "",
    Int32: "0",
    Int64: "0",
    Double: "0.0",
    Boolean: "false",
    Guid: newGuid(),
    Binary: "",
  };
  return { type, text: type === "DateTime" ? now() : texts[type] };
}

/** Browsers have randomUUID only on pages that came by HTTPS or from this machine. */
export function newGuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

export function now() {
  return new Date().toISOString().replace(/\.?0*Z$/, "Z");
}

/** Equal in type and in what is stored. */
export function sameValue(left, right) {
  if (!left || !right) return left === right;
  return left.type === right.type && normal(left) === normal(right);
}

function normal({ type, text }) {
  if (type === "Int32" || type === "Int64") return /^-?[0-9]+$/.test(text) ? String(BigInt(text)) : text;
  if (type === "Double") return Object.is(Number(text), -0) ? "-0" : String(Number(text));
  if (type === "DateTime") return text.replace(/(\.\d*?)0+Z$/, "$1Z").replace(".Z", "Z");
  if (type === "Guid") return text.toLowerCase();
  return text;
}
