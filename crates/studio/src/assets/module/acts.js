// What buttons do: moves along the log, with a look ahead; requests; settings.

// --- moving along the log -----------------------------------------------------------------------------------------

const number = (many, one, more) => `${many} ${many === 1 ? one : more}`;

function pathList(report) {
  const items = (report?.paths ?? []).map(({ path, root, outcome, reason }) =>
    element("li", { className: outcome }, element("code", {}, root ? `${root}:${path}` : path), ` ${reason ?? outcome}`));
  return items.length ? element("ul", { className: "paths", tabIndex: 0 }, ...items) : "No files move.";
}

/** What is to become of files that two have changed, with both versions of each. */
function choice(report) {
  const conflicts = (report?.paths ?? []).filter(({ outcome }) => outcome === "conflicted");
  if (!conflicts.length) return [];
  const set = byId("choice").content.firstElementChild.cloneNode(true);
  for (const { path, root = "", theirs = "" } of conflicts) {
    const both = query({ path, root, ours: report.before, theirs });
    const file = element("details", {}, element("summary", {}, path));
    file.ontoggle = async () => file.children[1] || file.append(await part(`${page}/versions?${both}`));
    one("legend", set).after(file);
  }
  return [set];
}

async function move(route, body, title, yes) {
  const ahead = await asked("POST", at(`${route}dry_run=true`), body);
  if (!ahead) return;
  const { entries_after: after = 0, entries_before: before = 0 } = ahead.would ?? {};
  const difference = Math.abs(after - before);
  const words = difference ? `${number(difference, "entry", "entries")} ${after < before ? "go" : "come back"}.` : "No entries come or go.";
  const chosen = choice(ahead.files);
  if (!(await confirmed([element("h2", {}, title), element("p", {}, words), pathList(ahead.files), ...chosen], yes))) return;
  const conflicts = chosen[0]?.querySelector(":checked").value;
  const done = await asked("POST", at(route), { ...body, ...(conflicts ? { conflicts } : {}) });
  if (!done) return;
  const paths = done.files?.paths ?? [];
  if (paths.some((one) => !one.written && /conflicted|kept|skipped/.test(one.outcome))) {
    await confirmed([element("h2", {}, "Done, but not everywhere"), pathList(done.files), element("p", {}, "The other version stays in the history.")], "Understood");
  } else say(paths.length ? `Done, with ${number(paths.length, "file", "files")}.` : "Done.");
  await renewAll();
}

// --- what buttons do ------------------------------------------------------------------------------------------------

const entryOf = (button) => button.closest(".entry");
const idOf = (button) => entryOf(button).dataset.entry;
const home = () => `/studio/threads/${thread}`;
const approval = () => (byId("approve")?.value ? { approve: byId("approve").value } : {});
const call = (button) => button.closest("[data-call]").dataset.call;

/** What is one request: method, path, body, then what is said or where to go. Paths are of the thread and the take. */
const requests = {
  delete: (b) => ["DELETE", `entries/${idOf(b)}`, undefined, "Deleted; an undo brings it back."],
  branch: (b) => ["POST", "branch", { entry: idOf(b) }, home],
  retry: (b) => ["POST", "retry", { entry: idOf(b), ...approval() }, (done) => `${home()}?take=${done.take}`],
  allow: (b) => ["POST", "turn/approve", { call: call(b), allow: true }],
  always: (b) => ["POST", "turn/approve", { call: call(b), allow: true, remember: true }],
  deny: (b) => ["POST", "turn/approve", { call: call(b), allow: false }],
  interrupt: () => ["POST", "turn/interrupt", {}],
  resume: () => ["POST", "turn/resume", approval()],
  compress: () => ["POST", "compress", {}, "A summary stands for them now."],
  switch: (b) => ["POST", `/takes/${b.dataset.take}/switch`, {}, home],
  promote: (b) => ["POST", `/takes/${b.dataset.take}/promote`, {}, (done) => `/studio/threads/${done.promoted.thread}`],
};

async function request([method, path, body, then]) {
  const whole = path.startsWith("/") ? at(path.slice(1)) : ofTake(at(path));
  const done = await asked(method, whole, body);
  if (!done) return;
  if (typeof then === "function") location.assign(then(done));
  else if (then) say(then);
  await renewAll();
}

