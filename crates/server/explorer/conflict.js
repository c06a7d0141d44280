// A conflict: somebody changed the entity between reading and saving. Both versions stand side by side, and the user
// chooses property by property.
//
// Promises: what is saved replaces exactly the version that was shown; if there is yet another one, it is shown next.

import { button, dialog, h, keysLine, show, toast } from "./dom.js";
import { cellText } from "./grid.js";
import { getEntity, replaceEntity } from "./rest.js";
import { sameValue } from "./types.js";

/**
 * Lets the user choose between `mine` (a Map of properties) and the `stored` entity; `read` is what the form began
 * with.
 * Resolves to whether something was saved.
 */
export function resolveConflict(connection, table, read, mine, stored) {
  return dialog(
    "Changed by somebody else",
    (close) => {
      const body = h("div", { class: "dialog-body" });
      draw(body, connection, table, read, mine, stored, close);
      return body;
    },
    { wide: true },
  );
}

function draw(body, connection, table, read, mine, stored, close) {
  const names = [...new Set([...read.properties.keys(), ...mine.keys(), ...stored.properties.keys()])];
  const rows = names.map((name) => {
    const values = { read: read.properties.get(name), mine: mine.get(name), stored: stored.properties.get(name) };
    const changedByMe = !sameValue(values.read, values.mine);
    const changedByThem = !sameValue(values.read, values.stored);
    return { name, ...values, changedByMe, changedByThem, take: changedByMe ? "mine" : "stored" };
  });
  const changed = rows.filter((row) => row.changedByMe || row.changedByThem);
  const error = h("p", { class: "form-error", role: "alert", hidden: true });
  const save = async () => {
    const properties = new Map();
    for (const row of rows) {
      const value = row[row.take];
      if (value) properties.set(row.name, value);
    }
    try {
      await replaceEntity(connection, table, read.partitionKey, read.rowKey, properties, stored.etag);
      toast("Saved over the other change.");
      close(true);
    } catch (failure) {
      if (failure.status !== 412) {
        error.hidden = false;
        error.textContent = failure.message;
        return;
      }
      toast("It was changed once more. Here is the newest.", "bad");
      draw(
        body,
        connection,
        table,
        read,
        mine,
        await getEntity(connection, table, read.partitionKey, read.rowKey),
        close,
      );
    }
  };
  show(
    body,
    h("p", {}, "The entity was changed after you opened it. Choose, for each property, which value to keep."),
    keysLine(read.partitionKey, read.rowKey),
    h(
      "div",
      { class: "conflict-scroll", tabindex: "0", role: "region", "aria-label": "Both versions" },
      h(
        "table",
        { class: "conflict" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Property", "As you opened it", "Yours", "Stored now"].map((title) => h("th", { scope: "col" }, title)),
          ),
        ),
        h(
          "tbody",
          {},
          changed.map((row) => rowOf(row)),
        ),
      ),
    ),
    h(
      "p",
      { class: "quiet" },
      `${rows.length - changed.length} further properties are the same in both. Stored at ${stored.timestamp}.`,
    ),
    error,
    h(
      "footer",
      { class: "dialog-foot" },
      button("Back to the form", () => close(false), { kind: "quiet" }),
      button("Save this choice", save, { kind: "primary" }),
    ),
  );
}

function rowOf(row) {
  const choice = (side, label) => {
    const value = row[side];
    const input = h("input", {
      type: "radio",
      name: `take-${row.name}`,
      checked: row.take === side,
      "aria-label": `${row.name}: ${label}`,
      onchange: () => {
        row.take = side;
      },
    });
    const differs = side === "mine" ? row.changedByMe : row.changedByThem;
    return h("td", { class: differs ? "is-changed" : "" }, h("label", {}, input, shown(value)));
  };
  return h(
    "tr",
    {},
    h("th", { scope: "row", class: "mono" }, row.name),
    h("td", {}, shown(row.read)),
    choice("mine", "yours"),
    choice("stored", "stored now"),
  );
}

function shown(value) {
  if (!value) return h("span", { class: "quiet" }, "absent");
  return h("span", { class: "mono" }, h("bdi", {}, cellText(value)), h("small", {}, ` ${value.type}`));
}
