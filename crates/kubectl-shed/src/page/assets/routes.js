// Views as addresses behind the `#`. Pure.

/** The view of an address; unknown addresses are those of the list. */
export function parseRoute(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parameters = new URLSearchParams(query);
  const [view, namespace, name] = path.split("/").map(decode);
  if (view === "jobs" && namespace && name) {
    const task = Number.parseInt(parameters.get("task"), 10);
    const job = { namespace, name, kind: parameters.get("kind") ?? undefined };
    return { view: "job", job, task: Number.isNaN(task) ? undefined : task };
  }
  return { view: "jobs", filter: parameters.get("filter") ?? "", ended: parameters.get("ended") === "true" };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function withQuery(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value || value === 0));
  return query.size ? `${path}?${query}` : path;
}

/** The address of the list. */
export function jobsRoute({ filter = "", ended = false } = {}) {
  return withQuery("#/jobs", { filter, ended: ended ? "true" : "" });
}

/** The address of a job, with a task of it if one is given. */
export function jobRoute({ namespace, name, kind }, task) {
  return withQuery(`#/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, { kind, task });
}
