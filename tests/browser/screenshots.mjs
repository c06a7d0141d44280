// Makes pictures of the explorer: `node screenshots.mjs DIRECTORY`, with LAZULITE_CONNECTION_STRING naming a running
// server (and LAZULITE_ADMIN its admin port; without it the stand-in serves the page). Fills a table and a queue of its
// own, and removes them at the end.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { skip } from "./browser.mjs";
import { connect, fill, openExplorer, openPage } from "./explorer.mjs";
import { owner, queueOwner } from "./service.mjs";

const folder = process.argv[2] ?? "screenshots";
if (skip) process.exit(0);
mkdirSync(folder, { recursive: true });

const CITIES = ["Antwerp", "Bern", "Córdoba", "Delft", "Évora", "Ghent", "Lviv", "Malmö", "Pécs", "Turku"];
const orders = (index) => ({
  Customer: `customer-${String((index * 7919) % 613).padStart(4, "0")}`,
  City: CITIES[(index * 31) % CITIES.length],
  "Total@odata.type": "Edm.Double",
  Total: ((index * 1237) % 90_000) / 100,
  Paid: index % 3 !== 0,
  "Placed@odata.type": "Edm.DateTime",
  Placed: new Date(Date.UTC(2026, 0, 1) + index * 61_000).toISOString(),
  "Number@odata.type": "Edm.Int64",
  Number: String(9_007_199_254_740_993n + BigInt(index)),
});

const tables = ["Orders", "Employees", "Sessions"];
for (const name of tables) await owner("POST", "/Tables", JSON.stringify({ TableName: name }));
await fill("Orders", 5000, orders);
await fill("Employees", 240, (index) => ({ FirstName: `Ada ${index}`, Age: 20 + (index % 45) }));
await queueOwner("PUT", "/mail");
await queueOwner("PUT", "/resize-images");
for (let index = 0; index < 6; index += 1) {
  const text = JSON.stringify({ order: 1200 + index, template: "shipped", to: `customer-${index}@example.com` });
  const body = index % 2 ? Buffer.from(text).toString("base64") : text;
  await queueOwner("POST", "/mail/messages", `<QueueMessage><MessageText>${body}</MessageText></QueueMessage>`);
}

const explorer = await openExplorer();
try {
  for (const size of ["desktop", "phone"]) {
    for (const theme of ["light", "dark"]) {
      const page = await openPage(explorer, size);
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
      const filter = "PartitionKey eq 'p0001' and RowKey ge 'r00001200' and Paid eq true";
      await visit(`#/table/Orders?filter=${encodeURIComponent(filter)}`, "#cell-0-1");
      await picture("table");
      await page.locator("#cell-1-1").dblclick();
      await page.locator(".property").first().waitFor();
      await page.waitForTimeout(300);
      await picture("form");
      await page.locator("dialog").getByRole("group", { name: "City" }).getByLabel("Value").fill("Leuven");
      const place = (await page.locator("#cell-1-2").textContent()).trim();
      await owner("PATCH", `/Orders(PartitionKey='p0001',RowKey='${place}')`, '{"City":"Mechelen","Paid":false}');
      await page.locator("dialog.drawer").getByRole("button", { name: "Save", exact: true }).click();
      await page.locator(".conflict").waitFor();
      await picture("conflict");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      await owner("PATCH", `/Orders(PartitionKey='p0001',RowKey='${place}')`, '{"City":"Ghent","Paid":true}');
      await visit("#/table/Orders", "#cell-0-1");
      await page.getByRole("combobox").click();
      await page.getByRole("combobox").pressSequentially("City eq 'Ghent' and P");
      await page.waitForTimeout(200);
      await picture("filter");
      await page.keyboard.press("Escape");
      await visit("#/queue/mail", ".message");
      await picture("queue");
      await visit("#/live", ".plot path");
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
  }
} finally {
  for (const name of tables) await owner("DELETE", `/Tables('${name}')`);
  for (const name of ["mail", "resize-images"]) await queueOwner("DELETE", `/${name}`);
  await explorer.close();
}
console.log(`Pictures are in ${folder}`);
