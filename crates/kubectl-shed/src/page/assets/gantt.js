// The chart of a job's attempts: a canvas with a window of rows, an overview of all of them, a table of the window.

import { AttemptsTable } from "./attempts_table.js";
import { element, setText } from "./dom.js";
import { count, whole } from "./format.js";
import { arranged, described, ganttRows, ganttSpan } from "./gantt_model.js";
import { AXIS, colorsOf, paintOverview, paintWindow } from "./gantt_paint.js";

/** Rows of a window, from near to far. */
const ZOOMS = [12, 24, 48, 96];
/** Height of the rows' part of a full window in CSS pixels. */
const HEIGHT = 480;

const ORDERS = [["task", "task"], ["end", "latest end first"], ["progress", "least progress first"]];
const CHOICES = [["all", "all attempts"], ["several", "tasks with several attempts"], ["live", "unfinished tasks"]];

function select(id, label, options, change) {
  const node = element("select", { id, change: (event) => change(event.target.value) },
    ...options.map(([value, text]) => element("option", { value }, text)));
  return element("span", { class: "choice" }, element("label", { for: id }, label), node);
}

/** The chart. `onOpen(task)` is called when the user opens a task. */
export class Gantt {
  constructor({ onOpen, now }) {
    Object.assign(this, { onOpen, now, zoom: 1, first: 0, rows: [], all: [], choice: { only: "all", order: "task" } });
    this.canvas = element("canvas", { class: "window", role: "img" });
    this.overview = element("canvas", { class: "overview", "aria-hidden": "true" });
    this.frame = element("div", { class: "frame", "aria-hidden": "true" });
    this.side = element("div", { class: "side" }, this.overview, this.frame);
    this.readout = element("p", { class: "readout" });
    this.empty = element("p", { class: "empty" });
    this.table = new AttemptsTable({
      onMove: (index) => this.reveal(index),
      onActive: (one) => this.choose(one?.key),
      onOpen: (one) => one && this.onOpen(one.task),
    });
    this.tools = this.makeTools();
    this.chart = element("div", { class: "gantt" }, this.canvas, this.side);
    this.node = element("div", {}, this.tools, this.chart, this.empty, this.readout, this.table.node);
    this.listen();
  }

  makeTools() {
    this.nearer = element("button", { type: "button", "aria-label": "Fewer, higher rows", click: () => this.zoomBy(-1) }, "+");
    this.farther = element("button", { type: "button", "aria-label": "More, lower rows", click: () => this.zoomBy(1) }, "\u2212");
    this.size = element("span", { class: "figure" });
    this.zooming = element("span", { class: "choice" }, element("span", {}, "Rows"), this.farther, this.size, this.nearer);
    this.task = element("input", { type: "number", id: "go-to-task", min: "0", step: "1" });
    this.going = element("form", { class: "choice", submit: (event) => this.goToTask(event) },
      element("label", { for: "go-to-task" }, "Go to task"), this.task, element("button", { type: "submit" }, "Go"));
    return element("div", { class: "tools" },
      select("gantt-only", "Show", CHOICES, (only) => this.arrange({ only })),
      select("gantt-order", "Order", ORDERS, (order) => this.arrange({ order })), this.zooming, this.going);
  }

