// The explorer's own rules, in the browser that runs them: signatures, types without loss, filters, plans, files.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { after, before, test } from "node:test";

import { skip } from "./browser.mjs";
import { connectionString, openExplorer, openPage } from "./explorer.mjs";
import { owner } from "./service.mjs";

const FILES = new URL("../../crates/server/explorer/", import.meta.url);
const PATTERN_PAGES = new URL("../../docs/patterns/", import.meta.url);
const table = "t" + randomUUID().replaceAll("-", "");
let explorer, page;

before(async () => {
  if (skip) return;
  explorer = await openExplorer();
  page = await openPage(explorer);
  assert.equal((await owner("POST", "/Tables", JSON.stringify({ TableName: table }))).status, 201);
});

after(async () => {
  if (skip) return;
  await owner("DELETE", `/Tables('${table}')`);
  await explorer.close();
});

test("the whole page is below 300 KB and holds no inline script, style or handler", () => {
  const names = readdirSync(FILES);
  const sizes = names.map((name) => statSync(new URL(name, FILES)).size);
  const sum = sizes.reduce((total, size) => total + size, 0);
  assert.ok(sum < 300_000, `${sum} bytes`);
  console.log(`# the page has ${sum} bytes in ${names.length} files`);
  const html = readFileSync(new URL("index.html", FILES), "utf8");
  assert.doesNotMatch(html, /<style|style=|\son[a-z]+=|<script(?![^>]*src=)/);
  for (const name of names.filter((one) => one.endsWith(".js"))) {
    const text = readFileSync(new URL(name, FILES), "utf8");
    assert.doesNotMatch(
      text,
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function/,
      name,
    );
  }
});

test("signatures are those of the protocol reference", { skip }, async () => {
  const strings = await page.evaluate(async () => {
    const { fullStringToSign, importKey, signFull, signTable, tableStringToSign } = await import("/sign.js");
    const { DEVELOPMENT } = await import("/connection.js");
    const key = await importKey(DEVELOPMENT.key);
    const date = "Tue, 21 Sep 2021 00:50:22 GMT";
    const path = "/devstoreaccount1/mytable(PartitionKey='pk',RowKey='a%20b')";
    const comp = new URLSearchParams("comp=acl");
    const message = new URLSearchParams("visibilitytimeout=0&messagettl=-1");
    const type = { "content-type": "application/xml" };
    const headers = { "x-ms-version": "2025-11-05", "x-ms-date": "Fri, 26 Jun 2026 23:39:12 GMT", ...type };
    const conditions = { "if-match": "m", "if-none-match": "n", "x-ms-meta-b": "2", "x-ms-date": "d" };
    const place = "/devstoreaccount1/myqueue/messages";
    return [
      await signTable("devstoreaccount1", key, path, new URLSearchParams(), date),
      await signTable("devstoreaccount1", key, "/devstoreaccount1/mytable", comp, date),
      await signFull("devstoreaccount1", key, "POST", place, message, headers, 64),
      tableStringToSign("a", "/a/Tables", new URLSearchParams("$top=1"), date),
      fullStringToSign("a", "PUT", "/a/q", new URLSearchParams(), { "x-ms-meta-b": "2", "x-ms-date": "d" }, 0),
      fullStringToSign("a", "DELETE", "/a/c/b", new URLSearchParams("snapshot=s"), conditions),
    ];
  });
  assert.deepEqual(strings, [
    "SharedKeyLite devstoreaccount1:DPn0krVBDSMD+NXjFWM+StsyYF9YTBmI56mV6QY+MK4=",
    "SharedKeyLite devstoreaccount1:SO65cYzWYF7KUbHvdtzgswP3gtUqVlmfCQRhELGu68k=",
    "SharedKey devstoreaccount1:phTvgCQg1F0+/SgS5NqDdPcbXkLN1C5sDTBiKVCPkxY=",
    "Tue, 21 Sep 2021 00:50:22 GMT\n/a/a/Tables",
    `PUT${"\n".repeat(12)}x-ms-date:d\nx-ms-meta-b:2\n/a/a/q`,
    `DELETE${"\n".repeat(8)}m\nn\n\n\nx-ms-date:d\nx-ms-meta-b:2\n/a/a/c/b\nsnapshot:s`,
  ]);
});

