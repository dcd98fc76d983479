// Text that survives a reload and a crash of the server: in this browser (`local`) or in this window (`window`).

import { take, thread } from "./page.js";

export const local = localStorage;
export const perWindow = sessionStorage;

/** Stores a text, unless the browser's storage is full: the server stores it too. @param {string} key @param {string} text */
export function remember(key, text) {
  try {
    local.setItem(key, text);
  } catch {
    // Storage is full or forbidden.
  }
}

/** @param {string} ofTake */
export const draftKey = ofTake => `retake-draft-${thread}-${ofTake}`;
export const ownDraftKey = draftKey(take);

/** Where a half-typed edit of an entry is stored: [text before, text now]. @param {{id: string}} entry */
export const editKey = entry => take + entry.id;

/** Where the text of an entry being inserted after another is stored. @param {{id: string}} entry */
export const insertKey = entry => `${editKey(entry)}+`;

/** Where a half-typed setting is stored. @param {{name: string}} field */
export const fieldKey = field => take + field.name;
