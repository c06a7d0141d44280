// One blob: what it is, a look at its content, its snapshots, and what can be done with it.
//
// Promises: a content is shown as text, as an image that cannot carry script, or as bytes; its own words about itself
// are never believed, and nothing of it becomes markup. What is read for a look has a bound. Deleting asks first, and
// deletes only what was shown.

import { deleteBlob, describeBlob, getBlob, listSnapshots } from "./blobrest.js";
import { button, bytes, confirm, dialog, download, h, number, plural, show, toast, toastError } from "./dom.js";
import {
  hexLines,
  IMAGE_BYTES_MAX,
  IMAGE_PIXELS_MAX,
  imageAddress,
  imageIn,
  indented,
  readUpTo,
  TEXT_BYTES_MAX,
  textIn,
} from "./preview.js";

const SNAPSHOTS_SHOWN_MAX = 50;
/** Larger contents are written to a file of the user piece by piece, where the browser can do that. */
const DOWNLOAD_BYTES_MAX = 512 * 1024 * 1024;

/** Opens a blob. Resolves to true when the list below has to be read again. */
export function openBlob(connection, container, name) {
  const abort = new AbortController();
  const body = h("div", { class: "dialog-body blob-body" }, h("p", { class: "quiet" }, "Reading…"));
  const opened = dialog(
    name,
    (close) => {
      new BlobPanel({ connection, container, name, body, close, signal: abort.signal }).load();
      return body;
    },
    { drawer: true },
  );
  return opened.finally(() => abort.abort());
}

class BlobPanel {
  constructor(given) {
    Object.assign(this, given);
  }

  async load() {
    try {
      const [blob, { snapshots, isCut }] = await Promise.all([
        describeBlob(this.connection, this.container, this.name, this.signal),
        listSnapshots(this.connection, this.container, this.name, SNAPSHOTS_SHOWN_MAX, this.signal),
      ]);
      if (!blob) return this.#fail("This blob is gone.");
      this.blob = blob;
      this.#draw(snapshots, isCut);
      await this.#look(blob);
    } catch (error) {
      if (error.name !== "AbortError") this.#fail(error.message);
    }
  }

