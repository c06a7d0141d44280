// A stand-in for the admin port, for work on the explorer: serves its files from the source tree with the same
// policy, hands /storage/… to the services, and invents charts and findings.
//
// As a program: `node dev-server.mjs [PATH OF LAZULITE]` starts a server in memory (or takes
// LAZULITE_CONNECTION_STRING) and prints where the page is.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer, request as httpRequest } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const FILES = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "crates", "server", "explorer");
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

export const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

export function settingsOf(connectionString) {
  const parts = connectionString.split(";").filter(Boolean);
  return Object.fromEntries(parts.map((part) => [part.split("=")[0], part.slice(part.indexOf("=") + 1)]));
}

/** Hands a request over: the path behind /storage/table is the service's own. */
function pass(request, response, endpoint, path) {
  const { hostname, port, host } = new URL(endpoint);
  const options = { hostname, port, method: request.method, path, headers: { ...request.headers, host } };
  const onward = httpRequest(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.writeHead(502).end());
  request.pipe(onward);
}

const SECONDS = 300;

/** Five minutes that look like a busy afternoon, the same at the same second. */
function liveSample() {
  const now = Math.floor(Date.now() / 1000);
  const seconds = Array.from({ length: SECONDS }, (_, index) => now - SECONDS + 1 + index);
  const noise = (second, salt) => Math.abs((Math.sin(second * 12.9898 + salt * 78.233) * 43758.5453) % 1);
  const curve = (base, swing, period, salt) =>
    seconds.map((second) =>
      Math.max(
        0,
        base + swing * Math.sin((second / period) * 2 * Math.PI) + swing * 0.5 * (noise(second, salt) - 0.5),
      ),
    );
  const requests = curve(1800, 500, 170, 1);
  const share = (part, salt) =>
    requests.map((value, index) => value * part * (0.85 + 0.3 * noise(seconds[index], salt)));
  return {
    now,
    step_seconds: 1,
    series: {
      requests,
      errors: curve(4, 9, 61, 2),
      p50_us: curve(310, 60, 120, 3),
      p99_us: curve(2300, 900, 95, 4),
      point: share(0.52, 5),
      row_range: share(0.2, 6),
      partition_scan: share(0.06, 7),
      partition_range: share(0.03, 8),
      table_scan: share(0.05, 9),
      bytes_in: curve(410_000, 90_000, 140, 10),
      bytes_out: curve(2_900_000, 700_000, 110, 11),
    },
    hot_partitions: [
      { account: "devstoreaccount1", table: "Orders", partition: "2026-01-31T15", per_second: 2350 },
      { account: "devstoreaccount1", table: "Sessions", partition: "eu", per_second: 1240 },
      { account: "devstoreaccount1", table: "Employees", partition: "Sales", per_second: 310 },
    ],
    storage: { log_bytes: 41_700_000, tree_bytes: 1_870_000_000, recent_rows: 18_244 },
  };
}

