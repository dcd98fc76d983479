// Redraws parts of the page that may have changed. The server renders them; the page has no copy of the state.

import { attempt, fetchPart } from "./api.js";
import {
  conversation, fetchPiece, fill, isAtEnd, keepingPosition, pieces, resizeSpacers, scrollToEnd,
} from "./conversation.js";
import { all, byId, element, focused, one, query } from "./dom.js";
import { draft, moveDraftTo, showDraftOfServer } from "./draft.js";
import { editorOf, entryId, showConflict } from "./editing.js";
import { showFolder } from "./folder.js";
import { clearLive, clearLiveIfDone, showTurnControls } from "./live.js";
import { page, pastVersion, take } from "./page.js";
import { restoreUnsaved } from "./unsaved.js";

/** @param {any} entry */
const contentVersion = entry => entry.dataset.version.split("-")[0];

/**
 * Replaces the entries of a piece by new ones. Entries that are unchanged or being edited stay, even where they are
 * in another piece now.
 * @param {any} old @param {any} fresh @param {Set<string>} ids all ids that the pieces have now
 */
function replaceEntries(old, fresh, ids) {
  const inserting = all(".inserting", old);
  const next = [...fresh.children].map(entry => {
    const known = byId(entry.id);
    if (known && editorOf(known) && contentVersion(known) !== contentVersion(entry)) {
      showConflict(known, one(".entry-body, .plain, .preview", entry));
    }
    return known && (editorOf(known) || known.dataset.version === entry.dataset.version) ? known : entry;
  });
  // An entry that was deleted elsewhere while it is edited here stays until the user saves or discards the text.
  const deleted = [...old.children].filter(entry => entry.id && editorOf(entry) && !ids.has(entry.id));
  for (const entry of deleted) showConflict(entry);
  const children = [...next, ...deleted].flatMap(entry => [
    entry,
    ...inserting.filter(form => form.dataset.after === entryId(entry)),
  ]);
  children.push(...inserting.filter(form => !children.includes(form)));
  // Elements that stay are not moved, so that they keep the focus; a redrawn one gets it back.
  const focusedId = focused().closest(".entry")?.id;
  const position = [...old.children].findIndex(({ id }) => id && id === focusedId);
  for (const child of [...old.children]) if (!children.includes(child)) child.remove();
  children.forEach((child, index) => {
    if (child !== old.children[index]) old.insertBefore(child, old.children[index]);
  });
  if (position >= 0 && focused() === document.body) {
    (byId(focusedId) ?? old.children[position] ?? old.lastChild)?.focus({ preventScroll: true });
  }
}

async function refreshConversation() {
  if (!conversation || pastVersion) return;
  const wasAtEnd = isAtEnd();
  if (!pieces()[0]) byId("below").before(element("section", { className: "piece", "data-from": 0 }));
  const loaded = pieces();
  const fresh = await Promise.all(loaded.map(piece => fetchPiece(piece.dataset.from)));
  const ids = new Set(fresh.flatMap(piece => [...piece.children].map(({ id }) => id)));
  keepingPosition(() => {
    loaded.forEach((piece, index) => replaceEntries(piece, fresh[index], ids));
    conversation.dataset.count = fresh[0].dataset.count;
    for (const piece of pieces()) if (!piece.children.length) piece.remove();
  });
  loaded.forEach(restoreUnsaved);
  // Streamed text stays visible until its entry is drawn.
  clearLiveIfDone();
  if (wasAtEnd) {
    resizeSpacers();
    scrollToEnd();
  }
  await fill();
}

const liveParts = ["bar", "turn", "attached", "set-to", "history", "files", "settings", "tree"];

/** Address of a part, with as many rows as are shown now. @param {string} name */
export const partAddress = name =>
  name === "tree"
    ? `/studio/tree?${query(new FormData(byId("filters")))}`
    : `${page}/${name}?take=${take}${byId(name)?.dataset.until ?? ""}`;

/** @param {ParentNode} part */
const isInUse = part => one(":is(input,textarea,select):focus,details.menu[open]", part);

/** Redraws a part. Without a connection it stays; the event stream refreshes it later. @param {string} name */
export const refreshPart = name => redrawPart(name).catch(() => {});

/** @type {Map<string, ReturnType<typeof setTimeout>>} */
const postponed = new Map();

/** @param {string} name @returns {Promise<void>} */
async function redrawPart(name) {
  const find = () => one(`[data-live="${name}"]`);
  let old = find();
  const address = old && partAddress(name);
  const fresh = old && !isInUse(old) && (await fetchPart(address));
  old = find();
  if (old && isInUse(old)) {
    clearTimeout(postponed.get(name));
    postponed.set(name, setTimeout(() => refreshPart(name), 1000));
    return;
  }
  if (!old) return;
  // The filters may have changed while the request was under way.
  if (address !== partAddress(name)) return refreshPart(name);
  const active = focused();
  const hadFocus = old.contains(active);
  const opened = new Map(all("details[data-path]", old).map(({ dataset, open }) => [dataset.path, open]));
  for (const file of all("details[data-path]", fresh)) file.open = opened.get(file.dataset.path) ?? file.open;
  const scroll = old.parentElement.scrollTop;
  old.replaceWith(fresh);
  fresh.parentElement.scrollTop = scroll;
  if (hadFocus) (byId(active.id) ?? one(`[data-act="${active.dataset.act}"]`, fresh) ?? draft)?.focus();
  restoreUnsaved(fresh);
  if (name === "turn") showTurn();
  if (name === "files") showFolder();
}

/** Updates what depends on the state of the turn: buttons, streamed text, draft. */
export function showTurn() {
  if (!showTurnControls()) clearLive({ keepFinished: true });
  showDraftOfServer(byId("turn").dataset.draft);
}

/** Follows the active take, if it is another one, with the text typed for a take that is gone. */
export function followActiveTake() {
  const { active, gone } = byId("bar").dataset;
  if (active === take) return;
  moveDraftTo(active, gone);
  location.assign(page);
}

let refreshing = false;
let changedMeanwhile = false;

/** Redraws everything that may have changed; one run at a time, and once more if something changed meanwhile. */
export async function refreshAll() {
  changedMeanwhile = true;
  if (refreshing) return;
  refreshing = true;
  while (changedMeanwhile) {
    changedMeanwhile = false;
    // A take that is gone must not keep the tree from being redrawn.
    await refreshConversation().catch(() => {});
    await Promise.all(liveParts.map(refreshPart));
  }
  refreshing = false;
}

/** Fetches something, inserts it, and restores unsaved text in it. @param {string} path @param {(part: any) => void} insert */
export async function showPart(path, insert) {
  const part = await attempt(() => fetchPart(path));
  if (!part) return;
  insert(part);
  restoreUnsaved(part);
}
