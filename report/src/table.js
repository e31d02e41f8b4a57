// Tables that sort.

import { h } from "./dom.js";

/**
 * A table. A column has `head`, `title`, `number`, and `sort`: what a line is sorted by. A line has
 * a cell for each: `{ content, sort, class, title }`.
 */
export function table({ caption, columns, lines, sorted, onsort }) {
  const body = h("tbody");
  const heads = [];
  let [by, up] = sorted ?? [null, true];
  const fill = () => {
    const order = lines.map((line, index) => ({ line, index }));
    if (by != null) {
      const key = ({ line }) => line[by].sort;
      order.sort((a, b) => compare(key(a), key(b), up) || a.index - b.index);
    }
    body.replaceChildren(...order.map(({ line }) => h("tr", {}, line.map((cell, index) =>
      h(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: cell.class,
        title: cell.title, "data-value": cell.value }, cell.content)))));
    heads.forEach((head, index) => {
      if (index === by) head.setAttribute("aria-sort", up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  };
  columns.forEach((column, index) => {
    const button = h("button", { type: "button", title: column.title, onclick: () => {
      [by, up] = [index, by === index ? !up : true];
      fill();
      onsort?.([by, up]);
    } }, column.head, column.unit ? h("small", {}, ` ${column.unit}`) : null,
    h("span", { class: "arrow", "aria-hidden": "true" }));
    heads.push(h("th", { scope: "col", class: column.number ? "number" : null }, button));
  });
  fill();
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body));
}

/** What is not known is last, whichever way. */
function compare(a, b, up) {
  if (a == null || b == null) return (a == null) - (b == null);
  const order = typeof a === "string" ? a.localeCompare(b) : a - b;
  return up ? order : -order;
}