test("values are read without loss", { skip }, async () => {
  const values = await page.evaluate(async () => {
    const { readEntity } = await import("/types.js");
    const text = `{"odata.etag":"W/\\"x\\"","PartitionKey":"p","RowKey":"","Timestamp":"2026-01-01T00:00:00.1234567Z",
      "whole":1.0,"small":4.94065645841247E-324,"minus":-0.0,"i":1,"b":true,"n":null,"__proto__":"own",
      "l@odata.type":"Edm.Int64","l":"-9223372036854775808","d@odata.type":"Edm.Double","d":"-Infinity",
      "text":"a\\"\\\\\\u0000\\ud83d\\ude00\\r\\n"}`;
    const entity = readEntity(text);
    return [
      entity.etag,
      entity.timestamp,
      ...[...entity.properties].map(([name, { type, text }]) => [name, type, text]),
    ];
  });
  assert.deepEqual(values, [
    'W/"x"',
    "2026-01-01T00:00:00.1234567Z",
    ["whole", "Double", "1.0"],
    ["small", "Double", "4.94065645841247E-324"],
    ["minus", "Double", "-0.0"],
    ["i", "Int32", "1"],
    ["b", "Boolean", "true"],
    ["__proto__", "String", "own"],
    ["l", "Int64", "-9223372036854775808"],
    ["d", "Double", "-Infinity"],
    ["text", "String", 'a"\\\u0000😀\r\n'],
  ]);
});

test("what the service would refuse is said before it is sent", { skip }, async () => {
  const cases = [
    ["Int32", "2147483647", true],
    ["Int32", "2147483648", false],
    ["Int64", "9223372036854775807", true],
    ["Int64", "9223372036854775808", false],
    ["Int64", "-9223372036854775808", true],
    ["Int64", "1.0", false],
    ["Double", "NaN", true],
    ["Double", "1e309", false],
    ["Double", "-Infinity", true],
    ["Double", "0x10", false],
    ["DateTime", "1601-01-01T00:00:00Z", true],
    ["DateTime", "1600-12-31T23:59:59Z", false],
    ["DateTime", "9999-12-31T23:59:59.9999999Z", true],
    ["DateTime", "2026-02-30T00:00:00Z", false],
    ["DateTime", "2026-01-01T00:00:00.12345678Z", false],
    ["Guid", "00000000-0000-0000-0000-000000000000", true],
    ["Guid", "0", false],
    ["Binary", "AP8=", true],
    ["Binary", "AP8", false],
    ["Boolean", "yes", false],
    ["String", "x".repeat(32768), true],
    ["String", "x".repeat(32769), false],
  ];
  const results = await page.evaluate(async (cases) => {
    const { problem } = await import("/types.js");
    return cases.map(([type, text]) => problem({ type, text }) === undefined);
  }, cases);
  cases.forEach(([type, text, isGood], index) => assert.equal(results[index], isGood, `${type} ${text.slice(0, 40)}`));
});

/** Filters of all shapes, the same in every run. */
function filters(count) {
  let state = 7;
  const random = (bound) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * bound);
  };
  const one = (list) => list[random(list.length)];
  const comparison = () => {
    const op = one(["eq", "eq", "ne", "gt", "ge", "lt", "le"]);
    const key = `'${one(["", "a", "b", "c", "it''s"])}'`;
    return one([
      `PartitionKey ${op} ${key}`,
      `PartitionKey ${op} ${key}`,
      `RowKey ${op} ${key}`,
      `${key} ${op} PartitionKey`,
      `born ${op} ${one(["1", "2L", "1.5", "true", "'x'", "3F"])}`,
      one(["flag", "true", "false"]),
    ]);
  };
  const filter = (depth) => {
    if (depth === 0) return comparison();
    const parts = Array.from({ length: 1 + random(3) }, () => filter(depth - 1));
    const joined = parts.join(` ${one(["and", "and", "or"])} `);
    return one([joined, `(${joined})`, `not (${joined})`]);
  };
  return Array.from({ length: count }, (_, index) => filter(index % 4));
}

