// The page: the view of the address, and readings of what it shows.

import { element, hidden, setText } from "./dom.js";
import { JobView } from "./job_view.js";
import { JobsView } from "./jobs_view.js";
import { Poll } from "./poll.js";
import { parseRoute } from "./routes.js";

const node = (id) => document.getElementById(id);

const page = {
  view: undefined,
  viewKey: undefined,
  poll: undefined,
  /** The answers' time minus that of this machine, in milliseconds. */
  skew: 0,
  wasLost: false,
};

/** Tells screen readers about a change. */
function announce(text) {
  setText(node("announcement"), text);
}

/** The time of the answers. */
function now() {
  return Date.now() + page.skew;
}

/** What a view may use of the page. */
const services = {
  announce,
  now,
  go(route, { replace = false } = {}) {
    if (replace) history.replaceState(null, "", route);
    else if (location.hash !== route) location.hash = route;
  },
  /** Reads the view's path from now on, which may be another one. */
  reload: openPoll,
};

function openPoll() {
  page.poll?.close();
  const { view } = page;
  page.poll = new Poll({
    path: view.path,
    onBody: (body) => {
      const time = Date.parse(body.time);
      if (!Number.isNaN(time)) page.skew = time - Date.now();
      view.accept(body);
    },
    onRefusal: (error) => view.refuse(error),
    onState: showConnection,
  });
}

const STATES = {
  connecting: ["\u25cc", "connecting"],
  live: ["\u25cf", "live"],
  waiting: ["\u25cb", "connection lost"],
};

function showConnection(state, { seconds, why } = {}) {
  const [mark, word] = STATES[state];
  const line = node("connection");
  line.dataset.state = state;
  line.replaceChildren(
    element("span", { class: "mark", "aria-hidden": "true" }, mark), hidden("Connection: "),
    seconds ? `${word}, next try in ${seconds} s${why ? `: ${why}` : ""}` : word);
  if (state === "waiting" && !page.wasLost) {
    page.wasLost = true;
    announce("The connection is lost. The page shows old data and tries again.");
  }
  if (state === "live" && page.wasLost) {
    page.wasLost = false;
    announce("The page is live again.");
  }
}

const VIEWS = { jobs: JobsView, job: JobView };

/** Addresses with the same key are states of one view. */
function keyOf(route) {
  return route.view === "job" ? JSON.stringify(route.job) : route.view;
}

function showRoute() {
  const route = parseRoute(location.hash);
  const key = keyOf(route);
  if (page.viewKey === key) {
    page.view.follow(route);
  } else {
    page.view?.leave?.();
    page.viewKey = key;
    page.view = new VIEWS[route.view](route, services);
    const isFirst = !node("content").querySelector("h1");
    node("content").replaceChildren(page.view.node);
    if (!isFirst) page.view.heading.focus();
    scrollTo(0, 0);
    openPoll();
  }
  document.title = `${page.view.title} \u00b7 shed`;
  const list = node("list");
  list.setAttribute("aria-current", route.view === "jobs" ? "page" : "true");
}

node("skip").addEventListener("click", (event) => {
  event.preventDefault();
  node("content").focus();
});
addEventListener("hashchange", showRoute);
setInterval(() => {
  if (!document.hidden) page.view?.tick(now());
}, 1000);
showRoute();
