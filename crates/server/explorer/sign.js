// Signing in the browser: Shared Key by WebCrypto. The key never leaves the page, and is held as a CryptoKey that
// cannot be read back.
//
// Promises: Table requests are signed in the short form (Shared Key Lite), Queue and Blob requests in the full form,
// each over the service's own path. Leaves to others: sending (rest.js), shared access signatures (connection.js).

import { bytesOf } from "./types.js";

/** Imports an account key given in Base64. */
export async function importKey(base64) {
  return crypto.subtle.importKey("raw", bytesOf(base64), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

async function hmac(key, text) {
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
  return btoa(String.fromCharCode(...signature));
}

/** The string to sign of a Table request: date and resource. `path` is percent-encoded, as sent. */
export function tableStringToSign(account, path, query, date) {
  const comp = query.get("comp");
  return `${date}\n/${account}${path}${comp === null ? "" : `?comp=${comp}`}`;
}

/** The string to sign of a Queue or Blob request. The names of `headers` are in lower case. */
export function fullStringToSign(account, method, path, query, headers, contentLength) {
  const length = contentLength ? String(contentLength) : "";
  const text = (name) => headers[name] ?? "";
  const standard = ["", "", length, "", text("content-type"), "", "", text("if-match"), text("if-none-match"), "", ""];
  const ours = Object.entries(headers).filter(([name]) => name.startsWith("x-ms-"));
  ours.sort(([a], [b]) => (a < b ? -1 : 1));
  const parameters = new Map();
  for (const [name, value] of query) {
    const lower = name.toLowerCase();
    parameters.set(lower, [...(parameters.get(lower) ?? []), value]);
  }
  const resource = [...parameters].sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    [method, ...standard].join("\n") +
    "\n" +
    ours.map(([name, value]) => `${name}:${value.trim()}\n`).join("") +
    `/${account}${path}` +
    resource.map(([name, values]) => `\n${name}:${values.sort().join(",")}`).join("")
  );
}

/** The Authorization header of a Table request. */
export async function signTable(account, key, path, query, date) {
  return `SharedKeyLite ${account}:${await hmac(key, tableStringToSign(account, path, query, date))}`;
}

/** The Authorization header of a Queue or Blob request. */
export async function signFull(account, key, method, path, query, headers, contentLength) {
  const text = fullStringToSign(account, method, path, query, headers, contentLength);
  return `SharedKey ${account}:${await hmac(key, text)}`;
}
