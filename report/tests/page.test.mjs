// Any report: no network, light and dark, print, keyboard, what axe finds, results without runs.

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { serious } from "./axe.mjs";
import { look } from "./browser.mjs";
import { TEXT, shown } from "./picture.mjs";
import { FOLDER, ROOT, anysched, made, picture, written } from "./made.mjs";

const SWEEP = `
question = "How does the wait grow with the load?"
[machine]
cpus = 2
[[workload]]
kind = "open"
service = "exp(5ms)"
load = 0.5
tasks = 400
[sweep]
policy = ["fcfs", "rr", "cfs"]
"workload.0.load" = [0.3, 0.5, 0.7, 0.9]
seeds = 4
[[claim]]
id = "more load"
text = "The wait of fcfs is longer at 0.9 than at 0.3"
expect = "fcfs.waiting_time_ns_mean > 0"
measure = "fcfs.waiting_time_ns_mean / 1ms"
unit = "ms"
`;

async function settled(page) {
  for (const id of ["timeline", "distributions", "plot"]) {
    const section = page.locator(`#${id}`);
    if (await section.count()) await section.scrollIntoViewIfNeeded();
  }
  await page.evaluate(() => report.timelines?.opening);
  await page.waitForTimeout(400);
}

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing serious, in ${colorScheme}`, async () => {
    await look(made("experiments/quickstart.toml").page, { colorScheme }, async (page) => {
    await settled(page);
    await page.getByLabel("task", { exact: true }).fill("editor-0");
    await page.getByLabel("at", { exact: true }).fill("22ms");
    await page.getByRole("button", { name: "Why did it wait?" }).click();
    await page.locator("#table tbody button").first().click();
    assert.deepEqual(await serious(page), []);
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: picture(`page-${colorScheme}`), fullPage: true });
    });
  });
}

test("deadlines, claims and their evidence", async () => {
  const file = "experiments/classroom/e5-deadlines.toml";
  const report = made(file);
  const { claims } = report.json();
  await look(report.page, {}, async (page) => {
  await settled(page);
  const shown = page.locator("#claims .claim");
  assert.equal(await shown.count(), claims.length);
  for (const [at, claim] of claims.entries()) {
    const one = shown.nth(at);
    await one.locator("summary").click();
    const text = await one.textContent();
    assert.ok(text.startsWith(claim.verdict), text);
    for (const said of [claim.id, claim.text, claim.paper]) assert.ok(text.includes(said), text);
    assert.equal(await one.locator("tbody tr").count(), claim.checks.length);
  }
  const jobs = await page.evaluate(() => report.timelines.pictures[0].timeline.jobs.length);
  assert.ok(jobs >= 13, "jobs of both tasks in 400 ms");
  assert.deepEqual(await serious(page), []);
  await page.getByLabel("policy", { exact: true }).selectOption("dm");
  await page.evaluate(() => report.timelines.opening);
  const late = await page.evaluate(() => report.timelines.pictures[0].timeline.jobs
    .filter((job) => job.done > job.due).map((job) => [job.due, job.done]));
  assert.deepEqual(late[0], [80e6, 85e6]);
  await page.waitForTimeout(300);
  await page.locator("#timeline").screenshot({ path: picture("deadlines") });
  await page.locator("#claims").screenshot({ path: picture("claims") });
  });
});

test("an axis is plotted, with a point for each row", async () => {
  const report = made(written("sweep.toml", SWEEP));
  const { rows } = report.json();
  await look(report.page, {}, async (page) => {
  await settled(page);
  const points = page.locator("#plot .mark-symbol.role-mark path");
  await points.first().waitFor();
  assert.equal(await points.count(), rows.length);
  await page.locator("#plot").screenshot({ path: picture("axis") });
  const axis = await page.locator("#plot").getByLabel("over").inputValue();
  assert.equal(axis, "workload.0.load");
  assert.deepEqual(await serious(page), []);
  });
});

test("results of earlier runs become one page", async () => {
  const folder = join(FOLDER, "results");
  for (const name of ["e1-round-robin", "e5-deadlines"]) {
    anysched("run", `experiments/classroom/${name}.toml`, "--out", folder);
  }
  const file = join(FOLDER, "results.html");
  anysched("report", folder, "-o", file);
  await look(file, {}, async (page) => {
  await settled(page);
  const known = JSON.parse(readFileSync(join(folder, "e5-deadlines.json"), "utf8"));
  await page.getByLabel("experiment", { exact: true }).selectOption({ label: "e5-deadlines" });
  assert.equal(await page.locator("h1").textContent(), known.title);
  assert.equal(await page.locator("#claims .claim").count(), known.claims.length);
  assert.ok(await page.locator("#table tbody tr").count() >= 2);
  assert.deepEqual(await serious(page), []);
  });
});

test("the page prints, with all its sections", async () => {
  await look(made("experiments/quickstart.toml").page, {}, async (page) => {
  await settled(page);
  const pdf = await page.pdf({ format: "A4", path: join(FOLDER, "print.pdf") });
  assert.ok(pdf.length > 30_000, String(pdf.length));
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("nav").isVisible(), false);
  assert.equal(await page.locator(".controls").first().isVisible(), false);
  for (const id of ["answer", "table", "plot", "timeline", "repeat"]) {
    assert.equal(await page.locator(`#${id}`).isVisible(), true);
  }
  await page.screenshot({ path: picture("print"), fullPage: true });
  });
});

test("keys alone reach everything", async () => {
  await look(made("experiments/quickstart.toml").page, {}, async (page) => {
  await settled(page);
  await page.evaluate(() => {
    scrollTo(0, 0);
    document.body.focus();
  });
  const reached = new Set();
  for (let i = 0; i < 400 && !reached.has("end"); i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const { activeElement: one } = document;
      if (one === document.body) return "end";
      return one.closest("section[id], nav, footer")?.id || one.closest("nav, footer")?.tagName
        || one.className;
    });
    reached.add(at);
  }
  for (const id of ["skip", "NAV", "answer", "table", "plot", "distributions", "timeline",
    "experiment", "repeat", "FOOTER"]) {
    assert.ok(reached.has(id), `${id} of ${[...reached]}`);
  }
  });
});

test("the page without data is small", () => {
  const size = statSync(join(ROOT, "crates/lab/report/page.html")).size;
  assert.ok(size <= 2_000_000, String(size));
});

test("the README's pictures show what a report shows", async () => {
  const remedy = "pictures of another report; type: cargo xtask report --pictures";
  assert.equal(await shown(), readFileSync(TEXT, "utf8"), remedy);
});
