// One job: facts, PoCD over time, attempts over time, decisions.

import { Decisions } from "./decisions.js";
import { element, mark, setContent, setText, timeElement } from "./dom.js";
import { Events } from "./events.js";
import { clock, count, instant, relative, signedSpan, timeZone, whole } from "./format.js";
import { Gantt } from "./gantt.js";
import { pocd, slackSeconds } from "./jobs_view.js";
import { legend } from "./legend.js";
import { PocdChart } from "./pocd_chart.js";
import { jobRoute, jobsRoute } from "./routes.js";
import { jobPath } from "./requests.js";
import { TaskPanel } from "./task_panel.js";
import { cause, hasEnded, phaseMark } from "./words.js";

const FACTS = ["Phase", "PoCD", "Deadline", "Expected end", "Slack", "Tasks", "Clones", "Cause"];

/** A job. */
export class JobView {
  constructor(route, services) {
    Object.assign(this, { route, services, name: route.job });
    this.title = `${route.job.namespace}/${route.job.name}`;
    const now = services.now;
    const taskRoute = (task) => jobRoute(route.job, task);
    this.heading = element("h1", { tabindex: "-1" }, route.job.name);
    this.kind = element("p", { class: "summary" }, `namespace ${route.job.namespace}`);
    this.message = element("p", { class: "message error", role: "alert" });
    this.facts = Object.fromEntries(FACTS.map((name) => [name, element("dd")]));
    this.pocd = new PocdChart(now);
    this.gantt = new Gantt({ now, onOpen: (task) => services.go(taskRoute(task)) });
    this.panel = new TaskPanel({ now, route: taskRoute, onClose: () => this.closeTask() });
    this.decisions = new Decisions({ now, route: taskRoute });
    this.events = new Events({ now });
    this.notes = element("p", { class: "explanation" });
    this.content = element("div", { hidden: true }, this.overview(), this.attempts(), this.panel.node,
      section("decisions", "Decisions", this.decisions.node,
        element("p", { class: "explanation" }, "Gain and price are in expected deadlines met. shed starts a clone if its gain is ",
          "at least its price.")),
      section("events", "Events", this.events.node));
    this.node = element("div", {},
      element("p", { class: "trail" }, element("a", { href: jobsRoute() }, "Jobs"), " / "),
      element("div", { class: "heading" }, this.heading, this.kind), this.message, this.content);
  }

  get path() {
    return jobPath(this.name);
  }

  refuse(error) {
    setText(this.message, error.message);
  }

  overview() {
    const facts = element("dl", { class: "facts" },
      ...FACTS.map((name) => element("div", {}, element("dt", {}, name), this.facts[name])));
    return element("div", { class: "columns" }, section("facts", "State", facts),
      section("pocd", "PoCD over time", this.pocd.node));
  }

  attempts() {
    return section("attempts", "Attempts over time", legend(), this.gantt.node, this.notes);
  }

  accept(job) {
    setText(this.message, "");
    this.announceChanges(job);
    this.job = job;
    setText(this.kind, `${job.kind} in namespace ${job.namespace}`);
    this.content.hidden = false;
    this.showFacts(this.services.now());
    this.pocd.show(job);
    this.gantt.show(job);
    this.decisions.show(job);
    this.events.show(job);
    this.showTask();
    setText(this.notes, notes(job, this.services.now()));
  }

  /** A new phase, and clones that were granted. */
  announceChanges(job) {
    if (!this.job) return;
    const reported = [];
    if (job.phase !== this.job.phase) reported.push(`The job is ${job.phase}.`);
    if (job.clones > this.job.clones) reported.push(`${count(job.clones, "clone runs", "clones run")}.`);
    if (reported.length) this.services.announce(reported.join(" "));
  }

  showFacts(now) {
    const { job, facts } = this;
    setContent(facts.Phase, job.phase, () => [mark(phaseMark(job.phase)), job.phase]);
    setContent(facts.PoCD, `${job.pocd} ${job.calibratedPoCD}`, () => pocd(job));
    showTime(facts.Deadline, instant(job.deadline), now, hasEnded(job) ? undefined : now);
    const completed = instant(job.completionTime);
    showTime(facts["Expected end"], completed ?? instant(job.estimatedCompletionTime), now, completed ?? now, completed && "ended");
    const slack = slackSeconds(job);
    setText(facts.Slack, slack === undefined ? "\u2013" : signedSpan(slack));
    facts.Slack.classList.toggle("bad", slack < 0);
    const tasks = [`${whole(job.succeeded)} of ${whole(job.tasks)} done`];
    if (job.active) tasks.push(`${whole(job.active)} active`);
    if (job.waiting) tasks.push(`${whole(job.waiting)} waiting`);
    setText(facts.Tasks, tasks.join(", "));
    setText(facts.Clones, whole(job.clones));
    setText(facts.Cause, cause(job) || "\u2013");
  }

  /** The address names the task, so the back button closes it. */
  follow(route) {
    const isOther = route.task !== this.route.task;
    this.route = route;
    if (!this.job) return;
    this.showTask();
    if (isOther && route.task !== undefined) this.panel.heading.focus();
    if (isOther && route.task === undefined) this.focusAttempts();
  }

  showTask() {
    this.panel.show(this.job, this.route.task);
  }

  closeTask() {
    this.services.go(jobRoute(this.name));
  }

  focusAttempts() {
    const { table } = this.gantt;
    if (table.rows.length > 0) table.focusRow(table.active);
    else this.heading.focus();
  }

  tick(now) {
    if (!this.job || hasEnded(this.job)) return;
    this.showFacts(now);
    this.pocd.tick();
    this.gantt.paint(false);
  }

  leave() {
    this.pocd.leave();
    this.gantt.leave();
  }
}

function section(id, heading, ...children) {
  return element("section", { "aria-labelledby": `${id}-heading` }, element("h2", { id: `${id}-heading` }, heading), ...children);
}

/** A time with its distance from another one, or with a word. */
function showTime(node, time, now, from, word) {
  if (time === undefined) return setText(node, "\u2013");
  setContent(node, `${time} ${new Date(now).toDateString()}`, () => [
    timeElement(time, clock(time, now)), element("span", { class: "under" })]);
  setText(node.lastChild, word ?? (from === undefined ? "" : relative(time, from)));
}

/** What a reader must know about the record. */
function notes(job, now) {
  const { record } = job;
  const parts = [...job.notes];
  if (!record) return parts.join(" ");
  parts.unshift(`Times are in ${timeZone()}. shed wrote PoCD and progress at ${clock(instant(record.time), now)}.`);
  if (record.waiting) {
    const { tasks, reason } = record.waiting;
    parts.push(`${count(tasks, "task waits", "tasks wait")} for an attempt (${reason}).`);
  }
  return parts.join(" ");
}
