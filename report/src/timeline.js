// The timeline's controls: which runs, which window, which task; what a wait was for.

import { Picture, LEFT_EDGE } from "./canvas.js";
import { choice, code, h, toggle } from "./dom.js";
import { LEFT, Timeline, parting } from "./events.js";
import { explain, meanwhile, reason, sentence } from "./why.js";
import { parseSpan, shell, span } from "./words.js";

const HINT = "Choose a wait (the pale parts of a task’s row) to read why.";
const MOST_ZOOM = 100; // ns
const MOST_CHOICES = 40;

export class TimelineView {
  constructor(experiment, isDark, unpack) {
    this.experiment = experiment;
    this.isDark = isDark;
    this.unpack = unpack;
    this.all = experiment.timelines();
    this.loaded = new Map();
    this.view = { from: 0, until: 1 };
    this.pictures = [];
    this.group = this.all[0].group;
    this.onlyActive = true;
    this.filter = "";
    this.element = h("div", { class: "timeline" });
    this.#build();
  }

  of(group) {
    return this.all.filter((timeline) => timeline.group === group);
  }

  async load(info) {
    if (!this.loaded.has(info)) {
      const block = this.unpack(`block-${this.experiment.block + info.block}`);
      this.loaded.set(info, block.then((bytes) => new Timeline(info, bytes)));
    }
    return this.loaded.get(info);
  }

