// Editing and inserting entries in place. Half-typed text survives a reload.

import { trySend } from "./api.js";
import { confirm } from "./dialog.js";
import { copyTemplate, element, one } from "./dom.js";
import { takeRoute } from "./page.js";
import { refreshAll } from "./refresh.js";
import { editKey, insertKey, local, remember } from "./storage.js";

/** @param {any} entry */
export const editorOf = entry => one(":scope > .editor", entry);
/** The id of the entry around an element. @param {any} inside @returns {string} */
export const entryId = inside => inside.closest(".entry")?.id.slice(2);
/** @param {any} inside */
export const entryOf = inside => inside.closest(".entry");

/** @param {any} entry */
export const readEntry = entry => trySend("GET", takeRoute(`entries/${entryId(entry)}`));

/** The editable text of an entry: its content, or the result of its tool call. @param {any} answer */
export const editableText = ({ entry: { content, blocks = [] } }) =>
  content || (blocks[1] || blocks[0]?.type !== "tool_result" ? "" : blocks[0].text);

/** Shows that an entry being edited was changed or deleted elsewhere. @param {any} entry @param {any} [theirs] */
export function showConflict(entry, theirs) {
  one(".conflict", entry)?.remove();
  const text = theirs ? "Changed elsewhere. Yours replaces it:" : "Deleted elsewhere.";
  const parts = theirs ? [theirs.cloneNode(true)] : [];
  editorOf(entry).prepend(element("div", { className: "conflict" }, element("p", {}, text), ...parts));
}

/** Discards typed text, after a question if there is any. @param {any} form @param {string} before @param {() => void} close */
async function discard(form, before, close) {
  const text = one("textarea", form).value;
  if (text === before || (await confirm([element("p", {}, "Discard this text?")], "Discard"))) close();
}

/** @param {any} entry */
export async function editEntry(entry) {
  const answer = await readEntry(entry);
  if (!answer || editorOf(entry)) return;
  const form = copyTemplate("editor");
  const area = one("textarea", form);
  const content = editableText(answer);
  const unsaved = JSON.parse(local.getItem(editKey(entry)) ?? "null");
  const [before, text] = unsaved ?? [content, content];
  form.dataset.before = before;
  area.value = text;
  area.rows = Math.min(30, text.split("\n").length + 2);
  area.oninput = () => remember(editKey(entry), JSON.stringify([before, area.value]));
  entry.append(form);
  entry.classList.add("editing");
  // A restored edit does not take the focus.
  if (!unsaved) area.focus();
}

/** @param {any} form */
export async function saveEdit(form) {
  const entry = entryOf(form);
  const content = one("textarea", form).value;
  const current = await readEntry(entry);
  // Without the current text it is unknown whether the edit would overwrite someone else's.
  if (!current) return;
  if (editableText(current) !== form.dataset.before && !one(".conflict", form)) {
    return showConflict(entry, element("pre", { className: "plain" }, editableText(current)));
  }
  if (!(await trySend("PATCH", takeRoute(`entries/${entryId(entry)}`), { content }))) return;
  closeEdit(entry);
}

/** @param {any} entry */
function closeEdit(entry) {
  local.removeItem(editKey(entry));
  editorOf(entry)?.remove();
  entry.classList.remove("editing");
  entry.dataset.version = "";
  entry.focus();
  refreshAll();
}

/** @param {any} form */
export const discardEdit = form => discard(form, form.dataset.before, () => closeEdit(entryOf(form)));

/** @param {any} entry */
export function insertAfter(entry) {
  if (entry.nextElementSibling?.matches(".inserting")) return;
  const form = copyTemplate("inserting");
  const area = one("textarea", form);
  const key = insertKey(entry);
  form.dataset.after = entryId(entry);
  form.dataset.key = key;
  area.value = local.getItem(key) ?? "";
  area.oninput = () => remember(key, area.value);
  entry.after(form);
  if (!area.value) area.focus();
}

/** @param {any} form */
function closeInsert(form) {
  local.removeItem(form.dataset.key);
  form.remove();
}

/** @param {any} form */
export const discardInsert = form => discard(form, "", () => closeInsert(form));

/** @param {any} form */
export async function saveInsert(form) {
  const entries = [{ role: one("select", form).value, content: one("textarea", form).value }];
  if (await trySend("POST", takeRoute("entries"), { entries, after: form.dataset.after })) closeInsert(form);
}
