// The grid: a window onto a result of any length.
//
// Promises: only the rows and columns in sight are in the page, whatever the result has; arrow keys, Page Up and
// Down, Home and End, Space and Enter do what they do in a spreadsheet; a screen reader hears a grid with row and
// column numbers. Leaves to others: reading pages (pages.js), and what happens when a row is opened or chosen.

import { h, icon, number, show } from "./dom.js";
import { byteLength, literal } from "./types.js";

const ROWS_BEYOND = 6;
/** An entity has 252 properties at most; entities of one table may have different ones. */
const COLUMNS_SHOWN_MAX = 400;
/** With fewer columns all of them are drawn, so that scrolling sideways draws nothing anew. */
const COLUMNS_DRAWN_MIN = 24;
const PIXELS_BEYOND = 400;
const CELL_TEXT_MAX = 160;
const SAMPLES_MAX = 6;
const SAMPLE_TEXT_MAX = 40;
/** Browsers lose precision in very tall boxes. A longer result is scrolled faster than it is tall. */
const SCROLL_HEIGHT_MAX = 8_000_000;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f]/g;
const NUMERIC = new Set(["Int32", "Int64", "Double"]);

/** The columns of a result: system ones first, then as they were met, each with the types seen. */
export class Columns {
  types = new Map(
    ["PartitionKey", "RowKey"]
      .map((name) => [name, new Set(["String"])])
      .concat([["Timestamp", new Set(["DateTime"])]]),
  );
  widths = new Map([
    ["PartitionKey", 150],
    ["RowKey", 170],
    ["Timestamp", 262],
  ]);
  hidden = new Set();
  /** A few values of each column, as literals of a filter. */
  samples = new Map();

  /** Learns from the entities of a page; returns whether something was new. */
  learn(entities) {
    let isNew = false;
    for (const { partitionKey, rowKey, properties } of entities) {
      this.#sample("PartitionKey", { type: "String", text: partitionKey });
      this.#sample("RowKey", { type: "String", text: rowKey });
      for (const [name, value] of properties) {
        const { type, text } = value;
        let types = this.types.get(name);
        if (!types) {
          if (this.types.size >= 2000) continue;
          this.types.set(name, (types = new Set()));
          this.widths.set(name, width(name, type, text));
          isNew = true;
        }
        if (!types.has(type)) {
          types.add(type);
          isNew = true;
        }
        this.#sample(name, value);
      }
    }
    return isNew;
  }

  #sample(name, value) {
    let samples = this.samples.get(name);
    if (!samples) this.samples.set(name, (samples = new Set()));
    const isPlain = value.type !== "Binary" && value.type !== "Boolean" && value.text.length <= SAMPLE_TEXT_MAX;
    if (samples.size < SAMPLES_MAX && isPlain) samples.add(literal(value));
  }

  /** The names in their order: keys, properties, and the timestamp, which is seldom what one looks for. */
  get shown() {
    const names = [...this.types.keys()].filter((name) => !this.hidden.has(name) && name !== "Timestamp");
    const last = this.hidden.has("Timestamp") ? [] : ["Timestamp"];
    return [...names.slice(0, COLUMNS_SHOWN_MAX), ...last];
  }
  get total() {
    return this.types.size;
  }
}

function width(name, type, text) {
  const typical = { DateTime: 262, Guid: 322, Boolean: 90, Int32: 110, Int64: 180, Double: 150, Binary: 190 }[type];
  const letters = Math.min(Math.max(typical ? 0 : text.length * 7.6, 60), 300);
  return Math.max(typical ?? letters + 32, Math.min(name.length * 8.5 + 64, 260));
}

/** A value as the grid shows it: short, one line, and honest about what cannot be seen. */
export function cellText({ type, text }) {
  if (type === "String" && text === "") return "empty";
  if (type === "Binary") return `${number(byteLength(text))} B  ${text.slice(0, 40)}`;
  // A character of two units is not cut in two.
  const end = /[\ud800-\udbff]/.test(text[CELL_TEXT_MAX - 1]) ? CELL_TEXT_MAX - 1 : CELL_TEXT_MAX;
  const short = text.length > CELL_TEXT_MAX ? `${text.slice(0, end)}…` : text;
  return short
    .replace(/\r\n|\r|\n/g, " ⏎ ")
    .replace(/\t/g, " ⇥ ")
    .replace(CONTROL, (one) => String.fromCharCode(0x2400 + one.charCodeAt(0)));
}

