// `kubectl shed page` for jobs of a cluster, with the current kubeconfig.
//
// Environment: KUBECTL_SHED, the program; SHED_E2E_BUSYBOX, an image with a shell.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const IMAGE = process.env.SHED_E2E_BUSYBOX ?? "localhost/busybox:test";
const TEAM = "page-team";
const WORDS = new URL("../kubectl-shed.yaml", import.meta.url);

async function kubectl(args, input) {
  const running = promisify(execFile)("kubectl", args, { maxBuffer: 1 << 26 });
  if (input !== undefined) running.child.stdin.end(input);
  return (await running).stdout.trim();
}

/** The program at work. `url` is the address that it printed. */
async function serve() {
  const child = spawn(process.env.KUBECTL_SHED ?? "kubectl-shed", ["page", "--namespace", TEAM], { stdio: ["ignore", "pipe", "inherit"] });
  const [url] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    once(child, "exit").then(() => Promise.reject(new Error("kubectl shed page ended"))),
  ]);
  return { child, url };
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

/** Opens the backend: a namespace with jobs. */
export async function open() {
  await close();
  await kubectl(["create", "namespace", TEAM]);
  // Slow, so that it is unfinished for as long as the tests look at it.
  const slower = (text) => text.replace("step=1;", "step=20;").replace("step=8", "step=160").replace("within: 70s", "within: 15m");
  await create(TEAM, words("nightly", slower));
  await create(TEAM, words("ten-thousand", (text) =>
    slower(text).replace("completions: 4", "completions: 10000\n  parallelism: 6")));
  for (const name of ["nightly", "ten-thousand"]) await runs(TEAM, name);
  const { child, url } = await serve();
  return {
    url,
    showcase: { namespace: TEAM, name: "nightly" },
    big: { namespace: TEAM, name: "ten-thousand", tasks: 10_000, attempts: 1 },
    createJob: (name) => create(TEAM, words(name, (text) => text.replace("step=1;", "step=3;"))),
    deleteJob: (name) => kubectl(["--namespace", TEAM, "delete", "deadlinejob", name, "--wait=false"]),
    // A stopped program answers nothing; another one would have another secret.
    cut: async () => child.kill("SIGSTOP"),
    restore: async () => child.kill("SIGCONT"),
    close: async () => {
      child.kill();
      await close();
    },
  };
}

function close() {
  return kubectl(["delete", "namespace", TEAM, "--ignore-not-found"]);
}
