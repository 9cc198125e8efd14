// Draws rows of attempts on a canvas: a window of them, and all of them in the overview.

import { axisMarks, percent } from "./format.js";
import { isLive, timeOfProgress } from "./gantt_model.js";
import { stateMark, stateWord } from "./words.js";

/** Height of the axis above the rows, in CSS pixels. */
export const AXIS = 40;
const COLORS = ["text", "muted", "line", "surface", "bar", "good", "bad", "quiet", "stripe", "select"];

/** The colors of the scheme in force. */
export function colorsOf(node) {
  const style = getComputedStyle(node);
  return Object.fromEntries(COLORS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** The color of an attempt's bar. */
function colorOf(one, colors) {
  if (one.state === "Won") return colors.good;
  if (one.state === "Failed" || one.state === "Late") return colors.bad;
  return isLive(one.state) ? colors.bar : colors.quiet;
}

const patterns = new Map();
/** Stripes for clones and retries, so that color alone says nothing. */
function pattern(context, kind, color, gap) {
  const key = `${kind} ${color} ${gap}`;
  if (patterns.has(key)) return patterns.get(key);
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const draw = tile.getContext("2d");
  draw.fillStyle = color;
  draw.fillRect(0, 0, 6, 6);
  draw.strokeStyle = gap;
  draw.lineWidth = 1.5;
  draw.beginPath();
  if (kind === "Clone") {
    for (const offset of [-6, 0, 6]) {
      draw.moveTo(offset - 1, 7);
      draw.lineTo(offset + 7, -1);
    }
  } else {
    draw.moveTo(3, 0);
    draw.lineTo(3, 6);
  }
  draw.stroke();
  const made = context.createPattern(tile, "repeat");
  if (patterns.size > 64) patterns.clear();
  patterns.set(key, made);
  return made;
}

function prepared(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [pixels, lines] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixels || canvas.height !== lines) Object.assign(canvas, { width: pixels, height: lines });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Draws the rows of a window. `layout` has width, rowHeight and margin; `active` is the key of the chosen row. */
export function paintWindow(canvas, rows, span, layout, colors, active) {
  const { width, rowHeight, margin } = layout;
  const height = AXIS + rowHeight * layout.count;
  const context = prepared(canvas, width, height);
  const scale = (width - margin) / (span.to - span.from);
  const x = (time) => margin + (time - span.from) * scale;
  context.font = `11px ${layout.font}`;
  context.textBaseline = "middle";
  paintRowGrounds(context, rows, layout, colors, active);
  paintAxis(context, span, x, layout, colors, height);
  context.save();
  context.beginPath();
  context.rect(margin, AXIS, width - margin, height - AXIS);
  context.clip();
  rows.forEach((one, index) => paintBar(context, one, AXIS + index * rowHeight, span, x, layout, colors));
  context.restore();
  paintLines(context, span, x, layout, colors, height);
}

function paintRowGrounds(context, rows, { width, rowHeight, margin }, colors, active) {
  let isOdd = false;
  const gap = Math.max(1, Math.ceil(11 / rowHeight));
  rows.forEach((one, index) => {
    const y = AXIS + index * rowHeight;
    const isFirst = index === 0 || rows[index - 1].task !== one.task;
    if (isFirst && index > 0) isOdd = !isOdd;
    if (isOdd) {
      context.fillStyle = colors.stripe;
      context.fillRect(0, y, width, rowHeight);
    }
    if (one.key === active) {
      context.fillStyle = colors.select;
      context.fillRect(0, y, width, rowHeight);
    }
    if (index % gap !== 0) return;
    context.fillStyle = isFirst ? colors.text : colors.muted;
    context.textAlign = "right";
    const name = isFirst || rowHeight < 11 ? String(one.task) : { Clone: "clone", Retry: "retry" }[one.kind] ?? "";
    context.fillText(name, margin - 8, y + rowHeight / 2 + 0.5);
  });
}

function paintAxis(context, span, x, { width, margin }, colors, height) {
  context.textAlign = "center";
  context.lineWidth = 1;
  for (const { time, text } of axisMarks(span.from, span.to, Math.max(2, (width - margin) / 80))) {
    const at = Math.round(x(time)) + 0.5;
    if (at > width) continue;
    context.strokeStyle = colors.line;
    context.beginPath();
    context.moveTo(at, AXIS - 4);
    context.lineTo(at, height);
    context.stroke();
    context.fillStyle = colors.muted;
    if (at > margin + 14 && at < width - 18) context.fillText(text, at, AXIS - 12);
  }
}

function paintBar(context, one, top, span, x, { rowHeight, width }, colors) {
  const now = span.now ?? span.to;
  if (one.start === undefined) return paintUnstarted(context, one, top, x(isLive(one.state) ? now : span.from), rowHeight, colors);
  const inset = rowHeight >= 14 ? 3 : rowHeight >= 10 ? 2 : rowHeight >= 5 ? 1 : 0;
  const [y, high] = [top + inset, rowHeight - 2 * inset];
  const color = colorOf(one, colors);
  const [from, to] = [x(one.start), Math.max(x(one.end ?? now), x(one.start) + 1.5)];
  context.fillStyle = one.kind === "Original" || high < 5 ? color : pattern(context, one.kind, color, colors.surface);
  context.fillRect(from, y, to - from, high);
  let tail = to;
  if (one.expected !== undefined && x(one.expected) > to) {
    tail = x(one.expected);
    context.globalAlpha = 0.22;
    context.fillStyle = color;
    context.fillRect(to, y, tail - to, high);
    context.globalAlpha = 1;
    if (high >= 8) {
      context.strokeStyle = color;
      context.setLineDash([3, 2]);
      context.strokeRect(to, y + 0.5, tail - to, high - 1);
      context.setLineDash([]);
    }
  }
  if (high < 8) return;
  const middle = top + rowHeight / 2;
  if (one.resumedFrom) diamond(context, from, middle, 5, colors);
  const resumable = one.resumePoint && timeOfProgress(one, one.resumePoint, now);
  if (resumable !== undefined && resumable) triangle(context, x(resumable), y, colors);
  paintEnd(context, one, tail, middle, width, colors);
}

/** The word after a bar, or in it where the window ends. */
function paintEnd(context, one, tail, middle, width, colors) {
  const isRunning = one.state === "Running";
  const text = isRunning
    ? one.progress === undefined ? "" : percent(one.progress)
    : `${stateMark(one.state)} ${stateWord(one.state)}`;
  const space = context.measureText(text).width + 8;
  const isInside = tail + space > width;
  const at = isInside ? width - space : tail + 5;
  if (isInside) {
    context.fillStyle = colors.surface;
    context.fillRect(at - 3, middle - 7, space, 14);
  }
  context.textAlign = "left";
  context.fillStyle = one.state === "Failed" || one.state === "Late" ? colors.bad : colors.text;
  context.fillText(text, at, middle + 0.5);
}

/** An attempt that waits for its start, or whose start is unknown. */
function paintUnstarted(context, one, top, at, rowHeight, colors) {
  context.strokeStyle = colors.muted;
  const high = Math.max(2, rowHeight - 6);
  context.setLineDash([2, 2]);
  context.strokeRect(at, top + (rowHeight - high) / 2, high, high);
  context.setLineDash([]);
  if (rowHeight < 11) return;
  context.textAlign = "left";
  context.fillStyle = colors.muted;
  context.fillText(stateWord(one.state), at + high + 5, top + rowHeight / 2 + 0.5);
}

function diamond(context, x, y, size, colors) {
  context.beginPath();
  context.moveTo(x - size, y);
  context.lineTo(x, y - size);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.closePath();
  outlined(context, colors);
}

function triangle(context, x, y, colors) {
  context.beginPath();
  context.moveTo(x - 5.5, y - 2);
  context.lineTo(x + 5.5, y - 2);
  context.lineTo(x, y + 7);
  context.closePath();
  outlined(context, colors);
}

function outlined(context, colors) {
  context.fillStyle = colors.text;
  context.strokeStyle = colors.surface;
  context.lineWidth = 1;
  context.fill();
  context.stroke();
}

/** The present, the deadline and the expected end, each with its word and a line of its own form. */
function paintLines(context, span, x, { width, margin }, colors, height) {
  const lines = [
    { time: span.now, name: "now", color: colors.text, dash: [4, 3], thick: 1 },
    { time: span.expected, name: "expected end", color: colors.muted, dash: [1, 3], thick: 1.5 },
    { time: span.deadline, name: "deadline", color: colors.bad, dash: [], thick: 2 },
  ].filter(({ time }) => time !== undefined && time >= span.from && time <= span.to);
  const taken = [];
  for (const { time, name, color, dash, thick } of lines) {
    const at = Math.round(x(time)) + 0.5;
    context.strokeStyle = color;
    context.lineWidth = thick;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(at, 16);
    context.lineTo(at, height);
    context.stroke();
    context.setLineDash([]);
    const space = context.measureText(name).width;
    let left = Math.min(Math.max(at - space / 2, margin), width - space - 2);
    // Words of lines that are close stand side by side.
    for (const [from, to] of taken) if (left < to + 8 && left + space > from - 8) left = to + 8;
    if (left + space > width) left = Math.min(...taken.map(([from]) => from)) - space - 8;
    taken.push([left, left + space]);
    context.textAlign = "left";
    context.fillStyle = color;
    context.fillText(name, left, 8);
  }
}

/** Draws all rows into a small canvas. */
export function paintOverview(canvas, rows, span, { width, height }, colors) {
  const context = prepared(canvas, width, height);
  const [scale, step] = [width / (span.to - span.from), height / Math.max(rows.length, 1)];
  const high = Math.max(step, 1 / (devicePixelRatio || 1));
  const now = span.now ?? span.to;
  rows.forEach((one, index) => {
    if (one.start === undefined) return;
    const [from, end] = [(one.start - span.from) * scale, ((one.end ?? now) - span.from) * scale];
    context.fillStyle = colorOf(one, colors);
    context.fillRect(from, index * step, Math.max(end - from, 1), high);
    if (one.expected !== undefined && one.expected > now) {
      context.globalAlpha = 0.3;
      context.fillRect(end, index * step, (one.expected - span.from) * scale - end, high);
      context.globalAlpha = 1;
    }
  });
  if (span.deadline >= span.from && span.deadline <= span.to) {
    context.fillStyle = colors.bad;
    context.fillRect((span.deadline - span.from) * scale - 1, 0, 1.5, height);
  }
}
