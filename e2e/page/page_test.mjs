// The live page in a real Chromium. SHED_PAGE_BACKEND says where it is served: `fixture` or `cluster`.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import test, { after, before } from "node:test";

import { axeVersion, launch, openPage, violations } from "./browser.mjs";
import { savePicture } from "./pictures.mjs";

const { open } = await import(`./${process.env.SHED_PAGE_BACKEND ?? "fixture"}_backend.mjs`);
const JOB_ROWS = "table.jobs tbody tr";
const NODES = "table.nodes tbody tr, .empty:not([hidden])";
const ATTEMPTS = "table[role=grid] tbody tr";
/** A machine that builds at the same time is slow. */
const PATIENCE = { timeout: 120_000 };

let backend;
let browser;
/** What all pages saw, for the checks at the end. */
const seen = [];

before(async () => {
  [backend, browser] = [await open(), await launch()];
  console.log(`Chromium ${browser.version()}, axe-core ${axeVersion}, ${backend.url}`);
});
after(async () => {
  await browser?.close();
  await backend?.close();
});

async function freshPage(options) {
  const opened = await openPage(browser, options);
  opened.page.setDefaultTimeout(PATIENCE.timeout);
  seen.push(opened.seen);
  return opened;
}

async function signIn(page, token = backend.token, route = "") {
  await page.goto(`${backend.url}/${route}`);
  await page.fill("#token", token);
  await page.keyboard.press("Enter");
  // The server takes some logins at once, and then one every two seconds.
  for (;;) {
    await page.waitForFunction(() => !document.querySelector("#session").hidden || document.querySelector("#login-error")?.textContent);
    if (await page.locator("#session:not([hidden])").count()) return;
    const error = await textOf(page, "#login-error");
    assert.match(error, /too many logins/i);
    await page.waitForTimeout(3000);
    await page.keyboard.press("Enter");
  }
}

async function signedIn({ route, token, ...options } = {}) {
  const opened = await freshPage(options);
  await signIn(opened.page, token, route);
  return opened;
}

const routeOf = ({ namespace, name }) => `#/jobs/${namespace}/${name}`;
const textOf = (page, selector) => page.locator(selector).first().innerText();
const focused = (page) => page.evaluate(() => {
  const { tagName, id, textContent, role } = document.activeElement;
  return { tagName, id, text: textContent.trim(), role };
});

