// The simulator as WebAssembly, in Node: the same rows as the program's, to the last digit; what
// goes wrong; what the page relies on.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { decompress } from "lzma1";
import { Experiment } from "../src/model.js";
import { fromHash, toHash } from "../src/playground/share.js";
import { Simulator } from "../src/playground/wasm.js";
import { answers } from "../src/playground/answers.js";
import { ROOT, TARGET, anysched } from "./made.mjs";

const WASM = process.env.SIMULATOR
  ?? join(TARGET, "wasm32-unknown-unknown/playground/anysched_playground.wasm");
const LESSONS = JSON.parse(readFileSync(join(ROOT, "report/src/playground/lessons.json"), "utf8"));
const MODULE = new WebAssembly.Module(readFileSync(WASM));
const told = [];
const simulator = new Simulator(MODULE, (done, total) => told.push([done, total]));

/** The answer to a request, which is met. */
function ask(request) {
  const { json, blocks } = simulator.ask(request);
  const answer = JSON.parse(json);
  assert.equal(answer.error, undefined, answer.error?.text);
  return { answer, blocks };
}

/** Why a request is not met. */
function refused(request) {
  const { error } = JSON.parse(simulator.ask(request).json);
  assert.ok(error, "it was refused");
  return error;
}

const built = (name) => ask({ op: "built", name }).answer;

// Each with fewer seeds, policies or less time where it would take long.
const SAME = [
  ["quickstart"],
  ["classroom/e1-round-robin"],
  ["classroom/e2-shortest-first"],
  ["classroom/e3-priority"],
  ["classroom/e4-feedback-queue"],
  ["classroom/e5-deadlines"],
  ["pbg/e1-equal", { seeds: 2 }],
  ["pbg/e2-unequal", { seeds: 2 }],
  ["pbg/e8-noise", { seeds: 1 }],
  ["m-rsf/e1-slice", { seeds: 1 }],
  ["m-rsf/e2-poisson", { seeds: 1 }],
  ["m-rsf/e3-operations", { seeds: 1 }],
  ["m-rsf/e6-uniform", { seeds: 1 }],
  ["gfs/linux/e2-eight-cpus", { seeds: 1 }],
  ["gfs/e6-spinners", { seeds: 1 }],
  ["gfs/e7-regroup", { seeds: 1 }],
  ["credit/xen/e1-ping", { seeds: 2 }],
  ["credit/e4-dom0", { seeds: 1 }],
  ["sedf-dm/xen/e2-cyclictest", { seeds: 1 }],
  ["beyond/e3-errors", { seeds: 1 }],
  ["quickstart", { seeds: 1, policies: ["rr", "credit2"], settings: [["machine.cpus", "4"]] }],
];

for (const [name, { seeds, policies, settings } = {}] of SAME) {
  test(`${name}${policies ? ", changed," : ""} gives the rows of the program to the last digit`, () => {
    const experiment = { ...built(name), seeds, policies, settings };
    const { answer } = ask({ op: "run", experiment });
    const args = [seeds && ["--seeds", String(seeds)],
      policies && ["--policy", policies.join(",")],
      (settings ?? []).flatMap(([key, value]) => ["--set", `${key}=${value}`])];
    const run = (format) => anysched("run", `experiments/${name}.toml`, "--format", format,
      ...args.filter(Boolean).flat());
    // Byte by byte: rows, claims, and the hash of the experiment and its files.
    assert.equal(answer.results, run("json"));
    if (name === "quickstart") assert.equal(answer.table, run("table"));
  });
}

test("a chart is the command's", () => {
  const name = "classroom/e5-deadlines";
  ask({ op: "run", experiment: built(name) });
  const { answer } = ask({ op: "gantt", group: 0, from: null, until: null });
  const command = (...args) => anysched("gantt", `experiments/${name}.toml`, ...args);
  assert.equal(answer.svg, command("--format", "svg"));
  assert.equal(answer.text, command("--columns", "100", "--marks"));
});

test("a report has the data of the command's", () => {
  const name = "classroom/e1-round-robin";
  ask({ op: "run", experiment: built(name) });
  const { answer, blocks } = ask({ op: "report", file: "f", command: "c", changes: "",
    events: 1e6 });
  const [{ details, results }] = answer.experiments;
  assert.equal(details.file, "f");
  assert.equal(blocks.length, 2 * details.timelines.length);
  assert.ok(results.rows.some((row) => row.axes.workload === "P2"));
});

