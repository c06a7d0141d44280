// A server of the test's own, for behaviour that options switch on.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const ACCOUNT = "devstoreaccount1";
export const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const program = process.env.LAZULITE_SERVER;
/** For tests that need such a server: why they are skipped, or `false`. */
export const skip = program ? false : "LAZULITE_SERVER names the server's program; `cargo xtask test` sets it";

/** Runs `work` with the endpoints of a server that was started with these options. */
export function withServer(options, work) {
  return async () => {
    const location = await mkdtemp(join(tmpdir(), "lazulite-"));
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.endsWith("_ACCOUNTS")));
    const where = ["--location", location, "--tablePort", "0", "--queuePort", "0", "--no-admin", "--silent"];
    const server = spawn(program, ["serve", ...where, ...options], { env, stdio: ["ignore", "pipe", "inherit"] });
    const exit = once(server, "exit");
    try {
      await work(await endpoints(server));
    } finally {
      server.kill("SIGTERM");
      const [code] = await exit;
      await rm(location, { recursive: true });
      assert.equal(code, 0, "the server's exit code");
    }
  };
}

async function endpoints(server) {
  const found = {};
  for await (const line of createInterface(server.stdout)) {
    const [, service, url] = line.match(/(Table|Queue) service is successfully listening at (\S+)/) ?? [];
    if (service) found[service] = `${url.replace(/\/$/, "")}/${ACCOUNT}`;
    if (found.Table && found.Queue) return found;
  }
  throw new Error("the server ended before it was ready");
}
