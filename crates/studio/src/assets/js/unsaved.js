// Restores text that was typed and not saved yet, after a reload or a redraw.

import { all } from "./dom.js";
import { notify } from "./api.js";
import { editEntry, insertAfter } from "./editing.js";
import { saveField } from "./settings.js";
import { editKey, fieldKey, insertKey, local, perWindow } from "./storage.js";
import { showTimes } from "./times.js";

/** Finishes newly drawn elements: relative times and unsaved text. @param {ParentNode} root */
export function restoreUnsaved(root) {
  showTimes(root);
  for (const field of all("#settings textarea", root)) {
    const [before, typed] = JSON.parse(perWindow.getItem(fieldKey(field)) ?? "[]");
    // Saving forgets the text once the server has it: a reload in between must not lose it.
    if (before === field.value && before !== typed) {
      field.value = typed;
      saveField(field);
      continue;
    }
    perWindow.removeItem(fieldKey(field));
    // A value that changed elsewhere since is not overwritten.
    if (before !== typed && typed !== field.value) notify(`Changed elsewhere. You typed: ${typed}`, "bad");
  }
  for (const entry of all(".piece > .entry", root)) {
    if (local.getItem(editKey(entry))) editEntry(entry);
    if (local.getItem(insertKey(entry))) insertAfter(entry);
  }
}
