// Numbers, times and names as text.

const UNITS = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];

/** A span of ns with up to four digits after the point, as the command writes it. */
export function span(ns) {
  if (ns == null || !Number.isFinite(ns)) return "–";
  const size = Math.abs(ns);
  const [unit, scale] = UNITS.find(([, scale]) => size >= scale) ?? UNITS[3];
  const digits = scale === 1e9 ? 6 : 3;
  const text = (ns / scale).toFixed(scale === 1 ? 0 : digits);
  return (text.includes(".") ? text.replace(/\.?0+$/, "") : text) + unit;
}

/** `12ms`, `1.5 s` as ns; null if it is none. */
export function parseSpan(text) {
  const found = /^\s*(\d+(?:\.\d+)?|\.\d+)\s*(ns|us|µs|ms|s)\s*$/.exec(text);
  if (!found) return null;
  const unit = found[2] === "µs" ? "us" : found[2];
  return Math.round(Number(found[1]) * UNITS.find(([name]) => name === unit)[1]);
}

/** How a column of numbers is written: its unit, and the digits after the point that its numbers
 * usually have; small ones have as many as show three significant digits. */
export function format(unit, values) {
  const known = values.filter((value) => value != null && Number.isFinite(value));
  const sizes = known.map(Math.abs).filter((size) => size > 0).sort((a, b) => a - b);
  const most = sizes.at(-1) ?? 0;
  const middle = sizes[sizes.length >> 1] ?? 0;
  if (unit === "ns") {
    const [name, scale] = UNITS.find(([, scale]) => middle >= scale) ?? UNITS[3];
    return numbers(name, scale, middle / scale, false);
  }
  const whole = known.every(Number.isInteger) && most >= 100;
  return numbers(unit === "1" ? "" : unit, 1, middle, whole);
}

function numbers(unit, scale, typical, whole) {
  const digits = whole || typical === 0 ? 0 : typical >= 1000 ? 0 : typical >= 1 ? 2 : 4;
  const digitsOf = (size) => {
    if (whole || size < 5e-10) return digits;
    return Math.min(9, Math.max(digits, 2 - Math.floor(Math.log10(size))));
  };
  const number = (value) => {
    if (value == null || !Number.isFinite(value)) return "–";
    return (value / scale).toFixed(digitsOf(Math.abs(value / scale))).replace(/^-(0(?:\.0*)?)$/, "$1");
  };
  return { unit, scale, digits, number };
}

/** `1 seed`, `2 seeds`. */
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** A number with its unit. */
export function withUnit(format, value) {
  const text = format.number(value);
  return format.unit && text !== "–" ? `${text} ${format.unit}` : text;
}

const STATS = { mean: "mean", sd: "standard deviation", min: "smallest", p50: "median",
  p95: "95th percentile", p99: "99th percentile", max: "largest" };

/** A metric as words: `wakeup_latency_ns` is `wake-up latency`. */
export function metricWords(metric) {
  const plain = metric.replace(/_ns$|_per_s$/, "").replaceAll("_", " ");
  return plain.replace("wakeup", "wake-up").replace("busy", "CPU time");
}

/** A column as words. */
export function columnWords(column) {
  const name = metricWords(column.metric);
  return column.stat ? `${name}, ${STATS[column.stat] ?? column.stat}` : name;
}

/** A column inside a sentence: `mean wake-up latency`. */
export function columnPhrase(column) {
  const name = metricWords(column.metric);
  return column.stat ? `${STATS[column.stat] ?? column.stat} ${name}` : name;
}

/** `axis = value, …`; without parts that are of all. */
export function groupWords(axes) {
  const parts = Object.entries(axes).filter(([axis, value]) => !(isPart(axis) && value === "all"));
  // A scenario whose name is a number says nothing without its axis.
  const isName = (value) => !/^[\d.]/.test(value);
  return parts.map(([axis, value]) => (axis === "scenario" && isName(value) ? `${value}`
    : axis === "workload" ? `tasks of ${value}` : `${axis} = ${value}`)).join(", ") || "all tasks";
}

/** An argument as a shell takes it. */
export function shell(text) {
  return /^[\w./:,@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The values of an axis where they are numbers or times, in the unit of `unit`; null: by order. */
export function axisNumbers(values) {
  const numbers = values.map((value) => (value === "" || value === true ? NaN : Number(value)));
  if (numbers.every(Number.isFinite)) return { numbers, unit: "" };
  const spans = values.map((value) => parseSpan(String(value)));
  if (spans.includes(null)) return null;
  return { numbers: spans.map((ns) => ns / 1e6), unit: "ms" };
}

/** Whether an axis parts the tasks of one machine. */
export function isPart(axis) {
  return axis === "workload" || axis === "task" || axis === "vm";
}