/** Waits until a condition holds in the test itself. */
async function eventually(what, condition) {
  const end = Date.now() + PATIENCE.timeout;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < end, `not within ${PATIENCE.timeout / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Presses Tab until the focus is where it should be. */
async function tabTo(page, what, isThere) {
  for (let presses = 0; presses < 60; presses += 1) {
    if (await page.evaluate(isThere)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`no Tab leads to ${what}`);
}

test("without a session the page shows the login, whatever the address", async () => {
  const { page, context } = await freshPage();
  await page.goto(`${backend.url}/${routeOf(backend.showcase)}`);
  await page.waitForSelector("h1");
  assert.equal(await textOf(page, "h1"), "Log in");
  assert.equal((await page.request.get(`${backend.url}/api/jobs`)).status(), 401);
  await context.close();
});

test("a wrong token gets a sentence, and the field keeps the focus", async () => {
  const { page, context } = await freshPage();
  await page.goto(backend.url);
  await page.fill("#token", "eyJhbGciOi.wrong.token");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#login-error").textContent.endsWith("."));
  assert.match(await textOf(page, "#login-error"), /^[A-Z].*token.*[.]$/s);
  assert.equal((await focused(page)).id, "token");
  await context.close();
});

test("a token opens the jobs that its user may read", async () => {
  const { page, context } = await signedIn();
  await page.waitForSelector(JOB_ROWS);
  assert.match(await textOf(page, "#jobs-summary"), new RegExp(backend.showcase.namespace));
  const cookies = await context.cookies();
  assert.deepEqual(cookies.map(({ name, httpOnly, secure, sameSite }) => ({ name, httpOnly, secure, sameSite })),
    [{ name: "__Host-shed", httpOnly: true, secure: true, sameSite: "Strict" }]);
  assert.equal(await page.evaluate(() => document.cookie + localStorage.length + sessionStorage.length), "00");
  await context.close();
});

test("a browser that keeps no cookie is told so", async () => {
  const { page, context } = await freshPage();
  await page.route("**/login", (route) => route.fulfill({ status: 204 }));
  await page.goto(backend.url);
  await page.fill("#token", "accepted");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#login-error").textContent.includes("allow cookies"));
  await context.close();
});

test("a user without rights is told so", async () => {
  const { page, context } = await signedIn({ token: backend.strangerToken });
  await page.waitForSelector("#jobs-empty:not([hidden])");
  assert.match(await textOf(page, "#jobs-empty"), /deadlinejobs in no namespace/);
  assert.equal(await page.locator(JOB_ROWS).count(), 0);
  await context.close();
});

test("a job appears, its progress moves, and its end is seen, without a reload", async () => {
  const { page, context } = await signedIn();
  await page.waitForSelector("#connection[data-state=live]");
  await page.evaluate(() => (globalThis.isSamePage = true));
  const name = "seen-live";
  await page.fill("#filter", name);
  await backend.createJob(name);
  await page.click(`${JOB_ROWS} a:text-is("${name}")`);
  const progress = `${ATTEMPTS} td:nth-child(4)`;
  const first = await eventually("a first report", async () =>
    (await page.locator(progress).count()) > 0 && (await textOf(page, progress)).includes("%") && textOf(page, progress));
  await eventually("progress that moves", async () => (await textOf(page, progress)) !== first);
  console.log(`  progress moved from ${first} to ${await textOf(page, progress)}`);
  await backend.deleteJob(name);
  await page.waitForFunction(() => document.querySelector(".message.error").textContent);
  assert.match(await textOf(page, ".message.error"), /no such job/);
  assert.ok(await page.evaluate(() => globalThis.isSamePage));
  await context.close();
});

test("a job with ten thousand tasks is drawn", async () => {
  const { big } = backend;
  const { page, context } = await signedIn({ route: routeOf(big) });
  await page.waitForSelector(ATTEMPTS);
  assert.match(await textOf(page, ".facts"), new RegExp(String(big.tasks).replace(/(\d)(?=(\d{3})+$)/g, "$1\\s")));
  await page.waitForTimeout(5000);
  const drawn = await page.evaluate(() => performance.getEntriesByName("gantt").map(({ duration, detail }) => ({ duration, ...detail })));
  const times = drawn.filter(({ attempts }) => attempts >= big.attempts).map(({ duration }) => duration.toFixed(0));
  assert.ok(times.length > 0, JSON.stringify(drawn));
  console.log(`  ${drawn.at(-1).attempts} attempts drawn in ${times.join(", ")} ms`);
  const isPainted = await page.evaluate(() => {
    const canvas = document.querySelector("canvas.window");
    return new Set(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data).size > 20;
  });
  assert.ok(isPainted);
  assert.ok((await page.locator(ATTEMPTS).count()) <= 24);
  await context.close();
});

test("the keyboard alone leads from the login to an attempt and back", async () => {
  const { page, context } = await freshPage();
  await page.goto(backend.url);
  await page.waitForSelector("#token");
  await page.keyboard.type(backend.token);
  await page.keyboard.press("Enter");
  await page.waitForSelector(JOB_ROWS);
  assert.equal((await focused(page)).text, "Jobs by risk");
  await tabTo(page, "the filter", () => document.activeElement.id === "filter");
  await page.keyboard.type(backend.showcase.name);
  await page.waitForFunction(() => document.querySelectorAll("table.jobs tbody tr").length === 1);
  await tabTo(page, "the job", () => document.activeElement.closest("tbody"));
  await page.keyboard.press("Enter");
  await page.waitForSelector(ATTEMPTS);
  await tabTo(page, "the attempts", () => document.activeElement.closest("[role=grid] tbody"));
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowUp");
  const rows = await page.locator(ATTEMPTS).count();
  const index = await page.evaluate(() => Number(document.activeElement.getAttribute("aria-rowindex")));
  assert.equal(index, rows);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".panel:not([hidden])");
  assert.match((await focused(page)).text, /^Task \d+$/);
  await page.keyboard.press("Escape");
  await page.waitForSelector(".panel", { state: "hidden" });
  await page.waitForFunction((row) => Number(document.activeElement.getAttribute("aria-rowindex")) === row, index);
  await context.close();
});

test("ended jobs and further pages come on demand, and the address keeps them", async (testContext) => {
  if (!backend.adminToken) return testContext.skip("the cluster has less than a page of jobs");
  // Not among `seen`: this user may read the foreign namespace.
  const { page, context } = await openPage(browser);
  page.setDefaultTimeout(PATIENCE.timeout);
  await signIn(page, backend.adminToken);
  await page.waitForSelector(JOB_ROWS);
  const unfinished = await page.locator(JOB_ROWS).count();
  assert.equal(await page.locator(`${JOB_ROWS}.ended`).count(), 0);
  await page.check("#ended");
  await page.click("text=Show more jobs");
  await page.waitForSelector(`${JOB_ROWS}.ended`);
  assert.ok((await page.locator(JOB_ROWS).count()) > unfinished);
  await page.reload();
  await page.waitForSelector(JOB_ROWS);
  assert.ok(await page.isChecked("#ended"));
  await context.close();
});

test("an update keeps the focus, and the back button works", async () => {
  const { page, context } = await signedIn();
  await page.focus(`${JOB_ROWS} a`);
  const before = await focused(page);
  await page.waitForTimeout(5000);
  assert.deepEqual(await focused(page), before);
  await page.click(`${JOB_ROWS} a:text-is("${backend.showcase.name}")`);
  await page.waitForSelector(ATTEMPTS);
  await page.locator(ATTEMPTS).first().click();
  await page.waitForSelector(".panel:not([hidden])");
  await page.goBack();
  await page.waitForSelector(".panel", { state: "hidden" });
  await page.goBack();
  await page.waitForSelector(JOB_ROWS);
  assert.equal(await textOf(page, "h1"), "Jobs by risk");
  await context.close();
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe-core finds nothing serious, ${colorScheme}`, async () => {
    const { page, context } = await freshPage({ colorScheme });
    const check = async (view) => assert.deepEqual(await violations(page), [], view);
    await page.goto(backend.url);
    await page.waitForSelector("#token");
    await check("login");
    await signIn(page);
    await page.waitForSelector(JOB_ROWS);
    await check("jobs");
    await page.goto(`${backend.url}/${routeOf(backend.showcase)}`);
    await page.waitForSelector(ATTEMPTS);
    await page.locator(ATTEMPTS).first().click();
    await page.waitForSelector(".panel:not([hidden])");
    await check("job with a task");
    await page.goto(`${backend.url}/#/nodes?all=true`);
    await page.waitForSelector(NODES);
    await check("nodes");
    await page.setViewportSize({ width: 320, height: 700 });
    await check("nodes, narrow");
    await page.goto(`${backend.url}/#/jobs`);
    await page.waitForSelector(JOB_ROWS);
    await check("jobs, narrow");
    await context.close();
  });
}

