// A server with the page's real files and made-up data, which answers as the operator does. For tests without a cluster.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

import * as data from "./fixture_data.mjs";

const ASSETS = fileURLToPath(new URL("../../src/page/assets/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'";
/** Jobs of a page of the list. */
const PAGE = 11;

/** Users by token: what they may read. */
export const USERS = {
  "viewer-token": { user: "system:serviceaccount:team-a:viewer", namespaces: ["team-a", "team-b"] },
  "nobody-token": { user: "system:serviceaccount:empty:nobody", namespaces: [] },
  "admin-token": { user: "admin", namespaces: "all" },
};

function selfSigned() {
  const folder = mkdtempSync(join(tmpdir(), "shed-page."));
  const [key, cert] = ["key.pem", "cert.pem"].map((name) => join(folder, name));
  try {
    execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
      "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], { stdio: "ignore" });
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The server. `tasks` is the size of the big job. */
export class FixtureServer {
  constructor({ tasks }) {
    Object.assign(this, { sessions: new Map(), streams: new Set(), created: [], isDown: false });
    const started = Date.now();
    this.nightlyBegin = started - 39 * 60_000;
    this.big = data.bigJob(tasks, started - 24 * 60_000);
    this.listed = data.LISTED.map((job) => ({ ...job, begin: started - job.ago * 60_000 }));
    this.server = createServer(selfSigned(), (request, response) => this.answer(request, response));
    this.timer = setInterval(() => this.push(), 2000);
  }

  /** Listens on a port of loopback, and returns the address. */
  async listen(port = 0) {
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    return `https://localhost:${this.server.address().port}`;
  }

  close() {
    clearInterval(this.timer);
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

  /** Ends all sessions, as when their tokens expire. */
  endSessions(error) {
    this.sessions.clear();
    for (const stream of this.streams) {
      stream.response.end(`event: end\ndata: ${JSON.stringify({ error })}\n\n`);
    }
  }

  /** Breaks all connections and refuses others, as while no replica leads. */
  setDown(isDown) {
    this.isDown = isDown;
    if (isDown) for (const stream of this.streams) stream.response.destroy();
  }

  jobs(user) {
    const now = Date.now();
    const jobs = [data.nightly(this.nightlyBegin, now), this.big(now),
      ...[...this.listed, ...this.created].map((job) => data.plain(job, now))];
    return jobs.filter(({ namespace }) => user.namespaces === "all" || user.namespaces.includes(namespace));
  }

  list(user, query = new URLSearchParams()) {
    const isOver = ({ phase }) => phase === "Complete" || phase === "Failed";
    const all = this.jobs(user);
    const live = all.filter((job) => !isOver(job)).sort((a, b) => (a.pocd ?? 2) - (b.pocd ?? 2) || a.name.localeCompare(b.name));
    const over = query.get("ended") === "true" ? all.filter(isOver).sort((a, b) => b.completionTime.localeCompare(a.completionTime)) : [];
    const from = Number(query.get("continue") ?? 0);
    const jobs = [...live, ...over].slice(from, from + PAGE).map(({ record, ...job }) => job);
    const next = from + PAGE < live.length + over.length ? String(from + PAGE) : undefined;
    return { time: new Date().toISOString(), total: live.length + over.length, jobs, continue: next, namespaces: user.namespaces };
  }

  job(user, namespace, name) {
    const job = this.jobs(user).find((one) => one.namespace === namespace && one.name === name);
    return job && { time: new Date().toISOString(), ...job };
  }

  nodes(user) {
    const mayRead = (namespace) => user.namespaces === "all" || user.namespaces.includes(namespace);
    return { time: new Date().toISOString(), nodes: data.nodes(Date.now(), mayRead) };
  }

  push() {
    for (const stream of this.streams) this.send(stream);
  }

  send({ response, user, job }) {
    const events = { jobs: this.list(user), nodes: this.nodes(user) };
    const named = job && this.job(user, ...job.split("/"));
    if (named) events.job = named;
    for (const [name, body] of Object.entries(events)) response.write(`event: ${name}\ndata: ${JSON.stringify(body)}\n\n`);
  }

  answer(request, response) {
    if (this.isDown) return response.destroy();
    response.setHeader("content-security-policy", POLICY);
    response.setHeader("x-content-type-options", "nosniff");
    const url = new URL(request.url, "https://localhost");
    if (request.method === "POST") return this.post(url.pathname, request, response);
    if (url.pathname === "/") return this.file("index.html", response);
    if (/^\/assets\/[a-z_]+[.][a-z]+$/.test(url.pathname)) return this.file(url.pathname.slice(8), response);
    const user = this.sessions.get(/__Host-shed=([0-9a-f]+)/.exec(request.headers.cookie ?? "")?.[1]);
    if (!user) return json(response, 401, { error: "the session is over or unknown: log in with a token" });
    return this.api(url, user, request, response);
  }

  api(url, user, request, response) {
    const [, , what, namespace, name] = url.pathname.split("/").map(decodeURIComponent);
    if (what === "session") return json(response, 200, { user: user.user, expires: new Date(Date.now() + 3_600_000).toISOString() });
    if (what === "jobs" && !namespace) return json(response, 200, this.list(user, url.searchParams));
    if (what === "nodes") return json(response, 200, this.nodes(user));
    if (what === "events") {
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      response.write(": hello\n\n");
      const stream = { response, user, job: url.searchParams.get("job") };
      this.streams.add(stream);
      request.on("close", () => this.streams.delete(stream));
      return undefined;
    }
    const job = what === "jobs" && this.job(user, namespace, name);
    if (job) return json(response, 200, job);
    return json(response, 404, { error: "there is no such job that you may see: check the namespace and the name" });
  }

  post(path, request, response) {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      if (path === "/logout") return response.writeHead(204, { "set-cookie": "__Host-shed=; Max-Age=0; Secure; HttpOnly; SameSite=Strict; Path=/" }).end();
      const user = USERS[new URLSearchParams(body).get("token")];
      if (!user) return json(response, 401, { error: "the cluster does not accept this token: make a new one, and copy it whole" });
      const id = randomBytes(16).toString("hex");
      this.sessions.set(id, user);
      return response.writeHead(204, { "set-cookie": `__Host-shed=${id}; Secure; HttpOnly; SameSite=Strict; Path=/` }).end();
    });
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
  console.log(`${await server.listen(Number(process.argv[2] ?? 8443))}: log in with one of ${Object.keys(USERS).join(", ")}`);
}