export class Grid {
  #pages;
  #columns;
  #on;
  #rows = new Map();
  #active = { row: 0, column: 0 };
  #frame;
  #cells = [];
  /** Where each column begins, and where the last one ends. */
  #lefts = [0];
  /** The first and the last column that are drawn. */
  #span = [0, 0];
  #rowHeight = 34;
  #anchor = 0;

  /** `on` has: open(row), select(rows, isSelected), isSelected(entity), need(first, last), remove(). */
  constructor(columns, on) {
    this.#columns = columns;
    this.#on = on;
    this.head = h("div", { class: "grid-head", role: "rowgroup" });
    this.space = h("div", { class: "grid-space" });
    this.body = h("div", { class: "grid-body", role: "rowgroup" }, this.space);
    this.element = h(
      "div",
      {
        class: "grid",
        role: "grid",
        tabindex: "0",
        "aria-label": "Entities",
        "aria-multiselectable": "true",
        onscroll: () => this.draw(),
        onkeydown: (event) => this.#key(event),
      },
      this.head,
      this.body,
    );
    this.element.addEventListener("click", (event) => this.#click(event));
    this.element.addEventListener("dblclick", (event) => this.#doubleClick(event));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  /** Shows another result from its beginning. */
  reset(pages) {
    this.#pages = pages;
    this.#clear();
    this.#active = { row: 0, column: 0 };
    this.element.scrollTop = 0;
    this.layOut();
  }

  /** Takes over changed columns. */
  layOut() {
    this.#cells = this.#columns.shown;
    this.#span = [0, -1];
    this.#measure();
    const header = h(
      "div",
      { class: "grid-row grid-header", role: "row", "aria-rowindex": "1" },
      h(
        "div",
        { class: "grid-cell lead", role: "columnheader", "aria-colindex": "1" },
        h("input", {
          type: "checkbox",
          tabindex: "-1",
          "aria-label": "Select all loaded entities",
          onchange: (event) => this.#on.selectAll(event.target.checked),
        }),
      ),
      this.#cells.map((name, index) => this.#headerCell(name, index)),
    );
    show(this.head, header);
    this.#clear();
    this.draw();
  }

  #clear() {
    this.#rows.forEach((row) => row.remove());
    this.#rows.clear();
  }

  #measure() {
    const widths = this.#cells.map((name) => this.#columns.widths.get(name));
    this.#lefts = widths.reduce((lefts, width) => [...lefts, lefts.at(-1) + width], [0]);
    this.element.style.setProperty("--tracks", `var(--lead) ${widths.map((width) => `${width}px`).join(" ")}`);
  }

  /** The first and the last column in sight, and within so many pixels beside. */
  #columnSpan(beyond) {
    const last = this.#cells.length - 1;
    if (last < COLUMNS_DRAWN_MIN) return [0, last];
    const { scrollLeft, clientWidth } = this.element;
    const first = this.#lefts.findIndex((left) => left > scrollLeft - beyond) - 1;
    const after = this.#lefts.findIndex((left) => left > scrollLeft + clientWidth + beyond);
    return [Math.max(first, 0), after < 0 ? last : Math.min(after, last)];
  }

