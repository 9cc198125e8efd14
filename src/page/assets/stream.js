// The server's events. A stream that breaks is opened again after a wait that grows.

import { currentSession, refusal, sentence } from "./session.js";

/** Seconds before each further try. */
const WAITS = [1, 2, 4, 8, 15, 30];

/**
 * Server-sent events of one path.
 * `onEvent(name, body)` gets each event; `onState(state, details)` gets `connecting`, `live` or `waiting`;
 * `onEnd(reason)` is called once if the session is over.
 */
export class Stream {
  constructor({ path, onEvent, onState, onEnd }) {
    Object.assign(this, { path, onEvent, onState, onEnd, tries: 0, source: undefined, timer: undefined });
    this.retry = () => this.source || this.open();
    window.addEventListener("online", this.retry);
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.source?.close();
    this.onState("connecting");
    const source = new EventSource(this.path);
    this.source = source;
    source.addEventListener("open", () => {
      this.tries = 0;
      this.onState("live");
    });
    for (const name of ["jobs", "job", "nodes"]) {
      source.addEventListener(name, (event) => this.onEvent(name, JSON.parse(event.data)));
    }
    source.addEventListener("end", (event) => this.lost(JSON.parse(event.data).error));
    // The browser's own way of trying again has no wait that grows.
    source.addEventListener("error", () => this.lost());
  }

  /** The stream broke, or the server ended it: either the session is over, or another try helps. */
  async lost(reason) {
    this.source?.close();
    this.source = undefined;
    const error = await currentSession().then(() => undefined, (refused) => refused);
    if (this.isClosed) return;
    if (error?.status === 401) {
      this.close();
      this.onEnd(sentence(reason ?? error.message));
      return;
    }
    // A stream that was never open was refused, perhaps for a reason that the user can change.
    const why = this.tries > 0 ? await refusal(this.path) : undefined;
    if (this.isClosed) return;
    const seconds = WAITS[Math.min(this.tries, WAITS.length - 1)];
    this.tries += 1;
    this.onState("waiting", { seconds, why });
    // Pages that lost the same server do not come back at the same moment.
    this.timer = setTimeout(() => this.open(), seconds * 1000 * (0.75 + Math.random() / 2));
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
    window.removeEventListener("online", this.retry);
    this.source?.close();
    this.source = undefined;
  }
}
