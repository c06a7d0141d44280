// A headless browser, and pages of different origins.

import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

import { chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

function onPath(name) {
  for (const directory of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this directory.
    }
  }
}

const executablePath = NAMES.map(onPath).find(Boolean);

/** Why the tests are skipped; false when there is a browser. */
export const skip = executablePath ? false : `none of ${NAMES.join(", ")} is on the PATH`;
if (skip) console.log(`SKIPPED: the browser suite, because ${skip}`);

/** Starts a browser with a fresh profile. */
export async function openBrowser() {
  const profile = mkdtempSync(join(tmpdir(), "lazulite-browser-"));
  const context = await chromium.launchPersistentContext(profile, { executablePath, args: ARGUMENTS, headless: true });
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  return { context, close };
}

/** Serves an empty page on a free port: an origin that is not the service's. */
export async function openOrigin() {
  const server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end("<!doctype html><title>A page of somebody else</title>");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return { origin, close: () => new Promise((resolve) => server.close(resolve)) };
}

/**
 * The result of `fetch` in a script on a page of that origin: status, body and some headers, or the browser's error.
 */
export async function fetchFrom(context, origin, url, options = {}) {
  const page = await context.newPage();
  try {
    await page.goto(origin);
    return await page.evaluate(
      async ([url, options]) => {
        try {
          const response = await fetch(url, options);
          const headers = Object.fromEntries(response.headers.entries());
          return { status: response.status, body: await response.text(), headers };
        } catch (error) {
          return { error: String(error) };
        }
      },
      [url, options],
    );
  } finally {
    await page.close();
  }
}
