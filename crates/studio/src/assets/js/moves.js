// Moves: undo, redo, jump, branch, retry, switch, restore. Each is previewed, confirmed, executed and reported.

import { notify, tryFetchPart, trySend } from "./api.js";
import { acknowledge, confirm } from "./dialog.js";
import { copyTemplate, element, fieldsOf, one, query } from "./dom.js";
import { fact, page, threadRoute } from "./page.js";
import { followActiveTake, refreshAll } from "./refresh.js";

/** @param {any} report @returns {any[]} */
const pathsOf = report => report?.paths ?? [];

/** @param {any} report */
function pathList(report) {
  const items = pathsOf(report).map(({ path, root, outcome, reason, note }) =>
    element(
      "li",
      { className: outcome },
      element("code", {}, root ? `${root}:${path}` : path),
      ` ${reason ?? outcome} ${note ?? ""}`,
    ));
  return items[0] ? element("ul", { className: "paths", tabIndex: 0 }, ...items) : "No files change.";
}

/** A form that asks which version of conflicting files to use, with both versions of each. @param {any} report */
function conflictChoice(report) {
  const conflicts = pathsOf(report).filter(({ outcome }) => outcome === "conflicted");
  if (!conflicts[0]) return undefined;
  const choice = copyTemplate("choice");
  for (const { path, root = "", theirs = "" } of conflicts) {
    const both = query({ path, root, ours: report.before, theirs });
    const source = `${page}/versions?${both}`;
    one("legend", choice).after(element("details", { "data-src": source }, element("summary", {}, path)));
  }
  return choice;
}

/**
 * @typedef {object} MoveOptions
 * @property {boolean} [quiet] ask only where files change
 * @property {string} [then] address to open afterwards
 * @property {string} [execute] route that executes the move, where another route previews it
 * @property {object} [more] further fields of the executing request
 */

/**
 * Previews a move, asks, executes it, and reports. The route ends in its query, which may be empty.
 * @param {string} route @param {any} body @param {string} label @param {MoveOptions | DOMStringMap} [options]
 */
export async function move(route, body, label, options = {}) {
  const { quiet, then, execute, more } = /** @type {MoveOptions} */ (options);
  const path = route[0] === "/" ? route : threadRoute(route);
  const preview = await trySend("POST", `${path}&dry_run=true`, body);
  if (!preview) return;
  const { kind, recovered, emptied, shared } = preview.preview ?? {};
  if (recovered || emptied) notify("An interrupted move was finished first.");
  const versions = Number(kind?.to) && query({ about: "move", before: kind.from, at: kind.to });
  const differences = versions && (await tryFetchPart(`${page}/compare-versions?${versions}`));
  const choice = conflictChoice(preview.files);
  const sharedPaths = shared?.map((/** @type {any} */ file) => file.path).join(", ");
  const note = shared ? element("p", {}, `Changed while another command ran: ${sharedPaths}`) : "";
  const question = [element("h2", {}, `${label}?`), note, choice ?? "", differences || "", pathList(preview.files)];
  if ((!quiet || pathsOf(preview.files)[0]) && !(await confirm(question, label))) return;
  const done = await trySend("POST", execute ? threadRoute(execute) : path, {
    ...body,
    ...more,
    ...(shared && { shared: true }),
    ...(choice && fieldsOf(choice)),
  });
  if (!done) return;
  await reportFiles(done.files);
  if (then) return openResult(then, done);
  await refreshAll();
  // A page that showed the active take follows it.
  if (fact("active") === "true") followActiveTake();
}

/** @param {any} report */
async function reportFiles(report) {
  const paths = pathsOf(report);
  if (paths.some(path => !path.written && /conflicted|kept|skipped/.test(path.outcome))) {
    await acknowledge([element("h2", {}, "Partly done; history has both versions"), pathList(report)]);
  } else notify("Done.", "", ...(paths[0] ? [pathList(report)] : []));
}

/** Opens the address that follows from an answer: names in braces are fields of it. @param {string} address @param {any} done */
export const openResult = (address, done) =>
  location.assign(address.replace(/{(\w+)}/, (_, field) => done[field] ?? done.promoted[field]));
