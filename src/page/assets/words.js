// Words and marks of jobs, attempts and nodes. A mark always stands with its word. Pure.

const PHASES = {
  Pending: "\u25cb", Running: "\u25b6", Suspended: "\u2016", Complete: "\u2713", Failed: "\u2717",
};

/** The mark of a phase. */
export function phaseMark(phase) {
  return PHASES[phase] ?? "\u00b7";
}

/** Whether a job has ended. */
export function hasEnded(job) {
  return job.phase === "Complete" || job.phase === "Failed";
}

/** How much a PoCD needs attention: `good`, `fair` or `poor`. */
export function pocdLevel(pocd) {
  if (pocd >= 0.9) return "good";
  return pocd >= 0.5 ? "fair" : "poor";
}

/** What lowers the PoCD of a job most. */
export function cause({ risk, waiting }) {
  if (!risk) return waiting ? `${waiting} waiting for a slot` : "";
  const task = risk.task === undefined ? "tasks" : `task ${risk.task}`;
  const node = risk.node ? ` on ${risk.node}` : "";
  switch (risk.cause) {
    case "Failed": return `failed for good: ${task}`;
    case "NotStarted": return "tasks have not started";
    case "Waiting": return "tasks wait for a slot";
    case "Straggler": return `straggler: ${task}${node}`;
    case "Restarts": return `failed before: ${task}${node}`;
    case "Silent": return `no report: ${task}${node}`;
    case "Slow": return "all tasks are slow";
    default: return risk.cause;
  }
}

const KINDS = { Original: "original", Clone: "clone", Retry: "retry" };
/** The kind of an attempt. */
export function kindWord(kind) {
  return KINDS[kind] ?? kind;
}

const STATES = {
  Pending: ["\u25cb", "pending"], Running: ["\u25b6", "running"], Won: ["\u2713", "won"],
  Stopped: ["\u25a0", "stopped"], Failed: ["\u2717", "failed"], Disrupted: ["\u21af", "disrupted"],
  Late: ["!", "late"],
};
/** The mark of an attempt's state. */
export function stateMark(state) {
  return (STATES[state] ?? ["\u00b7"])[0];
}
/** The state of an attempt. */
export function stateWord(state) {
  return (STATES[state] ?? ["", state])[1];
}

const NODES = { Slow: "\u25bc", Normal: "\u25cf", Unknown: "?" };
/** The mark of a node's verdict. */
export function verdictMark(verdict) {
  return NODES[verdict] ?? "\u00b7";
}
