// Draws a timeline: CPUs, tasks, how many wait, wake-ups and deadlines, at any zoom.
//
// Rows are filled pixel by pixel into one image, which takes as long for a million events as for a
// thousand: where more than one part falls on a pixel, sums tell how much of it was busy.

export const LEFT_EDGE = 132;
const ROW = 16, GAP = 4, QUEUE = 44, AXIS = 20, SCROLL = 12;

const THEMES = {
  light: { paper: 0xffffff, ink: "#1f2328", soft: "#59636e", grid: "#d8dee4", wait: 0xf0c9a4,
    waitLine: "#8a4b08", mark: "#b3261e", arrow: "#1f2328", focus: "#0550ae", band: 0xf6f8fa,
    queue: 0x8c959f, light: [0.62, 0.44], text: "#ffffff" },
  dark: { paper: 0x0d1117, ink: "#e6edf3", soft: "#9198a1", grid: "#2f3742", wait: 0x5c3d1e,
    waitLine: "#f0b070", mark: "#ff7b72", arrow: "#e6edf3", focus: "#79c0ff", band: 0x161b22,
    queue: 0x6e7681, light: [0.55, 0.66], text: "#0d1117" },
};

/** The colour of a task, the same wherever it is drawn, as 0xRRGGBB. */
function colourOf(task, theme) {
  // The golden angle: neighbours differ most.
  const hue = (task * 137.508 + 205) % 360;
  const [saturation, lightness] = theme.light;
  const a = saturation * Math.min(lightness, 1 - lightness);
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return (part(0) << 16) | (part(8) << 8) | part(4);
}

function mixed(under, over, part) {
  if (part >= 1) return over;
  const channel = (shift) => {
    const [a, b] = [(under >> shift) & 255, (over >> shift) & 255];
    return Math.round(a + (b - a) * part) << shift;
  };
  return channel(16) | channel(8) | channel(0);
}

/** As an image has it. */
function pixel(colour) {
  return 0xff000000 | ((colour & 255) << 16) | (colour & 0xff00) | (colour >> 16);
}

/** One schedule on a canvas. `view` has `from` and `until`, shared by all that are compared. */
export class Picture {
  constructor(timeline, view, canvas) {
    Object.assign(this, { timeline, view, canvas });
    this.context = canvas.getContext("2d", { alpha: false });
    this.scroll = 0;
    this.tasks = [];
    this.colours = new Map();
    this.selected = null;
    this.parting = null;
  }

  /** Which rows there are: those of CPUs are always shown. */
  rows() {
    const { cpus } = this.timeline.info;
    const height = this.height - AXIS - QUEUE - GAP;
    const fits = Math.floor(height / ROW);
    const some = Math.min(cpus, Math.max(1, Math.floor(fits / (this.tasks.length ? 2 : 1))));
    return { cpus: some, tasks: Math.max(0, fits - some - 1), fits };
  }

  x(time) {
    const { from, until } = this.view;
    return LEFT_EDGE + ((time - from) / (until - from)) * this.plot;
  }

  time(x) {
    const { from, until } = this.view;
    return from + ((x - LEFT_EDGE) / this.plot) * (until - from);
  }

  get plot() {
    return Math.max(50, this.width - LEFT_EDGE - SCROLL);
  }

  resize() {
    const { width, height } = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    if (this.width === width && this.height === height && this.ratio === ratio) return;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.image = null;
  }

  colour(task) {
    let colour = this.colours.get(task);
    if (colour == null) {
      colour = colourOf(task, this.theme);
      this.colours.set(task, colour);
    }
    return colour;
  }

