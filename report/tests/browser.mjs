// Chromium with a report in it.

import { chromium } from "playwright-core";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** Opens a file, with what stands behind `#` if anything does; gives the page once `ready` is there,
 * and `close`. What the page asks of the network is an error. */
export async function open(file, { ready = "main h2", hash = "", ...options } = {}) {
  const profile = mkdtempSync(join(tmpdir(), "report-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: ARGS,
    viewport: { width: 1280, height: 900 }, ...options,
  });
  const page = context.pages()[0] ?? (await context.newPage());
  const faults = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(message.text());
  });
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) faults.push(`request: ${request.url()}`);
  });
  await page.goto(pathToFileURL(file).href + hash);
  await page.waitForSelector(ready);
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { page, faults, close };
}

/** Has `use` look at a file in a browser that ends however that ends. */
export async function look(file, options, use) {
  const { page, faults, close } = await open(file, options);
  page.setDefaultTimeout(20_000);
  try {
    const found = await use(page);
    if (faults.length) throw new Error(faults.join("\n"));
    return found;
  } finally {
    await close();
  }
}
