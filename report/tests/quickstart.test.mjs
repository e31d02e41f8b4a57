// The quickstart's report: a person's four questions, and what is shown beside the JSON.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open } from "./browser.mjs";
import { anysched, made, picture } from "./made.mjs";

const FILE = "experiments/quickstart.toml";
const MIX = "synthetic mix";
let [page, faults, close, json] = [];

before(async () => {
  const report = made(FILE);
  json = report.json();
  ({ page, faults, close } = await open(report.page));
  page.setDefaultTimeout(20_000);
});
after(() => close?.());

/** The number that a text begins with, in ns. */
function ns(text) {
  const [, number, unit] = /(-?[\d.]+)(?: ± [\d.]+)? ?(ns|us|ms|s)\b/.exec(text);
  return Number(number) * { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[unit];
}

/** Results of the same experiment with rows of each load. */
function byWorkload() {
  return JSON.parse(anysched("run", FILE, "--by", "workload", "--format", "json")).rows;
}

test("a person answers four questions without reading documentation", async () => {
  const rows = byWorkload().filter((row) => row.axes.scenario === MIX);
  const of = (workload) => rows.filter((row) => row.axes.workload === workload);
  // Which policy wakes the editor soonest?
  await page.selectOption("#answer select", { label: `${MIX}, tasks of editor` });
  const card = page.locator(".card", { hasText: "Least mean wake-up latency" });
  const best = (await card.locator(".best .policy").textContent()).trim();
  const real = of("editor").filter((row) => !row.clairvoyant);
  real.sort((a, b) => a.metrics.wakeup_latency_ns.mean - b.metrics.wakeup_latency_ns.mean);
  assert.equal(best, real[0].policy);
  const shown = ns(await card.locator(".best .figure").textContent());
  assert.ok(Math.abs(shown / real[0].metrics.wakeup_latency_ns.mean - 1) < 0.01, String(shown));
  // What does it cost the batch?
  const cost = await card.locator(".cost", { hasText: "batch" }).textContent();
  const batch = of("batch").find((row) => row.policy === best).metrics.busy_ns;
  assert.match(cost, /^Under .+, batch has CPU time of .+; the best is .+ under .+\.$/);
  assert.ok(Math.abs(ns(cost) / batch.mean - 1) < 0.01, cost);
  // How sure is that?
  const sure = await card.textContent();
  const [, next] = /Next is ([\w-]+), /.exec(sure);
  assert.equal(next, real[1].policy);
  assert.match(sure, /(Sure: .* leaves out 0|Not sure: .* includes 0)\./);
  await card.screenshot({ path: picture("answer") });
  // Why did task 12 wait at 40 ms?
  await page.getByRole("link", { name: "Timeline" }).click();
  await page.getByLabel("policy", { exact: true }).selectOption("rr");
  await page.getByLabel("task", { exact: true }).fill("task 12");
  await page.getByLabel("at", { exact: true }).fill("40ms");
  await page.getByRole("button", { name: "Why did it wait?" }).click();
  const why = JSON.parse(anysched("why", FILE, "--policy", "rr", "--group", "1", "--task", "12",
    "--at", "40ms", "--format", "json"));
  const sentence = await page.locator(".why .sentence").textContent();
  const [, length, from, until] =
    /task 12 waited (\S+) under rr, from (\S+) \(new\) to (\S+),/.exec(sentence);
  const close = (text, expected) => assert.ok(Math.abs(ns(text) - expected) < 1e3, text);
  close(length, why.until_ns - why.from_ns);
  close(from, why.from_ns);
  close(until, why.until_ns);
  await page.locator("#timeline").screenshot({ path: picture("why") });
  assert.deepEqual(faults, []);
});

test("each wait is told as the command tells it", async () => {
  for (const [policy, task, at] of [["rr", "editor-0", "22ms"], ["eevdf", "batch", "75ms"],
    ["cfs", "batch", "60ms"], ["mlfq", "task 10", "50ms"], ["credit2", "batch", "60ms"]]) {
    await page.getByLabel("policy", { exact: true }).selectOption(policy);
    await page.getByLabel("task", { exact: true }).fill(task);
    await page.getByLabel("at", { exact: true }).fill(at);
    await page.evaluate(() => report.timelines.opening);
    const asked = ["--policy", policy, "--group", "1", "--task", task.replace("task ", ""), "--at",
      at, "--format", "json"];
    let why;
    try {
      why = JSON.parse(anysched("why", FILE, ...asked));
    } catch {
      // It did not wait then, which the page says, too.
      await page.getByRole("button", { name: "Why did it wait?" }).click();
      assert.match(await page.locator(".why").textContent(), /did not wait at/);
      continue;
    }
    await page.getByRole("button", { name: "Why did it wait?" }).click();
    await page.evaluate(() => report.timelines.selecting);
    const found = await page.evaluate(() => {
      const { timelines: view } = report;
      const [picture] = view.pictures;
      const { task, wait } = picture.selected;
      const found = view.explanation(picture.timeline, task, wait);
      const plain = ({ a, b, ...rest }) => ({ ...rest, a: a == null ? null : String(a),
        b: b == null ? null : String(b) });
      return { ...found, choices: found.choices.map(plain) };
    });
    assert.deepEqual([found.task, found.from, found.until, found.cpu],
      [why.waited.task, why.from_ns, why.until_ns, why.picked_by_cpu], `${policy} ${task}`);
    const ran = (list) => Object.fromEntries(list.sort());
    const ours = found.cpus.flatMap(({ cpu, ran }) =>
      ran.map((one) => [`${cpu} ${one.task}`, one.time]));
    const theirs = why.ran_meanwhile.filter((one) => one.ran)
      .map((one) => [`${one.cpu} ${one.ran.task}`, one.time_ns]);
    assert.deepEqual(ran(ours), ran(theirs), `${policy} ${task}`);
    // The first choices, with what decided each.
    const codes = { by: 0, ready_since_ns: 1, runqueue: 2 };
    for (const choice of found.choices) {
      const known = why.choices.find((one) => one.at_ns === choice.time && one.cpu === choice.cpu
        && one.picked?.task === choice.chosen);
      assert.ok(known, `${policy} ${task}: ${JSON.stringify(choice)}`);
      const { reason } = known;
      const code = !reason ? 5 : reason.by === "tie" ? 4 : reason.despite ? 3
        : codes[reason.by] ?? 0;
      assert.equal(choice.code, code);
      if (code <= 3) {
        assert.deepEqual([choice.a, choice.b], [String(reason.chosen), String(reason.other)]);
      }
      if (code === 0 || code === 3) assert.equal(choice.name, reason.by ?? reason.despite);
    }
    const told = why.choices.filter((one) => one.picked && one.reason?.by !== "runqueue").length;
    assert.ok(found.choices.length >= Math.min(told, 3), `${policy} ${task}`);
  }
  assert.deepEqual(faults, []);
});

test("tables sort, and show what the JSON has", async () => {
  const table = page.locator("#table .group", { hasText: MIX });
  const head = table.getByRole("button", { name: /wake-up latency, mean/ });
  const lines = async () => table.locator("tbody tr").evaluateAll((rows) => rows.map((row) =>
    [...row.cells].map((cell) => [cell.textContent, cell.dataset.value])));
  await head.click();
  const up = await lines();
  await page.locator("#table").screenshot({ path: picture("table") });
  const sorted = [...up].sort((a, b) => a[2][1] - b[2][1]);
  assert.deepEqual(up, sorted);
  assert.equal(up.length, 15);
  assert.equal(await table.locator("th[aria-sort]").getAttribute("aria-sort"), "ascending");
  await table.getByRole("button", { name: /wake-up latency, mean/ }).press("Enter");
  // Policies with the same value keep their order.
  const means = (rows) => rows.map((row) => row[2][1]);
  assert.deepEqual(means(await lines()), means(up).reverse());
  for (const [policy, , mean] of up) {
    const row = json.rows.find((row) => row.axes.scenario === MIX
      && policy[0].replace(" *", "") === row.policy);
    assert.equal(Number(mean[1]), row.metrics.wakeup_latency_ns.mean);
    const [, shown, , margin] = /^([\d.]+)( ± ([\d.]+))?$/.exec(mean[0]);
    assert.ok(Math.abs(Number(shown) - row.metrics.wakeup_latency_ns.mean / 1e6) <= 0.005001);
    if (margin) {
      assert.ok(Math.abs(Number(margin) - row.metrics.wakeup_latency_ns.ci95 / 1e6) <= 0.005001);
    }
  }
});

test("a comparison is of the same seeds", async () => {
  await page.locator("#table").getByLabel("compare with").selectOption("eevdf");
  const table = page.locator("#table .group", { hasText: MIX });
  const [cell] = await table.locator("tbody tr", { hasText: "mlfq-arceos" }).locator("td")
    .evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));
  const mean = (policy) => json.rows.find((row) => row.axes.scenario === MIX
    && row.policy === policy).metrics.waiting_time_ns.mean;
  assert.ok(Math.abs(cell / (mean("mlfq-arceos") - mean("eevdf")) - 1) < 1e-9);
  await page.locator("#table").getByLabel("compare with").selectOption("");
});