/** One finding of every kind that the advisor knows, in the form of /api/advice. */
export const SAMPLE_ADVICE = {
  memory_bound_bytes: 6_291_456,
  findings: [
    {
      id: "scan-orders-customer",
      rank: 1,
      kind: "table_scan",
      account: "devstoreaccount1",
      table: "Orders",
      title: "A query by Customer reads the whole table",
      numbers: { queries: 1204, entities_examined: 48_160_000, entities_returned: 3612, examined_per_returned: 13333 },
      explanation: "The filter Customer eq ? names no key, so every entity of Orders is read for each answer.",
      remedy: "Store a second copy of each order under its customer, and ask for that partition.",
      pattern: "docs/patterns/inter_partition_index.md",
    },
    {
      id: "partition-scan-employees",
      rank: 2,
      kind: "partition_scan",
      account: "devstoreaccount1",
      table: "Employees",
      title: "A query by EmailAddress reads a whole partition",
      numbers: { queries: 830, entities_examined: 4_150_000, entities_returned: 830 },
      explanation: "PartitionKey eq ? and EmailAddress eq ? reads the whole of the partition that it names.",
      remedy: "Keep a copy in the same partition under a RowKey made of the address.",
      pattern: "docs/patterns/intra_partition_index.md",
    },
    {
      id: "or-rowkeys-orders",
      rank: 3,
      kind: "or_of_row_keys",
      account: "devstoreaccount1",
      table: "Orders",
      title: "Row keys joined by or scan on the real service",
      numbers: { queries: 96, keys_per_query: 7 },
      explanation: "Here they are points; the real service reads the partition.",
      remedy: "Ask for the entities one by one, or lay them out as a range.",
      pattern: "docs/patterns/joins.md",
    },
    {
      id: "hot-orders-hour",
      rank: 4,
      kind: "hot_partition",
      account: "devstoreaccount1",
      table: "Orders",
      title: "One partition takes more than its target",
      numbers: { requests_per_second: 2350, target_per_second: 2000 },
      explanation: "The service promises 2,000 entities a second for a partition.",
      remedy: "Spread the keys over buckets.",
      pattern: "docs/patterns/log_data.md",
    },
    {
      id: "append-orders",
      rank: 5,
      kind: "append",
      account: "devstoreaccount1",
      table: "Orders",
      title: "All inserts go to the last partition",
      numbers: { inserts_at_the_end: 0.98 },
      explanation: "Keys grow with time.",
      remedy: "Put something else in front of the time.",
      pattern: "docs/patterns/prepend_append.md",
    },
    {
      id: "prepend-logins",
      rank: 6,
      kind: "prepend",
      account: "devstoreaccount1",
      table: "Logins",
      title: "All inserts go to the first partition",
      numbers: { inserts_at_the_front: 0.97 },
      explanation: "Inverted ticks are the partition key.",
      remedy: "Use them in the row key.",
      pattern: "docs/patterns/prepend_append.md",
    },
    {
      id: "giant-events",
      rank: 7,
      kind: "giant_partition",
      account: "devstoreaccount1",
      table: "Events",
      title: "One partition holds most of the table",
      numbers: { bytes: 812_000_000 },
      explanation: "A partition is served by one server of the real service.",
      remedy: "Split it by day.",
      pattern: "docs/patterns/high_volume_delete.md",
    },
    {
      id: "wide-days",
      rank: 8,
      kind: "wide_entity",
      account: "devstoreaccount1",
      table: "Days",
      title: "Entities near 252 properties",
      numbers: { properties: 249 },
      explanation: "Three more properties, and inserts are refused.",
      remedy: "Split the entity.",
      pattern: "docs/patterns/wide_entities.md",
    },
    {
      id: "large-photos",
      rank: 9,
      kind: "large_entity",
      account: "devstoreaccount1",
      table: "Photos",
      title: "Entities near 1 MiB",
      numbers: { bytes: 1_013_000 },
      explanation: "Larger ones are refused.",
      remedy: "Store the payload in chunks.",
      pattern: "docs/patterns/large_entities.md",
    },
  ],
};

/** Starts the stand-in on a free port, or on the given one. */
export async function openDevServer(connectionString, port = 0) {
  const { TableEndpoint, QueueEndpoint } = settingsOf(connectionString);
  const server = createServer(async (request, response) => {
    const path = request.url;
    const headers = {
      "content-security-policy": POLICY,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    };
    const json = (value) =>
      response.writeHead(200, { ...headers, "content-type": "application/json" }).end(JSON.stringify(value));
    if (path.startsWith("/storage/table/"))
      return pass(request, response, TableEndpoint, path.slice("/storage/table".length));
    if (path.startsWith("/storage/queue/"))
      return pass(request, response, QueueEndpoint, path.slice("/storage/queue".length));
    if (path === "/api/live") return json(liveSample());
    if (path === "/api/advice") return json(SAMPLE_ADVICE);
    const name = path === "/" || path.startsWith("/?") ? "index.html" : path.slice(1);
    if (!/^[a-z]+\.[a-z]+$/.test(name)) return response.writeHead(404).end();
    try {
      const content = await readFile(join(FILES, name));
      response.writeHead(200, { ...headers, "content-type": TYPES[extname(name)] ?? "text/plain" }).end(content);
    } catch {
      response.writeHead(404, headers).end();
    }
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

/** Starts a server of the given binary in memory; resolves to its connection string. */
export async function startLazulite(binary) {
  const child = spawn(binary, ["--in-memory", "--table-port", "0", "--queue-port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const connectionString = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (bytes) => {
      text += bytes;
      const found = /Connection string: (.*)\n/.exec(text);
      if (found) resolve(found[1]);
    });
    child.on("exit", () => reject(new Error(`${binary} ended`)));
  });
  return { connectionString, close: () => child.kill() };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const given = process.env.LAZULITE_CONNECTION_STRING;
  const { connectionString } = given
    ? { connectionString: given }
    : await startLazulite(process.argv[2] ?? "lazulite");
  const { url } = await openDevServer(connectionString, Number(process.env.PORT ?? 0));
  console.log(`Explorer: ${url}\n${connectionString}`);
}