const acts = {
  undo: () => move("undo?", {}, "Undo the last step?", "Undo"),
  redo: () => move("redo?", {}, "Redo?", "Redo"),
  jump: (b) => move("jump?", { version: Number(b.dataset.version) }, `Go to moment ${b.dataset.version}?`, "Go there"),
  reset: () => move("reset?", {}, "Reset the thread?", "Reset"),
  clear: () => move(`${ofTake("clear")}&`, {}, "Take all entries out?", "Clear"),
  async truncate() {
    const pairs = await prompted("How many of the last pairs stay?", "3", "Cut the others");
    if (pairs) await request(["POST", "truncate", { pairs: Number(pairs) }]);
  },
  async save() {
    const name = await prompted("What is this moment called?", "", "Save");
    if (name) await request(["POST", "/save", { name }, `Saved as “${name}”.`]);
  },
  async "put-away"() {
    const wanted = await confirmed(["Put this thread away?"], "Put it away");
    if (wanted && (await asked("DELETE", `/v1/threads/${thread}`))) location.assign("/studio");
  },
  async "new-thread"() {
    const made = await asked("POST", "/v1/threads", {});
    if (!made) return;
    await asked("POST", `/v1/threads/${made.thread}/current`, {});
    location.assign(`/studio/threads/${made.thread}`);
  },
  edit: (b) => edit(entryOf(b)),
  "leave-edit": (b) => leaveEdit(entryOf(b)),
  insert: (b) => insertBehind(entryOf(b)),
  "leave-insert": (b) => b.closest("form").remove(),
  async copy(b) {
    const shown = await read(entryOf(b));
    if (!shown) return;
    await navigator.clipboard.writeText(shown.entry.content);
    say("Copied.");
  },
  async role(b) {
    const select = roleSelect(entryOf(b).dataset.role);
    if (await confirmed([element("label", {}, "Role", select)], "Change")) await request(["PATCH", `entries/${idOf(b)}`, { role: select.value }]);
  },
  collapse: (b) => showAs(entryOf(b), 0),
  source: (b) => showAs(entryOf(b), 1),
  "collapse-all": () => showAll(true),
  "expand-all": () => showAll(false),
  async tab(b) {
    for (const tab of every("[role=tab]")) tab.ariaSelected = String(tab.dataset.tab === b.dataset.tab);
    await panel(sources[b.dataset.tab]());
  },
  blame: (b) => panel(`${page}/blame?${query({ path: b.dataset.file, root: b.dataset.root })}`),
  async "files-of"(b) {
    const shown = await drawn(`${page}/call?${query({ q: call(b) })}`);
    if (shown) b.replaceWith(shown);
  },
  async more(b) {
    const shown = await drawn(b.dataset.src);
    if (!shown) return;
    b.replaceWith(...shown.childNodes);
    settle(byId("panel"));
  },
  try(b) {
    draft.value = b.dataset.text;
    keepDraft();
    draft.focus();
  },
  menu: () => look.toggle("show-left"),
  details: () => look.toggle("show-right"),
};

async function panel(source) {
  const shown = await drawn(source);
  if (!shown) return;
  byId("panel").replaceChildren(shown);
  settle(shown);
}

function roleSelect(chosen) {
  const options = fact("roles").split("\n").map((role) => element("option", { value: role, selected: role === chosen }, role));
  return element("select", { ariaLabel: "Role" }, ...options);
}

async function showAs(entry, which) {
  const flags = (entry.dataset.version.split("-")[1] ?? "00").split("").map(Number);
  flags[which] = 1 - flags[which];
  const done = await asked("PUT", at(`entries/${entry.dataset.entry}/shown`), { collapsed: !!flags[0], source: !!flags[1] });
  if (done) await renewTalk();
}

async function showAll(collapsed) {
  if (await asked("PUT", ofTake(at("entries-shown")), { collapsed })) await renewTalk();
}

function applyFilter() {
  const wanted = byId("filter")?.value ?? "";
  for (const entry of every("#conversation .piece > .entry")) {
    entry.classList.toggle("filtered", wanted !== "" && entry.dataset.role !== wanted);
  }
}

// --- settings ---------------------------------------------------------------------------------------------------------

/** What a field of the settings holds is kept as soon as it is left. Lists are written with commas or on lines. */
function keepField({ type, name, value, checked, dataset }) {
  const list = () => value.split(dataset.list === "lines" ? "\n" : ",").map((item) => item.trim()).filter(Boolean);
  const kept = type === "checkbox" ? checked : type === "number" ? Number(value) : dataset.list ? list() : value;
  asked("PUT", `/api/fields/${name}?thread=${thread}&take=${take}`, { value: kept });
}
