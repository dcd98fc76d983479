// The client: the generated methods, and events.

import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { Api } from "./api.js";

export { ApiError, Conflict } from "./transport.js";

/** The server sends a comment more often than this. */
const SILENCE = 60_000;
/** Milliseconds between attempts to reach the server again. */
const PAUSE = 500;

/** A client of one server. */
export class Client extends Api {
  /** A client of the server of this user, with the token that `retake serve token` prints. */
  static async local(url = "http://127.0.0.1:7878", { program = "retake", ...options } = {}) {
    const { stdout } = await promisify(execFile)(program, ["serve", "token"]);
    return new Client(url, stdout.trim(), options);
  }

  /** Events as they happen. After a lost connection, it continues behind the last event. */
  async *events({ after, thread, turns, reconnect = true, signal } = {}) {
    let position = after;
    while (!signal?.aborted) {
      const lost = new AbortController();
      const stop = () => lost.abort();
      signal?.addEventListener("abort", stop);
      let silence;
      const heard = () => {
        clearTimeout(silence);
        silence = setTimeout(stop, SILENCE);
      };
      try {
        heard();
        const query = { after: position, thread, turns };
        const response = await this.open("GET", "/v1/events", { query, headers: { Accept: "text/event-stream" }, signal: lost.signal });
        for await (const event of parse(response.body, heard)) {
          position = event.id ?? position;
          yield event;
        }
      } catch (error) {
        // A refusal stays one; a lost connection does not.
        if (!reconnect || error.status !== undefined) throw error;
      } finally {
        clearTimeout(silence);
        signal?.removeEventListener("abort", stop);
        lost.abort();
      }
      if (!reconnect) return;
      if (!signal?.aborted) await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }
}

/** The events of a stream. One that breaks off is dropped: it is sent again. */
async function* parse(body, heard) {
  let rest = "";
  let event = { id: undefined, event: "message", lines: [] };
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    heard();
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const raw of lines) {
      const line = raw.replace(/\r$/, "");
      if (line === "") {
        if (event.lines.length > 0) yield { id: event.id, event: event.event, data: json(event.lines.join("\n")) };
        event = { id: undefined, event: "message", lines: [] };
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") event.lines.push(value);
      else if (field === "event") event.event = value;
      else if (field === "id") event.id = value;
    }
  }
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
