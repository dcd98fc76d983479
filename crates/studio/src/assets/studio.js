// The one module of the studio: it asks the API for changes, and the server for parts of the page when something
// happened. It keeps no copy of the state; what is on the page is what the server last drew.

const byId = (id) => document.getElementById(id);
const one = (selector, within = document) => within.querySelector(selector);
const every = (selector, within = document) => [...within.querySelectorAll(selector)];
const ignore = () => {};
const look = document.body.classList;
const memory = localStorage;
const query = (fields) => new URLSearchParams(fields);
const on = (kind, does) => document.addEventListener(kind, does);
const focus = () => document.activeElement;
const box = (of) => of.getBoundingClientRect();
const fact = (name) => byId(`fact-${name}`)?.value ?? "";
const thread = fact("thread");
const take = fact("take");
const past = fact("past");
const at = (rest) => `/v1/threads/${thread}/${rest}`;
const page = `/studio/threads/${thread}`;
const ofTake = (path) => `${path}${path.includes("?") ? "&" : "?"}take=${take}`;

// --- asking ---------------------------------------------------------------------------------------------------

async function ask(method, path, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  // A request that was cut off is sent again under the same name, and still done once.
  if (method === "POST") headers["Idempotency-Key"] = crypto.randomUUID();
  for (let wait = 300; ; wait *= 2) {
    try {
      const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
      const said = await answer.json().catch(() => ({}));
      if (answer.ok) return said;
      throw Object.assign(Error(said.detail ?? `The server answered ${answer.status}.`), { problem: said });
    } catch (error) {
      if (error.problem || wait > 2000) throw error;
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

async function part(path) {
  const answer = await fetch(path);
  const template = element("template", { innerHTML: await answer.text() });
  if (!answer.ok) throw Error(one("main p", template.content)?.textContent ?? `The server answered ${answer.status}.`);
  // Before it has a place: what is drawn must not change its size afterwards.
  tellTimes(template.content);
  return template.content.firstElementChild;
}

function say(text, kind = "") {
  const toast = element("p", { className: `toast ${kind}` }, text);
  byId("toasts")?.append(toast);
  setTimeout(() => toast.remove(), kind ? 10000 : 4000);
}

/** Does something, and tells what stood against it. */
async function attempt(does) {
  try {
    return await does();
  } catch (error) {
    say([error.message, error.problem?.action].filter(Boolean).join(" "), "bad");
  }
}

const asked = (...request) => attempt(() => ask(...request));
const drawn = (path) => attempt(() => part(path));

// --- small elements -------------------------------------------------------------------------------------------

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Asks in a dialog; gives whether it is to be done. */
function confirmed(body, yes) {
  const dialog = byId("dialog");
  byId("dialog-body").replaceChildren(...body);
  byId("dialog-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  (one("input", dialog) ?? byId("dialog-yes")).focus();
  return new Promise((done) => (dialog.onclose = () => done(dialog.returnValue === "yes")));
}

/** Asks for a text in a dialog. */
async function prompted(question, value, yes) {
  const input = element("input", { value, required: true });
  return (await confirmed([element("label", {}, question, input)], yes)) && input.value.trim();
}

const near = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });

function ago(date) {
  let distance = (date - Date.now()) / 1000;
  for (const [unit, size] of [["second", 60], ["minute", 60], ["hour", 24], ["day", 30]]) {
    if (Math.abs(distance) < size) return near.format(Math.round(distance), unit);
    distance /= size;
  }
  return date.toLocaleDateString();
}

function tellTimes(root = document) {
  for (const time of every("time", root)) {
    const date = new Date(time.dateTime);
    time.title = date.toLocaleString();
    time.textContent = ago(date);
  }
}

/** Pictures come as text over the API, and become pictures here: nothing that a model wrote names an address. */
async function showPictures(root) {
  for (const image of every("img[data-picture]:not([src])", root)) {
    const { media, picture } = image.dataset;
    if (!/^image\/(png|jpeg|gif|webp)$/.test(media)) continue;
    const { base64 } = await ask("GET", picture);
    image.src = `data:${media};base64,${base64}`;
  }
}

function settle(root) {
  tellTimes(root);
  for (const entry of every(".piece > .entry", root)) if (memory.getItem(placeOf(entry))) edit(entry);
  showPictures(root).catch(ignore);
  applyFilter();
}

// --- the conversation: a window of pieces ---------------------------------------------------------------------

const talk = byId("conversation");
const pieces = () => every(".piece", talk);
const pieceSize = Number(talk?.dataset.piece ?? 20);
const keptPieces = 12;
let usualHeight = 120;
let filling = false;

const count = () => Number(talk.dataset.count);
const first = () => Number(pieces()[0]?.dataset.from ?? 0);
const behind = () => {
  const last = pieces().at(-1);
  return last ? Number(last.dataset.from) + last.children.length : 0;
};

/** Gives the rooms the size of what is not drawn. */
function makeRoom() {
  const drawn = pieces();
  const entries = drawn.reduce((sum, piece) => sum + piece.children.length, 0);
  const height = drawn.reduce((sum, piece) => sum + piece.offsetHeight, 0);
  if (entries >= 10) usualHeight = height / entries;
  one(".empty").hidden = count() > 0;
  byId("above").style.height = `${Math.round(first() * usualHeight)}px`;
  byId("below").style.height = `${Math.round(Math.max(0, count() - behind()) * usualHeight)}px`;
}

const pieceAt = (from) => part(ofPast(`${page}/entries?from=${from}&take=${take}`));
const ofPast = (path) => (past ? `${path}&at=${past}` : path);

/** Keeps what the reader looks at where it is, whatever happens around it. */
function holding(change) {
  const top = box(talk).top;
  const anchor = every(".piece > .entry", talk).find((entry) => box(entry).bottom > top);
  const before = anchor && box(anchor).top;
  const atEnd = isAtEnd();
  change();
  makeRoom();
  if (atEnd && behind() >= count()) toEnd();
  else if (anchor?.isConnected) talk.scrollTop += box(anchor).top - before;
}

const isAtEnd = () => talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
const toEnd = () => (talk.scrollTop = talk.scrollHeight);

/** Draws what has come near, and lets go of what is far. */
async function fill() {
  if (filling || !talk) return;
  filling = true;
  try {
    for (let round = 0; round < 20; round++) {
      const view = box(talk);
      const margin = view.height;
      const above = box(byId("above"));
      const below = box(byId("below"));
      const drawn = pieces();
      if (above.bottom < view.top - margin * 4 && below.top > view.bottom + margin * 4) break;
      if (above.top < view.bottom && above.bottom > view.bottom + margin) {
        await jumpInto(Math.floor((view.top - above.top) / usualHeight));
      } else if (below.bottom > view.top && below.top < view.top - margin) {
        await jumpInto(behind() + Math.floor((view.top - below.top) / usualHeight));
      } else if (first() > 0 && above.bottom > view.top - margin) {
        await putPiece(Math.max(0, first() - pieceSize), byId("above").nextSibling, drawn.at(-1));
      } else if (behind() < count() && below.top < view.bottom + margin) {
        if (!(await putPiece(behind(), byId("below"), drawn[0]))) break;
      } else break;
    }
  } finally {
    filling = false;
  }
}

/** Draws a piece before an element; lets go of another if there are too many. */
async function putPiece(from, before, far) {
  const piece = await pieceAt(from);
  const many = pieces().length >= keptPieces;
  holding(() => {
    talk.insertBefore(piece, before);
    // What somebody types in is not let go of.
    if (many && !one("form", far)) far.remove();
  });
  settle(piece);
  return piece.children.length;
}

/** Goes to a part of the conversation that is far from what is drawn. */
async function jumpInto(index) {
  const wanted = Math.min(Math.max(0, index), Math.max(0, count() - 1));
  const piece = await pieceAt(Math.floor(wanted / pieceSize) * pieceSize);
  for (const drawn of pieces()) drawn.remove();
  byId("above").after(piece);
  makeRoom();
  talk.scrollTop = piece.offsetTop - talk.offsetTop + (wanted % pieceSize) * usualHeight;
  settle(piece);
}

// --- what happened elsewhere, or here -------------------------------------------------------------------------

const editor = (entry) => one(":scope > .editor", entry);
const contentOf = (entry) => entry.dataset.version.split("-")[0];

/** Puts newly drawn entries in the place of the old ones. What is the same stays, and what is being edited too. */
function renew(old, fresh) {
  const present = new Map([...old.children].map((entry) => [entry.id, entry]));
  const inserting = every(".inserting", old);
  const next = [...fresh.children].map((entry) => {
    const known = present.get(entry.id);
    present.delete(entry.id);
    if (known && editor(known) && contentOf(known) !== contentOf(entry)) showConflict(known, one(".said, .plain, .preview", entry));
    return known && (editor(known) || known.dataset.version === entry.dataset.version) ? known : entry;
  });
  // What was deleted elsewhere while it was edited here stays until what was typed is kept or left.
  const left = [...present.values()].filter((entry) => entry.id && editor(entry));
  for (const entry of left) showConflict(entry);
  const all = [...next, ...left].flatMap((entry) => [entry, ...inserting.filter((form) => form.dataset.after === entry.dataset.entry)]);
  all.push(...inserting.filter((form) => !all.includes(form)));
  // What stays is not touched, so that the keyboard stays in it; in what is drawn anew it comes back.
  const focused = focus().closest(".entry")?.id;
  for (const child of [...old.children]) if (!all.includes(child)) child.remove();
  all.forEach((child, index) => child === old.children[index] || old.insertBefore(child, old.children[index]));
  if (focused && focus() === document.body) byId(focused)?.focus({ preventScroll: true });
}

function showConflict(entry, theirs) {
  one(".conflict", entry)?.remove();
  const text = theirs ? "This was changed elsewhere. Keeping yours replaces it:" : "This was deleted elsewhere.";
  editor(entry).prepend(element("div", { className: "conflict" }, element("p", {}, text), ...(theirs ? [theirs.cloneNode(true)] : [])));
}

async function renewTalk() {
  if (!talk || past) return;
  const drawn = pieces();
  const atEnd = isAtEnd();
  if (!drawn.length) {
    const piece = await pieceAt(0);
    if (!piece.children.length) return;
    talk.dataset.count = piece.dataset.count;
    byId("below").before(piece);
    makeRoom();
    settle(piece);
  } else {
    const fresh = await Promise.all(drawn.map((piece) => pieceAt(piece.dataset.from)));
    holding(() => {
      drawn.forEach((piece, index) => renew(piece, fresh[index]));
      talk.dataset.count = fresh[0]?.dataset.count ?? 0;
      for (const piece of pieces()) if (!piece.children.length) piece.remove();
    });
    drawn.forEach(settle);
  }
  if (atEnd) {
    makeRoom();
    toEnd();
  }
  await fill();
}

const sources = {
  bar: () => `${page}/bar?take=${take}`,
  turn: () => `${page}/turn?take=${take}`,
  history: () => `${page}/history`,
  files: () => `${page}/files`,
  settings: () => `${page}/settings?take=${take}`,
  tree: () => `/studio/tree?${query({ path: thread, q: byId("find")?.value ?? "" })}`,
};

const busy = (part) => one(":is(input,textarea,select):focus,details.menu[open]", part);

/** Draws a part again, unless somebody is typing in it, or began to meanwhile. */
async function renewPart(name) {
  const old = one(`[data-live="${name}"]`);
  if (!old || busy(old)) return;
  const fresh = await part(sources[name]());
  if (!old.isConnected || busy(old)) return;
  const active = focus();
  const within = old.contains(active);
  const closed = new Set(every("details[data-path]:not([open])", old).map((file) => file.dataset.path));
  for (const file of every("details[data-path]", fresh)) if (closed.has(file.dataset.path)) file.open = false;
  const scroll = old.parentElement.scrollTop;
  old.replaceWith(fresh);
  fresh.parentElement.scrollTop = scroll;
  if (within) one(`[data-act="${active.dataset.act}"]`, fresh)?.focus();
  settle(fresh);
  if (name === "turn") showRunning();
}

let renewing = false;
let again = false;

/** Draws everything again that may have changed; once at a time, and once more if it changed meanwhile. */
async function renewAll() {
  again = true;
  if (renewing) return;
  renewing = true;
  try {
    while (again) {
      again = false;
      await renewTalk();
      await Promise.all(Object.keys(sources).map(renewPart));
    }
  } catch {
    // The stream tells when the server is there again.
  } finally {
    renewing = false;
  }
}

// --- words as they come ---------------------------------------------------------------------------------------

const live = byId("live");
const coming = { text: "", thinking: "" };
let painting = false;

function paint() {
  painting = false;
  if (!live || live.hidden) return;
  const atEnd = isAtEnd();
  byId("live-text").append(coming.text);
  if (coming.thinking) byId("live-thinking").hidden = false;
  one("#live-thinking pre").append(coming.thinking);
  coming.text = coming.thinking = "";
  if (atEnd) toEnd();
}

function hear({ take: of, event: kind, text = "", tool, what }) {
  if (of !== take) return;
  if (kind in coming) coming[kind] += text;
  const does = { call_began: `calls ${tool}…`, tool_runs: what, tool_progress: text.slice(-200) }[kind];
  if (does) byId("live-tool").textContent = does;
  if (kind in coming || does) live.hidden = false;
  if (/^(answered|retrying|ended|started)$/.test(kind)) quiet();
  if (/^(asked|ended|started)$/.test(kind)) renewPart("turn").catch(ignore);
  if (!painting) requestAnimationFrame(paint);
  painting = true;
}

function quiet() {
  if (!live) return;
  live.hidden = byId("live-thinking").hidden = true;
  coming.text = coming.thinking = "";
  for (const pre of every("pre, #live-tool", live)) pre.replaceChildren();
}

const isRunning = () => byId("turn")?.dataset.running === "true";

function showRunning() {
  const running = isRunning();
  byId("stop").hidden = !running;
  byId("send").textContent = running ? "Tell it" : "Send";
  if (!running) quiet();
  // What nobody has typed over since is what the thread says now: an undo brings a message back, another window writes.
  const now = byId("turn").dataset.draft;
  if (now !== seen && draft.value === seen) {
    draft.value = now;
    typed = false;
  }
  seen = now;
}

function follow(after) {
  const stream = new EventSource(`/v1/events?after=${after}`);
  const hears = (kind, does) => stream.addEventListener(kind, (event) => does(event.data && JSON.parse(event.data)));
  const tree = () => renewPart("tree").catch(ignore);
  let soon, own;
  hears("operation", ({ thread: of }) => {
    own ||= of === thread;
    // Many at once are drawn once.
    soon ??= setTimeout(() => {
      (own ? renewAll : tree)();
      soon = own = undefined;
    }, 30);
  });
  hears("turn", hear);
  hears("purged", tree);
  stream.onopen = () => {
    // A turn that died with its server left no operation behind.
    if (look.contains("offline")) renewAll();
    look.remove("offline");
  };
  stream.onerror = () => look.add("offline");
}

// --- drafts: never lost -----------------------------------------------------------------------------------------

const draft = byId("draft");
const kept = `retake-draft-${thread}-${take}`;
let saving;
let seen = draft?.value;
let typed = false;

function keepDraft() {
  typed = true;
  // First where a crash of the server does not reach, then where every window sees it.
  memory.setItem(kept, draft.value);
  clearTimeout(saving);
  saving = setTimeout(saveDraft, 400);
}

const putDraft = (text) => ask("PUT", ofTake(at("draft")), { text });

async function saveDraft() {
  clearTimeout(saving);
  const text = draft.value;
  try {
    await putDraft(text);
    if (draft.value === text) memory.removeItem(kept);
    byId("draft-state").textContent = text ? "Draft kept" : "";
  } catch {
    byId("draft-state").textContent = "Kept in this browser";
  }
}

async function sendDraft() {
  const text = draft.value;
  if (!text.trim()) return;
  clearTimeout(saving);
  const done = await attempt(async () => {
    if (isRunning()) return ask("POST", ofTake(at("turn/steer")), { message: text });
    const pictures = await Promise.all([...byId("pictures").files].map(inBase64));
    // A draft is sent in one step, and an undo brings it back.
    const sent = pictures.length ? { prompt: text, pictures } : { draft: true };
    if (sent.draft) await putDraft(text);
    return ask("POST", ofTake(at("turns")), { ...sent, ...approval() });
  });
  if (!done) return;
  if (draft.value === text) draft.value = "";
  byId("pictures").value = "";
  tellAttached();
  memory.removeItem(kept);
  await saveDraft();
  toEnd();
}

/** A picture that is pasted or dropped goes along, as one that was chosen does. */
function takePictures(event, from) {
  const files = [...from.files].filter((file) => file.type.startsWith("image/"));
  if (!files.length) return;
  event.preventDefault();
  const all = new DataTransfer();
  for (const file of [...byId("pictures").files, ...files]) all.items.add(file);
  byId("pictures").files = all.files;
  tellAttached();
}

/** Says how many pictures go along. */
function tellAttached() {
  const { files } = byId("pictures");
  byId("attached").textContent = files.length ? `Pictures: ${files.length}` : "Picture";
}

async function inBase64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let start = 0; start < bytes.length; start += 0x8000) text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(text);
}

