// Clicks, keys and forms.

import { actions } from "./actions.js";
import { attempt } from "./api.js";
import { conversation } from "./conversation.js";
import { all, bodyClasses, byId, focused, on, one, query } from "./dom.js";
import { attach, draft, draftTyped, hasTypedText, sendDraft } from "./draft.js";
import { saveEdit, saveInsert } from "./editing.js";
import { page } from "./page.js";
import { refreshPart, showPart } from "./refresh.js";
import { rememberField, saveField } from "./settings.js";

on("click", event => {
  const button = event.target.closest("[data-act]");
  const action = actions[button?.dataset.act];
  if (!action || button.disabled) return;
  event.preventDefault();
  button.closest("details.menu")?.removeAttribute("open");
  attempt(() => action(button));
});

on("submit", event => {
  const form = event.target;
  if (form.method === "dialog") return;
  event.preventDefault();
  if (form.id === "composer") sendDraft();
  if (form.id === "roles") location.assign(`${page}?${query(new FormData(form))}`);
  if (form.matches(".editor")) saveEdit(form);
  if (form.matches(".inserting")) saveInsert(form);
});

on("change", ({ target }) => {
  if (target.id === "pictures") {
    attach(target.files);
    target.value = "";
  }
  if (target.closest("#settings")) saveField(target);
});

on("input", ({ target }) => {
  if (target === draft) draftTyped();
  if (target.matches("#settings textarea")) rememberField(target);
  if (target.form?.id !== "filters") return;
  byId("found")?.remove();
  refreshPart("tree");
});

// Folded content is loaded when it is first opened.
on(
  "toggle",
  ({ target }) => {
    const { dataset, children, open } = target;
    if (open && dataset.src && !children[1]) showPart(dataset.src, part => children[1] || target.append(part));
  },
  true,
);

/** @param {string} q */
const search = q =>
  showPart(`/studio/search?${query({ q })}`, results => {
    byId("found")?.remove();
    byId("find").after(results);
  });

/** Focuses the next (1) or previous (-1) entry. @param {number} by */
function focusEntry(by) {
  const entries = all(".piece > .entry:not(.filtered)");
  const index = entries.indexOf(focused().closest(".entry"));
  const next = entries[index < 0 ? entries.length - 1 : index + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** @type {Record<string, () => void>} */
const keys = {
  j: () => focusEntry(1),
  k: () => focusEntry(-1),
  n: () => one("[data-about=new-thread]")?.click(),
  i: () => draft?.focus(),
  "/": () => byId("find")?.focus(),
};
/** Keys of the focused entry, by the action of the button they press. @type {Record<string, string>} */
const entryKeys = { e: "edit", c: "collapse", b: "branch", r: "retry", Delete: "delete" };

/** What a key does, or nothing. @param {KeyboardEvent & {target: any}} event @returns {(() => void) | undefined} */
function keyAction({ key, target, ctrlKey, metaKey, altKey, shiftKey }) {
  const typing = target.matches("input, textarea, select");
  const command = ctrlKey || metaKey;
  if (key === "Enter" && target.id === "find") return () => search(target.value);
  if (key === "Enter" && command && typing) return () => target.form?.requestSubmit();
  if (key === "Escape" && target === draft) return () => conversation.focus();
  if (key === "Escape" && target.closest(".editor, .inserting")) {
    return () => one("[type=button]", target.form).click();
  }
  // In a field, Ctrl+Z belongs to the field while it has typed text.
  if (command && /^[zy]$/i.test(key) && !(typing && (target === draft ? hasTypedText() : target.value))) {
    return () => one(`[data-act=${/y/i.test(key) || shiftKey ? "redo" : "undo"}]`)?.click();
  }
  if (typing || command || altKey || byId("dialog")?.open) return undefined;
  const entry = target.closest(".entry");
  if (entry && entryKeys[key]) return () => one(`[data-act=${entryKeys[key]}]`, entry)?.click();
  return keys[key];
}

on("keydown", event => {
  const action = keyAction(event);
  if (!action) return;
  event.preventDefault();
  action();
});

// A click elsewhere closes menus, and the panels that overlay a narrow page.
on("pointerdown", ({ target }) => {
  for (const menu of all("details.menu[open]")) menu.open = menu.contains(target);
  if (!target.closest("#left, #right, [data-act]")) bodyClasses.remove("show-left", "show-right");
});

// A file dropped beside the field would replace the page.
/** @param {DragEvent & {dataTransfer: DataTransfer}} event */
const acceptFiles = event => {
  const { types, files } = event.dataTransfer;
  if (!types.includes("Files")) return;
  event.preventDefault();
  attach(files);
};
if (draft) {
  on("dragover", acceptFiles);
  on("drop", acceptFiles);
}
