// Plots, by Vega-Lite, without code made at run time.

import * as vega from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile } from "vega-lite";

const COLOURS = {
  light: ["#0072b2", "#c8500a", "#007a5a", "#a6427c", "#8a6d00", "#5b4bb7", "#b3261e", "#4d4d4d"],
  dark: ["#56b4e9", "#ff9248", "#3ecf9f", "#e89ac7", "#e3c341", "#a99cff", "#ff7b72", "#c9d1d9"],
};
const SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down",
  "triangle-right", "triangle-left"];

function config(dark) {
  const colours = COLOURS[dark ? "dark" : "light"];
  const [ink, soft, grid] = dark ? ["#e6edf3", "#9198a1", "#2f3742"]
    : ["#1f2328", "#59636e", "#d8dee4"];
  return {
    background: null, font: "system-ui, sans-serif", view: { stroke: null },
    axis: { labelColor: ink, titleColor: soft, gridColor: grid, domainColor: soft, tickColor: soft,
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelLimit: 220 },
    legend: { labelColor: ink, titleColor: soft, labelFontSize: 12, symbolLimit: 60, columns: 1,
      titleFontWeight: "normal" },
    title: { color: ink, fontSize: 13 },
    header: { labelColor: ink, labelFontSize: 12 },
    range: { category: colours }, mark: { color: colours[0] }, rule: { color: soft },
  };
}

let shown = [];

/** Ends all plots in an element. */
export function clear(element) {
  shown = shown.filter(({ view, at }) => {
    const stays = !element.contains(at);
    if (!stays) view.finalize();
    return stays;
  });
}

/** Draws a plot; `click` is given the datum of a point. */
export async function plot(element, spec, dark, click) {
  clear(element);
  const full = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", padding: 4,
    autosize: { type: "fit-x", contains: "padding" }, ...spec, config: config(dark) };
  const compiled = compile(full, { logger: vega.logger(vega.Error) }).spec;
  const view = new vega.View(vega.parse(compiled, null, { ast: true }),
    { expr: expressionInterpreter, renderer: "svg", hover: true, container: element,
      logLevel: vega.Error });
  view.tooltip((handler, event, item, value) => tooltip(element, event, value));
  if (click) {
    view.addEventListener("click", (event, item) => item?.datum?.policy && click(item.datum));
  }
  await view.runAsync();
  shown.push({ view, at: element });
  return view;
}

function tooltip(element, event, value) {
  let tip = element.parentNode.querySelector(".tooltip");
  if (!tip) {
    tip = document.createElement("div");
    tip.className = "tooltip";
    element.parentNode.append(tip);
  }
  tip.hidden = value == null || value === "";
  if (tip.hidden) return;
  tip.textContent = String(value);
  const box = element.parentNode.getBoundingClientRect();
  const x = Math.min(event.clientX - box.left + 12, box.width - 240);
  tip.style.cssText = `left:${Math.max(0, x)}px;top:${event.clientY - box.top + 14}px`;
}

const scaleOf = (log, { zero = false } = {}) => (log ? { type: "log", nice: true }
  : { type: "linear", zero, nice: true });

/** Values of policies with their intervals: points or bars, sorted as given. */
export function policiesSpec({ data, title, log, bars, order, width }) {
  const y = { field: "name", type: "nominal", sort: order, title: null,
    axis: { grid: !bars, domain: false, ticks: false } };
  const x = { field: "value", type: "quantitative", title,
    scale: scaleOf(log, { zero: bars }) };
  const tooltip = { field: "words" };
  const layer = [];
  const bar = { type: "bar", height: 14, opacity: 0.85, cursor: "pointer" };
  if (bars && !log) layer.push({ mark: bar, encoding: { x, y, tooltip } });
  const rule = { type: "rule", strokeWidth: bars ? 1.5 : 2.5, aria: false };
  layer.push({ mark: rule, encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y,
    tooltip } });
  if (!bars || log) layer.push({ mark: { type: "point", filled: true, size: 70, opacity: 1,
    cursor: "pointer" }, encoding: { x, y, tooltip } });
  return { data: { values: data }, layer, width, height: { step: 22 } };
}

/** A line per policy over an axis, with bands. */
export function linesSpec({ data, title, axis, numeric, log, logX, policies, width }) {
  const x = numeric
    ? { field: "x", type: "quantitative", title: axis, scale: scaleOf(logX, { zero: false }) }
    : { field: "x", type: "ordinal", title: axis, sort: null, axis: { labelAngle: 0 } };
  const y = { field: "value", type: "quantitative", title, scale: scaleOf(log, { zero: !log }) };
  const color = { field: "policy", type: "nominal", scale: { domain: policies }, title: "policy" };
  const shape = { ...color, scale: { domain: policies, range: repeated(SHAPES, policies) } };
  const tooltip = { field: "words" };
  return { data: { values: data }, width, height: 300, layer: [
    { mark: { type: "rule", opacity: 0.55, strokeWidth: 2, aria: false },
      encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color, tooltip } },
    { mark: { type: "line", strokeWidth: 1.5, aria: false }, encoding: { x, y, color } },
    { mark: { type: "point", filled: true, size: 60, opacity: 1, cursor: "pointer" },
      encoding: { x, y, color, shape, tooltip } },
  ] };
}

/** Cumulative distributions. */
export function cdfSpec({ data, title, log, policies, width }) {
  const color = { field: "policy", type: "nominal", scale: { domain: policies }, title: "policy" };
  const dash = { ...color, scale: { domain: policies,
    range: repeated([[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]], policies) } };
  return { data: { values: data }, width, height: 320, mark: { type: "line",
    interpolate: "step-after", strokeWidth: 1.8 }, encoding: {
    x: { field: "value", type: "quantitative", title, scale: scaleOf(log, { zero: false }) },
    y: { field: "share", type: "quantitative", title: "share of all, at most this",
      scale: { domain: [0, 1] }, axis: { format: "%" } },
    color, strokeDash: dash, order: { field: "share" }, tooltip: { field: "words" } } };
}

/** How often values are: a density by logarithmic or equal bins, a row per policy. */
export function histogramSpec({ data, title, log, policies, width }) {
  const x = { field: "low", type: "quantitative", title, scale: scaleOf(log, { zero: false }) };
  return { data: { values: data }, width: width - 150, height: 44, mark: { type: "rect" },
    autosize: { type: "pad" }, encoding: {
      row: { field: "policy", type: "nominal", sort: policies, title: null, spacing: 4,
        header: { labelAngle: 0, labelAlign: "left", labelPadding: 4 } },
      x, x2: { field: "high" },
      y: { field: "share", type: "quantitative", title: null, axis: { format: "%", tickCount: 2 } },
      y2: { datum: 0 },
      tooltip: { field: "words" } } };
}

function repeated(list, policies) {
  return policies.map((_, index) => list[Math.floor(index / 8 + index) % list.length]);
}
