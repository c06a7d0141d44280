// Sending files of the user into a container.
//
// Promises: a file is read from the disk as it is sent; a blob that is there already is replaced only if the user says
// so; closing the dialog ends what is on its way, and what has not arrived whole is not visible. One file at a time.

import { uploadFile } from "./blobrest.js";
import { button, bytes, confirm, dialog, field, h, plural, show, toast } from "./dom.js";

const FILES_MAX = 200;

/** Asks for files and sends them. Resolves to true when at least one has arrived. */
export function uploadDialog(connection, container, folder) {
  const abort = new AbortController();
  let isSending = false;
  let arrived = 0;
  const mayLeave = async () =>
    !isSending || confirm("Stop the upload?", "Files that have arrived stay.", "Stop the upload");
  const opened = dialog(
    `Upload to ${container}`,
    (close) => {
      const files = h("input", { type: "file", multiple: true, autofocus: true });
      const prefix = h("input", { type: "text", class: "mono", value: folder, autocomplete: "off", spellcheck: "false" });
      const overwrite = h("input", { type: "checkbox" });
      const bar = h("progress", { value: 0, "aria-label": "Sent" });
      const line = h("p", { class: "quiet", role: "status" });
      const failures = h("ul", { class: "upload-failures", role: "alert" });
      const state = h("div", { class: "upload-state", hidden: true }, bar, line, failures);
      const send = h("button", { type: "submit", class: "button primary" }, "Upload");
      const filesField = field("Files", files);
      const submit = async (event) => {
        event.preventDefault();
        const chosen = [...files.files];
        const wrong =
          chosen.length === 0
            ? "Choose a file."
            : chosen.length > FILES_MAX
              ? `At most ${FILES_MAX} files at a time; these are ${chosen.length}.`
              : undefined;
        if (filesField.fail(wrong)) return;
        isSending = true;
        send.disabled = true;
        state.hidden = false;
        show(failures);
        const failed = [];
        for (const [index, file] of chosen.entries()) {
          bar.max = Math.max(1, file.size);
          bar.value = 0;
          const of = chosen.length > 1 ? ` (${index + 1} of ${chosen.length})` : "";
          show(line, `${file.name}${of}, ${bytes(file.size)}`);
          const progress = (count) => {
            bar.value = count;
          };
          try {
            const name = prefix.value + file.name;
            const options = { overwrite: overwrite.checked, progress, signal: abort.signal };
            await uploadFile(connection, container, name, file, options);
            arrived += 1;
          } catch (error) {
            if (abort.signal.aborted) return;
            failed.push([file.name, reason(error)]);
          }
        }
        isSending = false;
        send.disabled = false;
        if (failed.length === 0) {
          toast(`${plural(chosen.length, "file")} uploaded.`);
          return close();
        }
        show(line, `${failed.length} of ${chosen.length} could not be uploaded.`);
        show(
          failures,
          failed.map(([name, text]) => h("li", {}, `${name}: ${text}`)),
        );
      };
      return h(
        "form",
        { class: "dialog-body", onsubmit: submit },
        filesField,
        field("Folder", prefix, "In front of the files' names."),
        h("label", { class: "check" }, overwrite, h("span", {}, "Replace blobs of the same name")),
        state,
        h(
          "footer",
          { class: "dialog-foot" },
          button("Cancel", async () => (await mayLeave()) && close(), { kind: "quiet" }),
          send,
        ),
      );
    },
    { mayLeave },
  );
  return opened.then(() => {
    abort.abort();
    return arrived > 0;
  });
}

function reason(error) {
  return error.code === "BlobAlreadyExists" ? "There is a blob of this name already." : error.message;
}
