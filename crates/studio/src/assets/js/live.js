// Text of a running turn as it streams in.

import { isAtEnd, scrollToEnd } from "./conversation.js";
import { all, byId, one } from "./dom.js";
import { take } from "./page.js";
import { refreshPart } from "./refresh.js";

/** @type {any} */
const live = byId("live");
/** Text that arrived since the last frame. @type {Record<string, string>} */
const pending = { text: "", thinking: "" };
let frameRequested = false;
/** Whether the answer is complete, so that its entry replaces the streamed text soon. */
let finished = false;

/** The states of the agent in words. @type {Record<string, string>} */
const stateLabels = {
  calling: "calling the model",
  processing: "receiving the answer",
  executing: "running tools",
  post_tools: "running the hook after tools",
  shutting_down: "shutting down",
};

function paint() {
  frameRequested = false;
  if (!live || live.hidden) return;
  const wasAtEnd = isAtEnd();
  byId("live-text").append(pending.text);
  if (pending.thinking) byId("live-thinking").hidden = false;
  one("#live-thinking pre").append(pending.thinking);
  pending.text = pending.thinking = "";
  if (wasAtEnd) scrollToEnd();
}

/** Shows an event of a turn. @param {any} event */
export function showTurnEvent({ take: ofTake, event: kind, text = "", tool, what, message = "", fraction, command, state }) {
  if (ofTake !== take) return;
  const status = byId("agent-state");
  if (kind === "state" && status) status.textContent = `Agent: ${stateLabels[state] || state}`;
  if (finished && kind in pending) clearLive();
  if (kind in pending) pending[kind] += text;
  const percent = fraction ? ` ${Math.trunc(fraction * 100)} %` : "";
  /** @type {Record<string, string>} */
  const activities = {
    call_started: `calls ${tool}…`,
    tool_started: what,
    tool_progress: text.slice(-200) || message + percent,
    hook_started: `hook: ${command}`,
    hook_progress: text.slice(-200),
  };
  const activity = activities[kind];
  if (activity) byId("live-tool").textContent = activity;
  if (kind in pending || activity) live.hidden = false;
  finished ||= kind === "answered";
  if (/^(retrying|started)$/.test(kind)) clearLive();
  if (/^(approval_requested|ended|started)$/.test(kind)) refreshPart("turn");
  if (!frameRequested) requestAnimationFrame(paint);
  frameRequested = true;
}

/** Removes the streamed text. @param {{keepFinished?: boolean}} [options] */
export function clearLive({ keepFinished = false } = {}) {
  if (keepFinished && finished) return;
  finished = false;
  if (!live) return;
  live.hidden = byId("live-thinking").hidden = true;
  pending.text = pending.thinking = "";
  for (const output of all("pre, #live-tool", live)) output.replaceChildren();
}

export function clearLiveIfDone() {
  if (finished) clearLive();
}

export const isRunning = () => byId("turn")?.dataset.running === "true";

/** Shows the buttons that fit the state of the turn. Returns whether it runs. */
export function showTurnControls() {
  const running = isRunning();
  byId("stop").hidden = !running;
  byId("send").textContent = running ? "Steer" : "Send";
  return running;
}
