// One table: the filter, the grid, and what can be done with the entities that are chosen.
//
// Promises: what is deleted is what was seen (by ETag), unless the user says otherwise; a selection is bounded.
// Leaves to others: the grid (grid.js), the filter (filterbox.js), the form (forms.js), the files (export.js).

import {
  button,
  confirm,
  dialog,
  download,
  h,
  iconButton,
  menuButton,
  number,
  plural,
  show,
  toast,
  toastError,
} from "./dom.js";
import { collect, namesIn, toCsv, toJson } from "./export.js";
import { FilterBox } from "./filterbox.js";
import { openEntity, removeEntity } from "./forms.js";
import { Columns, Grid } from "./grid.js";
import { Pages } from "./pages.js";
import { deleteEntity, deleteTable, getEntity, queryEntities } from "./rest.js";

const SELECTED_MAX = 10_000;
const REQUESTS_AT_ONCE = 6;
const HINTS_MAX = 30;

/** Runs `work` for each item, a few at a time. */
async function eachOf(items, work) {
  const left = [...items];
  await Promise.all(
    Array.from({ length: REQUESTS_AT_ONCE }, async () => {
      while (left.length > 0) await work(left.shift());
    }),
  );
}

export class TableView {
  constructor(app, table, filter) {
    Object.assign(this, { app, table, columns: new Columns(), selected: new Map(), actual: undefined, filter });
    this.connection = app.connection;
    this.summary = h("p", { class: "view-summary", "aria-live": "polite" });
    this.box = new FilterBox(table, this.columns, (text) => this.run(text), filter);
    this.grid = new Grid(this.columns, {
      open: (row) => this.#open(row),
      select: (rows, isSelected) => this.#select(rows, isSelected),
      selectAll: (isSelected) => this.#selectAll(isSelected),
      isSelected: (entity) => this.selected.has(entity.key),
      need: (first, last) => this.#need(first, last),
      remove: (row) => this.#removeAt(row),
    });
    this.notice = h("div", { class: "grid-notice", hidden: true });
    this.selection = h("div", { class: "selection", hidden: true, role: "region", "aria-label": "Selection" });
    const more = iconButton("More for this table", "more");
    this.element = h(
      "section",
      { class: "view table-view", "aria-labelledby": "view-title" },
      h(
        "header",
        { class: "view-head" },
        h("div", { class: "view-title" }, h("h1", { id: "view-title", tabindex: "-1" }, table), this.summary),
        h(
          "div",
          { class: "view-actions" },
          button("Insert", () => this.#insert(), { symbol: "add", kind: "primary-soft" }),
          iconButton("Read again", "refresh", () => this.run(this.box.text)),
          menuButton(more, () => this.#menu()),
        ),
      ),
      this.box.element,
      this.selection,
      h("div", { class: "grid-place" }, this.grid.element, this.notice),
    );
    this.run(filter);
  }

  close() {
    this.pages?.close();
    this.grid.close();
  }

  /** Runs a filter from the beginning. */
  run(filter) {
    this.filter = filter;
    this.app.remember(`#/table/${encodeURIComponent(this.table)}`, filter ? { filter } : {});
    this.pages?.close();
    this.actual = undefined;
    this.#clearSelection();
    this.notice.hidden = true;
    this.pages = new Pages((token, signal) => queryEntities(this.connection, this.table, { filter, token, signal }));
    this.grid.reset(this.pages);
    this.#summarise();
  }

  async #need(first, last) {
    const pages = this.pages;
    // While a page is on its way, the next drawing asks again.
    if (pages.isLoading || this.failed === pages) return;
    try {
      const answer = await pages.need(first, last);
      if (!answer || pages !== this.pages) return;
      const isNew = this.columns.learn(answer.entities);
      // A page that is read again has been counted before.
      if (answer.plan && !answer.isAgain) {
        const before = this.actual ?? { examined: 0, returned: 0 };
        this.actual = {
          kind: answer.plan.kind,
          examined: before.examined + answer.plan.examined,
          returned: before.returned + answer.plan.returned,
        };
      }
      this.box.showAfter(this.actual, pages.isComplete);
      this.#summarise();
      if (pages.count === 0 && pages.isComplete)
        this.#say(this.filter ? "No entity matches this filter." : "This table is empty.");
      if (isNew) this.grid.layOut();
      else this.grid.draw();
    } catch (error) {
      if (error.name === "AbortError" || pages !== this.pages) return;
      this.failed = pages;
      this.#say(error.code ? `${error.code}: ${error.message}` : error.message, "bad");
    }
  }

  #say(text, tone = "") {
    const isEmpty = !this.filter && tone === "";
    show(
      this.notice,
      h("p", { class: tone, role: tone ? "alert" : undefined }, text),
      isEmpty && button("Insert an entity", () => this.#insert(), { kind: "primary", symbol: "add" }),
    );
    this.notice.hidden = false;
  }

  #summarise() {
    const { count, isComplete, isFull } = this.pages;
    const hidden = this.columns.total - this.columns.shown.length;
    const words = isComplete ? plural(count, "entity", "entities") : `${number(count)} read so far`;
    this.summary.textContent = [
      words,
      isFull && "narrow the filter to see more",
      hidden > 0 && `${hidden} columns hidden`,
    ]
      .filter(Boolean)
      .join(" · ");
    this.element.dataset.count = String(count);
    this.element.dataset.kept = String(this.pages.kept);
    this.element.dataset.complete = String(isComplete);
  }

