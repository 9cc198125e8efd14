// The jobs, those most at risk first.

import { KeyedChildren, element, hidden, mark, setContent, setText, table, tableRow, timeElement } from "./dom.js";
import { clock, count, decimal, instant, relative, signedSpan, timeZone, whole } from "./format.js";
import { jobRoute, jobsRoute } from "./routes.js";
import { jobsPath } from "./requests.js";
import { cause, hasEnded, phaseMark, pocdLevel } from "./words.js";

const COLUMNS = [
  { name: "Job" }, { name: "Phase" }, { name: "PoCD", number: true }, { name: "Deadline" }, { name: "Expected end" },
  { name: "Slack", number: true }, { name: "Tasks" }, { name: "Clones", number: true }, { name: "Cause" },
];
/** Jobs that are shown, until the user asks for more. */
const PAGE = 500;

const keyOf = (job) => `${job.kind}/${job.namespace}/${job.name}`;

/** The list of jobs. */
export class JobsView {
  title = "Jobs";

  constructor(route, services) {
    Object.assign(this, { route, services, jobs: [], limit: PAGE });
    this.heading = element("h1", { tabindex: "-1" }, "Jobs by risk");
    this.summary = element("p", { class: "summary", id: "jobs-summary" });
    this.message = element("p", { class: "message error", role: "alert" });
    this.notes = element("p", { class: "message", id: "jobs-notes", hidden: true });
    this.filter = element("input", {
      type: "search", id: "filter", value: route.filter, autocomplete: "off", spellcheck: "false",
      input: () => this.choose(),
    });
    this.ended = element("input", { type: "checkbox", id: "ended", change: () => this.choose() });
    this.ended.checked = route.ended;
    this.more = element("button", { type: "button", hidden: true, click: () => this.readMore() }, "Show more jobs");
    this.empty = element("p", { class: "empty", id: "jobs-empty", hidden: true });
    const { region, body } = table({
      caption: `Jobs, the lowest PoCD first. Times are in ${timeZone()}.`, columns: COLUMNS, className: "jobs",
    });
    this.region = region;
    this.rows = new KeyedChildren(body, { key: keyOf, make: makeRow, update: (row, job) => this.updateRow(row, job) });
    this.node = element("div", {}, element("div", { class: "heading" }, this.heading, this.summary), this.message, this.notes,
      element("form", { class: "tools", role: "search", submit: (event) => event.preventDefault() },
        element("label", { for: "filter" }, "Filter"), this.filter,
        element("span", { class: "choice" }, this.ended, element("label", { for: "ended" }, "Ended jobs too"))),
      region, this.empty, this.more);
  }

  get path() {
    return jobsPath({ limit: this.limit, ended: this.route.ended });
  }

  /** Another address of this view, such as after the back button. */
  follow(route) {
    const isOther = route.ended !== this.route.ended;
    this.route = route;
    if (this.filter.value !== route.filter) this.filter.value = route.filter;
    this.ended.checked = route.ended;
    this.show();
    if (isOther) {
      this.limit = PAGE;
      this.services.reload();
    }
  }

  choose() {
    const route = jobsRoute({ filter: this.filter.value, ended: this.ended.checked });
    this.services.go(route, { replace: true });
    this.follow({ ...this.route, filter: this.filter.value, ended: this.ended.checked });
  }

  readMore() {
    this.limit += PAGE;
    this.heading.focus();
    this.services.reload();
  }

  refuse(error) {
    setText(this.message, error.message);
  }

  accept(answer) {
    setText(this.message, "");
    setText(this.notes, answer.notes.join(" "));
    this.notes.hidden = answer.notes.length === 0;
    const byKey = new Map(answer.jobs.map((job) => [keyOf(job), job]));
    this.announceChanges(byKey);
    this.jobs = [...byKey.values()];
    this.byKey = byKey;
    Object.assign(this, { total: answer.total, namespace: answer.namespace });
    this.show();
  }

  /** New jobs and ends, if they are few enough to be reported. */
  announceChanges(byKey) {
    if (!this.byKey || this.limit > PAGE) return;
    const reported = [];
    for (const [key, job] of byKey) {
      const old = this.byKey.get(key);
      if (!old) reported.push(`${job.name} is new`);
      else if (old.phase !== job.phase) reported.push(`${job.name} is ${job.phase}`);
    }
    if (reported.length > 0 && reported.length <= 3) this.services.announce(`${reported.join(", ")}.`);
  }

