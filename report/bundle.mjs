// What the builds of both pages share: scripts and styles as texts, and the licences of what is in
// them.

import { build } from "esbuild";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const PERMISSIVE = ["MIT", "ISC", "BSD-3-Clause", "BSD-2-Clause", "Apache-2.0", "0BSD", "Unlicense"];

/** A script as one text, with the files that it is made of. */
export async function script(entry) {
  const built = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "iife",
    target: "chrome110,firefox115,safari16.4".split(","),
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    write: false,
  });
  return { text: built.outputFiles[0].text.trim(), inputs: Object.keys(built.metafile.inputs) };
}

/** A style as one text. */
export async function style(entry) {
  const built = await build({ absWorkingDir: here, entryPoints: [entry], minify: true,
    write: false });
  return built.outputFiles[0].text.trim();
}

/** A script that does not end the element that it is in. */
export const inElement = (text) => text.replaceAll("</script", "<\\/script");

/** The packages that these files are of, each with its licence. */
function packages(inputs) {
  const found = new Map();
  for (const input of inputs) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (!name || found.has(name)) continue;
    const folder = join(here, "node_modules", name);
    const { license, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    if (!PERMISSIVE.includes(license)) {
      throw new Error(`${name} ${version}: its licence is ${license}, which is not in bundle.mjs`);
    }
    const file = readdirSync(folder).find((file) => /^(licen[cs]e|copying)/i.test(file));
    if (!file) throw new Error(`${name} ${version}: it has no file with its licence`);
    found.set(name, { version, license, text: readFileSync(join(folder, file), "utf8").trim() });
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Names of packages, and each text once. */
export function notices(inputs, more = []) {
  const texts = new Map();
  const own = packages(inputs).map(([name, { version, license, text }]) =>
    ({ name: `${name} ${version} (${license})`, text }));
  for (const { name, text } of [...own, ...more]) {
    if (!texts.has(text)) texts.set(text, []);
    texts.get(text).push(name);
  }
  return [...texts].map(([text, names]) => `${names.join("\n")}\n\n${text}`)
    .join(`\n\n${"-".repeat(78)}\n\n`).replaceAll("\r\n", "\n").replaceAll("</", "<\\/");
}

/** A page with each part at its place. */
export function filled(path, parts) {
  let page = readFileSync(join(here, path), "utf8");
  for (const [place, text] of Object.entries(parts)) {
    if (page.split(place).length !== 2) throw new Error(`${path}: not one ${place}`);
    page = page.replace(place, () => text);
  }
  return page;
}

/** A file, or an error that says how to make it. */
export function made(path, command) {
  if (!existsSync(path)) throw new Error(`${path} is not there; type: ${command}`);
  return readFileSync(path);
}
