// A timeline's block, as typed arrays: see `crates/lab/src/output/report/timeline.rs`.

export const NEW = 0, WAKE = 1, OFFLINE = 2, JOB = 3, DONE = 4, SWITCH = 8;
export const LEFT = ["", "its slice ended", "preempted", "yielded", "not run", "blocked", "ended"];
const EXPIRED = 1, BLOCKED = 5;

/** Reads LEB128 from a stream. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  get done() {
    return this.at >= this.bytes.length;
  }

  unsigned() {
    let byte = this.bytes[this.at++];
    if (byte < 0x80) return byte;
    let number = byte & 0x7f;
    let scale = 128;
    do {
      byte = this.bytes[this.at++];
      number += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte >= 0x80);
    return number;
  }

  /** Exact up to 2^53. */
  signed() {
    const number = this.unsigned();
    return number % 2 === 0 ? number / 2 : -(number + 1) / 2;
  }
}

/** A policy's value, of 64 bits: some are the largest that there is. */
function value(reader, before) {
  let [number, shift] = [0n, 0n];
  let byte;
  do {
    byte = reader.bytes[reader.at++];
    number |= BigInt(byte & 0x7f) << shift;
    shift += 7n;
  } while (byte >= 0x80);
  const signed = number & 1n ? -((number + 1n) >> 1n) : number >> 1n;
  return BigInt.asIntN(64, before + signed);
}

const EVENTS = ["kinds", "times", "cpus", "tasks", "by", "jobs"];
const CHOICES = ["picks", "choices", "reasons", "names", "values"];

