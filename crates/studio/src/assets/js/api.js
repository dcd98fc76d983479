// Requests to the API, parts of pages from the server, and notices about both.

import { byId, element, one } from "./dom.js";
import { showTimes } from "./times.js";

/** @param {Response} response */
const statusText = response => `The server answered ${response.status}.`;

/** @param {number} milliseconds */
const sleep = milliseconds => new Promise(done => setTimeout(done, milliseconds));

/**
 * Sends a request, and repeats it where the connection fails. The idempotency key makes the server execute it once.
 * @param {string} method @param {string} path @param {any} [body]
 */
export async function send(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  if (method === "POST") headers["Idempotency-Key"] = crypto.randomUUID();
  for (let delay = 300; ; delay *= 2) {
    try {
      const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
      const answer = await response.json().catch(() => ({}));
      if (response.ok) return answer;
      throw Object.assign(Error(answer.detail ?? statusText(response)), { problem: answer });
    } catch (/** @type {any} */ error) {
      if (error.problem || delay > 2000) throw error;
      await sleep(delay);
    }
  }
}

/** Fetches a part of a page as an element. @param {string} path @returns {Promise<any>} */
export async function fetchPart(path) {
  const response = await fetch(path);
  const template = element("template", { innerHTML: await response.text() });
  if (!response.ok) throw Error(one("main p", template.content)?.textContent ?? statusText(response));
  // Before it is in the page, so that its size does not change afterwards.
  showTimes(template.content);
  return template.content.firstElementChild;
}

/** Shows a notice for a few seconds. @param {string} text @param {"" | "bad"} [kind] @param {...(Node | string)} more */
export function notify(text, kind = "", ...more) {
  const toast = element("div", { className: `toast ${kind}` }, text, ...more);
  byId("toasts")?.append(toast);
  setTimeout(() => toast.remove(), kind || more[0] ? 10_000 : 4000);
}

/**
 * Runs something and shows its error, if any, as a notice.
 * @template T @param {() => Promise<T> | T} action @param {string} [prefix] @returns {Promise<T | undefined>}
 */
export async function attempt(action, prefix = "") {
  try {
    return await action();
  } catch (/** @type {any} */ error) {
    notify(prefix + error.message, "bad");
  }
}

/** Sends a request; shows the error, if any. @param {string} method @param {string} path @param {any} [body] */
export const trySend = (method, path, body) => attempt(() => send(method, path, body));

/** Fetches a part; shows the error, if any. @param {string} path */
export const tryFetchPart = path => attempt(() => fetchPart(path));
