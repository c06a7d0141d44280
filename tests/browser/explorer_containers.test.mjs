// Containers and blobs in the explorer: folders and pages, properties, previews that nobody can misuse, files up and
// down, deletions; at the size of a desk and of a phone.

import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";

import { skip } from "./browser.mjs";
import { connect, done, openConnected, openExplorer, openPage, visit } from "./explorer.mjs";
import { blobOwner, blobUrl } from "./service.mjs";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const MARKUP = `<img src=x onerror="alert(1)"><script>alert(2)</script><svg onload=alert(3)>`;
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const MIB = 1024 * 1024;
const container = `c${randomUUID()}`;
let explorer;
let folder;

async function put(name, content, headers = {}) {
  const all = { "x-ms-blob-type": "BlockBlob", "content-type": "application/octet-stream", ...headers };
  const { status, text } = await blobOwner("PUT", `/${container}/${encodeURIComponent(name)}`, content, all);
  assert.equal(status, 201, text);
}

async function exists(name) {
  return (await blobOwner("HEAD", `/${container}/${encodeURIComponent(name)}`)).status === 200;
}

before(async () => {
  if (skip) return;
  explorer = await openExplorer();
  folder = await mkdtemp(join(tmpdir(), "lazulite-files-"));
  assert.equal((await blobOwner("PUT", `/${container}?restype=container`)).status, 201);
});

after(async () => {
  if (skip) return;
  await blobOwner("DELETE", `/${container}?restype=container`);
  await rm(folder, { recursive: true, force: true });
  await explorer.close();
});

const place = (prefix = "") => `#/container/${container}${prefix && `?prefix=${encodeURIComponent(prefix)}`}`;
const row = (page, name) => page.locator(".blob-name").getByText(name, { exact: true });
const drawer = (page) => page.locator("dialog.drawer");

async function openBlob(page, name) {
  await row(page, name).click();
  await drawer(page).locator(".blob-actions").waitFor();
}

/** The names of a page, folders and blobs. */
const shown = (page) => page.locator(".blob-name bdi").allTextContents();

async function settled(page, number = 1) {
  await page.locator(`.container-view[data-page="${number}"]`).waitFor();
}