// --- editing in place -------------------------------------------------------------------------------------------

/** A form with a text to write. */
function writing(className, yes, leave, ...fields) {
  const area = element("textarea", { ariaLabel: "Text", rows: 4 });
  const form = element("form", { className }, ...fields, area,
    element("p", { className: "acts" },
      element("button", { className: "primary", title: "Ctrl+Enter" }, yes),
      element("button", { type: "button", "data-act": leave, title: "Esc" }, "Leave it")));
  return [form, area];
}

const read = (entry) => asked("GET", ofTake(at(`entries/${entry.dataset.entry}`)));

/** Where a half-typed edit is kept: what it began with, and what it is. */
const placeOf = (entry) => take + entry.id;

async function edit(entry) {
  const shown = await read(entry);
  if (!shown || editor(entry)) return;
  const [form, area] = writing("editor", "Keep", "leave-edit");
  const { content } = shown.entry;
  const left = JSON.parse(memory.getItem(placeOf(entry)));
  const [before, text] = left ?? [content, content];
  form.dataset.before = before;
  area.value = text;
  area.rows = Math.min(30, text.split("\n").length + 2);
  area.oninput = () => memory.setItem(placeOf(entry), JSON.stringify([before, area.value]));
  entry.append(form);
  entry.classList.add("editing");
  // One that was left half-typed waits for its writer.
  if (!left) area.focus();
}

