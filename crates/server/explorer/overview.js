// What is shown when nothing is chosen yet: the server, how programs reach it, the first findings, and the keys.
//
// Promises: the connection string has no key in it, since the page does not keep the key as text. Whatever the admin
// port does not say is left out.

import { bytes, button, h, icon, plural, show, toast } from "./dom.js";
import { admin } from "./rest.js";

const FINDINGS_SHOWN_MAX = 3;
const KEYS = [
  ["/", "filter"],
  ["↑ ↓ ← →", "move in the grid"],
  ["Space", "select"],
  ["Enter", "open"],
  ["Delete", "delete"],
  ["Ctrl Home", "first row; Ctrl End for the last"],
];

export class OverviewView {
  constructor(app) {
    this.app = app;
    this.abort = new AbortController();
    this.facts = h("dl", { class: "tiles" });
    this.programs = h("section", { class: "panel", hidden: true });
    this.findings = h("section", { class: "panel", hidden: true });
    this.element = h(
      "section",
      { class: "view welcome-view", "aria-labelledby": "view-title" },
      h(
        "div",
        { class: "welcome" },
        h("h1", { id: "view-title", tabindex: "-1" }, app.connection.account),
        h("p", { class: "quiet" }, "Choose a table, a queue or a container, or look at what the server does right now."),
        h(
          "p",
          { class: "welcome-links" },
          h("a", { class: "button", href: "#/live" }, icon("live"), h("span", {}, "Live charts")),
          h("a", { class: "button", href: "#/advice" }, icon("advice"), h("span", {}, "Advice")),
        ),
        this.facts,
        this.findings,
        this.programs,
        h(
          "section",
          { class: "panel" },
          h("h2", {}, "Keys"),
          h(
            "dl",
            { class: "keys" },
            KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what))),
          ),
        ),
      ),
    );
    this.#ask("/api/status", (status) => this.#showStatus(status));
    this.#ask("/api/advice", (advice) => this.#showFindings(advice));
  }

  close() {
    this.abort.abort();
  }

  /** The page works without these answers. */
  #ask(path, use) {
    admin(path, this.abort.signal).then(use, () => {});
  }

  #showStatus({ version, uptime_seconds: uptime, storage, connection_strings: strings = [] }) {
    const stored = storage && (storage.log_bytes ?? 0) + (storage.tree_bytes ?? 0);
    const facts = [
      version && ["Version", version],
      Number.isFinite(uptime) && ["Running for", age(uptime)],
      Number.isFinite(stored) && ["On disk", bytes(stored)],
    ];
    show(
      this.facts,
      facts.filter(Boolean).map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, text))),
    );
    const account = `AccountName=${this.app.connection.account};`;
    const own = strings.find((text) => typeof text === "string" && text.includes(account));
    if (!own) return;
    const text = own.replace(account, `${account}AccountKey=KEY;`);
    const copy = async () => {
      await navigator.clipboard.writeText(text);
      toast("Copied. Put your key in place of KEY.");
    };
    this.programs.hidden = false;
    show(
      this.programs,
      h("h2", {}, "For your program"),
      h(
        "pre",
        { tabindex: "0", "aria-label": "Connection string" },
        text.split(/(?<=;)/).flatMap((part) => [part, h("wbr", {})]),
      ),
      // Browsers lend the clipboard to secure pages only.
      navigator.clipboard && button("Copy", copy, { kind: "small" }),
    );
  }

  #showFindings({ findings = [] }) {
    this.app.setAdviceCount(findings.length);
    const first = [...findings].sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)).slice(0, FINDINGS_SHOWN_MAX);
    this.findings.hidden = first.length === 0;
    show(
      this.findings,
      h("h2", {}, "The advisor says"),
      h(
        "ul",
        { class: "first-findings" },
        first.map(({ title, severity }) =>
          h("li", {}, h("span", { class: `dot is-${severity}`, "aria-hidden": "true" }), h("span", {}, title)),
        ),
      ),
      h(
        "p",
        {},
        h("a", { href: "#/advice" }, findings.length > first.length ? `All ${findings.length} findings` : "What helps"),
      ),
    );
  }
}

function age(seconds) {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return plural(Math.round(seconds / 86_400), "day");
}
