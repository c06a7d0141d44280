// The explorer in a browser: opens it, connects, and says what the page did wrong.

import { createHmac } from "node:crypto";

import { openBrowser } from "./browser.mjs";
import { openDevServer, settingsOf } from "./dev-server.mjs";

export const connectionString = process.env.LAZULITE_CONNECTION_STRING;
export const settings = settingsOf(connectionString ?? "");
export const SIZES = { desktop: { width: 1360, height: 860 }, phone: { width: 390, height: 844 } };

/** Whether the page comes from a real admin port. */
export const isReal = Boolean(process.env.LAZULITE_ADMIN);

/** A browser and the address of the page: the admin port that LAZULITE_ADMIN names, or the stand-in. */
export async function openExplorer() {
  const served = isReal
    ? { url: process.env.LAZULITE_ADMIN.replace(/\/$/, ""), close: async () => {} }
    : await openDevServer(connectionString);
  const browser = await openBrowser();
  const close = () => Promise.all([browser.close(), served.close()]);
  return { url: served.url, context: browser.context, close };
}

/** A page of the explorer that notes every error, and every breach of its policy. */
export async function openPage({ url, context }, size = "desktop", hash = "") {
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  await page.setViewportSize(SIZES[size]);
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    // A refusal of the service is a normal answer, and the browser mentions it all the same.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(message.text());
  });
  page.on("dialog", (dialog) => {
    faults.push(`a script opened a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.faults = faults;
  await page.goto(`${url}/${hash}`);
  return page;
}

/** Connects with the connection string, as a user does. */
export async function connect(page, text = connectionString) {
  await page.getByLabel("Connection string", { exact: true }).last().fill(text);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.locator(".sidebar .account-name small").waitFor({ state: "attached" });
}

function hmac(text) {
  return createHmac("sha256", Buffer.from(settings.AccountKey, "base64")).update(text, "utf8").digest("base64");
}

const VERSION = "2019-02-02";

function inAnHour() {
  return new Date(Date.now() + 3600_000).toISOString().slice(0, 19) + "Z";
}

/** A token for everything in the account. */
export function accountSas(permissions = "rwdlacup") {
  const expiry = inAnHour();
  const text = [settings.AccountName, permissions, "tq", "sco", "", expiry, "", "", VERSION, ""].join("\n");
  return new URLSearchParams({
    sv: VERSION,
    ss: "tq",
    srt: "sco",
    sp: permissions,
    se: expiry,
    sig: hmac(text),
  }).toString();
}

/** A token for one table. */
export function tableSas(table, permissions = "raud") {
  const expiry = inAnHour();
  const resource = `/table/${settings.AccountName}/${table.toLowerCase()}`;
  const sig = hmac([permissions, "", expiry, resource, "", "", "", VERSION, "", "", "", ""].join("\n"));
  return new URLSearchParams({ sv: VERSION, tn: table, sp: permissions, se: expiry, sig }).toString();
}

/** Inserts many entities by transactions of a hundred. `entityOf(index)` gives the properties. */
export async function fill(table, count, entityOf = (index) => ({ index })) {
  const endpoint = settings.TableEndpoint.replace(/\/$/, "");
  const send = async (from) => {
    const partition = `p${String(Math.floor(from / 1000)).padStart(4, "0")}`;
    const parts = [];
    for (let index = from; index < Math.min(from + 100, count); index += 1) {
      const entity = { PartitionKey: partition, RowKey: `r${String(index).padStart(8, "0")}`, ...entityOf(index) };
      parts.push(
        `--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n` +
          `POST ${endpoint}/${table} HTTP/1.1\r\n` +
          `Content-Type: application/json\r\nAccept: application/json\r\nPrefer: return-no-content\r\n\r\n` +
          `${JSON.stringify(entity)}\r\n`,
      );
    }
    const body = `--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${parts.join("")}--c--\r\n--b--\r\n`;
    const url = new URL(`${endpoint}/$batch`);
    const date = new Date().toUTCString();
    const text = `${date}\n/${settings.AccountName}${url.pathname}`;
    const headers = {
      "x-ms-date": date,
      "x-ms-version": VERSION,
      accept: "application/json",
      "content-type": "multipart/mixed; boundary=b",
      authorization: `SharedKeyLite ${settings.AccountName}:${hmac(text)}`,
    };
    const response = await fetch(url, { method: "POST", headers, body });
    const answer = await response.text();
    if (response.status !== 202 || /HTTP\/1.1 [45]/.test(answer)) {
      throw new Error(`${response.status} ${answer.slice(0, 500)}`);
    }
  };
  const left = Array.from({ length: Math.ceil(count / 100) }, (_, index) => index * 100);
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (left.length > 0) await send(left.shift());
    }),
  );
}
