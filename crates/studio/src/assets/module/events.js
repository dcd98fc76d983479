// Events: refresh the fragments that may have changed, and show live model text.

// --- refreshing entries ---------------------------------------------------------------------------------------

const editor = entry => one(":scope > .editor", entry);
const idOf = part => part.closest(".entry")?.id.slice(2);
const contentOf = entry => entry.dataset.version.split("-")[0];

/** Replaces entries with fresh ones. Unchanged entries and entries being edited stay, even if they belong to another chunk
 * now: `drawn` has the ids of all fresh entries. */
function renew(old, fresh, drawn) {
  const inserting = every(".inserting", old);
  const next = [...fresh.children].map(entry => {
    const known = byId(entry.id);
    if (known && editor(known) && contentOf(known) !== contentOf(entry)) conflict(known, one(".said, .plain, .preview", entry));
    return known && (editor(known) || known.dataset.version === entry.dataset.version) ? known : entry;
  });
  // An entry that was deleted elsewhere while being edited here stays until the edit is saved or cancelled.
  const left = [...old.children].filter(entry => entry.id && editor(entry) && !drawn.has(entry.id));
  for (const entry of left) conflict(entry);
  const all = [...next, ...left].flatMap(entry => [entry, ...inserting.filter(form => form.dataset.after === idOf(entry))]);
  all.push(...inserting.filter(form => !all.includes(form)));
  // Kept elements are not moved, so that they keep the focus; in replaced ones it is restored.
  const focused = focus().closest(".entry")?.id;
  const place = [...old.children].findIndex(({ id }) => id && id === focused);
  for (const child of [...old.children]) if (!all.includes(child)) child.remove();
  all.forEach((child, index) => child === old.children[index] || old.insertBefore(child, old.children[index]));
  if (place >= 0 && focus() === document.body) (byId(focused) ?? old.children[place] ?? old.lastChild)?.focus({ preventScroll: true });
}

function conflict(entry, theirs) {
  one(".conflict", entry)?.remove();
  const text = theirs ? "Changed elsewhere. Yours replaces it:" : "Deleted elsewhere.";
  editor(entry).prepend(element("div", { className: "conflict" }, element("p", {}, text), ...(theirs ? [theirs.cloneNode(true)] : [])));
}

async function renewTalk() {
  if (!talk || past) return;
  const atEnd = isAtEnd();
  if (!pieces()[0]) byId("below").before(element("section", { className: "piece", "data-from": 0 }));
  const drawn = pieces();
  const fresh = await Promise.all(drawn.map(piece => pieceAt(piece.dataset.from)));
  const ids = new Set(fresh.flatMap(piece => [...piece.children].map(({ id }) => id)));
  holding(() => {
    drawn.forEach((piece, index) => renew(piece, fresh[index], ids));
    talk.dataset.count = fresh[0].dataset.count;
    for (const piece of pieces()) if (!piece.children.length) piece.remove();
  });
  drawn.forEach(settle);
  // Live text stays until its entry is rendered.
  if (over) quiet();
  if (atEnd) {
    makeRoom();
    toEnd();
  }
  await fill();
}

const parts = ["bar", "turn", "attached", "set-to", "history", "files", "settings", "tree"];
/** The address of a fragment, including how far it was extended. */
const sourceOf = name =>
  name === "tree" ? `/studio/tree?${query(new FormData(byId("filters")))}` : `${page}/${name}?take=${take}${byId(name)?.dataset.until ?? ""}`;

const busy = part => one(":is(input,textarea,select):focus,details.menu[open]", part);

/** Refreshes a fragment. After a network error, the event stream triggers the next refresh. */
const renewPart = name => drawPart(name).catch(ignore);

