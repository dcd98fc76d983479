/** The server refused a request. The message says what happened and what to do next. */
export class ApiError extends Error {
  readonly status: number;
  /** The error code, such as `not_found`; `docs/json.md` lists them. */
  readonly code: string | undefined;
  /** The whole problem document (RFC 9457). */
  readonly problem: Record<string, unknown>;
}

/** The thread is not at the expected version. Nothing was changed. */
export class Conflict extends ApiError {
  /** The version of the thread. */
  readonly current: number | undefined;
}

export interface Options {
  /** Recorded as the author of changes. */
  name?: string;
  /** Milliseconds for one request. */
  timeout?: number;
}

/** A server and the token for it. */
export class Transport {
  constructor(url: string, token: string, options?: Options);
  request(
    method: string,
    path: string,
    options?: { query?: Record<string, unknown>; headers?: Record<string, unknown>; body?: unknown; media?: string },
  ): Promise<any>;
}
