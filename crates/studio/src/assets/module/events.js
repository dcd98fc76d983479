// What happens, here or elsewhere: the parts that may have changed are drawn again, and a model's words as they come.

// --- what happened elsewhere, or here -------------------------------------------------------------------------

const editor = entry => one(":scope > .editor", entry);
const idOf = part => part.closest(".entry")?.id.slice(2);
const contentOf = entry => entry.dataset.version.split("-")[0];

/** Puts newly drawn entries in the place of the old ones. What is the same stays, and what is being edited too, even if
 * it stands in another piece now: `drawn` are the ids of all that is. */
function renew(old, fresh, drawn) {
  const inserting = every(".inserting", old);
  const next = [...fresh.children].map(entry => {
    const known = byId(entry.id);
    if (known && editor(known) && contentOf(known) !== contentOf(entry)) conflict(known, one(".said, .plain, .preview", entry));
    return known && (editor(known) || known.dataset.version === entry.dataset.version) ? known : entry;
  });
  // What was deleted elsewhere while it was edited here stays until what was typed is kept or left.
  const left = [...old.children].filter(entry => entry.id && editor(entry) && !drawn.has(entry.id));
  for (const entry of left) conflict(entry);
  const all = [...next, ...left].flatMap(entry => [entry, ...inserting.filter(form => form.dataset.after === idOf(entry))]);
  all.push(...inserting.filter(form => !all.includes(form)));
  // What stays is not touched, so that the keyboard stays in it; in what is drawn anew it comes back.
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
  // The words that came stay until the entry that they became is there.
  if (over) quiet();
  if (atEnd) {
    makeRoom();
    toEnd();
  }
  await fill();
}

const parts = ["bar", "turn", "attached", "set-to", "history", "files", "settings", "tree"];
/** Where a part is drawn, as far as it was asked for. */
const sourceOf = name =>
  name === "tree" ? `/studio/tree?${query(new FormData(byId("filters")))}` : `${page}/${name}?take=${take}${byId(name)?.dataset.until ?? ""}`;

const busy = part => one(":is(input,textarea,select):focus,details.menu[open]", part);

/** Draws a part again. Where the server does not answer, the stream tells when it is there again. */
const renewPart = name => drawPart(name).catch(ignore);

/** The same; a part that somebody is typing in, or began to meanwhile, when they have left it. */
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
  // Something else may be wanted by now.
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

/** Goes to the active take, if that is another one; what was typed for a take that is gone goes along. */
function toActive() {
  const { active, gone } = byId("bar").dataset;
  if (active === take) return;
  if (gone !== undefined && typed) remember(keptFor(active), gone + draft.value);
  location.assign(page);
}

let renewing = false;
let again = false;

/** Draws everything again that may have changed; once at a time, and once more if it changed meanwhile. */
async function renewAll() {
  again = true;
  if (renewing) return;
  renewing = true;
  while (again) {
    again = false;
    // A take that is gone is no reason to show an old tree.
    await renewTalk().catch(ignore);
    await Promise.all(parts.map(renewPart));
  }
  renewing = false;
}

// --- words as they come ---------------------------------------------------------------------------------------

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
  byId("send").textContent = running ? "Tell it" : "Send";
  if (!running && !over) quiet();
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
  const hears = (kind, does) =>
    stream.addEventListener(kind, event => {
      after = event.lastEventId || after;
      does(event.data && JSON.parse(event.data));
    });
  const tree = () => renewPart("tree");
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
    if (look.contains("offline")) {
      renewAll();
      if (memory.getItem(kept) !== null) saveDraft();
    }
    look.remove("offline");
  };
  stream.onerror = () => {
    look.add("offline");
    // What the server does not take up again begins anew: what is typed is kept.
    if (stream.readyState === 2) setTimeout(() => location.reload(), 3e3);
  };
  // A browser has few connections for one server: who is not looked at does not hold one.
  document.onvisibilitychange = () => {
    if (document.hidden) return stream.close();
    renewAll();
    follow(after);
  };
}
