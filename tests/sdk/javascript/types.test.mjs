// Property types: values come back equal and of the same type, also at the extremes.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { all, plain, withTable } from "./support.mjs";

const edm = (type, value) => ({ type, value });

/** Sends `value` and expects `expected` from a point read, from a listing, and after writing back the entity read. */
function roundtrip(name, value, expected = value, options = {}) {
  test(name, withTable(async (table) => {
    await table.createEntity({ partitionKey: "p", rowKey: "r", v: value });
    const found = await table.getEntity("p", "r", options);
    assert.deepStrictEqual(found.v, expected);
    const [listed] = await all(table.listEntities(options));
    assert.deepStrictEqual(listed.v, expected);
    await table.updateEntity({ partitionKey: "p", rowKey: "r", v: found.v }, "Replace");
    assert.deepStrictEqual((await table.getEntity("p", "r", options)).v, expected);
  }));
}

const typed = { disableTypeConversion: true };

describe("types", () => {
  for (const n of [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)]) roundtrip(`Int32 ${n}`, n);
  roundtrip("Int32 given as text", edm("Int32", "42"), 42);

  for (const n of [0n, -1n, 2n ** 31n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
    roundtrip(`Int64 ${n}`, n);
    roundtrip(`Int64 ${n} as Edm`, edm("Int64", String(n)), edm("Int64", String(n)), typed);
  }

  for (const n of [0.1, 1 / 3, 3.1, -2.5, 4.81516, 1e21, 1e-7, 123456789012345.12, Number.MAX_VALUE, Number.MIN_VALUE]) {
    roundtrip(`Double ${n}`, n);
  }
  roundtrip("Double without fraction", edm("Double", 5), 5);
  for (const special of ["NaN", "Infinity", "-Infinity"]) {
    roundtrip(`Double ${special}`, edm("Double", special), special);
    roundtrip(`Double ${special} as Edm`, edm("Double", special), edm("Double", special), typed);
  }
  // Without an annotation and too large for an Int32, the service reads it as a Double.
  roundtrip("an integer beyond Int32 is a Double", 50000000000, 50000000000);

  roundtrip("Boolean true", true);
  roundtrip("Boolean false", false);

  for (const date of ["1601-01-01T00:00:00.000Z", "1969-12-31T23:59:59.999Z", "2024-02-29T12:30:15.250Z", "9999-12-31T23:59:59.999Z"]) {
    roundtrip(`DateTime ${date}`, new Date(date));
  }
  for (const [sent, returned] of [
    ["1601-01-01T00:00:00.0000001Z", "1601-01-01T00:00:00.0000001Z"],
    ["9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"],
    ["2020-01-01T01:02:03.1200000Z", "2020-01-01T01:02:03.12Z"],
    ["2020-01-01T01:02:03.000Z", "2020-01-01T01:02:03Z"],
  ]) {
    roundtrip(`DateTime ${sent}, 100 ns`, edm("DateTime", sent), edm("DateTime", returned), typed);
  }

  for (const guid of ["00000000-0000-0000-0000-000000000000", "c9da6455-213d-42c9-9a79-3e9149a57833"]) {
    roundtrip(`Guid ${guid}`, edm("Guid", guid));
  }
  roundtrip(
    "Guid in capitals",
    edm("Guid", "C9DA6455-213D-42C9-9A79-3E9149A57833"),
    edm("Guid", "c9da6455-213d-42c9-9a79-3e9149a57833"),
  );

  // A plain Uint8Array, as the SDK returns it.
  const bytes = (length, value) => Uint8Array.from({ length }, (_, index) => value(index));
  for (const [name, value] of [
    ["empty", bytes(0)],
    ["of all byte values", bytes(256, (n) => n)],
    ["of 64 KiB", bytes(65536, (n) => n * 7)],
  ]) {
    test(`Binary ${name}`, withTable(async (table) => {
      await table.createEntity({ partitionKey: "p", rowKey: "r", v: value });
      const found = (await table.getEntity("p", "r")).v;
      assert.ok(found instanceof Uint8Array);
      assert.ok(Buffer.from(found).equals(Buffer.from(value)));
    }));
  }
  roundtrip("Binary as Edm", edm("Binary", "AAEC/w=="), edm("Binary", "AAEC/w=="), typed);

  for (const text of [
    "",
    " ",
    "  leading and trailing  ",
    "line\r\nbreak\ttab\u0000\u001f end",
    "quotes ' \" \\ / {} [] \u2028",
    "käse ß 日本語 العربية",
    "😀 👩‍🚀 \u{10ffff} \u{10000}",
    "\ufffd \ufeff \ue000",
    "NaN",
    "2020-01-01T00:00:00Z",
    "c9da6455-213d-42c9-9a79-3e9149a57833",
  ]) {
    roundtrip(`String ${JSON.stringify(text)}`, text);
  }
  roundtrip("String of 32 Ki characters", "x".repeat(32768));
  roundtrip("String of 16 Ki emoji", "😀".repeat(16384));

  test("all types in one entity", withTable(async (table) => {
    const sent = {
      partitionKey: "p",
      rowKey: "r",
      text: "text",
      int32: -7,
      int64: 2n ** 40n,
      double: 2.5,
      boolean: false,
      date: new Date("2021-03-04T05:06:07.890Z"),
      guid: edm("Guid", "a455c695-df98-5678-aaaa-81d3367e5a34"),
      binary: new Uint8Array([0, 1, 2]),
    };
    await table.createEntity(sent);
    const found = plain(await table.getEntity("p", "r"));
    assert.deepEqual({ ...found, binary: [...found.binary] }, { ...sent, binary: [0, 1, 2] });
  }));

  test("what was read without type conversion can be sent back as it is", withTable(async (table) => {
    await table.createEntity({ partitionKey: "p", rowKey: "r", i: -7, d: 2.5, b: true, l: 5n, s: "text", t: new Date(0) });
    // In this mode the SDK returns every value as text with a type, even Int32 and Boolean, and sends it the same way.
    const first = await table.getEntity("p", "r", typed);
    assert.deepEqual([first.i, first.b], [edm("Int32", "-7"), edm("Boolean", "true")]);
    await table.updateEntity(first, "Replace");
    assert.deepEqual(plain(await table.getEntity("p", "r", typed)), plain(first));
  }));

  test("null and undefined are not stored", withTable(async (table) => {
    await table.createEntity({ partitionKey: "p", rowKey: "r", a: null, b: undefined, c: 1 });
    assert.deepEqual(plain(await table.getEntity("p", "r")), { partitionKey: "p", rowKey: "r", c: 1 });
  }));
});
