// Connecting: a connection string, an account and its key, or a shared access signature.
//
// Promises: what is typed here is kept in this page's memory and nowhere else, unless the box is ticked. A wrong key
// is found out at once.

import { listBlobs, listContainers } from "./blobrest.js";
import { DEVELOPMENT, fromConnectionString, fromKey, fromSas, open, remember } from "./connection.js";
import { button, fail, field, h, mark, show } from "./dom.js";
import { admin, listQueues, listTables, peekMessages, queryEntities } from "./rest.js";

/** Refusals that come after the signature was found to be right. */
const ALLOWED_ELSEWHERE = /^Authorization(PermissionMismatch|ResourceTypeMismatch|ServiceMismatch|Failure)$/;

/** Asks the services whether they know us. */
async function verify(connection) {
  const attempts = connection.table
    ? [() => queryEntities(connection, connection.table, { top: 1 })]
    : connection.queue
      ? [() => peekMessages(connection, connection.queue, 1)]
      : connection.container
        ? [() => listBlobs(connection, connection.container, { max: 1 })]
        : [() => listTables(connection), () => listQueues(connection), () => listContainers(connection)];
  let refused;
  for (const attempt of attempts) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (
        ALLOWED_ELSEWHERE.test(error.code) ||
        (/NotFound$/.test(error.code) && (connection.table || connection.queue || connection.container))
      )
        return;
      refused ??= error;
    }
  }
  throw refused;
}

const REASONS = {
  AuthenticationFailed:
    "The server knows the account but refuses the signature. Check the key, or when the signature expires.",
  ResourceNotFound: "The server does not know this account.",
};

const WAYS = [
  ["string", "Connection string"],
  ["key", "Account key"],
  ["sas", "SAS"],
];

export class ConnectView {
  constructor(app) {
    this.app = app;
    const text = (rest) =>
      h("input", {
        type: "text",
        class: "mono",
        autocomplete: "off",
        spellcheck: "false",
        autocapitalize: "off",
        ...rest,
      });
    this.string = h("textarea", {
      rows: "4",
      class: "mono",
      spellcheck: "false",
      autocomplete: "off",
      placeholder: "DefaultEndpointsProtocol=http;AccountName=…;AccountKey=…",
    });
    this.account = text({ value: DEVELOPMENT.account });
    this.key = h("input", { type: "password", class: "mono", autocomplete: "off" });
    this.sasAccount = text({ value: DEVELOPMENT.account });
    this.sas = h("textarea", {
      rows: "3",
      class: "mono",
      spellcheck: "false",
      autocomplete: "off",
      placeholder: "?sv=…&sig=…",
    });
    this.resource = text({});
    this.keep = h("input", { type: "checkbox" });
    this.error = h("p", { class: "form-error", role: "alert", hidden: true });
    this.panels = {
      string: [
        field(
          "Connection string",
          this.string,
          "As for any SDK. Only the account and its secret count: the page talks to the server that it came from.",
        ),
      ],
      key: [field("Account", this.account), field("Key", this.key)],
      sas: [
        field("Account", this.sasAccount),
        field("Signature or URL", this.sas),
        field("Queue or container", this.resource, "Only if the signature is for one of them."),
      ],
    };
    this.place = h("div", { class: "connect-fields" });
    this.tabs = h(
      "div",
      { class: "segments", role: "radiogroup", "aria-label": "How to connect" },
      WAYS.map(([way, label], index) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: "way",
            value: way,
            checked: index === 0,
            onchange: () => this.#choose(way),
          }),
          h("span", {}, label),
        ),
      ),
    );
    this.submit = h("button", { type: "submit", class: "button primary" }, "Connect");
    this.development = button("Use the development account", () => this.#connect(DEVELOPMENT));
    this.element = h(
      "section",
      { class: "view connect-view", "aria-labelledby": "view-title" },
      h(
        "form",
        { class: "connect", onsubmit: (event) => this.#submit(event), novalidate: true },
        h(
          "header",
          {},
          mark(),
          h("h1", { id: "view-title", tabindex: "-1" }, "Look into your tables, queues and containers"),
          h("p", { class: "quiet" }, "Requests are signed in this page. The key is not sent and not stored."),
        ),
        this.tabs,
        this.place,
        h("label", { class: "check" }, this.keep, h("span", {}, "Remember in this browser, key included")),
        this.error,
        h("div", { class: "connect-actions" }, this.submit, this.development),
      ),
    );
    this.#choose("string");
    this.#askWhichAccounts();
  }

  close() {}

  /** The server says which accounts it has. Without an answer the fields stay as they are. */
  async #askWhichAccounts() {
    const status = await admin("/api/status").catch(() => ({}));
    this.development.hidden = status.has_emulator_account === false;
    const [first] = Array.isArray(status.accounts) ? status.accounts : [];
    for (const input of [this.account, this.sasAccount]) {
      if (typeof first === "string" && input.value === DEVELOPMENT.account) input.value = first;
    }
  }

  #choose(way) {
    this.way = way;
    fail(this.string, this.error);
    show(this.place, this.panels[way]);
  }

  #read() {
    if (this.way === "string") return fromConnectionString(this.string.value);
    if (this.way === "key") return fromKey(this.account.value, this.key.value);
    return fromSas(this.sasAccount.value.trim(), this.sas.value, this.resource.value);
  }

  #submit(event) {
    event.preventDefault();
    try {
      this.#connect(this.#read());
    } catch (error) {
      this.#fail(error);
    }
  }

  async #connect(given) {
    this.submit.disabled = true;
    try {
      const connection = await open(given);
      await verify(connection);
      if (this.keep.checked) remember(given);
      this.app.connected(connection);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.submit.disabled = false;
    }
  }

  #fail(error) {
    this.error.hidden = false;
    this.error.textContent = REASONS[error.code] ?? (error.code ? `${error.code}: ${error.message}` : error.message);
  }
}
