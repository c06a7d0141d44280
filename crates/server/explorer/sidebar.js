// The sidebar: where one is, and where one can go: live charts, advice, tables, queues and containers with their
// counts.
//
// Promises: names are read a page at a time. The count of a table is of its first thousand entities (keys only),
// since the service has no cheaper way; "1,000+" says so. Leaves to others: what is behind each name.

import { createContainer, listBlobs, listContainers } from "./blobrest.js";
import { ask, button, h, icon, iconButton, mark, number, show, toastError } from "./dom.js";
import {
  createQueue,
  createTable,
  listQueues,
  listTables,
  PAGE_ENTITIES_MAX,
  queryEntities,
  queueProperties,
} from "./rest.js";

const COUNTS_AT_ONCE = 3;
const COUNTED_MAX = 60;
/** What a list says of a blob is long, so fewer are counted. */
const COUNTED_BLOBS_MAX = 100;
const NAMES_MAX = 5000;

const KINDS = {
  table: {
    title: "Tables",
    one: "table",
    list: listTables,
    create: createTable,
    symbol: "table",
    check: (name) =>
      /^[A-Za-z][A-Za-z0-9]{2,62}$/.test(name) ? undefined : "3 to 63 letters and digits; the first is a letter.",
    async count(connection, name, signal) {
      const { entities, next } = await queryEntities(connection, name, {
        select: "RowKey",
        top: PAGE_ENTITIES_MAX,
        signal,
      });
      return number(entities.length) + (next ? "+" : "");
    },
  },
  queue: {
    title: "Queues",
    one: "queue",
    list: listQueues,
    create: createQueue,
    symbol: "queue",
    check: (name) =>
      /^[a-z0-9](?:-?[a-z0-9]){2,62}$/.test(name) && name.length <= 63
        ? undefined
        : "3 to 63 lower-case letters, digits and single dashes inside.",
    async count(connection, name, signal) {
      return number((await queueProperties(connection, name, signal)).count);
    },
  },
  container: {
    title: "Containers",
    one: "container",
    list: listContainers,
    create: createContainer,
    symbol: "container",
    check: (name) =>
      /^([a-z0-9](?:-?[a-z0-9]){2,62}|\$root|\$web)$/.test(name) && name.length <= 63
        ? undefined
        : "3 to 63 lower-case letters, digits and single dashes inside.",
    async count(connection, name, signal) {
      const { entries, next } = await listBlobs(connection, name, { max: COUNTED_BLOBS_MAX, signal });
      return number(entries.length) + (next ? "+" : "");
    },
  },
};