async function keepEdit(form) {
  const entry = form.closest(".entry");
  const content = one("textarea", form).value;
  const now = await read(entry);
  if (now && now.entry.content !== form.dataset.before && !one(".conflict", form)) {
    return showConflict(entry, element("pre", { className: "plain" }, now.entry.content));
  }
  if (!(await asked("PATCH", ofTake(at(`entries/${entry.dataset.entry}`)), { content }))) return;
  leaveEdit(entry);
}

function leaveEdit(entry) {
  memory.removeItem(placeOf(entry));
  editor(entry)?.remove();
  entry.classList.remove("editing");
  entry.dataset.version = "";
  entry.focus();
  renewAll();
}

function insertBehind(entry) {
  if (entry.nextElementSibling?.matches(".inserting")) return;
  const [form, area] = writing("inserting", "Put it in", "leave-insert", roleSelect());
  form.dataset.after = entry.dataset.entry;
  entry.after(form);
  area.focus();
}

async function putIn(form) {
  const entries = [{ role: one("select", form).value, content: one("textarea", form).value }];
  if (await asked("POST", ofTake(at("entries")), { entries, after: form.dataset.after })) form.remove();
}

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

// --- keys and clicks ----------------------------------------------------------------------------------------------------

on("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (!button || button.disabled) return;
  const { act } = button.dataset;
  if (!acts[act] && !requests[act]) return;
  event.preventDefault();
  button.closest("details.menu")?.removeAttribute("open");
  attempt(() => (acts[act] ? acts[act](button) : request(requests[act](button))));
});

