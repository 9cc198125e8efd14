// The attempts of a window as a table: what the canvas shows, for screen readers and for the keyboard.

import { element, mark, setContent, setText } from "./dom.js";
import { clock, percent } from "./format.js";
import { kindWord, stateMark, stateWord } from "./words.js";

const COLUMNS = [
  { name: "Task", number: true }, { name: "Attempt" }, { name: "State" }, { name: "Progress", number: true },
  { name: "Node" }, { name: "Started" }, { name: "Ended or expected" }, { name: "Resumed from", number: true },
  { name: "Resume point", number: true },
];
const DASH = "\u2013";

/** The cells of an attempt, by column. */
export function fillAttempt(cells, one, now) {
  setText(cells[0], String(one.task));
  setText(cells[1], `${one.attempt} ${kindWord(one.kind)}`);
  setContent(cells[2], one.state, () => [mark(stateMark(one.state)), stateWord(one.state)]);
  setText(cells[3], one.progress === undefined ? DASH : percent(one.progress));
  setText(cells[4], one.node ?? DASH);
  setText(cells[5], one.start === undefined ? DASH : clock(one.start, now));
  const expected = one.expected === undefined ? DASH : `expected ${clock(one.expected, now)}`;
  setText(cells[6], one.end === undefined ? expected : clock(one.end, now));
  setText(cells[7], one.resumedFrom ? percent(one.resumedFrom) : DASH);
  setText(cells[8], one.resumePoint ? percent(one.resumePoint) : DASH);
}

/** The head of a table of attempts. */
export function attemptsHead() {
  return element("thead", {}, element("tr", {}, ...COLUMNS.map(({ name, number }) =>
    element("th", { scope: "col", class: number ? "number" : undefined }, name))));
}

/** A row of a table of attempts. */
export function attemptRow(attributes = {}) {
  return element("tr", attributes, ...COLUMNS.map(({ number }) =>
    element("td", { class: number ? "number" : undefined })));
}

/**
 * A grid of the rows that the chart shows. One row can be reached by Tab; arrows, page keys, Home and End move it
 * and scroll the chart; Enter opens its task.
 */
export class AttemptsTable {
  constructor({ onMove, onOpen, onActive }) {
    Object.assign(this, { onMove, onOpen, onActive, rows: [], first: 0, active: 0, nodes: [] });
    this.body = element("tbody");
    this.caption = element("caption", {}, "Attempts in the window");
    this.grid = element("table", {
      class: "attempts", role: "grid", "aria-readonly": "true", "aria-describedby": "attempts-keys",
      keydown: (event) => this.press(event),
    }, this.caption, attemptsHead(), this.body);
    const keys = element("p", { class: "explanation", id: "attempts-keys" },
      "Keys in the table: arrows, Page Up, Page Down, Home and End move; Enter opens the attempts of a task.");
    this.node = element("div", {}, element("div", { class: "scroll tall" }, this.grid), keys);
  }

  /** Shows the rows from `first` on, `size` of them. */
  show(rows, first, size, now) {
    Object.assign(this, { rows, first, size });
    const shown = rows.slice(first, first + size);
    while (this.nodes.length < shown.length) this.addRow();
    while (this.nodes.length > shown.length) this.nodes.pop().remove();
    // The row that Tab reaches is always one of those that are shown.
    this.active = Math.min(Math.max(this.active, first), Math.max(first + shown.length - 1, 0));
    shown.forEach((one, index) => this.fill(this.nodes[index], one, first + index, now));
    this.grid.setAttribute("aria-rowcount", String(rows.length + 1));
    setText(this.caption, shown.length === rows.length
      ? `Attempts, ${rows.length} in all`
      : `Attempts ${first + 1} to ${first + shown.length} of ${rows.length}`);
  }

  addRow() {
    const node = attemptRow({ tabindex: "-1" });
    node.addEventListener("focus", () => this.activate(node.index));
    node.addEventListener("click", () => this.onOpen(this.rows[node.index]));
    this.nodes.push(node);
    this.body.append(node);
  }

  fill(node, one, index, now) {
    node.index = index;
    node.tabIndex = index === this.active ? 0 : -1;
    node.setAttribute("aria-rowindex", String(index + 2));
    node.classList.toggle("sibling", index > this.first && this.rows[index - 1]?.task === one.task);
    fillAttempt(node.cells, one, now);
  }

  activate(index) {
    if (index === this.active) return this.onActive(this.rows[index]);
    this.active = index;
    for (const node of this.nodes) node.tabIndex = node.index === index ? 0 : -1;
    this.onActive(this.rows[index]);
  }

  /** Moves the focus to a row; the chart scrolls if the row is not in the window. */
  focusRow(index) {
    this.active = Math.min(Math.max(index, 0), this.rows.length - 1);
    this.onMove(this.active);
    this.nodes[this.active - this.first]?.focus({ preventScroll: false });
  }

  press(event) {
    const moves = {
      ArrowDown: 1, ArrowUp: -1, PageDown: this.size, PageUp: -this.size, Home: -Infinity, End: Infinity,
    };
    if (event.key === "Enter") this.onOpen(this.rows[this.active]);
    else if (event.key in moves && !event.ctrlKey && !event.altKey && !event.metaKey) this.focusRow(this.active + moves[event.key]);
    else return;
    event.preventDefault();
  }
}