  show() {
    const words = this.route.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (job) => {
      const text = `${job.namespace}/${job.name} ${job.kind} ${job.phase} ${cause(job)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const shown = this.jobs.filter(matches);
    this.rows.show(shown);
    this.region.hidden = shown.length === 0;
    this.empty.hidden = shown.length > 0 || !this.byKey;
    setText(this.empty, this.emptyText());
    this.more.hidden = !this.hasMore;
    setText(this.summary, this.summaryText(shown.length));
  }

  get hasMore() {
    return this.total > this.jobs.length;
  }

  emptyText() {
    if (this.jobs.length > 0) return "No job matches the filter.";
    return this.route.ended ? "There are no jobs." : "There are no unfinished jobs.";
  }

  summaryText(shown) {
    if (!this.byKey) return "";
    const parts = [this.route.ended ? count(this.total, "job", "jobs") : count(this.total, "unfinished job", "unfinished jobs")];
    if (this.hasMore) parts.push(`${whole(this.jobs.length)} loaded`);
    if (shown < this.jobs.length) parts.push(`${whole(shown)} shown`);
    parts.push(this.namespace ? `namespace ${this.namespace}` : "all namespaces");
    return parts.join(" \u00b7 ");
  }

  updateRow(row, job) {
    const now = this.services.now();
    const { cells } = row;
    row.job = job;
    row.classList.toggle("ended", hasEnded(job));
    setContent(cells[1], job.phase, () => [mark(phaseMark(job.phase)), job.phase]);
    setContent(cells[2], `${job.pocd} ${job.calibratedPoCD}`, () => pocd(job));
    showDeadline(cells[3], job, now);
    showEnd(cells[4], job, now);
    const slack = slackSeconds(job);
    setText(cells[5], slack === undefined ? "\u2013" : signedSpan(slack));
    cells[5].classList.toggle("bad", slack < 0);
    setContent(cells[6], `${job.succeeded} ${job.active} ${job.waiting} ${job.tasks}`, () => tasks(job));
    setText(cells[7], String(job.clones));
    setText(cells[8], cause(job) || "\u2013");
  }

  tick(now) {
    for (const row of this.rows.nodes.values()) showDeadline(row.cells[3], row.job, now);
  }
}

function makeRow(job) {
  return tableRow(COLUMNS, element("a", { href: jobRoute(job) }, job.name),
    element("span", { class: "under" }, hidden("in namespace "), job.namespace, job.kind === "Job" ? " \u00b7 Job" : ""));
}

/** PoCD with a bar of that length, and what became of jobs with such a PoCD. */
export function pocd(job) {
  const value = decimal(job.pocd);
  if (value === undefined) return ["\u2013"];
  const bar = element("span", { class: `meter ${pocdLevel(value)}`, "aria-hidden": "true" }, element("span"));
  bar.firstChild.style.inlineSize = `${value * 100}%`;
  const calibrated = job.calibratedPoCD && element("span", { class: "under" }, `calibrated ${job.calibratedPoCD}`);
  return [element("span", { class: "figure" }, job.pocd), bar, calibrated];
}

/** From the end of a job, or its expected end, to its deadline. */
export function slackSeconds(job) {
  const [deadline, completed] = [instant(job.deadline), instant(job.completionTime)];
  if (completed !== undefined && deadline !== undefined) return (deadline - completed) / 1000;
  return job.slackSeconds;
}

function showDeadline(cell, job, now) {
  const deadline = instant(job.deadline);
  if (deadline === undefined) return setText(cell, "\u2013");
  setContent(cell, `${deadline} ${new Date(now).toDateString()}`, () => [
    timeElement(deadline, clock(deadline, now)), element("span", { class: "under" })]);
  setText(cell.lastChild, hasEnded(job) ? "" : relative(deadline, now));
  cell.lastChild.classList.toggle("bad", !hasEnded(job) && deadline < now);
}

function showEnd(cell, job, now) {
  const completed = instant(job.completionTime);
  const end = completed ?? instant(job.estimatedCompletionTime);
  if (end === undefined) return setText(cell, "\u2013");
  setContent(cell, `${completed} ${end} ${new Date(now).toDateString()}`, () => [
    timeElement(end, clock(end, now)), completed !== undefined && element("span", { class: "under" }, "ended")]);
}

function tasks(job) {
  const share = (part) => (job.tasks ? `${(part / job.tasks) * 100}%` : "0");
  const bar = element("span", { class: "meter tasks", "aria-hidden": "true" }, element("span"), element("span", { class: "active" }));
  bar.children[0].style.inlineSize = share(job.succeeded);
  bar.children[1].style.inlineSize = share(Math.min(job.active, job.tasks - job.succeeded));
  const live = [job.active && `${whole(job.active)} active`, job.waiting && `${whole(job.waiting)} waiting`].filter(Boolean);
  return [element("span", { class: "figure" }, `${whole(job.succeeded)}/${whole(job.tasks)}`, hidden(" done")), bar,
    element("span", { class: "under" }, live.join(", "))];
}