test("the plan before the query is the server's plan", { skip }, async () => {
  const outcomes = await page.evaluate(
    async ([text, table, filters]) => {
      const { fromConnectionString, open } = await import("/connection.js");
      const { queryEntities } = await import("/rest.js");
      const { parse } = await import("/filter.js");
      const { plan } = await import("/plan.js");
      const connection = await open(fromConnectionString(text));
      const outcomes = [];
      for (const filter of filters) {
        const actual = await queryEntities(connection, table, { filter }).then(
          (answer) => answer.plan.kind,
          (error) => `refused: ${error.message}`,
        );
        outcomes.push([filter, plan(parse(filter)).kind, actual]);
      }
      return outcomes;
    },
    [connectionString, table, filters(400)],
  );
  for (const [filter, expected, actual] of outcomes) assert.equal(expected, actual, filter);
  assert.equal(new Set(outcomes.map(([, expected]) => expected)).size, 5, "all plans occur");
});

test("what the service refuses as a filter is refused while typing", { skip }, async () => {
  const bad = [
    "a eq",
    "eq 1",
    "(a eq 1",
    "a eq 1)",
    "a eq 'x",
    "a eq b",
    "1 eq 1",
    "PartitionKey eq 1",
    "Timestamp gt 'x'",
  ];
  bad.push(
    "contains(a,'b')",
    "a eq 5454161346626",
    "a eq guid'1'",
    "a eq X'1'",
    "a ! b",
    "1",
    "'x'",
    "a eq null",
    "not 1",
  );
  const outcomes = await page.evaluate(
    async ([text, table, bad]) => {
      const { fromConnectionString, open } = await import("/connection.js");
      const { queryEntities } = await import("/rest.js");
      const { parse } = await import("/filter.js");
      const connection = await open(fromConnectionString(text));
      const refused = (promise) =>
        promise.then(
          () => false,
          () => true,
        );
      return Promise.all(
        bad.map(async (filter) => [
          filter,
          await refused((async () => parse(filter))()),
          await refused(queryEntities(connection, table, { filter })),
        ]),
      );
    },
    [connectionString, table, bad],
  );
  for (const [filter, here, there] of outcomes) assert.deepEqual([here, there], [true, true], filter);
});

test("completion suggests what may come next", { skip }, async () => {
  const suggest = (text) =>
    page.evaluate(async (text) => {
      const { complete } = await import("/complete.js");
      const columns = new Map([
        ["PartitionKey", new Set(["String"])],
        ["born", new Set(["Int64"])],
      ]);
      return complete(text, text.length, columns).items.map((item) => item.text);
    }, text);
  assert.deepEqual(await suggest("Part"), ["PartitionKey"]);
  assert.deepEqual((await suggest("born ")).slice(0, 3), ["eq", "ne", "gt"]);
  assert.deepEqual(await suggest("born eq "), ["0L"]);
  assert.deepEqual(await suggest("born eq 1L "), ["and", "or"]);
  assert.deepEqual(await suggest("born eq 1L and b"), ["born"]);
  assert.deepEqual(await suggest("PartitionKey eq 'a"), [], "nothing inside of a string");
});

