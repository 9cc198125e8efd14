// The modules of the page without a browser: numbers as text, addresses, rows of the chart, waits.

import assert from "node:assert/strict";
import test, { mock } from "node:test";

import { axisMarks, clock, count, percent, relative, signedSpan, span, whole } from "../../crates/kubectl-shed/src/page/assets/format.js";
import { arranged, described, ganttRows, ganttSpan, timeOfProgress } from "../../crates/kubectl-shed/src/page/assets/gantt_model.js";
import { Poll } from "../../crates/kubectl-shed/src/page/assets/poll.js";
import { jobRoute, jobsRoute, parseRoute } from "../../crates/kubectl-shed/src/page/assets/routes.js";
import { bigJob, nightly } from "./fixture_data.mjs";

const NOW = Date.parse("2030-01-31T07:40:00Z");
const BEGIN = NOW - 39 * 60_000;

test("spans are those of kubectl shed", () => {
  const spans = [0, 59, 60, 750, 3599, 3600, 11_100, 86_400, 187_200].map(span).join(" ");
  assert.equal(spans, "0s 59s 1m00s 12m30s 59m59s 1h00m 3h05m 1d00h 2d04h");
  assert.deepEqual([signedSpan(-90), relative(NOW + 300_000, NOW), relative(NOW - 5000, NOW)], ["\u22121m30s", "in 5m00s", "5s ago"]);
});

test("a share below one is never a hundred percent", () => {
  assert.deepEqual([0, 0.424, 0.29, 0.999, 1].map(percent), ["0 %", "42 %", "29 %", "99 %", "100 %"]);
  assert.deepEqual([whole(7), whole(12345), count(1, "task", "tasks")], ["7", "12\u202f345", "1 task"]);
});

test("another day and another year are named", () => {
  const noon = new Date(2030, 0, 31, 12, 0, 5).getTime();
  assert.equal(clock(noon, noon), "12:00:05");
  assert.equal(clock(noon - 86_400_000, noon), "30 Jan 12:00:05");
  assert.equal(clock(noon - 366 * 86_400_000, noon), "30 Jan 2029 12:00:05");
});

test("marks of an axis are round, and no more than fit", () => {
  for (const [seconds, most] of [[5, 8], [3600, 10], [7000, 3], [86_400 * 30, 6], [1, 1]]) {
    const marks = axisMarks(NOW + 123, NOW + 123 + seconds * 1000, most);
    assert.ok(marks.length <= most + 1, `${seconds} ${marks.length}`);
    assert.ok(marks.every(({ time }) => time >= NOW + 123 && time % 1000 === 0));
  }
  const quarters = axisMarks(NOW, NOW + 3_600_000, 5).map(({ time }) => (time - NOW) / 60_000);
  assert.deepEqual(quarters.map((minute, index) => minute - quarters[0] - 15 * index), quarters.map(() => 0));
});

test("addresses keep names, filters and tasks", () => {
  const job = { namespace: "team-a", name: "nightly", kind: "Job" };
  assert.deepEqual(parseRoute(jobRoute(job, 0)), { view: "job", job, task: 0 });
  assert.deepEqual(parseRoute(jobsRoute({ filter: "a&b=c", ended: true })), { view: "jobs", filter: "a&b=c", ended: true });
  for (const hash of ["", "#", "#/nowhere", "#/jobs/only-namespace", "#/jobs/%E0%A4%A"]) {
    assert.equal(parseRoute(hash).view, "jobs", hash);
  }
});

test("rows are by task, and other orders keep the attempts of a task together", () => {
  const rows = ganttRows(nightly(BEGIN, NOW).record);
  const keys = (choice) => arranged(rows, choice).map(({ key }) => key).join(" ");
  assert.equal(keys({}), "0.0 1.0 2.0 2.1 3.0 3.1 4.0 4.1 5.0 6.0 6.1 7.0 8.0 9.0 10.0");
  assert.equal(keys({ only: "several" }), "2.0 2.1 3.0 3.1 4.0 4.1 6.0 6.1");
  assert.equal(keys({ only: "live" }), "3.0 3.1 4.0 4.1 6.0 6.1 8.0 9.0 10.0");
  // A clone that ends early counts for its task.
  assert.ok(keys({ order: "end", only: "several" }).startsWith("4.0 4.1 3.0 3.1"));
  assert.ok(keys({ order: "progress" }).startsWith("10.0 9.0 8.0"));
});

