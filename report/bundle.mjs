// What the builds of both pages share: scripts and styles as texts, and the licences of what is in
// them.

import { execFileSync } from "node:child_process";
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

/** The crates that a crate is compiled with for a target, each with its licence. */
export function crates(root, target) {
  const said = execFileSync(process.env.CARGO ?? "cargo", ["metadata", "--format-version", "1",
    "--filter-platform", target], { cwd: here, maxBuffer: 1 << 28 });
  const { packages: all, resolve } = JSON.parse(said);
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const known = new Map(all.map((one) => [one.id, one]));
  const isCode = (id) => !known.get(id).targets.some(({ kind }) => kind.includes("proc-macro"));
  const found = new Set();
  const walk = (id) => {
    if (found.has(id) || !isCode(id)) return;
    found.add(id);
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) {
      if (kinds.some(({ kind }) => kind === null)) walk(pkg);
    }
  };
  walk(all.find(({ name }) => name === root).id);
  const others = [...found].map((id) => known.get(id)).filter(({ source }) => source);
  return others.sort((a, b) => (a.name < b.name ? -1 : 1)).map((one) => {
    const folder = dirname(one.manifest_path);
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|unlicense)/i.test(file));
    // Of several that may be chosen, the shortest to say.
    const file = files.find((file) => /mit/i.test(file)) ?? files[0];
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : one.license;
    return { name: `${one.name} ${one.version} (${one.license})`, text };
  });
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
