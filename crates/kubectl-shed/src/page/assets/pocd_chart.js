// A job's PoCD over time as a line.

import { element, setText, svg } from "./dom.js";
import { axisMarks, clock, decimal, instant } from "./format.js";

const HEIGHT = 180;
const [LEFT, RIGHT, TOP, BOTTOM] = [34, 14, 22, 24];

/** The chart, with a table of its points. */
export class PocdChart {
  constructor(now) {
    this.now = now;
    this.picture = element("div", { class: "pocd" });
    this.words = element("p", { class: "explanation" });
    this.rows = element("tbody");
    this.details = element("details", {}, element("summary", {}, "PoCD as a table"),
      element("table", {}, element("caption", {}, "PoCD over time, newest first"),
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Time"),
          element("th", { scope: "col", class: "number" }, "PoCD"))), this.rows));
    this.node = element("div", {}, this.picture, this.words, this.details);
    this.resizes = new ResizeObserver(() => this.draw());
    this.resizes.observe(this.picture);
  }

  /** Shows the points of a job's record. */
  show(job) {
    this.job = job;
    const points = (job.record?.pocd ?? []).map(({ time, pocd }) => ({ time: instant(time), text: pocd, pocd: decimal(pocd) }));
    this.points = points.filter(({ time, pocd }) => time !== undefined && pocd !== undefined);
    const isEmpty = this.points.length === 0;
    this.details.hidden = this.picture.hidden = isEmpty;
    if (isEmpty) setText(this.words, job.deadline ? "The record has no PoCD." : "The job has no deadline, so it has no PoCD.");
    const key = JSON.stringify(this.points);
    if (key !== this.key) {
      this.key = key;
      this.rows.replaceChildren(...this.points.toReversed().map(({ time, text }) => element("tr", {},
        element("td", {}, clock(time, this.now())), element("td", { class: "number" }, text))));
    }
    this.draw();
  }

  draw() {
    const width = this.picture.clientWidth;
    if (!this.points?.length || width === 0) return;
    const last = this.points.at(-1);
    setText(this.words, this.sentence(last));
    this.picture.replaceChildren(this.drawn(width, last));
  }

  sentence(last) {
    const deadline = instant(this.job.deadline);
    const lowest = this.points.reduce((least, point) => (point.pocd < least.pocd ? point : least));
    const parts = [`PoCD ${last.text} at ${clock(last.time, this.now())}`];
    if (lowest.pocd < last.pocd) parts.push(`lowest ${lowest.text} at ${clock(lowest.time, this.now())}`);
    if (deadline !== undefined) parts.push(`deadline ${clock(deadline, this.now())}`);
    return `${parts.join("; ")}.`;
  }

  drawn(width, last) {
    const from = this.points[0].time;
    const deadline = instant(this.job.deadline);
    const end = instant(this.job.completionTime);
    let to = Math.max(last.time, end ?? this.now(), from + 60_000);
    // A distant deadline would leave no space for the line.
    if (deadline > from && deadline <= to + (to - from) * 2) to = Math.max(to, deadline);
    const x = (time) => LEFT + ((time - from) / (to - from)) * (width - LEFT - RIGHT);
    const y = (pocd) => TOP + (1 - pocd) * (HEIGHT - TOP - BOTTOM);
    const line = this.points.map(({ time, pocd }) => `${x(time).toFixed(1)},${y(pocd).toFixed(1)}`).join(" ");
    // The last estimate holds until now, or until the job's end.
    const held = Math.min(end ?? this.now(), to);
    return svg("svg", { width, height: HEIGHT, role: "img", "aria-label": `PoCD over time. ${this.sentence(last)}` },
      ...[0, 0.5, 1].flatMap((pocd) => [
        svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(pocd), y2: y(pocd) }),
        svg("text", { x: LEFT - 8, y: y(pocd) + 4, "text-anchor": "end" }, pocd.toFixed(1))]),
      ...axisMarks(from, to, Math.max(2, width / 90)).filter(({ time }) => x(time) > LEFT + 14 && x(time) < width - 30)
        .map(({ time, text }) => svg("text", { x: x(time), y: HEIGHT - 6, "text-anchor": "middle" }, text)),
      svg("polygon", { class: "area", points: `${x(from)},${y(0)} ${line} ${x(last.time)},${y(0)}` }),
      svg("polyline", { class: "line", points: line }),
      held > last.time ? svg("line", { class: "held", x1: x(last.time), x2: x(held), y1: y(last.pocd), y2: y(last.pocd) }) : "",
      svg("circle", { class: "point", cx: x(last.time), cy: y(last.pocd), r: 3.5 }),
      ...vertical("deadline", deadline, { from, to, x, width }),
      ...vertical(end === undefined ? "now" : "end", end ?? this.now(), { from, to, x, width }, deadline));
  }

  /** Moves the line of the present. */
  tick() {
    if (this.points?.length && !this.job.completionTime) this.draw();
  }

  leave() {
    this.resizes.disconnect();
  }
}

function vertical(name, time, { from, to, x, width }, other) {
  if (time === undefined || time < from || time > to) return [];
  const at = x(time);
  // Two words at one place would cover each other.
  const isClose = other !== undefined && Math.abs(x(other) - at) < 60;
  const anchor = isClose || at > width - 40 ? "end" : "middle";
  return [
    svg("line", { class: name, x1: at, x2: at, y1: TOP - 6, y2: HEIGHT - BOTTOM }),
    svg("text", { class: `${name}-text`, x: isClose ? at - 4 : Math.min(at, width - 4), y: 11, "text-anchor": anchor }, name),
  ];
}
