// Reasons of decisions in words, with what would change them: the words of `kubectl shed explain`. Pure.

const GRANTS = {
  Straggler: "the task was late, and a clone raised the job's PoCD",
  Admitted: "capacity was free",
  EndsLater: "the task was expected to end later than a new attempt would",
  Saves: "one more attempt was likely to save machine time",
  Overdue: "the rest of the attempt was long, compared with the mean of an attempt",
  Copies: "the policy runs copies of each task",
  Late: "the task was late, and one more attempt made a miss less likely",
};

const REFUSALS = {
  Capacity: ["no capacity was left for a clone",
    "add nodes, raise the operator's --capacity-share, or wait until other attempts finish"],
  NoNode: ["no node that the job may use had enough free capacity for a clone",
    "request less in the pod template, allow more nodes, or add one"],
  Hopeless: ["no clone could finish before the deadline",
    "move the deadline, or let tasks report checkpoints and set spec.resume: Checkpoint, so that clones start later in the task"],
  Maximum: ["the task had the maximum number of clones", "raise spec.speculation.maxClonesPerTask"],
  CloneFailures: ["two clones of the task failed",
    "read the logs of the failed clones; a task that cannot run twice needs spec.idempotency: None"],
  Disrupted: ["a clone of the task was evicted or lost recently",
    "nothing: shed tries again a little later. Give clones a higher priority if they are preempted often"],
  NotIdempotent: ["spec.idempotency: None declares that two copies of a task do harm",
    "create the job with spec.idempotency: Safe if copies are harmless, or Fenced to let one of them publish"],
  Observe: ["spec.speculation.mode is Observe", "set spec.speculation.mode to Enabled"],
  Budget: ["the policy's own limit of clones was reached",
    "nothing: the limit frees itself when clones end. An administrator can raise it in the operator's --policy"],
  Work: ["the planning pass ran out of its work budget",
    "nothing: the next pass begins with this job. If it lasts, the operator needs more CPU"],
  Target: ["the job's PoCD has reached spec.targetPoCD", "raise spec.targetPoCD"],
  Stopped: ["an administrator stopped new clones",
    "remove the annotation shed.dev/clones: stop of the job's namespace or of shed's namespace"],
  JobBudget: ["the job's budget of clones was used up", "raise spec.speculation.budget"],
};

const STOPS = {
  Prune: ["a sibling of it was kept, and this attempt would have gained too little"],
  Evict: ["a first attempt needed the slot of this clone; a sibling continues"],
  Replace: ["the attempt could not start: its image, its configuration or its node", "read the condition AttemptsBlocked"],
  Restart: ["it was so slow that a new attempt was expected to finish earlier"],
  Preempt: ["a more urgent job needed its slot; the task resumes from its checkpoint", "set spec.preemption to Never"],
  Abandon: ["its node does not report its end, so another attempt replaces it"],
  Settle: ["a sibling won the task"],
  Suspend: ["the job was suspended", "set spec.suspend to false"],
  JobEnd: ["the job ended"],
  Surplus: ["its task is not needed any more, or spec.parallelism was lowered"],
};

const OBSERVED = ["spec.speculation.mode is Observe, so shed only reports this clone", "set spec.speculation.mode to Enabled"];

/** Why shed decided so, and what would change it. A reason of a newer operator stays as it is. */
export function reasonOf({ verdict, reason }) {
  const known = {
    Granted: () => GRANTS[reason] && [GRANTS[reason]],
    Refused: () => REFUSALS[reason],
    Stopped: () => STOPS[reason],
    Observed: () => OBSERVED,
  }[verdict]?.();
  const [why, advice] = known ?? [reason];
  return { why, advice };
}

const VERDICTS = {
  Granted: ["+", "got a clone"], Refused: ["\u2013", "got no clone"], Stopped: ["\u25a0", "had an attempt stopped"],
  Observed: ["\u25cb", "would have got a clone"],
};

/** The mark of a verdict, and what happened to the task. */
export function verdictWords(verdict) {
  return VERDICTS[verdict] ?? ["\u00b7", verdict];
}

/** All texts, for a test that holds them to those of `kubectl shed explain`. */
export const REASONS = { GRANTS, REFUSALS, STOPS, OBSERVED };
