// The one dialog of the page.

import { byId, one } from "./dom.js";

const ACKNOWLEDGE = "OK";

/**
 * Asks a question. Resolves to whether the user confirmed.
 * @param {(Node | string)[]} body @param {string} confirmLabel @returns {Promise<boolean>}
 */
export function confirm(body, confirmLabel) {
  const dialog = byId("dialog");
  byId("dialog-body").replaceChildren(...body);
  dialog.ariaLabel = byId("dialog-yes").textContent = confirmLabel;
  byId("dialog-no").hidden = confirmLabel === ACKNOWLEDGE;
  dialog.returnValue = "no";
  dialog.showModal();
  (one("input, select", dialog) ?? byId("dialog-yes")).focus();
  return new Promise(done => (dialog.onclose = () => done(dialog.returnValue === "yes")));
}

/** Shows something that needs no decision. @param {(Node | string)[]} body */
export const acknowledge = body => confirm(body, ACKNOWLEDGE);
