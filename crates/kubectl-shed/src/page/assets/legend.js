// What the marks of the chart of attempts mean.

import { element, svg } from "./dom.js";

const BAR = { x: 1, y: 3, width: 24, height: 10 };
const bar = (className) => svg("rect", { ...BAR, class: className });
const line = (className) => svg("line", { x1: 13, x2: 13, y1: 0, y2: 16, class: className });

/** The marks with their meaning; a form stands for each meaning, not a color alone. */
const MARKS = [
  ["original", bar("original")],
  ["clone", svg("g", {}, bar("original"), svg("path", { class: "gaps", d: "M1 13l10-10M8 13l10-10M15 13l10-10" }))],
  ["retry", svg("g", {}, bar("original"), svg("path", { class: "gaps", d: "M6 3v10M13 3v10M20 3v10" }))],
  ["expected", bar("expected")],
  ["resumed here", svg("path", { class: "shape", d: "M7 8l6-6 6 6-6 6z" })],
  ["resume point", svg("path", { class: "shape", d: "M7 4h12l-6 9z" })],
  ["now", line("now")],
  ["expected end", line("expected-end")],
  ["deadline", line("deadline")],
];

/** The legend. */
export function legend() {
  return element("ul", { class: "legend", "aria-label": "Marks of the chart" }, ...MARKS.map(([words, shape]) =>
    element("li", {}, svg("svg", { width: 26, height: 16, "aria-hidden": "true" }, shape), words)));
}
