// The form of an entity: a field for every property, each with an editor that knows its type.
//
// Promises: a value that nobody touched is sent as it was read, to the last digit; what the service would refuse is
// said before it is sent; a change made by somebody else meanwhile is never overwritten silently (conflict.js).

import { resolveConflict } from "./conflict.js";
import { button, confirm, dialog, fail, field, h, iconButton, keysLine, show, toast } from "./dom.js";
import { deleteEntity, getEntity, insertEntity, replaceEntity } from "./rest.js";
import {
  base64Of,
  bytesOf,
  emptyValue,
  keyProblem,
  nameProblem,
  newGuid,
  now,
  PROPERTIES_MAX,
  problem,
  TYPES,
} from "./types.js";

let editorCount = 0;

/** Opens the form. Without an entity it inserts one. Resolves to "saved", "deleted" or undefined. */
export function openEntity(connection, table, entity, hints = new Map()) {
  const title = entity ? "Entity" : `New entity in ${table}`;
  let form;
  const build = (close) => {
    form = new EntityForm(connection, table, entity, hints, close);
    return form.element;
  };
  const mayLeave = () =>
    !form.isTouched || confirm("Leave without saving?", "What you typed here would be lost.", "Leave");
  return dialog(title, build, { drawer: true, mayLeave });
}

class EntityForm {
  /** Whether somebody has typed or chosen something. */
  isTouched = false;

  constructor(connection, table, entity, hints, close) {
    Object.assign(this, { connection, table, entity, close, editors: [] });
    this.list = h("div", { class: "properties" });
    this.error = h("p", { class: "form-error", role: "alert", hidden: true });
    if (entity) for (const [name, value] of entity.properties) this.add(name, value, false);
    else for (const [name, types] of hints) this.add(name, emptyValue([...types][0]), true);
    this.keys = {
      partitionKey: this.#key("PartitionKey", entity?.partitionKey),
      rowKey: this.#key("RowKey", entity?.rowKey),
    };
    this.save = h("button", { type: "submit", class: "button primary" }, h("span", {}, entity ? "Save" : "Insert"));
    this.element = h(
      "form",
      {
        class: "dialog-body entity-form",
        novalidate: true,
        onsubmit: (event) => this.#submit(event),
        oninput: () => {
          this.isTouched = true;
        },
      },
      h(
        "div",
        { class: "form-scroll" },
        h("div", { class: "form-keys" }, this.keys.partitionKey.element, this.keys.rowKey.element),
        entity &&
          h(
            "dl",
            { class: "form-facts" },
            h("dt", {}, "Timestamp"),
            h("dd", {}, entity.timestamp),
            h("dt", {}, "ETag"),
            h("dd", {}, entity.etag),
          ),
        h("h3", {}, "Properties"),
        this.list,
        button("Add a property", () => this.add("", emptyValue("String"), true, true), {
          kind: "quiet",
          symbol: "add",
        }),
      ),
      this.error,
      h(
        "footer",
        { class: "dialog-foot" },
        entity && button("Delete", () => this.#delete(), { kind: "danger-quiet", symbol: "trash" }),
        h("span", { class: "grow" }),
        button("Cancel", () => close(), { kind: "quiet" }),
        this.save,
      ),
    );
  }

  #key(label, text) {
    const input = h("input", {
      type: "text",
      class: "mono",
      value: text ?? "",
      spellcheck: "false",
      autocomplete: "off",
    });
    if (text !== undefined) input.readOnly = true;
    else if (label === "PartitionKey") input.setAttribute("autofocus", "");
    const element = field(label, input);
    return {
      element,
      get text() {
        return text ?? input.value;
      },
      input,
    };
  }

  add(name, value, isNew, isFocused) {
    const editor = new PropertyEditor(name, value, isNew, () => {
      this.editors = this.editors.filter((one) => one !== editor);
      editor.element.remove();
    });
    this.editors.push(editor);
    this.list.append(editor.element);
    if (isFocused) editor.nameInput.focus();
  }

