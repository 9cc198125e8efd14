// Questions to `kubectl shed page`. Paths are relative to the page, whose address has a secret part.

/** An answer that is not the wanted one. `status` is 0 if there is no answer at all. */
export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const NO_ANSWER = "kubectl shed page does not answer. Check that it still runs; the page tries again by itself.";

/** A text as a sentence. */
export function sentence(text) {
  const trimmed = String(text).trim();
  const first = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?`]$/.test(first) ? first : `${first}.`;
}

/** Milliseconds until an answer counts as none. */
const PATIENCE = 30_000;

/** The JSON behind a path. */
export async function read(path, signal) {
  let response;
  try {
    const either = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
    response = await fetch(path, { cache: "no-store", redirect: "error", signal: either });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, NO_ANSWER);
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new RequestError(response.status, sentence(body.error ?? `The answer has the status ${response.status}`));
}

/** The path of the list: the first `limit` jobs, with those that have ended if they are wanted. */
export function jobsPath({ limit, ended }) {
  return `api/jobs?${new URLSearchParams({ limit, ended: ended ? "true" : "false" })}`;
}

/** The path of a job. */
export function jobPath({ namespace, name, kind }) {
  const query = kind ? `?${new URLSearchParams({ kind })}` : "";
  return `api/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}${query}`;
}
