// The explorer in a browser: opens it, connects, and says what the page did wrong.

import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";

import { openBrowser } from "./browser.mjs";
import { FILES, openDevServer, settingsOf } from "./dev-server.mjs";

export const connectionString = process.env.LAZULITE_CONNECTION_STRING;
export const settings = settingsOf(connectionString ?? "");
export const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

/** Whether the page comes from a real admin port. */
export const isReal = Boolean(process.env.LAZULITE_ADMIN);

/** A browser and the address of the page: the admin port that LAZULITE_ADMIN names, or the stand-in. */
export async function openExplorer() {
  const served = isReal
    ? { url: process.env.LAZULITE_ADMIN.replace(/\/$/, ""), close: async () => {} }
    : await openDevServer(connectionString);
  const browser = await openBrowser();
  if (isReal && process.env.LAZULITE_PAGE_FROM_DISK) await takeFromDisk(browser.context, served.url);
  const close = () => Promise.all([browser.close(), served.close()]);
  return { url: served.url, context: browser.context, close };
}

/** Lets the real port answer, and puts the file as it is on the disk in place of the one in the program. */
async function takeFromDisk(context, url) {
  await context.route(
    ({ origin, pathname }) => origin === url && /^\/([a-z]+\.(js|css|svg))?$/.test(pathname),
    async (route) => {
      const { pathname } = new URL(route.request().url());
      const name = pathname === "/" ? "index.html" : pathname.slice(1);
      const own = await route.fetch();
      // A file that the program does not have yet gets the headers of one that it has.
      const known = name.endsWith(".css") ? "style.css" : "app.js";
      const response = own.ok() ? own : await route.fetch({ url: `${url}/${known}` });
      await route.fulfill({ response, body: await readFile(`${FILES}/${name}`) });
    },
  );
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
  await page.exposeFunction("noteBreach", (text) => faults.push(`against the policy: ${text}`));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile, lineNumber }) =>
      window.noteBreach(`${violatedDirective} ${blockedURI} ${sourceFile}:${lineNumber}`),
    );
  });
  await page.goto(`${url}/${hash}`);
  return page;
}

/** Connects with the connection string, as a user does. */
export async function connect(page, text = connectionString) {
  await page.getByLabel("Connection string", { exact: true }).last().fill(text);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.locator(".sidebar .account-name small").waitFor({ state: "attached" });
}

/** A page that is connected and shows what `hash` names. */
export async function openConnected(explorer, size, hash) {
  const page = await openPage(explorer, size);
  await connect(page);
  if (hash) await visit(page, hash);
  return page;
}

export async function visit(page, hash) {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, hash);
}

/** Opens the menu where it is not in sight. */
export async function openMenu(page) {
  const toggle = page.getByRole("button", { name: "Menu" });
  if (await toggle.isVisible()) await toggle.click();
}

/** Waits until a table's result is complete or longer than that. */
export async function rows(page, atLeast = 0) {
  await page.waitForFunction((atLeast) => {
    const view = document.querySelector(".table-view");
    return view && (view.dataset.complete === "true" || Number(view.dataset.count) > atLeast);
  }, atLeast);
}

/** Ends a page, which must have done nothing wrong. */
export async function done(page) {
  assert.deepEqual(page.faults, []);
  await page.close();
}

/** A name that no table has yet. */
export function freshTable() {
  return "t" + randomUUID().replaceAll("-", "");
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

/** Thousands of entities, a thousand in each partition. */
function usualKeys(index) {
  return [`p${String(Math.floor(index / 1000)).padStart(4, "0")}`, `r${String(index).padStart(8, "0")}`];
}

/**
 * Inserts many entities by transactions of a hundred, several at a time. `entityOf(index)` gives the properties,
 * `keysOf(index)` the keys: each hundred must be of one partition.
 */
export async function fill(table, count, entityOf = (index) => ({ index }), keysOf = usualKeys, atOnce = 8) {
  const left = Array.from({ length: Math.ceil(count / 100) }, (_, index) => index * 100);
  const next = async () => {
    while (left.length > 0) {
      const from = left.shift();
      const indexes = Array.from({ length: Math.min(100, count - from) }, (_, offset) => from + offset);
      await sendBatch(
        table,
        indexes.map((index) => {
          const [PartitionKey, RowKey] = keysOf(index);
          return { PartitionKey, RowKey, ...entityOf(index) };
        }),
      );
    }
  };
  await Promise.all(Array.from({ length: atOnce }, next));
}

/** Inserts entities of one partition in one transaction. */
async function sendBatch(table, entities) {
  const endpoint = settings.TableEndpoint.replace(/\/$/, "");
  const parts = entities.map(
    (entity) =>
      `--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n` +
      `POST ${endpoint}/${table} HTTP/1.1\r\n` +
      `Content-Type: application/json\r\nAccept: application/json\r\nPrefer: return-no-content\r\n\r\n` +
      `${JSON.stringify(entity)}\r\n`,
  );
  const body = `--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${parts.join("")}--c--\r\n--b--\r\n`;
  const url = new URL(`${endpoint}/$batch`);
  const date = new Date().toUTCString();
  const headers = {
    "x-ms-date": date,
    "x-ms-version": VERSION,
    accept: "application/json",
    "content-type": "multipart/mixed; boundary=b",
    authorization: `SharedKeyLite ${settings.AccountName}:${hmac(`${date}\n/${settings.AccountName}${url.pathname}`)}`,
  };
  const response = await fetch(url, { method: "POST", headers, body });
  const answer = await response.text();
  if (response.status !== 202 || /HTTP\/1.1 [45]/.test(answer)) {
    throw new Error(`${response.status} ${answer.slice(0, 500)}`);
  }
}
