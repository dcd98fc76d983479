// Which thread, take and version the page shows, and the addresses that follow from them.

import { byId } from "./dom.js";

/** @param {string} name @returns {string} */
export const fact = name => byId(`fact-${name}`)?.value ?? "";

export const thread = fact("thread");
export const take = fact("take");
/** The old version that the page shows, or nothing for the current one. */
export const pastVersion = fact("past");

/** Address of the page itself. */
export const page = `/studio/threads/${thread}`;

/** A route of this thread. @param {string} rest */
export const threadRoute = rest => `/v1/threads/${thread}/${rest}`;

/** Adds the take to a route. @param {string} path */
export const withTake = path => `${path}?take=${take}`;

/** A route of this take. @param {string} rest */
export const takeRoute = rest => withTake(threadRoute(rest));