/** The streams of a block by name. */
function streams(block, names) {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
  const found = {};
  let at = 0;
  for (const name of names) {
    const length = view.getUint32(at, true);
    found[name] = new Reader(block.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return found;
}

/** Rows of something over time, all in the same arrays: row `r` has `first[r] .. used[r]`. */
class Rows {
  constructor(counts, fields) {
    this.first = new Uint32Array(counts.length + 1);
    for (let row = 0; row < counts.length; row++) {
      this.first[row + 1] = this.first[row] + counts[row];
    }
    this.used = this.first.slice();
    const all = this.first[counts.length];
    for (const [name, Type] of Object.entries(fields)) this[name] = new Type(all);
  }

  next(row) {
    return this.used[row]++;
  }

  /** The first of a row that ends after `time`. */
  after(row, time) {
    let [low, high] = [this.first[row], this.used[row]];
    const { end } = this;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (end[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** What a run did. */
export class Timeline {
  constructor(info, block) {
    this.info = info;
    this.end = info.until_ns;
    this.names = new Map(info.names);
    this.#read(streams(block, EVENTS));
    this.#build();
  }

  /** Who caused an event; null: no task. */
  cause(event) {
    return this.by[event] ? this.by[event] - 1 : null;
  }

  name(serial) {
    return this.names.get(serial) ?? `task ${serial}`;
  }

  /** With its number, if the name does not say it. */
  fullName(serial) {
    const name = this.name(serial);
    return name === `task ${serial}` ? name : `${name} (task ${serial})`;
  }

  /** Events as they are written. */
  #read({ kinds, times, cpus, tasks, by, jobs }) {
    const n = kinds.bytes.length;
    this.n = n;
    this.kind = kinds.bytes;
    this.time = new Float64Array(n);
    this.cpu = new Uint16Array(n);
    this.task = new Int32Array(n).fill(-1);
    // 0, or 1 + the task that did it.
    this.by = new Int32Array(n);
    this.jobs = [];
    let [time, task] = [0, 0];
    for (let i = 0; i < n; i++) {
      time += times.unsigned();
      this.time[i] = time;
      const kind = this.kind[i];
      if (kind >= SWITCH) this.cpu[i] = cpus.unsigned();
      if (kind < SWITCH || kind & 1) {
        task += tasks.signed();
        this.task[i] = task;
      }
      if (kind <= WAKE) {
        this.by[i] = by.unsigned();
      } else if (kind === JOB) {
        const release = time + jobs.signed();
        this.jobs.push({ task, release, due: release + jobs.unsigned(), done: null });
      }
    }
  }

  /** What each CPU and each task does. */
  #build() {
    const { n, kind, task, cpu } = this;
    const { cpus, tasks } = this.info;
    const [runs, parts] = [new Uint32Array(cpus), new Uint32Array(tasks)];
    let readies = 0;
    for (let i = 0; i < n; i++) {
      const what = kind[i];
      if (what <= WAKE) {
        parts[task[i]] += 1;
        readies += 1;
      } else if (what >= SWITCH) {
        readies += 1;
        if (what & 1) {
          runs[cpu[i]] += 1;
          // It runs, and perhaps waits afterwards.
          parts[task[i]] += 2;
        }
      }
    }
    const fields = { start: Float64Array, end: Float64Array, task: Int32Array, left: Uint8Array };
    this.onCpu = new Rows(runs, { ...fields, sum: Float64Array });
    // `cpu`: -1 waits. `why`: as `left`, or 7 new, 8 woken; `event`: where the wait began.
    this.ofTask = new Rows(parts, { start: Float64Array, end: Float64Array, cpu: Int16Array,
      why: Uint8Array, event: Int32Array, sum: Float64Array });
    this.queue = { time: new Float64Array(readies + 1), length: new Int32Array(readies + 1), n: 1 };
    this.#follow();
    this.#sums();
    this.#deadlines();
  }

  #follow() {
    const { n, kind, task, cpu, time, onCpu, ofTask, queue } = this;
    const { cpus, tasks } = this.info;
    const running = new Int32Array(cpus).fill(-1);
    const [segment, part] = [new Int32Array(cpus).fill(-1), new Int32Array(tasks).fill(-1)];
    const waits = new Uint8Array(tasks);
    let ready = 0;
    const count = (now) => {
      if (queue.time[queue.n - 1] !== now) queue.time[queue.n++] = now;
      queue.length[queue.n - 1] = ready;
    };
    const stop = (who, now) => {
      if (part[who] < 0) return;
      ofTask.end[part[who]] = now;
      part[who] = -1;
      if (waits[who]) {
        waits[who] = 0;
        ready -= 1;
      }
    };
    const wait = (who, now, why, event) => {
      stop(who, now);
      const at = ofTask.next(who);
      part[who] = at;
      ofTask.start[at] = now;
      ofTask.cpu[at] = -1;
      ofTask.why[at] = why;
      ofTask.event[at] = event;
      waits[who] = 1;
      ready += 1;
    };
    for (let i = 0; i < n; i++) {
      const [what, now, who] = [kind[i], time[i], task[i]];
      if (what <= WAKE) {
        wait(who, now, 7 + what, i);
        count(now);
      } else if (what === OFFLINE) {
        stop(who, now);
        count(now);
      } else if (what >= SWITCH) {
        const [on, left] = [cpu[i], (what - SWITCH) >> 1];
        const before = running[on];
        if (before >= 0) {
          onCpu.end[segment[on]] = now;
          onCpu.left[segment[on]] = left;
          stop(before, now);
          if (left >= EXPIRED && left < BLOCKED && !(what & 1 && who === before)) {
            wait(before, now, left, i);
          }
        }
        running[on] = -1;
        if (what & 1) {
          stop(who, now);
          const at = onCpu.next(on);
          [onCpu.start[at], onCpu.task[at]] = [now, who];
          segment[on] = at;
          running[on] = who;
          const own = ofTask.next(who);
          [ofTask.start[own], ofTask.cpu[own], ofTask.event[own]] = [now, on, i];
          part[who] = own;
        }
        count(now);
      }
    }
    for (let on = 0; on < cpus; on++) if (running[on] >= 0) onCpu.end[segment[on]] = this.end;
    for (let who = 0; who < tasks; who++) if (part[who] >= 0) ofTask.end[part[who]] = this.end;
  }

  /** How long CPUs have run, and tasks have run or waited, before each part. */
  #sums() {
    const { onCpu, ofTask } = this;
    for (let row = 0; row < this.info.cpus; row++) {
      let sum = 0;
      for (let at = onCpu.first[row]; at < onCpu.used[row]; at++) {
        onCpu.sum[at] = sum;
        sum += onCpu.end[at] - onCpu.start[at];
      }
    }
    for (let row = 0; row < this.info.tasks; row++) {
      let sum = 0;
      for (let at = ofTask.first[row]; at < ofTask.used[row]; at++) {
        ofTask.sum[at] = sum;
        sum += ofTask.end[at] - ofTask.start[at];
      }
    }
  }

  /** Jobs by task, with when they were done. */
  #deadlines() {
    this.jobsOf = new Map();
    const open = new Map();
    let number = 0;
    for (let i = 0; i < this.n && this.jobs.length; i++) {
      if (this.kind[i] === JOB) {
        const job = this.jobs[number++];
        open.set(job.task, job);
        if (!this.jobsOf.has(job.task)) this.jobsOf.set(job.task, []);
        this.jobsOf.get(job.task).push(job);
      } else if (this.kind[i] === DONE && open.has(this.task[i])) {
        open.get(this.task[i]).done = this.time[i];
      }
    }
  }

  /** The tasks that ran or waited in a window, by number. */
  tasksIn(from, until) {
    const { ofTask } = this;
    const found = [];
    for (let task = 0; task < this.info.tasks; task++) {
      const at = ofTask.after(task, from);
      if (at < ofTask.used[task] && ofTask.start[at] < until) found.push(task);
    }
    return found;
  }

  /** The wait of a task at a time, or the next one; -1: none. */
  waitAt(task, time, exactly = false) {
    const { ofTask } = this;
    const last = ofTask.used[task];
    for (let at = ofTask.after(task, time); at < last; at++) {
      if (ofTask.cpu[at] < 0 && ofTask.end[at] > ofTask.start[at]) {
        return exactly && ofTask.start[at] > time ? -1 : at;
      }
    }
    return -1;
  }

  /** All waits of a task that took time. */
  waitsOf(task) {
    const { ofTask } = this;
    const found = [];
    for (let at = ofTask.first[task]; at < ofTask.used[task]; at++) {
      if (ofTask.cpu[at] < 0 && ofTask.end[at] > ofTask.start[at]) found.push(at);
    }
    return found;
  }

  /** Takes the block with the choices, by task. */
  take(block) {
    this.told = this.#readChoices(streams(block, CHOICES));
  }

  /** Choices of other tasks while one waited, with reasons: the first few. */
  choices(task, from, until) {
    const all = this.told.get(task) ?? [];
    return all.filter((choice) => choice.time >= from && choice.time <= until);
  }

  #readChoices({ picks, choices, reasons, names, values }) {
    const told = new Map();
    const last = new Map();
    let [events, chosen, task, before] = [0, 0, 0, 0n];
    while (!picks.done) {
      events += picks.unsigned();
      const time = (events > 0 ? this.time[events - 1] : 0) + picks.unsigned();
      const cpu = picks.unsigned();
      chosen += picks.signed();
      for (let count = picks.unsigned(); count > 0; count--) {
        task += choices.signed();
        const choice = { time, cpu, chosen, code: reasons.bytes[reasons.at++] };
        if (choice.code === 0 || choice.code === 3) {
          choice.name = this.info.values[names.unsigned()];
        }
        if (choice.code === 2) {
          choice.a = value(values, 0n);
          choice.b = value(values, 0n);
        } else if (choice.code < 4) {
          before = value(values, before);
          choice.a = before;
          choice.b = value(values, last.get(task) ?? before);
          last.set(task, choice.b);
        }
        if (!told.has(task)) told.set(task, []);
        told.get(task).push(choice);
      }
    }
    return told;
  }

  /** Each instant at which CPUs run others than before, with which. */
  * steps() {
    const { n, kind, cpu, task, time } = this;
    const runs = new Int32Array(this.info.cpus).fill(-1);
    const before = runs.slice();
    const touched = new Set();
    let now = 0;
    const changes = () => {
      const found = [];
      for (const on of [...touched].sort((a, b) => a - b)) {
        if (before[on] !== runs[on]) found.push([on, runs[on]]);
        before[on] = runs[on];
      }
      touched.clear();
      return found;
    };
    for (let i = 0; i < n; i++) {
      if (kind[i] < SWITCH) continue;
      if (time[i] > now && touched.size) {
        const found = changes();
        if (found.length) yield { time: now, runs: found };
      }
      now = time[i];
      runs[cpu[i]] = kind[i] & 1 ? task[i] : -1;
      touched.add(cpu[i]);
    }
    const found = changes();
    if (found.length) yield { time: now, runs: found };
  }
}

/** Where two schedules part: time, CPU, steps alike, and what each runs then; null: nowhere. */
export function parting(a, b) {
  const [x, y] = [a.steps(), b.steps()];
  let alike = 0;
  for (;;) {
    const [p, q] = [x.next().value, y.next().value];
    if (!p && !q) return { alike };
    const time = Math.min(p?.time ?? Infinity, q?.time ?? Infinity);
    const [of, other] = [p, q].map((step) => new Map(step?.time === time ? step.runs : []));
    const cpus = [...of.keys(), ...other.keys()].sort((m, n) => m - n);
    const cpu = cpus.find((on) => of.get(on) !== other.get(on));
    if (cpu != null) return { time, cpu, alike, cut: !p || !q };
    alike += 1;
  }
}