test("a chart spans attempts, expected ends and a near deadline", () => {
  const job = nightly(BEGIN, NOW);
  const rows = ganttRows(job.record);
  const near = ganttSpan(rows, job, NOW);
  assert.equal(near.from, BEGIN + 12_000);
  assert.ok(near.to >= BEGIN + 95 * 60_000 && near.now === NOW && near.deadline === BEGIN + 60 * 60_000);
  const distant = ganttSpan(rows, { ...job, deadline: "2031-01-01T00:00:00Z" }, NOW);
  assert.equal(distant.to, near.to);
  const over = ganttSpan(rows, { ...job, phase: "Complete" }, NOW);
  assert.deepEqual([over.now, over.expected], [undefined, undefined]);
  const none = ganttSpan([], { phase: "Pending" }, NOW);
  assert.ok(none.from < none.to);
});

test("a resume point is where the attempt was at that progress", () => {
  const one = { start: 0, end: 1000, progress: 0.6, resumedFrom: 0.2 };
  assert.equal(Math.round(timeOfProgress(one, 0.4, 5000)), 500);
  assert.equal(timeOfProgress(one, 0.1, 5000), undefined);
  assert.equal(timeOfProgress({ ...one, progress: undefined }, 0.4, 5000), undefined);
});

test("an attempt is described in words", () => {
  const clone = ganttRows(nightly(BEGIN, NOW).record).find(({ key }) => key === "4.1");
  const words = described(clone, NOW);
  for (const part of ["Task 4, attempt 1: clone on worker-4", "running at 51 %", "resumed from 30 %", "resume from 40 %"]) {
    assert.ok(words.includes(part), words);
  }
});

test("undecodable times and decimals are unknown, not errors", () => {
  const [one] = ganttRows({ attempts: [{ task: 0, attempt: 0, kind: "Novel", state: "Novel", startTime: "x", progress: "y" }] });
  assert.deepEqual([one.start, one.progress], [undefined, undefined]);
  assert.ok(described(one, NOW).includes("Novel"));
  assert.deepEqual(ganttRows(undefined), []);
});

test("ten thousand tasks are rows with clones", () => {
  const rows = ganttRows(bigJob(10_000, BEGIN)(NOW).record);
  assert.ok(rows.length > 10_000 && rows.some(({ kind }) => kind === "Clone"));
});

/** What a poll tells of these answers in turn, the last one from then on. */
async function polled(answers, steps) {
  const seen = { waits: [], whys: [], bodies: [], refusals: [] };
  mock.timers.enable({ apis: ["setTimeout"] });
  const listener = { addEventListener() {}, removeEventListener() {} };
  Object.assign(globalThis, {
    window: listener, document: { ...listener, hidden: false },
    fetch: async () => (answers.length > 1 ? answers.shift() : answers[0])(),
  });
  const poll = new Poll({
    path: "api/jobs", onBody: (body) => seen.bodies.push(body), onRefusal: ({ message }) => seen.refusals.push(message),
    onState(state, details) {
      if (state !== "waiting") return;
      seen.waits.push(details.seconds);
      seen.whys.push(details.why);
    },
  });
  for (let step = 0; step < steps; step += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    mock.timers.tick(60_000);
  }
  poll.close();
  mock.timers.reset();
  return seen;
}

const refused = (status, error) => () => new Response(JSON.stringify({ error }), { status });

test("waits between tries grow, and the reason is shown", async () => {
  const gone = () => Promise.reject(new TypeError("failed to fetch"));
  const { waits, whys } = await polled([refused(503, "the apiserver does not respond"), gone], 8);
  assert.deepEqual(waits, [1, 2, 4, 8, 15, 30, 30, 30]);
  assert.equal(whys[0], "The apiserver does not respond.");
  assert.match(whys[1], /kubectl shed page does not answer/);
});

test("an answer that is a refusal is shown, and the next one replaces it", async () => {
  const { waits, refusals, bodies } = await polled([refused(404, "no such job"), () => new Response(JSON.stringify({ jobs: [] }))], 3);
  assert.deepEqual([waits, refusals], [[], ["No such job."]]);
  assert.deepEqual(bodies, [{ jobs: [] }, { jobs: [] }]);
});