on("submit", (event) => {
  const form = event.target;
  if (form.method === "dialog") return;
  event.preventDefault();
  if (form.id === "composer") sendDraft();
  if (form.matches(".editor")) keepEdit(form);
  if (form.matches(".inserting")) putIn(form);
});

on("change", ({ target }) => {
  if (target.id === "pictures") tellAttached();
  if (target.id === "filter") applyFilter();
  else if (target.closest("#settings")) keepField(target);
});

async function search(words) {
  const found = await drawn(`/studio/search?${query({ q: words })}`);
  if (!found) return;
  byId("found")?.remove();
  byId("find").after(found);
  settle(found);
}

on("input", ({ target }) => {
  if (target === draft) keepDraft();
  if (target.id !== "find") return;
  const wanted = target.value.toLowerCase();
  for (const known of every("#tree .thread")) known.hidden = !known.textContent.toLowerCase().includes(wanted);
});

/** Goes to the next entry, or the one before. */
function step(by) {
  const all = every(".piece > .entry:not(.filtered)");
  const index = all.indexOf(focus().closest(".entry"));
  const next = all[index < 0 ? all.length - 1 : index + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

const keys = {
  j: () => step(1),
  k: () => step(-1),
  n: () => acts["new-thread"](),
  i: () => draft?.focus(),
  "/": () => byId("find")?.focus(),
};
const keysOfEntry = { e: "edit", c: "collapse", b: "branch", r: "retry", Delete: "delete" };

on("keydown", (event) => {
  const { key, target } = event;
  const typing = target.matches("input, textarea, select");
  const command = event.ctrlKey || event.metaKey;
  const entry = target.closest(".entry");
  let does;
  if (key === "Enter" && target.id === "find") does = () => search(target.value);
  else if (key === "Enter" && command && typing) does = () => target.form?.requestSubmit();
  else if (key === "Escape" && target === draft) does = () => talk.focus();
  else if (key === "Escape" && target.closest(".editor, .inserting")) does = () => one("[type=button]", target.form).click();
  // In a field, Ctrl+Z is the field's own while there is something in it to undo.
  else if (command && /^[zy]$/i.test(key) && !(typing && target.value && (typed || target !== draft))) {
    does = () => one(`[data-act=${/y/i.test(key) || event.shiftKey ? "redo" : "undo"}]`)?.click();
  } else if (!typing && !command && !event.altKey && !byId("dialog")?.open) {
    does = entry && keysOfEntry[key] ? () => one(`[data-act=${keysOfEntry[key]}]`, entry)?.click() : keys[key];
  }
  if (!does) return;
  event.preventDefault();
  does();
});

// A menu closes when something else is done.
on("pointerdown", ({ target }) => {
  for (const menu of every("details.menu[open]")) menu.open = menu.contains(target);
});

// --- begin --------------------------------------------------------------------------------------------------------------

settle(document);
setInterval(() => tellTimes(), 30000);
if (thread) follow(fact("sequence"));
if (talk) {
  makeRoom();
  const named = location.hash && byId(location.hash.slice(1));
  if (named) {
    named.scrollIntoView({ block: "center" });
    named.focus();
  } else toEnd();
  let wasAtEnd = !named;
  talk.onscroll = () => {
    wasAtEnd = isAtEnd();
    requestAnimationFrame(() => fill().catch(ignore));
  };
  // Who reads the end still does when a question takes room from it, or the window changes.
  new ResizeObserver(() => wasAtEnd && toEnd()).observe(talk);
  fill().catch(ignore);
  showRunning();
}
if (draft) {
  draft.onpaste = (event) => takePictures(event, event.clipboardData);
  draft.ondrop = (event) => takePictures(event, event.dataTransfer);
  draft.value = memory.getItem(kept) ?? draft.value;
  // What was kept here only until it is there.
  if (memory.getItem(kept) !== null) saveDraft();
  onpagehide = () => memory.getItem(kept) === null || saveDraft();
}
