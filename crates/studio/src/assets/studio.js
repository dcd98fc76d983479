// The one module of the studio: it asks the API for changes, and the server for parts of the page when something
// happened. It keeps no copy of the state; what is on the page is what the server last drew.

const byId = (id) => document.getElementById(id);
const fact = (name) => byId(`fact-${name}`)?.value ?? "";
const thread = fact("thread");
const take = fact("take");
const past = fact("past");
const at = (rest) => `/v1/threads/${thread}/${rest}`;
const ofTake = (path) => `${path}${path.includes("?") ? "&" : "?"}take=${take}`;

// --- asking ---------------------------------------------------------------------------------------------------

class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail ?? `The server answered ${status}.`);
    this.problem = problem;
    this.status = status;
  }
}

async function ask(method, path, body, headers = {}) {
  const request = { method, headers: { ...headers }, credentials: "same-origin" };
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  // A request that was cut off is sent again under the same name, and still done once.
  if (method === "POST") request.headers["Idempotency-Key"] ??= crypto.randomUUID();
  for (let attempt = 0; ; attempt++) {
    try {
      const answer = await fetch(path, request);
      const said = answer.headers.get("content-type")?.includes("json") ? await answer.json() : {};
      if (!answer.ok) throw new Refused(said, answer.status);
      return said;
    } catch (error) {
      if (error instanceof Refused || attempt >= 3) throw error;
      await new Promise((done) => setTimeout(done, 300 * 2 ** attempt));
    }
  }
}

async function part(path) {
  const answer = await fetch(path, { credentials: "same-origin" });
  if (!answer.ok) throw new Refused({}, answer.status);
  const template = document.createElement("template");
  template.innerHTML = await answer.text();
  return template.content.firstElementChild;
}

function say(text, kind = "") {
  const toast = document.createElement("p");
  toast.textContent = text;
  toast.className = `toast ${kind}`;
  byId("toasts")?.append(toast);
  setTimeout(() => toast.remove(), kind === "bad" ? 10000 : 4000);
}

/** Does something, and tells what stood against it. */
async function attempt(does) {
  try {
    return await does();
  } catch (error) {
    const action = error.problem?.action ? ` ${error.problem.action}` : "";
    say(`${error.message}${action}`, "bad");
    return undefined;
  }
}

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
  (dialog.querySelector("input") ?? byId("dialog-yes")).focus();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
  });
}

/** Asks for a text in a dialog. */
async function prompted(question, value, yes) {
  const input = element("input", { value, required: true });
  const wanted = await confirmed([element("label", {}, question, input)], yes);
  return wanted && input.value.trim() ? input.value.trim() : undefined;
}

const near = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });

function ago(time) {
  const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
  const steps = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30]];
  let distance = seconds;
  for (const [unit, size] of steps) {
    if (Math.abs(distance) < size) return near.format(Math.round(distance), unit);
    distance /= size;
  }
  return new Date(time.dateTime).toLocaleDateString();
}

function tellTimes(root = document) {
  for (const time of root.querySelectorAll("time")) {
    time.title = new Date(time.dateTime).toLocaleString();
    time.textContent = ago(time);
  }
}

/** Pictures come as text over the API, and become pictures here: nothing that a model wrote names an address. */
async function showPictures(root) {
  for (const image of root.querySelectorAll("img[data-picture]:not([src])")) {
    const media = image.dataset.media;
    if (!/^image\/(png|jpeg|gif|webp)$/.test(media)) continue;
    const { base64 } = await ask("GET", image.dataset.picture);
    image.src = `data:${media};base64,${base64}`;
  }
}

function settle(root) {
  tellTimes(root);
  showPictures(root).catch(() => {});
  applyFilter();
}

// --- the conversation: a window of pieces ---------------------------------------------------------------------

