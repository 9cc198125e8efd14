// Chromium, and what its pages asked for.

import { createRequire } from "node:module";
import { join } from "node:path";

// The packages are in the user's cache, which e2e/page.sh fills.
const require = createRequire(join(process.env.SHED_PAGE_MODULES ?? ".", "package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core");

/** Starts Chromium. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.SHED_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  });
}

/** A page with cookies of its own. It records requests, the bodies of answers, and errors of scripts. */
export async function openPage(browser, options = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const seen = { urls: [], bodies: [], errors: [] };
  page.on("request", (request) => seen.urls.push(request.url()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => {
    // A refused request is logged too; it is an answer that the checks look at.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) seen.errors.push(message.text());
  });
  page.on("response", async (response) => {
    // The body of a stream has no end; `data` below has its events.
    if (response.headers()["content-type"]?.startsWith("text/event-stream")) return;
    seen.bodies.push(await response.text().catch(() => ""));
  });
  const devtools = await context.newCDPSession(page);
  await devtools.send("Network.enable");
  devtools.on("Network.eventSourceMessageReceived", ({ data }) => seen.bodies.push(data));
  return { page, context, seen };
}

/** Violations of accessibility that axe-core calls serious or critical. */
export async function violations(page) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`);
}

/** The version of axe-core. */
export const axeVersion = axe.version;
