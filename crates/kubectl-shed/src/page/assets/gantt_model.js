// The attempts of a job as rows over time. Pure. Times are milliseconds since 1970.

import { clock, decimal, instant, percent } from "./format.js";
import { kindWord, stateWord } from "./words.js";

/** Whether an attempt in this state has not ended. */
export function isLive(state) {
  return state === "Pending" || state === "Running";
}

function row(attempt) {
  const start = instant(attempt.startTime);
  const end = instant(attempt.endTime);
  return {
    key: `${attempt.task}.${attempt.attempt}`,
    task: attempt.task,
    attempt: attempt.attempt,
    kind: attempt.kind,
    state: attempt.state,
    node: attempt.node,
    start,
    end: end !== undefined && start !== undefined ? Math.max(start, end) : end,
    expected: isLive(attempt.state) ? instant(attempt.estimatedEndTime) : undefined,
    progress: decimal(attempt.progress),
    resumedFrom: decimal(attempt.resumedFrom) || undefined,
    resumePoint: decimal(attempt.resumePoint) || undefined,
  };
}

const byTask = (a, b) => a.task - b.task || a.attempt - b.attempt;

/** The attempts of a record as rows, by task and attempt. */
export function ganttRows(record) {
  return (record?.attempts ?? []).map(row).sort(byTask);
}

/** The rows that are wanted, in the wanted order; attempts of one task stay together. */
export function arranged(rows, { only = "all", order = "task" }) {
  const tasks = new Map();
  for (const one of rows) {
    const task = tasks.get(one.task);
    if (task) task.push(one);
    else tasks.set(one.task, [one]);
  }
  const isWanted = {
    all: () => true,
    several: (task) => task.length > 1,
    live: (task) => task.some((one) => isLive(one.state)),
  }[only];
  const groups = [...tasks.values()].filter(isWanted);
  if (order === "end") {
    const keys = new Map(groups.map((task) => [task, Math.min(...task.map(endOf))]));
    groups.sort((a, b) => keys.get(b) - keys.get(a) || byTask(a[0], b[0]));
  }
  if (order === "progress") {
    const keys = new Map(groups.map((task) => [task, Math.max(...task.map(progressOf))]));
    groups.sort((a, b) => keys.get(a) - keys.get(b) || byTask(a[0], b[0]));
  }
  return groups.flat();
}

/** When an attempt ends or should end; attempts without any known time end first. */
function endOf(one) {
  if (one.state === "Won") return one.end ?? 0;
  return isLive(one.state) ? one.expected ?? 0 : Number.MAX_SAFE_INTEGER;
}

function progressOf(one) {
  if (one.state === "Won") return 1;
  return isLive(one.state) ? one.progress ?? 0 : -1;
}

/** The first and the last moment of a chart, and the lines in it. A distant deadline would leave no space for bars. */
export function ganttSpan(rows, job, now) {
  const hasEnded = job.completionTime !== undefined || job.phase === "Complete" || job.phase === "Failed";
  const present = hasEnded ? undefined : now;
  const deadline = instant(job.deadline);
  const expected = hasEnded ? undefined : instant(job.estimatedCompletionTime);
  let from = Infinity;
  let to = present ?? -Infinity;
  for (const one of rows) {
    if (one.start === undefined) continue;
    from = Math.min(from, one.start);
    to = Math.max(to, one.expected ?? one.end ?? one.start);
  }
  if (from === Infinity) from = to === -Infinity ? now : to - 60_000;
  to = Math.max(to, from + 1000);
  const isNear = (time) => time !== undefined && time >= from && time <= to + (to - from) * 2;
  for (const time of [expected, deadline]) if (isNear(time)) to = Math.max(to, time);
  // A little space for the words at the right end.
  return { from, to: to + (to - from) * 0.03, now: present, deadline, expected };
}

/** When an attempt was at this progress, if it went at an even pace. */
export function timeOfProgress(one, progress, now) {
  const begun = one.resumedFrom ?? 0;
  const end = one.end ?? now;
  if (one.start === undefined || one.progress === undefined || one.progress <= begun) return undefined;
  if (progress < begun || progress > one.progress) return undefined;
  return one.start + ((progress - begun) / (one.progress - begun)) * (end - one.start);
}

/** An attempt in words. */
export function described(one, now) {
  const parts = [`Task ${one.task}, attempt ${one.attempt}: ${kindWord(one.kind)}${one.node ? ` on ${one.node}` : ""}`];
  const at = one.progress !== undefined && one.state !== "Won" ? ` at ${percent(one.progress)}` : "";
  parts.push(`${stateWord(one.state)}${at}`);
  if (one.resumedFrom) parts.push(`resumed from ${percent(one.resumedFrom)}`);
  if (one.resumePoint) parts.push(`a successor could resume from ${percent(one.resumePoint)}`);
  if (one.start !== undefined) parts.push(`from ${clock(one.start, now)}`);
  if (one.end !== undefined) parts.push(`to ${clock(one.end, now)}`);
  else if (one.expected !== undefined) parts.push(`expected to end at ${clock(one.expected, now)}`);
  return `${parts.join(", ")}.`;
}
