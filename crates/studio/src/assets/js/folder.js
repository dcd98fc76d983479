// Changes of the folder that are not recorded yet, above the recorded ones.

import { send } from "./api.js";
import { byId } from "./dom.js";
import { take, thread } from "./page.js";

/** Shows how many files differ from the last recorded ones. The server reads only what changed since the last request. */
export async function showFolder() {
  if (!byId("folder-changes")) return;
  const status = await send("GET", `/v1/workspace/status?thread=${thread}&take=${take}`).catch(() => undefined);
  const count = status?.files?.changed_count ?? 0;
  const line = byId("folder-changes");
  if (line) line.textContent = count ? `Not recorded yet: ${count} changed ${count === 1 ? "file" : "files"} in the folder.` : "";
}