  /** The properties as they stand, or undefined if something is wrong; then the first fault has the focus. */
  #read() {
    let first;
    const note = (control, isWrong) => {
      if (isWrong) first ??= control;
    };
    for (const key of Object.values(this.keys)) {
      note(key.input, key.element.fail(this.entity ? undefined : keyProblem(key.text)));
    }
    const properties = new Map();
    for (const editor of this.editors) {
      const clash = properties.has(editor.name) ? "There is another property of this name." : undefined;
      note(editor.nameInput, editor.checkName(clash));
      note(editor.control, editor.check());
      properties.set(editor.name, editor.value);
    }
    if (!first && properties.size > PROPERTIES_MAX) {
      this.#fail(`An entity has at most ${PROPERTIES_MAX} properties.`);
      return undefined;
    }
    first?.focus();
    return first ? undefined : properties;
  }

  #fail(message) {
    this.error.hidden = !message;
    this.error.textContent = message ?? "";
  }

  async #submit(event) {
    event.preventDefault();
    const properties = this.#read();
    if (!properties) return;
    this.#fail();
    this.save.disabled = true;
    const { connection, table, entity } = this;
    try {
      if (!entity) {
        await insertEntity(connection, table, this.keys.partitionKey.text, this.keys.rowKey.text, properties);
      } else {
        await replaceEntity(connection, table, entity.partitionKey, entity.rowKey, properties, entity.etag);
      }
      toast(entity ? "Saved." : "Inserted.");
      this.close("saved");
    } catch (error) {
      if (error.status === 412 && entity) await this.#conflict(properties);
      else if (error.status === 404 && entity)
        this.#fail("Somebody deleted this entity meanwhile. Copy what you need; saving cannot bring it back.");
      else this.#fail(error.code ? `${error.code}: ${error.message}` : error.message);
    } finally {
      this.save.disabled = false;
    }
  }

  async #conflict(properties) {
    try {
      const { partitionKey, rowKey } = this.entity;
      const stored = await getEntity(this.connection, this.table, partitionKey, rowKey);
      const outcome = await resolveConflict(this.connection, this.table, this.entity, properties, stored);
      if (outcome) this.close("saved");
    } catch (error) {
      this.#fail(error.message);
    }
  }

  async #delete() {
    if (await removeEntity(this.connection, this.table, this.entity)) this.close("deleted");
  }
}

/** Deletes an entity after asking, and asks again if somebody changed it. Resolves to whether it is gone. */
export async function removeEntity(connection, table, entity) {
  const { partitionKey, rowKey } = entity;
  const named = keysLine(partitionKey, rowKey);
  if (!(await confirm("Delete this entity?", [named, "This cannot be undone."], "Delete"))) return false;
  try {
    await deleteEntity(connection, table, partitionKey, rowKey, entity.etag);
  } catch (error) {
    if (error.status === 404) return true;
    if (error.status !== 412) {
      toast(error.message, "bad");
      return false;
    }
    const text = ["Somebody changed this entity after you read it.", named];
    if (!(await confirm("Delete the changed entity?", text, "Delete anyway"))) return false;
    await deleteEntity(connection, table, partitionKey, rowKey, "*");
  }
  toast("Deleted.");
  return true;
}

/** One property: its name, its type and its value. */
class PropertyEditor {
  constructor(name, value, isNew, remove) {
    this.id = `property-${++editorCount}`;
    this.name = name;
    this.value = value;
    this.nameInput = h("input", {
      type: "text",
      class: "property-name mono",
      value: name,
      "aria-label": "Name of the property",
      placeholder: "Name",
      spellcheck: "false",
      autocomplete: "off",
      "aria-describedby": `${this.id}-name-error`,
      oninput: () => {
        this.name = this.nameInput.value;
      },
    });
    if (!isNew) this.nameInput.readOnly = true;
    this.nameError = h("p", { class: "field-error", id: `${this.id}-name-error`, hidden: true });
    this.type = h(
      "select",
      { class: "property-type", "aria-label": "Type", onchange: () => this.#retype() },
      TYPES.map((type) => h("option", { value: type }, type)),
    );
    this.type.value = value.type;
    this.place = h("div", { class: "property-value" });
    this.valueError = h("p", { class: "field-error", id: `${this.id}-error`, hidden: true });
    this.element = h(
      "div",
      { class: "property", role: "group", "aria-label": name || "New property" },
      this.nameInput,
      this.place,
      this.type,
      iconButton("Remove this property", "close", remove),
      this.nameError,
      this.valueError,
    );
    this.#edit();
  }

  checkName(clash) {
    return fail(this.nameInput, this.nameError, nameProblem(this.name) ?? clash);
  }

  check() {
    return fail(this.control, this.valueError, problem(this.value));
  }

  #set(text) {
    this.value = { type: this.value.type, text };
    this.check();
  }

