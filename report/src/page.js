// A report: sections, made from the document.

import { Answers } from "./answers.js";
import { cdfSpec, clear, histogramSpec, linesSpec, plot, policiesSpec } from "./charts.js";
import { choice, code, h, toggle } from "./dom.js";
import { Experiment } from "./model.js";
import { table } from "./table.js";
import { TimelineView } from "./timeline.js";
import { axisNumbers, columnPhrase, columnWords, format, groupWords, metricWords, shell,
  counted, withUnit } from "./words.js";

/**
 * A report in `app`. `unpack(id)` gives the bytes of a block. One that is `embedded` in another
 * page has no header and no footer; `more` are sections of that page, each with the one that it
 * stands before, and `only` names the sections that there are, if not all.
 */
export class Page {
  constructor(data, { app, unpack, embedded = false, more = [], only = null }) {
    Object.assign(this, { data, app, unpack, embedded, more, only });
    this.ends = new AbortController();
    this.experiments = data.experiments.map((entry) => new Experiment(entry, data.generator));
    this.redrawn = [];
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw(),
      { signal: this.ends.signal });
    const asked = new URLSearchParams(embedded ? "" : location.hash.slice(1)).get("experiment");
    this.open(Number(asked) || 0);
  }

  /** It is not shown any more. */
  close() {
    this.ends.abort();
    this.redrawn = [];
    clear(this.app);
    this.app.replaceChildren();
  }

  isDark = isDark;

  redraw() {
    for (const draw of this.redrawn) draw();
  }

  /** Calls `draw` when `element` is about to be seen, or when there is nothing else to do. */
  whenNear(element, draw) {
    const now = () => {
      observer.disconnect();
      const once = draw;
      draw = null;
      if (!this.ends.signal.aborted) once?.();
    };
    const observer = new IntersectionObserver((entries) =>
      entries.some((entry) => entry.isIntersecting) && now(), { rootMargin: "400px" });
    observer.observe(element);
    // What is printed has all of it.
    setTimeout(() => whenIdle(now, 4000), 2500);
  }

  /** A plot that is drawn once it is near, and again when colours change. */
  drawn(element, draw) {
    let near = false;
    // A timeline that is near, too, comes first: it takes longer.
    this.whenNear(element, () => whenIdle(() => {
      near = !this.ends.signal.aborted;
      if (near) draw();
    }, 600));
    this.redrawn.push(() => near && draw());
  }

  open(index) {
    this.experiment = this.experiments[index] ?? this.experiments[0];
    this.redrawn = [];
    this.policy = this.column = null;
    const { experiment } = this;
    if (!this.embedded) document.title = `${experiment.title} – anysched`;
    this.sections = [
      ["answer", "Answer", experiment.details ? this.answer() : null],
      ["claims", "Claims", experiment.results.claims.length ? this.claims() : null],
      ["table", "Table", this.table()],
      ["plot", "Plot", this.plots()],
      ["distributions", "Distributions",
        experiment.details?.distributions.length ? this.distributions() : null],
      ["timeline", "Timeline", experiment.timelines().length ? this.timeline() : null],
      ["machine", "Machine", experiment.details ? this.machine() : null],
      ["experiment", "Experiment", experiment.details ? this.text() : null],
      ["repeat", "Repeat", this.repeat()],
    ];
    for (const [before, ...section] of this.more) {
      this.sections.splice(this.sections.findIndex(([id]) => id === before), 0, section);
    }
    this.sections = this.sections.filter(([id, , content]) =>
      content && (!this.only || this.only.includes(id)));
    const sections = this.sections.map(([id, title, content]) =>
      h("section", { id, "aria-labelledby": `${id}-title` },
        h("h2", { id: `${id}-title` }, title), content));
    clear(this.app);
    this.app.replaceChildren(...(this.embedded ? [this.navigation(), h("div", {}, sections)]
      : [this.header(index), this.navigation(), h("main", { id: "main" }, sections),
        footer(`Written by ${this.data.generator}; this file needs no network.`)]));
    this.redraw();
  }

  header(index) {
    const { results, details, policies, title } = this.experiment;
    const counts = [policies.length === 1 ? "1 policy" : `${policies.length} policies`,
      counted(this.experiment.wholeGroups().length, "group"),
      details ? counted(details.seeds, "seed") : null, `host ${results.host}`];
    const theme = themeButton(() => this.redraw());
    return h("header", {},
      h("div", { class: "top" }, h("span", { class: "brand" }, "anysched report"), theme),
      this.experiments.length > 1 ? h("div", { class: "controls" }, choice("experiment",
        this.experiments.map((one, number) => [number, one.results.experiment]), index,
        (number) => this.open(Number(number)))) : "",
      h("h1", {}, title),
      title === results.question ? "" : h("p", { class: "question" }, results.question),
      h("p", { class: "facts" }, counts.filter(Boolean).join(" · "),
        results.complete ? "" : h("strong", {}, " · incomplete: some runs are missing")));
  }

  navigation() {
    return h("nav", { "aria-label": "Sections" }, this.sections.map(([id, title]) =>
      h("a", { href: `#${id}` }, title)));
  }

  answer() {
    const answers = new Answers(this.experiment, (group, column) => {
      this.showPlot(group, column);
      document.getElementById("plot").scrollIntoView({ behavior: "instant" });
      document.getElementById("plot-title").focus?.();
    });
    const { claims } = this.experiment.results;
    const expected = claims.filter((claim) => claim.as_expected).length;
    const about = claims.length ? h("p", {}, `Of ${claims.length} claims, ${expected} came out as `
      + "expected; ", h("a", { href: "#claims" }, "each with its evidence"), ".") : "";
    return [about, answers.element];
  }

  claims() {
    const { experiment } = this;
    const kind = (claim) => (claim.verdict == null ? "none"
      : claim.verdict.startsWith("holds") ? "holds"
        : claim.verdict.includes("not") ? "fails" : "open");
    const check = (claim, check) => {
      const times = claim.checks.length && /_ns/.test(check.expression);
      const scale = format(times ? "ns" : "1", [check.left, check.right]);
      const margin = check.ci95 == null ? "" : ` ± ${withUnit(scale, check.ci95)}`;
      return h("tr", {}, h("td", {}, groupWords(check.axes).replace("all tasks", "")),
        h("td", {}, h("code", {}, check.expression)),
        h("td", { class: "number" }, withUnit(scale, check.left)),
        h("td", { class: "number" }, withUnit(scale, check.right)),
        h("td", { class: "number" }, withUnit(scale, check.difference) + margin),
        h("td", {}, [check.verdict ?? "no data", check.note].filter(Boolean).join(", ")));
    };
    const measure = (measure) => h("li", {}, `${groupWords(measure.axes)}: `,
      h("code", {}, measure.expression), " = ", h("strong", {}, measure.mean == null ? "no data"
        : `${withUnit(format("1", [measure.mean]), measure.mean)}${measure.ci95 > 0
          ? ` ± ${format("1", [measure.mean]).number(measure.ci95)}` : ""} ${measure.unit}`));
    return experiment.results.claims.map((claim) => h("details", { class: "claim" },
      h("summary", {}, h("span", { class: `verdict ${kind(claim)}` },
        claim.verdict ?? "not measured"), " ", h("strong", {}, claim.id), ` ${claim.text}`,
      claim.as_expected ? "" : h("em", {}, ` (expected: ${claim.expected})`)),
      [["The paper says", claim.paper], ["Read as", claim.reading], ["Because", claim.because],
        ["More", claim.details]].filter(([, said]) => said).map(([name, said]) =>
        h("p", {}, h("strong", {}, `${name}: `), said)),
      claim.size ? h("p", {}, h("strong", {}, "Size: "),
        `${claim.size.low} to ${claim.size.high}, ${claim.size.verdict ?? "no data"}`) : "",
      claim.measures.length ? h("ul", {}, claim.measures.map(measure)) : "",
      claim.checks.length ? h("div", { class: "scroll", tabindex: "0", role: "region",
        "aria-label": `Evidence for ${claim.id}` }, h("table", { class: "plain" },
        h("thead", {}, h("tr", {}, ["where", "comparison", "left", "right", "difference (95 %)",
          "verdict"].map((head, at) => h("th", { scope: "col",
          class: at > 1 && at < 5 ? "number" : null }, head)))),
        h("tbody", {}, claim.checks.map((one) => check(claim, one))))) : "",
      claim.seeds_needed ? h("p", {}, `Some ${counted(claim.seeds_needed, "seed")} would decide it.`) : ""));
  }

  table() {
    const { experiment } = this;
    const state = { columns: experiment.shownColumns(), base: "", sorted: [0, null],
      group: experiment.groups.some((group) => group.axes.workload) ? "whole" : "all" };
    const box = h("div", { class: "groups" });
    const seeds = h("div", { class: "panel seeds", tabindex: "-1", hidden: true });
    const draw = () => {
      const whole = experiment.wholeGroups();
      const groups = state.group === "all" ? experiment.groups : state.group === "whole" ? whole
        : [experiment.groups[Number(state.group)]];
      box.replaceChildren(...groups.map((group) => this.#lines(group, state, seeds, draw)));
    };
    const add = (name) => {
      if (!name) return;
      state.columns = state.columns.includes(name)
        ? state.columns.filter((known) => known !== name) : [...state.columns, name];
      draw();
    };
    const parts = experiment.groups.length > experiment.wholeGroups().length;
    const controls = h("div", { class: "controls" },
      choice("rows of", [...(parts ? [["whole", "all tasks"]] : []), ["all", "every group"],
        ...experiment.groups.map((group) => [group.index, group.words])], state.group, (group) => {
        state.group = group;
        draw();
      }),
      experiment.details ? choice("compare with", [["", "nothing"],
        ...experiment.policies.map((policy) => [policy, policy])], "", (policy) => {
        state.base = policy;
        draw();
      }) : "",
      choice("add or remove", [["", "a column …"], ...experiment.columnChoices()], "", add));
    draw();
    return [controls, box, h("p", { class: "hint" }, "± is half the 95 % confidence interval of "
      + "the mean over seeds. ", experiment.policies.some((policy) => experiment.isTold(policy))
      ? "* is told how long tasks run, which no kernel knows. " : "",
    experiment.details ? "A policy’s name leads to its seeds." : ""), seeds];
  }

  #lines(group, state, seeds, redraw) {
    const { experiment } = this;
    const names = state.columns.filter((name) => experiment.policies.some((policy) =>
      experiment.estimate(group.index, policy, name)));
    const formats = names.map((name) => experiment.format(name, [group]));
    const columns = [{ head: "policy" }, ...names.map((name, index) => {
      const column = experiment.byName.get(name);
      return { head: columnWords(column), unit: formats[index].unit, number: true,
        title: column.what };
    })];
    const policies = experiment.policies.filter((policy) => experiment.row(group.index, policy));
    const lines = policies.map((policy, place) => {
      const runs = experiment.runsOf(group.index, policy);
      const label = experiment.mark(policy);
      const name = runs.length ? h("button", { type: "button", class: "link", onclick: () =>
        this.seeds(seeds, group.index, policy, names[0]) }, label) : label;
      const cells = names.map((name, index) =>
        this.#cell(group.index, policy, name, formats[index], state.base));
      return [{ content: name, sort: place, class: "name",
        title: experiment.policyInfo(policy)?.summary }, ...cells];
    });
    return h("div", { class: "group" }, table({ caption: group.words, columns, lines,
      sorted: state.sorted[1] == null ? null : state.sorted,
      onsort: (sorted) => {
        state.sorted = sorted;
        redraw();
        // The button that was pressed is a new one now.
        const tables = [...document.querySelectorAll("#table table caption")];
        const own = tables.find((caption) => caption.textContent === group.words);
        own?.parentNode.querySelectorAll("thead button")[sorted[0]]?.focus();
      } }));
  }

  #cell(group, policy, name, shown, base) {
    const { experiment } = this;
    const found = experiment.estimate(group, policy, name);
    if (!found) return { content: "–", sort: null, class: "number" };
    if (base && base !== policy) {
      const paired = experiment.paired(group, name, policy, base);
      if (!paired) return { content: "–", sort: null, class: "number" };
      const sign = paired.mean > 0 ? "+" : "";
      const sure = paired.ci95 == null || Math.abs(paired.mean) > paired.ci95;
      return { content: [h("span", { class: "mean" }, `${sign}${shown.number(paired.mean)}`),
        h("span", { class: "ci" }, paired.ci95 > 0 ? ` ± ${shown.number(paired.ci95)}` : "")],
      sort: paired.mean, value: paired.mean, class: sure ? "number" : "number chance",
      title: sure ? null : "the interval includes 0: may be chance" };
    }
    return { content: [h("span", { class: "mean" }, shown.number(found.mean)),
      h("span", { class: "ci" }, found.ci95 > 0 ? ` ± ${shown.number(found.ci95)}` : "")],
    sort: found.mean, value: found.mean, class: "number" };
  }

  /** Lists the seeds of a row. */
  seeds(panel, group, policy, name) {
    const { experiment } = this;
    const { details } = experiment;
    const column = experiment.byName.get(name);
    const runs = experiment.runsOf(group, policy);
    const shown = format(column.unit, runs.map((run) => run.values[column.index]));
    const { planned, words } = experiment.groups[group];
    const timeline = experiment.timelines().find((one) => one.group === planned
      && one.label === policy);
    const base = `${shell(details.file)} --policy ${shell(policy)} --group ${planned}`
      + details.changes;
    const lines = runs.map((run) => [
      { content: String(run.index), sort: run.index },
      { content: run.seed, sort: run.index, class: "number" },
      { content: withUnit(shown, run.values[column.index]), sort: run.values[column.index],
        value: run.values[column.index], class: "number" },
      { content: timeline?.index === run.index ? h("button", { type: "button", class: "link",
        onclick: () => this.showTimeline(planned, policy) }, "timeline")
        : code(`anysched gantt ${base} --seed ${run.index}`), sort: run.index }]);
    panel.hidden = false;
    panel.replaceChildren(h("h3", {}, `Seeds of ${experiment.mark(policy)}, ${words}`),
      table({ caption: columnWords(column), lines, columns: [{ head: "number" },
        { head: "seed", number: true }, { head: columnWords(column), number: true },
        { head: "look into it" }] }));
    panel.focus();
  }

  plots() {
    const { experiment } = this;
    const axes = experiment.axes().filter(([axis]) => axis !== "workload" && axis !== "task");
    const numeric = axes.find(([, values]) => axisNumbers(values));
    const state = { column: experiment.shownColumns()[0], axis: numeric?.[0] ?? "policy",
      group: experiment.wholeGroups()[0].index, log: true, bars: false, logX: false };
    const controls = h("div", { class: "controls" });
    const chart = h("div", { class: "chart", role: "group" });
    const seeds = h("div", { class: "panel seeds", tabindex: "-1", hidden: true });
    const change = (key, value) => {
      state[key] = value;
      draw();
    };
    const choices = () => controls.replaceChildren(
      choice("show", experiment.columnChoices(), state.column, (name) => change("column", name)),
      choice("over", [["policy", "policies"], ...axes.map(([axis]) => [axis, axis])], state.axis,
        (axis) => change("axis", axis)),
      choice("of", this.#groupsBut(state.axis), state.group,
        (group) => change("group", Number(group))),
      state.axis === "policy" ? choice("as", [["", "points"], ["1", "bars"]],
        state.bars ? "1" : "", (bars) => change("bars", Boolean(bars)))
        : toggle("logarithmic axis", state.logX, (on) => change("logX", on)),
      toggle("logarithmic values", state.log, (on) => change("log", on)));
    const click = (datum) => this.seeds(seeds, datum.group, datum.policy, state.column);
    const draw = async () => {
      choices();
      const spec = state.axis === "policy" ? this.#overPolicies(state, chart)
        : this.#overAxis(state, chart);
      chart.setAttribute("aria-label", spec.label);
      await plot(chart, spec.spec, this.isDark(), experiment.details ? click : null);
    };
    this.drawn(chart, draw);
    this.showPlot = (group, column) => {
      Object.assign(state, { group, column, axis: "policy", bars: false });
      draw();
    };
    return [controls, h("div", { class: "frame" }, chart),
      h("p", { class: "hint" }, "Lines across points are 95 % confidence intervals. ",
        experiment.details ? "A click on a point lists its seeds; the table’s names do the same."
          : ""), seeds];
  }

  /** The groups as choices, of those that differ only along an axis the first. */
  #groupsBut(axis) {
    const known = new Map();
    for (const { index, axes } of this.experiment.groups) {
      const { [axis]: along, ...rest } = axes;
      const words = groupWords(rest);
      if (!known.has(words)) known.set(words, index);
    }
    return [...known].map(([words, index]) => [index, words]);
  }

  /** A value with its interval, for a plot. */
  #datum(group, policy, state, shown) {
    const { experiment } = this;
    const found = experiment.estimate(group, policy, state.column);
    if (!found || (state.log && !(found.mean > 0))) return null;
    const { scale } = shown;
    const [low, high] = [found.mean - (found.ci95 ?? 0), found.mean + (found.ci95 ?? 0)];
    const ci = found.ci95 > 0 ? ` ± ${shown.number(found.ci95)}` : "";
    // On a logarithmic axis an interval that reaches 0 ends at a tenth of the mean.
    return { group, policy, name: experiment.mark(policy), value: found.mean / scale,
      low: (state.log ? Math.max(low, found.mean / 10) : low) / scale, high: high / scale,
      words: `${experiment.mark(policy)}: ${shown.number(found.mean)}${ci} ${shown.unit}`.trim() };
  }

  #overPolicies(state, chart) {
    const { experiment } = this;
    const column = experiment.byName.get(state.column);
    const shown = experiment.format(state.column, [experiment.groups[state.group]]);
    const data = experiment.policies.map((policy) =>
      this.#datum(state.group, policy, state, shown)).filter(Boolean);
    data.sort((a, b) => (column.better === "more" ? b.value - a.value : a.value - b.value));
    const title = [columnPhrase(column), shown.unit].filter(Boolean).join(", ");
    const best = data[0]?.words ?? "no data";
    return { label: `${columnPhrase(column)} of ${data.length} policies; first ${best}`,
      spec: policiesSpec({ data, title, log: state.log, bars: state.bars,
        order: data.map((datum) => datum.name), width: chart.clientWidth || 700 }) };
  }

  #overAxis(state, chart) {
    const { experiment } = this;
    const column = experiment.byName.get(state.column);
    const here = experiment.groups[state.group].axes;
    const groups = experiment.groups.filter(({ axes }) => Object.entries(axes)
      .every(([axis, value]) => axis === state.axis || here[axis] === value));
    const shown = experiment.format(state.column, groups);
    const places = axisNumbers(groups.map((group) => group.axes[state.axis]));
    const numeric = places != null;
    const data = groups.flatMap((group, at) => experiment.policies.map((policy) => {
      const datum = this.#datum(group.index, policy, state, shown);
      return datum && { ...datum, x: numeric ? places.numbers[at] : group.axes[state.axis],
        words: `${state.axis} = ${group.axes[state.axis]}, ${datum.words}` };
    })).filter(Boolean);
    const title = [columnPhrase(column), shown.unit].filter(Boolean).join(", ");
    return { label: `${columnPhrase(column)} over ${state.axis}`, spec: linesSpec({ data, title,
      axis: [state.axis, places?.unit].filter(Boolean).join(", "), numeric, log: state.log,
      logX: numeric && state.logX,
      policies: experiment.policies, width: chart.clientWidth || 700 }) };
  }

  distributions() {
    const { experiment } = this;
    const { distributions } = experiment.details;
    const kinds = [...new Set(distributions.map((one) => one.metric))];
    const groups = [...new Set(distributions.map((one) => `${one.group} ${one.load ?? ""}`))];
    const words = (group) => {
      const [planned, ...load] = group.split(" ");
      const known = experiment.wholeGroups().find((one) => one.planned === Number(planned));
      const tasks = load.join(" ");
      return tasks ? `${known.words}, tasks of ${tasks}` : known.words;
    };
    const state = { metric: kinds.find((kind) => kind === "wakeup_latency_ns") ?? kinds[0],
      group: groups[0], form: "cdf", log: true, policies: null };
    const controls = h("div", { class: "controls" });
    const box = h("fieldset", { class: "policies" });
    const chart = h("div", { class: "chart", role: "group" });
    const note = h("p", { class: "hint" });
    const draw = async () => {
      const shown = distributions.filter((one) => one.metric === state.metric
        && `${one.group} ${one.load ?? ""}` === state.group);
      const label = (one) => experiment.details.policies[one.policy].label;
      const known = shown.map(label);
      state.policies ??= this.#interesting(known);
      controls.replaceChildren(
        choice("show", kinds.map((kind) => [kind, metricWords(kind)]), state.metric,
          (metric) => change("metric", metric)),
        groups.length > 1 ? choice("of", groups.map((group) => [group, words(group)]), state.group,
          (group) => change("group", group)) : "",
        choice("as", [["cdf", "cumulative distribution"], ["histogram", "histogram"]], state.form,
          (form) => change("form", form)),
        toggle("logarithmic axis", state.log, (on) => change("log", on)));
      box.replaceChildren(h("legend", {}, "policies"), ...known.map((label) =>
        toggle(experiment.mark(label), state.policies.includes(label), (on) => {
          state.policies = on ? [...state.policies, label]
            : state.policies.filter((other) => other !== label);
          draw();
        })));
      const chosen = shown.filter((one) => state.policies.includes(label(one)));
      await this.#drawDistributions(state, chosen.map((one) =>
        ({ ...one, policy: experiment.mark(label(one)) })), chart, note);
    };
    const change = (key, value) => {
      state[key] = value;
      draw();
    };
    this.drawn(chart, draw);
    return [controls, box, h("div", { class: "frame" }, chart), note];
  }

  /** A few policies to begin with: those that answers name. */
  #interesting(known) {
    const { details } = this.experiment;
    const named = details.answers.flatMap(({ best, next }) => [best.policy, next?.policy]);
    const labels = named.filter((policy) => policy != null)
      .map((policy) => details.policies[policy].label);
    return known.filter((label) => labels.includes(label)).slice(0, 5)
      .concat(known).filter((label, at, all) => all.indexOf(label) === at).slice(0, 4);
  }

  async #drawDistributions(state, shown, chart, note) {
    const { percents } = this.experiment.details;
    const policies = shown.map(({ policy }) => policy);
    if (!shown.length) {
      clear(chart);
      chart.replaceChildren();
      note.textContent = "No policy is chosen, or none has such values.";
      return;
    }
    const unit = state.metric.endsWith("_ns") ? "ns" : "1";
    const scale = format(unit, shown.map(({ values }) => values[values.length >> 1]));
    const positive = shown.flatMap(({ values }) => values.filter((value) => value > 0));
    const least = Math.min(...positive);
    const log = state.log && positive.length > 0;
    const title = [metricWords(state.metric), scale.unit].filter(Boolean).join(", ");
    const options = { title, log, policies, width: chart.clientWidth || 700 };
    const data = shown.flatMap((one) => (state.form === "cdf"
      ? cumulative(one, percents, log ? least : -Infinity, scale)
      : bins(one, percents, log ? least : null, scale)));
    chart.setAttribute("aria-label", `${metricWords(state.metric)} of ${policies.join(", ")}`);
    await plot(chart, state.form === "cdf" ? cdfSpec({ ...options, data })
      : histogramSpec({ ...options, data }), this.isDark());
    const counts = shown.map(({ policy, count }) => `${policy} ${count}`).join(", ");
    const zero = log && shown.some(({ values }) => values[0] <= 0)
      ? ` Values of 0 are drawn at ${withUnit(scale, least)}.` : "";
    note.textContent = `In the run of the first seed: ${counts} values.${zero}`;
  }

  timeline() {
    const { experiment } = this;
    const view = new TimelineView(experiment, this.isDark, this.unpack);
    this.timelines = view;
    this.redrawn.push(() => view.draw());
    const known = experiment.timelines();
    const { answers, policies } = experiment.details;
    const group = known.at(-1).group;
    const labels = view.of(group).map((info) => info.label);
    const best = answers.findLast((answer) =>
      experiment.groups[answer.group].planned === group && answer.next);
    const pair = best ? [best.best.policy, best.next.policy].map((at) => policies[at].label) : [];
    // It takes as long as all the rest: when somebody comes near.
    view.load(view.of(group).find((info) => info.label === (pair[0] ?? labels[0])));
    const start = () => view.pictures.length === 0 && !view.opening
      && view.change(group, pair[0] ?? labels[0], "");
    this.whenNear(view.element, start);
    new ResizeObserver(() => this.ends.signal.aborted || view.draw()).observe(view.element);
    addEventListener("beforeprint", () => view.pictures.forEach((one) => one.draw(false)),
      { signal: this.ends.signal });
    this.showTimeline = async (planned, policy) => {
      await start();
      view.element.scrollIntoView({ behavior: "instant" });
      await view.change(planned, policy, "");
      view.pictures[0].canvas.focus();
    };
    return [h("p", { class: "hint", id: "keys" }, "Drag to move; the wheel zooms once the picture "
      + "has been clicked (or with Ctrl), with Shift it moves. Keys: arrows, + and −, N and P "
      + "for the next and previous wait, Enter for why."), view.element, legend()];
  }

  machine() {
    const { machines, groups } = this.experiment.details;
    const whole = this.experiment.wholeGroups();
    return machines.map((machine, index) => {
      const of = whole.filter((group) => groups[group.index].topology === index);
      const facts = of[0] ? [of[0].machine, of[0].duration ? `at most ${of[0].duration}` : null,
        `costs: ${of[0].costs}`] : [];
      const alike = groups.filter((group) => group.topology === index).length;
      const where = alike === groups.length ? "" : h("h3", {}, of.slice(0, 6)
        .map((group) => group.words).join("; "), of.length > 6 ? ` and ${of.length - 6} more` : "");
      return h("div", { class: "group" }, where, h("p", {}, facts.filter(Boolean).join("; ")),
        topology(machine),
        h("ul", {}, of.slice(0, 12).flatMap((group) => group.loads.map((load) =>
          h("li", {}, of.length > 1 ? `${group.words}: ` : "", load))),
        [...new Set(of.flatMap((group) => group.exceptions))].slice(0, 24).map((exception) =>
          h("li", {}, `but ${exception}`))));
    });
  }

  text() {
    return [h("p", {}, h("code", {}, this.experiment.details.file)),
      h("pre", { tabindex: "0", "aria-label": "The experiment’s file" },
        this.experiment.details.text)];
  }

  repeat() {
    const { results, details } = this.experiment;
    const version = details ? `anysched ${details.version}` : this.data.generator;
    const facts = [["version", version], ["experiment’s seed", String(results.seed)],
      ["BLAKE3 of the experiment and its files", results.spec_hash]];
    const policies = (details?.policies ?? []).filter((policy) =>
      Object.keys(policy.settings).length);
    return [details ? h("p", {}, code(details.command)) : h("p", {}, "These results come from "
      + "files; only the run that wrote them knows its command."),
    h("p", {}, "The same version gives the same numbers on every machine: seeds derive from the "
      + "experiment’s name and seed, the values of its axes, and a number."),
    h("dl", {}, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {},
      h("code", {}, value))])),
    policies.length ? [h("h3", {}, "Settings of policies"), h("ul", {}, policies.map((policy) =>
      h("li", {}, `${policy.label}: `, Object.entries(policy.settings)
        .map(([key, value]) => `${key} = ${value}`).join(", "))))] : ""];
  }
}

