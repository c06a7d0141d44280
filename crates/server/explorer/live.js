// The page of live charts, from the admin port's own record of the last minutes.
//
// Promises: it asks once a second and only while it is in sight. Leaves to others: drawing (charts.js).

import { Chart } from "./charts.js";
import { bytes, duration, h, number, show } from "./dom.js";
import { admin } from "./rest.js";

const ASK_MS = 1000;
/** With less there is no more yet: the server has just begun. */
const FULL_SECONDS = 290;
/** What the real service promises for one partition. */
const PARTITION_TARGET = 2000;
const HOT_SHOWN_MAX = 6;
/** Plans that read more than what is asked for. */
const SCANS = ["partition_scan", "partition_range", "table_scan"];
const QUERIES = ["point", "row_range", ...SCANS];

const rate = (value) => number(value >= 100 ? Math.round(value) : Math.round(value * 10) / 10);

/** The last minute in four numbers, each with a label and a tone. */
function minute(series, step) {
  const last = (name) => (Array.isArray(series[name]) ? series[name].slice(-60 / step) : []);
  const sum = (names) => names.flatMap(last).reduce((total, value) => total + (value || 0), 0) * step;
  const percent = (part, whole) => (whole > 0 ? `${number(Math.round((part / whole) * 1000) / 10)} %` : "–");
  const [requests, errors, scans, queries] = [sum(["requests"]), sum(["errors"]), sum(SCANS), sum(QUERIES)];
  const slowest = Math.max(0, ...last("p99_us"));
  return [
    ["Requests, last minute", number(Math.round(requests)), ""],
    ["Refused or failed", percent(errors, requests), errors > requests / 100 ? "bad" : ""],
    ["Slowest 99 %", slowest > 0 ? duration(slowest) : "–", ""],
    ["Queries that scan", percent(scans, queries), scans > queries / 10 ? "poor" : ""],
  ];
}

export class LiveView {
  constructor() {
    this.charts = [
      new Chart(
        "Requests a second",
        [
          { name: "requests", label: "requests", tone: "accent" },
          { name: "errors", label: "errors", tone: "bad" },
        ],
        { format: rate, floor: 10 },
      ),
      new Chart(
        "Latency",
        [
          { name: "p99_us", label: "99 % within", tone: "violet" },
          { name: "p50_us", label: "half within", tone: "accent" },
        ],
        { format: duration, floor: 1000 },
      ),
      new Chart(
        "Queries a second, by plan",
        [
          { name: "point", label: "point", tone: "good" },
          { name: "row_range", label: "row range", tone: "teal" },
          { name: "partition_scan", label: "partition scan", tone: "fair" },
          { name: "partition_range", label: "partition range", tone: "poor" },
          { name: "table_scan", label: "table scan", tone: "bad" },
        ],
        { stacked: true, format: rate, floor: 10 },
      ),
      new Chart(
        "Bytes a second",
        [
          { name: "bytes_out", label: "out", tone: "teal" },
          { name: "bytes_in", label: "in", tone: "violet" },
        ],
        { format: bytes, floor: 1024, isBinary: true },
      ),
    ];
    this.tiles = h("dl", { class: "tiles", "aria-label": "The last minute" });
    this.hot = h("div", { class: "hot" });
    this.storage = h("dl", { class: "storage" });
    this.status = h("p", { class: "view-summary" }, "The last five minutes");
    this.element = h(
      "section",
      { class: "view live-view", "aria-labelledby": "view-title" },
      h(
        "header",
        { class: "view-head" },
        h("div", { class: "view-title" }, h("h1", { id: "view-title", tabindex: "-1" }, "Live"), this.status),
      ),
      h(
        "div",
        { class: "view-scroll", tabindex: "0", role: "region", "aria-label": "Charts" },
        this.tiles,
        h(
          "div",
          { class: "charts" },
          this.charts.map((chart) => chart.element),
          h("section", { class: "chart" }, h("h2", {}, "Hot partitions"), this.hot),
          h("section", { class: "chart" }, h("h2", {}, "Storage"), this.storage),
        ),
      ),
    );
    this.abort = new AbortController();
    this.#ask();
  }

  close() {
    this.abort.abort();
    clearTimeout(this.timer);
    this.charts.forEach((chart) => chart.close());
  }

  async #ask() {
    try {
      if (!document.hidden) this.#draw(await admin("/api/live", this.abort.signal));
    } catch (error) {
      if (error.name === "AbortError") return;
      show(this.status, h("span", { class: "bad" }, "The server does not answer. Trying again."));
    }
    if (!this.abort.signal.aborted) this.timer = setTimeout(() => this.#ask(), ASK_MS);
  }

  #draw({ series = {}, step_seconds: step = 1, hot_partitions: hot = [], storage = {}, now }) {
    const seconds = Math.round((series.requests?.length ?? 0) * step);
    show(this.status, seconds < FULL_SECONDS ? `The last ${seconds} seconds` : "The last five minutes");
    this.element.dataset.now = String(now);
    for (const chart of this.charts) chart.update(series, step);
    show(
      this.tiles,
      minute(series, step).map(([label, text, tone]) =>
        h("div", {}, h("dt", {}, label), h("dd", { class: tone }, text)),
      ),
    );
    show(
      this.hot,
      hot.length === 0
        ? h("p", { class: "quiet" }, "No partition stands out.")
        : h(
            "ul",
            {},
            hot.slice(0, HOT_SHOWN_MAX).map((one) => hotLine(one)),
          ),
      hot.length > 0 &&
        h(
          "p",
          { class: "quiet" },
          `The bar is full at ${number(PARTITION_TARGET)} a second, the service's target for one partition.`,
        ),
    );
    const facts = [
      ["Commit log", storage.log_bytes, bytes],
      ["Tree", storage.tree_bytes, bytes],
      ["Rows not folded yet", storage.recent_rows, number],
    ];
    show(
      this.storage,
      facts
        .filter(([, value]) => Number.isFinite(value))
        .map(([label, value, format]) => h("div", {}, h("dt", {}, label), h("dd", {}, format(value)))),
    );
  }
}

function hotLine({ account, table, partition, per_second: perSecond }) {
  const share = Math.min(perSecond / PARTITION_TARGET, 1);
  const bar = h(
    "span",
    { class: `hot-bar ${share >= 1 ? "bad" : share > 0.5 ? "poor" : "good"}`, "aria-hidden": "true" },
    h("span", {}),
  );
  bar.firstChild.style.setProperty("width", `${Math.max(share * 100, 1)}%`);
  return h(
    "li",
    {},
    h(
      "span",
      { class: "hot-name", title: `${account} ${table} ${partition}` },
      h("strong", {}, table),
      h("span", { class: "mono" }, ` ${partition}`),
    ),
    h("span", { class: "hot-rate" }, `${rate(perSecond)}/s`),
    bar,
  );
}
