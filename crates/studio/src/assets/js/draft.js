// The composer. Text is stored in the browser at once, and on the server after a pause, so that no crash loses it.

import { attempt, notify, send } from "./api.js";
import { scrollToEnd } from "./conversation.js";
import { byId, one } from "./dom.js";
import { isRunning } from "./live.js";
import { takeRoute } from "./page.js";
import { refreshAll, refreshPart } from "./refresh.js";
import { draftKey, local, ownDraftKey, remember } from "./storage.js";

/** @type {any} */
export const draft = byId("draft");
/** @param {string} text */
const showState = text => (byId("draft-state").textContent = text);
/** @type {ReturnType<typeof setTimeout> | undefined} */
let saveTimer;
/** The draft as the server last showed it. @type {string} */
let serverText = draft?.value;
let typed = false;

/** Whether the field has text of its own for Ctrl+Z to undo. */
export const hasTypedText = () => typed;

export function draftTyped() {
  typed = true;
  remember(ownDraftKey, draft.value);
  clearTimeout(saveTimer);
  saveTimer = setTimeout(saveDraft, 400);
}

/** @param {string} text */
export function fillDraft(text) {
  draft.value = text;
  draftTyped();
  draft.focus();
}

/** Takes over the server's draft (after an undo, or from another window), unless the user typed since. @param {string} text */
export function showDraftOfServer(text) {
  if (text !== serverText && draft.value === serverText) {
    draft.value = text;
    typed = false;
  }
  serverText = text;
}

/** Moves the typed text to another take where this one is gone. @param {string} take @param {string | undefined} gone text of the gone take's draft */
export function moveDraftTo(take, gone) {
  if (gone !== undefined && typed) remember(draftKey(take), gone + draft.value);
}

/** @param {string} text */
const putDraft = text => send("PUT", takeRoute("draft"), { text });

export async function saveDraft() {
  clearTimeout(saveTimer);
  const text = draft.value;
  try {
    await putDraft(text);
    if (draft.value === text) local.removeItem(ownDraftKey);
    showState(text ? "Draft saved" : "");
  } catch {
    showState("Saved in this browser");
  }
}

/** Sends text to the server that only the browser has. */
export function saveUnsavedDraft() {
  if (local.getItem(ownDraftKey) !== null) saveDraft();
}

/** The approval mode that the user chose for the next turn. */
export const approval = () => ({ approve: byId("approve")?.value || undefined });

export async function sendDraft() {
  const text = draft.value;
  await uploads;
  const hasPictures = one("#attached img");
  if (!text.trim() && !hasPictures) return;
  clearTimeout(saveTimer);
  if (isRunning() && hasPictures) notify("Pictures will be sent with the next turn.");
  const sent = await attempt(async () => {
    if (isRunning()) return send("POST", takeRoute("turn/steer"), { message: text });
    // The turn takes the draft in one step, so that an undo brings it back.
    await putDraft(text);
    return send("POST", takeRoute("turns"), { draft: true, ...approval() });
  });
  if (!sent) return;
  if (draft.value === text) draft.value = "";
  typed = false;
  local.removeItem(ownDraftKey);
  await saveDraft();
  await refreshPart("turn");
  scrollToEnd();
}

/** Uploads under way, one after the other. @type {Promise<void> | undefined} */
let uploads;

/** Attaches pictures that were chosen, pasted or dropped. @param {Iterable<any>} files */
export const attach = files => (uploads = uploadAll([...files], uploads));

/** @param {any[]} files @param {Promise<void> | undefined} before */
async function uploadAll(files, before) {
  await before;
  if (!files[0]) return;
  for (const file of files) {
    showState(`${file.name}…`);
    const upload = async () =>
      send("POST", takeRoute("draft/pictures"), { pictures: [(await file.bytes()).toBase64()] });
    await attempt(upload, `${file.name}: `);
  }
  showState("");
  await refreshAll();
}

export function startDraft() {
  draft.onpaste = (/** @type {any} */ { clipboardData }) => clipboardData.getData("text") || attach(clipboardData.files);
  draft.value = local.getItem(ownDraftKey) ?? draft.value;
  saveUnsavedDraft();
  onpagehide = saveUnsavedDraft;
}
