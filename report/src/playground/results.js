// What came of a run: the report, and what only the playground has.

import { choice, h } from "../dom.js";
import { Page } from "../page.js";

const EVENTS = 1_000_000;
/** Charts are drawn at once where so many runs make one, and otherwise when they are asked for. */
const FEW = 4;

export class Outcome {
  constructor(app, engine) {
    this.app = app;
    this.engine = engine;
    this.page = null;
  }

  /** The experiment as the report has it; `null` if nothing was run. */
  get experiment() {
    return this.page?.experiment ?? null;
  }

  clear() {
    this.page?.close();
    this.page = null;
  }

  redraw() {
    this.page?.redraw();
  }

  /** What the run gave, at once: the table and the claims. */
  first({ results, table }) {
    const at = scrollY;
    this.clear();
    this.table = table;
    this.results = JSON.parse(results);
    const document_ = { generator: "anysched", experiments: [{ block: 0, results: this.results,
      details: null }] };
    this.page = new Page(document_, { app: this.app, unpack: null, embedded: true,
      only: ["claims", "table"] });
    scrollTo(0, at);
  }

  /** The whole report. */
  async whole(origin, groups) {
    const { answer, blocks } = await this.engine.ask({ op: "report", ...origin, events: EVENTS });
    const gantt = new Gantt(this.engine, groups);
    const at = scrollY;
    this.page?.close();
    const unpack = async (id) => {
      const [kind, number] = id.split("-");
      return blocks[2 * Number(number) + (kind === "choices" ? 1 : 0)];
    };
    const text = h("pre", { tabindex: "0", "aria-label": "The table as text" }, this.table);
    this.page = new Page(answer, { app: this.app, unpack, embedded: true, more: [
      ["plot", "gantt", "Gantt chart", gantt.element],
      ["repeat", "printed", "As the command prints it", text],
    ] });
    scrollTo(0, at);
    const few = answer.experiments[0].details.policies.length <= FEW;
    if (few) await gantt.draw();
  }
}

/** The Gantt charts of the first seed's runs, drawn by the simulator. */
class Gantt {
  constructor(engine, groups) {
    this.engine = engine;
    this.group = 0;
    this.picture = h("div", { class: "gantt-picture" });
    const time = (id, label) => {
      const input = h("input", { type: "text", id, size: 8, autocomplete: "off",
        placeholder: label === "from" ? "0" : "the end" });
      input.addEventListener("keydown", (event) => event.key === "Enter" && this.draw());
      return [input, h("span", { class: "choice" }, h("label", { for: id }, label), input)];
    };
    const [from, fromField] = time("gantt-from", "from");
    const [until, untilField] = time("gantt-until", "until");
    Object.assign(this, { from, until });
    this.element = h("div", {}, h("div", { class: "controls" },
      groups.length > 1 ? choice("runs of", groups.map((group, at) => [at, group]), 0, (at) => {
        this.group = Number(at);
        this.draw();
      }) : "", fromField, untilField,
      h("button", { type: "button", onclick: () => this.draw() }, "Draw")),
    h("p", { class: "hint" }, "The first seed’s run of each policy, as ", h("code", {},
      "anysched gantt"), " draws it."), this.picture);
  }

  async draw() {
    const time = (input) => input.value.trim() || null;
    try {
      const { answer } = await this.engine.ask({ op: "gantt", group: this.group,
        from: time(this.from), until: time(this.until) });
      // As an image its style is its own, and its colours follow the page's.
      const svg = h("img", { alt: "Gantt charts of all policies; below they are in characters",
        src: `data:image/svg+xml,${encodeURIComponent(answer.svg)}` });
      this.picture.replaceChildren(svg, h("details", {}, h("summary", {}, "In characters"),
        h("pre", { tabindex: "0", "aria-label": "Gantt charts in characters" }, answer.text)));
    } catch (error) {
      this.picture.replaceChildren(h("p", { class: "told wrong", role: "alert" }, error.message));
    }
  }
}