  #headerCell(name, index) {
    const types = [...this.#columns.types.get(name)];
    const kind = types.every((type) => NUMERIC.has(type)) ? "is-number" : "";
    const cell = h(
      "div",
      { class: `grid-cell ${kind}`, role: "columnheader", "aria-colindex": String(index + 2) },
      h("span", { class: "column-name", title: name }, name),
      h("span", { class: "column-type" }, types.join(" · ")),
    );
    const handle = h("span", { class: "column-handle", "aria-hidden": "true" });
    handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      handle.setPointerCapture(event.pointerId);
      const [from, before] = [event.clientX, this.#columns.widths.get(name)];
      const move = ({ clientX }) => {
        this.#columns.widths.set(name, Math.max(60, before + clientX - from));
        this.#measure();
        this.draw();
      };
      handle.addEventListener("pointermove", move);
      handle.addEventListener("pointerup", () => handle.removeEventListener("pointermove", move), { once: true });
    });
    cell.append(handle);
    return cell;
  }

  /** Draws in the next frame what has to be in sight. */
  draw() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined;
      this.#paint();
    });
  }

  get #count() {
    if (!this.#pages) return 0;
    return this.#pages.count + (this.#pages.isComplete || this.#pages.isFull ? 0 : 1);
  }

  /** How far the rows are scrolled, in their own pixels. */
  get #view() {
    const headHeight = this.head.offsetHeight;
    const height = Math.max(this.element.clientHeight - headHeight, this.#rowHeight);
    const full = this.#count * this.#rowHeight;
    const shown = Math.min(full, SCROLL_HEIGHT_MAX);
    const scale = shown < full && shown > height ? (full - height) / (shown - height) : 1;
    return { height, full, shown, scale, top: this.element.scrollTop * scale };
  }

  #paint() {
    if (!this.#pages) return;
    this.#rowHeight = parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 34;
    const { height, shown, top } = this.#view;
    this.space.style.setProperty("height", `${shown}px`);
    const [from, to] = this.#columnSpan(0);
    if (from < this.#span[0] || to > this.#span[1]) {
      this.#span = this.#columnSpan(PIXELS_BEYOND);
      this.#clear();
    }
    const count = this.#count;
    const first = Math.max(0, Math.floor(top / this.#rowHeight) - ROWS_BEYOND);
    const last = Math.min(count - 1, Math.ceil((top + height) / this.#rowHeight) + ROWS_BEYOND);
    for (const [index, row] of this.#rows) {
      if (index < first || index > last) {
        row.remove();
        this.#rows.delete(index);
      }
    }
    const shift = this.element.scrollTop - top;
    for (let index = first; index <= last; index += 1) {
      let row = this.#rows.get(index);
      const entity = index < this.#pages.count ? this.#pages.entity(index) : undefined;
      if (!row || row.entity !== entity) {
        row?.remove();
        row = this.#row(index, entity);
        this.#rows.set(index, row);
        this.body.append(row);
      }
      row.style.setProperty("transform", `translateY(${index * this.#rowHeight + shift}px)`);
    }
    this.#mark();
    const known = this.#pages.isComplete ? this.#pages.count + 1 : -1;
    this.element.setAttribute("aria-rowcount", String(known));
    this.element.setAttribute("aria-colcount", String(this.#cells.length + 1));
    this.element.toggleAttribute("data-scrolled", this.element.scrollLeft > 0);
    this.#on.need(first, last);
  }

  #row(index, entity) {
    const row = h("div", { class: "grid-row", role: "row", "aria-rowindex": String(index + 2) });
    row.entity = entity;
    row.dataset.row = String(index);
    if (!entity) {
      row.classList.add("is-loading");
      row.append(h("div", { class: "grid-cell", role: "gridcell" }, "Loading…"));
      return row;
    }
    const label = `Select ${entity.partitionKey} ${entity.rowKey}`;
    row.append(
      h(
        "div",
        { class: "grid-cell lead", role: "gridcell", "aria-colindex": "1", id: `cell-${index}-0` },
        h("input", { type: "checkbox", tabindex: "-1", "aria-label": label, checked: this.#on.isSelected(entity) }),
        h(
          "button",
          { type: "button", class: "row-open", tabindex: "-1", "aria-label": "Open", title: "Open" },
          icon("edit"),
        ),
      ),
    );
    const [first, last] = this.#span;
    for (let at = first; at <= last; at += 1) {
      const cell = this.#cell(entity, this.#cells[at], index, at);
      // Behind the one that selects, and counted from one.
      if (first > 0) cell.style.setProperty("grid-column", String(at + 2));
      row.append(cell);
    }
    return row;
  }

  #cell(entity, name, index, at) {
    const value = entity.value(name);
    const attributes = { role: "gridcell", "aria-colindex": String(at + 2), id: `cell-${index}-${at + 1}` };
    if (!value) return h("div", { class: "grid-cell is-absent", ...attributes });
    const kind = NUMERIC.has(value.type) ? "is-number" : `is-${value.type.toLowerCase()}`;
    const empty = value.type === "String" && value.text === "" ? "is-empty" : value.text === "true" ? "is-true" : "";
    const mixed = this.#columns.types.get(name).size > 1;
    return h(
      "div",
      { class: `grid-cell ${kind} ${empty}`, ...attributes },
      h("span", { class: "cell-text" }, cellText(value)),
      mixed && h("span", { class: "cell-type" }, value.type),
    );
  }

  /** Shows again which rows are chosen and which cell is active. */
  #mark() {
    for (const [index, row] of this.#rows) {
      if (!row.entity) continue;
      const isSelected = this.#on.isSelected(row.entity);
      row.setAttribute("aria-selected", String(isSelected));
      row.querySelector("input").checked = isSelected;
      row.classList.toggle("is-active", index === this.#active.row);
    }
    this.body.querySelector(".is-focus")?.classList.remove("is-focus");
    const id = `cell-${this.#active.row}-${this.#active.column}`;
    const cell = this.#rows.get(this.#active.row)?.querySelector(`#${id}`);
    cell?.classList.add("is-focus");
    if (cell) this.element.setAttribute("aria-activedescendant", id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #rowOf(target) {
    const row = target.closest(".grid-row[data-row]");
    return row && Number(row.dataset.row);
  }

  #click(event) {
    const row = this.#rowOf(event.target);
    if (row === undefined || row === null) return;
    const at = Number(event.target.closest(".grid-cell")?.getAttribute("aria-colindex") ?? 1);
    this.#active = { row, column: at - 1 };
    if (event.target.matches("input")) this.#choose(row, event.target.checked, event.shiftKey);
    else if (event.target.closest(".row-open") || event.pointerType === "touch") this.#on.open(row);
    this.#mark();
  }

  #doubleClick(event) {
    const row = this.#rowOf(event.target);
    if (row === undefined || row === null || event.target.matches("input")) return;
    // Two clicks mark a word, which nobody wanted.
    getSelection()?.removeAllRanges();
    this.#on.open(row);
  }

  #choose(row, isSelected, isRange) {
    const [from, to] = isRange ? [Math.min(this.#anchor, row), Math.max(this.#anchor, row)] : [row, row];
    this.#anchor = row;
    const rows = [];
    for (let index = from; index <= to; index += 1) rows.push(index);
    this.#on.select(rows, isSelected);
    this.#mark();
  }

  #key(event) {
    if (event.target !== this.element || !this.#pages) return;
    const { row, column } = this.#active;
    const lastRow = Math.max(this.#pages.count - 1, 0);
    const lastColumn = this.#cells.length;
    const page = Math.max(1, Math.floor(this.#view.height / this.#rowHeight) - 1);
    const move = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + page, column],
      PageUp: [row - page, column],
      Home: event.ctrlKey ? [0, 0] : [row, 0],
      End: event.ctrlKey ? [lastRow, column] : [row, lastColumn],
    }[event.key];
    const entity = this.#pages.entity(row);
    if (move) {
      const clamp = (value, high) => Math.min(Math.max(value, 0), high);
      this.#active = { row: clamp(move[0], lastRow), column: clamp(move[1], lastColumn) };
      if (event.shiftKey && entity) this.#choose(this.#active.row, true, true);
      this.#reveal();
    } else if (event.key === " " && entity) {
      this.#choose(row, !this.#on.isSelected(entity), event.shiftKey);
    } else if (event.key === "Enter" && entity) {
      this.#on.open(row);
    } else if (event.key === "Delete") {
      this.#on.remove(row);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Scrolls the active cell into sight. */
  #reveal() {
    const { height, scale, top } = this.#view;
    const place = this.#active.row * this.#rowHeight;
    if (place < top) this.element.scrollTop = place / scale;
    else if (place + this.#rowHeight > top + height)
      this.element.scrollTop = (place + this.#rowHeight - height) / scale;
    const left = this.#lefts[Math.max(this.#active.column - 1, 0)];
    const right = this.#lefts[this.#active.column];
    const visible = this.element.clientWidth - 84;
    if (left < this.element.scrollLeft) this.element.scrollLeft = left;
    else if (right > this.element.scrollLeft + visible) this.element.scrollLeft = right - visible;
    this.draw();
  }
}