for (const size of ["desktop", "phone"]) {
  test(`a container is made, looked into and deleted (${size})`, { skip }, async () => {
    const page = await openConnected(explorer, size);
    const name = `n${randomUUID()}`;
    const toggle = page.getByRole("button", { name: "Menu" });
    if (await toggle.isVisible()) await toggle.click();
    await page.getByRole("button", { name: "New container" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Not-Allowed");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("3 to 63 lower-case letters").waitFor();
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("No blob yet.").waitFor();
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), name);
    await page.getByRole("button", { name: "More for this container" }).click();
    await page.getByRole("menuitem", { name: "Delete this container…" }).click();
    await page.getByLabel(`Type ${name} to confirm`).fill("something else");
    await page.getByRole("button", { name: "Delete the container" }).click();
    await page.getByText(`This is not ${name}.`).waitFor();
    await page.getByLabel(`Type ${name} to confirm`).fill(name);
    await page.getByRole("button", { name: "Delete the container" }).click();
    await page.locator(".welcome").waitFor();
    assert.equal((await blobOwner("HEAD", `/${name}?restype=container`)).status, 404);
    await done(page);
  });

  test(`names with slashes are folders, and any name is reached (${size})`, { skip }, async () => {
    const odd = ["a/../b", "a//b", "a/%2F?#&+ ü𝄞'\"", "a/<b>bold", "a/b/c/d", "a/ spaced "];
    for (const name of odd) await put(`tree/${name}`, name);
    const page = await openConnected(explorer, size, place("tree/"));
    await settled(page);
    assert.deepEqual(await shown(page), ["a/"]);
    await row(page, "a/").click();
    await row(page, "../").waitFor();
    const found = await shown(page);
    assert.deepEqual(found.toSorted(), ["../", "/", "b/", "<b>bold", "%2F?#&+ ü𝄞'\"", " spaced "].toSorted());
    for (const [name, content] of [["<b>bold", odd[3]], ["%2F?#&+ ü𝄞'\"", odd[2]], [" spaced ", odd[5]]]) {
      await page.locator(".blob-name button").filter({ hasText: name.trim() }).click();
      await drawer(page).locator(".blob-preview pre").waitFor();
      assert.equal(await drawer(page).locator(".blob-preview pre").textContent(), content);
      await page.keyboard.press("Escape");
    }
    await row(page, "../").click();
    await row(page, "b").click();
    await drawer(page).locator(".blob-preview pre").waitFor();
    assert.equal(await drawer(page).locator(".blob-preview pre").textContent(), "a/../b");
    await page.keyboard.press("Escape");
    // The way back, and a prefix that ends within a name.
    await page.getByRole("navigation", { name: "Folders" }).getByText("tree", { exact: true }).click();
    await row(page, "a/").waitFor();
    await page.getByRole("searchbox", { name: "Names that begin with" }).fill("tree/a/<");
    await page.keyboard.press("Enter");
    await row(page, "<b>bold").waitFor();
    assert.deepEqual(await shown(page), ["<b>bold"]);
    assert.equal(await page.locator(".blob-list b").count(), 0);
    await page.goBack();
    await row(page, "a/").waitFor();
    await done(page);
  });

  test(`properties, metadata, tags and snapshots are shown (${size})`, { skip }, async () => {
    const name = `facts-${size}`;
    await put(name, `{"long":12345678901234567890.10,"a":[1,{}]}`, {
      "x-ms-blob-content-type": "application/json",
      "x-ms-blob-cache-control": "max-age=7",
      "x-ms-meta-Colour": MARKUP,
      "x-ms-tags": "project=lazulite&stage=test",
    });
    assert.equal((await blobOwner("PUT", `/${container}/${name}?comp=snapshot`)).status, 201);
    await put(name, "after", { "x-ms-meta-Colour": MARKUP, "x-ms-tags": "stage=live" });
    const page = await openConnected(explorer, size, place("facts"));
    await openBlob(page, name);
    const text = await drawer(page).textContent();
    for (const part of ["BlobType", "BlockBlob", "Etag", "Colour", MARKUP, "stage", "live", "Snapshots"])
      assert.ok(text.includes(part), part);
    assert.equal(await drawer(page).locator(".blob-preview pre").textContent(), "after");
    await drawer(page).getByRole("button", { name: "Look" }).click();
    await drawer(page).getByText("12345678901234567890.10").waitFor();
    const pretty = '{\n  "long": 12345678901234567890.10,\n  "a": [\n    1,\n    {}\n  ]\n}';
    assert.equal(await drawer(page).locator(".blob-preview pre").textContent(), pretty);
    // One snapshot goes, and the blob stays.
    await drawer(page).locator(".snapshots").getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("status").getByText("Deleted.").waitFor();
    assert.ok(await exists(name));
    await openBlob(page, name);
    assert.equal(await drawer(page).locator(".snapshots").count(), 0);
    await page.keyboard.press("Escape");
    await done(page);
  });

  test(`files go up and come down byte for byte (${size})`, { skip }, async () => {
    const large = join(folder, `large-${size}.bin`);
    // More than two blocks, and not a whole number of them.
    const content = randomBytes(20 * MIB + 12_345);
    await writeFile(large, content);
    const small = join(folder, `small ü-${size}.txt`);
    await writeFile(small, "a small file\n");
    const empty = join(folder, `empty-${size}`);
    await writeFile(empty, "");
    const page = await openConnected(explorer, size, place("files/"));
    await settled(page);
    await page.getByRole("button", { name: "Upload" }).click();
    await page.locator("dialog").getByRole("button", { name: "Upload", exact: true }).click();
    await page.getByText("Choose a file.").waitFor();
    await page.getByLabel("Files").setInputFiles([large, small, empty]);
    await page.locator("dialog").getByRole("button", { name: "Upload", exact: true }).click();
    await page.getByRole("status").getByText("3 files uploaded.").waitFor({ timeout: 120_000 });
    await row(page, `small ü-${size}.txt`).waitFor();
    await openBlob(page, `large-${size}.bin`);
    await drawer(page).getByText("No text: its first bytes.").waitFor();
    const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");
    const [saved] = await Promise.all([
      page.waitForEvent("download", { timeout: 120_000 }),
      drawer(page).getByRole("button", { name: "Download" }).click(),
    ]);
    assert.equal(saved.suggestedFilename(), `large-${size}.bin`);
    assert.equal(hash(await readFile(await saved.path())), hash(content));
    await page.keyboard.press("Escape");
    await openBlob(page, `empty-${size}`);
    await drawer(page).getByText("It is empty.").waitFor();
    await page.keyboard.press("Escape");
    // Again, without and with leave to replace.
    await writeFile(small, "changed\n");
    await page.getByRole("button", { name: "Upload" }).click();
    await page.getByLabel("Files").setInputFiles(small);
    await page.locator("dialog").getByRole("button", { name: "Upload", exact: true }).click();
    await page.getByText("There is a blob of this name already.").waitFor();
    await page.getByLabel("Replace blobs of the same name").check();
    await page.locator("dialog").getByRole("button", { name: "Upload", exact: true }).click();
    await page.getByRole("status").getByText("1 file uploaded.").waitFor();
    await openBlob(page, `small ü-${size}.txt`);
    await drawer(page).getByText("changed").waitFor();
    await drawer(page).getByText("text/plain").waitFor();
    await page.keyboard.press("Escape");
    await done(page);
  });
}

