// The playground: an experiment is chosen or written, run in a worker, and shown as a report.

import { decompress } from "lzma1";
import { h } from "../dom.js";
import { footer, themeButton } from "../page.js";
import { shell } from "../words.js";
import { Editor } from "./editor.js";
import { Engine, Refused, Stopped } from "./engine.js";
import { LESSONS, lesson } from "./lessons.js";
import { Outcome } from "./results.js";
import { Changes, Policies, loads, starts } from "./setup.js";
import { fromBase64, fromHash, toBase64, toHash } from "./share.js";

const OWN = `question = "Which policy answers soonest?"
duration = "2s"

[machine]
cpus = 2
context_switch = "2us"
tick = "1ms"

[[workload]]
kind = "open"
service = "exp(5ms)"
load = 0.8

[sweep]
policy = ["rr", "cfs", "eevdf"]
seeds = 3
`;
const QUIET = 350; // ms without a change before the text is read
const LARGEST = 64 * 2 ** 20;
const BUILT = "built-in:/";

class Playground {
  constructor(engine, about) {
    this.engine = engine;
    this.about = about;
    this.files = new Map();
    this.path = "own.toml";
    this.lesson = null;
    this.done = null;
    // How often what is to be run has changed, and how often it had when it was read.
    [this.version, this.seen] = [0, 0];
    this.#build();
    engine.progress = (done, total) => this.#progress(done, total);
    addEventListener("hashchange", () => this.fromHash());
    addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    });
    this.#drops();
  }

  #build() {
    const changed = () => this.changed();
    this.editor = new Editor({ label: "The experiment, in TOML", changed, run: () => {} });
    this.policies = new Policies(this.about.policies, changed);
    this.changes = new Changes(changed);
    this.outcome = new Outcome(h("div", { id: "results" }), this.engine);
    this.name = h("input", { type: "text", id: "name", size: 16, autocomplete: "off" });
    this.name.addEventListener("input", () => {
      // Files that it names stay beside it.
      const folder = this.path.slice(0, this.path.lastIndexOf("/") + 1);
      this.path = `${folder}${this.name.value.trim() || "own"}.toml`;
      this.changed();
    });
    this.fault = h("div", { class: "fault", role: "alert", hidden: true });
    this.said = h("p", { class: "said hint", role: "status" });
    this.attached = h("ul", { class: "attached" });
    this.start = h("div", { class: "row" });
    this.lessonBox = h("div");
    const app = document.getElementById("app");
    app.replaceChildren(this.#header(), h("main", { id: "main" }, this.lessonBox,
      h("section", { class: "setup", "aria-label": "Experiment" }, this.#choices(), this.#text()),
      this.outcome.app),
    footer(`anysched ${this.about.version}; this page needs no network, and sends nothing.`));
    this.#starts("");
  }

  #header() {
    return h("header", {}, h("div", { class: "top" }, h("span", { class: "brand" },
      "anysched playground"), themeButton(() => this.outcome.redraw())),
    h("h1", {}, "Try CPU scheduling policies"),
    h("p", { class: "question" }, "The simulator runs in this page, and gives the numbers that the "
      + "command gives. Begin with a lesson or an experiment, write your own, or drop a trace."));
  }

  #starts(chosen) {
    this.start.replaceChildren(starts(this.about.experiments, chosen, (start) => this.open(start)));
  }

  #choices() {
    const pick = h("input", { type: "file", id: "file", class: "unseen", multiple: true });
    pick.addEventListener("change", async () => {
      for (const file of pick.files) await this.take(file);
      pick.value = "";
    });
    return h("div", { class: "choices" }, this.start,
      h("div", { class: "drop" }, pick, h("label", { for: "file", class: "button" },
        "Open a file …"), h("span", { class: "hint" },
        "or drop it here: a trace, an experiment, or what it names")),
      this.policies.element, this.changes.element,
      loads(this.about.kinds, (text) => this.#append(text)));
  }

  #text() {
    const button = (text, run, attributes) =>
      h("button", { type: "button", onclick: run, ...attributes }, text);
    this.runButton = button("Run", () => this.run(), { class: "run", id: "run",
      "aria-keyshortcuts": "Control+Enter" });
    this.stopButton = button("Stop", () => this.engine.stop(), { disabled: true });
    this.bar = h("progress", { max: 1, value: 0, "aria-label": "Runs that are done", hidden: true });
    return h("div", { class: "text" },
      h("div", { class: "row" }, h("span", { class: "field" }, h("label", { for: "name" }, "Name"),
        this.name), h("span", { class: "hint" }, "seeds derive from it")),
      this.editor.element,
      h("p", { class: "hint", id: "toml-hint" }, "Tab indents; Escape, then Tab, leaves the text."),
      this.attached, this.fault,
      h("div", { class: "row actions" }, this.runButton, this.stopButton,
        button("Copy link", () => this.share()), button("Save", () => this.save(), {
          title: "Saves the experiment as a file for the command" })),
      this.bar, this.said);
  }

  #drops() {
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", async (event) => {
      event.preventDefault();
      for (const file of event.dataTransfer.files) await this.take(file);
    });
  }

  say(text) {
    this.said.textContent = text;
  }

  /** Shows why something failed, and where. */
  fail(error) {
    this.say("");
    this.fault.hidden = false;
    this.fault.replaceChildren(h("pre", { tabindex: "0", "aria-label": "What is wrong" },
      error.message.trimEnd()));
    if (!(error instanceof Refused) || error.line == null) return;
    this.editor.mark(error.line);
    this.fault.append(h("button", { type: "button", class: "link",
      onclick: () => this.editor.go(error.line, error.column) }, `Go to line ${error.line}`));
  }

  #clearFault() {
    this.fault.hidden = true;
    this.fault.replaceChildren();
    this.editor.mark(null);
  }

  /** What the simulator is asked to read or run. */
  source() {
    const files = Object.fromEntries([...this.files].map(([name, bytes]) =>
      [name, toBase64(bytes)]));
    return { path: this.path, toml: this.editor.value, files,
      policies: this.policies.chosen ?? [], settings: this.changes.settings,
      seeds: this.changes.number };
  }

  /** Something else is to be run: it is read once nothing changes for a moment. */
  changed() {
    this.done = null;
    this.version++;
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.read(), QUIET);
  }

  /** Reads the experiment; says what is wrong with it, and how much it is unless it is `quiet`. */
  async read({ quiet = false } = {}) {
    clearTimeout(this.soon);
    if (this.running) return;
    this.seen = this.version;
    try {
      const { answer } = await this.engine.ask({ op: "read", experiment: this.source() });
      this.#clearFault();
      this.known = answer;
      this.policies.known(answer.policies);
      if (quiet) return;
      const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
      this.say([count(answer.runs, "run"), answer.machine, ...answer.warnings]
        .filter(Boolean).join("; "));
    } catch (error) {
      if (!(error instanceof Stopped)) this.fail(error);
    }
  }

  /** Opens one of the starts. */
  async open(start) {
    const [kind, id] = start.split(":");
    if (start === "own") {
      await this.set({ path: "own.toml", toml: OWN });
    } else {
      const name = kind === "lesson" ? `classroom/${id}` : id;
      const { answer } = await this.engine.ask({ op: "built", name });
      await this.set({ ...answer, lesson: kind === "lesson" ? id : null });
    }
    this.#starts(start);
  }

  /** Path and text of the experiment that is built in at a path; null if there is none. */
  async #built(path) {
    if (!path.startsWith(BUILT)) return null;
    const name = path.slice(`${BUILT}experiments/`.length).replace(/\.toml$/, "");
    try {
      const { answer } = await this.engine.ask({ op: "built", name });
      return `${path}\n${answer.toml}`;
    } catch {
      return null;
    }
  }

  /** Shows an experiment that has not been run. */
  async set({ path, toml, files = {}, policies = null, settings = [], seeds = null,
    lesson: id = null }) {
    if (this.running) this.engine.stop();
    this.path = path;
    this.original = await this.#built(path);
    this.name.value = path.split("/").at(-1).replace(/\.toml$/, "");
    this.editor.value = toml;
    this.files = new Map(Object.entries(files).map(([name, text]) => [name, fromBase64(text)]));
    this.policies.set(policies);
    this.changes.set({ settings, seeds });
    this.lesson = LESSONS.find((one) => one.id === id) ?? null;
    this.outcome.clear();
    this.done = null;
    this.version++;
    this.#attachments();
    this.#starts("");
    this.lessonBox.replaceChildren(this.lesson ? lesson(this.lesson, () => this.ready(),
      (section) => document.getElementById(section)?.scrollIntoView({ behavior: "instant" })) : "");
    await this.read();
  }

  #attachments() {
    this.attached.replaceChildren(...[...this.files].map(([name, bytes]) =>
      h("li", {}, h("code", {}, name), ` ${Math.ceil(bytes.length / 1024)} KB `,
        h("button", { type: "button", class: "link", "aria-label": `Remove ${name}`,
          onclick: () => {
            this.files.delete(name);
            this.#attachments();
            this.changed();
          } }, "remove"))));
  }

  #append(text) {
    this.editor.value = `${this.editor.value.trimEnd()}\n${text}`;
    this.editor.go(this.editor.value.split("\n").length, 1);
    this.changed();
  }

  /** Takes a file: an experiment, a load, or what the experiment names. */
  async take(file) {
    if (file.size > LARGEST) {
      return this.fail(new Error(`${file.name}: ${Math.round(file.size / 2 ** 20)} MB; a page takes `
        + `${LARGEST / 2 ** 20} MB at most, the command takes any file`));
    }
    const bytes = new Uint8Array(await file.arrayBuffer());
    if (file.name.endsWith(".toml")) {
      const files = Object.fromEntries([...this.files].map(([name, own]) => [name, toBase64(own)]));
      return this.set({ path: file.name, toml: new TextDecoder().decode(bytes), files });
    }
    if (this.editor.value.includes(JSON.stringify(file.name))) {
      this.files.set(file.name, bytes);
      this.#attachments();
      return this.read();
    }
    try {
      const { answer } = await this.engine.ask({ op: "import", name: file.name,
        bytes: toBase64(bytes) });
      const stem = file.name.replace(/(\.\w+)+$/, "").replace(/[^\w-]/g, "-") || "own";
      await this.set({ path: `${stem}.toml`, toml: answer.toml,
        files: { [file.name]: toBase64(bytes) } });
      this.say(`${file.name}: ${answer.tasks} tasks, read as ${answer.format}. `
        + answer.warnings.join("; "));
    } catch (error) {
      this.fail(error);
    }
  }

  #progress(done, total) {
    this.bar.max = total;
    this.bar.value = done;
    this.say(`${Math.floor(done)} of ${total} runs`);
  }

  #busy(running) {
    this.running = running;
    this.runButton.disabled = running;
    this.stopButton.disabled = !running;
    this.bar.hidden = !running;
    if (running) this.bar.removeAttribute("value");
  }

  /** The file, the command that makes the same runs of it, and what of that changes it. */
  origin() {
    const { policies, settings, seeds } = this.source();
    const isBuilt = `${this.path}\n${this.editor.value}` === this.original;
    const file = isBuilt ? this.path.slice(BUILT.length) : this.path.split("/").at(-1);
    const changes = settings.map(([key, value]) => ` --set ${shell(`${key}=${value}`)}`).join("");
    const chosen = policies.length ? ` --policy ${shell(policies.join(","))}` : "";
    const more = seeds ? ` --seeds ${seeds}` : "";
    return { file, command: `anysched run ${shell(file)}${chosen}${changes}${more}`, changes };
  }

  /** Runs the experiment and shows what came of it. */
  async run() {
    if (this.running) return;
    clearTimeout(this.soon);
    this.#clearFault();
    this.#busy(true);
    this.outcome.clear();
    const [began, version] = [performance.now(), this.version];
    try {
      const { answer } = await this.engine.ask({ op: "run", experiment: this.source() });
      this.outcome.first(answer);
      const took = ((performance.now() - began) / 1000).toFixed(1);
      this.say(`${answer.runs} runs in ${took} s; the timelines follow …`);
      await this.outcome.whole(this.origin(), answer.groups);
      if (version === this.version) this.done = this.outcome.experiment;
      this.say([`${answer.runs} runs in ${took} s.`, ...answer.warnings].join(" "));
    } catch (error) {
      if (error instanceof Stopped) this.say(error.message);
      else this.fail(error);
    } finally {
      this.#busy(false);
      if (this.seen !== this.version) this.read({ quiet: true });
    }
  }

  /** The rows of what is there, run first if need be. */
  async ready() {
    while (this.running) await new Promise((done) => setTimeout(done, 50));
    if (!this.done) await this.run();
    if (!this.done) throw new Error("the experiment could not be run");
    return this.done;
  }

  /** What a link has of the experiment. */
  shared() {
    const { path, toml, files, policies, settings, seeds } = this.source();
    const shared = { path, toml };
    if (Object.keys(files).length) shared.files = files;
    if (policies.length) shared.policies = policies;
    if (settings.length) shared.settings = settings;
    if (seeds) shared.seeds = seeds;
    if (this.lesson) shared.lesson = this.lesson.id;
    return shared;
  }

  /** Puts a link to the experiment into the address and on the clipboard. */
  async share() {
    try {
      const hash = await toHash(this.shared());
      this.own = `#${hash}`;
      location.hash = hash;
      try {
        await navigator.clipboard.writeText(location.href);
        this.say("The link is on the clipboard, and in the address.");
      } catch {
        this.say("The link is in the address, to be copied from there.");
      }
    } catch (error) {
      this.fail(error);
    }
  }

  save() {
    const url = URL.createObjectURL(new Blob([this.editor.value], { type: "application/toml" }));
    h("a", { href: url, download: `${this.name.value}.toml` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  /** Shows what the address says: `#x=…` as a link shares it, `#start=…` as one of the starts. */
  async fromHash() {
    const { hash } = location;
    if (hash === this.own) return true;
    const start = /^#start=([\w:/-]+)$/.exec(hash)?.[1];
    try {
      if (start) {
        await this.open(start);
        return true;
      }
      const shared = await fromHash(hash);
      if (!shared) return false;
      await this.set(shared);
      return true;
    } catch (error) {
      this.fail(new Error(`This link cannot be opened: ${error.message}`));
      return true;
    }
  }
}

async function begin() {
  const text = (id) => document.getElementById(id).textContent;
  const wasm = decompress(fromBase64(text("simulator")));
  const program = JSON.parse(text("worker"));
  const engine = new Engine(program, await WebAssembly.compile(wasm));
  const { answer } = await engine.ask({ op: "about" });
  const playground = new Playground(engine, answer);
  globalThis.playground = playground;
  if (!(await playground.fromHash())) await playground.open("built:quickstart");
}

begin().catch((error) => {
  document.getElementById("app").replaceChildren(h("p", { class: "loading", role: "alert" },
    `The playground cannot start: ${error.message}`));
  throw error;
});
