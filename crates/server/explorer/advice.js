// The advisor's findings, ranked as the server ranks them, each with its numbers and the pattern that helps.
//
// Promises: every finding is shown, whatever members it has; text from the server is shown as text.

import { bytes, duration, h, iconButton, number, show } from "./dom.js";
import { patternNamed, patternName } from "./patterns.js";
import { admin } from "./rest.js";

const ASK_MS = 10_000;
const NOTHING =
  "Run your program against this server for a while. Scans, hot partitions and keys that grow at one end appear " +
  "here, with what to do about them.";

/** Names of members in words: `entities_examined` becomes `entities examined`. */
function words(name) {
  return name
    .replace(/[_-]+/g, " ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();
}

const LABELS = Object.assign(Object.create(null), {
  mean_us: "time, mean",
  max_us: "time, longest",
  month_cost: "month, real service",
});

const SEVERITIES = { high: "bad", medium: "poor", low: "fair" };

function toneOf(severity) {
  return Object.hasOwn(SEVERITIES, severity) ? SEVERITIES[severity] : "";
}

/** A number in the unit that its name says. */
function written(name, value, currency) {
  if (typeof value !== "number") return typeof value === "object" ? JSON.stringify(value) : String(value);
  if (name.endsWith("bytes")) return bytes(value);
  if (name.endsWith("_us")) return duration(value);
  if (name.endsWith("percent")) return `${number(value)} %`;
  if (name.endsWith("cost")) return money(value, currency);
  return number(Math.abs(value) >= 100 ? Math.round(value) : Math.round(value * 100) / 100);
}

function money(value, currency = "USD") {
  return `${value.toLocaleString("en", { maximumFractionDigits: value >= 100 ? 0 : 2 })} ${currency}`;
}

function label(name) {
  return LABELS[name] ?? words(name.replace(/_(us|percent)$/, ""));
}

/** The numbers of a finding as pairs, whether they come as an object, as a list of pairs or as text. */
function pairs(numbers) {
  if (Array.isArray(numbers)) {
    return numbers.map((one) => (Array.isArray(one) ? one : [one.name ?? one.label ?? "", one.value ?? one]));
  }
  if (numbers && typeof numbers === "object") return Object.entries(numbers);
  return numbers ? [["", numbers]] : [];
}

export class AdviceView {
  constructor(app) {
    this.app = app;
    this.summary = h("p", { class: "view-summary", "aria-live": "polite" }, "Asking…");
    this.list = h("ol", { class: "findings" });
    this.element = h(
      "section",
      { class: "view advice-view", "aria-labelledby": "view-title" },
      h(
        "header",
        { class: "view-head" },
        h("div", { class: "view-title" }, h("h1", { id: "view-title", tabindex: "-1" }, "Advice"), this.summary),
        h(
          "div",
          { class: "view-actions" },
          iconButton("Ask again", "refresh", () => this.refresh()),
        ),
      ),
      h("div", { class: "view-scroll", tabindex: "0", role: "region", "aria-label": "Findings" }, this.list),
    );
    this.abort = new AbortController();
    this.cards = new Map();
    this.refresh();
    this.timer = setInterval(() => !document.hidden && this.refresh(), ASK_MS);
  }

  close() {
    this.abort.abort();
    clearInterval(this.timer);
  }

  async refresh() {
    try {
      const { findings = [], memory_bound_bytes: bound, month } = await admin("/api/advice", this.abort.signal);
      this.app.setAdviceCount(findings.length);
      const held = Number.isFinite(bound) ? ` The advisor holds at most ${bytes(bound)}.` : "";
      show(
        this.summary,
        findings.length === 0
          ? `Nothing to report: the queries fit the tables.${held}`
          : `${findings.length} ${findings.length === 1 ? "finding" : "findings"}, the most costly first.${held}`,
      );
      this.#draw(findings, month);
    } catch (error) {
      if (error.name === "AbortError") return;
      show(this.summary, h("span", { class: "bad" }, "The advisor does not answer."));
    }
  }

  /** Draws what has changed. A card that is the same stays, so that nobody loses the place while reading. */
  #draw(findings, month) {
    const ranked = [...findings].sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
    const cards = ranked.map((finding) => {
      const text = JSON.stringify(finding);
      const known = this.cards.get(finding.id);
      return known?.text === text
        ? known
        : { id: finding.id, text, element: card(finding, this.app, month?.currency) };
    });
    this.cards = new Map(cards.map((one) => [one.id, one]));
    const focused = this.list.contains(document.activeElement) ? document.activeElement : undefined;
    show(
      this.list,
      cards.map((one) => one.element),
      cards.length === 0 && h("li", { class: "finding-none" }, h("p", {}, NOTHING)),
      month && month.table_transactions + month.queue_transactions > 0 && monthCard(month),
    );
    if (focused?.isConnected) focused.focus({ preventScroll: true });
  }
}

