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

export const FILES = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "crates", "server", "explorer");
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
  "img-src 'self' data:",
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

/** A finding in the form of /api/advice. */
function finding(kind, severity, table, subject, title, numbers, explanation, remedy, sketch, pattern) {
  const account = "devstoreaccount1";
  const page = pattern && `docs/patterns/${pattern}.md`;
  return {
    id: `${kind}-${table}`,
    severity,
    kind,
    account,
    table,
    subject,
    title,
    numbers,
    explanation,
    remedy,
    sketch,
    pattern: page,
  };
}

/** One finding of every kind that the advisor knows. */
export const SAMPLE_ADVICE = {
  memory_bound_bytes: 6_291_456,
  month: {
    observed_seconds: 5400,
    currency: "USD",
    prices_date: "2026-01-15",
    prices_basis: "Locally redundant storage, hot tier.",
    table_transactions: 412_000_000,
    queue_transactions: 31_000_000,
    transactions_cost: 15.95,
    stored_bytes: 1_870_000_000,
    capacity_cost: 0.08,
  },
  findings: [
    finding(
      "table-scan",
      "high",
      "Orders",
      "Customer eq ?",
      "A query by Customer reads the whole table",
      {
        requests: 1204,
        examined: 48_160_000,
        returned: 3612,
        examined_per_request: 40_000,
        mean_us: 38_200,
        month_cost: 42.5,
      },
      "The filter names no key, so every entity of the table is examined for each answer.",
      "Keep a second copy of each order, keyed by its customer, and ask for that partition.",
      "OrdersByCustomer   PartitionKey = Customer   RowKey = OrderId",
      "inter_partition_index",
    ),
    finding(
      "partition-scan",
      "medium",
      "Employees",
      "PartitionKey eq ? and EmailAddress eq ?",
      "A query by EmailAddress reads a whole partition",
      { requests: 830, examined: 4_150_000, returned: 830, examined_per_request: 5000 },
      "The filter names the partition and nothing of the row key.",
      "Keep a copy in the same partition under a RowKey made of the address.",
      "Sales   empid_000223             primary\nSales   email_ada@example.com    copy",
      "intra_partition_index",
    ),
    finding(
      "partition-range",
      "medium",
      "Sessions",
      "PartitionKey ge ? and PartitionKey lt ?",
      "A query reads several whole partitions",
      { requests: 41, examined: 820_000, returned: 400 },
      "Only the partition key has bounds.",
      "Put what is asked for together into one partition.",
      "",
      "compound_key",
    ),
    finding(
      "row-range",
      "medium",
      "Orders",
      "PartitionKey eq ? and RowKey ge ? and State eq ?",
      "A query for State reads long ranges of rows",
      { requests: 212, examined: 1_060_000, returned: 2120, examined_per_request: 5000 },
      "The bounds for the RowKey are far wider than what is wanted.",
      "Put the state in front of the RowKey.",
      "Orders   PartitionKey = customer   RowKey = STATE!ORDER",
      "compound_key",
    ),
    finding(
      "hot-account",
      "high",
      "",
      "",
      "The account is near what the real service serves",
      { per_second: 18_400, target_per_second: 20_000 },
      "The target is 20,000 requests a second for one account.",
      "Spread the tables over several accounts.",
      "",
      "",
    ),
    finding(
      "or-of-keys",
      "low",
      "Orders",
      "PartitionKey eq ? and (RowKey eq ? or RowKey eq ?)",
      "Row keys joined by or scan on the real service",
      { requests: 96 },
      "Here they are points; the real service reads the partition.",
      "Ask for the entities one by one.",
      "",
      "joins",
    ),
    finding(
      "hot-partition",
      "high",
      "Orders",
      "2026-01-31T15",
      "One partition takes more than its target",
      { per_second: 2350, target_per_second: 2000 },
      "The service's target is 2,000 entities a second for a partition.",
      "Spread the keys over buckets.",
      "PartitionKey = hour!bucket",
      "log_data",
    ),
    finding(
      "append",
      "medium",
      "Orders",
      "",
      "All inserts go to the last partition",
      { inserts: 88_000, share_percent: 98 },
      "The keys grow with time.",
      "Put something else in front of the time.",
      "",
      "prepend_append",
    ),
    finding(
      "prepend",
      "medium",
      "Logins",
      "",
      "All inserts go to the first partition",
      { inserts: 12_000, share_percent: 97 },
      "The partition key counts down with time.",
      "Count down in the row key instead.",
      "",
      "prepend_append",
    ),
    finding(
      "giant-partition",
      "medium",
      "Events",
      "all",
      "One partition holds most of the table",
      { entities: 4_100_000, bytes: 812_000_000 },
      "A partition is never split over servers.",
      "Split it by day.",
      "",
      "high_volume_delete",
    ),
    finding(
      "wide-entity",
      "low",
      "Days",
      "2026",
      "Entities near 252 properties",
      { properties: 249, limit: 252, entities: 12 },
      "With four more properties, inserts are refused.",
      "Split the entity.",
      "",
      "wide_entities",
    ),
    finding(
      "large-entity",
      "low",
      "Photos",
      "000123",
      "Entities near 1 MiB",
      { bytes: 1_013_000, limit: 1_048_576, entities: 3 },
      "Larger ones are refused.",
      "Store the payload in chunks.",
      "",
      "large_entities",
    ),
  ].map((one, index) => ({ ...one, rank: index + 1 })),
};

/** Starts the stand-in on a free port, or on the given one. */
export async function openDevServer(connectionString, port = 0) {
  const { TableEndpoint, QueueEndpoint, BlobEndpoint } = settingsOf(connectionString);
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
    if (path.startsWith("/storage/blob/"))
      return pass(request, response, BlobEndpoint, path.slice("/storage/blob".length));
    if (path === "/api/live") return json(liveSample());
    if (path === "/api/advice") return json(SAMPLE_ADVICE);
    if (path === "/api/status") return json({ accounts: ["devstoreaccount1"], has_emulator_account: true });
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
  const child = spawn(binary, ["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"], {
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