  /** Another type keeps the text if it is one of that type. */
  #retype() {
    const type = this.type.value;
    const kept = { type, text: this.value.text };
    this.value = problem(kept) ? emptyValue(type) : kept;
    this.#edit();
    this.check();
  }

  #edit() {
    const { type, text } = this.value;
    const common = {
      id: this.id,
      class: "mono",
      "aria-label": "Value",
      "aria-describedby": `${this.id}-error`,
      spellcheck: "false",
      autocomplete: "off",
    };
    const line = (rest = {}) =>
      h("input", {
        type: "text",
        value: text,
        oninput: (event) => this.#set(event.target.value.trim()),
        ...common,
        ...rest,
      });
    let extra;
    switch (type) {
      case "String": {
        // A text area knows only one kind of line end. The one that the text had is put back.
        const lineEnd = text.includes("\r\n") ? "\r\n" : "\n";
        if (text.replaceAll(lineEnd, "").match(/[\r\n]/))
          extra = h("p", { class: "field-note" }, "Its line ends are of several kinds. Editing makes them the same.");
        const rows = String(Math.min(10, Math.max(1, text.split("\n").length, Math.ceil(text.length / 60))));
        this.control = h("textarea", {
          ...common,
          rows,
          dir: "auto",
          value: text,
          oninput: (event) => this.#set(event.target.value.replaceAll("\n", lineEnd)),
        });
        break;
      }
      case "Boolean":
        this.control = h(
          "select",
          { ...common, onchange: (event) => this.#set(event.target.value) },
          h("option", { value: "true" }, "true"),
          h("option", { value: "false" }, "false"),
        );
        this.control.value = text;
        break;
      case "Binary":
        this.control = h("textarea", {
          ...common,
          rows: String(Math.min(8, Math.max(1, Math.ceil(text.length / 60)))),
          value: text,
          placeholder: "Base64",
          oninput: (event) => this.#set(event.target.value.replace(/\s/g, "")),
        });
        extra = this.#file();
        break;
      case "DateTime":
        this.control = line({ placeholder: "2026-01-31T08:30:00.1234567Z" });
        extra = button("Now", () => this.#replace(now()), { kind: "quiet small" });
        break;
      case "Guid":
        this.control = line({ placeholder: "00000000-0000-0000-0000-000000000000" });
        extra = button("New", () => this.#replace(newGuid()), { kind: "quiet small" });
        break;
      case "Double":
        this.control = line({ inputmode: "text" });
        break;
      default:
        this.control = line({ inputmode: "numeric" });
    }
    show(this.place, this.control, extra);
  }

  #replace(text) {
    this.control.value = text;
    this.#set(text);
  }

  /** Bytes come from a file and go into one. */
  #file() {
    const pick = h("input", {
      type: "file",
      hidden: true,
      onchange: async () => {
        const [file] = pick.files;
        if (file) this.#replace(base64Of(new Uint8Array(await file.slice(0, 1 << 20).arrayBuffer())));
      },
    });
    const save = () => {
      if (problem(this.value)) return;
      const address = URL.createObjectURL(new Blob([bytesOf(this.value.text)]));
      h("a", { href: address, download: this.name || "value" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    };
    return h(
      "span",
      { class: "property-file" },
      pick,
      button("From a file…", () => pick.click(), { kind: "quiet small" }),
      button("Save as a file", save, { kind: "quiet small" }),
    );
  }
}
