// The explorer end to end, in a real browser, at the size of a desk and of a phone: connecting, conflicts, the
// keyboard, selections and files, queues. Values, much data, and safety have files of their own.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";

import { skip } from "./browser.mjs";
import {
  accountSas,
  connect,
  connectionString,
  done,
  fill,
  freshTable,
  openConnected,
  openExplorer,
  openMenu,
  openPage,
  rows,
  settings,
  tableSas,
  visit,
} from "./explorer.mjs";
import { owner, queueOwner } from "./service.mjs";

const edited = freshTable();
const made = [edited];
let explorer;

before(async () => {
  if (skip) return;
  explorer = await openExplorer();
  assert.equal((await owner("POST", "/Tables", JSON.stringify({ TableName: edited }))).status, 201);
  await owner("PUT", `/${edited}(PartitionKey='p',RowKey='r')`, '{"mine":"old","theirs":"old","same":1}');
});

after(async () => {
  if (skip) return;
  for (const table of made) await owner("DELETE", `/Tables('${table}')`);
  await explorer.close();
});

/** A table with so many entities, removed at the end. */
async function tableWith(count, entityOf) {
  const table = freshTable();
  made.push(table);
  await owner("POST", "/Tables", JSON.stringify({ TableName: table }));
  await fill(table, count, entityOf);
  return table;
}

for (const size of ["desktop", "phone"]) {
  test(`connect with the key, and nothing is stored (${size})`, { skip }, async () => {
    const page = await openPage(explorer, size);
    await page.getByRole("radio", { name: "Account key" }).check();
    await page.getByLabel("Account", { exact: true }).fill(settings.AccountName);
    await page.getByLabel("Key", { exact: true }).fill("AAAA" + settings.AccountKey.slice(4));
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await page.getByText("refuses the signature").waitFor();
    await page.getByLabel("Key", { exact: true }).fill(settings.AccountKey);
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await page.getByRole("heading", { name: settings.AccountName }).waitFor();
    const stored = await page.evaluate(() => [
      localStorage.length,
      sessionStorage.length,
      document.cookie.includes("Key"),
    ]);
    assert.deepEqual(stored, [0, 0, false]);
    await openMenu(page);
    await page.locator(`.nav-link[href="#/table/${edited}"]`).click();
    await rows(page);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), edited);
    await done(page);
  });

  test(`connect with a connection string; a wrong one is refused in words (${size})`, { skip }, async () => {
    const page = await openPage(explorer, size);
    const box = page.getByLabel("Connection string", { exact: true }).last();
    for (const [text, words] of [
      ["", /neither AccountName nor an endpoint/],
      ["AccountName=abc", /neither AccountKey nor SharedAccessSignature/],
      [`AccountName=${settings.AccountName};AccountKey=*`, /not Base64/],
      [connectionString.replace(settings.AccountName, "nobodyhere"), /The server/],
    ]) {
      await box.fill(text);
      await page.getByRole("button", { name: "Connect", exact: true }).click();
      await page.locator(".form-error:visible").getByText(words).waitFor();
      await box.fill("x");
    }
    await connect(page);
    await page.getByRole("heading", { name: settings.AccountName }).waitFor();
    await done(page);
  });

  test(`what was typed is not lost by Escape (${size})`, { skip }, async () => {
    const page = await openConnected(explorer, size, `#/table/${edited}`);
    await rows(page);
    await page.locator("#cell-0-1").dblclick();
    const form = page.locator("dialog.drawer");
    await form.locator(".property").first().waitFor();
    // Nothing was typed, so nobody asks.
    await page.keyboard.press("Escape");
    await form.waitFor({ state: "detached" });
    await page.locator("#cell-0-1").dblclick();
    const value = form.getByRole("group", { name: "mine" }).getByLabel("Value");
    await value.fill("half a senten");
    await page.keyboard.press("Escape");
    await page.getByText("Leave without saving?").waitFor();
    await page.getByRole("button", { name: "Cancel" }).last().click();
    assert.equal(await value.inputValue(), "half a senten");
    await form.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Leave", exact: true }).click();
    await form.waitFor({ state: "detached" });
    await done(page);
  });

  test(`a conflict is shown side by side, and only the chosen is saved (${size})`, { skip }, async () => {
    await owner("PUT", `/${edited}(PartitionKey='p',RowKey='r')`, '{"mine":"old","theirs":"old","same":1}');
    const page = await openConnected(explorer, size, `#/table/${edited}`);
    await rows(page);
    await page.locator("#cell-0-1").dblclick();
    const form = page.locator("dialog.drawer");
    await form.getByRole("group", { name: "mine" }).getByLabel("Value").fill("new from me");
    await owner(
      "PUT",
      `/${edited}(PartitionKey='p',RowKey='r')`,
      '{"mine":"theirs too","theirs":"new from them","same":1,"added":true}',
    );
    await form.getByRole("button", { name: "Save", exact: true }).click();
    const conflict = page.locator(".conflict");
    await conflict.waitFor();
    const cells = await conflict
      .locator("tbody tr")
      .evaluateAll((list) =>
        list.map((row) => [...row.children].map((cell) => cell.textContent.replace(/ (String|Boolean)$/, ""))),
      );
    assert.deepEqual(cells, [
      ["mine", "old", "new from me", "theirs too"],
      ["theirs", "old", "old", "new from them"],
      ["added", "absent", "absent", "true"],
    ]);
    // Once more, behind our back: it is noticed again.
    await owner(
      "PUT",
      `/${edited}(PartitionKey='p',RowKey='r')`,
      '{"mine":"theirs again","theirs":"newest","same":1,"added":true}',
    );
    await page.getByRole("button", { name: "Save this choice" }).click();
    await conflict.getByText("newest").waitFor();
    await page.getByRole("button", { name: "Save this choice" }).click();
    await form.waitFor({ state: "detached" });
    const { mine, theirs, same, added } = JSON.parse(
      (await owner("GET", `/${edited}(PartitionKey='p',RowKey='r')`)).text,
    );
    assert.deepEqual([mine, theirs, same, added], ["new from me", "newest", 1, true]);
    await done(page);
  });
}

