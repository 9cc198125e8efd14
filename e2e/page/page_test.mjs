// The live page in a real Chromium. SHED_PAGE_BACKEND says what serves it: `fixture` or `cluster`.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import test, { after, before } from "node:test";

import { axeVersion, launch, openPage, violations } from "./browser.mjs";
import { savePicture } from "./pictures.mjs";

const { open } = await import(`./${process.env.SHED_PAGE_BACKEND ?? "fixture"}_backend.mjs`);
const JOB_ROWS = "table.jobs tbody tr";
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

async function opened({ route = "", ...options } = {}) {
  const opened = await freshPage(options);
  await opened.page.goto(`${backend.url}${route}`);
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

test("jobs are shown, and nothing is kept in the browser", async () => {
  const { page, context } = await opened();
  await page.waitForSelector(JOB_ROWS);
  assert.match(await textOf(page, "#jobs-summary"), /unfinished jobs/);
  assert.deepEqual(await context.cookies(), []);
  assert.equal(await page.evaluate(() => document.cookie + localStorage.length + sessionStorage.length), "00");
  await context.close();
});

test("the address without its secret part shows nothing", async () => {
  const { page, context } = await freshPage();
  const { origin } = new URL(backend.url);
  for (const path of ["/", "/api/jobs", "/00000000000000000000000000000000/api/jobs"]) {
    assert.equal((await page.request.get(`${origin}${path}`)).status(), 404, path);
  }
  await context.close();
});

test("a job appears, its progress moves, and its end is seen, without a reload", async () => {
  const { page, context } = await opened();
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
  assert.match(await textOf(page, ".message.error"), /no such job/i);
  assert.ok(await page.evaluate(() => globalThis.isSamePage));
  await context.close();
});

test("a job with ten thousand tasks is drawn", async () => {
  const { big } = backend;
  const { page, context } = await opened({ route: routeOf(big) });
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

test("the keyboard alone leads to an attempt and back", async () => {
  const { page, context } = await opened();
  await page.waitForSelector(JOB_ROWS);
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
  if (!backend.hasMore) return testContext.skip("the cluster has less than a page of jobs");
  const { page, context } = await opened();
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
  const { page, context } = await opened();
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
    await page.waitForSelector(JOB_ROWS);
    await check("jobs");
    await page.goto(`${backend.url}${routeOf(backend.showcase)}`);
    await page.waitForSelector(ATTEMPTS);
    await page.locator(ATTEMPTS).first().click();
    await page.waitForSelector(".panel:not([hidden])");
    await check("job with a task");
    await page.setViewportSize({ width: 320, height: 700 });
    await check("job with a task, narrow");
    await page.goto(`${backend.url}#/jobs`);
    await page.waitForSelector(JOB_ROWS);
    await check("jobs, narrow");
    await context.close();
  });
}

test("nothing is cut off at 320 pixels or at 200 percent", async () => {
  for (const options of [{ viewport: { width: 320, height: 640 } }, { viewport: { width: 640, height: 430 }, deviceScaleFactor: 2 }]) {
    const { page, context } = await opened(options);
    for (const [route, row] of [["#/jobs", JOB_ROWS], [routeOf(backend.showcase), ATTEMPTS]]) {
      await page.goto(`${backend.url}${route}`);
      await page.waitForSelector(row);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(width, options.viewport.width, route);
    }
    await context.close();
  }
});

test("a connection that is lost comes back by itself", async (testContext) => {
  if (!backend.cut) return testContext.skip("nothing here can cut the connection");
  const { page, context } = await opened();
  await page.waitForSelector("#connection[data-state=live]");
  await backend.cut();
  await page.waitForSelector("#connection[data-state=waiting]");
  assert.match(await textOf(page, "#announcement"), /connection is lost/);
  await backend.restore();
  await page.waitForSelector("#connection[data-state=live]");
  assert.ok((await page.locator(JOB_ROWS).count()) > 0);
  await context.close();
});

test("pictures for the docs", { skip: !process.env.SHED_PAGE_PICTURES }, async () => {
  mkdirSync(process.env.SHED_PAGE_PICTURES, { recursive: true });
  const { page, context } = await opened({ viewport: { width: 1120, height: 640 }, reducedMotion: "reduce" });
  await page.waitForSelector(JOB_ROWS);
  await page.waitForTimeout(1000);
  await savePicture(page, `${process.env.SHED_PAGE_PICTURES}/live-page-jobs.png`);
  await page.setViewportSize({ width: 1120, height: 900 });
  await page.goto(`${backend.url}${routeOf(backend.showcase)}`);
  await page.waitForSelector(ATTEMPTS);
  await page.waitForTimeout(1000);
  await savePicture(page, `${process.env.SHED_PAGE_PICTURES}/live-page-job.png`);
  await context.close();
});

// The last ones, because they look at all pages before.
test("no request left the page's host, and no script failed", () => {
  const urls = seen.flatMap((one) => one.urls);
  assert.ok(urls.length > 100);
  const { origin } = new URL(backend.url);
  assert.deepEqual(urls.filter((url) => new URL(url).origin !== origin), []);
  assert.deepEqual(seen.flatMap((one) => one.errors).filter((error) => !/net::ERR_|status of [45]/.test(error)), []);
  console.log(`  ${urls.length} requests, all to ${origin}`);
});
