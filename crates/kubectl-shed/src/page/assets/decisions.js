// The last decisions about a job's clones and stops, newest first.

import { KeyedChildren, element, mark, timeElement } from "./dom.js";
import { clock, instant } from "./format.js";
import { sentence } from "./requests.js";
import { verdictWords } from "./words.js";

/** A list of decisions; those of one task if it is given. */
export class Decisions {
  constructor({ now, route }) {
    Object.assign(this, { now, route });
    this.list = element("ol", { class: "decisions" });
    this.empty = element("p", { class: "empty" });
    this.node = element("div", {}, this.list, this.empty);
    this.items = new KeyedChildren(this.list, {
      key: (decision) => JSON.stringify(decision), make: (decision) => this.item(decision), update: () => {},
    });
  }

  show(job, task) {
    const all = job.explained ?? [];
    const shown = all.filter((decision) => task === undefined || decision.task === task);
    this.items.show(shown);
    this.list.hidden = shown.length === 0;
    this.empty.hidden = shown.length > 0;
    this.empty.textContent = task === undefined
      ? "No decision about a clone or a stop is in the record."
      : "No decision about this task is in the record.";
  }

  item(decision) {
    const time = instant(decision.time);
    const [sign, words] = verdictWords(decision.verdict);
    const { why, advice } = decision;
    const figures = [
      decision.gain !== undefined && `gain ${decision.gain}`, decision.price !== undefined && `price ${decision.price}`,
      decision.alternative && `best alternative: ${decision.alternative}`,
    ].filter(Boolean);
    return element("li", { "data-verdict": decision.verdict },
      element("p", { class: "what" }, mark(sign),
        element("a", { href: this.route(decision.task) }, `Task ${decision.task}`), ` ${words}`,
        time !== undefined ? timeElement(time, clock(time, this.now())) : ""),
      element("p", { class: "why" }, sentence(why),
        figures.length ? element("span", { class: "figures" }, ` ${sentence(figures.join(", "))}`) : ""),
      advice && element("p", { class: "advice" }, "To change it: ", sentence(advice)));
  }
}
