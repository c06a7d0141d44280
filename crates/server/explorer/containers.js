// One container: its blobs, shown like files in folders, one page at a time.
//
// Promises: a page has at most ENTRIES_MAX entries, so the list stays light however many blobs there are; leaving the
// view ends its requests. Leaves to others: one blob (blobview.js), sending files (upload.js).

import { openBlob } from "./blobview.js";
import { containerProperties, deleteContainer, listBlobs } from "./blobrest.js";
import { button, bytes, confirm, field, h, icon, iconButton, menuButton, plural, show, toastError } from "./dom.js";
import { uploadDialog } from "./upload.js";

const ENTRIES_MAX = 100;
/** Beyond this, going back by pages ends, and the first page is always near. */
const MARKERS_MAX = 10_000;

const TYPES = { BlockBlob: "block", AppendBlob: "append", PageBlob: "page" };
const ACCESS = {
  container: "Everybody may list and read it.",
  blob: "Everybody may read its blobs.",
};

/** Where a container's blobs with this prefix are shown. */
function placeOf(container, prefix) {
  const search = prefix ? `?${new URLSearchParams({ prefix })}` : "";
  return `#/container/${encodeURIComponent(container)}${search}`;
}

export class ContainerView {
  constructor(app, container, prefix) {
    Object.assign(this, { app, container, prefix, connection: app.connection });
    this.abort = new AbortController();
    /** Where each page begins that was shown so far; the first begins at the beginning. */
    this.markers = [undefined];
    this.summary = h("p", { class: "view-summary", "aria-live": "polite" });
    this.body = h("tbody", {});
    this.notice = h("div", { class: "blob-notice" });
    this.previous = button("Previous", () => this.#turn(-1), { kind: "small" });
    this.following = button("Next", () => this.#turn(1), { kind: "small" });
    this.pager = h("div", { class: "pager", hidden: true }, this.previous, this.following);
    const more = iconButton("More for this container", "more");
    this.element = h(
      "section",
      { class: "view container-view", "aria-labelledby": "view-title" },
      h(
        "header",
        { class: "view-head" },
        h("div", { class: "view-title" }, h("h1", { id: "view-title", tabindex: "-1" }, container), this.summary),
        h(
          "div",
          { class: "view-actions" },
          button("Upload", () => this.#upload(), { symbol: "upload", kind: "primary-soft" }),
          iconButton("Read again", "refresh", () => this.refresh()),
          menuButton(more, () => [["Delete this container…", () => this.#delete(), "danger"]]),
        ),
      ),
      h("div", { class: "view-scroll" }, this.#crumbs(), this.#prefixForm(), this.#table(), this.notice, this.pager),
    );
    this.refresh();
    this.#describe();
  }

  close() {
    this.abort.abort();
  }

  /** The way to where we are; each part leads back. */
  #crumbs() {
    const parts = this.prefix.split("/").slice(0, -1);
    const crumb = (label, prefix) => h("li", {}, h("a", { href: placeOf(this.container, prefix) }, label));
    return h(
      "nav",
      { "aria-label": "Folders" },
      h(
        "ol",
        { class: "crumbs" },
        crumb(this.container, ""),
        parts.map((part, index) => crumb(part || "(no name)", `${parts.slice(0, index + 1).join("/")}/`)),
      ),
    );
  }

  #prefixForm() {
    const input = h("input", {
      type: "search",
      id: "filter",
      class: "mono",
      value: this.prefix,
      autocomplete: "off",
      spellcheck: "false",
    });
    const submit = (event) => {
      event.preventDefault();
      this.app.go(placeOf(this.container, input.value));
    };
    return h(
      "form",
      { class: "prefix-form", role: "search", onsubmit: submit },
      field("Names that begin with", input),
      h("button", { type: "submit", class: "button" }, "Show"),
    );
  }

  #table() {
    return h(
      "table",
      { class: "blob-list" },
      h("caption", {}, `Blobs of ${this.container}`),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["Name", "Size", "Kind", "Modified"].map((label) => h("th", { scope: "col" }, label)),
        ),
      ),
      this.body,
    );
  }

  async #describe() {
    try {
      const { access, lease, metadata } = await containerProperties(this.connection, this.container, this.abort.signal);
      this.facts = [
        ACCESS[access],
        lease === "leased" && "It is leased.",
        ...metadata.map(([name, value]) => `${name}: ${value}`),
      ].filter(Boolean);
      this.#summarize();
    } catch {
      // A signature may allow listing and nothing else.
    }
  }

  #summarize() {
    if (this.listed) show(this.summary, [this.listed, ...(this.facts ?? [])].join(" · "));
  }