  #fail(message) {
    show(this.body, h("p", { class: "bad", role: "alert" }, message));
  }

  #draw(snapshots, isCut) {
    const { blob } = this;
    this.preview = h("div", { class: "blob-preview" });
    this.previewTitle = h("h3", { id: "preview-title" }, "Content");
    show(
      this.body,
      h(
        "div",
        { class: "blob-actions" },
        button("Download", () => this.#download(blob), { symbol: "download" }),
        button("Delete…", () => this.#delete(blob, snapshots.length, isCut), { kind: "danger-quiet", symbol: "trash" }),
      ),
      h("section", { "aria-labelledby": "preview-title" }, this.previewTitle, this.preview),
      part("Properties", blob.properties),
      part("Metadata", blob.metadata),
      part("Tags", blob.tags),
      snapshots.length > 0 && this.#snapshots(snapshots, isCut),
    );
  }

  #snapshots(snapshots, isCut) {
    return h(
      "section",
      { class: "blob-part" },
      h("h3", {}, isCut ? `Snapshots, the first ${SNAPSHOTS_SHOWN_MAX}` : "Snapshots"),
      h(
        "ul",
        { class: "snapshots" },
        snapshots.map((snapshot) =>
          h(
            "li",
            {},
            h("span", { class: "mono" }, snapshot.snapshot),
            h("span", { class: "quiet" }, bytes(snapshot.size)),
            button("Look", () => this.#look(snapshot), { kind: "quiet small" }),
            button("Download", () => this.#download(snapshot), { kind: "quiet small" }),
            button("Delete…", () => this.#delete(snapshot), { kind: "danger-quiet small" }),
          ),
        ),
      ),
    );
  }

  /** Shows the beginning of a content, as what its bytes are. */
  async #look(blob) {
    show(this.previewTitle, blob.snapshot ? `Content of ${blob.snapshot}` : "Content");
    show(this.preview, h("p", { class: "quiet" }, blob.size === 0 ? "It is empty." : "Reading…"));
    if (blob.size === 0) return;
    try {
      show(this.preview, await this.#seen(blob));
    } catch (error) {
      if (error.name !== "AbortError") show(this.preview, h("p", { class: "bad", role: "alert" }, error.message));
    }
  }

  async #read(blob, bytesMax) {
    const { connection, container, name, signal } = this;
    const last = Math.min(blob.size, bytesMax) - 1;
    const response = await getBlob(connection, container, name, { snapshot: blob.snapshot, last, signal });
    const { bytes: found, isWhole } = await readUpTo(response, bytesMax);
    return { found, isWhole: isWhole && blob.size <= bytesMax };
  }

  async #seen(blob) {
    let { found, isWhole } = await this.#read(blob, TEXT_BYTES_MAX);
    const image = imageIn(found);
    if (image) {
      const facts = `${image.type}, ${number(image.width)} × ${number(image.height)}`;
      if (image.isTooLarge)
        return note(`${facts}: more than ${number(IMAGE_PIXELS_MAX / 1_000_000)} million pixels are not shown.`);
      if (!isWhole) ({ found, isWhole } = await this.#read(blob, IMAGE_BYTES_MAX));
      if (!isWhole) return note(`${facts}: images larger than ${bytes(IMAGE_BYTES_MAX)} are not shown.`);
      const picture = h("img", { src: imageAddress(image.type, found), alt: `The content of ${this.name}` });
      return [note(facts), picture];
    }
    const cut = isWhole ? undefined : note(`The first ${bytes(found.length)} of ${bytes(blob.size)}.`);
    const text = textIn(found, isWhole);
    if (text === undefined) return [note("No text: its first bytes."), code(hexLines(found))];
    return [cut, code((isWhole && indented(text)) || text)];
  }

  async #download(blob) {
    const { connection, container, name } = this;
    const file = name.slice(name.lastIndexOf("/") + 1) || "blob";
    try {
      // The browser asks for the place now, while it still knows that somebody pressed a button.
      const isLarge = blob.size > DOWNLOAD_BYTES_MAX;
      if (isLarge && !window.showSaveFilePicker)
        return toast(`This browser keeps at most ${bytes(DOWNLOAD_BYTES_MAX)}; use a program for more.`, "bad");
      const target = isLarge && (await window.showSaveFilePicker({ suggestedName: file }));
      const response = await getBlob(connection, container, name, { snapshot: blob.snapshot, signal: this.signal });
      if (target) {
        await response.body.pipeTo(await target.createWritable());
      } else {
        // What is compressed may become much longer than what is stored.
        const content = await new Response(response.body.pipeThrough(bounded(DOWNLOAD_BYTES_MAX))).blob();
        download(file, "application/octet-stream", [content]);
      }
      toast("Downloaded.");
    } catch (error) {
      toastError(error);
    }
  }

  async #delete(blob, snapshotCount = 0, isCut = false) {
    const what = blob.snapshot ? `the snapshot of ${blob.snapshot}` : this.name;
    const text = ["Unless the account keeps deleted blobs, this cannot be undone."];
    if (snapshotCount > 0)
      text.unshift(`${isCut ? "More than " : ""}${plural(snapshotCount, "snapshot")} of it will be deleted too.`);
    if (!(await confirm(`Delete ${what}?`, text, "Delete"))) return;
    try {
      await deleteBlob(this.connection, this.container, blob);
      toast("Deleted.");
      this.close(true);
    } catch (error) {
      if (error.code !== "ConditionNotMet") return toastError(error);
      toast("Somebody has changed it since. Look again before you delete it.", "bad");
      this.load();
    }
  }
}

function bounded(bytesMax) {
  let count = 0;
  return new TransformStream({
    transform(part, controller) {
      count += part.length;
      if (count > bytesMax) controller.error(new Error(`The content is longer than ${bytes(bytesMax)}.`));
      else controller.enqueue(part);
    },
  });
}

function note(text) {
  return h("p", { class: "quiet" }, text);
}

function code(text) {
  return h("pre", { tabindex: "0", "aria-label": "Content" }, text);
}

/** Names and values under a title; nothing where there are none. */
function part(title, pairs) {
  return (
    pairs.length > 0 &&
    h(
      "section",
      { class: "blob-part" },
      h("h3", {}, title),
      h(
        "dl",
        { class: "pairs" },
        pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "mono" }, value))),
      ),
    )
  );
}
