// Drafts and editing in place. Typed text is never lost.

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
  // First in this browser, which survives a server crash, then on the server, for all windows.
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
    draftState(text ? "Draft saved" : "");
  } catch {
    draftState("Saved in this browser");
  }
}

async function sendDraft() {
  const text = draft.value;
  await attaching;
  const shown = one("#attached img");
  if (!text.trim() && !shown) return;
  clearTimeout(saving);
  if (isRunning() && shown) say("Pictures will be sent with the next turn.");
  const done = await attempt(async () => {
    if (isRunning()) return ask("POST", here("turn/steer"), { message: text });
    // Sending the draft is one operation; an undo restores it.
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

/** Selected, pasted and dropped pictures are attached to the draft. */
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

/** The editable text of an entry: its content or tool result. */
const textOf = ({ entry: { content, blocks = [] } }) => content || (blocks[1] || blocks[0]?.type !== "tool_result" ? "" : blocks[0].text);

/** Discards a form, after confirmation if its text changed. */
async function leave(form, before, does) {
  const text = one("textarea", form).value;
  if (text === before || (await confirmed([element("p", {}, "Discard this text?")], "Discard"))) does();
}

/** Storage keys of unfinished edits and insertions. */
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
  // Do not focus restored edits.
  if (!left) area.focus();
}

async function keepEdit(form) {
  const entry = form.closest(".entry");
  const content = one("textarea", form).value;
  const now = await read(entry);
  // Without the current version, do not overwrite it.
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
