// All attempts of one task, with the decisions about it.

import { attemptRow, attemptsHead, fillAttempt } from "./attempts_table.js";
import { Decisions } from "./decisions.js";
import { KeyedChildren, element, setText } from "./dom.js";
import { ganttRows } from "./gantt_model.js";

/** The panel. `onClose` is called when the user closes it. */
export class TaskPanel {
  constructor({ now, route, onClose }) {
    this.now = now;
    this.heading = element("h2", { tabindex: "-1", id: "task-heading" });
    this.body = element("tbody");
    this.rows = new KeyedChildren(this.body, {
      key: (one) => one.key, make: () => attemptRow(), update: (row, one) => fillAttempt(row.cells, one, this.now()),
    });
    this.empty = element("p", { class: "empty" }, "The record has no attempt of this task: it waits, or it ended long ago.");
    this.decisions = new Decisions({ now, route });
    this.caption = element("caption");
    this.scroll = element("div", { class: "scroll", role: "region", tabindex: "0", "aria-labelledby": "task-heading" },
      element("table", { class: "attempts" }, this.caption, attemptsHead(), this.body));
    this.node = element("section", {
      class: "panel", "aria-labelledby": "task-heading", hidden: true,
      keydown: (event) => event.key === "Escape" && onClose(),
    }, element("div", { class: "heading" }, this.heading, element("button", { type: "button", click: onClose }, "Close")),
    this.scroll, this.empty, element("h3", {}, "Decisions about it"), this.decisions.node);
  }

  /** Shows a task of a job, or nothing without one. */
  show(job, task) {
    this.node.hidden = task === undefined;
    if (task === undefined) return;
    const rows = ganttRows(job.record).filter((one) => one.task === task);
    setText(this.heading, `Task ${task}`);
    setText(this.caption, `Attempts of task ${task}`);
    this.rows.show(rows);
    this.scroll.hidden = rows.length === 0;
    this.empty.hidden = rows.length > 0;
    this.decisions.show(job, task);
  }
}
