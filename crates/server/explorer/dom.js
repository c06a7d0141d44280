// Building the page: elements, icons, dialogs, menus, messages.
//
// Promises: text goes into the page as text and never as markup; nothing here or elsewhere in the explorer parses
// HTML, and an address is only ever of a kind that cannot be a script. Leaves to others: what to show.

const SVG = "http://www.w3.org/2000/svg";
const TOAST_MS = 6000;

/** An element with attributes, listeners (`onclick`) and children: text or elements. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else if (name === "href" && !/^(#|\/|https:\/\/|blob:)/.test(value)) throw new Error(`no such link: ${value}`);
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces what an element holds. */
export function show(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

const PATHS = {
  table: "M3 5h18v14H3zM3 10h18M3 14.5h18M9 5v14",
  container: "M4 7l8-4 8 4v10l-8 4-8-4zM4 7l8 4 8-4M12 11v10",
  folder: "M3 6h6l2 2h10v11H3z",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  upload: "M12 16V5M7 9l5-5 5 5M5 20h14",
  queue: "M4 6h16M4 12h16M4 18h10M18 15v6M15 18l3 3 3-3",
  live: "M3 17l5-6 4 3 8-9M15 5h5v5",
  advice: "M9 18h6M10 21h4M12 3a6 6 0 0 0-4 10.5c.7.7 1 1.5 1 2.5h6c0-1 .3-1.8 1-2.5A6 6 0 0 0 12 3z",
  add: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  menu: "M4 7h16M4 12h16M4 17h16",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  refresh: "M20 11a8 8 0 1 0-2.3 6.3M20 5v6h-6",
  star: "M12 4l2.5 5.2 5.5.8-4 4 1 5.7-5-2.8-5 2.8 1-5.7-4-4 5.5-.8z",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  run: "M7 5l12 7-12 7z",
  theme: "M12 4a8 8 0 1 0 8 8 6 6 0 0 1-8-8z",
  leave: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
  check: "M5 12l5 5 9-10",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  columns: "M4 5h16v14H4zM9.5 5v14M15 5v14",
};

export function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", class: `icon icon-${name}`, "aria-hidden": "true" },
    svg("path", { d: PATHS[name] }),
  );
}

/** The mark of the product. */
export function mark() {
  return svg(
    "svg",
    { viewBox: "0 0 32 32", class: "mark", "aria-hidden": "true" },
    svg("path", { class: "mark-body", d: "M16 2 28 9v14L16 30 4 23V9z" }),
    svg("path", { class: "mark-top", d: "M16 2 28 9 16 16 4 9z" }),
    svg("path", { class: "mark-side", d: "M16 16 28 9v14L16 30z" }),
  );
}

/** A button: `kind` is primary, danger, quiet or nothing. */
export function button(label, onclick, { kind = "", symbol, ...rest } = {}) {
  return h(
    "button",
    { type: "button", class: `button ${kind}`, onclick, ...rest },
    symbol && icon(symbol),
    h("span", {}, label),
  );
}

/** A button that shows only an icon; its label is for those who hear it, and a hint for those who point at it. */
export function iconButton(label, symbol, onclick, rest = {}) {
  return h(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...rest },
    icon(symbol),
  );
}

let fieldCount = 0;

/** A labelled control. `control` gets the id; `note` and the error are tied to it. */
export function field(label, control, note) {
  const id = control.id || `field-${++fieldCount}`;
  control.id = id;
  const error = h("p", { class: "field-error", id: `${id}-error`, hidden: true });
  const hint = note && h("p", { class: "field-note", id: `${id}-note` }, note);
  control.setAttribute("aria-describedby", [hint && `${id}-note`, `${id}-error`].filter(Boolean).join(" "));
  const element = h("div", { class: "field" }, h("label", { for: id }, label), control, hint, error);
  element.fail = (message) => fail(control, error, message);
  return element;
}

/** Shows or hides what is wrong with a control. */
export function fail(control, error, message) {
  error.hidden = !message;
  error.textContent = message ?? "";
  if (message) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
  return Boolean(message);
}

/** Says something in the corner, for a while. */
export function toast(message, tone = "") {
  const line = h("p", { class: `toast ${tone}` }, message);
  document.getElementById("toasts").append(line);
  setTimeout(() => line.remove(), TOAST_MS);
}

/** Says what went wrong. A request that we cancelled ourselves went as it should. */
export function toastError(error) {
  if (error.name === "AbortError") return;
  toast(error.code ? `${error.code}: ${error.message}` : error.message, "bad");
}

/**
 * Opens a modal dialog; `build(close)` returns its content. Resolves to what was given to `close`. Before Escape or the
 * cross closes it, `mayLeave` is asked.
 */