  #build() {
    this.controls = h("div", { class: "controls" });
    this.window = h("div", { class: "controls" });
    this.difference = h("p", { class: "difference", "aria-live": "polite" });
    this.stage = h("div", { class: "stage" });
    this.hover = h("div", { class: "hover", role: "status", "aria-live": "off" });
    this.panel = h("div", { class: "panel why", tabindex: "-1", "aria-live": "polite" },
      h("p", { class: "hint" }, HINT));
    this.element.append(this.controls, this.window, this.difference, this.stage, this.hover,
      this.panel);
    this.#window();
  }

  #window() {
    const button = (text, label, run) =>
      h("button", { type: "button", "aria-label": label, title: label, onclick: run }, text);
    this.from = h("input", { type: "text", id: "from", size: 10, autocomplete: "off" });
    this.until = h("input", { type: "text", id: "until", size: 10, autocomplete: "off" });
    const go = () => {
      const [from, until] = [parseSpan(this.from.value), parseSpan(this.until.value)];
      for (const [field, time] of [[this.from, from], [this.until, until]]) {
        field.setAttribute("aria-invalid", time == null);
      }
      if (from != null && until != null && from < until) this.show(from, until);
    };
    for (const field of [this.from, this.until]) field.addEventListener("change", go);
    this.find = h("input", { type: "text", id: "find", size: 14, placeholder: "task 12, editor",
      autocomplete: "off" });
    this.find.addEventListener("input", () => {
      this.filter = this.find.value;
      this.refresh();
    });
    this.at = h("input", { type: "text", id: "at", size: 8, placeholder: "40ms",
      autocomplete: "off" });
    const ask = () => this.ask();
    this.at.addEventListener("keydown", (event) => event.key === "Enter" && ask());
    this.window.append(
      button("+", "Zoom in", () => this.zoom(0.5)), button("−", "Zoom out", () => this.zoom(2)),
      button("◀", "Earlier", () => this.pan(-0.3)), button("▶", "Later", () => this.pan(0.3)),
      button("all", "Show all", () => this.show(0, this.length)),
      h("span", { class: "choice" }, h("label", { for: "from" }, "from"), this.from),
      h("span", { class: "choice" }, h("label", { for: "until" }, "until"), this.until),
      h("span", { class: "choice" }, h("label", { for: "find" }, "task"), this.find),
      h("span", { class: "choice" }, h("label", { for: "at" }, "at"), this.at),
      h("button", { type: "button", class: "ask", onclick: ask }, "Why did it wait?"),
      toggle("only tasks active in the window", true, (on) => {
        this.onlyActive = on;
        this.refresh();
      }));
  }

  /** Shows the runs of a group: one, or two one above the other. */
  async open(group, first, second) {
    this.group = group;
    const known = this.of(group);
    this.infos = [known.find((info) => info.label === first) ?? known[0]];
    const other = known.find((info) => info.label === second && info !== this.infos[0]);
    if (other) this.infos.push(other);
    this.#choices(known);
    const timelines = await Promise.all(this.infos.map((info) => this.load(info)));
    this.length = Math.max(...timelines.map((timeline) => timeline.end));
    this.pictures = timelines.map((timeline) => this.#picture(timeline));
    this.stage.replaceChildren(...this.pictures.map((picture) => picture.frame));
    this.#compare(timelines);
    this.clear();
    this.panel.replaceChildren(h("p", { class: "hint" }, HINT));
    if (this.shownGroup !== group) {
      this.shownGroup = group;
      this.show(0, this.length);
    } else {
      this.show(this.view.from, this.view.until);
    }
  }

  /** As `open`; `opening` is when it is done. */
  change(group, first, second) {
    this.opening = this.open(group, first, second);
    return this.opening;
  }

  #choices(known) {
    const groups = [...new Set(this.all.map((info) => info.group))];
    const words = (planned) => this.experiment.wholeGroups()
      .find((group) => group.planned === planned)?.words ?? `group ${planned}`;
    const labels = known.map((info) => [info.label, this.experiment.mark(info.label)]);
    const [first, second] = this.infos.map((info) => info.label);
    this.controls.replaceChildren(
      groups.length > 1 ? choice("runs of", groups.map((group) => [group, words(group)]),
        this.group, (group) => this.change(Number(group), first, second)) : "",
      choice("policy", labels, first, (label) => this.change(this.group, label, second)),
      choice("beside", [["", "no other"], ...labels.filter(([label]) => label !== first)],
        second ?? "", (label) => this.change(this.group, first, label)));
  }

  #picture(timeline) {
    const { label, events, ended, index } = timeline.info;
    const rows = Math.min(timeline.info.cpus, 8)
      + Math.min(timeline.info.tasks, this.infos.length > 1 ? 10 : 18) + 2;
    const canvas = h("canvas", { tabindex: "0", role: "application",
      style: `height: ${80 + rows * 16}px`,
      "aria-label": `Timeline of ${label}. Arrow keys move and choose a task's row, plus and minus `
        + "zoom, N and P choose the next or previous wait, Enter says why it waited.",
      "aria-describedby": "keys" });
    const cut = ended ? "" : `, recorded until ${span(timeline.end)}`;
    const title = h("h3", {}, this.experiment.mark(label),
      h("small", {}, ` seed ${index}, ${events.toLocaleString("en")} events${cut}`));
    const picture = new Picture(timeline, this.view, canvas);
    picture.frame = h("figure", { class: "picture" }, h("figcaption", {}, title), canvas);
    this.#listen(picture);
    return picture;
  }

  #compare(timelines) {
    this.difference.replaceChildren();
    if (timelines.length < 2) return;
    const [a, b] = timelines;
    const found = parting(a, b);
    const names = timelines.map((timeline) => timeline.info.label);
    if (found.time == null) {
      this.difference.append(`${names.join(" and ")} do the same, in ${found.alike} steps.`);
      return;
    }
    for (const picture of this.pictures) picture.parting = found;
    const runs = (timeline) => {
      const { onCpu } = timeline;
      const at = onCpu.after(found.cpu, found.time);
      const is = at < onCpu.used[found.cpu] && onCpu.start[at] <= found.time;
      return is ? `runs ${timeline.fullName(onCpu.task[at])}` : "runs nothing";
    };
    const near = this.length / 200;
    this.difference.append(
      `${names[0]} and ${names[1]} part at ${span(found.time)} on CPU ${found.cpu}, after `
        + `${found.alike} steps alike: ${names[0]} ${runs(a)}, ${names[1]} ${runs(b)}. `,
      h("button", { type: "button", onclick: () =>
        this.show(Math.max(0, found.time - near), found.time + near) }, "go there"));
  }

  show(from, until) {
    const length = Math.max(MOST_ZOOM, Math.min(until - from, this.length * 1.02));
    const start = Math.max(0, Math.min(from, this.length * 1.02 - length));
    this.view.from = start;
    this.view.until = start + length;
    if (document.activeElement !== this.from) this.from.value = span(Math.round(start));
    if (document.activeElement !== this.until) this.until.value = span(Math.round(start + length));
    this.refresh();
  }

  zoom(factor, around = (this.view.from + this.view.until) / 2) {
    const { from, until } = this.view;
    this.show(around - (around - from) * factor, around + (until - around) * factor);
  }

  pan(part) {
    const shift = (this.view.until - this.view.from) * part;
    this.show(this.view.from + shift, this.view.until + shift);
  }

  /** Draws soon; which tasks are active is found out when the window stands still. */
  refresh() {
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      this.#chooseTasks();
      this.draw();
    }, this.pictures.some((picture) => picture.tasks.length) ? 120 : 0);
    this.draw();
  }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      for (const picture of this.pictures) picture.draw(this.isDark());
    });
  }

  #chooseTasks() {
    const wanted = this.filter.trim().toLowerCase();
    for (const picture of this.pictures) {
      const { timeline } = picture;
      let tasks = this.onlyActive ? timeline.tasksIn(this.view.from, this.view.until)
        : Array.from({ length: timeline.info.tasks }, (_, task) => task);
      if (wanted) {
        const exact = this.taskNamed(timeline, wanted);
        tasks = exact != null ? [exact]
          : tasks.filter((task) => timeline.fullName(task).toLowerCase().includes(wanted));
      }
      picture.tasks = tasks;
    }
  }

  /** The task of a name or a number. */
  taskNamed(timeline, text) {
    const wanted = text.trim().toLowerCase();
    const number = /^(?:task )?(\d+)$/.exec(wanted)?.[1];
    if (number != null && Number(number) < timeline.info.tasks) return Number(number);
    return [...timeline.names].find(([, name]) => name.toLowerCase() === wanted)?.[0];
  }

  /** Answers the question of the fields. */
  ask() {
    const { timeline } = this.pictures[0];
    const task = this.taskNamed(timeline, this.find.value);
    const time = parseSpan(this.at.value);
    this.find.setAttribute("aria-invalid", task == null);
    this.at.setAttribute("aria-invalid", time == null);
    if (task == null || time == null) {
      const what = task == null
        ? `There is no task “${this.find.value}”; a number or a name names one.`
        : `“${this.at.value}” is no time; 40ms is one.`;
      this.panel.replaceChildren(h("p", { class: "hint" }, what));
      return;
    }
    const wait = timeline.waitAt(task, time, true);
    if (wait < 0) {
      const next = timeline.waitAt(task, time);
      const more = next < 0 ? "It does not wait later, either."
        : `It waits next from ${span(timeline.ofTask.start[next])}.`;
      this.panel.replaceChildren(h("p", {}, `${timeline.fullName(task)} did not wait at `
        + `${span(time)}. ${more}`));
      return;
    }
    this.selecting = this.select(this.pictures[0], task, wait, true);
  }

  clear() {
    for (const picture of this.pictures) picture.selected = null;
  }

  /** Says why a task waited, and shows where. */
  async select(picture, task, wait, move = false) {
    const { timeline } = picture;
    if (!timeline.told) {
      const { block } = timeline.info;
      const asked = (this.asked = {});
      timeline.take(await this.unpack(`choices-${this.experiment.block + block}`));
      // Something else has been chosen meanwhile.
      if (this.asked !== asked || !this.pictures.includes(picture)) return;
    }
    this.asked = null;
    const found = this.explanation(timeline, task, wait);
    this.clear();
    picture.selected = { task, wait, from: found.from, until: found.until };
    this.chosen = picture;
    const row = picture.tasks.indexOf(task);
    const { tasks } = picture.rows();
    if (row >= 0 && (row < picture.scroll || row >= picture.scroll + tasks)) {
      picture.scroll = Math.max(0, row - (tasks >> 1));
    }
    const length = found.until - found.from;
    const { from, until } = this.view;
    if (move || found.until < from || found.from > until) {
      this.show(found.from - length * 0.6, found.until + length * 0.6);
    }
    this.#explain(timeline, found);
    this.draw();
  }

  #explain(timeline, found) {
    this.panel.replaceChildren(
      h("p", { class: "sentence" }, sentence(timeline, found)),
      h("h4", {}, "Meanwhile"),
      h("ul", {}, found.cpus.map((cpu) =>
        h("li", {}, `CPU ${cpu.cpu}: ${meanwhile(timeline, cpu)}`)).slice(0, 16)),
      ...this.#reasons(timeline, found),
      this.#waits(timeline, found.task));
  }

  /** What was chosen instead, if the host says so. */
  #reasons(timeline, found) {
    const { label, group, reasons } = timeline.info;
    if (!reasons) {
      return [h("p", { class: "hint" }, `${label} decided in a kernel, out of sight. What it was `
        + "asked and answered is in its log: ", code("anysched run --record"), ".")];
    }
    const { details } = this.experiment;
    const other = found.choices.filter((choice) => choice.chosen !== found.task);
    const chosen = other.slice(0, MOST_CHOICES).map((choice) => h("tr", {},
      h("td", { class: "number" }, span(choice.time)), h("td", {}, `CPU ${choice.cpu}`),
      h("td", {}, timeline.fullName(choice.chosen)), h("td", {}, reason(choice))));
    const command = `anysched why ${shell(details.file)} --policy ${shell(label)} --group ${group}`
      + `${details.changes} --task ${found.task} --at ${Math.floor(found.from)}ns`;
    return [
      h("h4", {}, `What ${label} chose instead`),
      chosen.length ? h("table", { class: "plain" },
        h("thead", {}, h("tr", {}, ["at", "on", "task", "because"].map((head) =>
          h("th", { scope: "col" }, head)))),
        h("tbody", {}, chosen))
        : h("p", {}, "No other task was chosen while it waited: what ran went on, or the CPU had "
          + "just been asked to pick."),
      h("p", { class: "hint" }, "The first choices of a wait are here; all of them, with what the "
        + "policy says of every task, come from ", code(command)),
    ];
  }

  /** As `explain`; tests compare it with the command. */
  explanation(timeline, task, wait) {
    return explain(timeline, task, wait);
  }

  /** The waits of the same task, longest first. */
  #waits(timeline, task) {
    const { ofTask } = timeline;
    const length = (wait) => ofTask.end[wait] - ofTask.start[wait];
    const waits = timeline.waitsOf(task).sort((a, b) => length(b) - length(a));
    const item = (wait) => h("li", {}, h("button", { type: "button", class: "link",
      onclick: () => this.select(this.chosen, task, wait) },
      `${span(length(wait))} from ${span(ofTask.start[wait])}`));
    const all = `All ${waits.length} waits of this task, longest first`;
    return h("details", {}, h("summary", {}, all),
      h("ol", { class: "waits" }, waits.slice(0, 50).map(item)));
  }

  #listen(picture) {
    const { canvas } = picture;
    const place = (event) => {
      const { left, top } = canvas.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    };
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { at: place(event), from: this.view.from, until: this.view.until,
        scroll: picture.scroll, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (!drag) {
        this.#hover(picture, x, y);
        return;
      }
      const [dx, dy] = [x - drag.at[0], y - drag.at[1]];
      if (Math.abs(dx) + Math.abs(dy) < 4 && !drag.moved) return;
      drag.moved = true;
      const shift = (dx / picture.plot) * (drag.until - drag.from);
      picture.scroll = Math.max(0, Math.round(drag.scroll - dy / 16));
      this.show(drag.from - shift, drag.until - shift);
    });
    canvas.addEventListener("pointerup", (event) => {
      const was = drag;
      drag = null;
      if (was?.moved) return;
      this.#click(picture, ...place(event));
    });
    canvas.addEventListener("dblclick", (event) =>
      this.zoom(0.25, picture.time(place(event)[0])));
    canvas.addEventListener("pointerleave", () => (this.hover.textContent = ""));
    canvas.addEventListener("wheel", (event) => {
      // Without the focus it is the page that scrolls.
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      const [x] = place(event);
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.pan((event.deltaX || event.deltaY) / 1000);
      } else if (x < LEFT_EDGE) {
        picture.scroll = Math.max(0, picture.scroll + Math.sign(event.deltaY) * 3);
        this.draw();
      } else {
        this.zoom(Math.exp(event.deltaY / 400), picture.time(x));
      }
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(picture, event));
  }

  #key(picture, event) {
    const { timeline, selected, tasks } = picture;
    const step = (by) => {
      const row = Math.max(0, tasks.indexOf(selected?.task) + (selected ? by : 0));
      const task = tasks[Math.min(row, tasks.length - 1)];
      const wait = task == null ? -1 : timeline.waitAt(task, selected?.from ?? this.view.from);
      if (wait >= 0) this.select(picture, task, wait);
    };
    const wait = (by) => {
      if (!selected) return step(0);
      const waits = timeline.waitsOf(selected.task);
      const next = waits[waits.indexOf(selected.wait) + by];
      if (next != null) this.select(picture, selected.task, next);
    };
    const keys = {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
      ArrowDown: () => step(1), ArrowUp: () => step(-1), n: () => wait(1), p: () => wait(-1),
      0: () => this.show(0, this.length),
      Enter: () => (selected ? this.panel.focus() : step(0)),
    };
    const run = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!run || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    run();
  }

  #click(picture, x, y) {
    const found = picture.at(x, y);
    if (!found) return;
    const { onCpu, ofTask } = picture.timeline;
    if (found.task != null && found.part >= 0 && ofTask.cpu[found.part] < 0) {
      this.select(picture, found.task, found.part);
    } else if (found.cpu != null && found.part >= 0) {
      // What a CPU runs leads to the wait before it.
      const task = onCpu.task[found.part];
      const waits = picture.timeline.waitsOf(task);
      const wait = waits.findLast((at) => ofTask.start[at] < found.time) ?? waits[0];
      if (wait != null) this.select(picture, task, wait);
    }
  }

  #hover(picture, x, y) {
    const found = picture.at(x, y);
    this.hover.textContent = found ? this.#describe(picture.timeline, found) : "";
  }

  #describe(timeline, { task, cpu, time, part }) {
    const { onCpu, ofTask } = timeline;
    const when = `${timeline.info.label}, ${span(Math.round(time))}: `;
    const lasts = (rows) => `${span(rows.end[part] - rows.start[part])} from `
      + span(rows.start[part]);
    if (cpu != null) {
      if (part < 0) return `${when}CPU ${cpu} idle`;
      const left = LEFT[onCpu.left[part]];
      return `${when}CPU ${cpu} runs ${timeline.fullName(onCpu.task[part])}, ${lasts(onCpu)}`
        + (left ? `, then ${left}` : "");
    }
    if (task == null) return when.slice(0, -2);
    const who = timeline.fullName(task);
    if (part < 0) return `${when}${who} blocked, or not there`;
    if (ofTask.cpu[part] < 0) return `${when}${who} waits ${lasts(ofTask)}; click to read why`;
    return `${when}${who} runs on CPU ${ofTask.cpu[part]}, ${lasts(ofTask)}`;
  }
}