  listen() {
    this.resizes = new ResizeObserver(() => this.paint(true));
    this.resizes.observe(this.chart);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => this.paint(true);
    this.scheme.addEventListener("change", this.repaint);
    // Over the chart itself the wheel scrolls the page, as everywhere.
    this.side.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.scrollTo(this.first + Math.sign(event.deltaY) * Math.ceil(this.count / 3));
    }, { passive: false });
    this.canvas.addEventListener("pointermove", (event) => this.choose(this.rowAt(event)?.key));
    this.canvas.addEventListener("click", (event) => {
      const one = this.rowAt(event);
      if (one) this.onOpen(one.task);
    });
    const drag = (event) => {
      if (event.buttons !== 1) return;
      this.side.setPointerCapture(event.pointerId);
      const share = (event.clientY - this.side.getBoundingClientRect().top) / this.side.clientHeight;
      this.scrollTo(Math.round(share * this.rows.length - this.count / 2));
    };
    this.side.addEventListener("pointerdown", drag);
    this.side.addEventListener("pointermove", drag);
  }

  /** Shows a job as the server has it now. */
  show(job) {
    performance.mark("gantt-begin");
    this.job = job;
    this.all = ganttRows(job.record);
    this.rows = arranged(this.all, this.choice);
    this.scrollTo(this.first, true);
    performance.measure("gantt", { start: "gantt-begin", detail: { attempts: this.all.length, rows: this.rows.length } });
  }

  arrange(change) {
    Object.assign(this.choice, change);
    this.rows = arranged(this.all, this.choice);
    this.scrollTo(0, true);
  }

  /** Rows of the window. */
  get count() {
    return Math.max(Math.min(ZOOMS[this.zoom], this.rows.length), 1);
  }

  get rowHeight() {
    // A job of few attempts has a chart of few rows.
    return this.rows.length <= ZOOMS[1] && this.zoom === 1 ? 20 : HEIGHT / ZOOMS[this.zoom];
  }

  zoomBy(step) {
    const middle = this.first + this.count / 2;
    this.zoom = Math.min(Math.max(this.zoom + step, 0), ZOOMS.length - 1);
    this.scrollTo(Math.round(middle - this.count / 2), true);
  }

  scrollTo(first, isForced = false) {
    const bounded = Math.min(Math.max(first, 0), this.rows.length - this.count);
    if (bounded === this.first && !isForced) return;
    this.first = Math.max(bounded, 0);
    this.paint(isForced);
    this.table.show(this.rows, this.first, this.count, this.now());
  }

  /** Scrolls so far that a row is in the window. */
  reveal(index) {
    if (index < this.first) this.scrollTo(index);
    else if (index >= this.first + this.count) this.scrollTo(index - this.count + 1);
  }

  goToTask(event) {
    event.preventDefault();
    const wanted = Number(this.task.value);
    const index = this.rows.findIndex((one) => one.task === wanted);
    if (this.task.value === "" || index < 0) {
      setText(this.readout, `No attempt of task ${this.task.value} is shown.`);
      return;
    }
    this.table.focusRow(index);
  }

  rowAt(event) {
    const index = Math.floor((event.offsetY - AXIS) / this.rowHeight);
    return index >= 0 && index < this.count ? this.rows[this.first + index] : undefined;
  }

  choose(key) {
    if (key === this.active) return;
    this.active = key;
    this.paint(false);
  }

  /** Draws the window, and the overview too if its content is another one. */
  paint(isOverviewOld) {
    const isEmpty = this.rows.length === 0;
    this.chart.hidden = this.table.node.hidden = isEmpty;
    this.tools.hidden = this.all.length === 0;
    const hasOverview = this.rows.length > this.count;
    this.side.hidden = this.going.hidden = !hasOverview;
    this.zooming.hidden = this.rows.length <= ZOOMS[0];
    this.empty.hidden = !isEmpty;
    setText(this.empty, this.all.length === 0 ? "No attempt is known yet." : "No attempt is shown: choose others above.");
    if (isEmpty || !this.job || !this.chart.isConnected) return;
    this.nearer.disabled = this.zoom === 0;
    this.farther.disabled = this.zoom === ZOOMS.length - 1 || this.rows.length <= ZOOMS[this.zoom];
    setText(this.size, whole(this.count));
    const span = ganttSpan(this.all, this.job, this.now());
    const colors = colorsOf(this.chart);
    const height = AXIS + this.count * this.rowHeight;
    this.canvas.style.blockSize = `${height}px`;
    const layout = {
      width: this.canvas.clientWidth, count: this.count, rowHeight: this.rowHeight, margin: this.margin(),
      font: getComputedStyle(this.chart).fontFamily,
    };
    const shown = this.rows.slice(this.first, this.first + this.count);
    paintWindow(this.canvas, shown, span, layout, colors, this.active);
    if (hasOverview) this.paintSide(span, colors, height, isOverviewOld);
    const active = shown.find((one) => one.key === this.active);
    setText(this.readout, active ? described(active, this.now()) : "");
    const label = `Attempts over time: ${count(this.all.length, "attempt", "attempts")}. The table below has those in the window.`;
    if (this.canvas.getAttribute("aria-label") !== label) this.canvas.setAttribute("aria-label", label);
  }

  paintSide(span, colors, height, isOld) {
    const inner = height - AXIS;
    this.side.style.marginBlockStart = `${AXIS}px`;
    this.side.style.blockSize = `${inner}px`;
    if (isOld) paintOverview(this.overview, this.rows, span, { width: this.side.clientWidth, height: inner }, colors);
    const share = inner / this.rows.length;
    this.frame.style.insetBlockStart = `${Math.min(this.first * share, inner - 6)}px`;
    this.frame.style.blockSize = `${Math.max(this.count * share, 6)}px`;
  }

  /** Space for the names of the rows. */
  margin() {
    const longest = String(this.rows.reduce((most, one) => Math.max(most, one.task), 0)).length;
    return Math.max(longest * 7, 34) + 14;
  }

  leave() {
    this.resizes.disconnect();
    this.scheme.removeEventListener("change", this.repaint);
  }
}