test("CSV quotes everything and disarms formulas; JSON keeps all", { skip }, async () => {
  const texts = {
    formula: '=HYPERLINK("x"),\n',
    plus: "+cmd|' /C calc'!A0",
    minus: "-2+3+cmd|' /C calc'!A0",
    at: "@SUM(1)",
    tab: "\t=1+1",
    newline: "x\n=1+1",
    wide: "＝1+1",
    quoted: '"=1+1',
    semicolon: "a;=1+1",
    number: "-12.5",
    plain: "a = b - c, {\"x\":-5} mail@example.com",
  };
  const [csv, json] = await page.evaluate(async (texts) => {
    const { toCsv, toJson, namesIn } = await import("/export.js");
    const { Entity } = await import("/types.js");
    const properties = new Map(Object.entries(texts).map(([name, text]) => [name, { type: "String", text }]));
    properties.set("long", { type: "Int64", text: "-9223372036854775808" });
    properties.set("bytes", { type: "Binary", text: "+A==" });
    const entities = [new Entity("=p", "-r", "2026-01-01T00:00:00Z", 'W/"e"', properties)];
    return [toCsv(entities, namesIn(entities)), toJson(entities)];
  }, texts);
  const [, row] = csv.split(/\r\n/);
  const cells = [...row.matchAll(/"((?:[^"]|"")*)"(?:,|$)/g)].map(([, text]) => text.replaceAll('""', '"'));
  assert.deepEqual(
    cells.filter((_, index) => index < 3 || index % 2 === 1),
    [
      "'=p",
      "'-r",
      "2026-01-01T00:00:00Z",
      `'=HYPERLINK("x"),\n`,
      "'+cmd|' /C calc'!A0",
      "'-2+3+cmd|' /C calc'!A0",
      "'@SUM(1)",
      "\t'=1+1",
      "x\n'=1+1",
      "'＝1+1",
      `"'=1+1`,
      "a;'=1+1",
      "-12.5",
      texts.plain,
      "-9223372036854775808",
      "'+A==",
    ],
  );
  const [entity] = JSON.parse(json);
  for (const [name, text] of Object.entries(texts)) assert.equal(entity[name], text);
  assert.equal(entity.long, "-9223372036854775808");
  assert.equal(entity["long@odata.type"], "Edm.Int64");
});

test("connection strings and signatures of all kinds are understood", { skip }, async () => {
  const read = await page.evaluate(async () => {
    const { fromConnectionString, fromSas } = await import("/connection.js");
    const plain = ({ account, key, sas, table, queue }) => ({
      account,
      key: Boolean(key),
      sig: sas?.get("sig"),
      table,
      queue,
    });
    const failure = (work) => {
      try {
        // What is undefined is left out.
        return JSON.parse(JSON.stringify(plain(work())));
      } catch (error) {
        return error.message;
      }
    };
    return [
      failure(() => fromConnectionString("UseDevelopmentStorage=true")),
      failure(() => fromConnectionString("AccountName=abc;AccountKey=AA==;EndpointSuffix=core.windows.net")),
      failure(() =>
        fromConnectionString("TableEndpoint=http://127.0.0.1:10002/abc;SharedAccessSignature=ss=t&srt=o&sig=s%2Bg"),
      ),
      failure(() =>
        fromConnectionString("TableEndpoint=https://abc.table.core.windows.net/;SharedAccessSignature=tn=T&sig=s"),
      ),
      failure(() => fromSas("", "http://127.0.0.1:10001/abc/jobs?sv=1&sig=s")),
      failure(() => fromSas("abc", "?sv=1&sig=s")),
      failure(() => fromConnectionString("AccountName=abc")),
    ];
  });
  assert.deepEqual(read.slice(0, 5), [
    { account: "devstoreaccount1", key: true },
    { account: "abc", key: true },
    { account: "abc", key: false, sig: "s+g" },
    { account: "abc", key: false, sig: "s", table: "T" },
    { account: "abc", key: false, sig: "s", queue: "jobs" },
  ]);
  assert.match(read[5], /name the queue/);
  assert.match(read[6], /AccountKey/);
});

test("every pattern of the documentation is known, with its title and sketch", { skip }, async () => {
  const patterns = await page.evaluate(async () => (await import("/patterns.js")).PATTERNS);
  const names = readdirSync(PATTERN_PAGES).filter((name) => name.endsWith(".md") && name !== "README.md");
  assert.deepEqual(Object.keys(patterns).sort(), names.map((name) => name.slice(0, -3)).sort());
  for (const name of names) {
    const text = readFileSync(new URL(name, PATTERN_PAGES), "utf8");
    const { title, sketch } = patterns[name.slice(0, -3)];
    assert.equal(title, /^# (.*)$/m.exec(text)[1]);
    assert.equal(sketch.trim(), /```text\n([\s\S]*?)\n```/.exec(text)[1].trim(), name);
  }
});

test("nothing went wrong in the page", { skip }, () => assert.deepEqual(page.faults, []));
