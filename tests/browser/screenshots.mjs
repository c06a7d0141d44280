// Makes pictures of the explorer: `node screenshots.mjs DIRECTORY [SECONDS]`, with LAZULITE_CONNECTION_STRING naming a
// running server (and LAZULITE_ADMIN its admin port; without it the stand-in serves the page). Fills tables and queues
// with a small shop, uses them as a program with some faults would for so many seconds, and removes them at the end.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { skip } from "./browser.mjs";
import { connect, fill, openExplorer, openPage } from "./explorer.mjs";
import { owner, queueOwner } from "./service.mjs";

const folder = process.argv[2] ?? "screenshots";
const warmSeconds = Number(process.argv[3] ?? 20);
if (skip) process.exit(0);
mkdirSync(folder, { recursive: true });

const CITIES = ["Antwerp", "Bern", "Córdoba", "Delft", "Évora", "Ghent", "Lviv", "Malmö", "Pécs", "Turku"];
const STATES = ["shipped", "shipped", "paid", "packed", "returned"];
const FIRST = ["Ada", "Grace", "Edsger", "Barbara", "Donald", "Frances", "Alan", "Radia", "Niklaus", "Shafi"];
const LAST = ["Okafor", "Lindqvist", "Moreau", "Kowalska", "Ferreira", "Yilmaz", "Novák", "Haddad", "Byrne", "Ito"];
const DEPARTMENTS = ["Engineering", "Finance", "Sales", "Support"];
const TABLES = ["AuditLog", "Carts", "Orders", "People", "Sessions"];
const QUEUES = ["invoices", "mail", "resize-images"];

const pad = (number, digits) => String(number).padStart(digits, "0");
const customerOf = (index) => `customer-${pad(Math.floor(index / 100) * 7, 4)}`;
const dayOf = (index) => `2026-${pad(1 + ((index % 100) >> 3), 2)}-${pad(1 + ((index * 7) % 28), 2)}`;
const orderKeys = (index) => [customerOf(index), `${dayOf(index)}!${pad(index, 6)}`];
const order = (index) => ({
  City: CITIES[(index * 31) % CITIES.length],
  State: STATES[(index * 13) % STATES.length],
  "Total@odata.type": "Edm.Double",
  Total: ((index * 1237) % 90_000) / 100,
  Paid: index % 5 !== 0,
  Items: 1 + (index % 7),
  "Placed@odata.type": "Edm.DateTime",
  Placed: new Date(Date.UTC(2026, 0, 1) + index * 6_100_000).toISOString(),
  "Invoice@odata.type": "Edm.Int64",
  Invoice: String(9_007_199_254_740_993n + BigInt(index)),
});
const person = (index) => ({
  FirstName: FIRST[index % 10],
  LastName: LAST[(index * 7) % 10],
  EmailAddress: `${FIRST[index % 10]}.${pad(index, 3)}@example.com`.toLowerCase(),
  Age: 20 + (index % 45),
  Remote: index % 3 === 0,
});

async function furnish() {
  for (const name of TABLES) await owner("POST", "/Tables", JSON.stringify({ TableName: name }));
  await fill("Orders", 12_000, order, orderKeys);
  await fill("People", 400, person, (index) => [DEPARTMENTS[Math.floor(index / 100)], pad(index, 6)]);
  await fill("Sessions", 900, (index) => ({ User: customerOf(index * 11), Hits: index % 40 }));
  for (const name of QUEUES) await queueOwner("PUT", `/${name}`);
  for (let index = 0; index < 6; index += 1) {
    const text = JSON.stringify({ order: 1200 + index, template: "shipped", to: `${FIRST[index]}@example.com` });
    const body = index % 2 ? Buffer.from(text).toString("base64") : text;
    await queueOwner("POST", "/mail/messages", `<QueueMessage><MessageText>${body}</MessageText></QueueMessage>`);
  }
}

