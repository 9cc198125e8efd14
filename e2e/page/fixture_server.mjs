// A server with the page's real files and made-up data, which answers as `kubectl shed page` does. For tests without a
// cluster.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

import * as data from "./fixture_data.mjs";

const ASSETS = fileURLToPath(new URL("../../crates/kubectl-shed/src/page/assets/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; " +
  "frame-ancestors 'none'; base-uri 'none'";
/** The page asks for 500 jobs at a time. Here that many are a page of these. */
const PAGE = 11;
const SECRET = "0123456789abcdef0123456789abcdef";

/** The server. `tasks` is the size of the big job. */
export class FixtureServer {
  constructor({ tasks }) {
    Object.assign(this, { created: [], isDown: false });
    const started = Date.now();
    this.nightlyBegin = started - 39 * 60_000;
    this.big = data.bigJob(tasks, started - 24 * 60_000);
    this.listed = data.LISTED.map((job) => ({ ...job, begin: started - job.ago * 60_000 }));
    this.server = createServer((request, response) => this.answer(request, response));
  }

  /** Listens on a port of loopback, and returns the address. */
  async listen(port = 0) {
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    return `http://127.0.0.1:${this.server.address().port}/${SECRET}/`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** A job that begins now. */
  create(job) {
    this.created.push({ begin: Date.now(), ...job });
  }

  delete(name) {
    this.created = this.created.filter((job) => job.name !== name);
  }

  /** Breaks all connections and refuses others, as while the program does not run. */
  setDown(isDown) {
    this.isDown = isDown;
    if (isDown) this.server.closeAllConnections();
  }

  jobs() {
    const now = Date.now();
    return [data.nightly(this.nightlyBegin, now), this.big(now),
      ...[...this.listed, ...this.created].map((job) => data.plain(job, now))];
  }

  list(query) {
    const isOver = ({ phase }) => phase === "Complete" || phase === "Failed";
    const all = this.jobs();
    const live = all.filter((job) => !isOver(job)).sort((a, b) => (a.pocd ?? 2) - (b.pocd ?? 2) || a.name.localeCompare(b.name));
    const over = query.get("ended") === "true" ? all.filter(isOver).sort((a, b) => b.completionTime.localeCompare(a.completionTime)) : [];
    const shown = Math.ceil((Number(query.get("limit")) / 500) * PAGE);
    const jobs = [...live, ...over].slice(0, shown).map(({ record, explained, events, notes, ...job }) => job);
    return { time: new Date().toISOString(), total: live.length + over.length, jobs, namespace: null, notes: [] };
  }

  answer(request, response) {
    if (this.isDown) return response.destroy();
    response.setHeader("content-security-policy", POLICY);
    response.setHeader("x-content-type-options", "nosniff");
    const url = new URL(request.url, "http://127.0.0.1");
    if (!url.pathname.startsWith(`/${SECRET}/`)) return json(response, 404, { error: "open the address that was printed" });
    const path = url.pathname.slice(SECRET.length + 2);
    if (path === "") return this.file("index.html", response);
    if (/^assets\/[a-z_]+[.][a-z]+$/.test(path)) return this.file(path.slice(7), response);
    if (path === "api/jobs") return json(response, 200, this.list(url.searchParams));
    const [, , namespace, name] = path.split("/").map(decodeURIComponent);
    const job = this.jobs().find((one) => one.namespace === namespace && one.name === name);
    if (job) return json(response, 200, { time: new Date().toISOString(), ...job });
    return json(response, 404, { error: "no such job that you may read: check the namespace and the name" });
  }

  file(name, response) {
    try {
      response.writeHead(200, { "content-type": TYPES[extname(name)] }).end(readFileSync(join(ASSETS, name)));
    } catch {
      json(response, 404, { error: `no file ${name}` });
    }
  }
}

function json(response, status, body) {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" }).end(JSON.stringify(body));
}

// `node fixture_server.mjs 8443` serves it until it is stopped.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = new FixtureServer({ tasks: 10_000 });
  console.log(await server.listen(Number(process.argv[2] ?? 8443)));
}