  #menu() {
    return [
      ["Columns…", () => this.#chooseColumns()],
      ["Export the result as CSV", () => this.#exportAll("csv")],
      ["Export the result as JSON", () => this.#exportAll("json")],
      ["Count all entities", () => this.#countAll()],
      "-",
      ["Delete this table…", () => this.#deleteTable(), "danger"],
    ];
  }

  // One entity

  async #open(row) {
    const entity = this.pages.entity(row);
    if (!entity) return;
    try {
      // What the grid shows may be old, and the form must begin with what is stored.
      const fresh = await getEntity(this.connection, this.table, entity.partitionKey, entity.rowKey);
      if (await openEntity(this.connection, this.table, fresh)) this.#readAgain(row);
    } catch (error) {
      if (error.status === 404) this.run(this.filter);
      toastError(error);
    }
  }

  async #insert() {
    const hints = new Map([...this.columns.types].slice(3, 3 + HINTS_MAX));
    if (await openEntity(this.connection, this.table, undefined, hints)) {
      this.run(this.filter);
      this.app.countTable(this.table);
    }
  }

  async #removeAt(row) {
    if (this.selected.size > 0) return this.#deleteSelected();
    const entity = this.pages.entity(row);
    if (entity && (await removeEntity(this.connection, this.table, entity))) this.#readAgain(row);
  }

  /** Shows a row as it is now, without leaving the place. */
  #readAgain(row) {
    this.pages.forget(row);
    this.#clearSelection();
    this.app.countTable(this.table);
  }

