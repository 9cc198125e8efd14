// The page: session, view of the address, events.

import { element, hidden, setText } from "./dom.js";
import { JobView } from "./job_view.js";
import { JobsView } from "./jobs_view.js";
import { LoginView } from "./login_view.js";
import { NodesView } from "./nodes_view.js";
import { jobsRoute, parseRoute } from "./routes.js";
import { currentSession, eventsPath, logout } from "./session.js";
import { Stream } from "./stream.js";

const node = (id) => document.getElementById(id);

const page = {
  session: undefined,
  view: undefined,
  viewKey: undefined,
  stream: undefined,
  streamPath: undefined,
  /** Server's time minus that of this machine, in milliseconds. */
  skew: 0,
  /** Where the user wanted to go before the login. */
  wanted: jobsRoute(),
  reason: undefined,
  wasLost: false,
};

/** Tells screen readers about a change. */
function announce(text) {
  setText(node("announcement"), text);
}

/** The server's time. */
function now() {
  return Date.now() + page.skew;
}

/** What a view may use of the page. */
const services = {
  announce,
  now,
  setTime(text) {
    const time = Date.parse(text);
    if (!Number.isNaN(time)) page.skew = time - Date.now();
  },
  go(route, { replace = false } = {}) {
    if (replace) history.replaceState(null, "", route);
    else if (location.hash !== route) location.hash = route;
  },
  onUnauthorized: (reason) => endSession(reason),
};

function endSession(reason) {
  page.session = undefined;
  page.reason = reason;
  closeStream();
  const route = parseRoute(location.hash);
  if (route.view !== "login") page.wanted = location.hash || jobsRoute();
  services.go("#/login", { replace: true });
  showRoute();
}

function closeStream() {
  page.stream?.close();
  page.stream = undefined;
  page.streamPath = undefined;
}

function openStream(job) {
  const path = eventsPath(job);
  if (page.streamPath === path) return;
  closeStream();
  page.streamPath = path;
  page.stream = new Stream({
    path,
    onEvent: (name, body) => {
      services.setTime(body.time);
      page.view?.update(name, body);
    },
    onState: showConnection,
    onEnd: endSession,
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
    // What happened meanwhile.
    page.view?.reload?.();
  }
}

const VIEWS = { jobs: JobsView, job: JobView, nodes: NodesView };

/** Addresses with the same key are states of one view. */
function keyOf(route) {
  return route.view === "job" ? JSON.stringify(route.job) : route.view;
}

function showRoute() {
  if (!page.session && parseRoute(location.hash).view !== "login") {
    page.wanted = location.hash || jobsRoute();
    services.go("#/login", { replace: true });
  }
  const route = parseRoute(location.hash);
  if (page.session && route.view === "login") {
    services.go(page.wanted, { replace: true });
    return showRoute();
  }
  const key = keyOf(route);
  if (page.viewKey === key && page.view?.follow) {
    page.view.follow(route);
  } else {
    page.view?.leave();
    page.viewKey = key;
    page.view = route.view === "login"
      ? new LoginView({ reason: page.reason, onLogin: enter })
      : new VIEWS[route.view](route, services);
    const isFirst = !node("content").querySelector("h1");
    node("content").replaceChildren(page.view.node);
    if (page.view.focus) page.view.focus();
    else if (!isFirst) page.view.heading.focus();
    scrollTo(0, 0);
  }
  document.title = `${page.view.title} \u00b7 shed`;
  showFrame(route);
  if (page.session) openStream(route.job);
}

function showFrame(route) {
  node("views").hidden = node("session").hidden = !page.session;
  setText(node("user"), page.session?.user ?? "");
  for (const link of node("views").querySelectorAll("a")) {
    const view = parseRoute(link.getAttribute("href")).view;
    const isCurrent = view === route.view || (view === "jobs" && route.view === "job");
    if (isCurrent) link.setAttribute("aria-current", view === route.view ? "page" : "true");
    else link.removeAttribute("aria-current");
  }
}

/** Reads the session and shows what the address names. */
async function begin() {
  try {
    page.session = await currentSession();
    page.reason = undefined;
  } catch (error) {
    // Who comes for the first time needs no reason.
    if (error.status !== 401) {
      page.reason = error.message;
      setTimeout(() => page.session || begin(), 5000);
    }
  }
  if (page.session || page.viewKey !== "login") showRoute();
}

/** Opens the page after a login. */
async function enter() {
  try {
    page.session = await currentSession();
  } catch (error) {
    if (error.status !== 401) throw error;
    throw new Error("The token is accepted, but the browser keeps no cookie: allow cookies for this address.");
  }
  page.reason = undefined;
  showRoute();
}

node("logout").addEventListener("click", async () => {
  let reason = "You are logged out.";
  try {
    await logout();
    // The next user may be another one.
    services.go(jobsRoute(), { replace: true });
  } catch {
    reason = "The server does not answer, so you are not logged out. Load the page again, and log out once more.";
  }
  endSession(reason);
});
node("skip").addEventListener("click", (event) => {
  event.preventDefault();
  node("content").focus();
});
addEventListener("hashchange", showRoute);
setInterval(() => {
  if (!document.hidden) page.view?.tick(now());
}, 1000);
begin();
