// Who we are: an account with its key or with a shared access signature, from whatever the user pasted.
//
// Promises: nothing is kept outside of this page's memory unless the user asks; forgetting removes it. Errors say
// what is missing. Leaves to others: signing (sign.js), sending (rest.js).

import { keep, recall } from "./dom.js";
import { importKey } from "./sign.js";

/** The account that every emulator has. Its key is published and protects nothing. */
export const DEVELOPMENT = {
  account: "devstoreaccount1",
  key: "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
};
const REMEMBERED = "lazulite.connection";

/** Reads a connection string into {account, key} or {account, sas}. */
export function fromConnectionString(text) {
  const settings = new Map();
  for (const part of text.trim().split(";")) {
    const at = part.indexOf("=");
    if (at > 0) settings.set(part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim());
  }
  if (settings.get("usedevelopmentstorage") === "true") return DEVELOPMENT;
  const endpoint = settings.get("tableendpoint") ?? settings.get("queueendpoint") ?? settings.get("blobendpoint");
  const account = settings.get("accountname") ?? (endpoint && accountOf(endpoint));
  if (!account) throw new Error("This connection string has neither AccountName nor an endpoint.");
  const sas = settings.get("sharedaccesssignature");
  if (sas) return fromSas(account, sas);
  const key = settings.get("accountkey");
  if (!key) throw new Error("This connection string has neither AccountKey nor SharedAccessSignature.");
  return { account, key };
}

/** The account that an endpoint names: the first label of its host, or the first segment of its path. */
function accountOf(endpoint) {
  const url = new URL(endpoint);
  const segment = url.pathname.split("/")[1];
  const isPlain = /^[\d.]+$|^\[/.test(url.hostname) || !url.hostname.includes(".");
  return isPlain ? segment : url.hostname.split(".")[0];
}

/** Reads a token, or a URL that carries one. `resource` names the queue or container, which no token does. */
export function fromSas(account, text, resource = "") {
  let token = text.trim();
  let named = resource.trim();
  if (/^https?:\/\//i.test(token)) {
    const url = new URL(token);
    account = accountOf(token) || account;
    const segments = url.pathname
      .split("/")
      .filter(Boolean)
      .filter((segment) => segment !== account);
    named ||= decodeURIComponent(segments[0] ?? "").replace(/\(.*$/, "");
    token = url.search;
  }
  const sas = new URLSearchParams(token.replace(/^\?/, ""));
  if (!sas.get("sig")) throw new Error("This is no shared access signature: it has no sig.");
  if (!account) throw new Error("The account's name is needed beside the signature.");
  const isAccountSas = sas.has("ss") && sas.has("srt");
  const table = sas.get("tn") ?? "";
  if (isAccountSas) return { account, sas };
  if (table) return { account, sas, table };
  const kind = sas.has("sr") ? "container" : "queue";
  if (kind === "container" && sas.get("sr") !== "c")
    throw new Error("This signature is for one blob, and there is nothing to list. Use one for its container.");
  if (!named) throw new Error(`A signature for one ${kind} does not say which: name the ${kind}.`);
  return { account, sas, [kind]: named };
}

/** The name and key of an account as typed. */
export function fromKey(account, key) {
  if (!/^[a-z0-9]{3,24}$/.test(account.trim()))
    throw new Error("An account's name has 3 to 24 lower-case letters and digits.");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(key.trim())) throw new Error("The key is not Base64.");
  return { account: account.trim(), key: key.trim() };
}

/** Makes a connection ready to sign. The key's text is not kept. */
export async function open(connection) {
  const { account, key, sas, table, queue, container } = connection;
  if (!key) return { account, sas, table, queue, container };
  if (!crypto.subtle)
    throw new Error(
      "Browsers sign only on pages that came by HTTPS or from this machine. " +
        "Open the explorer that way, or connect with a shared access signature.",
    );
  try {
    return { account, key: await importKey(key) };
  } catch {
    throw new Error("The key is not Base64.");
  }
}

/** Keeps a connection in this browser, because the user asked for it. */
export function remember({ account, key, sas, table, queue, container }) {
  keep(REMEMBERED, JSON.stringify({ account, key, sas: sas?.toString(), table, queue, container }));
}

export function remembered() {
  try {
    const kept = JSON.parse(recall(REMEMBERED));
    return kept && { ...kept, sas: kept.sas && new URLSearchParams(kept.sas) };
  } catch {
    return null;
  }
}

export function forget() {
  keep(REMEMBERED, null);
}