  #changed() {
    this.run(this.filter);
    this.app.countTable(this.table);
  }

  // The selection

  #select(rows, isSelected) {
    for (const row of rows) {
      const entity = this.pages.entity(row);
      if (!entity) continue;
      if (!isSelected) this.selected.delete(entity.key);
      else if (this.selected.size < SELECTED_MAX) this.selected.set(entity.key, entity);
      else return toast(`At most ${number(SELECTED_MAX)} can be selected.`, "bad");
    }
    this.#showSelection();
  }

  #selectAll(isSelected) {
    if (!isSelected) return this.#clearSelection();
    const rows = [];
    for (let row = 0; row < this.pages.count; row += 1) rows.push(row);
    this.#select(rows, true);
    this.grid.draw();
  }

  #clearSelection() {
    this.selected.clear();
    this.#showSelection();
    this.grid.draw();
  }

  #showSelection() {
    this.selection.hidden = this.selected.size === 0;
    show(
      this.selection,
      h("strong", {}, `${number(this.selected.size)} selected`),
      button("CSV", () => this.#export([...this.selected.values()], "csv"), {
        kind: "quiet small",
        symbol: "download",
        "aria-label": "Export the selected as CSV",
      }),
      button("JSON", () => this.#export([...this.selected.values()], "json"), {
        kind: "quiet small",
        symbol: "download",
        "aria-label": "Export the selected as JSON",
      }),
      button("Delete", () => this.#deleteSelected(), { kind: "danger-quiet small", symbol: "trash" }),
      h("span", { class: "grow" }),
      button("Clear", () => this.#clearSelection(), { kind: "quiet small" }),
    );
  }

  async #deleteSelected() {
    const entities = [...this.selected.values()];
    const title = `Delete ${plural(entities.length, "entity", "entities")}?`;
    if (!(await confirm(title, `They are deleted from ${this.table}. This cannot be undone.`, "Delete"))) return;
    const changed = await this.#deleteEach(entities, (entity) => entity.etag);
    if (changed.length > 0) {
      const text = `${plural(changed.length, "entity was", "entities were")} changed by somebody else, and kept.`;
      if (await confirm("Delete the changed ones too?", text, "Delete anyway"))
        await this.#deleteEach(changed, () => "*");
    }
    this.#changed();
  }

  /** Deletes each, and returns those that have changed. */
  async #deleteEach(entities, etagOf) {
    const changed = [];
    let gone = 0;
    await eachOf(entities, async (entity) => {
      try {
        await deleteEntity(this.connection, this.table, entity.partitionKey, entity.rowKey, etagOf(entity));
        gone += 1;
      } catch (error) {
        if (error.status === 412) changed.push(entity);
        else if (error.status !== 404) toastError(error);
      }
    });
    toast(`${plural(gone, "entity", "entities")} deleted.`);
    return changed;
  }

  // Files

  #export(entities, format) {
    const text = format === "csv" ? toCsv(entities, namesIn(entities)) : toJson(entities);
    const type = format === "csv" ? "text/csv" : "application/json";
    download(`${this.table}.${format}`, `${type};charset=utf-8`, [text]);
    if (format === "csv")
      toast("Text that a spreadsheet would run as a formula has a leading apostrophe. JSON has all as it is.");
  }

  /** Reads the whole result with a dialog that can stop it. */
  async #readAll(title, select, use) {
    const abort = new AbortController();
    let stop;
    const line = h("p", { "aria-live": "polite" }, "Reading…");
    const shown = dialog(title, (close) => {
      stop = close;
      return h(
        "div",
        { class: "dialog-body" },
        line,
        h(
          "footer",
          { class: "dialog-foot" },
          button("Stop", () => close(), { kind: "quiet" }),
        ),
      );
    });
    shown.then(() => abort.abort());
    try {
      const page = (token) =>
        queryEntities(this.connection, this.table, { filter: this.filter, select, token, signal: abort.signal });
      await use(page, (count) => {
        line.textContent = `${plural(count, "entity", "entities")} read…`;
      });
    } catch (error) {
      toastError(error);
    } finally {
      stop();
    }
  }

  #exportAll(format) {
    return this.#readAll("Exporting", undefined, async (page, progress) => {
      const { entities, isCut } = await collect(page, progress);
      this.#export(entities, format);
      if (isCut)
        toast(
          `The file ends after ${number(entities.length)} entities: it would be too large. Export by filters.`,
          "bad",
        );
    });
  }

  #countAll() {
    return this.#readAll("Counting", "RowKey", async (page, progress) => {
      let [count, token] = [0, undefined];
      do {
        const answer = await page(token);
        count += answer.entities.length;
        token = answer.next;
        progress(count);
      } while (token);
      if (!this.filter) this.app.setCount("table", this.table, number(count));
      toast(`${plural(count, "entity", "entities")}${this.filter ? " match" : ""}.`);
    });
  }

  #chooseColumns() {
    return dialog("Columns", (close) => {
      const change = (name) => (event) => {
        if (event.target.checked) this.columns.hidden.delete(name);
        else this.columns.hidden.add(name);
        this.grid.layOut();
        this.#summarise();
      };
      return h(
        "div",
        { class: "dialog-body" },
        h(
          "div",
          { class: "column-list" },
          [...this.columns.types].map(([name, types]) =>
            h(
              "label",
              {},
              h("input", { type: "checkbox", checked: !this.columns.hidden.has(name), onchange: change(name) }),
              h("span", { class: "mono" }, name),
              h("small", {}, [...types].join(", ")),
            ),
          ),
        ),
        h(
          "footer",
          { class: "dialog-foot" },
          button("Done", () => close(), { kind: "primary" }),
        ),
      );
    });
  }

  async #deleteTable() {
    const text = "The table and all of its entities are deleted. This cannot be undone.";
    if (!(await confirm(`Delete ${this.table}?`, text, "Delete the table", this.table))) return;
    try {
      await deleteTable(this.connection, this.table);
      toast(`${this.table} is deleted.`);
      this.app.removed("table", this.table);
    } catch (error) {
      toastError(error);
    }
  }
}
