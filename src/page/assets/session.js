// Questions to the server, and the session that they need. The token leaves this module only in the login's request.

/** An answer that is not the wanted one. `status` is 0 if there is no answer at all. */
export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const NO_ANSWER = "The page's server does not answer. Check the connection; the page tries again by itself.";

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", redirect: "error", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, NO_ANSWER);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new RequestError(response.status, sentence(body.error ?? `The server answers with status ${response.status}`));
}

/** A text as a sentence. */
export function sentence(text) {
  const trimmed = String(text).trim();
  const first = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?`]$/.test(first) ? first : `${first}.`;
}

/** The JSON behind a path. */
export async function read(path, signal) {
  const response = await request(path, { signal });
  return response.json();
}

/** The session's user and end. Without a session the error has the status 401. */
export function currentSession() {
  return read("/api/session");
}

/** Opens a session with a token. */
export async function login(token) {
  await request("/login", { method: "POST", body: new URLSearchParams({ token }) });
}

/** Ends the session. */
export async function logout() {
  await request("/logout", { method: "POST" });
}

/** Why the server refuses a stream; undefined if it does not. An EventSource does not tell. */
export async function refusal(path) {
  const abort = new AbortController();
  try {
    await request(path, { signal: abort.signal });
    return undefined;
  } catch (error) {
    return error.message;
  } finally {
    abort.abort();
  }
}

/** The path of a job in the API. */
export function jobPath({ namespace, name, kind }) {
  const query = kind ? `?${new URLSearchParams({ kind })}` : "";
  return `/api/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}${query}`;
}

/** The path of the events, with those of one job if it is given. */
export function eventsPath(job) {
  if (!job) return "/api/events";
  const query = new URLSearchParams({ job: `${job.namespace}/${job.name}` });
  if (job.kind) query.set("kind", job.kind);
  return `/api/events?${query}`;
}