/** Whether the page has dark colours. */
export function isDark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The button for light and dark colours; `changed` is called when they have changed. */
export function themeButton(changed) {
  return h("button", { type: "button", class: "theme",
    "aria-label": "Switch between light and dark", onclick: () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      changed();
    } }, "◐");
}

/** What stands at the end of a page: `text`, and the licences of what is in the page. */
export function footer(text) {
  const notices = document.getElementById("notices").textContent;
  return h("footer", {}, h("p", {}, text), h("details", {},
    h("summary", {}, "Software in this page"),
    h("pre", { tabindex: "0", "aria-label": "Licences" }, notices)));
}

/** Points of a cumulative distribution. */
function cumulative({ policy, values }, percents, least, scale) {
  return values.map((value, at) => ({ policy, share: percents[at] / 100,
    value: Math.max(value, least) / scale.scale,
    words: `${policy}: ${+percents[at].toFixed(3)} % at most ${withUnit(scale, value)}` }));
}

/** A histogram of 40 bins; logarithmic ones begin at `least`. */
function bins({ policy, values }, percents, least, scale) {
  const n = 40;
  const most = Math.max(values.at(-1), (least ?? 0) * 1.001, Number.MIN_VALUE);
  const edge = (bin) => (least == null ? (most / n) * bin : least * (most / least) ** (bin / n));
  const share = (value) => {
    const above = values.findIndex((known) => known > value);
    return above < 0 ? 1 : above === 0 ? 0 : percents[above - 1] / 100;
  };
  return Array.from({ length: n }, (_, bin) => {
    const [low, high] = [edge(bin), edge(bin + 1)];
    const part = (bin === n - 1 ? 1 : share(high)) - (bin === 0 ? 0 : share(low));
    return { policy, share: part, low: low / scale.scale, high: high / scale.scale,
      words: `${policy}: ${(part * 100).toFixed(1)} % from ${withUnit(scale, low)} to `
        + withUnit(scale, high) };
  });
}

