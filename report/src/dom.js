// Elements.

/** An element: `h("a", { href: "#x" }, "text", child)`. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}

let numbers = 0;

/** A choice with a label; `options` are pairs of value and text. */
export function choice(label, options, chosen, change) {
  const id = `choice-${numbers++}`;
  const select = h("select", { id }, options.map(([value, text]) =>
    h("option", { value, selected: String(value) === String(chosen) }, text)));
  select.addEventListener("change", () => change(select.value));
  return h("span", { class: "choice" }, h("label", { for: id }, label), select);
}

/** A switch with a label. */
export function toggle(label, on, change) {
  const id = `choice-${numbers++}`;
  const box = h("input", { type: "checkbox", id, checked: on });
  box.addEventListener("change", () => change(box.checked));
  return h("span", { class: "choice" }, box, h("label", { for: id }, label));
}

/** Text to be copied, with a button that does it. */
export function code(text) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy: ${text}` },
    "copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(button.previousSibling);
      button.textContent = "selected";
    }
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  return h("span", { class: "command" }, h("code", {}, text), button);
}
