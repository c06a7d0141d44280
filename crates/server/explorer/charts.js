// Charts in SVG: lines and stacked areas over the last minutes.
//
// Promises: a chart says in words what it shows, to those who do not see it; colours have names in the legend.
// Pointing at a moment shows its values. Leaves to others: where the numbers come from (live.js).

import { h, show, svg } from "./dom.js";

const HEIGHT = 150;
const PADDING = { top: 10, right: 4, bottom: 20, left: 4 };
const POINTS_MAX = 600;

/** A round number that is not below the given one. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

export class Chart {
  #data = [];
  #step = 1;
  #pointed;

  /** `lines` has {name, label, tone}; `stacked` puts them on top of each other; `format` writes a value. */
  constructor(title, lines, { stacked = false, format, floor = 0 }) {
    Object.assign(this, { title, lines, stacked, format, floor });
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
    const top = Math.max(ceiling(Math.max(0, ...stacks.flatMap(({ high }) => high))), this.floor);
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
    const grid = [0.5, 1].map((share) =>
      svg("line", { class: "plot-grid", x1: 0, x2: width, y1: y(top * share), y2: y(top * share) }),
    );
    const base = svg("line", { class: "plot-base", x1: 0, x2: width, y1: y(0), y2: y(0) });
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
    const seconds = Math.round((count - 1) * this.#step);
    const ago = seconds >= 120 ? `${Math.round(seconds / 60)} min ago` : `${seconds} s ago`;
    const at = this.#pointed ?? count - 1;
    const texts = [
      svg("text", { class: "plot-text", x: PADDING.left, y: PADDING.top + 12 }, this.format(top)),
      svg("text", { class: "plot-text", x: PADDING.left, y: HEIGHT - 4 }, ago),
      svg(
        "text",
        { class: "plot-text", x: width - PADDING.right, y: HEIGHT - 4, "text-anchor": "end" },
        this.#pointed === undefined ? "now" : `${Math.round((count - 1 - at) * this.#step)} s ago`,
      ),
    ];
    const cursor =
      this.#pointed === undefined
        ? undefined
        : svg("line", { class: "plot-cursor", x1: x(at), x2: x(at), y1: PADDING.top, y2: y(0) });
    show(this.plot, grid, shapes, base, cursor, texts);
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
