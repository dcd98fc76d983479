// The conversation: a window of pieces around what the reader sees. Spacers stand for the pieces that are not loaded.
//
//   #above   spacer: entries before the first loaded piece
//   .piece   data-from = index of its first entry
//   .piece
//   #below   spacer: entries after the last loaded piece

import { all, byId, one, rect } from "./dom.js";
import { fetchPart } from "./api.js";
import { page, pastVersion, take } from "./page.js";
import { restoreUnsaved } from "./unsaved.js";

/** @type {any} */
export const conversation = byId("conversation");
const pieceSize = Number(conversation?.dataset.piece ?? 20);
const maxPieces = 12;
let averageHeight = 120;
let filling = false;

/** @returns {any[]} */
export const pieces = () => all(".piece", conversation);
const entryCount = () => Number(conversation.dataset.count);
const firstIndex = () => Number(pieces()[0]?.dataset.from ?? 0);
// Forms between entries are not entries.
/** @param {ParentNode} piece */
const entriesIn = piece => all(":scope > .entry", piece).length;
const endIndex = () => {
  const last = pieces().at(-1);
  return last ? Number(last.dataset.from) + entriesIn(last) : 0;
};

/** Gives the spacers the estimated height of what is not loaded. */
export function resizeSpacers() {
  const loaded = pieces();
  const entries = loaded.reduce((sum, piece) => sum + entriesIn(piece), 0);
  const height = loaded.reduce((sum, piece) => sum + piece.offsetHeight, 0);
  if (entries >= 10) averageHeight = height / entries;
  one(".empty").hidden = entryCount() > 0;
  byId("above").style.height = `${firstIndex() * averageHeight}px`;
  byId("below").style.height = `${Math.max(0, entryCount() - endIndex()) * averageHeight}px`;
}

/** @param {number | string} from */
export const fetchPiece = from =>
  fetchPart(`${page}/entries?from=${from}&take=${take}${pastVersion && `&at=${pastVersion}`}`);

export const isAtEnd = () => conversation.scrollHeight - conversation.scrollTop - conversation.clientHeight < 80;
export const scrollToEnd = () => (conversation.scrollTop = conversation.scrollHeight);

/** Makes a change without moving what the reader looks at. @param {() => void} change */
export function keepingPosition(change) {
  const top = rect(conversation).top;
  const anchor = all(".piece > .entry", conversation).find(entry => rect(entry).bottom > top);
  const before = anchor && rect(anchor).top;
  const wasAtEnd = isAtEnd();
  change();
  resizeSpacers();
  if (wasAtEnd && endIndex() >= entryCount()) scrollToEnd();
  else if (anchor?.isConnected) conversation.scrollTop += rect(anchor).top - before;
}

/** Loads pieces near the visible part and unloads distant ones. */
export async function fill() {
  if (filling || !conversation) return;
  filling = true;
  try {
    for (let round = 0; round < 20 && (await fillOnce()); round++);
  } catch {
    // Without a connection the conversation stays as it is; the event stream refreshes it later.
  } finally {
    filling = false;
  }
}

/** Loads at most one piece. Resolves to whether another may be needed. */
async function fillOnce() {
  const view = rect(conversation);
  const margin = view.height;
  const above = rect(byId("above"));
  const below = rect(byId("below"));
  const loaded = pieces();
  if (above.bottom < view.top - margin * 4 && below.top > view.bottom + margin * 4) return false;
  if (above.top < view.bottom && above.bottom > view.bottom + margin) {
    await jumpTo(Math.floor((view.top - above.top) / averageHeight));
  } else if (below.bottom > view.top && below.top < view.top - margin) {
    await jumpTo(endIndex() + Math.floor((view.top - below.top) / averageHeight));
  } else if (firstIndex() > 0 && above.bottom > view.top - margin) {
    await insertPiece(Math.max(0, firstIndex() - pieceSize), byId("above").nextSibling, loaded.at(-1));
  } else if (endIndex() < entryCount() && below.top < view.bottom + margin) {
    return (await insertPiece(endIndex(), byId("below"), loaded[0])) > 0;
  } else return false;
  return true;
}

/**
 * Inserts a piece before an element, and removes the far one where there are too many.
 * @param {number} from @param {Node} before @param {any} far
 */
async function insertPiece(from, before, far) {
  const piece = await fetchPiece(from);
  const tooMany = pieces().length >= maxPieces;
  keepingPosition(() => {
    conversation.insertBefore(piece, before);
    // A piece with a form in it may hold unsaved text.
    if (tooMany && !one("form", far)) far.remove();
  });
  restoreUnsaved(piece);
  return piece.children.length;
}

/** Replaces the loaded pieces by the one around an entry far away. @param {number} index */
async function jumpTo(index) {
  const target = Math.min(Math.max(0, index), Math.max(0, entryCount() - 1));
  const piece = await fetchPiece(Math.floor(target / pieceSize) * pieceSize);
  for (const loaded of pieces()) loaded.remove();
  byId("above").after(piece);
  resizeSpacers();
  conversation.scrollTop = piece.offsetTop - conversation.offsetTop + (target % pieceSize) * averageHeight;
  restoreUnsaved(piece);
}