test("an upload that is stopped leaves nothing", { skip }, async () => {
  const file = join(folder, "stopped.bin");
  const handle = await open(file, "w");
  await handle.truncate(600 * MIB);
  await handle.close();
  const page = await openConnected(explorer, "desktop", place("stopped/"));
  await settled(page);
  await page.getByRole("button", { name: "Upload" }).click();
  await page.getByLabel("Files").setInputFiles(file);
  await page.locator("dialog").getByRole("button", { name: "Upload", exact: true }).click();
  await page.waitForFunction(() => document.querySelector(".upload-state progress").value > 0);
  await page.locator("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Stop the upload" }).click();
  // The question and the upload are both closing, and a locator that finds two is an error.
  await page.waitForFunction(() => !document.querySelector("dialog"));
  await page.getByText("No name begins with this.").waitFor();
  assert.equal(await exists("stopped/stopped.bin"), false);
  await rm(file);
  await done(page);
});

test("a blob is deleted after a question, unless somebody has changed it", { skip }, async () => {
  await put("deleted/one", "first");
  const page = await openConnected(explorer, "desktop", place("deleted/"));
  await openBlob(page, "one");
  await put("deleted/one", "second");
  const remove = () => drawer(page).locator(".blob-actions").getByRole("button", { name: "Delete…" }).click();
  await remove();
  await page.getByRole("button", { name: "Cancel" }).last().click();
  assert.ok(await exists("deleted/one"));
  await remove();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("Somebody has changed it since.").waitFor();
  await drawer(page).getByText("second").waitFor();
  assert.ok(await exists("deleted/one"));
  // With a snapshot, which the question mentions.
  assert.equal((await blobOwner("PUT", `/${container}/deleted%2Fone?comp=snapshot`)).status, 201);
  await page.keyboard.press("Escape");
  await openBlob(page, "one");
  await remove();
  await page.getByText("1 snapshot of it will be deleted too.").waitFor();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("No name begins with this.").waitFor();
  assert.equal(await exists("deleted/one"), false);
  await done(page);
});

test("a long list is shown by pages and stays light", { skip }, async () => {
  const count = 450;
  const left = Array.from({ length: count }, (_, index) => `many/${String(index).padStart(4, "0")}`);
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (left.length > 0) await put(left.shift(), "x");
    }),
  );
  const page = await openConnected(explorer, "desktop", place("many/"));
  const seen = [];
  for (let number = 1; ; number += 1) {
    await settled(page, number);
    await page.getByText(`on page ${number}`).waitFor();
    seen.push(...(await shown(page)));
    assert.ok((await page.locator("*").count()) <= 1500, "few elements");
    const next = page.getByRole("button", { name: "Next" });
    if (await next.isDisabled()) break;
    await next.click();
  }
  assert.deepEqual(seen, Array.from({ length: count }, (_, index) => String(index).padStart(4, "0")));
  await page.getByRole("button", { name: "Previous" }).click();
  await page.getByText("on page 4").waitFor();
  assert.equal((await shown(page))[0], "0300");
  await done(page);
});

