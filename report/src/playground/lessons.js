// Lessons: a few sentences, and questions about a run.

import { h } from "../dom.js";
import { isRight } from "./answers.js";
import LESSONS from "./lessons.json";

export { LESSONS };

/** A lesson; `run()` gives the experiment's rows, and makes the runs first where that is needed. */
export function lesson({ title, text, questions }, run, show) {
  return h("section", { class: "lesson", "aria-labelledby": "lesson-title" },
    h("h2", { id: "lesson-title" }, title), text.map((words) => h("p", {}, words)),
    h("ol", { class: "questions" }, questions.map((question, number) =>
      h("li", {}, form(question, number, run, show)))));
}

function form(question, number, run, show) {
  const name = `question-${number}`;
  const told = h("p", { class: "told", role: "status" });
  const field = question.number
    ? h("span", { class: "choice" }, h("input", { type: "text", inputmode: "decimal", id: name,
      size: 8, autocomplete: "off", "aria-label": `${question.ask} In ${question.unit}` }),
    question.unit)
    : h("span", { class: "options" }, question.options.map(([option], place) =>
      h("label", {}, h("input", { type: "radio", name, value: place }), option)));
  const given = () => (question.number ? field.querySelector("input").value.trim()
    : field.querySelector("input:checked")?.value ?? "");
  const check = async (event) => {
    event.preventDefault();
    if (given() === "") {
      told.className = "told";
      told.textContent = question.number ? "Type a number first." : "Choose one first.";
      return;
    }
    told.textContent = "Running …";
    try {
      const experiment = await run();
      const right = isRight(question, given(), experiment);
      told.className = `told ${right ? "right" : "wrong"}`;
      told.replaceChildren(h("strong", {}, right ? "Right. " : "Not so. "),
        right ? question.right : question.wrong, " ", h("button", { type: "button", class: "link",
          onclick: () => show(question.see) },
        question.see === "gantt" ? "See the Gantt chart" : "See the table"));
    } catch (error) {
      told.className = "told wrong";
      told.textContent = `It cannot be checked: ${error.message}`;
    }
  };
  return h("form", { onsubmit: check }, question.number
    ? h("label", { class: "ask", for: name }, question.ask)
    : h("span", { class: "ask", id: `${name}-ask` }, question.ask),
  h("div", { class: "answer", role: question.number ? null : "group",
    "aria-labelledby": question.number ? null : `${name}-ask` }, field,
  h("button", { type: "submit" }, "Check")), told);
}