/** A program that uses the shop until it is told to stop: mostly points and ranges, and some queries that scan. */
function useShop() {
  let isDone = false;
  let turn = 0;
  const query = (table, filter) => owner("GET", `/${table}()?$filter=${encodeURIComponent(filter)}`);
  const worker = async () => {
    while (!isDone) {
      turn += 1;
      const index = (turn * 7919) % 12_000;
      const [partitionKey, rowKey] = orderKeys(index);
      await owner("GET", `/Orders(PartitionKey='${partitionKey}',RowKey='${rowKey}')`);
      if (turn % 3 === 0) await query("Orders", `PartitionKey eq '${partitionKey}' and RowKey ge '2026-12'`);
      const address = `ada.${pad(turn % 400, 3)}@example.com`;
      if (turn % 7 === 0) await query("People", `PartitionKey eq 'Sales' and EmailAddress eq '${address}'`);
      if (turn % 11 === 0) await owner("GET", "/Sessions(PartitionKey='p0000',RowKey='none')");
      if (turn % 5 === 0) {
        const place = `/AuditLog(PartitionKey='2026-11-16',RowKey='${pad(Date.now(), 14)}-${pad(turn, 8)}')`;
        await owner("PUT", place, JSON.stringify({ What: "viewed", Who: partitionKey }));
      }
      if (turn % 60 === 0) await query("Orders", `City eq '${CITIES[turn % 10]}' and Paid eq false`);
      // Busier and quieter, as shops are.
      const pause = 4 + 4 * Math.sin(Date.now() / 9000) + 3 * Math.sin(Date.now() / 2300);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, pause)));
    }
  };
  const workers = Array.from({ length: 3 }, worker);
  return async () => {
    isDone = true;
    await Promise.all(workers);
  };
}

await furnish();
const leave = useShop();
await new Promise((resolve) => setTimeout(resolve, warmSeconds * 1000));
const explorer = await openExplorer();

async function pictures(size, theme) {
  const page = await openPage(explorer, size);
  if (size === "desktop") await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
  const picture = (name) => page.screenshot({ path: join(folder, `${name}-${size}-${theme}.png`) });
  const visit = async (hash, selector) => {
    await page.evaluate((hash) => void (location.hash = hash), hash);
    await page.locator(selector).first().waitFor();
    await page.waitForTimeout(400);
  };
  await page.locator(".connect").waitFor();
  await picture("connect");
  await connect(page);
  await page.waitForTimeout(600);
  await picture("overview");
  const customer = customerOf(2100);
  const filter = `PartitionKey eq '${customer}' and RowKey ge '2026-03' and Paid eq true`;
  await visit(`#/table/Orders?filter=${encodeURIComponent(filter)}`, "#cell-0-1");
  await page.locator(".grid-body input").nth(2).check();
  await page.locator(".grid-body input").nth(4).check();
  await picture("selected");
  await page.getByRole("button", { name: "Clear" }).click();
  await picture("table");
  await page.locator("#cell-1-1").dblclick();
  await page.locator(".property").first().waitFor();
  await page.waitForTimeout(300);
  await picture("form");
  await page.locator("dialog").getByRole("group", { name: "City" }).getByLabel("Value").fill("Leuven");
  const place = (await page.locator("#cell-1-2").textContent()).trim();
  const entity = `/Orders(PartitionKey='${customer}',RowKey='${place}')`;
  await owner("PATCH", entity, '{"City":"Mechelen","Paid":false}');
  await page.locator("dialog.drawer").getByRole("button", { name: "Save", exact: true }).click();
  await page.locator(".conflict").waitFor();
  await picture("conflict");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await owner("PATCH", entity, '{"City":"Ghent","Paid":true}');
  await visit("#/table/Orders", "#cell-0-1");
  await page.getByRole("combobox").click();
  await page.getByRole("combobox").pressSequentially("City eq 'Ghent' and P");
  await page.waitForTimeout(200);
  await picture("filter");
  await page.keyboard.press("Escape");
  await visit("#/table/Carts", ".grid-notice");
  await picture("empty");
  await visit("#/queue/mail", ".message");
  await picture("queue");
  await visit("#/live", ".plot path");
  await page.waitForTimeout(1200);
  await picture("live");
  await visit("#/advice", ".finding, .finding-none");
  await picture("advice");
  await visit("#/pattern/log_tail", ".pattern pre");
  await picture("pattern");
  if (size === "phone") {
    await page.getByRole("button", { name: "Menu" }).click();
    await page.waitForTimeout(300);
    await picture("menu");
  }
  if (page.faults.length > 0) throw new Error(page.faults.join("\n"));
  await page.close();
}

try {
  for (const size of ["desktop", "phone"]) for (const theme of ["light", "dark"]) await pictures(size, theme);
} finally {
  await leave();
  for (const name of TABLES) await owner("DELETE", `/Tables('${name}')`);
  for (const name of QUEUES) await queueOwner("DELETE", `/${name}`);
  await explorer.close();
}
console.log(`Pictures are in ${folder}`);
