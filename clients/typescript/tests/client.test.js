// Tests of the client against a running server: RETAKE_URL, RETAKE_TOKEN and RETAKE_PROJECT name it and a folder.

import assert from "node:assert/strict";
import { before, test } from "node:test";

import { ApiError, Client, Conflict } from "../src/index.js";

const { RETAKE_URL, RETAKE_TOKEN, RETAKE_PROJECT } = process.env;
const client = new Client(RETAKE_URL, RETAKE_TOKEN, { name: "test" });
let project;

before(async () => {
  project = (await client.postProjects({ folder: RETAKE_PROJECT })).id;
});

const open = async (title) => (await client.postThreads({ title, project, current: true })).thread;

test("entries are added, edited and restored", async () => {
  const thread = await open("Entries");
  await client.postThreadEntries(thread, { entries: [{ role: "User", content: "One" }, { role: "AI", content: "Two" }] });
  const listed = await client.getThreadEntries(thread);
  assert.equal(listed.items.length, 2);
  await client.patchThreadEntry(thread, listed.items[0].id, { content: "Edited" });
  await client.deleteThreadEntry(thread, listed.items[1].id);
  await client.postThreadUndo(thread);
  const text = JSON.stringify((await client.getThreadEntries(thread, { limit: 10 })).items);
  assert.ok(text.includes("Edited") && text.includes("Two"), text);
});

test("a stale version is a conflict and changes nothing", async () => {
  const thread = await open("Versions");
  const { version } = await client.getThread(thread);
  const changed = await client.postThreadRename(thread, { title: "Renamed", ifMatch: version });
  const stale = await client.postThreadRename(thread, { title: "Again", ifMatch: version }).catch((error) => error);
  assert.ok(stale instanceof Conflict, stale);
  assert.equal(stale.current, changed.version);
  assert.equal((await client.getThread(thread)).title, "Renamed");
});

test("errors have a code and a message", async () => {
  const missing = await client.getThread("nothing/like it").catch((error) => error);
  assert.ok(missing instanceof ApiError);
  assert.deepEqual([missing.status, missing.code], [404, "not_found"]);
  const refused = await new Client(RETAKE_URL, "wrong").getThreads().catch((error) => error);
  assert.equal(refused.status, 401);
});

test("a repeated key repeats nothing", async () => {
  const thread = await open("Keys");
  const once = { entries: [{ role: "User", content: "Once" }], idempotencyKey: "typescript-1" };
  assert.deepEqual(await client.postThreadEntries(thread, once), await client.postThreadEntries(thread, once));
  assert.equal((await client.getThreadEntries(thread)).items.length, 1);
});

test("events follow the log from where they were", { timeout: 30_000 }, async () => {
  const thread = await open("Events");
  const take = async (after, wanted, options) => {
    const seen = [];
    for await (const event of client.events({ thread, after, ...options })) {
      if (event.event === "operation") seen.push(event);
      if (seen.length === wanted) break;
    }
    return seen;
  };
  const following = take(0, 2);
  await client.postThreadRename(thread, { title: "Events, renamed" });
  const last = (await following).at(-1);
  assert.ok(last.id);
  await client.postThreadRename(thread, { title: "Events, again" });
  assert.equal((await take(last.id, 1)).length, 1);
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 200);
  assert.deepEqual(await take(undefined, 100, { signal: stop.signal }), []);
});

test("a turn runs", { timeout: 30_000 }, async () => {
  const thread = await open("Turn");
  await client.postThreadTurns(thread, { prompt: "say Hello." });
  for (;;) {
    const text = JSON.stringify((await client.getThreadEntries(thread)).items);
    if (text.split("Hello.").length > 2) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});