test("points of a plot lead to seeds", async () => {
  await page.getByRole("link", { name: "Plot" }).click();
  const plot = page.locator("#plot");
  await plot.getByLabel("show").selectOption("wakeup_latency_ns_mean");
  await plot.getByLabel("of", { exact: true }).selectOption({ label: MIX });
  const points = plot.locator(".mark-symbol path");
  await points.nth(14).waitFor();
  assert.equal(await points.count(), 15);
  await points.nth(3).hover();
  const tip = await plot.locator(".tooltip").textContent();
  await points.nth(3).click();
  await plot.screenshot({ path: picture("plot") });
  const seeds = plot.locator(".seeds tbody tr");
  assert.equal(await seeds.count(), 5);
  const values = await seeds.locator("td[data-value]").evaluateAll((cells) =>
    cells.map((cell) => Number(cell.dataset.value)));
  const policy = /^[\w-]+/.exec(tip)[0];
  const row = json.rows.find((row) => row.axes.scenario === MIX && row.policy === policy);
  const mean = values.reduce((a, b) => a + b) / 5;
  assert.ok(Math.abs(mean / row.metrics.wakeup_latency_ns.mean - 1) < 1e-9, tip);
  assert.ok(Math.abs(ns(tip.replace(/^.*?: /, "")) / mean - 1) < 0.2, tip);
});

