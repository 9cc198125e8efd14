// The page that shed serves on a cluster, with the current kubeconfig.
//
// Environment: SHED_PAGE_URL, its address (absent: a port-forward); SHED_NAMESPACE and SHED_PAGE_SERVICE, its Service
// (shed-page in shed-system); SHED_E2E_BUSYBOX, an image with a shell.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { createServer } from "node:net";
import { promisify } from "node:util";

const SYSTEM = process.env.SHED_NAMESPACE ?? "shed-system";
const SERVICE = process.env.SHED_PAGE_SERVICE ?? "shed-page";
const IMAGE = process.env.SHED_E2E_BUSYBOX ?? "localhost/busybox:test";
const [TEAM, FOREIGN] = ["page-team", "page-foreign"];
const WORDS = new URL("../kubectl-shed.yaml", import.meta.url);

async function kubectl(args, input) {
  const running = promisify(execFile)("kubectl", args, { maxBuffer: 1 << 26 });
  if (input !== undefined) running.child.stdin.end(input);
  return (await running).stdout.trim();
}

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/** A port-forward that can be cut and restored at the same port. */
class Forward {
  constructor(port) {
    this.port = port;
  }

  async start() {
    const args = ["--namespace", SYSTEM, "port-forward", `service/${SERVICE}`, `${this.port}:page`];
    for (let tries = 0; tries < 60; tries += 1) {
      this.child = spawn("kubectl", args, { stdio: "ignore" });
      for (let polls = 0; polls < 10; polls += 1) {
        await sleep(500);
        if (await this.answers()) return;
      }
      this.stop();
    }
    throw new Error(`service/${SERVICE} in ${SYSTEM} does not answer: is the live page enabled, and does a replica lead?`);
  }

  answers() {
    return new Promise((resolve) => {
      const asked = request({ host: "localhost", port: this.port, path: "/", rejectUnauthorized: false, timeout: 2000 },
        (response) => resolve(response.resume().statusCode === 200));
      asked.on("error", () => resolve(false)).on("timeout", () => asked.destroy()).end();
    });
  }

  stop() {
    this.child?.kill();
  }
}

async function serviceAccount(namespace, name, role) {
  await kubectl(["--namespace", namespace, "create", "serviceaccount", name]);
  if (role) {
    await kubectl(["--namespace", namespace, "create", "rolebinding", name, `--clusterrole=${role}`, `--serviceaccount=${namespace}:${name}`]);
  }
  return kubectl(["--namespace", namespace, "create", "token", name, "--duration=1h"]);
}

/** The job of e2e/kubectl-shed.yaml, with changes. */
function words(name, change = (text) => text) {
  return change(readFileSync(WORDS, "utf8").replace("localhost/busybox:test", IMAGE).replace("name: words", `name: ${name}`));
}

const create = (namespace, manifest) => kubectl(["--namespace", namespace, "create", "--filename", "-"], manifest);

/** Waits until attempts of a job run. */
async function runs(namespace, name) {
  const args = ["--namespace", namespace, "wait", "--for=jsonpath={.status.phase}=Running", `deadlinejob/${name}`, "--timeout=180s"];
  await kubectl(args);
}

/** Opens the backend: two namespaces, service accounts and jobs. */
export async function open() {
  await close();
  for (const namespace of [TEAM, FOREIGN]) await kubectl(["create", "namespace", namespace]);
  const token = await serviceAccount(TEAM, "viewer", "view");
  const strangerToken = await serviceAccount(TEAM, "stranger");
  // Slow, so that it is unfinished for as long as the tests look at it.
  const slower = (text) => text.replace("step=1;", "step=20;").replace("step=8", "step=160").replace("within: 70s", "within: 15m");
  await create(FOREIGN, words("salaries-secret", slower));
  await create(TEAM, words("nightly", slower));
  await create(TEAM, words("ten-thousand", (text) =>
    slower(text).replace("completions: 4", "completions: 10000\n  parallelism: 6")));
  for (const [namespace, name] of [[TEAM, "nightly"], [FOREIGN, "salaries-secret"], [TEAM, "ten-thousand"]]) await runs(namespace, name);
  const given = process.env.SHED_PAGE_URL;
  const forward = given ? undefined : new Forward(await freePort());
  await forward?.start();
  return {
    url: given?.replace(/[/]$/, "") ?? `https://localhost:${forward.port}`,
    token,
    strangerToken,
    showcase: { namespace: TEAM, name: "nightly" },
    big: { namespace: TEAM, name: "ten-thousand", tasks: 10_000, attempts: 1 },
    foreign: { namespace: FOREIGN, name: "salaries-secret" },
    createJob: (name) => create(TEAM, words(name, (text) => text.replace("step=1;", "step=3;"))),
    deleteJob: (name) => kubectl(["--namespace", TEAM, "delete", "deadlinejob", name, "--wait=false"]),
    shortSession: async () => ({
      token: await serviceAccount(TEAM, "leaver", "view"),
      // A token ends with its service account.
      end: () => kubectl(["--namespace", TEAM, "delete", "serviceaccount", "leaver"]),
      reason: /[.]$/,
    }),
    cut: forward && (async () => forward.stop()),
    restore: () => forward.start(),
    close: async () => {
      forward?.stop();
      await close();
    },
  };
}

function close() {
  return kubectl(["delete", "namespace", TEAM, FOREIGN, "--ignore-not-found"]);
}