/** The same; waits while the user is typing in the fragment. */
async function drawPart(name) {
  const find = () => one(`[data-live="${name}"]`);
  let old = find();
  const source = old && sourceOf(name);
  const fresh = old && !busy(old) && (await part(source));
  old = find();
  if (old && busy(old)) {
    clearTimeout(old.again);
    old.again = setTimeout(() => renewPart(name), 1e3);
    return;
  }
  if (!old) return;
  // The address may have changed meanwhile.
  if (source !== sourceOf(name)) return renewPart(name);
  const active = focus();
  const within = old.contains(active);
  const were = new Map(every("details[data-path]", old).map(({ dataset, open }) => [dataset.path, open]));
  for (const file of every("details[data-path]", fresh)) file.open = were.get(file.dataset.path) ?? file.open;
  const scroll = old.parentElement.scrollTop;
  old.replaceWith(fresh);
  fresh.parentElement.scrollTop = scroll;
  if (within) (byId(active.id) ?? one(`[data-act="${active.dataset.act}"]`, fresh) ?? draft)?.focus();
  settle(fresh);
  if (name === "turn") showRunning();
}

/** Opens the active take if it is another one, with the text typed for a deleted take. */
function toActive() {
  const { active, gone } = byId("bar").dataset;
  if (active === take) return;
  if (gone !== undefined && typed) remember(keptFor(active), gone + draft.value);
  location.assign(page);
}

let renewing = false;
let again = false;

/** Refreshes everything; one run at a time, and another one if something changed meanwhile. */
async function renewAll() {
  again = true;
  if (renewing) return;
  renewing = true;
  while (again) {
    again = false;
    // Refresh the tree even if the take was deleted.
    await renewTalk().catch(ignore);
    await Promise.all(parts.map(renewPart));
  }
  renewing = false;
}

// --- live text ------------------------------------------------------------------------------------------------

const live = byId("live");
const coming = { text: "", thinking: "" };
let painting = false;
let over = false;

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

function hear({ take: of, event: kind, text = "", tool, what, message = "", fraction }) {
  if (of !== take) return;
  if (over && kind in coming) quiet();
  if (kind in coming) coming[kind] += text;
  const far = fraction ? ` ${(fraction * 100) | 0} %` : "";
  const does = { call_began: `calls ${tool}…`, tool_runs: what, tool_progress: text.slice(-200) || message + far }[kind];
  if (does) byId("live-tool").textContent = does;
  if (kind in coming || does) live.hidden = false;
  over ||= kind === "answered";
  if (/^(retrying|started)$/.test(kind)) quiet();
  if (/^(approval_requested|ended|started)$/.test(kind)) renewPart("turn");
  if (!painting) requestAnimationFrame(paint);
  painting = true;
}

function quiet() {
  over = false;
  if (!live) return;
  live.hidden = byId("live-thinking").hidden = true;
  coming.text = coming.thinking = "";
  for (const pre of every("pre, #live-tool", live)) pre.replaceChildren();
}

const isRunning = () => byId("turn")?.dataset.running === "true";

function showRunning() {
  const running = isRunning();
  byId("stop").hidden = !running;
  byId("send").textContent = running ? "Steer" : "Send";
  if (!running && !over) quiet();
  // Show the stored draft unless the user has typed: an undo or another window may have changed it.
  const now = byId("turn").dataset.draft;
  if (now !== seen && draft.value === seen) {
    draft.value = now;
    typed = false;
  }
  seen = now;
}

function follow(after) {
  const stream = new EventSource(`/v1/events?after=${after}`);
  const hears = (kind, does) =>
    stream.addEventListener(kind, event => {
      after = event.lastEventId || after;
      does(event.data && JSON.parse(event.data));
    });
  const tree = () => renewPart("tree");
  let soon, own;
  hears("operation", ({ thread: of }) => {
    own ||= of === thread;
    // Batch events into one refresh.
    soon ??= setTimeout(() => {
      (own ? renewAll : tree)();
      soon = own = undefined;
    }, 30);
  });
  hears("turn", hear);
  hears("purged", tree);
  stream.onopen = () => {
    // A turn that ended with its server created no operation.
    if (look.contains("offline")) {
      renewAll();
      if (memory.getItem(kept) !== null) saveDraft();
    }
    look.remove("offline");
  };
  stream.onerror = () => {
    look.add("offline");
    // Reload if the stream cannot resume; typed text is stored.
    if (stream.readyState === 2) setTimeout(() => location.reload(), 3e3);
  };
  // Browsers limit connections per server, so that hidden pages close theirs.
  document.onvisibilitychange = () => {
    if (document.hidden) return stream.close();
    renewAll();
    follow(after);
  };
}