export function dialog(title, build, { drawer = false, wide = false, mayLeave } = {}) {
  return new Promise((resolve) => {
    const returnTo = document.activeElement;
    let result;
    const element = h("dialog", {
      class: `dialog ${drawer ? "drawer" : ""} ${wide ? "wide" : ""}`,
      "aria-labelledby": "dialog-title",
    });
    const close = (value) => {
      result = value;
      element.close();
    };
    const heading = h("h2", { id: "dialog-title" }, title);
    const head = h(
      "header",
      { class: "dialog-head" },
      heading,
      iconButton("Close", "close", () => leave()),
    );
    const leave = async () => {
      if (!mayLeave || (await mayLeave())) close();
    };
    if (mayLeave) {
      element.addEventListener("cancel", (event) => {
        if (event.target !== element) return;
        event.preventDefault();
        leave();
      });
    }
    element.append(head);
    append(element, [build(close, { element, heading })]);
    element.addEventListener("close", () => {
      element.remove();
      returnTo?.focus?.();
      resolve(result);
    });
    document.body.append(element);
    element.showModal();
    element.querySelector("[autofocus]")?.focus();
  });
}

/** Asks before something that cannot be undone. With `typed`, that text has to be typed first. */
export function confirm(title, text, action, typed) {
  return dialog(title, (close) => {
    const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const confirmField = typed && field(`Type ${typed} to confirm`, input);
    const submit = (event) => {
      event.preventDefault();
      if (typed && input.value !== typed) return confirmField.fail(`This is not ${typed}.`);
      close(true);
    };
    return h(
      "form",
      { class: "dialog-body", onsubmit: submit },
      (Array.isArray(text) ? text : [text]).map((line) => (line instanceof Node ? line : h("p", {}, line))),
      confirmField,
      h(
        "footer",
        { class: "dialog-foot" },
        button("Cancel", () => close(false), { kind: "quiet" }),
        h("button", { type: "submit", class: "button danger", autofocus: !typed }, action),
      ),
    );
  });
}

/** Asks for one line of text; `check` says what is wrong with it; `save` may fail, and then the dialog stays. */
export function ask(title, label, action, { check, save, note, value = "" }) {
  return dialog(title, (close) => {
    const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", autofocus: true, value });
    const line = field(label, input, note);
    const submit = async (event) => {
      event.preventDefault();
      const wrong = check?.(input.value);
      if (line.fail(wrong)) return;
      try {
        await save(input.value);
        close(input.value);
      } catch (error) {
        line.fail(error.message);
      }
    };
    return h(
      "form",
      { class: "dialog-body", onsubmit: submit },
      line,
      h(
        "footer",
        { class: "dialog-foot" },
        button("Cancel", () => close(), { kind: "quiet" }),
        h("button", { type: "submit", class: "button primary" }, action),
      ),
    );
  });
}

/** The keys of an entity in a line. Each stands by itself, whichever way its writing runs. */
export function keysLine(partitionKey, rowKey) {
  return h("p", { class: "mono keys-line" }, h("bdi", {}, partitionKey), " / ", h("bdi", {}, rowKey));
}

let menuCount = 0;

/** A button with a menu. `items()` gives [label, action, kind] when it opens. */
export function menuButton(trigger, items) {
  const id = `menu-${++menuCount}`;
  const menu = h("div", { class: "menu", id, popover: "auto", role: "menu" });
  trigger.setAttribute("aria-haspopup", "menu");
  trigger.setAttribute("aria-expanded", "false");
  const buttons = () => [...menu.querySelectorAll("[role=menuitem]")];
  trigger.addEventListener("click", () => {
    show(
      menu,
      items().map((item) => {
        if (item === "-") return h("hr", {});
        const [label, action, kind = ""] = item;
        const choose = () => {
          menu.hidePopover();
          action();
        };
        return h("button", { type: "button", role: "menuitem", tabindex: "-1", class: kind, onclick: choose }, label);
      }),
    );
    menu.showPopover();
    const place = trigger.getBoundingClientRect();
    const left = Math.max(8, Math.min(place.right - menu.offsetWidth, innerWidth - menu.offsetWidth - 8));
    menu.style.setProperty("left", `${left}px`);
    menu.style.setProperty("top", `${Math.min(place.bottom + 4, innerHeight - menu.offsetHeight - 8)}px`);
    buttons()[0]?.focus();
  });
  menu.addEventListener("toggle", (event) => {
    trigger.setAttribute("aria-expanded", String(event.newState === "open"));
  });
  menu.addEventListener("keydown", (event) => {
    const list = buttons();
    const at = list.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    list[(to + list.length) % list.length].focus();
  });
  return h("span", { class: "menu-place" }, trigger, menu);
}

/** What this browser keeps under a name; null if nothing, or if it keeps nothing for us. */
export function recall(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a text in this browser; null forgets it. */
export function keep(name, text) {
  try {
    if (text === null) localStorage.removeItem(name);
    else localStorage.setItem(name, text);
  } catch {
    toast("This browser keeps nothing for this page.", "bad");
  }
}

/** Saves text as a file of the user. */
export function download(name, type, parts) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

const NUMBERS = new Intl.NumberFormat("en");

export function number(value) {
  return NUMBERS.format(value);
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** Bytes in words: 1.5 MiB. */
export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** A time given in microseconds. */
export function duration(microseconds) {
  if (microseconds >= 1e6) return `${(microseconds / 1e6).toFixed(2)} s`;
  if (microseconds >= 1000) return `${(microseconds / 1000).toFixed(microseconds >= 1e4 ? 0 : 1)} ms`;
  return `${Math.round(microseconds)} µs`;
}
