// Charts in SVG: lines and stacked areas over the last minutes.
//
// Promises: a chart says in words what it shows, to those who do not see it; colours have names in the legend.
// Pointing at a moment shows its values. Leaves to others: where the numbers come from (live.js).

import { h, show, svg } from "./dom.js";

const HEIGHT = 168;
const PADDING = { top: 8, right: 6, bottom: 22, left: 58 };
/** Seconds between two marks of the time axis. */
const TIME_MARK_SECONDS = 60;
const POINTS_MAX = 600;

/** A round number that is not below the given one, and has a round half. Bytes are counted in powers of two. */
function ceiling(value, isBinary) {
  if (!(value > 0)) return 1;
  if (isBinary) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

export class Chart {
  #data = [];
  #step = 1;
  #pointed;

  /** `lines` has {name, label, tone}; `stacked` puts them on top of each other; `format` writes a value. */
  constructor(title, lines, { stacked = false, isBinary = false, format, floor = 0 }) {
    Object.assign(this, { title, lines, stacked, isBinary, format, floor });
    this.values = lines.map(() => h("span", { class: "legend-value" }, "–"));
    this.plot = svg("svg", { class: "plot", role: "img", "aria-label": title, height: String(HEIGHT) });
    this.element = h(
      "figure",
      { class: "chart" },
      h(
        "figcaption",
        {},
        h("h2", {}, title),
        h(
          "ul",
          { class: "legend" },
          lines.map(({ label, tone }, index) =>
            h(
              "li",
              { class: `tone-${tone}` },
              h("span", { class: "swatch", "aria-hidden": "true" }),
              h("span", {}, label),
              this.values[index],
            ),
          ),
        ),
      ),
      this.plot,
    );
    this.plot.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.plot.addEventListener("pointerleave", () => this.#point(undefined));
    this.observer = new ResizeObserver(() => this.#draw());
    this.observer.observe(this.plot);
  }

  close() {
    this.observer.disconnect();
  }

  /** The marks of the time axis, as {index, text}: every minute, or the moment that somebody points at. */
  #times(count) {
    const ago = (index) => Math.round((count - 1 - index) * this.#step);
    if (this.#pointed !== undefined) return [{ index: this.#pointed, text: `${ago(this.#pointed)} s ago` }];
    const marks = [{ index: count - 1, text: "now" }];
    const step = TIME_MARK_SECONDS / this.#step;
    for (let index = count - 1 - step; index >= 0; index -= step) {
      marks.push({ index, text: `−${Math.round(ago(index) / 60)} min` });
    }
    return marks;
  }

  /** Shows new series; `step` is the seconds between two values. */
  update(series, step) {
    const numbers = (list) =>
      Array.isArray(list) ? list.slice(-POINTS_MAX).map((value) => (Number.isFinite(value) ? value : 0)) : [];
    this.#data = this.lines.map(({ name }) => numbers(series[name]));
    this.#step = step;
    this.#draw();
  }

  get #length() {
    return Math.max(0, ...this.#data.map((list) => list.length));
  }

  #point(x) {
    if (x === undefined || this.#length < 2) this.#pointed = undefined;
    else {
      const width = this.plot.clientWidth - PADDING.left - PADDING.right;
      const at = Math.round(((x - PADDING.left) / width) * (this.#length - 1));
      this.#pointed = Math.min(Math.max(at, 0), this.#length - 1);
    }
    this.#draw();
  }

  #draw() {
    const width = this.plot.clientWidth;
    const count = this.#length;
    if (width === 0 || count < 2) return;
    const inner = { width: width - PADDING.left - PADDING.right, height: HEIGHT - PADDING.top - PADDING.bottom };
    const stacks = this.stacked
      ? stack(this.#data, count)
      : this.#data.map((list) => ({ low: undefined, high: list }));
    const top = Math.max(ceiling(Math.max(0, ...stacks.flatMap(({ high }) => high)), this.isBinary), this.floor);
    const x = (index) => PADDING.left + (index / (count - 1)) * inner.width;
    const y = (value) => PADDING.top + (1 - value / top) * inner.height;
    const line = (list) =>
      list.map((value, index) => `${index === 0 ? "M" : "L"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const area = ({ low, high }) => {
      const under = low ?? high.map(() => 0);
      const back = under
        .map((value, index) => `L${x(index).toFixed(1)} ${y(value).toFixed(1)}`)
        .reverse()
        .join("");
      return `${line(high)}${back}Z`;
    };
    this.plot.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const right = width - PADDING.right;
    const levels = [0, 0.5, 1].map((share) => {
      const at = y(top * share).toFixed(1);
      return [
        svg("line", { class: share === 0 ? "plot-base" : "plot-grid", x1: PADDING.left, x2: right, y1: at, y2: at }),
        svg(
          "text",
          { class: "plot-text", x: PADDING.left - 8, y: Number(at) + 4, "text-anchor": "end" },
          share === 0 ? "0" : this.format(top * share),
        ),
      ];
    });
    const shapes = stacks.map((part, index) => {
      const { tone } = this.lines[index];
      const filled = this.stacked || index === 0;
      return svg(
        "g",
        { class: `tone-${tone}` },
        filled && svg("path", { class: this.stacked ? "plot-stack" : "plot-area", d: area(part) }),
        !this.stacked && svg("path", { class: "plot-line", d: line(part.high) }),
      );
    });
    const at = this.#pointed ?? count - 1;
    const times = this.#times(count).map(({ index, text }) => {
      // What stands at an edge grows inwards.
      const anchor = index > count * 0.93 ? "end" : index < count * 0.07 ? "start" : "middle";
      return svg("text", { class: "plot-text", x: x(index), y: HEIGHT - 5, "text-anchor": anchor }, text);
    });
    const cursor =
      this.#pointed === undefined
        ? undefined
        : svg("line", { class: "plot-cursor", x1: x(at), x2: x(at), y1: PADDING.top, y2: y(0) });
    show(this.plot, levels, shapes, cursor, times);
    const now = this.lines.map(({ label }, index) => {
      const text = this.format(this.#data[index][at] ?? 0);
      this.values[index].textContent = text;
      return `${label} ${text}`;
    });
    this.plot.setAttribute("aria-label", `${this.title}: ${now.join(", ")}`);
  }
}

function stack(data, count) {
  let low = new Array(count).fill(0);
  return data.map((list) => {
    const high = low.map((value, index) => value + (list[index] ?? 0));
    const part = { low, high };
    low = high;
    return part;
  });
}
