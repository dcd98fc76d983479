// The stream of events from the server.

import { bodyClasses } from "./dom.js";
import { saveUnsavedDraft } from "./draft.js";
import { showFolder } from "./folder.js";
import { showTurnEvent } from "./live.js";
import { thread } from "./page.js";
import { refreshAll, refreshPart } from "./refresh.js";

/** Follows the events after a position. @param {string} after */
export function followEvents(after) {
  const stream = new EventSource(`/v1/events?after=${after}`);
  /** @param {string} kind @param {(data: any) => void} handler */
  const handle = (kind, handler) =>
    stream.addEventListener(kind, event => {
      after = event.lastEventId || after;
      handler(event.data && JSON.parse(event.data));
    });
  const refreshTree = () => refreshPart("tree");
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let scheduled;
  let ownThread = false;
  handle("operation", ({ thread: ofThread }) => {
    ownThread ||= ofThread === thread;
    // Many operations at once lead to one refresh.
    scheduled ??= setTimeout(() => {
      (ownThread ? refreshAll : refreshTree)();
      scheduled = undefined;
      ownThread = false;
    }, 30);
  });
  handle("turn", showTurnEvent);
  handle("folder", showFolder);
  handle("purged", refreshTree);
  stream.onopen = () => {
    // A turn that ended with its server left no operation.
    if (bodyClasses.contains("offline")) {
      refreshAll();
      saveUnsavedDraft();
    }
    bodyClasses.remove("offline");
  };
  stream.onerror = () => {
    bodyClasses.add("offline");
    // The browser does not reconnect a closed stream. Unsaved text survives the reload.
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 3000);
  };
  // A browser has few connections per server: hidden tabs give theirs back.
  document.onvisibilitychange = () => {
    if (document.hidden) return stream.close();
    refreshAll();
    followEvents(after);
  };
}