  async refresh() {
    this.reading?.abort();
    const reading = new AbortController();
    this.reading = reading;
    this.abort.signal.addEventListener("abort", () => reading.abort(), { signal: reading.signal });
    const page = this.markers.length;
    try {
      const { entries, next } = await listBlobs(this.connection, this.container, {
        prefix: this.prefix,
        delimiter: "/",
        marker: this.markers[page - 1],
        max: ENTRIES_MAX,
        signal: reading.signal,
      });
      this.next = next;
      show(
        this.body,
        entries.map((entry) => (entry.folder === undefined ? this.#blob(entry) : this.#folder(entry.folder))),
      );
      const folders = entries.filter(({ folder }) => folder !== undefined).length;
      const parts = [folders > 0 && plural(folders, "folder"), plural(entries.length - folders, "blob")];
      this.listed = parts.filter(Boolean).join(", ") + (page > 1 || next ? ` on page ${page}` : "");
      this.#summarize();
      show(this.notice, entries.length === 0 && h("p", { class: "quiet" }, this.#emptyText(page)));
    } catch (error) {
      if (error.name === "AbortError") return;
      this.next = undefined;
      show(this.body);
      show(this.notice, h("p", { class: "bad", role: "alert" }, error.message));
    }
    this.pager.hidden = page === 1 && !this.next;
    this.previous.disabled = page === 1;
    this.following.disabled = !this.next || page >= MARKERS_MAX;
    this.element.dataset.page = page;
  }

  #emptyText(page) {
    if (page > 1) return "Nothing more: what was here is gone.";
    return this.prefix ? "No name begins with this." : "No blob yet.";
  }

  async #turn(step) {
    if (step > 0) this.markers.push(this.next);
    else this.markers.pop();
    await this.refresh();
    this.element.querySelector(".view-scroll").scrollTop = 0;
  }

  #folder(prefix) {
    const name = prefix.slice(this.prefix.lastIndexOf("/") + 1);
    return h(
      "tr",
      {},
      h(
        "td",
        { class: "blob-name", colspan: "4" },
        h("a", { href: placeOf(this.container, prefix) }, icon("folder"), h("bdi", {}, name)),
      ),
    );
  }

  #blob(entry) {
    const name = entry.name.slice(this.prefix.lastIndexOf("/") + 1);
    return h(
      "tr",
      {},
      h(
        "td",
        { class: "blob-name" },
        h("button", { type: "button", onclick: () => this.#open(entry) }, icon("file"), h("bdi", {}, name)),
      ),
      h("td", { class: "number" }, bytes(entry.size)),
      h("td", {}, TYPES[entry.type] ?? entry.type),
      h("td", { class: "blob-time" }, h("time", { title: entry.modified }, timeText(entry.modified))),
    );
  }

  async #open(entry) {
    if (await openBlob(this.connection, this.container, entry.name)) this.refresh();
  }

  async #upload() {
    const folder = this.prefix.slice(0, this.prefix.lastIndexOf("/") + 1);
    if (await uploadDialog(this.connection, this.container, folder)) this.refresh();
  }

  async #delete() {
    const text = "The container and all of its blobs are deleted. This cannot be undone.";
    if (!(await confirm(`Delete ${this.container}?`, text, "Delete the container", this.container))) return;
    try {
      await deleteContainer(this.connection, this.container);
      this.app.removed("container", this.container);
    } catch (error) {
      toastError(error);
    }
  }
}

/** A time of a header as the user writes times. */
export function timeText(date) {
  const time = new Date(date);
  return Number.isNaN(time.getTime()) ? date : time.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}
