// The playground in a browser, from disk, where each request of the network is an error.

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { serious } from "./axe.mjs";
import { look } from "./browser.mjs";
import { ROOT, TARGET, anysched, picture } from "./made.mjs";

const FILE = process.env.PLAYGROUND ?? join(TARGET, "playground/playground.html");
const TRACE = join(ROOT, "traces/cargo-build.txt.gz");
const LONG = `question = "How long does it take?"
duration = "3600s"
[machine]
cpus = 4
[[workload]]
kind = "interactive"
tasks = 20
run = "exp(1ms)"
sleep = "5ms"
[sweep]
policy = ["cfs"]
`;

/** Has `use` look at the playground once it has read what it begins with. */
const play = (options, use) => look(FILE, { ready: "#run", ...options }, async (page) => {
  await page.waitForFunction(() => globalThis.playground?.known || !document.querySelector(".fault")
    ?.hidden);
  return use(page);
});

const done = (page) => page.waitForFunction(() => !playground.running && playground.done);

async function run(page) {
  await page.click("#run");
  await done(page);
}

/** Types an experiment. */
async function type(page, toml) {
  await page.fill("#toml", toml);
}

test("the quickstart, from a click to the table, the timeline and a wait", async () => {
  await play({}, async (page) => {
    const took = page.evaluate(async () => {
      const began = performance.now();
      document.getElementById("run").click();
      while (!document.querySelector("#table table")) {
        await new Promise((done) => setTimeout(done, 5));
      }
      return performance.now() - began;
    });
    console.log(`from click to table: ${((await took) / 1000).toFixed(2)} s`);
    await done(page);
    assert.ok((await took) < 60_000);
    const shown = await page.evaluate(() => playground.done.results);
    const results = JSON.parse(anysched("run", "experiments/quickstart.toml", "--by", "workload",
      "--format", "json"));
    assert.deepEqual(shown.rows, results.rows);
    for (const id of ["answer", "table", "gantt", "plot", "timeline"]) {
      assert.equal(await page.locator(`#results #${id}`).count(), 1, id);
    }
    await page.locator("#timeline").scrollIntoViewIfNeeded();
    await page.waitForSelector("#timeline canvas");
    await page.locator("#timeline").getByLabel("policy", { exact: true }).selectOption("rr");
    await page.evaluate(() => playground.outcome.page.timelines.opening);
    await page.locator("#find").fill("editor-0");
    await page.locator("#at").fill("22ms");
    await page.getByRole("button", { name: "Why did it wait?" }).click();
    assert.match(await page.locator(".sentence").textContent(), /^editor-0/);
    assert.match(await page.locator("#repeat code").first().textContent(),
      /^anysched run experiments\/quickstart\.toml$/);
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: picture("playground"), fullPage: true });
  });
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing serious, in ${colorScheme}`, async () => {
    await play({ colorScheme, hash: "#start=lesson:e1-round-robin" }, async (page) => {
      assert.deepEqual(await serious(page), []);
      await run(page);
      await page.locator(".loads summary").click();
      await page.waitForSelector("#gantt img");
      await page.locator("#timeline").scrollIntoViewIfNeeded();
      await page.waitForSelector("#timeline canvas");
      await page.waitForTimeout(500);
      assert.deepEqual(await serious(page), []);
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({ path: picture(`lesson-${colorScheme}`), fullPage: true });
      await type(page, "question = 1");
      await page.waitForSelector(".fault:not([hidden])");
      assert.deepEqual(await serious(page), []);
      await page.locator(".setup").screenshot({ path: picture(`fault-${colorScheme}`) });
    });
  });
}

test("a lesson says what is right, what is wrong, and where to look", async () => {
  await play({ hash: "#start=lesson:e1-round-robin" }, async (page) => {
    const question = (at) => page.locator(".questions form").nth(at);
    await question(0).getByRole("textbox").fill("18");
    await question(0).getByRole("button", { name: "Check" }).click();
    await question(0).locator(".told.wrong").waitFor();
    await question(0).getByRole("textbox").fill("17 ms");
    await question(0).getByRole("textbox").press("Enter");
    await question(0).locator(".told.right").waitFor();
    await question(2).getByLabel("rr").check();
    await question(2).getByRole("button", { name: "Check" }).click();
    await question(2).locator(".told.wrong").waitFor();
    await question(2).getByLabel("sjf").check();
    await question(2).getByRole("button", { name: "Check" }).click();
    await question(2).locator(".told.right").waitFor();
    await question(2).getByRole("button", { name: "See the table" }).click();
    assert.ok(await page.locator("#table h2").isVisible());
    // The answers follow the experiment: with other numbers others are right.
    const toml = await page.locator("#toml").inputValue();
    await type(page, toml.replace("24ms", "12ms"));
    await question(0).getByRole("button", { name: "Check" }).click();
    await question(0).locator(".told.wrong").waitFor();
    await question(0).getByRole("textbox").fill("9");
    await question(0).getByRole("button", { name: "Check" }).click();
    await question(0).locator(".told.right").waitFor();
  });
});

test("a link brings all of it back", async () => {
  const link = await play({}, async (page) => {
    await type(page, LONG.replace("3600s", "1s"));
    await page.fill("#name", "shared");
    await page.fill("#cpus", "3");
    await page.fill("#settings", "machine.tick=2ms");
    await page.waitForFunction(() => playground.known.policies.length === 1);
    await page.fill("#policy-search", "eevdf");
    await page.locator("#policy-eevdf").check();
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.waitForFunction(() => location.hash.startsWith("#x="));
    return page.evaluate(() => location.hash);
  });
  await play({ hash: link }, async (page) => {
    assert.equal(await page.locator("#toml").inputValue(), LONG.replace("3600s", "1s"));
    assert.equal(await page.locator("#name").inputValue(), "shared");
    assert.equal(await page.locator("#cpus").inputValue(), "3");
    assert.equal(await page.locator("#settings").inputValue(), "machine.tick=2ms");
    await run(page);
    const { policies, machines } = await page.evaluate(() => playground.done.details);
    assert.deepEqual(policies.map(({ label }) => label), ["cfs", "eevdf"]);
    assert.equal(machines[0].cpus.length, 3);
    assert.match(await page.locator("#repeat code").first().textContent(),
      /^anysched run shared\.toml --policy cfs,eevdf --set machine\.cpus=3 --set machine\.tick=2ms$/);
  });
  await play({ hash: "#x=damaged" }, async (page) => {
    assert.match(await page.locator(".fault").textContent(), /This link cannot be opened/);
  });
});

test("an error shows its place and a remedy, and goes away", async () => {
  await play({}, async (page) => {
    const wrong = LONG.replace('"cfs"', '"cfz"');
    await type(page, wrong);
    await page.waitForSelector(".fault:not([hidden])");
    const line = wrong.split("\n").findIndex((text) => text.includes("cfz")) + 1;
    assert.equal(await page.locator(".numbers .marked").textContent(), String(line));
    const text = await page.locator(".fault").textContent();
    assert.match(text, /cfz/);
    assert.match(text, /help: .*cfs/);
    await page.getByRole("button", { name: `Go to line ${line}` }).click();
    const at = await page.evaluate(() => document.activeElement.selectionStart);
    assert.equal(wrong.slice(0, at).split("\n").length, line);
    await type(page, LONG);
    await page.waitForSelector(".fault", { state: "hidden" });
  });
});

test("a trace that is dropped is imported and runs", async () => {
  await play({}, async (page) => {
    const bytes = readFileSync(TRACE).toString("base64");
    await page.evaluate(async (bytes) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))],
        "mine.txt.gz"));
      document.querySelector(".drop").dispatchEvent(new DragEvent("drop",
        { dataTransfer: data, bubbles: true, cancelable: true }));
    }, bytes);
    await page.locator(".attached", { hasText: "mine.txt.gz" }).waitFor();
    await page.waitForFunction(() => playground.path === "mine.toml");
    await run(page);
    const policies = await page.evaluate(() => playground.done.policies);
    assert.deepEqual(policies, ["rr", "cfs", "eevdf"]);
    // It is too large for a link, which is said.
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.locator(".fault", { hasText: "the link would have" }).waitFor();
    // The same by the button.
    await page.setInputFiles("#file", TRACE);
    await page.locator(".attached", { hasText: "cargo-build.txt.gz" }).waitFor();
  });
});

test("what runs can be stopped, and the next run is as any other", async () => {
  await play({}, async (page) => {
    await type(page, LONG);
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(() => playground.bar.value > 0);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.waitForFunction(() => !playground.running);
    assert.equal(await page.locator(".said").textContent(), "Stopped.");
    await type(page, LONG.replace("3600s", "100ms"));
    await run(page);
    assert.ok(await page.locator("#table table").isVisible());
  });
});

test("a load is added by its form, and an experiment opened by its name", async () => {
  await play({ hash: "#start=own" }, async (page) => {
    await page.locator(".loads summary").click();
    await page.getByLabel("kind").selectOption("interactive");
    await page.getByRole("button", { name: "Add to the experiment" }).click();
    await page.waitForFunction(() => playground.editor.value.includes('"interactive"'));
    await run(page);
    assert.equal(await page.evaluate(() => playground.done.details.groups[0].loads.length), 2);
    await page.getByLabel("Start with").selectOption("built:pbg/e1-equal");
    await page.waitForFunction(() => playground.path.endsWith("pbg/e1-equal.toml"));
    assert.equal(await page.locator("#results").textContent(), "");
  });
});

test("keys alone reach everything, and leave the text", async () => {
  await play({ hash: "#start=lesson:e2-shortest-first" }, async (page) => {
    await page.evaluate(() => document.body.focus());
    const reached = new Set();
    for (let i = 0; i < 200 && !reached.has("FOOTER"); i++) {
      const on = await page.evaluate(() => document.activeElement.id);
      if (on === "toml") await page.keyboard.press("Escape");
      await page.keyboard.press("Tab");
      reached.add(await page.evaluate(() => {
        const { activeElement: one } = document;
        return one.closest("footer")?.tagName ?? (one.id || one.className || one.textContent);
      }));
    }
    for (const id of ["skip", "start", "file", "policy-search", "cpus", "toml", "run", "FOOTER"]) {
      assert.ok(reached.has(id), `${id} of ${[...reached]}`);
    }
  });
});

test("the page is small as servers send it", () => {
  const size = gzipSync(readFileSync(FILE), { level: 9 }).length;
  console.log(`${statSync(FILE).size} bytes, ${size} compressed`);
  assert.ok(size <= 1_500_000, String(size));
});
