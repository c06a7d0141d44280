// The advisor's findings, ranked as the server ranks them, each with its numbers and the pattern that helps.
//
// Promises: every finding is shown, whatever members it has; text from the server is shown as text.

import { bytes, h, iconButton, number, show } from "./dom.js";
import { PATTERNS, patternName } from "./patterns.js";
import { admin } from "./rest.js";

const ASK_MS = 10_000;

/** Names of members in words: `entities_examined` becomes `entities examined`. */
function words(name) {
  return name
    .replace(/[_-]+/g, " ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();
}

function written(value) {
  if (typeof value === "number")
    return number(Math.abs(value) >= 100 ? Math.round(value) : Math.round(value * 100) / 100);
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
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
    this.refresh();
    this.timer = setInterval(() => !document.hidden && this.refresh(), ASK_MS);
  }

  close() {
    this.abort.abort();
    clearInterval(this.timer);
  }

  async refresh() {
    try {
      const { findings = [], memory_bound_bytes: bound } = await admin("/api/advice", this.abort.signal);
      this.app.setAdviceCount(findings.length);
      const held = Number.isFinite(bound) ? ` The advisor holds at most ${bytes(bound)}.` : "";
      show(
        this.summary,
        findings.length === 0
          ? `Nothing to report: the queries fit the tables.${held}`
          : `${findings.length} ${findings.length === 1 ? "finding" : "findings"}, the most costly first.${held}`,
      );
      const text = JSON.stringify(findings);
      // What is the same is left alone, so that nobody loses the place while reading.
      if (text === this.shown) return;
      this.shown = text;
      const ranked = [...findings].sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
      show(
        this.list,
        ranked.map((finding) => card(finding, this.app)),
        findings.length === 0 &&
          h(
            "li",
            { class: "finding-none" },
            h(
              "p",
              {},
              "Run your program against this server for a while. Scans, hot partitions and keys that grow at one end " +
                "appear here, with what to do about them.",
            ),
          ),
      );
    } catch (error) {
      if (error.name === "AbortError") return;
      show(this.summary, h("span", { class: "bad" }, "The advisor does not answer."));
    }
  }
}

function card(finding, app) {
  const { id, kind, table, title, numbers, explanation, remedy, pattern, account, sketch } = finding;
  const name = pattern && patternName(pattern);
  const known = name && PATTERNS[name];
  const isOurs = table && app.connection && (!account || account === app.connection.account);
  return h(
    "li",
    { class: "finding", "data-id": id },
    h(
      "header",
      {},
      h("span", { class: "tag" }, words(String(kind ?? "finding"))),
      table &&
        (isOurs
          ? h("a", { class: "mono", href: `#/table/${encodeURIComponent(table)}` }, table)
          : h("span", { class: "mono" }, table)),
    ),
    h("h2", {}, title),
    pairs(numbers).length > 0 &&
      h(
        "dl",
        { class: "finding-numbers" },
        pairs(numbers).map(([label, value]) =>
          h("div", {}, h("dt", {}, words(String(label))), h("dd", {}, written(value))),
        ),
      ),
    explanation && h("p", {}, explanation),
    remedy && h("p", { class: "finding-remedy" }, h("strong", {}, "What helps. "), remedy),
    sketch && h("pre", {}, sketch),
    name &&
      h("p", {}, h("a", { href: `#/pattern/${encodeURIComponent(name)}` }, `Pattern: ${known?.title ?? words(name)}`)),
  );
}

/** One pattern, short; the whole page is in the documentation. */
export class PatternView {
  constructor(name) {
    const pattern = PATTERNS[name];
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
