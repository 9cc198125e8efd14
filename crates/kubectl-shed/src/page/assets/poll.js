// Reads what the view shows again and again. After a failure it waits longer before each further try.

import { read } from "./requests.js";

/** Milliseconds between two readings. */
const PERIOD = 2000;
/** Seconds before each further try. */
const WAITS = [1, 2, 4, 8, 15, 30];

/**
 * Readings of one path. `onBody(body)` gets each answer, `onRefusal(error)` one that says why there is none;
 * `onState(state, details)` gets `connecting`, `live` or `waiting`.
 */
export class Poll {
  constructor({ path, onBody, onRefusal, onState }) {
    Object.assign(this, { path, onBody, onRefusal, onState, tries: 0, timer: undefined });
    this.abort = new AbortController();
    this.retry = () => this.timer && this.look();
    window.addEventListener("online", this.retry);
    document.addEventListener("visibilitychange", this.retry);
    this.onState("connecting");
    this.look();
  }

  async look() {
    clearTimeout(this.timer);
    this.timer = undefined;
    const wait = document.hidden && this.tries === 0 ? PERIOD : await this.ask();
    if (!this.abort.signal.aborted) this.timer = setTimeout(() => this.look(), wait);
  }

  /** Milliseconds until the next reading. */
  async ask() {
    try {
      const body = await read(this.path, this.abort.signal);
      if (this.abort.signal.aborted) return 0;
      this.tries = 0;
      this.onState("live");
      this.onBody(body);
    } catch (error) {
      if (error.name === "AbortError") return 0;
      if (error.status !== 0 && error.status !== 503) {
        this.tries = 0;
        this.onState("live");
        this.onRefusal(error);
        return PERIOD;
      }
      const seconds = WAITS[Math.min(this.tries, WAITS.length - 1)];
      this.tries += 1;
      this.onState("waiting", { seconds, why: error.message });
      return seconds * 1000;
    }
    return PERIOD;
  }

  close() {
    this.abort.abort();
    clearTimeout(this.timer);
    window.removeEventListener("online", this.retry);
    document.removeEventListener("visibilitychange", this.retry);
  }
}