test("the keyboard moves, selects, opens and deletes", { skip }, async () => {
  const table = await tableWith(30);
  const page = await openConnected(explorer, "desktop", `#/table/${table}`);
  await rows(page);
  await page.locator("#cell-0-1").waitFor();
  await page.locator(".grid").focus();
  for (const key of ["ArrowDown", "ArrowDown", "Space", "ArrowDown", "Space"]) await page.keyboard.press(key);
  await page.getByText("2 selected").waitFor();
  assert.equal(await page.locator(".grid").getAttribute("aria-activedescendant"), "cell-3-0");
  await page.keyboard.press("Shift+ArrowDown");
  await page.getByText("3 selected").waitFor();
  await page.keyboard.press("Delete");
  await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("27 entities").first().waitFor();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "filter");
  await done(page);
});

for (const size of ["desktop", "phone"]) {
  test(`connect with signatures: for the account, for one table, for a bad one (${size})`, { skip }, async () => {
    const attempt = async (token) => {
      const page = await openPage(explorer, size);
      await page.getByRole("radio", { name: "SAS" }).check();
      await page.getByLabel("Account", { exact: true }).fill(settings.AccountName);
      await page.getByLabel("Signature or URL").fill(token);
      await page.getByRole("button", { name: "Connect", exact: true }).click();
      return page;
    };
    const everything = await attempt(accountSas());
    await everything.getByRole("heading", { name: settings.AccountName }).waitFor();
    await openMenu(everything);
    await everything.locator(`.nav-link[href="#/table/${edited}"]`).click();
    await rows(everything);
    await done(everything);

    const one = await attempt(`${settings.TableEndpoint}/${edited}?${tableSas(edited)}`);
    await rows(one);
    assert.equal(await one.getByRole("heading", { level: 1 }).textContent(), edited);
    assert.equal(await one.locator(".nav-section .nav-link").count(), 1);
    await done(one);

    const bad = await attempt(accountSas().replace(/sig=[^&]*/, "sig=AAAA"));
    await bad.getByText("refuses the signature").waitFor();
    await done(bad);

    // In a connection string, as SDKs take it; and one that may only read says so when it is asked for more.
    const endpoints = `TableEndpoint=${settings.TableEndpoint};QueueEndpoint=${settings.QueueEndpoint}`;
    const reader = await openPage(explorer, size);
    await connect(reader, `${endpoints};SharedAccessSignature=${accountSas("rl")}`);
    await visit(reader, `#/table/${edited}`);
    await rows(reader);
    await reader.locator("#cell-0-1").dblclick();
    await reader.locator("dialog.drawer").getByRole("button", { name: "Save", exact: true }).click();
    await reader.getByText("AuthorizationPermissionMismatch").waitFor();
    await done(reader);
  });

  test(`several are exported, and deleted unless somebody changed them (${size})`, { skip }, async () => {
    const long = { "long@odata.type": "Edm.Int64", long: "9223372036854775807" };
    const table = await tableWith(5, (index) => ({ index, ...long }));
    const page = await openConnected(explorer, size, `#/table/${table}`);
    await rows(page);
    await page.getByLabel("Select p0000 r00000001").check();
    await page.getByLabel("Select p0000 r00000003").check();
    const save = async (name) => {
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
      return readFile(await file.path(), "utf8");
    };
    const csv = await save("Export the selected as CSV");
    assert.match(csv, /^"PartitionKey","RowKey","Timestamp","index","index@type","long","long@type"\r\n/);
    assert.equal(csv.split("\r\n").length, 4);
    assert.match(csv, /"3","Edm.Int32","9223372036854775807","Edm.Int64"/);
    assert.deepEqual(
      JSON.parse(await save("Export the selected as JSON")).map((one) => [one.index, one.long]),
      [
        [1, "9223372036854775807"],
        [3, "9223372036854775807"],
      ],
    );
    await owner("PUT", `/${table}(PartitionKey='p0000',RowKey='r00000003')`, '{"index":33}');
    await page.getByRole("region", { name: "Selection" }).getByRole("button", { name: "Delete" }).click();
    await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("1 entity was changed by somebody else").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("4 entities").first().waitFor();
    assert.equal(JSON.parse((await owner("GET", `/${table}(PartitionKey='p0000',RowKey='r00000003')`)).text).index, 33);
    await page.getByRole("button", { name: "More for this table" }).click();
    const [whole] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "Export the result as JSON" }).click(),
    ]);
    assert.equal(JSON.parse(await readFile(await whole.path(), "utf8")).length, 4);
    await page.getByRole("button", { name: "More for this table" }).click();
    await page.getByRole("menuitem", { name: "Delete this table…" }).click();
    await page.getByLabel(`Type ${table} to confirm`).fill(table);
    await page.getByRole("button", { name: "Delete the table" }).click();
    await page.getByRole("heading", { name: settings.AccountName }).waitFor();
    assert.equal((await owner("GET", `/Tables('${table}')`)).status, 404);
    await done(page);
  });

  test(`queue work: put, look, take, update, release, delete, clear (${size})`, { skip }, async () => {
    const page = await openConnected(explorer, size);
    const name = `q${randomUUID()}`;
    await openMenu(page);
    await page.getByRole("button", { name: "New queue" }).click();
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("No message is visible.").waitFor();
    const action = (label) => page.locator(".view-actions").getByRole("button", { name: label, exact: true });
    const put = async (text, isBase64) => {
      await action("Put").click();
      await page.getByLabel("Text", { exact: true }).fill(text);
      if (isBase64) await page.getByLabel("Encode as Base64").check();
      await page.locator("dialog").getByRole("button", { name: "Put" }).click();
    };
    await put("first <b>&amp;", false);
    await put("zweite Ü", true);
    await page.getByText("2 messages, hidden ones included").waitFor();
    const texts = page.locator("[aria-label='Waiting messages'] pre");
    assert.deepEqual(await texts.allTextContents(), ["first <b>&amp;", "zweite Ü"]);
    await action("Take").click();
    await page.getByLabel("How many").fill("2");
    await page.locator("dialog").getByRole("button", { name: "Take" }).click();
    await page.getByText("No message is visible.").waitFor();
    const taken = page.locator("[aria-label='Taken messages'] .message");
    assert.equal(await taken.count(), 2);
    await taken.filter({ hasText: "first" }).getByRole("button", { name: "Update…" }).click();
    await page.getByLabel("Text", { exact: true }).fill("first, changed");
    await page.locator("dialog").getByRole("button", { name: "Update" }).click();
    await taken.filter({ hasText: "first, changed" }).getByRole("button", { name: "Release" }).click();
    await texts.getByText("first, changed").waitFor();
    await taken.filter({ hasText: "zweite" }).getByRole("button", { name: "Delete" }).click();
    await page.getByText("1 message, hidden ones included").waitFor();
    await page.getByRole("button", { name: "More for this queue" }).click();
    await page.getByRole("menuitem", { name: "Remove all messages…" }).click();
    await page.getByRole("button", { name: "Remove all" }).click();
    await page.getByText("0 messages, hidden ones included").waitFor();
    await page.getByRole("button", { name: "More for this queue" }).click();
    await page.getByRole("menuitem", { name: "Delete this queue…" }).click();
    await page.getByLabel(`Type ${name} to confirm`).fill(name);
    await page.getByRole("button", { name: "Delete the queue" }).click();
    await page.getByRole("heading", { name: settings.AccountName }).waitFor();
    assert.equal((await queueOwner("GET", `/${name}?comp=metadata`)).status, 404);
    await done(page);
  });
}
