// Slow nodes, and the jobs whose attempts show that.

import { KeyedChildren, element, mark, setContent, setText, table, tableRow, timeElement } from "./dom.js";
import { clock, count, decimal, instant, relative } from "./format.js";
import { jobRoute, nodesRoute } from "./routes.js";
import { read } from "./session.js";
import { verdictMark } from "./words.js";

const COLUMNS = [
  { name: "Node" }, { name: "Verdict" }, { name: "Pace", number: true }, { name: "Seen" }, { name: "Avoided by" },
  { name: "Witnesses" },
];
/** More rows would make each update slow. */
const ROWS_MAX = 500;

/** The list of nodes. */
export class NodesView {
  title = "Slow nodes";

  constructor(route, services) {
    Object.assign(this, { route, services, nodes: undefined });
    this.abort = new AbortController();
    this.heading = element("h1", { tabindex: "-1" }, "Slow nodes");
    this.summary = element("p", { class: "summary" });
    this.message = element("p", { class: "message error", role: "alert" });
    this.all = element("input", { type: "checkbox", id: "all-nodes", change: () => this.choose() });
    this.all.checked = route.all;
    const { region, body } = table({ caption: "Nodes, the slowest first", columns: COLUMNS, className: "nodes" });
    this.region = region;
    this.empty = element("p", { class: "empty", hidden: true });
    this.rows = new KeyedChildren(body, {
      key: (node) => node.name, make: (node) => tableRow(COLUMNS, node.name), update: (row, node) => this.updateRow(row, node),
    });
    this.node = element("div", {}, element("div", { class: "heading" }, this.heading, this.summary), this.message,
      element("p", { class: "explanation" }, "A pace of 0.500 means that attempts take twice as long on the node as their ",
        "jobs usually do. The witnesses are the jobs whose attempts show it."),
      element("form", { class: "tools", submit: (event) => event.preventDefault() },
        element("span", { class: "choice" }, this.all, element("label", { for: "all-nodes" }, "Normal and unknown nodes too"))),
      region, this.empty);
    this.reload();
  }

  follow(route) {
    this.route = route;
    this.all.checked = route.all;
    this.show();
  }

  choose() {
    this.services.go(nodesRoute({ all: this.all.checked }), { replace: true });
    this.follow({ ...this.route, all: this.all.checked });
  }

  async reload() {
    try {
      this.update("nodes", await read("/api/nodes", this.abort.signal));
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 401) this.services.onUnauthorized(error.message);
      else setText(this.message, error.message);
    }
  }

  update(name, body) {
    if (name !== "nodes") return;
    setText(this.message, "");
    this.nodes = body.nodes;
    this.show();
  }

  show() {
    if (!this.nodes) return;
    const slow = this.nodes.filter((node) => node.verdict === "Slow");
    const shown = (this.route.all ? this.nodes : slow).slice(0, ROWS_MAX);
    this.rows.show(shown);
    this.region.hidden = shown.length === 0;
    this.empty.hidden = shown.length > 0;
    setText(this.empty, this.nodes.length > 0
      ? "No node is slow, as far as the attempts of your jobs show."
      : "No node is known yet. A node is judged by attempts that report progress.");
    const left = this.route.all && this.nodes.length > ROWS_MAX ? `, the first ${ROWS_MAX} shown` : "";
    setText(this.summary, `${slow.length} of ${count(this.nodes.length, "node is", "nodes are")} slow${left}`);
  }

  updateRow(row, node) {
    const now = this.services.now();
    const { cells } = row;
    row.facts = node;
    setContent(cells[1], node.verdict, () => [mark(verdictMark(node.verdict)), node.verdict]);
    cells[1].classList.toggle("bad", node.verdict === "Slow");
    setContent(cells[2], node.pace ?? "", () => pace(node.pace));
    showSeen(cells[3], node, now);
    setText(cells[4], (node.avoidedBy ?? []).join(", ") || "\u2013");
    setContent(cells[5], JSON.stringify([node.witnesses, node.omittedWitnesses]), () => witnesses(node));
  }

  tick(now) {
    for (const row of this.rows.nodes.values()) showSeen(row.cells[3], row.facts, now);
  }

  leave() {
    this.abort.abort();
  }
}

function pace(text) {
  const value = decimal(text);
  if (value === undefined) return ["\u2013"];
  const bar = element("span", { class: `meter ${value <= 0.667 ? "poor" : "good"}`, "aria-hidden": "true" }, element("span"));
  bar.firstChild.style.inlineSize = `${Math.min(value, 1) * 100}%`;
  return [element("span", { class: "figure" }, text), bar];
}

function showSeen(cell, node, now) {
  const seen = instant(node.observedTime);
  if (seen === undefined) return setText(cell, "\u2013");
  setContent(cell, `${seen}`, () => [timeElement(seen, clock(seen, now)), element("span", { class: "under" })]);
  setText(cell.lastChild, relative(Math.min(seen, now - 1000), now));
}

function witnesses(node) {
  const items = (node.witnesses ?? []).map(({ namespace, job, tasks, pace }) => element("li", {},
    element("a", { href: jobRoute({ namespace, name: job }) }, `${namespace}/${job}`),
    `: ${count(tasks, "task", "tasks")}, pace ${pace}`));
  if (node.omittedWitnesses) items.push(element("li", {}, `and ${node.omittedWitnesses} more`));
  return items.length ? [element("ul", { class: "plain" }, ...items)] : ["\u2013"];
}
