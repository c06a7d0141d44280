// The explorer for everybody: axe finds nothing serious, in any view, at any size, in light and in dark; and nothing
// is wider than a phone.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";

import { skip } from "./browser.mjs";
import { connect, fill, openExplorer, openPage } from "./explorer.mjs";
import { owner, queueOwner } from "./service.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const table = "t" + randomUUID().replaceAll("-", "");
const queue = `q${randomUUID()}`;
let explorer;

before(async () => {
  if (skip) return;
  explorer = await openExplorer();
  assert.equal((await owner("POST", "/Tables", JSON.stringify({ TableName: table }))).status, 201);
  await fill(table, 60, (index) => ({
    index,
    text: index % 2 ? "" : "words",
    "big@odata.type": "Edm.Int64",
    big: "1",
  }));
  await queueOwner("PUT", `/${queue}`);
  for (const text of ["plain", Buffer.from("decoded").toString("base64"), "third"]) {
    const body = `<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`;
    assert.equal((await queueOwner("POST", `/${queue}/messages`, body)).status, 201);
  }
});

after(async () => {
  if (skip) return;
  await owner("DELETE", `/Tables('${table}')`);
  await queueOwner("DELETE", `/${queue}`);
  await explorer.close();
});

/** Runs axe over what is shown. It is injected past the page's policy, as a browser's own tools are. */
async function check(page, what) {
  if (!(await page.evaluate(() => "axe" in window))) {
    const session = await page.context().newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: AXE });
  }
  const { violations, passes } = await page.evaluate(() =>
    window.axe.run(document, { resultTypes: ["violations"] }),
  );
  assert.ok(passes.length > 10, "axe looked at the page");
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const words = grave.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html, any }) => `${html} ${any[0]?.message}`).join("; ")}`,
  );
  assert.deepEqual(words, [], what);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${what} is ${overflow} pixels too wide`);
}

for (const size of ["desktop", "phone"]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`no serious findings (${size}, ${colorScheme})`, { skip }, async () => {
      const page = await openPage(explorer, size);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const visit = (hash) => page.evaluate((hash) => void (location.hash = hash), hash);
      await page.locator(".connect").waitFor();
      await check(page, "connecting");
      await connect(page);
      await page.locator(".welcome").waitFor();
      await page.getByText("For your program").waitFor();
      await check(page, "the overview");
      if (size === "phone") {
        await page.getByRole("button", { name: "Menu" }).click();
        await page.locator(".nav-link").first().waitFor();
        await check(page, "the menu");
        await page.keyboard.press("Escape");
      }
      await visit(`#/table/${table}?filter=${encodeURIComponent("index gt 3")}`);
      await page.locator("#cell-0-1").waitFor();
      await page.locator(".grid-body input").first().check();
      await check(page, "a table");
      await page.getByRole("combobox").click();
      await page.getByRole("combobox").fill("i");
      await page.locator(".suggestions li").first().waitFor();
      await check(page, "completion");
      await page.keyboard.press("Escape");
      await page.locator("#cell-1-1").dblclick();
      await page.locator(".property").first().waitFor();
      await check(page, "the form");
      await page.locator(".property [aria-label=Value]").first().fill("not a number");
      await page.locator(".field-error:visible").first().waitFor();
      await owner(
        "PUT",
        `/${table}(PartitionKey='p0000',RowKey='r00000005')`,
        JSON.stringify({ index: 5, added: true }),
      );
      await check(page, "the form with an error");
      await page.locator(".property [aria-label=Value]").first().fill("77");
      await page.locator("dialog.drawer").getByRole("button", { name: "Save", exact: true }).click();
      await page.locator(".conflict").waitFor();
      await check(page, "a conflict");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      await visit(`#/queue/${queue}`);
      await page.locator(".message").first().waitFor();
      await page.locator(".view-actions").getByRole("button", { name: "Take", exact: true }).click();
      await check(page, "taking");
      await page.getByLabel("Hidden for").fill("1");
      await page.locator("dialog").getByRole("button", { name: "Take" }).click();
      await page.locator("[aria-label='Taken messages'] .message").first().waitFor();
      await check(page, "a queue");
      await visit("#/live");
      await page.locator(".plot-line").first().waitFor({ state: "attached" });
      await check(page, "live charts");
      await visit("#/advice");
      await page.locator(".finding, .finding-none").first().waitFor();
      await check(page, "advice");
      await visit("#/pattern/log_tail");
      await page.locator(".pattern pre").waitFor();
      await check(page, "a pattern");
      assert.deepEqual(page.faults, []);
      await page.close();
    });
  }
}

