// What the document says, in a form that tables and plots share.

import { columnWords, format, groupWords, isPart } from "./words.js";

const STATS = ["mean", "p50", "p95", "p99", "min", "max", "sd"];

/** One experiment. */
export class Experiment {
  constructor(entry, generator) {
    this.results = entry.results;
    this.details = entry.details;
    this.block = entry.block;
    this.generator = generator;
    const known = this.details?.groups ?? [];
    this.groups = known.map((group) => ({ ...group }));
    this.rows = this.results.rows.map((row) => this.#row(row));
    this.groups.forEach((group, index) => {
      group.index = index;
      group.words = groupWords(group.axes);
    });
    this.policies = [...new Set(this.rows.map((row) => row.policy))];
    this.columns = this.details?.columns ?? this.#columnsOfMetrics();
    this.byName = new Map(this.columns.map((column, index) => [column.name, { ...column, index }]));
    this.runs = new Map((this.details?.runs ?? []).map((row) =>
      [`${row.group} ${this.details.policies[row.policy].label}`, row.seeds]));
  }

  get title() {
    return this.results.title ?? this.results.question;
  }

  #row(row) {
    let group = this.groups.findIndex((known) => sameAxes(known.axes, row.axes));
    if (group < 0) group = this.groups.push({ axes: row.axes }) - 1;
    return { ...row, group };
  }

  #columnsOfMetrics() {
    const names = [...new Set(this.rows.flatMap((row) => Object.keys(row.metrics)))].sort();
    const unit = (name) => (name.endsWith("_ns") ? "ns" : name.endsWith("_per_s") ? "/s" : "1");
    return names.flatMap((metric) => {
      // Only the mean has an interval; a file of results does not say what is a distribution.
      return [{ name: metric, metric, stat: null, unit: unit(metric), what: "", shown: false }];
    });
  }

  /** The axes along which groups differ, with their values in order. */
  axes() {
    const axes = new Map();
    for (const group of this.groups) {
      for (const [axis, value] of Object.entries(group.axes)) {
        if (!axes.has(axis)) axes.set(axis, []);
        if (!axes.get(axis).includes(value)) axes.get(axis).push(value);
      }
    }
    return [...axes].filter(([, values]) => values.length > 1);
  }

  /** The groups of all tasks of a machine. */
  wholeGroups() {
    return this.groups.filter((group) => Object.entries(group.axes)
      .every(([axis, value]) => !isPart(axis) || axis === "vm" || value === "all"));
  }

  row(group, policy) {
    return this.rows.find((row) => row.group === group && row.policy === policy);
  }

  /** The runs of a row; without details there are none. */
  runsOf(group, policy) {
    return this.runs.get(`${group} ${policy}`) ?? [];
  }

  /** The values of a column over the runs of a row. */
  values(group, policy, name) {
    const { index } = this.byName.get(name) ?? {};
    if (index == null) return [];
    return this.runsOf(group, policy).map((run) => run.values[index]);
  }

  /** Mean and interval of a column in a row; null without data. */
  estimate(group, policy, name) {
    const column = this.byName.get(name);
    const row = this.row(group, policy);
    if (!row || !column) return null;
    if (!this.details || !column.stat || column.stat === "mean") {
      const metric = row.metrics[column.metric];
      return metric ? { mean: metric.mean, ci95: metric.ci95, n: row.seeds } : null;
    }
    return this.mean(this.values(group, policy, name));
  }

  /** Mean of some values, with half the width of its 95 % interval. */
  mean(values) {
    const known = values.filter((value) => value != null);
    const n = known.length;
    if (n === 0) return null;
    if (known.every((value) => value === known[0])) {
      return { mean: known[0], ci95: n > 1 ? 0 : null, n };
    }
    const mean = known.reduce((sum, value) => sum + value, 0) / n;
    const squares = known.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const t = this.details?.t975.find(([count]) => count === n)?.[1];
    return { mean, ci95: t == null ? null : t * Math.sqrt(squares / (n - 1) / n), n };
  }

  /** A policy less another, seed by seed. */
  paired(group, name, a, b) {
    const [as, bs] = [a, b].map((policy) => {
      const { index } = this.byName.get(name);
      return new Map(this.runsOf(group, policy).map((run) => [run.index, run.values[index]]));
    });
    const differences = [...as].filter(([seed, value]) => value != null && bs.get(seed) != null);
    return this.mean(differences.map(([seed, value]) => value - bs.get(seed)));
  }

  format(name, groups = this.groups) {
    const values = groups.flatMap((group) => this.policies.map((policy) =>
      this.estimate(group.index, policy, name)?.mean));
    return format(this.byName.get(name).unit, values);
  }

  /** The columns that a table shows at first. */
  shownColumns() {
    const shown = this.columns.filter((column) => column.shown);
    if (shown.length) return shown.map((column) => column.name);
    const usual = ["turnaround_ns", "waiting_time_ns", "wakeup_latency_ns", "context_switches"];
    const known = this.columns.filter((column) => usual.includes(column.metric)
      && (column.stat == null || column.stat === "mean"));
    return (known.length ? known : this.columns).slice(0, 5).map((column) => column.name);
  }

  columnChoices() {
    const order = (column) => STATS.indexOf(column.stat ?? "mean");
    const sorted = [...this.columns].sort((a, b) =>
      columnWords(a).split(",")[0].localeCompare(columnWords(b).split(",")[0])
      || order(a) - order(b));
    return sorted.map((column) => [column.name, columnWords(column)]);
  }

  policyInfo(label) {
    return this.details?.policies.find((policy) => policy.label === label);
  }

  isTold(label) {
    return this.rows.find((row) => row.policy === label)?.clairvoyant ?? false;
  }

  mark(label) {
    return this.isTold(label) ? `${label} *` : label;
  }

  timelines() {
    return (this.details?.timelines ?? []).map((timeline) => ({ ...timeline,
      label: this.details.policies[timeline.policy].label }));
  }
}

function sameAxes(a, b) {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
