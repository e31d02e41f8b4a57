// What is run: where to start, which policies, which machine, which loads.

import { h } from "../dom.js";
import { LESSONS } from "./lessons.js";

const MANY = 6;
const KINDS = ["open", "batch", "interactive", "hog", "periodic"];

/** A field with its label. */
export function field(label, attributes, hint) {
  const input = h("input", { type: "text", autocomplete: "off", ...attributes });
  return h("span", { class: "field" }, h("label", { for: attributes.id }, label), input,
    hint ? h("small", {}, hint) : "");
}

/** What there is to begin with: lessons, experiments in their folders, an empty one. */
export function starts(experiments, chosen, open) {
  const option = (value, text) => h("option", { value, selected: value === chosen }, text);
  const folders = new Map();
  for (const { name } of experiments) {
    const folder = name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : "experiments";
    if (folder === "classroom") continue;
    if (!folders.has(folder)) folders.set(folder, []);
    folders.get(folder).push(name);
  }
  const known = [...folders].sort(([a], [b]) => (a === "experiments" ? -1 : b === "experiments" ? 1
    : a.localeCompare(b)));
  const select = h("select", { id: "start" },
    option("", "what is in the editor"),
    h("optgroup", { label: "your own" }, option("own", "one load, three policies")),
    h("optgroup", { label: "lessons" }, LESSONS.map(({ id, title }) =>
      option(`lesson:${id}`, title))),
    known.map(([folder, names]) => h("optgroup", { label: folder }, names.map((name) =>
      option(`built:${name}`, name.split("/").at(-1))))));
  select.addEventListener("change", () => select.value && open(select.value));
  return h("span", { class: "field" }, h("label", { for: "start" }, "Start with"), select);
}

/** The choice of policies: those of the file, and all others; `chosen` is null for "as the file says". */
export class Policies {
  constructor(all, changed) {
    this.all = all;
    this.changed = changed;
    this.entries = [];
    this.chosen = null;
    this.search = h("input", { type: "search", id: "policy-search", autocomplete: "off",
      placeholder: "deadline, linux, …" });
    this.search.addEventListener("input", () => this.#fill());
    this.reset = h("button", { type: "button", class: "link", onclick: () => {
      this.chosen = null;
      this.#fill();
      changed();
    } }, "as the experiment says");
    this.count = h("span", { class: "hint", role: "status" });
    this.list = h("ul", { class: "list" });
    this.element = h("fieldset", { class: "policy-choice" }, h("legend", {}, "Policies"),
      h("div", { class: "controls" }, h("label", { for: "policy-search" }, "find"), this.search,
        this.reset, this.count),
      h("div", { class: "box", tabindex: "0", role: "group", "aria-label": "List of policies" },
        this.list));
  }

  /** What the experiment compares: labels, each with the name of its policy. */
  known(entries) {
    this.entries = entries;
    this.#fill();
  }

  set(chosen) {
    this.chosen = chosen;
    this.#fill();
  }

  #fill() {
    const labels = this.entries.map((entry) => entry.label);
    const on = new Set(this.chosen ?? labels);
    const summary = new Map(this.all.map((policy) => [policy.name, policy]));
    const lines = [...this.entries.map(({ label, name }) => ({ label, of: summary.get(name) })),
      ...this.all.filter(({ name }) => !labels.includes(name))
        .map((of) => ({ label: of.name, of }))];
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = ({ label, of }) =>
      `${label} ${of?.name} ${of?.summary} ${of?.source}`.toLowerCase();
    const shown = lines.filter((line) => words.every((word) => text(line).includes(word)));
    this.reset.hidden = this.chosen == null;
    this.count.textContent = `${on.size} of ${lines.length} chosen`;
    this.list.replaceChildren(...shown.map((line) => this.#line(line, on)));
  }

  #line({ label, of }, on) {
    const id = `policy-${label.replaceAll(/[^\w-]/g, "_")}`;
    const box = h("input", { type: "checkbox", id, checked: on.has(label) });
    box.addEventListener("change", () => {
      const labels = this.chosen ?? this.entries.map((entry) => entry.label);
      this.chosen = box.checked ? [...labels, label] : labels.filter((known) => known !== label);
      if (this.chosen.length === 0) this.chosen = null;
      this.#fill();
      document.getElementById(id)?.focus();
      this.changed();
    });
    const params = (of?.params ?? []).map((param) =>
      `${param.name} = "${param.default}": ${param.doc.replaceAll("\n", " ")}`);
    const title = [of?.source, ...params].filter(Boolean).join("\n");
    return h("li", { title }, box, h("label", { for: id }, h("strong", {}, label), " ",
      h("span", { class: "summary" }, of?.summary ?? "", of?.clairvoyant
        ? "; it is told how long tasks run" : "")));
  }
}

/** What is changed of machine and runs, as the command's options do it. */
export class Changes {
  constructor(changed) {
    const input = (id, attributes) => {
      const one = h("input", { type: "text", id, autocomplete: "off", ...attributes });
      one.addEventListener("input", changed);
      return one;
    };
    this.cpus = input("cpus", { type: "number", min: 1, max: 1024, placeholder: "as it says" });
    this.seeds = input("seeds", { type: "number", min: 1, max: 1000, placeholder: "as it says" });
    this.other = input("settings", { size: 24, placeholder: "quantum=10ms, duration=2s" });
    const line = (label, one, hint) => h("span", { class: "field" },
      h("label", { for: one.id }, label), one, hint ? h("small", {}, hint) : "");
    this.element = h("fieldset", {}, h("legend", {}, "Machine and runs"), h("div", { class: "row" },
      line("CPUs", this.cpus), line("seeds", this.seeds), line("settings", this.other)));
  }