test("a screen reader hears a grid, and what happens is said", { skip }, async () => {
  const page = await openPage(explorer);
  await connect(page);
  await page.evaluate((hash) => void (location.hash = hash), `#/table/${table}`);
  await page.locator("#cell-0-1").waitFor();
  const grid = page.getByRole("grid", { name: "Entities" });
  await grid.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  const heard = await grid.evaluate((element) => {
    const cell = document.getElementById(element.getAttribute("aria-activedescendant"));
    const headers = element.querySelectorAll("[role=columnheader]");
    return {
      rows: element.getAttribute("aria-rowcount"),
      areAllCounted: Number(element.getAttribute("aria-colcount")) === headers.length && headers.length >= 7,
      cell: [cell.getAttribute("role"), cell.getAttribute("aria-colindex"), cell.textContent],
      row: [cell.parentElement.getAttribute("role"), cell.parentElement.getAttribute("aria-rowindex")],
      groups: [...element.children].map((one) => one.getAttribute("role")),
    };
  });
  assert.deepEqual(heard, {
    rows: "61",
    areAllCounted: true,
    cell: ["gridcell", "2", "p0000"],
    row: ["row", "3"],
    groups: ["rowgroup", "rowgroup"],
  });
  await page.keyboard.press("Space");
  assert.equal(await page.locator('[role=row][aria-selected="true"]').count(), 1);
  // Saving is said in a live region, and the focus goes back to where it was.
  await page.keyboard.press("Enter");
  await page.locator("dialog.drawer").getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("status").getByText("Saved.").waitFor();
  assert.equal(await page.locator("#toasts").getAttribute("aria-live"), "polite");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "grid");
  await page.close();
});

test("motion is only for those who want it", { skip }, async () => {
  const page = await openPage(explorer, "phone");
  const duration = () =>
    page.locator("#sidebar").evaluate((one) => parseFloat(getComputedStyle(one).transitionDuration));
  assert.ok((await duration()) > 0);
  await page.emulateMedia({ reducedMotion: "reduce" });
  assert.equal(await duration(), 0);
  await page.close();
});

test("everything is reached by keyboard alone, and one sees where one is", { skip }, async () => {
  const page = await openPage(explorer);
  await connect(page);
  await page.locator(`.nav-link[href="#/table/${table}"]`).focus();
  await page.keyboard.press("Enter");
  await page.locator("#cell-0-1").waitFor();
  const reached = new Set();
  for (let index = 0; index < 40; index += 1) {
    await page.keyboard.press("Tab");
    const [name, outline] = await page.evaluate(() => {
      const element = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      const isSeen = element === document.body || (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1);
      return [element.getAttribute("aria-label") ?? element.textContent, isSeen];
    });
    assert.ok(outline, `${name} shows that it has the focus`);
    reached.add(name);
  }
  for (const name of [
    "Skip to the content",
    "Insert",
    "Read again",
    "More for this table",
    "Filter",
    "Saved filters",
    "Run",
    "Entities",
    "New table",
    "Disconnect",
  ]) {
    assert.ok(reached.has(name), `${name} among ${[...reached].join(", ")}`);
  }
  await page.close();
});
