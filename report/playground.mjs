// Builds the playground, one file with the simulator in it: `node playground.mjs LZMA OUT`.

import { writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { crates, filled, inElement, made, notices, script, style } from "./bundle.mjs";

/** What a page may have as servers send it, which is compressed. */
const MOST = 1_500_000;

const [simulator, out] = process.argv.slice(2);
if (!out) throw new Error("node playground.mjs LZMA OUT, as `cargo xtask playground` calls it");
const program = made(simulator, "cargo xtask playground");
const page = await script("src/playground/main.js");
const worker = await script("src/playground/worker.js");
const text = filled("src/playground/page.html", {
  "/*style*/": await style("src/style.css") + await style("src/playground/style.css"),
  "/*notices*/": notices([...page.inputs, ...worker.inputs],
    crates("anysched-playground", "wasm32-unknown-unknown")),
  "/*worker*/": JSON.stringify(worker.text).replaceAll("</", "<\\/"),
  "/*simulator*/": program.toString("base64"),
  "/*script*/": inElement(page.text),
});
const size = gzipSync(text, { level: 9 }).length;
console.log(`the simulator has ${program.length} bytes, the playground ${text.length}, and ${size} `
  + "compressed");
if (size > MOST) throw new Error(`the playground has ${size} bytes compressed; ${MOST} are the most`);
writeFileSync(out, text);