test("distributions are those that the metrics summarise", async () => {
  const [known, wrong] = await page.evaluate(() => {
    const { experiment } = report;
    const { details } = experiment;
    const wrong = [];
    let known = 0;
    for (const one of details.distributions) {
      const group = experiment.groups.find((group) => group.planned === one.group
        && group.axes.workload === (one.load ?? "all"));
      const [run] = experiment.runsOf(group.index, details.policies[one.policy].label);
      for (const [stat, percent] of [["p50", 50], ["p95", 95], ["p99", 99], ["max", 100]]) {
        const value = run.values[experiment.byName.get(`${one.metric}_${stat}`).index];
        const found = one.values[details.percents.indexOf(percent)];
        known += 1;
        if (value !== found) wrong.push([one.policy, one.load, one.metric, stat, value, found]);
      }
    }
    return [known, wrong];
  });
  assert.deepEqual(wrong, []);
  assert.ok(known > 1000, String(known));
  // The line ends at the largest, and what is under the pointer says so.
  await page.getByRole("link", { name: "Distributions" }).click();
  const section = page.locator("#distributions");
  await section.getByLabel("of", { exact: true }).selectOption({
    label: `${MIX}, tasks of editor` });
  await section.locator(".mark-line path").first().waitFor();
  assert.equal(await section.locator(".mark-line path").count(),
    await section.locator("input:checked").count() - 1, "a line for each policy that is chosen");
  await section.screenshot({ path: picture("distributions") });
  await section.getByLabel("as", { exact: true }).selectOption("histogram");
  await section.locator(".mark-rect path").first().waitFor();
  await section.screenshot({ path: picture("histogram") });
});