function card(finding, app, currency) {
  const { id, kind, severity, table, subject, title, numbers, explanation, remedy, pattern, account, sketch } =
    finding;
  const name = pattern && patternName(pattern);
  const isOurs = table && app.connection && (!account || account === app.connection.account);
  const facts = pairs(numbers).map(([key, value]) =>
    h("div", {}, h("dt", {}, label(String(key))), h("dd", {}, written(String(key), value, currency))),
  );
  const place = isOurs
    ? h("a", { class: "mono", href: `#/table/${encodeURIComponent(table)}` }, table)
    : h("span", { class: "mono" }, table);
  return h(
    "li",
    { class: "finding", "data-id": id, "data-kind": kind },
    h(
      "header",
      {},
      h("span", { class: `pill ${toneOf(severity)}` }, words(String(kind ?? "finding"))),
      severity && h("span", { class: "finding-severity" }, `${severity} severity`),
      table && place,
      account && !isOurs && h("span", { class: "quiet" }, account),
    ),
    h("h2", {}, title),
    subject && h("p", { class: "mono quiet finding-subject" }, subject),
    facts.length > 0 && h("dl", { class: "finding-numbers" }, facts),
    explanation && h("p", {}, explanation),
    remedy && h("p", { class: "finding-remedy" }, h("strong", {}, "What helps. "), remedy),
    sketch && h("pre", { tabindex: "0", "aria-label": "Sketch of the keys" }, sketch),
    name && h("p", {}, h("a", { href: `#/pattern/${encodeURIComponent(name)}` }, `Pattern: ${titleOf(name)}`)),
  );
}

function titleOf(name) {
  return patternNamed(name)?.title ?? words(name);
}

/** What the same month would cost on the real service. */
function monthCard(month) {
  const { currency, prices_date: date, prices_basis: basis, transactions_cost: transactions } = month;
  const facts = [
    ["Table transactions", number(month.table_transactions)],
    ["Queue transactions", number(month.queue_transactions)],
    ["Transactions", money(transactions, currency)],
    Number.isFinite(month.stored_bytes) && ["Stored", bytes(month.stored_bytes)],
    Number.isFinite(month.capacity_cost) && ["Capacity", money(month.capacity_cost, currency)],
  ];
  const shown = facts.filter(Boolean).map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text)));
  return h(
    "li",
    { class: "finding month" },
    h("h2", {}, "A month at this rate on the real service"),
    h("dl", { class: "finding-numbers" }, shown),
    h("p", { class: "quiet" }, [basis, date && `Prices of ${date}.`].filter(Boolean).join(" ")),
  );
}

/** One pattern, short; the whole page is in the documentation. */
export class PatternView {
  constructor(name) {
    const pattern = patternNamed(name);
    const source = `https://github.com/lazulite/lazulite/blob/main/docs/patterns/${encodeURIComponent(name)}.md`;
    this.element = h(
      "section",
      { class: "view pattern-view", "aria-labelledby": "view-title" },
      h(
        "header",
        { class: "view-head" },
        h(
          "div",
          { class: "view-title" },
          h("h1", { id: "view-title", tabindex: "-1" }, pattern?.title ?? "No such pattern"),
          h("p", { class: "view-summary" }, "Table design pattern"),
        ),
      ),
      h(
        "div",
        { class: "view-scroll" },
        h(
          "article",
          { class: "pattern" },
          pattern && h("p", { class: "lead" }, pattern.text),
          pattern && h("pre", { tabindex: "0", "aria-label": "Sketch" }, pattern.sketch.slice(1)),
          pattern && h("p", {}, pattern.when),
          pattern &&
            h(
              "p",
              {},
              h(
                "a",
                { href: source, rel: "noreferrer", target: "_blank" },
                "The whole page, with its price and its numbers",
              ),
            ),
          h("p", {}, h("a", { href: "#/advice" }, "Back to the findings")),
        ),
      ),
    );
  }

  close() {}
}
