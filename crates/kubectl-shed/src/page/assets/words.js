// Words and marks of jobs, attempts and decisions. A mark always stands with its word. Pure.

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

const CAUSES = {
  TasksStraggling: "a few tasks are far behind", TasksSlow: "all tasks are slow", AttemptsFailing: "attempts failed",
  TasksFailed: "tasks failed for good", AttemptsNotStarted: "tasks have not started", TasksSilent: "tasks report nothing",
  InsufficientCapacity: "tasks wait for capacity",
  ShareInUse: "tasks wait for capacity", ActiveJobsLimit: "too many jobs of the namespace are active",
  ParallelismReached: "parallelism is reached",
};

/** Why the deadline of a job is at risk, by its condition. */
export function cause({ risk, waiting }) {
  if (!risk) return waiting ? `${waiting} waiting for a slot` : "";
  return CAUSES[risk.cause] ?? risk.cause;
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

const VERDICTS = {
  Granted: ["+", "got a clone"], Refused: ["\u2013", "got no clone"], Stopped: ["\u25a0", "had an attempt stopped"],
  Observed: ["\u25cb", "would have got a clone"],
};
/** The mark of a verdict, and what happened to the task. */
export function verdictWords(verdict) {
  return VERDICTS[verdict] ?? ["\u00b7", verdict];
}