  draw(dark) {
    // One that is not shown any more has no size.
    if (!this.canvas.isConnected) return;
    this.resize();
    const theme = THEMES[dark ? "dark" : "light"];
    if (theme !== this.theme) {
      this.theme = theme;
      this.colours.clear();
    }
    const { ratio } = this;
    const wide = Math.max(1, Math.round(this.plot * ratio));
    const high = this.canvas.height;
    if (!this.image || this.image.width !== wide || this.image.height !== high) {
      this.image = new ImageData(wide, high);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.line = new Uint32Array(wide);
    }
    this.pixels.fill(pixel(theme.paper));
    this.#queue();
    const { cpus, tasks } = this.rows();
    this.top = AXIS + QUEUE + GAP;
    for (let row = 0; row < cpus; row++) this.#cpu(row, this.top + row * ROW);
    this.taskTop = this.top + cpus * ROW + ROW;
    this.scroll = Math.max(0, Math.min(this.scroll, this.tasks.length - tasks));
    this.shown = this.tasks.slice(this.scroll, this.scroll + tasks);
    this.shown.forEach((task, row) => this.#task(task, this.taskTop + row * ROW));
    const { context } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = hex(theme.paper);
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.putImageData(this.image, Math.round(LEFT_EDGE * ratio), 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#words(cpus);
    this.#deadlines();
    this.#arrows();
    this.#marks();
  }

  /** Copies `line` to the rows of pixels of a row. */
  #stroke(top, height) {
    const wide = this.image.width;
    const [from, until] = [Math.round(top * this.ratio), Math.round((top + height) * this.ratio)];
    for (let y = from; y < Math.min(until, this.image.height); y++) {
      this.pixels.set(this.line, y * wide);
    }
  }

  /** Fills `line` from parts of a row, each in `colour(part)`, as far as they cover a pixel. */
  #fill(rows, row, colour) {
    const { line, view } = this;
    const wide = line.length;
    const step = (view.until - view.from) / wide;
    const paper = this.theme.paper;
    const blank = pixel(paper);
    const last = rows.used[row];
    const sumAt = (at, time) => {
      if (at < last) return rows.sum[at] + Math.max(0, time - rows.start[at]);
      return last > rows.first[row]
        ? rows.sum[last - 1] + rows.end[last - 1] - rows.start[last - 1] : 0;
    };
    let at = rows.after(row, view.from);
    let before = sumAt(at, view.from);
    for (let x = 0; x < wide; x++) {
      const [begin, end] = [view.from + x * step, view.from + (x + 1) * step];
      if (at < last && rows.end[at] <= begin) at = this.#advance(rows, at, last, begin);
      if (at >= last || rows.start[at] >= end) {
        line[x] = blank;
        before = sumAt(at, end);
        continue;
      }
      if (rows.start[at] <= begin && rows.end[at] >= end) {
        // One part covers pixels from here on.
        const stop = Math.min(wide, Math.max(x + 1, Math.floor((rows.end[at] - view.from) / step)));
        line.fill(pixel(colour(at)), x, stop);
        x = stop - 1;
        before = sumAt(at, view.from + stop * step);
        continue;
      }
      const middle = this.#advance(rows, at, last, (begin + end) / 2);
      const some = middle < last && rows.start[middle] < end ? middle : at;
      const after = sumAt(this.#advance(rows, at, last, end), end);
      const part = Math.min(1, Math.max(0.25, (after - before) / step));
      line[x] = pixel(mixed(paper, colour(some), part));
      before = after;
    }
  }

  /** The first part from `at` on that ends after `time`. */
  #advance(rows, at, last, time) {
    let stride = 1;
    let low = at;
    while (low + stride < last && rows.end[low + stride] <= time) {
      low += stride;
      stride *= 2;
    }
    let high = Math.min(last, low + stride);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (rows.end[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #cpu(cpu, top) {
    const { onCpu } = this.timeline;
    this.#fill(onCpu, cpu, (at) => this.colour(onCpu.task[at]));
    this.#stroke(top + 1, ROW - 3);
  }

  #task(task, top) {
    const { ofTask } = this.timeline;
    const own = this.colour(task);
    this.#fill(ofTask, task, (at) => (ofTask.cpu[at] < 0 ? this.theme.wait : own));
    this.#stroke(top + 2, ROW - 5);
  }

  /** How many tasks wait: the most within a pixel. */
  #queue() {
    const { queue } = this.timeline;
    const { line, view, image } = this;
    const wide = line.length;
    const step = (view.until - view.from) / wide;
    let at = 0;
    let [low, high] = [0, queue.n];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (queue.time[middle] <= view.from) low = middle + 1;
      else high = middle;
    }
    at = Math.max(0, low - 1);
    const most = new Int32Array(wide);
    for (let x = 0; x < wide; x++) {
      const end = view.from + (x + 1) * step;
      let top = queue.length[at];
      while (at + 1 < queue.n && queue.time[at + 1] < end) {
        at += 1;
        if (queue.length[at] > top) top = queue.length[at];
      }
      most[x] = view.from + x * step > this.timeline.end ? 0 : top;
    }
    this.longest = most.reduce((a, b) => Math.max(a, b), 1);
    const [top, bottom] = [Math.round(AXIS * this.ratio), Math.round((AXIS + QUEUE) * this.ratio)];
    const colour = pixel(this.theme.queue);
    for (let x = 0; x < wide; x++) {
      const height = Math.round((most[x] / this.longest) * (bottom - top - 1));
      for (let y = bottom - height; y < bottom; y++) this.pixels[y * wide + x] = colour;
    }
  }

  #words(cpus) {
    const { context, theme, timeline } = this;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = theme.soft;
    this.#axis();
    context.textAlign = "right";
    context.fillText(`waiting, up to ${this.longest}`, LEFT_EDGE - 6, AXIS + QUEUE / 2);
    context.fillStyle = theme.ink;
    for (let cpu = 0; cpu < cpus; cpu++) {
      const more = cpu === cpus - 1 && cpus < timeline.info.cpus
        ? ` of ${timeline.info.cpus}` : "";
      context.fillText(`CPU ${cpu}${more}`, LEFT_EDGE - 6, this.top + cpu * ROW + ROW / 2);
      this.#names(cpu, this.top + cpu * ROW);
    }
    context.textAlign = "right";
    context.fillStyle = theme.soft;
    const all = this.tasks.length;
    const tasks = all === 1 ? "1 task" : `${all} tasks`;
    const range = this.shown.length < all
      ? `${this.scroll + 1}–${this.scroll + this.shown.length} of ${tasks}` : tasks;
    context.fillText(range, LEFT_EDGE - 6, this.taskTop - ROW / 2);
    context.fillStyle = theme.ink;
    this.shown.forEach((task, row) => {
      const y = this.taskTop + row * ROW + ROW / 2;
      const bold = this.selected?.task === task;
      context.font = `${bold ? "bold " : ""}11px system-ui, sans-serif`;
      context.fillStyle = bold ? theme.focus : theme.ink;
      context.fillText(short(timeline.name(task)), LEFT_EDGE - 6, y);
    });
    if (this.shown.length < all) {
      const [top, height] = [this.taskTop, this.shown.length * ROW];
      context.fillStyle = theme.grid;
      context.fillRect(this.width - SCROLL + 3, top, 6, height);
      context.fillStyle = theme.soft;
      context.fillRect(this.width - SCROLL + 3, top + (height * this.scroll) / all, 6,
        Math.max(8, (height * this.shown.length) / all));
    }
  }

  /** The names of tasks where there is room. */
  #names(cpu, top) {
    const { context, theme, timeline, view } = this;
    const { onCpu } = timeline;
    context.textAlign = "left";
    context.fillStyle = theme.text;
    const least = (30 / this.plot) * (view.until - view.from);
    let at = onCpu.after(cpu, view.from);
    for (let looked = 0; at < onCpu.used[cpu] && onCpu.start[at] < view.until; at++) {
      if (++looked > 400) break;
      const [start, end] = [Math.max(onCpu.start[at], view.from),
        Math.min(onCpu.end[at], view.until)];
      if (end - start < least) continue;
      const room = ((end - start) / (view.until - view.from)) * this.plot;
      const text = timeline.name(onCpu.task[at]);
      if (text.length * 6.2 + 6 < room) {
        context.fillText(text, this.x(start) + 4, top + ROW / 2 - 0.5);
      }
    }
    context.fillStyle = theme.ink;
    context.textAlign = "right";
  }

  #axis() {
    const { context, theme, view } = this;
    const step = tick((view.until - view.from) / (this.plot / 110));
    context.strokeStyle = theme.grid;
    context.lineWidth = 1;
    context.textAlign = "center";
    for (let time = Math.ceil(view.from / step) * step; time <= view.until; time += step) {
      const x = Math.round(this.x(time)) + 0.5;
      context.beginPath();
      context.moveTo(x, AXIS - 4);
      context.lineTo(x, AXIS);
      context.stroke();
      context.fillText(axisTime(time, step), Math.min(x, this.width - 30), AXIS / 2);
    }
  }

  /** From the row of the task that woke another, or that of the CPU on which it ran. */
  #arrows() {
    const { context, theme, timeline, view } = this;
    const rows = new Map(this.shown.map((task, row) => [task, this.taskTop + row * ROW + ROW / 2]));
    context.strokeStyle = context.fillStyle = theme.arrow;
    context.lineWidth = 1;
    context.globalAlpha = 0.55;
    const { time } = timeline;
    const from = lowest(time, view.from);
    const until = lowest(time, view.until);
    if (until - from > 4000) {
      context.globalAlpha = 1;
      return;
    }
    for (let event = from; event < until; event++) {
      if (timeline.kind[event] > 1) continue;
      const y = rows.get(timeline.task[event]);
      if (y == null) continue;
      const x = this.x(time[event]);
      const by = timeline.cause(event);
      const start = by == null ? null : rows.get(by);
      context.beginPath();
      if (start != null) {
        context.moveTo(x, start);
        context.lineTo(x, y + (start < y ? -4 : 4));
        context.stroke();
      }
      const up = start != null && start > y ? -1 : 1;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x - 3, y - 5 * up);
      context.lineTo(x + 3, y - 5 * up);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  #deadlines() {
    const { context, theme, timeline, view } = this;
    if (!timeline.jobsOf.size) return;
    this.shown.forEach((task, row) => {
      const y = this.taskTop + row * ROW;
      let drawn = 0;
      for (const job of timeline.jobsOf.get(task) ?? []) {
        if (job.due < view.from || job.due > view.until) continue;
        if (++drawn > 300) break;
        const late = (job.done ?? timeline.end) > job.due;
        const x = this.x(job.due);
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x, y + ROW - 2);
        if (late) {
          context.moveTo(x - 4, y + 3);
          context.lineTo(x + 4, y + 11);
          context.moveTo(x + 4, y + 3);
          context.lineTo(x - 4, y + 11);
        }
        // Around it, so that it can be told from any task's colour.
        context.strokeStyle = hex(theme.paper);
        context.lineWidth = 5;
        if (late) context.stroke();
        context.strokeStyle = late ? theme.mark : theme.soft;
        context.lineWidth = late ? 2 : 1;
        context.stroke();
      }
    });
  }

  #marks() {
    const { context, theme, view, parting, selected } = this;
    if (selected) {
      const row = this.shown.indexOf(selected.task);
      const [a, b] = [selected.from, selected.until].map((time) =>
        Math.max(LEFT_EDGE, Math.min(LEFT_EDGE + this.plot, this.x(time))));
      context.strokeStyle = theme.focus;
      context.lineWidth = 2;
      const top = this.taskTop + row * ROW;
      if (row >= 0) context.strokeRect(a - 1, top, Math.max(3, b - a + 2), ROW);
      context.globalAlpha = 0.10;
      context.fillStyle = theme.focus;
      context.fillRect(a, this.top, Math.max(1, b - a), this.height - this.top);
      context.globalAlpha = 1;
    }
    if (parting && parting.time >= view.from && parting.time <= view.until) {
      const x = this.x(parting.time);
      context.strokeStyle = context.fillStyle = theme.mark;
      context.lineWidth = 1.5;
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(x, AXIS);
      context.lineTo(x, this.height);
      context.stroke();
      context.setLineDash([]);
      context.font = "bold 11px system-ui, sans-serif";
      const room = x < this.width - 120;
      context.textAlign = room ? "left" : "right";
      context.fillText("first difference", x + (room ? 4 : -4), AXIS + 7);
    }
  }

  /** What is at a place: `{ cpu }` or `{ task }`, a time, and which part. */
  at(x, y) {
    if (x < LEFT_EDGE || x > LEFT_EDGE + this.plot || this.top == null) return null;
    const time = this.time(x);
    const { onCpu, ofTask } = this.timeline;
    const { cpus } = this.rows();
    const cpu = Math.floor((y - this.top) / ROW);
    if (y >= this.top && cpu < cpus) {
      const part = onCpu.after(cpu, time);
      const is = part < onCpu.used[cpu] && onCpu.start[part] <= time;
      return { cpu, time, part: is ? part : -1 };
    }
    const task = this.shown[Math.floor((y - this.taskTop) / ROW)];
    if (y < this.taskTop || task == null) return { time };
    // A wait of less than a pixel can be met, too.
    const near = (2 / this.plot) * (this.view.until - this.view.from);
    let part = ofTask.after(task, time);
    const is = part < ofTask.used[task] && ofTask.start[part] <= time;
    if (!is || ofTask.cpu[part] >= 0) {
      const wait = this.timeline.waitAt(task, time - near);
      if (wait >= 0 && ofTask.start[wait] <= time + near) part = wait;
      else if (!is) part = -1;
    }
    return { task, time, part };
  }
}

function hex(colour) {
  return `#${colour.toString(16).padStart(6, "0")}`;
}

function short(name) {
  return name.length > 20 ? `${name.slice(0, 19)}…` : name;
}

/** The index of the first time that is not before `time`. */
function lowest(times, time) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function tick(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least);
}

function axisTime(time, step) {
  const [unit, scale] = time >= 1e9 && step >= 1e6 ? ["s", 1e9] : step >= 1e5 || time >= 1e9
    ? ["ms", 1e6] : time >= 1e6 && step >= 10 ? ["ms", 1e6] : step >= 100 ? ["us", 1e3] : ["ns", 1];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / step)));
  return `${(time / scale).toFixed(Math.min(9, digits))}${unit}`;
}
