// Entry point. The server renders the pages; these modules send requests, follow events, and redraw what changed.
//
//   input.js ──► actions.js ──► moves.js, editing.js, draft.js ──► api.js ──► /v1/…
//   events.js ──► refresh.js, live.js, folder.js ──► conversation.js  fetch ──► /studio/…

import "./input.js";
import { conversation, fill, isAtEnd, resizeSpacers, scrollToEnd } from "./conversation.js";
import { byId } from "./dom.js";
import { draft, startDraft } from "./draft.js";
import { followEvents } from "./events.js";
import { showFolder } from "./folder.js";
import { fact, thread } from "./page.js";
import { showTurn } from "./refresh.js";
import { showTimes } from "./times.js";
import { restoreUnsaved } from "./unsaved.js";

restoreUnsaved(document);
setInterval(() => showTimes(), 30_000);
if (thread) {
  followEvents(fact("sequence"));
  showFolder();
}
if (conversation) startConversation();
if (draft) {
  showTurn();
  startDraft();
}

function startConversation() {
  resizeSpacers();
  const linked = location.hash && byId(location.hash.slice(1));
  if (linked) {
    linked.scrollIntoView({ block: "center" });
    linked.focus();
  } else scrollToEnd();
  let wasAtEnd = !linked;
  conversation.onscroll = () => {
    wasAtEnd = isAtEnd();
    requestAnimationFrame(() => fill());
  };
  // A reader at the end stays there when the window or the composer changes its size.
  new ResizeObserver(() => wasAtEnd && scrollToEnd()).observe(conversation);
  fill();
}