const conversation = byId("conversation");
const pieces = () => [...(conversation?.querySelectorAll(".piece") ?? [])];
const pieceSize = Number(conversation?.dataset.piece ?? 40);
const keptPieces = 6;
let usualHeight = 120;
let filling = false;

const count = () => Number(conversation.dataset.count);
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
  byId("above").style.height = `${Math.round(first() * usualHeight)}px`;
  byId("below").style.height = `${Math.round(Math.max(0, count() - behind()) * usualHeight)}px`;
}

const pieceAt = (from) => part(ofPast(`/studio/threads/${thread}/entries?from=${from}&take=${take}`));
const ofPast = (path) => (past ? `${path}&at=${past}` : path);

/** Keeps what the reader looks at where it is, whatever happens around it. */
function holding(change) {
  const top = conversation.getBoundingClientRect().top;
  const anchor = [...conversation.querySelectorAll(".piece > .entry")].find((one) => one.getBoundingClientRect().bottom > top);
  const before = anchor?.getBoundingClientRect().top;
  const atEnd = isAtEnd();
  change();
  makeRoom();
  if (atEnd && behind() >= count()) toEnd();
  else if (anchor?.isConnected) conversation.scrollTop += anchor.getBoundingClientRect().top - before;
}

const isAtEnd = () => conversation.scrollHeight - conversation.scrollTop - conversation.clientHeight < 80;
const toEnd = () => (conversation.scrollTop = conversation.scrollHeight);

/** Draws what has come near, and lets go of what is far. */
async function fill() {
  if (filling || !conversation) return;
  filling = true;
  try {
    for (let round = 0; round < 20; round++) {
      const view = conversation.getBoundingClientRect();
      const margin = view.height;
      const above = byId("above").getBoundingClientRect();
      const below = byId("below").getBoundingClientRect();
      const drawn = pieces();
      if (above.bottom < view.top - margin * 4 && below.top > view.bottom + margin * 4) break;
      if (above.top < view.bottom && above.bottom > view.bottom + margin) {
        await jumpInto(Math.floor((view.top - above.top) / usualHeight));
      } else if (below.bottom > view.top && below.top < view.top - margin) {
        await jumpInto(behind() + Math.floor((view.top - below.top) / usualHeight));
      } else if (first() > 0 && above.bottom > view.top - margin) {
        const piece = await pieceAt(Math.max(0, first() - pieceSize));
        holding(() => {
          byId("above").after(piece);
          if (drawn.length >= keptPieces) drawn.at(-1).remove();
        });
        settle(piece);
      } else if (behind() < count() && below.top < view.bottom + margin) {
        const piece = await pieceAt(behind());
        if (piece.children.length === 0) break;
        holding(() => {
          byId("below").before(piece);
          if (drawn.length >= keptPieces) drawn[0].remove();
        });
        settle(piece);
      } else break;
    }
  } finally {
    filling = false;
  }
}

/** Goes to a part of the conversation that is far from what is drawn. */
async function jumpInto(index) {
  const wanted = Math.min(Math.max(0, index), Math.max(0, count() - 1));
  const piece = await pieceAt(Math.floor(wanted / pieceSize) * pieceSize);
  for (const drawn of pieces()) drawn.remove();
  byId("above").after(piece);
  makeRoom();
  conversation.scrollTop = piece.offsetTop - conversation.offsetTop + (wanted % pieceSize) * usualHeight;
  settle(piece);
}

// --- what happened elsewhere, or here -------------------------------------------------------------------------

const editor = (entry) => entry.querySelector(":scope > .editor");

