// A reporter for `node --test`: one line per test, `outcome <tab> area <tab> name`, for `cargo xtask` to count.
// The area is the name of the file; groups are not tests.

import path from "node:path";

export default async function* report(events) {
  const groups = [];
  for await (const { type, data } of events) {
    if (type === "test:start") groups[data.nesting] = data.name;
    if ((type !== "test:pass" && type !== "test:fail") || data.details?.type === "suite") continue;
    const area = path.basename(data.file ?? "tests").replace(/\.test\.mjs$/, "");
    const outcome = data.skip !== undefined ? "skipped" : type === "test:pass" ? "passed" : "failed";
    const name = [...groups.slice(0, data.nesting), data.name].join(" > ").replaceAll(/[\r\n]/g, " ");
    yield `${outcome}\t${area}\t${name}\n`;
  }
}
