// The explorer: which view is shown, and what the views share.
//
// The address after # says where one is (`#/table/people?filter=…`), so that a view can be linked and the browser's
// own buttons work. Promises: leaving a view ends its requests and timers. The explorer uses the public REST
// interface and the admin endpoints, and nothing private.

import { AdviceView, PatternView } from "./advice.js";
import { ConnectView } from "./connect.js";
import { forget, open, remembered } from "./connection.js";
import { ContainerView } from "./containers.js";
import { h, icon, keep, recall, show, toastError } from "./dom.js";
import { LiveView } from "./live.js";
import { OverviewView } from "./overview.js";
import { QueueView } from "./queues.js";
import { admin } from "./rest.js";
import { Sidebar } from "./sidebar.js";
import { TableView } from "./tableview.js";

const THEME = "lazulite.theme";

/** A part of the address; what is no encoded text stands for itself. */
function decodedPart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

class App {
  #taken = new Map();

  async start() {
    const theme = recall(THEME);
    if (theme) document.documentElement.dataset.theme = theme;
    const kept = remembered();
    if (kept) this.connection = await open(kept).catch(() => undefined);
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.sidebar = new Sidebar(this);
    this.toggle = h(
      "button",
      {
        type: "button",
        class: "icon-button menu-toggle",
        "aria-label": "Menu",
        "aria-controls": "sidebar",
        "aria-expanded": "false",
        onclick: () => this.#openMenu(),
      },
      icon("menu"),
    );
    const shade = h("div", { class: "shade", onclick: () => this.#closeMenu() });
    show(
      document.getElementById("app"),
      this.sidebar.element,
      shade,
      h("div", { class: "content" }, this.toggle, this.main),
    );
    document.getElementById("skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.main.focus();
    });
    addEventListener("hashchange", () => this.#route());
    addEventListener("keydown", (event) => this.#key(event));
    this.#route();
    admin("/api/advice").then(
      ({ findings = [] }) => this.setAdviceCount(findings.length),
      () => {},
    );
  }

  // Places

  #route() {
    this.#closeMenu();
    const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
    const [kind, name] = path.split("/").map(decodedPart);
    const place = `#/${path}`;
    const isSame = this.place === place && this.search === (search ?? "");
    if (isSame) return;
    this.place = place;
    this.search = search ?? "";
    // The browser's own Back works while a dialog is open, and a dialog belongs to the view below it.
    for (const open of document.querySelectorAll("dialog[open]")) open.close();
    this.view?.close();
    this.view = this.#viewOf(kind, name, new URLSearchParams(search));
    show(this.main, this.view.element);
    this.marked();
    document.title = name ? `${name} · Lazulite` : "Lazulite";
    document.getElementById("view-title")?.focus({ preventScroll: true });
  }

  #viewOf(kind, name, parameters) {
    if (kind === "live") return new LiveView();
    if (kind === "advice") return new AdviceView(this);
    if (kind === "pattern") return new PatternView(name);
    if (!this.connection) return new ConnectView(this);
    if (kind === "table" && name) return new TableView(this, name, parameters.get("filter") ?? "");
    if (kind === "queue" && name) return new QueueView(this, name);
    if (kind === "container" && name) return new ContainerView(this, name, parameters.get("prefix") ?? "");
    return new OverviewView(this);
  }

  go(place) {
    location.hash = place;
  }

  /** Puts what a view does into the address, without a new view. */
  remember(path, parameters) {
    const search = new URLSearchParams(parameters).toString();
    this.place = path.replace(/^#\/?/, "#/");
    this.search = search;
    history.replaceState(null, "", search ? `${path}?${search}` : path);
  }

  marked() {
    this.sidebar?.mark(this.place);
  }

  // The connection

  connected(connection) {
    this.connection = connection;
    this.sidebar.show();
    this.place = undefined;
    const kind = ["table", "queue", "container"].find((kind) => connection[kind]);
    const only = kind && `#/${kind}/${encodeURIComponent(connection[kind])}`;
    if (only && location.hash !== only) this.go(only);
    else this.#route();
  }

  disconnect() {
    forget();
    this.connection = undefined;
    this.#taken.clear();
    this.sidebar.show();
    this.place = undefined;
    if (location.hash === "#/" || location.hash === "") this.#route();
    else this.go("#/");
  }

  /** A table, queue or container is gone. */
  removed(kind, name) {
    this.#taken.delete(name);
    this.go("#/");
    this.sidebar.sections[kind].load().catch(toastError);
  }

  // What views tell each other

  setCount(kind, name, count) {
    this.sidebar.setCount(kind, name, count);
  }
  countTable(name) {
    this.sidebar.sections.table.countOne(name);
  }
  setAdviceCount(count) {
    this.sidebar.setAdviceCount(count);
  }
  /** The messages that this page has taken from a queue, kept while one looks elsewhere. */
  takenFrom(queue) {
    if (!this.#taken.has(queue)) this.#taken.set(queue, []);
    return this.#taken.get(queue);
  }

  // The frame

  changeTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    keep(THEME, root.dataset.theme);
  }

  #openMenu() {
    document.body.classList.add("menu-open");
    this.toggle.setAttribute("aria-expanded", "true");
    this.sidebar.element.querySelector("a").focus();
  }

  #closeMenu() {
    document.body.classList.remove("menu-open");
    this.toggle?.setAttribute("aria-expanded", "false");
  }

  #key(event) {
    const isTyping = event.target.matches?.("input, textarea, select");
    if (event.key === "Escape") this.#closeMenu();
    if (event.key === "/" && !isTyping && !document.querySelector("dialog[open]")) {
      const box = document.getElementById("filter");
      box?.focus();
      if (box) event.preventDefault();
    }
  }
}

new App().start();