/** Calls `run` when there is nothing else to do, but after so many ms at the latest. */
function whenIdle(run, timeout) {
  if (globalThis.requestIdleCallback) requestIdleCallback(run, { timeout });
  else setTimeout(run, 50);
}

function legend() {
  const item = (name, text) => h("li", {},
    h("span", { class: `key ${name}`, "aria-hidden": "true" }), text);
  return h("ul", { class: "legend" }, item("run", "runs, in the colour that the task has on CPUs"),
    item("wait", "waits for a CPU"), item("wake", "becomes ready; a line comes from who woke it"),
    item("due", "a job is due"), item("late", "a job was late"));
}

/** CPUs in their groups. */
function topology({ cpus }) {
  const levels = [["node", 3], ["package", 2], ["cache", 1], ["core", 0]];
  const nest = (members, depth) => {
    if (depth === levels.length) {
      return members.map((cpu) => h("span", { class: "cpu" }, `CPU ${cpu}`,
        cpus[cpu][4] < 1024 ? h("small", {}, ` ${Math.round(cpus[cpu][4] / 10.24)} %`) : ""));
    }
    const [name, at] = levels[depth];
    const groups = new Map();
    for (const cpu of members) {
      const group = cpus[cpu][at];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(cpu);
    }
    const all = new Set(cpus.map((cpu) => cpu[at])).size;
    const single = all === 1 || [...groups.values()].every((group) => group.length === 1);
    if (single) return [...groups.values()].flatMap((group) => nest(group, depth + 1));
    return [...groups].map(([number, group]) => h("div", { class: `level ${name}` },
      h("span", { class: "label" }, `${name} ${number}`), nest(group, depth + 1)));
  };
  const all = cpus.map((_, cpu) => cpu);
  return h("div", { class: "topology" }, nest(all, 0));
}
