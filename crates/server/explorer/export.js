// Entities as files: JSON, which loses nothing, and CSV, which opens anywhere.
//
// Promises: JSON is what the service itself would send, type annotations included. CSV has a column for each property
// and one for its type, every cell quoted; text that a spreadsheet would run as a formula gets an apostrophe in front
// of it. Memory is bounded.

import { writeProperty } from "./types.js";

export const EXPORT_TEXT_MAX = 256 * 1024 * 1024;

/** The members of an entity as JSON text. */
function entityJson(entity) {
  const system = [
    ["PartitionKey", entity.partitionKey],
    ["RowKey", entity.rowKey],
    ["Timestamp", entity.timestamp],
    ["odata.etag", entity.etag],
  ];
  const own = [...entity.properties].map(([name, value]) => writeProperty(name, value));
  return `{${[...system.map(([name, text]) => `${JSON.stringify(name)}:${JSON.stringify(text)}`), ...own].join(",")}}`;
}

export function toJson(entities) {
  return `[\n${entities.map(entityJson).join(",\n")}\n]\n`;
}

/**
 * Where a spreadsheet may see a formula: at the beginning of a cell, and at the beginning of what becomes a cell where
 * semicolons, tabs or lines separate cells, whatever the quotes say. Spreadsheets know the wide signs too.
 */
const FORMULA = /(^|[;\t\r\n])(["'\s]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
/** A text that is a plain number is none. */
const PLAIN_NUMBER = /^[+-]?[0-9]+(\.[0-9]+)?$/;

function guarded(text) {
  return PLAIN_NUMBER.test(text) ? text : text.replace(FORMULA, "$1$2'");
}

function cell(text) {
  return `"${text.replaceAll('"', '""')}"`;
}

/** Numbers and times have no room for a formula. Base64 may begin with a plus. */
function isText({ type }) {
  return type === "String" || type === "Binary";
}

/** CSV of these entities with these properties beside the keys. */
export function toCsv(entities, names) {
  const head = ["PartitionKey", "RowKey", "Timestamp", ...names.flatMap((name) => [name, `${name}@type`])];
  const lines = [head.map((name) => cell(guarded(name))).join(",")];
  for (const entity of entities) {
    const keys = [guarded(entity.partitionKey), guarded(entity.rowKey), entity.timestamp];
    const values = names.flatMap((name) => {
      const value = entity.properties.get(name);
      return value ? [isText(value) ? guarded(value.text) : value.text, `Edm.${value.type}`] : ["", ""];
    });
    lines.push([...keys, ...values].map(cell).join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

/** The names of all properties that these entities have, in the order in which they are met. */
export function namesIn(entities) {
  const names = new Set();
  for (const { properties } of entities) for (const name of properties.keys()) names.add(name);
  return [...names];
}

/** Reads pages until the end or the bound: `page(token)` gives {entities, next, size}. */
export async function collect(page, progress) {
  const entities = [];
  let token;
  let size = 0;
  do {
    const answer = await page(token);
    entities.push(...answer.entities);
    size += answer.size;
    token = answer.next;
    progress(entities.length);
    if (size > EXPORT_TEXT_MAX && token) return { entities, isCut: true };
  } while (token);
  return { entities, isCut: false };
}
