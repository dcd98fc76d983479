// Actions of buttons: moves with a preview, requests, settings.

// --- moves along the log -----------------------------------------------------------------------------------------

const pathsOf = report => report?.paths ?? [];

function pathList(report) {
  const items = pathsOf(report).map(({ path, root, outcome, reason, note }) =>
    element("li", { className: outcome }, element("code", {}, root ? `${root}:${path}` : path), ` ${reason ?? outcome} ${note ?? ""}`));
  return items[0] ? element("ul", { className: "paths", tabIndex: 0 }, ...items) : "No files change.";
}

/** The choice for files with conflicts, with both versions of each. */
function choice(report) {
  const conflicts = pathsOf(report).filter(({ outcome }) => outcome === "conflicted");
  if (!conflicts[0]) return [];
  const set = copyOf("choice");
  for (const { path, root = "", theirs = "" } of conflicts) {
    const both = query({ path, root, ours: report.before, theirs });
    one("legend", set).after(element("details", { "data-src": `${page}/versions?${both}` }, element("summary", {}, path)));
  }
  return [set];
}

/** Previews a move, asks for confirmation, executes it and reports the result. `route` ends with its query, possibly empty. A `quiet` move asks only
 * if files change. `does` is the route to execute if it differs from the one to preview, with the additional fields `more`. */
async function move(route, body, yes, { quiet, then, does, more } = {}) {
  const to = route[0] === "/" ? route : at(route);
  const ahead = await asked("POST", `${to}&dry_run=true`, body);
  if (!ahead) return;
  const { kind, recovered, emptied, shared } = ahead.preview ?? {};
  if (recovered || emptied) say("An interrupted move was finished first.");
  const differs = +kind?.to && (await drawn(`${page}/compare-versions?${query({ about: "move", before: kind.from, at: kind.to })}`));
  const chosen = choice(ahead.files);
  const note = shared ? element("p", {}, `Changed while another command ran: ${shared.map(({ path }) => path).join(", ")}`) : "";
  if ((!quiet || pathsOf(ahead.files)[0]) && !(await confirmed([element("h2", {}, `${yes}?`), note, ...chosen, differs || "", pathList(ahead.files)], yes))) return;
  const done = await asked("POST", does ? at(does) : to, { ...body, ...more, ...(note && { shared: true }), ...(chosen[0] && fieldsOf(chosen[0])) });
  if (!done) return;
  const paths = pathsOf(done.files);
  if (paths.some(one => !one.written && /conflicted|kept|skipped/.test(one.outcome))) {
    await confirmed([element("h2", {}, "Partly done; history has both versions"), pathList(done.files)], "OK");
  } else say("Done.", "", ...(paths[0] ? [pathList(done.files)] : []));
  if (then) return goOn(then, done);
  await renewAll();
  // Follow the active take.
  if (fact("active") === "true") toActive();
}

/** Opens an address; names in braces are fields of the response. */
const goOn = (then, done) => location.assign(then.replace(/{(\w+)}/, (_, at) => done[at] ?? done.promoted[at]));

// --- actions --------------------------------------------------------------------------------------------------------

const entryOf = b => b.closest(".entry");
const approval = () => ({ approve: byId("approve")?.value || undefined });

const shown = b => {
  const [collapsed, source] = [...b.dataset.shown].map(one => one === "1");
  return request(["PUT", at(`entries/${idOf(b)}/view`), { collapsed, source }]);
};

/** Sends a request, then shows a message or opens an address. */
async function request([method, path, body, then]) {
  const done = await asked(method, path[0] === "/" ? path : here(path), body);
  if (!done) return;
  if (then?.[0] === "/") return goOn(then, done);
  if (then) say(then, "", method === "DELETE" ? element("button", { "data-act": "undo" }, "Undo") : "");
  await renewAll();
}

/** Sends the request of an element with the values of its fields. */
const askAs = ({ dataset: { method, ask, body, then } }, fields) =>
  request([method, ask, method === "DELETE" ? undefined : { ...JSON.parse(body ?? "{}"), ...fields }, then]);

const goes = { quiet: true, then: page };

const acts = {
  undo: () => move(ofTake("undo"), {}, "Undo this turn"),
  redo: () => move(ofTake("redo"), {}, "Redo"),
  jump: ({ dataset: { ask, version } }) => move(ask, { version: +version }, `Go to version ${version}`),
  branch: b => move(ofTake("branch"), { entry: idOf(b) }, "Branch here", goes),
  retry: b => move(ofTake("fork"), { entry: idOf(b) }, "Retry", { quiet: true, then: `${page}?take={take}`, does: ofTake("retry"), more: approval() }),
  switch: b => move(`takes/${b.dataset.take}/switch?`, {}, "Switch to this take", goes),
  restore: b => move(`${b.dataset.ask}?`, JSON.parse(b.dataset.body), "Restore these files", b.dataset),
  delete: b => request(["DELETE", `entries/${idOf(b)}`, undefined, "Deleted."]),
  collapse: shown,
  source: shown,
  resume: () => request(["POST", "turn/resume", approval()]),
  ask: askAs,
  // The server renders the form, which declares its request.
  async dialog(b) {
    const form = await drawn(b.dataset.src ?? `${page}/dialog?${query({ take, about: b.dataset.about, entry: idOf(b) })}`);
    if (form && (await confirmed([form], form.dataset.yes))) await askAs(form, fieldsOf(form));
  },
  edit: b => edit(entryOf(b)),
  "leave-edit": b => leave(b.form, b.form.dataset.before, () => leaveEdit(entryOf(b))),
  insert: b => insertBehind(entryOf(b)),
  "leave-insert": b => leave(b.form, "", () => leaveInsert(b.form)),
  async copy(b) {
    const shown = await read(entryOf(b));
    if (!shown) return;
    await navigator.clipboard.writeText(textOf(shown) || JSON.stringify(shown.entry.blocks));
    say("Copied.");
  },
  async tab(b) {
    for (const tab of every("[role=tab]")) tab.ariaSelected = String(tab.dataset.tab === b.dataset.tab);
    await panel(sourceOf(b.dataset.tab));
  },
  show: b => panel(b.dataset.src),
  more: b =>
    show(b.dataset.src, shown => {
      // A refresh renders as much again.
      Object.assign(b.closest("[data-live]")?.dataset ?? {}, shown.dataset);
      b.replaceWith(...shown.childNodes);
    }),
  tag(b) {
    byId("find").value = b.value;
    return renewPart("tree");
  },
  try(b) {
    draft.value = b.dataset.text;
    keepDraft();
    draft.focus();
  },
  active: toActive,
  menu: () => look.toggle("show-left"),
  details: () => look.toggle("show-right"),
};

/** Shows a fragment in the side panel, or opens its address if there is no panel. */
async function panel(source) {
  const place = byId("panel");
  if (!place) return location.assign(source);
  look.add("show-right");
  await show(source, shown => place.replaceChildren(shown));
}

// --- settings ---------------------------------------------------------------------------------------------------------

/** Settings are saved when a field loses focus; until then the session storage holds them. */
const half = sessionStorage;
const placeIn = field => take + field.name;

async function keepField(field) {
  if (await asked("PUT", `/api/fields/${field.name}?thread=${thread}&take=${take}`, { value: valueOf(field) })) half.removeItem(placeIn(field));
}
