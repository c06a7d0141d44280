// The filter box: text with completion, saved filters, and the plan before the query runs and after.
//
// Promises: every suggestion can be reached by keyboard; the plan is there while typing, without asking the server.
// Filters are kept in the browser only when somebody saves them. Leaves to others: running the query.

import { complete } from "./complete.js";
import { ask, h, iconButton, keep, menuButton, number, recall, show, toast } from "./dom.js";
import { FilterError, parse } from "./filter.js";
import { plan, planNamed, sentence } from "./plan.js";

const SAVED = "lazulite.filters";
const SAVED_MAX = 200;

function savedFilters(table) {
  try {
    return JSON.parse(recall(SAVED) ?? "[]").filter((one) => one.table === table);
  } catch {
    return [];
  }
}

function change(work) {
  let all = [];
  try {
    all = JSON.parse(recall(SAVED) ?? "[]");
  } catch {
    // What was kept is unreadable, so it begins anew.
  }
  keep(SAVED, JSON.stringify(work(all).slice(-SAVED_MAX)));
}

export class FilterBox {
  #table;
  #columns;
  #run;
  #choice = -1;
  #items = [];
  #range;

  constructor(table, columns, run, initial = "") {
    this.#table = table;
    this.#columns = columns;
    this.#run = run;
    this.input = h("input", {
      type: "text",
      id: "filter",
      class: "filter-input",
      value: initial,
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      placeholder: "PartitionKey eq 'a' and RowKey ge 'b'",
      role: "combobox",
      "aria-expanded": "false",
      "aria-autocomplete": "list",
      "aria-controls": "suggestions",
      "aria-label": "Filter",
      "aria-describedby": "plan-before",
      oninput: () => this.#changed(),
      onkeydown: (event) => this.#key(event),
      onclick: () => this.#suggest(),
      onblur: () => this.#hide(),
    });
    this.list = h("ul", {
      class: "suggestions",
      id: "suggestions",
      role: "listbox",
      "aria-label": "Suggestions",
      hidden: true,
    });
    this.before = h("div", { class: "plan-before", id: "plan-before" });
    this.after = h("div", { class: "plan-after", "aria-live": "polite" });
    const star = iconButton("Saved filters", "star", undefined);
    const submit = (event) => {
      event.preventDefault();
      this.#hide();
      this.#run(this.input.value.trim());
    };
    this.element = h(
      "form",
      { class: "filter", role: "search", onsubmit: submit },
      h(
        "div",
        { class: "filter-line" },
        h("div", { class: "filter-box" }, this.input, this.list),
        menuButton(star, () => this.#menu()),
        h("button", { type: "submit", class: "button primary" }, h("span", {}, "Run")),
      ),
      h("div", { class: "plan" }, this.before, this.after),
    );
    this.#plan();
  }

  get text() {
    return this.input.value.trim();
  }

  #menu() {
    const saved = savedFilters(this.#table);
    const use = (text) => () => {
      this.input.value = text;
      this.#plan();
      this.#run(text);
    };
    const items = saved.map(({ name, text }) => [name, use(text)]);
    if (saved.length > 0) items.push("-");
    if (this.text) items.push(["Save this filter…", () => this.#save()]);
    for (const { name } of saved) items.push([`Remove ${name}`, () => this.#forget(name), "danger"]);
    if (items.length === 0) items.push(["Type a filter to save it", () => this.input.focus()]);
    return items;
  }

  #save() {
    const text = this.text;
    const save = (name) => {
      change((all) => [
        ...all.filter((one) => one.table !== this.#table || one.name !== name),
        { table: this.#table, name, text },
      ]);
      toast(`Saved as ${name}, in this browser.`);
    };
    const check = (name) => (name.trim() === "" ? "A name is needed." : undefined);
    ask("Save this filter", "Name", "Save", { check, save, note: "It stays in this browser." });
  }

  #forget(name) {
    change((all) => all.filter((one) => one.table !== this.#table || one.name !== name));
  }

  #changed() {
    this.#plan();
    this.#suggest();
  }

  /** Says what the text would read, or what is wrong with it. */
  #plan() {
    this.after.replaceChildren();
    try {
      const expected = plan(parse(this.input.value));
      const isAll = this.text === "";
      // To look through a whole table is nothing to be warned of; to search it is.
      const words = isAll ? "lists the table from its beginning, page by page" : sentence(expected);
      show(this.before, label("Will be"), pill(expected.kind, isAll), h("span", { class: "plan-words" }, words));
      this.before.dataset.plan = expected.kind;
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      show(
        this.before,
        h("span", { class: "pill bad" }, "not a filter"),
        h("span", { class: "plan-words" }, `${error.message} (at ${error.at + 1})`),
      );
      this.before.dataset.plan = "";
    }
  }

  /** Says what the query read, by the server's own account. */
  showAfter(actual, isComplete) {
    if (!actual)
      return show(this.after, h("span", { class: "plan-words" }, "This server does not say how it found them."));
    const { kind, examined, returned } = actual;
    const share = examined === 0 ? 1 : Math.min(returned / examined, 1);
    const tone = share === 1 ? "good" : planNamed(kind).tone;
    const bar = h("span", { class: `plan-bar ${tone}`, "aria-hidden": "true" }, h("span", {}));
    bar.firstChild.style.setProperty("width", `${Math.max(share * 100, 1)}%`);
    this.after.dataset.plan = kind;
    show(
      this.after,
      label("Was"),
      pill(kind, this.text === ""),
      examined > 0 && bar,
      h(
        "span",
        { class: "plan-words" },
        `examined ${number(examined)}, returned ${number(returned)}${isComplete ? "" : " so far"}`,
      ),
    );
  }

  // Completion

  #suggest() {
    const at = this.input.selectionStart;
    const { start, end, items } = complete(this.input.value, at, this.#columns.types, this.#columns.samples);
    if (items.length === 0 || document.activeElement !== this.input) return this.#hide();
    this.#items = items;
    this.#range = [start, end];
    this.#choice = -1;
    show(
      this.list,
      items.map(({ text, note, kind }, index) =>
        h(
          "li",
          {
            role: "option",
            id: `suggestion-${index}`,
            "aria-selected": "false",
            class: `is-${kind}`,
            onpointerdown: (event) => this.#pick(event, index),
          },
          h("span", {}, text),
          h("small", {}, note),
        ),
      ),
    );
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.input.removeAttribute("aria-activedescendant");
  }

  #pick(event, index) {
    event.preventDefault();
    this.#accept(index);
  }

  #hide() {
    this.list.hidden = true;
    this.#items = [];
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  #accept(index) {
    const { text, kind } = this.#items[index];
    const [start, end] = this.#range;
    const value = this.input.value;
    const gap = kind === "value" || /^\s/.test(value.slice(end)) ? "" : " ";
    this.input.value = value.slice(0, start) + text + gap + value.slice(end);
    // Inside of quotes is where the next letter belongs.
    const quote = kind === "value" && text.endsWith("'") ? 1 : 0;
    const cursor = start + text.length + gap.length - quote;
    const inner = quote && text.length > 2 ? start + text.indexOf("'") + 1 : cursor;
    this.input.setSelectionRange(inner, cursor);
    this.#hide();
    this.#plan();
    if (kind !== "value") this.#suggest();
  }

  #key(event) {
    if (this.list.hidden) {
      if (event.key === "ArrowDown") {
        this.#suggest();
        event.preventDefault();
      }
      return;
    }
    const count = this.#items.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.#choice = this.#choice < 0 && step < 0 ? count - 1 : (this.#choice + step + count) % count;
      [...this.list.children].forEach((item, index) =>
        item.setAttribute("aria-selected", String(index === this.#choice)),
      );
      this.list.children[this.#choice].scrollIntoView({ block: "nearest" });
      this.input.setAttribute("aria-activedescendant", `suggestion-${this.#choice}`);
    } else if (event.key === "Tab" && !event.shiftKey) {
      this.#accept(Math.max(this.#choice, 0));
    } else if (event.key === "Enter" && this.#choice >= 0) {
      this.#accept(this.#choice);
    } else if (event.key === "Escape") {
      this.#hide();
    } else {
      return;
    }
    event.preventDefault();
  }
}

function label(text) {
  return h("span", { class: "plan-label" }, text);
}

/** The name of a plan in its colour, or without one. */
function pill(kind, isPlain) {
  return h("span", { class: `pill ${isPlain ? "" : planNamed(kind).tone}` }, kind);
}
