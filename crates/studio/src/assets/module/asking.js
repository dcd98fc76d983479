// The script of the studio. It sends changes to the API and fetches fragments from the server after events. It holds no
// copy of the state: the page is what the server last rendered.

const byId = id => document.getElementById(id);
const one = (selector, within = document) => within.querySelector(selector);
const every = (selector, within = document) => [...within.querySelectorAll(selector)];
const ignore = () => {};
const look = document.body.classList;
const memory = localStorage;
// Storage may be full; the server has the text as well.
const remember = (place, text) => {
  try {
    memory.setItem(place, text);
  } catch {}
};
const query = fields => new URLSearchParams(fields);
const on = (kind, does, first) => document.addEventListener(kind, does, first);
const focus = () => document.activeElement;
const box = of => of.getBoundingClientRect();
const fact = name => byId(`fact-${name}`)?.value ?? "";
const thread = fact("thread");
const take = fact("take");
const past = fact("past");
const at = rest => `/v1/threads/${thread}/${rest}`;
const page = `/studio/threads/${thread}`;
const here = rest => ofTake(at(rest));
const ofTake = path => `${path}?take=${take}`;

// --- requests -------------------------------------------------------------------------------------------------

const refusal = answer => `The server answered ${answer.status}.`;

async function ask(method, path, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  // A retry after a network error uses the same key, so that the request runs once.
  if (method === "POST") headers["Idempotency-Key"] = crypto.randomUUID();
  for (let wait = 300; ; wait *= 2) {
    try {
      const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
      const said = await answer.json().catch(() => ({}));
      if (answer.ok) return said;
      throw Object.assign(Error(said.detail ?? refusal(answer)), { problem: said });
    } catch (error) {
      if (error.problem || wait > 2e3) throw error;
      await new Promise(done => setTimeout(done, wait));
    }
  }
}

async function part(path) {
  const answer = await fetch(path);
  const template = element("template", { innerHTML: await answer.text() });
  if (!answer.ok) throw Error(one("main p", template.content)?.textContent ?? refusal(answer));
  // Before insertion, so that the fragment does not change its size afterwards.
  tellTimes(template.content);
  return template.content.firstElementChild;
}

function say(text, kind = "", ...more) {
  const toast = element("div", { className: `toast ${kind}` }, text, ...more);
  byId("toasts")?.append(toast);
  setTimeout(() => toast.remove(), kind || more[0] ? 1e4 : 4e3);
}

/** Runs a function and shows its error. */
async function attempt(does, of = "") {
  try {
    return await does();
  } catch (error) {
    say(of + error.message, "bad");
  }
}

const asked = (...request) => attempt(() => ask(...request));
const drawn = path => attempt(() => part(path));

/** Fetches a fragment and inserts it. */
async function show(path, put) {
  const shown = await drawn(path);
  if (!shown) return;
  put(shown);
  settle(shown);
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

/** A copy of a template. */
const copyOf = id => byId(id).content.firstElementChild.cloneNode(true);

/** Shows a dialog; resolves to whether it was confirmed. */
function confirmed(body, yes) {
  const dialog = byId("dialog");
  byId("dialog-body").replaceChildren(...body);
  dialog.ariaLabel = byId("dialog-yes").textContent = yes;
  byId("dialog-no").hidden = yes === "OK";
  dialog.returnValue = "no";
  dialog.showModal();
  (one("input, select", dialog) ?? byId("dialog-yes")).focus();
  return new Promise(done => (dialog.onclose = () => done(dialog.returnValue === "yes")));
}

/** The value of a field. Lists are separated by commas or lines. */
function valueOf({ type, value, checked, dataset: { list } }) {
  if (type === "checkbox") return checked;
  // An empty number resets to the default.
  if (type === "number") return value === "" ? null : +value;
  return list ? value.split(list).map(item => item.trim()).filter(Boolean) : value;
}

/** The values of all fields by name. */
function fieldsOf(form) {
  const fields = every("[name]", form).filter(({ type, checked }) => type !== "radio" || checked);
  return Object.fromEntries(fields.map(field => [field.name, valueOf(field)]));
}

const near = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });

function ago(date) {
  let distance = (date - Date.now()) / 1e3;
  for (const [unit, size] of Object.entries({ second: 60, minute: 60, hour: 24, day: 30 })) {
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

function settle(root) {
  tellTimes(root);
  for (const field of every("#settings textarea", root)) {
    const [was, left] = JSON.parse(half.getItem(placeIn(field)) ?? "[]");
    half.removeItem(placeIn(field));
    if (was === left) continue;
    // Do not overwrite a newer value.
    if (was !== field.value) say(`Changed elsewhere. You typed: ${left}`, "bad");
    else {
      field.value = left;
      keepField(field);
    }
  }
  for (const entry of every(".piece > .entry", root)) {
    if (memory.getItem(placeOf(entry))) edit(entry);
    if (memory.getItem(placeBehind(entry))) insertBehind(entry);
  }
}
