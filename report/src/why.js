// Why a task waited, from a timeline's events.

import { LEFT } from "./events.js";
import { span } from "./words.js";

/** What policies say where there is no value. */
const NO_LIMIT = 2n ** 63n - 1n;
const BECAME = [...LEFT, "new", "woken"];

/** What a CPU did, and for how long, while a task waited. */
export function explain(timeline, task, wait) {
  const { ofTask, onCpu, info } = timeline;
  const [from, until] = [ofTask.start[wait], ofTask.end[wait]];
  const next = wait + 1;
  const picked = next < ofTask.used[task] && ofTask.cpu[next] >= 0
    && ofTask.start[next] === until;
  const by = timeline.cause(ofTask.event[wait]);
  const cpus = [];
  for (let cpu = 0; cpu < info.cpus; cpu++) {
    const ran = new Map();
    let busy = 0;
    for (let at = onCpu.after(cpu, from); at < onCpu.used[cpu]; at++) {
      if (onCpu.start[at] >= until) break;
      const time = Math.min(onCpu.end[at], until) - Math.max(onCpu.start[at], from);
      if (!(time > 0)) continue;
      const known = ran.get(onCpu.task[at]) ?? { task: onCpu.task[at], time: 0, turns: 0 };
      known.time += time;
      known.turns += 1;
      known.ended = onCpu.end[at] <= until ? onCpu.left[at] : 0;
      ran.set(onCpu.task[at], known);
      busy += time;
    }
    const idle = until - from - busy;
    cpus.push({ cpu, idle, ran: [...ran.values()].sort((a, b) => b.time - a.time) });
  }
  return {
    task, from, until, picked, by, cpus,
    cpu: picked ? ofTask.cpu[next] : null,
    why: BECAME[ofTask.why[wait]],
    choices: timeline.choices(task, from, until),
  };
}

/** A value of a policy with its name. */
function value(name, number) {
  const plain = name.replace(/_ns$/, "").replaceAll("_", " ");
  return `${plain} ${amount(name, number)}`;
}

function amount(name, number) {
  if (number === NO_LIMIT) return "none";
  return name.endsWith("_ns") ? span(Number(number)) : String(number);
}

/** Why `choice` was made and not the task that waited. */
export function reason(choice) {
  const { code, name, a, b } = choice;
  switch (code) {
    case 0: return `${value(name, a)} before ${amount(name, b)}`;
    case 1: return `ready since ${span(Number(a))}, before ${span(Number(b))}`;
    case 2: return `from runqueue ${a}; the task waits in runqueue ${b}`;
    case 3: return `by another rule: ${value(name, a)} comes after ${amount(name, b)}`;
    case 4: return "a tie: first come, first served";
    default: return "the policy does not say by what";
  }
}

/** The first sentence. */
export function sentence(timeline, found) {
  const { task, from, until, why, picked, by } = found;
  const who = timeline.fullName(task);
  const became = by == null ? why : `${why} by ${timeline.fullName(by)}`;
  const end = picked ? `when CPU ${found.cpu} took it` : "when the recording ended";
  return `${who} waited ${span(until - from)} under ${timeline.info.label}, from ${span(from)} `
    + `(${became}) to ${span(until)}, ${end}.`;
}

/** A CPU's part in it. */
export function meanwhile(timeline, { idle, ran }, most = 5) {
  if (!ran.length) return "idle";
  const parts = ran.slice(0, most).map(({ task, time, turns, ended }) => {
    const times = turns > 1 ? ` in ${turns} turns` : "";
    const why = ended ? ` (${LEFT[ended]})` : "";
    return `${timeline.fullName(task)} had it ${span(time)}${times}${why}`;
  });
  const rest = ran.slice(most).reduce((sum, { time }) => sum + time, 0);
  if (rest) parts.push(`${ran.length - most} others ${span(rest)}`);
  if (idle > 0) parts.push(`no task ${span(idle)}`);
  return parts.join(", ");
}