/** Puts newly drawn entries in the place of the old ones. What is the same stays, and what is being edited too. */
function renew(old, fresh) {
  const known = new Map([...old.children].map((entry) => [entry.id, entry]));
  const next = [...fresh.children].map((entry) => {
    const present = known.get(entry.id);
    if (!present || present.dataset.version === entry.dataset.version) return present ?? entry;
    if (!editor(present)) return entry;
    const changed = entry.dataset.version.split("-")[0] !== present.dataset.version.split("-")[0];
    if (changed) showConflict(present, entry);
    return present;
  });
  for (const present of known.values()) {
    // Somebody deleted it while it was being edited here: what was typed is not thrown away.
    if (!next.includes(present) && editor(present)) showConflict(present, undefined);
  }
  old.replaceChildren(...next, ...[...known.values()].filter((one) => !next.includes(one) && editor(one)));
  old.dataset.count = fresh.dataset.count;
}

function showConflict(present, other) {
  const form = editor(present);
  form.querySelector(".conflict")?.remove();
  const text = other ? "This entry was changed elsewhere meanwhile. Theirs:" : "This entry was deleted elsewhere meanwhile.";
  const box = element("div", { className: "conflict" }, element("p", {}, text));
  if (other) {
    const said = other.querySelector(".said, .plain, .preview");
    if (said) box.append(said.cloneNode(true));
  }
  form.prepend(box);
}

