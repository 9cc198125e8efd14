// Jobs of a made-up cluster, as `kubectl shed page` would show them at a moment.

const MINUTE = 60_000;

/** Numbers that look random and are the same in every run. */
function* numbers(seed) {
  for (let state = seed; ;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

const time = (milliseconds) => new Date(Math.round(milliseconds / 1000) * 1000).toISOString().replace(".000", "");
const decimal = (number) => Math.min(Math.max(number, 0), 1).toFixed(3);

/** A job of twelve tasks with each mark of the chart. `begin` is its start. */
export function nightly(begin, now) {
  const at = (minutes) => time(begin + minutes * MINUTE);
  const elapsed = (now - begin) / MINUTE;
  const running = (from, pace, start) => decimal(from + (elapsed - start) * pace);
  const won = (task, from, to, node) =>
    ({ task, attempt: 0, kind: "Original", node, startTime: at(from), endTime: at(to), state: "Won" });
  const attempts = [
    won(0, 0.2, 31, "worker-1"), won(1, 0.2, 33.5, "worker-3"),
    { task: 2, attempt: 0, kind: "Original", node: "worker-2", startTime: at(0.2), endTime: at(36.2), progress: "0.640", state: "Stopped" },
    { task: 2, attempt: 1, kind: "Clone", node: "worker-1", startTime: at(20), endTime: at(36), resumedFrom: "0.250", state: "Won" },
    { task: 3, attempt: 0, kind: "Original", node: "worker-3", startTime: at(0.2), endTime: at(10), progress: "0.200", state: "Failed" },
    { task: 3, attempt: 1, kind: "Retry", node: "worker-3", startTime: at(10.2), progress: running(0, 0.024, 10.2), state: "Running", estimatedEndTime: at(52) },
    { task: 4, attempt: 0, kind: "Original", node: "worker-2", startTime: at(0.3), progress: running(0, 0.0105, 0.3), resumePoint: "0.400", state: "Running", estimatedEndTime: at(95) },
    { task: 4, attempt: 1, kind: "Clone", node: "worker-4", startTime: at(31.5), resumedFrom: "0.300", resumePoint: "0.400", progress: running(0.3, 0.028, 31.5), state: "Running", estimatedEndTime: at(56.5) },
    won(5, 0.4, 30, "worker-4"),
    { task: 6, attempt: 0, kind: "Original", node: "worker-5", startTime: at(4), endTime: at(22), progress: "0.500", resumePoint: "0.450", state: "Disrupted" },
    { task: 6, attempt: 1, kind: "Retry", node: "worker-1", startTime: at(23), resumedFrom: "0.450", progress: running(0.45, 0.022, 23), state: "Running", estimatedEndTime: at(48) },
    won(7, 1, 34, "worker-3"),
    { task: 8, attempt: 0, kind: "Original", node: "worker-4", startTime: at(30.5), progress: running(0, 0.033, 30.5), state: "Running" },
    { task: 9, attempt: 0, kind: "Original", node: "worker-1", startTime: at(31.5), progress: running(0, 0.034, 31.5), state: "Running" },
    { task: 10, attempt: 0, kind: "Original", state: "Pending" },
  ];
  const pocd = [[5, 0.95], [12, 0.941], [18, 0.93], [22, 0.71], [26, 0.55], [30, 0.42], [32, 0.688], [36, 0.713], [38, 0.874]]
    .filter(([minute]) => minute <= elapsed).map(([minute, value]) => ({ time: at(minute), pocd: decimal(value) }));
  const late = "the task was late, and a clone raised the job's PoCD";
  const explained = [
    { time: at(36.2), task: 2, verdict: "Stopped", reason: "Prune", price: "0.003",
      why: "a sibling of it was kept, and this attempt would have gained too little" },
    { time: at(31.5), task: 4, verdict: "Granted", reason: "Straggler", gain: "0.290", price: "0.020", why: late },
    { time: at(26), task: 4, verdict: "Refused", reason: "Capacity", why: "no capacity was left for a clone",
      advice: "add nodes, raise the operator's --capacity-share, or wait until other attempts finish" },
    { time: at(20), task: 2, verdict: "Granted", reason: "Straggler", gain: "0.310", price: "0.020",
      alternative: "wait for the next report, gain 0.004", why: late },
  ];
  const events = [
    { time: at(31.5), type: "Normal", reason: "CloneLaunched", message: "task 4 got a clone on worker-4", count: 1 },
    { time: at(26), type: "Warning", reason: "DeadlineAtRisk", message: "a few tasks are far behind the others: task 4", count: 2 },
  ];
  return {
    namespace: "team-a", name: "nightly", kind: "DeadlineJob", phase: "Running", deadline: at(60),
    pocd: "0.874", calibratedPoCD: "0.902", estimatedCompletionTime: at(56.5), slackSeconds: 210,
    tasks: 12, succeeded: 5, active: 7, clones: 1, waiting: 1, risk: { cause: "TasksStraggling" }, explained, events, notes: [],
    record: { time: time(now), pocd, attempts, omittedAttempts: 0, waiting: { reason: "InsufficientCapacity", tasks: 1 } },
  };
}

/** A job with this number of tasks, each with a live attempt, and clones of its stragglers. Returns it at a moment. */
export function bigJob(count, begin, namespace = "team-b", name = "ten-thousand") {
  const random = numbers(7);
  const next = () => random.next().value;
  const attempts = [];
  const paces = [];
  const add = (attempt, start, from, length) => {
    attempts.push({ ...attempt, startTime: time(start), state: "Running" });
    paces.push({ start, from, length });
  };
  for (let task = 0; task < count; task += 1) {
    const start = begin + (task / count) * 12 * MINUTE + next() * MINUTE;
    const isSlow = next() < 0.01;
    const length = (isSlow ? 70 : 30 + next() * 8) * MINUTE;
    const one = { task, attempt: 0, kind: "Original", node: `worker-${task % 400}` };
    add(isSlow ? { ...one, estimatedEndTime: time(start + length) } : one, start, 0, length);
    if (!isSlow) continue;
    const cloned = start + (8 + next() * 3) * MINUTE;
    add({ task, attempt: 1, kind: "Clone", node: `worker-${(task * 7) % 400}`, resumedFrom: "0.100",
      estimatedEndTime: time(cloned + 28 * MINUTE) }, cloned, 0.1, 31 * MINUTE);
  }
  const at = (minute) => time(begin + minute * MINUTE);
  const pocd = [[2, 0.99], [10, 0.981], [16, 0.9], [20, 0.962]].map(([minute, value]) => ({ time: at(minute), pocd: decimal(value) }));
  return (now) => {
    paces.forEach(({ start, from, length }, index) => {
      // A job that is never over: a test may look at it for long.
      attempts[index].progress = decimal(Math.min(from + (now - start) / length, 0.995));
    });
    return {
      namespace, name, kind: "Job", phase: "Running", deadline: at(55), pocd: "0.962", estimatedCompletionTime: at(50),
      slackSeconds: 300, tasks: count, succeeded: 0, active: attempts.length, clones: attempts.length - count, waiting: 0, explained: [], events: [], notes: [],
      record: { time: time(now), omittedAttempts: 0, attempts, pocd },
    };
  };
}

/** A job whose tasks all run since `begin` and end after `minutes`. */
export function plain({ namespace, name, tasks, begin, minutes, deadline, pocd, kind = "DeadlineJob", waiting = 0, risk }, now) {
  const share = Math.min((now - begin) / (minutes * MINUTE), 1);
  const isOver = share >= 1 && waiting === 0;
  const end = begin + minutes * MINUTE;
  const attempts = Array.from({ length: tasks - waiting }, (_, task) => ({
    task, attempt: 0, kind: "Original", node: `worker-${task % 5 + 1}`, startTime: time(begin),
    ...(isOver ? { endTime: time(end), state: "Won" } : { progress: decimal(share * (0.9 + (task % 5) * 0.02)), state: "Running" }),
  }));
  const end2 = deadline && { deadline: time(begin + deadline * MINUTE) };
  return {
    namespace, name, kind, phase: isOver ? "Complete" : "Running", ...end2,
    ...(isOver ? { completionTime: time(end) } : {
      pocd: pocd === undefined ? undefined : decimal(pocd), estimatedCompletionTime: time(end),
      slackSeconds: deadline ? (deadline - minutes) * 60 : undefined,
    }),
    tasks, succeeded: isOver ? tasks : 0, active: isOver ? 0 : tasks - waiting, clones: 0, waiting, risk: isOver ? undefined : risk, explained: [], events: [],
    notes: [],
    record: { time: time(now), attempts, omittedAttempts: 0, pocd: pocd === undefined ? [] : [{ time: time(begin), pocd: decimal(pocd) }] },
  };
}

/** Jobs for the list, by their start in minutes before now. */
export const LISTED = [
  { namespace: "team-a", name: "invoices", tasks: 40, ago: 48, minutes: 75, deadline: 70, pocd: 0.213, risk: { cause: "TasksSlow" } },
  { namespace: "team-b", name: "hourly-ingest", tasks: 60, ago: 12, minutes: 30, deadline: 45, pocd: 0.991, kind: "Job" },
  { namespace: "team-a", name: "thumbnails", tasks: 24, ago: 5, minutes: 22, deadline: 40, pocd: 0.998 },
  { namespace: "team-b", name: "reindex", tasks: 80, ago: 30, minutes: 120, deadline: 150, pocd: 0.806, waiting: 32, risk: { cause: "InsufficientCapacity" } },
  { namespace: "team-a", name: "statements", tasks: 16, ago: 25, minutes: 50, deadline: 60, pocd: 0.655, risk: { cause: "TasksSilent" } },
  { namespace: "team-b", name: "model-features", tasks: 32, ago: 9, minutes: 60, deadline: 90, pocd: 0.947, risk: { cause: "AttemptsFailing" } },
  { namespace: "team-a", name: "backfill-2025", tasks: 12, ago: 200, minutes: 900 },
  { namespace: "team-b", name: "exports", tasks: 10, ago: 90, minutes: 35, deadline: 60 },
  { namespace: "team-a", name: "rates", tasks: 6, ago: 180, minutes: 50, deadline: 45 },
  { namespace: "payroll", name: "salaries-secret", tasks: 9, ago: 10, minutes: 30, deadline: 60, pocd: 0.5, risk: { cause: "TasksSlow" } },
];
