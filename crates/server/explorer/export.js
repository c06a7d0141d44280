// Entities as files: JSON, which loses nothing, and CSV, which opens anywhere.
//
// Promises: JSON is what the service itself would send, type annotations included. CSV has a column for each property
// and one for its type, every cell quoted; text that a spreadsheet would run as a formula gets a leading apostrophe
// unless the user declines. Memory is bounded.

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

const FORMULA = /^[=+\-@\t\r]/;

function cell(text) {
  return `"${text.replaceAll('"', '""')}"`;
}

/** CSV of these entities with these properties beside the keys. */
export function toCsv(entities, names, { isGuarded = true } = {}) {
  const guard = (text, type) => (isGuarded && type === "String" && FORMULA.test(text) ? `'${text}` : text);
  const head = ["PartitionKey", "RowKey", "Timestamp", ...names.flatMap((name) => [name, `${name}@type`])];
  const lines = [head.map(cell).join(",")];
  for (const entity of entities) {
    const keys = [guard(entity.partitionKey, "String"), guard(entity.rowKey, "String"), entity.timestamp];
    const values = names.flatMap((name) => {
      const value = entity.properties.get(name);
      return value ? [guard(value.text, value.type), `Edm.${value.type}`] : ["", ""];
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