export class Sidebar {
  constructor(app) {
    this.app = app;
    this.sections = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, new Section(app, kind)]));
    this.adviceCount = h("span", { class: "count", hidden: true });
    this.links = h(
      "ul",
      { class: "nav-list" },
      navLink("#/live", "live", "Live"),
      navLink("#/advice", "advice", "Advice", this.adviceCount),
    );
    this.account = h("div", { class: "account" });
    this.element = h(
      "nav",
      { class: "sidebar", id: "sidebar", "aria-label": "Explorer" },
      h("a", { class: "brand", href: "#/" }, mark(), h("span", {}, "Lazulite")),
      this.links,
      h(
        "div",
        { class: "nav-scroll" },
        Object.values(this.sections).map((section) => section.element),
      ),
      this.account,
    );
    this.show();
  }

  /** Draws anew after connecting or leaving. */
  show() {
    const { connection } = this.app;
    for (const section of Object.values(this.sections)) section.load();
    const theme = iconButton("Light or dark", "theme", () => this.app.changeTheme());
    show(
      this.account,
      connection
        ? [
            h(
              "span",
              { class: "account-name", title: connection.account },
              connection.account,
              h("small", {}, connection.key ? "account key" : "shared access signature"),
            ),
            theme,
            iconButton("Disconnect", "leave", () => this.app.disconnect()),
          ]
        : [h("a", { class: "account-name", href: "#/" }, "Connect an account"), theme],
    );
  }

  setCount(kind, name, count) {
    this.sections[kind].setCount(name, count);
  }

  setAdviceCount(count) {
    this.adviceCount.hidden = count === 0;
    show(this.adviceCount, number(count));
  }

  /** Shows which link leads to where we are. */
  mark(place) {
    for (const link of this.element.querySelectorAll("a.nav-link")) {
      if (link.getAttribute("href") === place) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
}

function navLink(place, symbol, label, count) {
  return h(
    "li",
    {},
    h("a", { class: "nav-link", href: place }, icon(symbol), h("span", { class: "nav-name" }, label), count),
  );
}

class Section {
  constructor(app, kind) {
    Object.assign(this, { app, kind, ...KINDS[kind] });
    this.names = [];
    this.counts = new Map();
    this.total = h("span", { class: "count" });
    this.list = h("ul", { class: "nav-list" });
    this.search = h("input", {
      type: "search",
      class: "nav-search",
      placeholder: "Find",
      "aria-label": `Find ${this.title.toLowerCase()}`,
      hidden: true,
      oninput: () => this.#draw(),
    });
    this.element = h(
      "section",
      { class: "nav-section", "aria-label": this.title, hidden: true },
      h(
        "header",
        {},
        h("h2", {}, this.title),
        this.total,
        iconButton(`New ${this.one}`, "add", () => this.#create()),
        iconButton(`Read the ${this.title.toLowerCase()} again`, "refresh", () => this.load()),
      ),
      this.search,
      this.list,
    );
  }

  async load() {
    const { connection } = this.app;
    this.abort?.abort();
    this.abort = new AbortController();
    this.names = [];
    this.next = undefined;
    this.error = undefined;
    if (this.connection !== connection) {
      // Another account may have tables of the same names.
      this.connection = connection;
      this.counts.clear();
      this.search.value = "";
      show(this.list);
    }
    this.element.hidden = !connection;
    if (!connection) return;
    if (Object.keys(KINDS).some((kind) => connection[kind])) {
      // A signature for one table, queue or container cannot list its kind, but the name is known.
      this.names = connection[this.kind] ? [connection[this.kind]] : [];
      this.element.hidden = this.names.length === 0;
      this.#draw();
      return this.#count();
    }
    await this.#more();
    this.#count();
  }

  async #more() {
    try {
      const { names, next } = await KINDS[this.kind].list(this.app.connection, this.next, this.abort.signal);
      this.names.push(...names);
      this.next = next;
      this.error = undefined;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.error = error;
    }
    // A service that was not started has no section. A list of a service is never missing otherwise.
    this.element.hidden = this.error?.status === 404 && !this.error.code;
    this.#draw();
  }

  #draw() {
    const wanted = this.search.value.toLowerCase();
    const names = this.names.filter((name) => name.toLowerCase().includes(wanted));
    show(this.total, this.error ? "" : number(this.names.length) + (this.next ? "+" : ""));
    this.search.hidden = this.names.length < 8 && !wanted;
    const canRead = this.next && this.names.length < NAMES_MAX;
    show(
      this.list,
      names.map((name) =>
        h(
          "li",
          {},
          h(
            "a",
            { class: "nav-link", href: `#/${this.kind}/${encodeURIComponent(name)}` },
            icon(this.symbol),
            h("span", { class: "nav-name", title: name }, name),
            h("span", { class: "count", "data-count": name }, this.counts.get(name) ?? ""),
          ),
        ),
      ),
      this.error &&
        h(
          "li",
          { class: "nav-note" },
          this.error.status === 403 ? "The signature does not allow listing." : this.error.message,
        ),
      !this.error && this.names.length === 0 && h("li", { class: "nav-note" }, `No ${this.one} yet.`),
      canRead &&
        h(
          "li",
          {},
          button("More", () => this.#more(), { kind: "quiet small" }),
        ),
    );
    this.app.marked();
  }

  async #count() {
    const { signal } = this.abort;
    const left = this.names.slice(0, COUNTED_MAX);
    await Promise.all(
      Array.from({ length: COUNTS_AT_ONCE }, async () => {
        while (left.length > 0 && !signal.aborted) await this.countOne(left.shift(), signal);
      }),
    );
  }

  async countOne(name, signal = this.abort.signal) {
    try {
      this.setCount(name, await KINDS[this.kind].count(this.app.connection, name, signal));
    } catch {
      // Without permission to read there is no count, and the name stands alone.
    }
  }

  setCount(name, count) {
    this.counts.set(name, count);
    for (const place of this.list.querySelectorAll("[data-count]"))
      if (place.dataset.count === name) place.textContent = count;
  }

  async #create() {
    const save = (name) => this.create(this.app.connection, name);
    const name = await ask(`New ${this.one}`, "Name", "Create", { check: this.check, save });
    if (!name) return;
    this.counts.set(name, "0");
    this.app.go(`#/${this.kind}/${encodeURIComponent(name)}`);
    this.load().catch(toastError);
  }
}
