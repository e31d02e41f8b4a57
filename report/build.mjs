// Builds the page that comes with the program: one file, without data. `--check` compares it with
// the one that is there.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { filled, inElement, notices, script, style } from "./bundle.mjs";

const OUT = join(dirname(fileURLToPath(import.meta.url)), "../crates/lab/report/page.html");
const MOST = 2_000_000;

const { text, inputs } = await script("src/main.js");
const page = filled("src/page.html", {
  "/*style*/": await style("src/style.css"),
  "/*notices*/": notices(inputs),
  "/*script*/": inElement(text),
});
for (const place of ["<!--data-->", "<!--more-->"]) {
  if (page.split(place).length !== 2) throw new Error(`not one ${place}`);
}
const size = Buffer.byteLength(page);
if (size > MOST) throw new Error(`the page has ${size} bytes; ${MOST} are the most`);

if (process.argv.includes("--check")) {
  if (!existsSync(OUT) || readFileSync(OUT, "utf8") !== page) {
    console.error(`${OUT} is not what its sources give; type: cargo xtask report`);
    process.exit(1);
  }
} else {
  writeFileSync(OUT, page);
}
console.log(`the page has ${size} bytes`);
