// A text with line numbers, in which a line can be marked.

import { h } from "../dom.js";

export class Editor {
  constructor({ label, changed, run }) {
    this.text = h("textarea", { id: "toml", spellcheck: "false", autocapitalize: "off",
      autocomplete: "off", wrap: "off", "aria-label": label, "aria-describedby": "toml-hint" });
    this.numbers = h("div", { class: "numbers", "aria-hidden": "true" });
    this.element = h("div", { class: "editor" }, this.numbers, this.text);
    this.marked = null;
    this.leaving = false;
    this.text.addEventListener("input", () => {
      this.mark(null);
      changed();
    });
    this.text.addEventListener("scroll", () => (this.numbers.scrollTop = this.text.scrollTop));
    this.text.addEventListener("keydown", (event) => this.#key(event, run));
    this.#number();
  }

  get value() {
    return this.text.value;
  }

  set value(text) {
    this.text.value = text;
    this.mark(null);
  }

  /** Marks a line, counted from 1; null: none. */
  mark(line) {
    this.marked = line;
    this.#number();
    this.text.setAttribute("aria-invalid", line != null);
  }

  /** Puts the cursor at a place, counted from 1. */
  go(line, column) {
    const lines = this.text.value.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    // Columns count characters, not the halves of some.
    const at = before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
    this.text.focus();
    this.text.setSelectionRange(at, at);
    const height = this.text.scrollHeight / Math.max(lines.length, 1);
    this.text.scrollTop = Math.max(0, (line - 5) * height);
  }

  #number() {
    const count = this.text.value.split("\n").length;
    this.numbers.replaceChildren(...Array.from({ length: count }, (_, at) =>
      h("span", { class: at + 1 === this.marked ? "marked" : null }, String(at + 1))));
    this.numbers.scrollTop = this.text.scrollTop;
  }

  /** Tab indents; after Escape it leaves, so that keys alone get out. */
  #key(event, run) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
      return;
    }
    if (event.key === "Tab" && !event.shiftKey && !this.leaving && !event.ctrlKey) {
      event.preventDefault();
      // Unlike other ways it can be undone.
      document.execCommand("insertText", false, "    ");
    }
    this.leaving = event.key === "Escape";
  }
}