async function renewConversation() {
  if (!conversation || past) return;
  const drawn = pieces();
  const atEnd = isAtEnd();
  if (drawn.length === 0) {
    const piece = await pieceAt(0);
    if (piece.children.length === 0) return;
    conversation.querySelector(".empty")?.remove();
    conversation.dataset.count = piece.dataset.count;
    byId("below").before(piece);
    makeRoom();
    settle(piece);
  } else {
    const fresh = await Promise.all(drawn.map((piece) => pieceAt(piece.dataset.from)));
    holding(() => {
      drawn.forEach((piece, index) => renew(piece, fresh[index]));
      conversation.dataset.count = fresh[0]?.dataset.count ?? 0;
      for (const piece of pieces()) if (piece.children.length === 0) piece.remove();
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
  bar: () => `/studio/threads/${thread}/bar?take=${take}`,
  turn: () => `/studio/threads/${thread}/turn?take=${take}`,
  history: () => `/studio/threads/${thread}/history`,
  files: () => `/studio/threads/${thread}/files`,
  settings: () => `/studio/threads/${thread}/settings?take=${take}`,
  tree: () => `/studio/tree?path=${thread}&q=${encodeURIComponent(byId("find")?.value ?? "")}`,
};

/** Draws a part again, unless somebody is typing in it. */
async function renewPart(name) {
  const old = document.querySelector(`[data-live="${name}"]`);
  if (!old) return;
  const typing = old.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
  if (typing || old.querySelector("details.menu[open]")) return;
  const focused = old.contains(document.activeElement) ? document.activeElement.dataset.act : undefined;
  const fresh = await part(sources[name]());
  const open = new Set([...old.querySelectorAll("details[data-path]")].map((one) => `${one.dataset.path} ${one.open}`));
  for (const one of fresh.querySelectorAll("details[data-path]")) {
    if (open.has(`${one.dataset.path} false`)) one.open = false;
  }
  const scroll = old.parentElement.scrollTop;
  old.replaceWith(fresh);
  fresh.parentElement.scrollTop = scroll;
  if (focused) fresh.querySelector(`[data-act="${focused}"]`)?.focus();
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
      await renewConversation();
      await Promise.all(["bar", "turn", "history", "files", "settings", "tree"].map(renewPart));
    }
  } catch {
    // The stream tells when the server is there again.
  } finally {
    renewing = false;
  }
}

// --- words as they come ---------------------------------------------------------------------------------------

let comingText = "";
let comingThoughts = "";
let painting = false;

function paint() {
  painting = false;
  const live = byId("live");
  if (!live || live.hidden) return;
  const atEnd = isAtEnd();
  byId("live-text").append(comingText);
  const thoughts = byId("live-thinking");
  if (comingThoughts) {
    thoughts.hidden = false;
    thoughts.querySelector("pre").append(comingThoughts);
  }
  comingText = comingThoughts = "";
  if (atEnd) toEnd();
}

function hear({ take: of, event }) {
  if (of !== take || !event) return;
  const live = byId("live");
  const kind = event.event;
  if (kind === "text" || kind === "thinking" || kind === "call_began" || kind === "tool_runs" || kind === "tool_progress") {
    live.hidden = false;
  }
  if (kind === "text") comingText += event.text;
  if (kind === "thinking") comingThoughts += event.text;
  if (kind === "call_began") byId("live-tool").textContent = `calls ${event.tool}…`;
  if (kind === "tool_runs") byId("live-tool").textContent = event.what;
  if (kind === "tool_progress") byId("live-tool").textContent = event.text.slice(-200);
  if (["answered", "retrying", "ended", "started"].includes(kind)) quiet();
  if (kind === "asked" || kind === "ended" || kind === "started") renewPart("turn").catch(() => {});
  if (!painting) {
    painting = true;
    requestAnimationFrame(paint);
  }
}

function quiet() {
  const live = byId("live");
  if (!live) return;
  live.hidden = true;
  comingText = comingThoughts = "";
  byId("live-text").replaceChildren();
  byId("live-thinking").hidden = true;
  byId("live-thinking").querySelector("pre").replaceChildren();
  byId("live-tool").textContent = "";
}

function showRunning() {
  const running = byId("turn")?.dataset.running === "true";
  if (byId("stop")) byId("stop").hidden = !running;
  if (byId("send")) byId("send").textContent = running ? "Tell it" : "Send";
  if (!running) quiet();
}

let stream;

function follow(after) {
  stream = new EventSource(`/v1/events?after=${after}`);
  let soon;
  stream.addEventListener("operation", (event) => {
    const { thread: of } = JSON.parse(event.data);
    clearTimeout(soon);
    // Many at once are drawn once.
    soon = setTimeout(() => (of === thread ? renewAll() : renewPart("tree").catch(() => {})), 30);
  });
  stream.addEventListener("turn", (event) => hear(JSON.parse(event.data)));
  stream.addEventListener("purged", () => renewPart("tree").catch(() => {}));
  stream.addEventListener("open", () => document.body.classList.remove("offline"));
  stream.addEventListener("error", () => document.body.classList.add("offline"));
}

// --- drafts: never lost -----------------------------------------------------------------------------------------

const draft = byId("draft");
const kept = `retake-draft-${thread}-${take}`;
let saving;

function keepDraft() {
  // First where a crash of the server does not reach, then where every window sees it.
  localStorage.setItem(kept, draft.value);
  clearTimeout(saving);
  byId("draft-state").textContent = "";
  saving = setTimeout(saveDraft, 400);
}

async function saveDraft() {
  clearTimeout(saving);
  saving = undefined;
  const text = draft.value;
  try {
    await ask("PUT", ofTake(at("draft")), { text });
    if (draft.value === text) localStorage.removeItem(kept);
    byId("draft-state").textContent = text ? "Draft kept" : "";
  } catch {
    byId("draft-state").textContent = "Kept in this browser";
  }
}

async function sendDraft() {
  const text = draft.value;
  if (!text.trim()) return;
  clearTimeout(saving);
  const running = byId("turn")?.dataset.running === "true";
  const done = await attempt(async () => {
    if (running) return ask("POST", ofTake(at("turn/steer")), { message: text });
    const pictures = await Promise.all([...byId("pictures").files].map(inBase64));
    const approve = byId("approve").value;
    return ask("POST", ofTake(at("turns")), { prompt: text, pictures, ...(approve ? { approve } : {}) });
  });
  if (!done) return;
  if (draft.value === text) draft.value = "";
  byId("pictures").value = "";
  tellAttached();
  localStorage.removeItem(kept);
  await saveDraft();
  toEnd();
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

async function edit(entry) {
  if (editor(entry)) return;
  const shown = await attempt(() => ask("GET", ofTake(at(`entries/${entry.dataset.entry}`))));
  if (!shown) return;
  const area = element("textarea", { value: shown.entry.content, ariaLabel: "The entry's text" });
  const form = element("form", { className: "editor" }, area,
    element("p", { className: "acts" },
      element("button", { type: "submit", className: "primary", title: "Ctrl+Enter" }, "Keep"),
      element("button", { type: "button", "data-act": "leave-edit", title: "Esc" }, "Leave it")));
  const fit = () => {
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight + 4, innerHeight * 0.7)}px`;
  };
  area.addEventListener("input", fit);
  entry.append(form);
  entry.classList.add("editing");
  form.dataset.before = shown.entry.content;
  area.focus();
  fit();
}

async function keepEdit(form) {
  const entry = form.closest(".entry");
  const content = form.querySelector("textarea").value;
  const done = await attempt(() => ask("PATCH", ofTake(at(`entries/${entry.dataset.entry}`)), { content }));
  if (!done) return;
  leaveEdit(entry);
  entry.dataset.version = "";
  await renewAll();
}

function leaveEdit(entry) {
  editor(entry)?.remove();
  entry.classList.remove("editing");
  entry.focus();
}

async function insertBehind(entry) {
  if (entry.nextElementSibling?.classList.contains("inserting")) return;
  const roles = fact("roles").split("\n");
  const select = element("select", { ariaLabel: "Role" }, ...roles.map((role) => element("option", { value: role }, role)));
  const area = element("textarea", { ariaLabel: "The new entry's text", rows: 4 });
  const form = element("form", { className: "inserting" }, select, area,
    element("p", { className: "acts" },
      element("button", { type: "submit", className: "primary" }, "Put it in"),
      element("button", { type: "button", "data-act": "leave-insert" }, "Leave it")));
  form.dataset.after = entry.dataset.entry;
  entry.after(form);
  area.focus();
}

async function putIn(form) {
  const entries = [{ role: form.querySelector("select").value, content: form.querySelector("textarea").value }];
  const done = await attempt(() => ask("POST", ofTake(at("entries")), { entries, after: form.dataset.after }));
  if (done) form.remove();
}

// --- moving along the log -----------------------------------------------------------------------------------------

const outcomes = { kept: "left as it is", conflict: "conflict: left as it is", refused: "not touched" };

function pathList(report) {
  const items = (report?.paths ?? []).map((path) => {
    const { path: name, root, outcome, ...rest } = path;
    const words = [outcome, rest.reason].filter(Boolean).map((word) => outcomes[word] ?? String(word).replaceAll("_", " "));
    return element("li", { className: outcome ?? "" }, element("code", {}, root ? `${root}:${name}` : name), ` ${words.join(", ")}`);
  });
  return items.length ? element("ul", { className: "paths", tabIndex: 0 }, ...items) : element("p", { className: "quiet" }, "No files move.");
}

async function move(route, body, title, yes) {
  const path = at(route);
  const ahead = await attempt(() => ask("POST", `${path}?dry_run=true`, body));
  if (!ahead) return;
  const would = ahead.would ?? {};
  const difference = (would.entries_after ?? 0) - (would.entries_before ?? 0);
  const words = difference === 0 ? "The number of entries stays." : `${Math.abs(difference)} ${Math.abs(difference) === 1 ? "entry" : "entries"} ${difference < 0 ? "go" : "come back"}.`;
  const wanted = await confirmed([element("h2", {}, title), element("p", {}, words), pathList(ahead.files)], yes);
  if (!wanted) return;
  const done = await attempt(() => ask("POST", path, body));
  if (!done) return;
  const left = (done.files?.paths ?? []).filter((one) => ["kept", "conflict", "refused"].includes(one.outcome));
  if (left.length > 0) {
    await resolve(route, body, done, left);
  } else {
    const moved = done.files?.paths?.length ?? 0;
    say(moved ? `Done, with ${moved} ${moved === 1 ? "file" : "files"}.` : "Done.");
  }
  await renewAll();
}

/** Shows what was left as it is, path by path. */
async function resolve(route, body, done, left) {
  await confirmed([element("h2", {}, "Some files were left as they are"), pathList({ paths: left }),
    element("p", {}, "They were changed since in a way that does not merge. Both versions are kept: yours in the folder, the other in the history.")], "Understood");
}

// --- what buttons do ------------------------------------------------------------------------------------------------

const acts = {
  undo: () => move("undo", {}, "Undo the last turn?", "Undo"),
  redo: () => move("redo", {}, "Redo?", "Redo"),
  jump: (button) => move("jump", { version: Number(button.dataset.version) }, `Go to moment ${button.dataset.version}?`, "Go there"),
  reset: () => move("reset", {}, "Reset the thread?", "Reset"),
  clear: () => move(`clear`, {}, "Take all entries out?", "Clear"),
  async truncate() {
    const pairs = await prompted("How many of the last pairs stay?", "3", "Cut the others");
    if (pairs) await attempt(() => ask("POST", ofTake(at("truncate")), { pairs: Number(pairs) }));
  },
  async compress() {
    say("The model is asked for a summary…");
    const done = await attempt(() => ask("POST", ofTake(at("compress")), {}));
    if (done) say(`A summary stands for ${done.removed} entries now.`);
  },
  async save() {
    const name = await prompted("What is this moment called?", "", "Save");
    if (name && (await attempt(() => ask("POST", at("save"), { name })))) say(`Saved as “${name}”.`);
  },
  async "put-away"() {
    if (!(await confirmed([element("p", {}, "Put this thread away? Nothing is destroyed.")], "Put it away"))) return;
    if (await attempt(() => ask("DELETE", `/v1/threads/${thread}`))) location.assign("/studio");
  },
  async "new-thread"() {
    const made = await attempt(() => ask("POST", "/v1/threads", {}));
    if (!made) return;
    await attempt(() => ask("POST", `/v1/threads/${made.thread}/current`, {}));
    location.assign(`/studio/threads/${made.thread}`);
  },
  async switch(button) {
    const wanted = button.dataset.take;
    const done = await attempt(() => ask("POST", at(`takes/${wanted}/switch`), {}));
    if (done) location.assign(`/studio/threads/${thread}`);
  },
  async promote(button) {
    const done = await attempt(() => ask("POST", at(`takes/${button.dataset.take}/promote`), {}));
    if (done) location.assign(`/studio/threads/${done.promoted.thread}`);
  },
  edit: (button) => edit(button.closest(".entry")),
  "leave-edit": (button) => leaveEdit(button.closest(".entry")),
  insert: (button) => insertBehind(button.closest(".entry")),
  "leave-insert": (button) => button.closest("form").remove(),
  async copy(button) {
    const shown = await attempt(() => ask("GET", ofTake(at(`entries/${button.closest(".entry").dataset.entry}`))));
    if (!shown) return;
    await navigator.clipboard.writeText(shown.entry.content);
    say("Copied.");
  },
  async delete(button) {
    const entry = button.closest(".entry");
    if (await attempt(() => ask("DELETE", ofTake(at(`entries/${entry.dataset.entry}`))))) say("Deleted; an undo brings it back.");
  },
  async role(button) {
    const entry = button.closest(".entry");
    const roles = fact("roles").split("\n");
    const select = element("select", {}, ...roles.map((role) => element("option", { value: role, selected: role === entry.dataset.role }, role)));
    if (await confirmed([element("label", {}, "Role", select)], "Change")) {
      await attempt(() => ask("PATCH", ofTake(at(`entries/${entry.dataset.entry}`)), { role: select.value }));
    }
  },
  collapse: (button) => showAs(button.closest(".entry"), 0),
  source: (button) => showAs(button.closest(".entry"), 1),
  "collapse-all": () => showAll(true),
  "expand-all": () => showAll(false),
  async branch(button) {
    const entry = button.closest(".entry").dataset.entry;
    if (await attempt(() => ask("POST", ofTake(at("branch")), { entry }))) location.assign(`/studio/threads/${thread}`);
  },
  async retry(button) {
    const entry = button.closest(".entry").dataset.entry;
    const approve = byId("approve")?.value;
    const begun = await attempt(() => ask("POST", ofTake(at("retry")), { entry, ...(approve ? { approve } : {}) }));
    if (begun) location.assign(`/studio/threads/${thread}?take=${begun.take}`);
  },
  allow: (button) => decide(button, { allow: true }),
  always: (button) => decide(button, { allow: true, remember: true }),
  deny: (button) => decide(button, { allow: false }),
  interrupt: () => attempt(() => ask("POST", ofTake(at("turn/interrupt")), {})).then(() => renewPart("turn")),
  resume: () => attempt(() => ask("POST", ofTake(at("turn/resume")), {})),
  async tab(button) {
    for (const tab of document.querySelectorAll("[role=tab]")) tab.ariaSelected = String(tab === button);
    const drawn = await attempt(() => part(sources[button.dataset.tab]()));
    if (!drawn) return;
    byId("panel").replaceChildren(drawn);
    settle(drawn);
  },
  async more(button) {
    const drawn = await attempt(() => part(button.dataset.src));
    if (!drawn) return;
    button.replaceWith(...drawn.childNodes);
    settle(byId("panel"));
  },
  try(button) {
    draft.value = button.dataset.text;
    keepDraft();
    draft.focus();
  },
  "show-version"(button) {
    document.querySelector("[data-tab=history]").click();
    setTimeout(() => byId(`v-${button.dataset.version}`)?.scrollIntoView({ block: "center" }), 200);
  },
  menu: () => document.body.classList.toggle("show-left"),
  details: () => document.body.classList.toggle("show-right"),
};

async function showAs(entry, which) {
  const flags = (entry.dataset.version.split("-")[1] ?? "00").split("").map(Number);
  flags[which] = 1 - flags[which];
  const done = await attempt(() => ask("PUT", at(`entries/${entry.dataset.entry}/shown`), { collapsed: !!flags[0], source: !!flags[1] }));
  if (done) await renewConversation();
}

async function showAll(collapsed) {
  const entries = [...conversation.querySelectorAll(".piece > .entry")];
  await attempt(() => Promise.all(entries.map((entry) => ask("PUT", at(`entries/${entry.dataset.entry}/shown`), { collapsed, source: false }))));
  await renewConversation();
}

async function decide(button, decision) {
  const call = button.closest("[data-call]").dataset.call;
  await attempt(() => ask("POST", ofTake(at("turn/approve")), { call, ...decision }));
  await renewPart("turn");
}

function applyFilter() {
  const wanted = byId("filter")?.value ?? "";
  for (const entry of document.querySelectorAll("#conversation .piece > .entry")) {
    entry.classList.toggle("filtered", wanted !== "" && entry.dataset.role !== wanted);
  }
}

// --- settings ---------------------------------------------------------------------------------------------------------

async function keepSetting(field) {
  const value = field.type === "checkbox" ? field.checked : field.type === "number" ? Number(field.value) : field.value;
  const { setting, route, method = "POST", field: name, list } = field.dataset;
  if (setting) {
    const empty = (setting === "provider" || setting === "model") && value === "";
    await attempt(() => ask("PATCH", at("settings"), { [setting]: empty ? null : value }));
    return;
  }
  if (!route) return;
  const split = (text, by) => text.split(by).map((one) => one.trim()).filter(Boolean);
  const body = { [name]: list === "comma" ? split(value, ",") : list === "paths" ? split(value, "\n").map((path) => ({ path })) : value };
  const path = route.startsWith("lists/") ? ofTake(at(route)) : at(route);
  await attempt(() => ask(method, path, body));
}

// --- keys and clicks ----------------------------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (!button || button.disabled) return;
  const act = acts[button.dataset.act];
  if (!act) return;
  event.preventDefault();
  button.closest("details.menu")?.removeAttribute("open");
  Promise.resolve(act(button)).catch((error) => say(error.message, "bad"));
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method === "dialog") return;
  event.preventDefault();
  if (form.id === "composer") sendDraft();
  else if (form.classList.contains("editor")) keepEdit(form);
  else if (form.classList.contains("inserting")) putIn(form);
});

document.addEventListener("change", (event) => {
  if (event.target.id === "pictures") tellAttached();
  if (event.target.id === "filter") applyFilter();
  else if (event.target.closest("#settings")) keepSetting(event.target);
});

let finding;
document.addEventListener("input", (event) => {
  if (event.target === draft) keepDraft();
  if (event.target.id !== "find") return;
  clearTimeout(finding);
  const wanted = event.target.value.toLowerCase();
  finding = setTimeout(() => {
    for (const one of document.querySelectorAll("#tree .thread")) {
      one.hidden = !one.textContent.toLowerCase().includes(wanted);
    }
  }, 60);
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, textarea, select");
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key === "Enter" && typing) {
    event.target.form?.requestSubmit();
    return event.preventDefault();
  }
  if (event.key === "Escape" && event.target.closest(".editor")) return leaveEdit(event.target.closest(".entry"));
  // In a field, Ctrl+Z is the field's own while there is something in it to undo.
  if (command && ["z", "y", "Z"].includes(event.key) && !(typing && event.target.value)) {
    event.preventDefault();
    const redo = event.key === "y" || event.shiftKey;
    document.querySelector(`[data-act=${redo ? "redo" : "undo"}]`)?.click();
    return;
  }
  if (typing || command || event.altKey || byId("dialog")?.open) return;
  const entry = event.target.closest(".entry");
  if (event.key === "j" || event.key === "k") {
    const all = [...document.querySelectorAll(".piece > .entry:not(.filtered)")];
    const index = all.indexOf(entry);
    const next = event.key === "j" ? all[index + 1] ?? all.at(-1) : all[index === -1 ? all.length - 1 : index - 1];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
    return event.preventDefault();
  }
  const ofEntry = { e: "edit", c: "collapse", b: "branch", r: "retry", Delete: "delete" }[event.key];
  if (entry && ofEntry) {
    entry.querySelector(`[data-act=${ofEntry}]`)?.click();
    return event.preventDefault();
  }
  if (event.key === "n") acts["new-thread"]();
  if (event.key === "/") {
    byId("find")?.focus();
    event.preventDefault();
  }
  if (event.key === "i") {
    draft?.focus();
    event.preventDefault();
  }
});

// A menu closes when something else is done.
document.addEventListener("pointerdown", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// --- begin --------------------------------------------------------------------------------------------------------------

settle(document);
setInterval(() => tellTimes(), 30000);
if (thread) follow(fact("sequence"));
if (conversation) {
  makeRoom();
  toEnd();
  let wasAtEnd = true;
  conversation.addEventListener("scroll", () => {
    wasAtEnd = isAtEnd();
    requestAnimationFrame(() => fill().catch(() => {}));
  }, { passive: true });
  // Who reads the end still does when a question takes room from it, or the window changes.
  new ResizeObserver(() => wasAtEnd && toEnd()).observe(conversation);
  fill().catch(() => {});
  showRunning();
}
if (draft) {
  const left = localStorage.getItem(kept);
  if (left !== null && left !== draft.value) {
    draft.value = left;
    saveDraft();
  }
  addEventListener("beforeunload", () => localStorage.getItem(kept) === null || saveDraft());
}