test("a content is what its bytes are, whatever it says about itself", { skip }, async () => {
  const html = { "x-ms-blob-content-type": "text/html" };
  await put("look/page", `<!doctype html>${MARKUP}`, html);
  await put("look/svg", `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(9)"></svg>`, {
    "x-ms-blob-content-type": "image/svg+xml",
  });
  await put("look/picture", PNG, html);
  const huge = Buffer.from(PNG);
  huge.writeUInt32BE(60_000, 16);
  huge.writeUInt32BE(60_000, 20);
  await put("look/huge", huge, { "x-ms-blob-content-type": "image/png" });
  await put("look/binary", Buffer.from([0, 1, 2, 254, 255, 65, 66]), { "x-ms-blob-content-type": "image/png" });
  await put("look/long", "é".repeat(400_000), { "x-ms-blob-content-type": "application/json" });
  // A few stored bytes that stand for 256 MiB, which the browser would unpack.
  const bomb = gzipSync(Buffer.alloc(256 * MIB, "A"));
  await put("look/bomb", bomb, { "x-ms-blob-content-encoding": "gzip", "x-ms-blob-content-type": "text/plain" });
  const page = await openConnected(explorer, "desktop", place("look/"));
  const look = async (name, what) => {
    await openBlob(page, name);
    await drawer(page).locator(`.blob-preview ${what}`).first().waitFor();
    const text = await drawer(page).locator(".blob-preview").textContent();
    const images = await drawer(page).locator("img").evaluateAll((all) => all.map((one) => one.src.slice(0, 22)));
    const strays = await drawer(page).locator("script, iframe, object, embed, svg[onload], [onerror]").count();
    await page.keyboard.press("Escape");
    await drawer(page).waitFor({ state: "detached" });
    assert.equal(strays, 0);
    return { text, images };
  };
  assert.deepEqual(await look("page", "pre"), { text: `<!doctype html>${MARKUP}`, images: [] });
  assert.ok((await look("svg", "pre")).text.startsWith("<svg"));
  assert.deepEqual(await look("picture", "img"), { text: "image/png, 1 × 1", images: ["data:image/png;base64,"] });
  assert.match((await look("huge", ".quiet:has-text('pixels')")).text, /60,000 × 60,000: more than 40 million pixels/);
  assert.match((await look("binary", "pre")).text, /00 01 02 fe ff 41 42 .*\.\.\.\.\.AB/);
  const long = await look("long", "pre");
  assert.ok(long.text.startsWith("The first 256 KiB of 781 KiB.") && long.text.length < 140_000);
  const unpacked = await look("bomb", "pre");
  assert.ok(unpacked.text.includes("AAAA") && unpacked.text.length <= 263_000, String(unpacked.text.length));
  await done(page);
});

test("a stored page cannot be opened through the passage", { skip: skip || !process.env.LAZULITE_ADMIN }, async () => {
  await put("evil.html", `<script>document.title = "owned"</script>`, { "x-ms-blob-content-type": "text/html" });
  const url = new URL(blobUrl(container, "/evil.html", "r"));
  const page = await openPage(explorer);
  const answer = await page.goto(`${explorer.url}/storage/blob${url.pathname}${url.search}`);
  assert.equal(answer.status(), 403);
  const inPage = await openPage(explorer);
  const [status, policy, sniff] = await inPage.evaluate(async (path) => {
    const { status, headers } = await fetch(path);
    return [status, headers.get("content-security-policy"), headers.get("x-content-type-options")];
  }, `/storage/blob${url.pathname}${url.search}`);
  assert.deepEqual([status, sniff], [200, "nosniff"]);
  assert.match(policy, /sandbox/);
  await page.close();
  await inPage.close();
});

test("a signature for one container shows that container and nothing else", { skip }, async () => {
  await put("signed", "content for those with a signature");
  const page = await openPage(explorer);
  await page.getByLabel("SAS", { exact: true }).check();
  await page.getByLabel("Signature or URL").fill(blobUrl(container, "", "rl"));
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await openBlob(page, "signed");
  await drawer(page).getByText("content for those with a signature").waitFor();
  await drawer(page).locator(".blob-actions").getByRole("button", { name: "Delete…" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("AuthorizationPermissionMismatch").waitFor();
  assert.ok(await exists("signed"));
  await page.keyboard.press("Escape");
  assert.deepEqual(await page.locator(".nav-section:visible h2").allTextContents(), ["Containers"]);
  await done(page);
});

/** Serious findings of axe over what is shown. It is injected past the page's policy, as a browser's own tools are. */
async function findings(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: AXE });
  const { violations, passes } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  assert.ok(passes.length > 10, "axe looked at the page");
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${overflow} pixels too wide`);
  return grave.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("; ")}`);
}

for (const size of ["desktop", "phone"]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`no serious findings (${size}, ${colorScheme})`, { skip }, async () => {
      await put("axe/a-rather-long-name-that-has-no-place-to-break-and-goes-on-for-quite-a-while-on-a-phone", "text");
      await put("axe/folder/inside", "text");
      await put("axe/picture", PNG, { "x-ms-meta-key": "value" });
      assert.equal((await blobOwner("PUT", `/${container}/axe%2Fpicture?comp=snapshot`)).status, 201);
      const page = await openPage(explorer, size);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await connect(page);
      await visit(page, place("axe/"));
      await settled(page);
      await row(page, "picture").waitFor();
      assert.deepEqual(await findings(page), [], "a container");
      await openBlob(page, "picture");
      await drawer(page).locator("img").waitFor();
      assert.deepEqual(await findings(page), [], "a blob");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Upload" }).click();
      await page.getByLabel("Files").waitFor();
      assert.deepEqual(await findings(page), [], "uploading");
      await page.keyboard.press("Escape");
      await done(page);
    });
  }
}