test("nothing is cut off at 320 pixels or at 200 percent", async () => {
  for (const options of [{ viewport: { width: 320, height: 640 } }, { viewport: { width: 640, height: 430 }, deviceScaleFactor: 2 }]) {
    const { page, context } = await signedIn(options);
    for (const [route, row] of [["#/jobs", JOB_ROWS], [routeOf(backend.showcase), ATTEMPTS], ["#/nodes?all=true", NODES]]) {
      await page.goto(`${backend.url}/${route}`);
      await page.waitForSelector(row);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(width, options.viewport.width, route);
    }
    await context.close();
  }
});

test("a connection that is lost comes back by itself", async (testContext) => {
  if (!backend.cut) return testContext.skip("nothing here can cut the connection");
  const { page, context } = await signedIn();
  await page.waitForSelector("#connection[data-state=live]");
  await backend.cut();
  await page.waitForSelector("#connection[data-state=waiting]");
  assert.match(await textOf(page, "#announcement"), /connection is lost/);
  await backend.restore();
  await page.waitForSelector("#connection[data-state=live]");
  assert.ok((await page.locator(JOB_ROWS).count()) > 0);
  await context.close();
});

test("the end of a session leads to the login with the reason", async () => {
  const session = await backend.shortSession();
  const { page, context } = await signedIn({ token: session.token });
  await page.waitForSelector("#connection[data-state=live]");
  await session.end();
  await page.waitForSelector("#login-reason");
  assert.match(await textOf(page, "#login-reason"), session.reason);
  assert.equal(await page.locator("#session:not([hidden])").count(), 0);
  await context.close();
});

