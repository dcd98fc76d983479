// Sends requests. The generated methods call `Transport.request`.

/** The server refused a request. The message says what happened and what to do next. */
export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `HTTP status ${status}`);
    this.name = "ApiError";
    this.status = status;
    this.code = problem.code;
    this.problem = problem;
  }
}

/** The thread is not at the expected version. Nothing was changed. */
export class Conflict extends ApiError {
  get current() {
    return this.problem.current;
  }
}

/** A server and the token for it. */
export class Transport {
  constructor(url, token, { name, timeout = 60_000 } = {}) {
    this.url = url.replace(/\/+$/, "");
    this.timeout = timeout;
    this.headers = { Authorization: `Bearer ${token}`, ...(name === undefined ? {} : { "Retake-Client": name }) };
  }

  /** Sends a request and returns the response, which is not read yet. */
  async open(method, path, { query = {}, headers = {}, data, signal } = {}) {
    const url = new URL(this.url + path);
    for (const [key, value] of Object.entries(query)) {
      for (const item of Array.isArray(value) ? value : [value]) {
        if (item !== undefined && item !== null) url.searchParams.append(key, String(item));
      }
    }
    const response = await fetch(url, { method, headers: { ...this.headers, ...headers }, body: data, signal });
    if (!response.ok) throw failure(response.status, await response.text());
    return response;
  }

  /** Sends a request and returns the answer: an object if it is JSON, and text otherwise. */
  async request(method, path, { query, headers = {}, body, media } = {}) {
    const sent = {};
    for (const [name, value] of Object.entries(headers)) {
      // An expected version is a number here, and a quoted one in HTTP.
      if (value !== undefined && value !== null) sent[name] = name === "If-Match" && typeof value === "number" ? `"${value}"` : String(value);
    }
    let data;
    if (media !== undefined) {
      sent["Content-Type"] = media;
      data = typeof body === "string" ? body : JSON.stringify(body);
    }
    const response = await this.open(method, path, { query, headers: sent, data, signal: AbortSignal.timeout(this.timeout) });
    const text = await response.text();
    const kind = (response.headers.get("Content-Type") ?? "").split(";")[0];
    return kind === "application/json" || kind.endsWith("+json") ? JSON.parse(text) : text;
  }
}

function failure(status, text) {
  let problem;
  try {
    problem = JSON.parse(text);
  } catch {
    // Not from this server.
  }
  if (typeof problem !== "object" || problem === null) problem = { detail: text.slice(0, 500) };
  return problem.code === "version_conflict" ? new Conflict(status, problem) : new ApiError(status, problem);
}
