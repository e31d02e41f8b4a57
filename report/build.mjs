// Builds the page that comes with the program: one file, without data. `--check` compares it with
// the one that is there.

import { build } from "esbuild";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const OUT = join(here, "../crates/lab/report/page.html");
const PERMISSIVE = ["MIT", "ISC", "BSD-3-Clause", "BSD-2-Clause", "Apache-2.0", "0BSD", "Unlicense"];
const MOST = 2_000_000;

const script = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.js"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "chrome110,firefox115,safari16.4".split(","),
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  write: false,
});
const style = await build({
  absWorkingDir: here, entryPoints: ["src/style.css"], minify: true, write: false,
});

/** The packages that are in the bundle, each with its licence. */
function packages() {
  const found = new Map();
  for (const input of Object.keys(script.metafile.inputs)) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (!name || found.has(name)) continue;
    const folder = join(here, "node_modules", name);
    const { license, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    if (!PERMISSIVE.includes(license)) {
      throw new Error(`${name} ${version}: its licence is ${license}, which is not in build.mjs`);
    }
    const file = readdirSync(folder).find((file) => /^(licen[cs]e|copying)/i.test(file));
    if (!file) throw new Error(`${name} ${version}: it has no file with its licence`);
    found.set(name, { version, license, text: readFileSync(join(folder, file), "utf8").trim() });
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Names of packages, and each text once. */
function notices() {
  const texts = new Map();
  for (const [name, { version, license, text }] of packages()) {
    if (!texts.has(text)) texts.set(text, []);
    texts.get(text).push(`${name} ${version} (${license})`);
  }
  return [...texts].map(([text, names]) => `${names.join("\n")}\n\n${text}`)
    .join(`\n\n${"-".repeat(78)}\n\n`).replaceAll("\r\n", "\n").replaceAll("</", "<\\/");
}

const parts = {
  "/*style*/": style.outputFiles[0].text.trim(),
  "/*notices*/": notices(),
  // Neither ends the element that it is in.
  "/*script*/": script.outputFiles[0].text.trim().replaceAll("</script", "<\\/script"),
};
let page = readFileSync(join(here, "src/page.html"), "utf8");
for (const [place, text] of Object.entries(parts)) page = page.replace(place, () => text);
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
