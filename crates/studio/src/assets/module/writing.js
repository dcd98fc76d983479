// What a person writes: drafts, and entries in place. Nothing that is typed is lost.

// --- drafts: never lost -----------------------------------------------------------------------------------------

const draft = byId("draft");
const keptFor = take => `retake-draft-${thread}-${take}`;
const kept = keptFor(take);
const draftState = text => (byId("draft-state").textContent = text);
let saving;
let seen = draft?.value;
let typed = false;

function keepDraft() {
  typed = true;
  // First where a crash of the server does not reach, then where every window sees it.
  remember(kept, draft.value);
  clearTimeout(saving);
  saving = setTimeout(saveDraft, 400);
}

const putDraft = text => ask("PUT", here("draft"), { text });

async function saveDraft() {
  clearTimeout(saving);
  const text = draft.value;
  try {
    await putDraft(text);
    if (draft.value === text) memory.removeItem(kept);
    draftState(text ? "Draft kept" : "");
  } catch {
    draftState("Kept in this browser");
  }
}

async function sendDraft() {
  const text = draft.value;
  await attaching;
  const shown = one("#attached img");
  if (!text.trim() && !shown) return;
  clearTimeout(saving);
  if (isRunning() && shown) say("Pictures wait for the next turn.");
  const done = await attempt(async () => {
    if (isRunning()) return ask("POST", here("turn/steer"), { message: text });
    // A draft is sent in one step, and an undo brings it back.
    await putDraft(text);
    return ask("POST", here("turns"), { draft: true, ...approval() });
  });
  if (!done) return;
  if (draft.value === text) draft.value = "";
  typed = false;
  memory.removeItem(kept);
  await saveDraft();
  await renewPart("turn");
  toEnd();
}

/** Pictures that are chosen, pasted or dropped are kept with the draft, and go along with it. */
let attaching;
const attach = files => (attaching = attachAll([...files], attaching));

async function attachAll(files, before) {
  await before;
  if (!files[0]) return;
  for (const file of files) {
    draftState(`${file.name}…`);
    await attempt(async () => ask("POST", here("draft/pictures"), { pictures: [(await file.bytes()).toBase64()] }), `${file.name}: `);
  }
  draftState("");
  await renewAll();
}

// --- editing in place -------------------------------------------------------------------------------------------

const read = entry => asked("GET", here(`entries/${idOf(entry)}`));

/** What is edited of an entry: its text, or what a tool answered. */
const textOf = ({ entry: { content, blocks = [] } }) => content || (blocks[1] || blocks[0]?.type !== "tool_result" ? "" : blocks[0].text);

/** Leaves what was typed, after a question if something was. */
async function leave(form, before, does) {
  const text = one("textarea", form).value;
  if (text === before || (await confirmed([element("p", {}, "Discard this text?")], "Discard"))) does();
}

/** Where a half-typed edit is kept: what it began with, and what it is; and what is being put in behind an entry. */
const placeOf = entry => take + entry.id;
const placeBehind = entry => `${placeOf(entry)}+`;

async function edit(entry) {
  const shown = await read(entry);
  if (!shown || editor(entry)) return;
  const form = copyOf("editor");
  const area = one("textarea", form);
  const content = textOf(shown);
  const left = JSON.parse(memory.getItem(placeOf(entry)));
  const [before, text] = left ?? [content, content];
  form.dataset.before = before;
  area.value = text;
  area.rows = Math.min(30, text.split("\n").length + 2);
  area.oninput = () => remember(placeOf(entry), JSON.stringify([before, area.value]));
  entry.append(form);
  entry.classList.add("editing");
  // One that was left half-typed waits for its writer.
  if (!left) area.focus();
}

async function keepEdit(form) {
  const entry = form.closest(".entry");
  const content = one("textarea", form).value;
  const now = await read(entry);
  // Who cannot look whether somebody else was there replaces nothing.
  if (!now) return;
  if (textOf(now) !== form.dataset.before && !one(".conflict", form)) {
    return conflict(entry, element("pre", { className: "plain" }, textOf(now)));
  }
  if (!(await asked("PATCH", here(`entries/${idOf(entry)}`), { content }))) return;
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
  const form = copyOf("inserting");
  const area = one("textarea", form);
  const place = placeBehind(entry);
  form.dataset.after = idOf(entry);
  form.dataset.place = place;
  area.value = memory.getItem(place);
  area.oninput = () => remember(place, area.value);
  entry.after(form);
  if (!area.value) area.focus();
}

function leaveInsert(form) {
  memory.removeItem(form.dataset.place);
  form.remove();
}

async function putIn(form) {
  const entries = [{ role: one("select", form).value, content: one("textarea", form).value }];
  if (await asked("POST", here("entries"), { entries, after: form.dataset.after })) leaveInsert(form);
}
