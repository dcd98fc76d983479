import { Api } from "./api.js";
import { Options } from "./transport.js";

export * from "./api.js";
export { ApiError, Conflict, Options } from "./transport.js";

/** An event of the server. */
export interface Event {
  /** Where it is in the stream: the argument `after` of `events`. Events of a running turn have none. */
  id?: string;
  /** Its name, such as `operation`. */
  event: string;
  data: any;
}

/** A client of one server. */
export class Client extends Api {
  /** A client of the server of this user, with the token that `retake serve token` prints. */
  static local(url?: string, options?: Options & { program?: string }): Promise<Client>;
  /** Events as they happen. After a lost connection, it continues behind the last event. */
  events(options?: {
    after?: string | number;
    thread?: string;
    turns?: boolean;
    reconnect?: boolean;
    signal?: AbortSignal;
  }): AsyncGenerator<Event>;
}
