// The page with made-up data: what the checks need of a cluster, without one.

import { FixtureServer } from "./fixture_server.mjs";

/** Opens the backend. */
export async function open() {
  const server = new FixtureServer({ tasks: 10_000 });
  const url = await server.listen();
  return {
    url,
    /** There is more than a page of jobs. */
    hasMore: true,
    /** The job with every mark, and one with this number of tasks. */
    showcase: { namespace: "team-a", name: "nightly" },
    big: { namespace: "team-b", name: "ten-thousand", tasks: 10_000, attempts: 10_000 },
    /** Creates a job whose progress moves. */
    createJob: async (name) => server.create({ namespace: "team-a", name, tasks: 3, minutes: 3, deadline: 10, pocd: 0.99 }),
    deleteJob: async (name) => server.delete(name),
    /** Nothing answers until `restore`. */
    cut: async () => server.setDown(true),
    restore: async () => server.setDown(false),
    close: async () => server.close(),
  };
}