  get settings() {
    const settings = this.cpus.value ? [["machine.cpus", this.cpus.value]] : [];
    for (const part of this.other.value.split(/,(?=\s*[\w.-]+\s*=)/)) {
      const at = part.indexOf("=");
      if (at > 0) settings.push([part.slice(0, at).trim(), part.slice(at + 1).trim()]);
    }
    return settings;
  }

  get number() {
    return this.seeds.value ? Number(this.seeds.value) : null;
  }

  set({ settings = [], seeds = null }) {
    const cpus = settings.find(([key]) => key === "machine.cpus");
    this.cpus.value = cpus?.[1] ?? "";
    this.seeds.value = seeds ?? "";
    this.other.value = settings.filter(([key]) => key !== "machine.cpus")
      .map(([key, value]) => `${key}=${value}`).join(", ");
  }
}

/** A form for a load of a kind; `add(text)` gets it as TOML. */
export function loads(kinds, add) {
  const usual = kinds.filter(({ name }) => KINDS.includes(name));
  const others = kinds.filter(({ name }) => !KINDS.includes(name));
  const form = h("div", { class: "row" });
  const about = h("p", { class: "hint" });
  const select = h("select", { id: "kind" },
    h("optgroup", { label: "usual ones" }, usual.map(({ name }) => h("option", {}, name))),
    h("optgroup", { label: "others" }, others.map(({ name }) => h("option", {}, name))));
  const fill = () => {
    const kind = kinds.find(({ name }) => name === select.value);
    about.textContent = `${kind.summary}.`;
    const keys = [...kind.keys].sort((a, b) => b.needed - a.needed).slice(0, MANY);
    form.replaceChildren(...keys.map((key) => field(key.name, { id: `load-${key.name}`,
      value: key.needed ? key.example : "", placeholder: key.needed ? "" : key.default,
      title: `${key.help} (${key.takes})`, size: 14 })));
  };
  select.addEventListener("change", fill);
  fill();
  const quoted = (key, value) => (key.text || !/^(true|false|[\d.+-]+|\[.*\])$/.test(value)
    ? JSON.stringify(value) : value);
  const button = h("button", { type: "button", onclick: () => {
    const kind = kinds.find(({ name }) => name === select.value);
    const lines = kind.keys.flatMap((key) => {
      const value = form.querySelector(`#load-${key.name}`)?.value.trim();
      return value ? [`${key.name} = ${quoted(key, value)}`] : [];
    });
    add(`\n[[workload]]\nkind = ${JSON.stringify(kind.name)}\n${lines.join("\n")}\n`);
  } }, "Add to the experiment");
  return h("details", { class: "loads" }, h("summary", {}, "Add a load"),
    h("div", { class: "row" }, h("span", { class: "field" },
      h("label", { for: "kind" }, "kind"), select)), about, form, button);
}