test("a tampered cookie and one of parts of two lead to the login", async () => {
  const { page, context } = await signedIn();
  const other = await signedIn({ token: backend.strangerToken });
  const [[own], [foreign]] = [await context.cookies(), await other.context.cookies()];
  const half = Math.floor(own.value.length / 2);
  const flipped = own.value.slice(0, half) + (own.value[half] === "0" ? "1" : "0") + own.value.slice(half + 1);
  for (const value of [flipped, foreign.value.slice(0, half) + own.value.slice(half), "x"]) {
    const { path, domain, ...cookie } = own;
    await context.addCookies([{ ...cookie, value, path, domain }]);
    await page.reload();
    await page.waitForSelector("#token");
    assert.equal((await page.request.get(`${backend.url}/api/jobs`)).status(), 401);
  }
  await other.context.close();
  await context.close();
});

test("another user in the same browser sees nothing of the first one", async () => {
  const { page, context } = await signedIn({ route: routeOf(backend.showcase) });
  await page.waitForSelector(ATTEMPTS);
  await page.click("#logout");
  await page.fill("#token", backend.strangerToken);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#jobs-empty:not([hidden])");
  await page.goto(`${backend.url}/${routeOf(backend.showcase)}`);
  await page.waitForFunction(() => document.querySelector(".message.error")?.textContent);
  assert.equal(await page.locator(ATTEMPTS).count(), 0);
  await context.close();
});

test("a job of another namespace is as absent as one that does not exist", async () => {
  const { page, context } = await signedIn();
  const answers = [];
  for (const job of [backend.foreign, { ...backend.foreign, name: "no-such-job" }]) {
    await page.goto(`${backend.url}/${routeOf(job)}`);
    await page.waitForFunction(() => document.querySelector(".message.error")?.textContent);
    answers.push(await textOf(page, ".message.error"));
    await page.goto(`${backend.url}/#/jobs`);
    await page.waitForSelector(JOB_ROWS);
  }
  assert.equal(answers[0], answers[1]);
  await context.close();
});

test("pictures for the docs", { skip: !process.env.SHED_PAGE_PICTURES }, async () => {
  mkdirSync(process.env.SHED_PAGE_PICTURES, { recursive: true });
  const { page, context } = await signedIn({ viewport: { width: 1120, height: 640 }, reducedMotion: "reduce" });
  await page.waitForSelector(JOB_ROWS);
  await page.waitForTimeout(1000);
  await savePicture(page, `${process.env.SHED_PAGE_PICTURES}/live-page-jobs.png`);
  await page.setViewportSize({ width: 1120, height: 900 });
  await page.goto(`${backend.url}/${routeOf(backend.showcase)}`);
  await page.waitForSelector(ATTEMPTS);
  await page.waitForTimeout(1000);
  await savePicture(page, `${process.env.SHED_PAGE_PICTURES}/live-page-job.png`);
  await context.close();
});

// The last ones, because they look at all pages before.
test("no request left the page's host, and no script failed", () => {
  const urls = seen.flatMap((one) => one.urls);
  assert.ok(urls.length > 100);
  assert.deepEqual(urls.filter((url) => new URL(url).origin !== backend.url), []);
  assert.deepEqual(seen.flatMap((one) => one.errors).filter((error) => !/net::ERR_|status of [45]/.test(error)), []);
  console.log(`  ${urls.length} requests, all to ${backend.url}`);
});

test("no answer names the foreign namespace or its job", () => {
  const bodies = seen.flatMap((one) => one.bodies);
  assert.ok(bodies.some((body) => body.includes(backend.showcase.name)));
  for (const word of [backend.foreign.namespace, backend.foreign.name]) {
    assert.deepEqual(bodies.filter((body) => body.includes(word)).map((body) => body.slice(0, 200)), [], word);
  }
  console.log(`  ${bodies.length} answers and events searched`);
});
