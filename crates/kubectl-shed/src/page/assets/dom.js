// Elements, and tables whose rows survive an update.

const SVG = "http://www.w3.org/2000/svg";

/** Children without those that a condition left out. */
function present(children) {
  return children.filter((child) => child || child === 0);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...present(children));
  return node;
}

/** An HTML element. An attribute that is a function listens to the event of its name. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Text for screen readers alone. */
export function hidden(text) {
  return element("span", { class: "hidden" }, text);
}

/** A mark that repeats what a word says, for the eye alone. */
export function mark(text) {
  return element("span", { class: "mark", "aria-hidden": "true" }, text);
}

/** Writes a text, if it is another one. */
export function setText(node, text) {
  if (node.textContent === text) return;
  node.textContent = text;
  node.contentKey = undefined;
}

/** Replaces the children of a node by these if the key is another one than last time. */
export function setContent(node, key, make) {
  if (node.contentKey === key) return;
  node.contentKey = key;
  node.replaceChildren(...present(make()));
}

/** A moment: its text, with the exact time for programs and on hover. */
export function timeElement(milliseconds, text) {
  const exact = new Date(milliseconds);
  return element("time", { datetime: exact.toISOString(), title: exact.toString() }, text);
}

/**
 * Children of a node by key. An update keeps those whose keys stay, so focus and selection stay too.
 * `make(item)` returns the node of a new item, and `update(node, item)` brings it up to date.
 */
export class KeyedChildren {
  constructor(parent, { key, make, update }) {
    Object.assign(this, { parent, key, make, update, nodes: new Map() });
  }

  show(items) {
    const focused = document.activeElement;
    const wanted = new Set(items.map(this.key));
    for (const [key, node] of this.nodes) {
      if (wanted.has(key)) continue;
      node.remove();
      this.nodes.delete(key);
    }
    let place = this.parent.firstChild;
    for (const item of items) {
      const key = this.key(item);
      let node = this.nodes.get(key);
      if (!node) {
        node = this.make(item);
        this.nodes.set(key, node);
      }
      this.update(node, item);
      if (node === place) place = place.nextSibling;
      else this.parent.insertBefore(node, place);
    }
    // A row that moves loses the focus.
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  }
}

/** A table within a region that scrolls by itself where the window is narrow; its rows can be cards there. */
export function table({ caption, columns, className }) {
  // Roles, because cards are no tables for the layout.
  const head = element("tr", { role: "row" }, ...columns.map(({ name, number }) =>
    element("th", { scope: "col", role: "columnheader", class: number ? "number" : undefined }, name)));
  const body = element("tbody", { role: "rowgroup" });
  const node = element("table", { class: `cards ${className}`, role: "table" },
    element("caption", {}, caption), element("thead", { role: "rowgroup" }, head), body);
  const region = element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, node);
  return { region, node, body };
}

/** A row of such a table: its head, and empty cells for the other columns. */
export function tableRow(columns, ...head) {
  return element("tr", { role: "row" }, element("th", { scope: "row", role: "rowheader" }, ...head),
    ...columns.slice(1).map(({ name, number }) =>
      element("td", { role: "cell", "data-label": name, class: number ? "number" : undefined })));
}
