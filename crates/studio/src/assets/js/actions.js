// What each button does, by its `data-act`.

import { notify, tryFetchPart, trySend } from "./api.js";
import { confirm } from "./dialog.js";
import { all, bodyClasses, byId, element, fieldsOf, query } from "./dom.js";
import { approval, fillDraft } from "./draft.js";
import {
  discardEdit, discardInsert, editableText, editEntry, entryId, entryOf, insertAfter, readEntry,
} from "./editing.js";
import { showFolder } from "./folder.js";
import { move, openResult } from "./moves.js";
import { page, take, takeRoute, threadRoute, withTake } from "./page.js";
import { followActiveTake, partAddress, refreshAll, refreshPart, showPart } from "./refresh.js";

/** Changes how an entry is presented. @param {any} button */
const present = button => {
  const [collapsed, source] = [...button.dataset.shown].map(flag => flag === "1");
  return request("PUT", threadRoute(`entries/${entryId(button)}/view`), { collapsed, source });
};

/**
 * Sends a request; then shows a notice, or opens the address that follows from the answer.
 * @param {string} method @param {string} path @param {any} [body] @param {string} [then]
 */
async function request(method, path, body, then) {
  const done = await trySend(method, path[0] === "/" ? path : takeRoute(path), body);
  if (!done) return;
  if (then?.[0] === "/") return openResult(then, done);
  if (then) notify(then, "", method === "DELETE" ? element("button", { "data-act": "undo" }, "Undo") : "");
  await refreshAll();
}

/** Sends the request that an element describes, with the values of its fields. @param {any} source @param {object} [fields] */
const requestOf = ({ dataset: { method, ask, body, then } }, fields) =>
  request(method, ask, method === "DELETE" ? undefined : { ...JSON.parse(body ?? "{}"), ...fields }, then);

const toThread = { quiet: true, then: page };

/** @type {Record<string, (button: any) => unknown>} */
export const actions = {
  undo: () => move(withTake("undo"), {}, "Undo this turn"),
  redo: () => move(withTake("redo"), {}, "Redo"),
  jump: ({ dataset: { ask, version } }) => move(ask, { version: Number(version) }, `Jump to version ${version}`),
  branch: button => move(withTake("branch"), { entry: entryId(button) }, "Branch here", toThread),
  retry: button =>
    move(withTake("fork"), { entry: entryId(button) }, "Retry", {
      quiet: true,
      then: `${page}?take={take}`,
      execute: withTake("retry"),
      more: approval(),
    }),
  switch: button => move(`takes/${button.dataset.take}/switch?`, {}, "Switch to this take", toThread),
  restore: ({ dataset }) => move(`${dataset.ask}?`, JSON.parse(dataset.body), "Restore these files", dataset),
  delete: button => request("DELETE", `entries/${entryId(button)}`, undefined, "Deleted."),
  collapse: present,
  source: present,
  resume: () => request("POST", "turn/resume", approval()),
  ask: button => requestOf(button),
  // The server renders the form and describes its request.
  async dialog(button) {
    const { src, about } = button.dataset;
    const form = await tryFetchPart(src ?? `${page}/dialog?${query({ take, about, entry: entryId(button) })}`);
    if (form && (await confirm([form], form.dataset.yes))) await requestOf(form, fieldsOf(form));
  },
  edit: button => editEntry(entryOf(button)),
  "leave-edit": button => discardEdit(button.form),
  insert: button => insertAfter(entryOf(button)),
  "leave-insert": button => discardInsert(button.form),
  async copy(button) {
    const answer = await readEntry(entryOf(button));
    if (!answer) return;
    await navigator.clipboard.writeText(editableText(answer) || JSON.stringify(answer.entry.blocks));
    notify("Copied.");
  },
  async tab(button) {
    for (const tab of all("[role=tab]")) tab.ariaSelected = String(tab.dataset.tab === button.dataset.tab);
    await showPanel(partAddress(button.dataset.tab));
  },
  show: button => showPanel(button.dataset.src),
  more: button =>
    showPart(button.dataset.src, part => {
      // A later refresh draws as many rows as are shown now.
      Object.assign(button.closest("[data-live]")?.dataset ?? {}, part.dataset);
      button.replaceWith(...part.childNodes);
    }),
  tag(button) {
    byId("find").value = button.value;
    return refreshPart("tree");
  },
  try: button => fillDraft(button.dataset.text),
  active: followActiveTake,
  menu: () => bodyClasses.toggle("show-left"),
  details: () => bodyClasses.toggle("show-right"),
};

/** Shows something beside the conversation, or on a page of its own where there is no panel. @param {string} address */
async function showPanel(address) {
  const panel = byId("panel");
  if (!panel) return location.assign(address);
  bodyClasses.add("show-right");
  await showPart(address, part => panel.replaceChildren(part));
  showFolder();
}
