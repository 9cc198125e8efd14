// Events of a job, newest first.

import { KeyedChildren, element, setText, timeElement } from "./dom.js";
import { clock, instant, whole } from "./format.js";

/** A list of events. */
export class Events {
  constructor({ now }) {
    this.now = now;
    this.list = element("ol", { class: "decisions" });
    this.empty = element("p", { class: "empty" }, "No event of this job is left.");
    this.node = element("div", {}, this.list, this.empty);
    this.items = new KeyedChildren(this.list, {
      key: (event) => JSON.stringify(event), make: (event) => this.item(event), update: () => {},
    });
  }

  show(job) {
    this.items.show(job.events);
    this.list.hidden = job.events.length === 0;
    this.empty.hidden = job.events.length > 0;
  }

  item({ time, type, reason, message, count }) {
    const at = instant(time);
    const often = count > 1 ? `, ${whole(count)} times` : "";
    const text = element("p", { class: "why" });
    setText(text, message);
    return element("li", { "data-type": type },
      element("p", { class: "what" }, `${type}: ${reason}${often} `, at === undefined ? "" : timeElement(at, clock(at, this.now()))),
      text);
  }
}
