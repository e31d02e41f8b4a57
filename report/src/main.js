// The page of a report: the document that the program has put into it.

import { h } from "./dom.js";
import { Page } from "./page.js";
import { document_, unpack } from "./unpack.js";

document_().then((data) => {
  globalThis.report = new Page(data, { app: document.getElementById("app"), unpack });
}).catch((error) => {
  document.getElementById("app").replaceChildren(h("p", { class: "loading", role: "alert" },
    `This report cannot be shown: ${error.message}`));
  throw error;
});
