// Numbers and times as text. Times are milliseconds since 1970 and are shown in the time zone of the browser. Pure.

/** The instant of an RFC 3339 text; undefined if there is none. */
export function instant(text) {
  const milliseconds = Date.parse(text ?? "");
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}

/** The number of a decimal such as "0.953"; undefined if there is none. */
export function decimal(text) {
  const number = Number.parseFloat(text);
  return Number.isNaN(number) ? undefined : number;
}

const two = (number) => String(number).padStart(2, "0");

/** Such as `1h05m`: two units at most, as `kubectl shed` writes them. */
export function span(seconds) {
  const whole = Math.floor(Math.abs(seconds));
  const [minutes, hours, days] = [60, 3600, 86_400].map((unit) => Math.floor(whole / unit));
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${minutes}m${two(whole % 60)}s`;
  if (whole < 86_400) return `${hours}h${two(minutes % 60)}m`;
  return `${days}d${two(hours % 24)}h`;
}

/** A span with a minus sign before it if it is negative. */
export function signedSpan(seconds) {
  return (seconds < 0 ? "\u2212" : "") + span(seconds);
}

/** Such as `in 5m00s` or `5m00s ago`. */
export function relative(time, now) {
  const seconds = Math.round((time - now) / 1000);
  return seconds >= 0 ? `in ${span(seconds)}` : `${span(seconds)} ago`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Such as `18:04:05`, with the day if that is not today. */
export function clock(time, now) {
  const date = new Date(time);
  const text = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  const today = new Date(now);
  if (date.toDateString() === today.toDateString()) return text;
  const year = date.getFullYear() === today.getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${MONTHS[date.getMonth()]}${year} ${text}`;
}

/** A share such as 0.42 as `42 %`; only 1 is `100 %`. */
export function percent(share) {
  return `${Math.floor(share * 100 + 1e-9)} %`;
}

/** A count with its noun, such as `1 task` or `12 000 tasks`. */
export function count(number, one, many) {
  return `${whole(number)} ${number === 1 ? one : many}`;
}

/** A whole number with thin spaces between its thousands. */
export function whole(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** The name of the time zone, such as `Europe/Zurich`. */
export function timeZone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400];

/** At most `most` round local times from one moment to another, with their texts. */
export function axisMarks(from, to, most) {
  const seconds = (to - from) / 1000;
  const days = (Math.floor(seconds / Math.max(most, 1) / 86_400) + 1) * 86_400;
  const step = (STEPS.find((one) => seconds / one < most) ?? days) * 1000;
  const offset = new Date(from).getTimezoneOffset() * 60_000;
  const marks = [];
  for (let time = Math.ceil((from - offset) / step) * step + offset; time <= to; time += step) {
    const date = new Date(time);
    let text = `${two(date.getHours())}:${two(date.getMinutes())}`;
    if (step < 60_000) text += `:${two(date.getSeconds())}`;
    if (step >= 86_400_000) text = `${date.getDate()} ${MONTHS[date.getMonth()]}`;
    marks.push({ time, text });
  }
  return marks;
}
