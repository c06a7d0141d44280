// The explorer with much data and under load: filters and their plans, scrolling through a hundred thousand entities,
// charts that move, and every finding of the advisor.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { skip } from "./browser.mjs";
import { SAMPLE_ADVICE } from "./dev-server.mjs";
import { done, fill, freshTable, isReal, openConnected, openExplorer, openPage, rows, visit } from "./explorer.mjs";
import { owner } from "./service.mjs";

/** Four partitions of a thousand, and one that outgrows. */
const ENTITIES = 105_000;
const KINDS_FILE = new URL("../../crates/observe/src/advisor/findings.rs", import.meta.url);
const PROVOKE_SECONDS_MAX = 30;
const [many, backwards, near] = [freshTable(), freshTable(), freshTable()];
let explorer;
let isProvoked = false;
/** How many entities the large table has by now. */
let total = 0;

const padded = (number, digits) => String(number).padStart(digits, "0");
const keysOf = (index) => [`p${padded(Math.min(Math.floor(index / 1000), 4), 4)}`, `r${padded(index, 8)}`];

before(async () => {
  if (skip) return;
  explorer = await openExplorer();
  for (const table of [many, backwards, near]) {
    assert.equal((await owner("POST", "/Tables", JSON.stringify({ TableName: table }))).status, 201);
  }
  await addMany(ENTITIES);
});

after(async () => {
  if (skip) return;
  for (const table of [many, backwards, near]) await owner("DELETE", `/Tables('${table}')`);
  await explorer.close();
});

async function addMany(count) {
  const from = total;
  total += count;
  const entityOf = (index) => ({ index, even: index % 2 === 0, name: `entity ${index}` });
  await fill(
    many,
    count,
    (index) => entityOf(from + index),
    (index) => keysOf(from + index),
  );
}

/** The kinds of findings that the advisor knows, from its source. */
function knownKinds() {
  const source = readFileSync(KINDS_FILE, "utf8");
  return [...source.matchAll(/FindingKind::\w+ => "([a-z-]+)"/g)].map(([, name]) => name).sort();
}

async function query(table, filter) {
  const { status } = await owner("GET", `/${table}()?$filter=${encodeURIComponent(filter)}`);
  assert.equal(status, 200, filter);
}

async function advice() {
  return (await (await fetch(`${explorer.url}/api/advice`)).json()).findings;
}

/** Does everything that one should not do, until the advisor has said so. */
async function provokeFindings() {
  const large = Object.fromEntries(Array.from({ length: 14 }, (_, index) => [`part${index}`, "x".repeat(32_000)]));
  const wide = Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`n${index}`, index]));
  await owner("PUT", `/${near}(PartitionKey='p',RowKey='large')`, JSON.stringify(large));
  await owner("PUT", `/${near}(PartitionKey='p',RowKey='wide')`, JSON.stringify(wide));
  const countdown = (index) => [`d${padded(9999 - Math.floor(index / 100), 4)}`, `r${padded(99_999_999 - index, 8)}`];
  await fill(backwards, 6000, undefined, countdown, 1);
  for (let count = 0; count < 3; count += 1) {
    await query(many, `name eq 'nobody ${count}'`);
    await query(many, `PartitionKey ge 'p0000' and PartitionKey lt 'p0003' and index eq ${count}`);
    await query(many, `PartitionKey eq 'p0001' and index eq ${1000 + count}`);
    await query(many, `PartitionKey eq 'p0001' and RowKey ge 'r' and index eq ${1000 + count}`);
    await query(many, `PartitionKey eq 'p0001' and (RowKey eq 'r00001000' or RowKey eq 'r0000100${count + 1}')`);
    await query(many, `PartitionKey eq 'p0004' and index eq ${count}`);
  }
  // Nobody gets enough requests out of this browser's machine for a whole account.
  const wanted = knownKinds().filter((kind) => kind !== "hot-account");
  const until = Date.now() + PROVOKE_SECONDS_MAX * 1000;
  for (;;) {
    const kinds = new Set((await advice()).map(({ kind }) => kind));
    const missing = wanted.filter((kind) => !kinds.has(kind));
    isProvoked = missing.length === 0;
    if (isProvoked) return;
    assert.ok(Date.now() < until, `missing: ${missing.join(", ")}`);
    // Rates fade; so there is more of the same for the partition at the end.
    await addMany(10_000);
  }
}

async function assertShown(page, findings) {
  const cards = page.locator(".finding[data-id]");
  const read = (list) => list.map((one) => [one.dataset.id, one.dataset.kind, one.querySelector("h2").textContent]);
  const wanted = findings.map(({ id, kind, title }) => [id, kind, title]);
  assert.deepEqual((await cards.evaluateAll(read)).sort(), wanted.sort());
}

