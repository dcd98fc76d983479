// Keys, clicks, forms, and start-up.

// --- keys and clicks ----------------------------------------------------------------------------------------------------

on("click", event => {
  const button = event.target.closest("[data-act]");
  if (!button || button.disabled) return;
  const { act } = button.dataset;
  if (!acts[act]) return;
  event.preventDefault();
  button.closest("details.menu")?.removeAttribute("open");
  attempt(() => acts[act](button));
});

on("submit", event => {
  const form = event.target;
  if (form.method === "dialog") return;
  event.preventDefault();
  if (form.id === "composer") sendDraft();
  if (form.id === "roles") location.assign(`${page}?${query(new FormData(form))}`);
  if (form.matches(".editor")) keepEdit(form);
  if (form.matches(".inserting")) putIn(form);
});

on("change", ({ target }) => {
  if (target.id === "pictures") {
    attach(target.files);
    target.value = "";
  }
  if (target.closest("#settings")) keepField(target);
});

const search = q =>
  show(`/studio/search?${query({ q })}`, found => {
    byId("found")?.remove();
    byId("find").after(found);
  });

on("input", ({ target }) => {
  if (target === draft) keepDraft();
  if (target.matches("#settings textarea")) half.setItem(placeIn(target), JSON.stringify([target.defaultValue, target.value]));
  if (target.form?.id !== "filters") return;
  byId("found")?.remove();
  renewPart("tree");
});

// Fetch the content of details elements when they first open.
on("toggle", ({ target: { dataset, children, open }, target }) => {
  if (open && dataset.src && !children[1]) show(dataset.src, shown => children[1] || target.append(shown));
}, true);

/** Focuses the next or previous entry. */
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
  n: () => one("[data-about=new-thread]")?.click(),
  i: () => draft?.focus(),
  "/": () => byId("find")?.focus(),
};
const keysOfEntry = { e: "edit", c: "collapse", b: "branch", r: "retry", Delete: "delete" };

on("keydown", event => {
  const { key, target } = event;
  const typing = target.matches("input, textarea, select");
  const command = event.ctrlKey || event.metaKey;
  const entry = target.closest(".entry");
  let does;
  if (key === "Enter" && target.id === "find") does = () => search(target.value);
  else if (key === "Enter" && command && typing) does = () => target.form?.requestSubmit();
  else if (key === "Escape" && target === draft) does = () => talk.focus();
  else if (key === "Escape" && target.closest(".editor, .inserting")) does = () => one("[type=button]", target.form).click();
  // In a field with text, Ctrl+Z is the field's own undo.
  else if (command && /^[zy]$/i.test(key) && !(typing && (target === draft ? typed : target.value))) {
    does = () => one(`[data-act=${/y/i.test(key) || event.shiftKey ? "redo" : "undo"}]`)?.click();
  } else if (!typing && !command && !event.altKey && !byId("dialog")?.open) {
    does = entry && keysOfEntry[key] ? () => one(`[data-act=${keysOfEntry[key]}]`, entry)?.click() : keys[key];
  }
  if (!does) return;
  event.preventDefault();
  does();
});

// Close menus and side panels on a click elsewhere.
on("pointerdown", ({ target }) => {
  for (const menu of every("details.menu[open]")) menu.open = menu.contains(target);
  if (!target.closest("#left, #right, [data-act]")) look.remove("show-left", "show-right");
});

// --- start-up -----------------------------------------------------------------------------------------------------------

settle(document);
setInterval(tellTimes, 3e4);
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
    requestAnimationFrame(() => fill());
  };
  // Stay at the end when an approval request or a resize changes the height.
  new ResizeObserver(() => wasAtEnd && toEnd()).observe(talk);
  fill();
}
if (draft) {
  showRunning();
  draft.onpaste = ({ clipboardData }) => clipboardData.getData("text") || attach(clipboardData.files);
  // Prevent the browser from opening a file dropped outside of the field.
  const hold = event => {
    const { types, files } = event.dataTransfer;
    if (!types.includes("Files")) return;
    event.preventDefault();
    attach(files);
  };
  on("dragover", hold);
  on("drop", hold);
  draft.value = memory.getItem(kept) ?? draft.value;
  // Save text that only this browser has.
  if (memory.getItem(kept) !== null) saveDraft();
  onpagehide = () => memory.getItem(kept) === null || saveDraft();
}
