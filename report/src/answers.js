// The answer in words: who does best, how sure that is, and what it costs others.

import { choice, h } from "./dom.js";
import { columnPhrase, format, withUnit } from "./words.js";

/** Sentences and a table of who does best. */
export class Answers {
  constructor(experiment, open) {
    this.experiment = experiment;
    this.open = open;
    this.element = h("div", {});
    this.all = experiment.details.answers;
    this.groups = [...new Set(this.all.map((answer) => answer.group))];
    // Where loads are told apart, what one of them feels says more than the mean of all.
    this.group = this.groups[0];
    this.#draw();
  }

  #draw() {
    const { experiment } = this;
    const words = (group) => experiment.groups[group].words;
    const answers = this.all.filter((answer) => answer.group === this.group);
    this.element.replaceChildren(
      this.groups.length > 1 ? h("div", { class: "controls" }, choice("of",
        this.groups.map((group) => [group, words(group)]), this.group, (group) => {
          this.group = Number(group);
          this.#draw();
          this.element.querySelector("select").focus();
        })) : "",
      h("div", { class: "answers" }, answers.map((answer) => this.#card(answer))));
  }

  #policy(index) {
    const { label } = this.experiment.details.policies[index];
    return h("strong", { class: "policy" }, this.experiment.mark(label));
  }

  #amount(column, value, scale) {
    const shown = scale ?? format(this.experiment.byName.get(column).unit, [value.mean]);
    const margin = value.ci95 > 0 ? ` ± ${shown.number(value.ci95)}` : "";
    return shown.number(value.mean) + margin + (shown.unit ? ` ${shown.unit}` : "");
  }

  #card({ column, best, next, told, costs }) {
    const info = this.experiment.byName.get(column);
    const { details } = this.experiment;
    const scale = format(info.unit, [best.mean, next?.mean]);
    const title = `${info.better === "more" ? "Most" : "Least"} ${columnPhrase(info)}`;
    const parts = [h("p", { class: "best" }, this.#policy(best.policy), " ",
      h("span", { class: "figure" }, this.#amount(column, best, scale)))];
    if (next) parts.push(h("p", {}, this.#sure(column, next, scale, info)));
    if (told) parts.push(h("p", {}, this.#policy(told.policy),
      ` has ${this.#amount(column, told, format(info.unit, [told.mean]))}, but is told how long `
        + "tasks will run."));
    for (const cost of costs) parts.push(h("p", { class: "cost" }, this.#cost(cost, best)));
    const label = details.policies[best.policy].label;
    parts.push(h("p", {}, h("button", { type: "button", class: "link",
      "aria-label": `See all policies for ${columnPhrase(info)}`,
      onclick: () => this.open(this.group, column, label) }, "all policies")));
    return h("section", { class: "card" }, h("h3", { title: info.what }, title), parts);
  }

  #sure(column, next, scale, info) {
    const { difference, sure } = next;
    const seeds = this.experiment.details.seeds;
    const worse = info.better === "more" ? "less" : "more";
    const by = withUnit(scale, Math.abs(difference.mean));
    const margin = difference.ci95 > 0 ? ` ± ${scale.number(difference.ci95)}` : "";
    const name = this.#policy(next.policy);
    if (difference.mean === 0) return [name, " has the same."];
    if (sure == null) return ["Next is ", name, `, ${by} ${worse}; one seed does not say how sure `
      + "that is."];
    if (difference.ci95 === 0) return ["Next is ", name, `, ${by} ${worse}, with every seed.`];
    const verdict = sure
      ? [h("em", { class: "sure" }, "Sure"), `: the 95 % interval over ${seeds} seeds, paired, `
        + "leaves out 0."]
      : [h("em", { class: "unsure" }, "Not sure"), `: the 95 % interval over ${seeds} seeds, `
        + "paired, includes 0."];
    return ["Next is ", name, `, ${by}${margin} ${worse}. `, verdict];
  }

  #cost({ group, column, here, best: other }, best) {
    const { experiment } = this;
    const info = experiment.byName.get(column);
    const load = experiment.groups[group].axes.workload;
    const scale = format(info.unit, [here.mean, other?.mean]);
    const what = columnPhrase(info);
    const name = experiment.details.policies[best.policy].label;
    const start = [`Under ${name}, `, h("strong", {}, load),
      ` has a ${what} of ${this.#amount(column, here, scale)}`.replace("a CPU", "CPU")];
    if (!other) return [...start, ", the best of all."];
    const sure = other.sure === false ? ", which may be chance" : "";
    return [...start, "; the best is ", this.#amount(column, other, scale), " under ",
      this.#policy(other.policy), `${sure}.`];
  }
}