for (const size of ["desktop", "phone"]) {
  test(`findings are provoked and shown, with their patterns (${size})`, { skip: skip || !isReal }, async () => {
    if (!isProvoked) await provokeFindings();
    const page = await openPage(explorer, size);
    // The server's own answer, held still: rates fade from one answer to the next.
    let answer;
    await page.route("**/api/advice", async (route) => {
      answer ??= await (await route.fetch()).json();
      await route.fulfill({ json: answer });
    });
    await visit(page, "#/advice");
    await page.locator(".finding").first().waitFor();
    const { findings } = answer;
    await assertShown(page, findings);
    const ours = findings.filter(({ table }) => table === many || table === backwards || table === near);
    assert.ok(new Set(ours.map(({ kind }) => kind)).size >= 9, "of the provoked ones");
    const patterns = new Set(findings.map(({ pattern }) => pattern).filter(Boolean));
    for (const pattern of patterns) {
      const { id } = findings.find((one) => one.pattern === pattern);
      const hash = await page.locator(`.finding[data-id="${id}"] a[href^="#/pattern/"]`).getAttribute("href");
      await visit(page, hash);
      await page.locator(".pattern pre").waitFor();
      await visit(page, "#/advice");
      await page.locator(".finding").first().waitFor();
    }
    await done(page);
  });

  test(`every kind of finding is shown with all that it says (${size})`, { skip }, async () => {
    const { findings } = SAMPLE_ADVICE;
    assert.deepEqual([...new Set(findings.map(({ kind }) => kind))].sort(), knownKinds());
    const page = await openPage(explorer, size);
    await page.route("**/api/advice", (route) => route.fulfill({ json: SAMPLE_ADVICE }));
    await visit(page, "#/advice");
    await page.locator(".finding").first().waitFor();
    await assertShown(page, findings);
    const kinds = await page.locator(".finding[data-id]").evaluateAll((list) => list.map((one) => one.dataset.kind));
    const ranked = [...findings].sort((a, b) => a.rank - b.rank);
    assert.deepEqual(kinds, ranked.map(({ kind }) => kind));
    for (const { id, kind, severity, table, subject, explanation, remedy, sketch, numbers } of findings) {
      const text = (await page.locator(`.finding[data-id="${id}"]`).textContent()).replace(/\s+/g, " ");
      for (const part of [kind.replaceAll("-", " "), severity, table, subject, explanation, remedy, sketch])
        assert.ok(text.includes(part.replace(/\s+/g, " ")), `${kind}: ${part}`);
      assert.equal(
        await page.locator(`.finding[data-id="${id}"] .finding-numbers > div`).count(),
        Object.keys(numbers).length,
      );
    }
    await page.getByText("A month at this rate on the real service").waitFor();
    // When the causes are gone, so are the findings.
    await page.unroute("**/api/advice");
    await page.route("**/api/advice", (route) => route.fulfill({ json: { findings: [], memory_bound_bytes: 1 } }));
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.getByText("Nothing to report").waitFor();
    assert.equal(await page.locator(".finding[data-id]").count(), 0);
    await done(page);
  });

  test(`charts move under load (${size})`, { skip: skip || !isReal }, async () => {
    const page = await openPage(explorer, size, "#/live");
    await page.locator(".plot-line").first().waitFor({ state: "attached" });
    const shapes = () => page.locator(".plot path").evaluateAll((list) => list.map((one) => one.getAttribute("d")));
    const before = await shapes();
    let isDone = false;
    const load = Array.from({ length: 4 }, async () => {
      while (!isDone) {
        await owner("GET", `/${near}(PartitionKey='p',RowKey='wide')`);
        await query(many, "PartitionKey eq 'p0001' and RowKey lt 'r00001010'");
        await owner("GET", `/${near}(PartitionKey='p',RowKey='absent')`);
      }
    });
    const says = (words) =>
      page.waitForFunction(
        (source) =>
          [...document.querySelectorAll(".plot")].some((plot) =>
            new RegExp(source).test(plot.getAttribute("aria-label")),
          ),
        words.source,
      );
    try {
      await says(/^Requests a second: requests [1-9][\d,.]+, errors [1-9]/);
      await says(/^Latency: .* [1-9][\d.]* (µs|ms|s)/);
      await says(/^Queries a second, by plan: point [1-9].*row range [1-9]/);
      await says(/^Bytes a second: out [1-9][\d.]* [KM]iB/);
      await page.locator(".hot-name").getByText(near).first().waitFor();
      await page.locator(".storage dd").first().getByText(/[1-9].*B$/).waitFor();
    } finally {
      isDone = true;
      await Promise.all(load);
    }
    for (let wait = 0; wait < 50 && JSON.stringify(await shapes()) === JSON.stringify(before); wait += 1)
      await page.waitForTimeout(100);
    assert.notDeepEqual(await shapes(), before);
    await done(page);
  });

  test(`a filter is completed, planned before it runs, and explained after (${size})`, { skip }, async () => {
    const page = await openConnected(explorer, size, `#/table/${many}`);
    await rows(page);
    assert.equal(await page.locator(".plan-before").getAttribute("data-plan"), "table scan");
    const box = page.getByRole("combobox", { name: "Filter" });
    await box.click();
    await box.pressSequentially("Part");
    await page.keyboard.press("Tab");
    await box.pressSequentially("eq");
    await box.pressSequentially(" ");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await box.pressSequentially("p0003");
    assert.equal(await box.inputValue(), "PartitionKey eq 'p0003'");
    assert.equal(await page.locator(".plan-before").getAttribute("data-plan"), "partition scan");
    await page.keyboard.press("End");
    await box.pressSequentially(" and RowKey ge 'r00003990'");
    assert.equal(await page.locator(".plan-before").getAttribute("data-plan"), "row range");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Enter");
    await page.getByText("examined 10, returned 10").waitFor();
    assert.equal(await page.locator(".plan-after").getAttribute("data-plan"), "row range");
    assert.match(page.url(), /filter=PartitionKey/);
    await box.fill("PartitionKey eq 'p0003' and index lt 3005");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("examined 1,000, returned 5").waitFor();
    await box.fill("index lt");
    await page.getByText("A property or a value is expected.").waitFor();
    await box.fill("name eq 'nobody'");
    await page.keyboard.press("Enter");
    await page.getByText("No entity matches this filter.").waitFor();
    // Saved when asked, under a name, for this table.
    await page.getByRole("button", { name: "Saved filters" }).click();
    await page.getByRole("menuitem", { name: "Save this filter…" }).click();
    await page.getByLabel("Name", { exact: true }).fill("nobody");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await box.fill("");
    await page.keyboard.press("Enter");
    await rows(page);
    await page.getByRole("button", { name: "Saved filters" }).click();
    await page.getByRole("menuitem", { name: "nobody", exact: true }).click();
    assert.equal(await box.inputValue(), "name eq 'nobody'");
    await page.getByText("No entity matches this filter.").waitFor();
    await page.evaluate(() => localStorage.clear());
    await done(page);
  });

  test(`page through ${ENTITIES} entities by scrolling, in bounded memory (${size})`, { skip }, async () => {
    const page = await openConnected(explorer, size, `#/table/${many}`);
    await rows(page);
    const cdp = await page.context().newCDPSession(page);
    const heap = async () => {
      await cdp.send("HeapProfiler.collectGarbage");
      return (await cdp.send("Runtime.getHeapUsage")).usedSize;
    };
    const state = () =>
      page.evaluate(() => {
        const { count, kept, complete } = document.querySelector(".table-view").dataset;
        return {
          count: Number(count),
          kept: Number(kept),
          isComplete: complete === "true",
          nodes: document.querySelectorAll("*").length,
        };
      });
    const heaps = [];
    let most = 0;
    for (;;) {
      const before = (await state()).count;
      await page.waitForFunction((before) => {
        document.querySelector(".grid").scrollTo(0, 1e9);
        const { count, complete } = document.querySelector(".table-view").dataset;
        return complete === "true" || Number(count) > before;
      }, before);
      const now = await state();
      most = Math.max(most, now.kept);
      assert.ok(now.nodes < 1500, `${now.nodes} elements in the page`);
      if (now.count % 20_000 === 0) heaps.push(await heap());
      if (now.isComplete) break;
    }
    assert.equal((await state()).count, total);
    assert.ok(most <= 8000, `${most} entities in memory`);
    const [early, late] = [heaps[0], heaps.at(-1)];
    assert.ok(late < early * 1.5 + 4e6, `the heap grew from ${early} to ${late}`);
    console.log(
      `# heap after 20,000 entities ${(early / 1e6).toFixed(1)} MB, after ${total} ${(late / 1e6).toFixed(1)} MB`,
    );
    await page.evaluate(() => document.querySelector(".grid").scrollTo(0, 1e9));
    await page.getByText(`r${padded(total - 1, 8)}`).waitFor();
    // Back to the middle: forgotten pages are read again.
    await page.evaluate(() => {
      const grid = document.querySelector(".grid");
      grid.scrollTo(0, grid.scrollHeight / 2);
    });
    await page
      .locator(`[data-row="${total / 2}"]`)
      .getByText(`r${padded(total / 2, 8)}`)
      .waitFor();
    await page.evaluate(() => document.querySelector(".grid").scrollTo(0, 0));
    await page.locator('[data-row="0"]').getByText("r00000000").waitFor();
    assert.equal((await state()).count, total);
    await done(page);
  });
}