test("progress is told, within long runs too", () => {
  told.length = 0;
  const toml = built("quickstart").toml.replace('duration = "5s"', 'duration = "100s"');
  const experiment = { path: "built-in:/experiments/long.toml", toml, seeds: 1, policies: ["rr"] };
  ask({ op: "run", experiment });
  assert.ok(told.some(([done]) => done !== Math.floor(done)), "a part of a run");
  assert.deepEqual(told.at(-1), [2, 2]);
});

test("errors have their place and a remedy", () => {
  const { path, toml } = built("quickstart");
  const wrong = toml.replace("cpus = 2", "cpus = \"two\"");
  const error = refused({ op: "read", experiment: { path, toml: wrong } });
  assert.equal(error.line, wrong.split("\n").findIndex((line) => line.startsWith("cpus")) + 1);
  assert.ok(error.column > 1);
  const unknown = refused({ op: "read", experiment: { path, toml: toml.replace('"eevdf"',
    '"eevdv"') } });
  assert.match(unknown.text, /eevdv/);
  assert.match(unknown.text + unknown.remedy, /eevdf/);
  // A file that is nowhere.
  const missing = refused({ op: "read", experiment: { path: "own.toml", toml: toml.replace(
    "../traces/cargo-build.txt.gz", "mine.txt") } });
  assert.match(missing.text, /"mine\.txt" is not attached/);
  assert.match(missing.remedy, /attach it/);
  assert.match(refused({ op: "frobnicate" }).text, /not a request/);
});

test("what a page has no place for is refused in words", () => {
  const own = (machine) => refused({ op: "read", experiment: { path: "own.toml", toml: `
question = "?"
[machine]
${machine}
[[workload]]
kind = "hog"
[sweep]
policy = ["rr"]
` } });
  assert.match(own('topology = "host"').text, /\/sys|host|operation not supported/);
});

test("traces are imported, also from a file that is packed", () => {
  const packed = readFileSync(join(ROOT, "traces/cargo-build.txt.gz"));
  const name = "recorded.txt.gz";
  const bytes = packed.toString("base64");
  const { answer } = ask({ op: "import", name, bytes });
  assert.equal(answer.format, "ftrace");
  assert.ok(answer.tasks > 10);
  const experiment = { path: "recorded.toml", toml: answer.toml, files: { [name]: bytes } };
  const { answer: run } = ask({ op: "run", experiment });
  assert.ok(JSON.parse(run.results).rows.length >= 3);
  const nothing = refused({ op: "import", name: "a.bin", bytes: Buffer.from("??").toString(
    "base64") });
  assert.match(nothing.text, /a\.bin: it begins as no known format does; there are /);
  const zip = Buffer.from("PK\x03\x04 and so on").toString("base64");
  assert.match(refused({ op: "import", name: "b.zip", bytes: zip }).text, /a zip is not read here/);
});

test("each expression of a lesson has a value, and choices have one answer", () => {
  for (const { id, questions } of LESSONS) {
    ask({ op: "run", experiment: built(`classroom/${id}`) });
    const { answer } = ask({ op: "report", file: "", command: "", changes: "", events: 0 });
    const experiment = new Experiment(answer.experiments[0], "");
    for (const question of questions) {
      const right = answers(question, experiment);
      assert.ok(right.length >= 1 && right.every(Number.isFinite), `${id}: ${question.ask}`);
      assert.equal(right.length, 1, `${id}: ${question.ask}`);
      if (!question.number) assert.ok(question.options[right[0]], question.ask);
    }
  }
});

test("LZMA is unpacked as it was packed", () => {
  const packed = readFileSync(join(TARGET, "playground/simulator.lzma"));
  assert.equal(Buffer.compare(decompress(new Uint8Array(packed)), readFileSync(WASM)), 0);
});

test("a link gives back what it shares, and is refused if it is too long", async () => {
  const shared = { path: "ö.toml", toml: "question = \"…\"\n", files: { "a b": "AAEC" } };
  const hash = await toHash(shared);
  assert.match(hash, /^x=[\w-]+$/);
  assert.deepEqual(await fromHash(`#${hash}`), shared);
  assert.equal(await fromHash("#table"), null);
  await assert.rejects(fromHash("#x=abc"));
  const noise = gzipSync(readFileSync(WASM).subarray(0, 200_000)).toString("base64");
  await assert.rejects(toHash({ path: "a.toml", toml: noise }), /the link would have \d+ KB/);
});