test("two schedules part where the command says", async () => {
  for (const [a, b] of [["rr", "eevdf"], ["fcfs", "sjf"], ["cfs", "credit2"]]) {
    await page.getByLabel("policy", { exact: true }).selectOption(a);
    await page.getByLabel("beside").selectOption(b);
    await page.evaluate(() => report.timelines.opening);
    await page.waitForFunction((names) => document.querySelector(".difference").textContent
      .startsWith(names), `${a} and ${b}`);
    const found = await page.evaluate(() => report.timelines.pictures[0].parting);
    const diff = JSON.parse(anysched("diff", FILE, "--policy", `${a},${b}`, "--group", "1",
      "--format", "json"));
    assert.deepEqual([found.time, found.cpu, found.alike],
      [diff.sides[0].at_ns, diff.sides[0].cpu, diff.alike], `${a} ${b}`);
    const text = await page.locator(".difference").textContent();
    for (const side of diff.sides) if (side.runs) assert.ok(text.includes(side.runs.name), text);
  }
  await page.getByRole("button", { name: "go there" }).click();
  await page.waitForTimeout(300);
  await page.locator("#timeline").screenshot({ path: picture("compare") });
  await page.getByLabel("beside").selectOption("");
});

test("the timeline zooms and moves by wheel and keys, and tells what is there", async () => {
  await page.getByLabel("policy", { exact: true }).selectOption("rr");
  await page.evaluate(() => report.timelines.opening);
  await page.getByLabel("task", { exact: true }).fill("");
  await page.getByRole("button", { name: "Show all" }).click();
  const window = () => page.evaluate(() => ({ ...report.timelines.view }));
  const whole = await window();
  const canvas = page.locator("canvas").first();
  await canvas.focus();
  await page.keyboard.press("+");
  const half = await window();
  assert.ok(Math.abs((half.until - half.from) / (whole.until - whole.from) - 0.5) < 1e-6);
  await page.keyboard.press("ArrowRight");
  assert.ok((await window()).from > half.from);
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 500, box.y + 85);
  const before = await page.evaluate(() => report.timelines.pictures[0].time(500));
  for (let i = 0; i < 60; i++) await page.mouse.wheel(0, -200);
  const near = await window();
  assert.ok(near.until - near.from < 1e4, "down to microseconds");
  assert.ok(Math.abs(near.from - before) < 1e6, "around the pointer");
  await page.keyboard.press("0");
  await page.getByLabel("from", { exact: true }).fill("0ms");
  await page.getByLabel("until", { exact: true }).fill("80ms");
  await page.keyboard.press("Tab");
  await page.waitForTimeout(300);
  // CPU 0 runs batch until 50.037 ms.
  const x = await page.evaluate(() => report.timelines.pictures[0].x(30e6));
  const top = await page.evaluate(() => report.timelines.pictures[0].top);
  await canvas.hover({ position: { x, y: top + 8 } });
  assert.match(await page.locator(".hover").textContent(), /CPU 0 runs batch \(task 2\)/);
  // A click on a wait says why, as the keys do.
  const [waits, row] = await page.evaluate(() => [report.timelines.pictures[0].x(23e6),
    report.timelines.pictures[0].taskTop]);
  await canvas.click({ position: { x: waits, y: row + 8 } });
  const told = () => page.locator(".sentence").textContent();
  assert.match(await told(), /^editor-0 \(task 0\) waited 7\.244ms/);
  await page.keyboard.press("n");
  assert.match(await told(), /^editor-0/);
  await page.keyboard.press("ArrowDown");
  assert.match(await told(), /^editor-1/);
  assert.deepEqual(faults, []);
});
