// One queue: what waits in it, what we have taken, and what can be done with both.
//
// Promises: looking (peeking) changes nothing; taking is a deliberate act; a taken message stays in sight with its
// time until it is deleted, released, or its time is over. Text that is Base64 of readable text is shown decoded, and
// says so.

import {
  button,
  confirm,
  dialog,
  field,
  h,
  iconButton,
  menuButton,
  number,
  plural,
  show,
  toast,
  toastError,
} from "./dom.js";
import {
  clearMessages,
  deleteMessage,
  deleteQueue,
  peekMessages,
  putMessage,
  queueProperties,
  takeMessages,
  updateMessage,
} from "./rest.js";
import { base64Of, bytesOf } from "./types.js";

const PEEK_MAX = 32;
const TAKEN_MAX = 500;
const MESSAGE_BYTES_MAX = 65_536;
const SHOWN_CHARACTERS_MAX = 2000;

/** The readable text that a Base64 text stands for; undefined if it is none. */
export function decoded(text) {
  if (text.length < 4 || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  try {
    const plain = new TextDecoder("utf-8", { fatal: true }).decode(bytesOf(text));
    // eslint-disable-next-line no-control-regex
    return /[\u0000-\u0008\u000e-\u001f]/.test(plain) ? undefined : plain;
  } catch {
    return undefined;
  }
}

function age(date) {
  const seconds = Math.round((Date.now() - Date.parse(date)) / 1000);
  if (Number.isNaN(seconds)) return "";
  const words = (value) =>
    value < 90
      ? `${value} s`
      : value < 5400
        ? `${Math.round(value / 60)} min`
        : value < 172800
          ? `${Math.round(value / 3600)} h`
          : `${number(Math.round(value / 86400))} days`;
  return seconds >= 0 ? `${words(seconds)} ago` : `in ${words(-seconds)}`;
}

function expiry(date) {
  return /9999/.test(date) ? "never" : age(date);
}

export class QueueView {
  constructor(app, queue) {
    Object.assign(this, { app, queue, connection: app.connection, taken: app.takenFrom(queue) });
    this.summary = h("p", { class: "view-summary", "aria-live": "polite" });
    this.waitingList = h("ol", { class: "messages", "aria-label": "Waiting messages" });
    this.takenList = h("ol", { class: "messages", "aria-label": "Taken messages" });
    this.takenPart = h(
      "section",
      { class: "queue-part", hidden: true, "aria-labelledby": "taken-title" },
      h("h2", { id: "taken-title" }, "Taken by you"),
      h("p", { class: "quiet" }, "Nobody else sees these until their time is over."),
      this.takenList,
    );
    const more = iconButton("More for this queue", "more");
    this.element = h(
      "section",
      { class: "view queue-view", "aria-labelledby": "view-title" },
      h(
        "header",
        { class: "view-head" },
        h("div", { class: "view-title" }, h("h1", { id: "view-title", tabindex: "-1" }, queue), this.summary),
        h(
          "div",
          { class: "view-actions" },
          button("Put", () => this.#put(), { symbol: "add", kind: "primary-soft" }),
          button("Take", () => this.#take(), { symbol: "download" }),
          iconButton("Look again", "refresh", () => this.refresh()),
          menuButton(more, () => this.#menu()),
        ),
      ),
      h(
        "div",
        { class: "view-scroll" },
        this.takenPart,
        h(
          "section",
          { class: "queue-part", "aria-labelledby": "waiting-title" },
          h("h2", { id: "waiting-title" }, "Waiting"),
          h("p", { class: "quiet" }, `The first ${PEEK_MAX} that are visible. Looking does not take them.`),
          this.waitingList,
        ),
      ),
    );
    this.timer = setInterval(() => this.#drawTaken(), 1000);
    this.refresh();
  }

  close() {
    clearInterval(this.timer);
  }

  #menu() {
    return [
      ["Remove all messages…", () => this.#clear(), "danger"],
      ["Delete this queue…", () => this.#delete(), "danger"],
    ];
  }

  async refresh() {
    try {
      const waiting = await peekMessages(this.connection, this.queue, PEEK_MAX);
      show(
        this.waitingList,
        waiting.map((message) => this.#message(message)),
        waiting.length === 0 && h("li", { class: "messages-none" }, "No message is visible."),
      );
      this.#drawTaken();
      // A signature may allow peeking and not counting.
      const { count } = await queueProperties(this.connection, this.queue).catch(() => ({}));
      if (count === undefined) return show(this.summary, `${plural(waiting.length, "message")} visible`);
      this.app.setCount("queue", this.queue, number(count));
      show(this.summary, `${plural(count, "message")}, hidden ones included`);
    } catch (error) {
      show(this.waitingList, h("li", { class: "messages-none bad", role: "alert" }, error.message));
    }
  }

  #message(message, actions) {
    const plain = decoded(message.text);
    const text = plain ?? message.text;
    const short = text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
    return h(
      "li",
      { class: "message", "data-id": message.id },
      h("pre", { class: text === "" ? "is-empty" : "" }, text === "" ? "empty" : short),
      h(
        "p",
        { class: "message-facts" },
        plain !== undefined && h("span", { class: "tag" }, "Base64"),
        h("span", { title: message.inserted }, `put ${age(message.inserted)}`),
        h("span", { title: message.expires }, `expires ${expiry(message.expires)}`),
        h("span", {}, `taken ${plural(message.count, "time")}`),
        h("span", { class: "mono message-id" }, message.id),
      ),
      actions,
    );
  }

  #drawTaken() {
    const focused = document.activeElement?.closest?.(".message")?.dataset.id;
    if (focused && this.takenList.contains(document.activeElement)) {
      // Nothing is rebuilt under somebody's hands; only the clocks move.
      for (const clock of this.takenList.querySelectorAll("[data-visible]"))
        clock.textContent = remaining(clock.dataset.visible);
      return;
    }
    this.takenPart.hidden = this.taken.length === 0;
    show(
      this.takenList,
      this.taken.map((message) =>
        this.#message(
          message,
          h(
            "div",
            { class: "message-actions" },
            h("span", { class: "tag", "data-visible": message.visible }, remaining(message.visible)),
            button("Delete", () => this.#deleteMessage(message), { kind: "danger-quiet small" }),
            button("Update…", () => this.#update(message), { kind: "quiet small" }),
            button("Release", () => this.#release(message), { kind: "quiet small" }),
          ),
        ),
      ),
    );
  }

  #drop(message) {
    this.taken.splice(this.taken.indexOf(message), 1);
    document.activeElement?.blur?.();
    this.#drawTaken();
  }

  #put() {
    return this.#messageDialog(
      "Put a message",
      "Put",
      { text: "", visibility: "0", timeToLive: "604800" },
      async ({ text, visibility, timeToLive }) => {
        await putMessage(this.connection, this.queue, text, { visibility, timeToLive });
        toast("Put.");
        this.refresh();
      },
    );
  }

  #update(message) {
    const plain = decoded(message.text);
    const values = { text: plain ?? message.text, visibility: "30", isBase64: plain !== undefined };
    return this.#messageDialog("Update a message", "Update", values, async ({ text, visibility }) => {
      const { receipt, visible } = await updateMessage(this.connection, this.queue, message, visibility, text);
      Object.assign(message, { receipt, visible, text });
      toast("Updated.");
      this.#drawTaken();
    });
  }

  /** A form for a message: its text, how it is encoded, when it becomes visible, how long it lives. */
  #messageDialog(title, action, values, save) {
    return dialog(title, (close) => {
      const text = h("textarea", {
        rows: "6",
        class: "mono",
        value: values.text,
        spellcheck: "false",
        autofocus: true,
      });
      const base64 = h("input", { type: "checkbox", checked: values.isBase64 ?? false });
      const visibility = h("input", { type: "number", min: "0", max: "604800", value: values.visibility });
      const life = values.timeToLive && h("input", { type: "number", min: "-1", value: values.timeToLive });
      const textField = field("Text", text);
      const submit = async (event) => {
        event.preventDefault();
        const encoded = base64.checked ? base64Of(new TextEncoder().encode(text.value)) : text.value;
        const size = new TextEncoder().encode(encoded).length;
        if (textField.fail(size > MESSAGE_BYTES_MAX ? `At most 65,536 bytes; this has ${number(size)}.` : undefined))
          return;
        try {
          await save({ text: encoded, visibility: visibility.value || "0", timeToLive: life?.value || "604800" });
          close(true);
        } catch (error) {
          textField.fail(error.message);
        }
      };
      return h(
        "form",
        { class: "dialog-body", onsubmit: submit },
        textField,
        h("label", { class: "check" }, base64, h("span", {}, "Encode as Base64, as many SDKs expect")),
        h(
          "div",
          { class: "fields" },
          field("Visible after, seconds", visibility),
          life && field("Lives for, seconds", life, "-1 is for ever"),
        ),
        h(
          "footer",
          { class: "dialog-foot" },
          button("Cancel", () => close(), { kind: "quiet" }),
          h("button", { type: "submit", class: "button primary" }, action),
        ),
      );
    });
  }

  #take() {
    return dialog("Take messages", (close) => {
      const count = h("input", { type: "number", min: "1", max: "32", value: "1", autofocus: true });
      const visibility = h("input", { type: "number", min: "1", max: "604800", value: "30" });
      const countField = field("How many, up to 32", count);
      const submit = async (event) => {
        event.preventDefault();
        if (this.taken.length >= TAKEN_MAX)
          return countField.fail("Delete or release some of those that you have taken.");
        try {
          const messages = await takeMessages(this.connection, this.queue, count.value, visibility.value);
          this.taken.unshift(...messages);
          toast(messages.length === 0 ? "No message was visible." : `${plural(messages.length, "message")} taken.`);
          close(true);
          this.refresh();
        } catch (error) {
          countField.fail(error.message);
        }
      };
      return h(
        "form",
        { class: "dialog-body", onsubmit: submit },
        h(
          "p",
          {},
          "A taken message is hidden from everybody else for the time that you give, and counts as taken once more.",
        ),
        h("div", { class: "fields" }, countField, field("Hidden for, seconds", visibility)),
        h(
          "footer",
          { class: "dialog-foot" },
          button("Cancel", () => close(), { kind: "quiet" }),
          h("button", { type: "submit", class: "button primary" }, "Take"),
        ),
      );
    });
  }

  async #deleteMessage(message) {
    try {
      await deleteMessage(this.connection, this.queue, message);
      toast("Deleted.");
      this.#drop(message);
    } catch (error) {
      if (error.status === 404) this.#drop(message);
      toast(error.status === 404 ? "Its time was over, and somebody else has it." : error.message, "bad");
    }
    this.refresh();
  }

  async #release(message) {
    try {
      await updateMessage(this.connection, this.queue, message, 0);
      toast("Released.");
    } catch (error) {
      if (error.status !== 404) return toastError(error);
      toast("Its time was over already.");
    }
    this.#drop(message);
    this.refresh();
  }

  async #clear() {
    if (
      !(await confirm(
        `Remove all messages of ${this.queue}?`,
        "Those that others have taken are removed too.",
        "Remove all",
      ))
    )
      return;
    try {
      await clearMessages(this.connection, this.queue);
      this.taken.length = 0;
      this.refresh();
    } catch (error) {
      toastError(error);
    }
  }

  async #delete() {
    const text = "The queue and all of its messages are deleted. This cannot be undone.";
    if (!(await confirm(`Delete ${this.queue}?`, text, "Delete the queue", this.queue))) return;
    try {
      await deleteQueue(this.connection, this.queue);
      this.app.removed("queue", this.queue);
    } catch (error) {
      toastError(error);
    }
  }
}

function remaining(visible) {
  const seconds = Math.ceil((Date.parse(visible) - Date.now()) / 1000);
  return seconds > 0 ? `hidden for ${number(seconds)} s` : "visible again";
}
