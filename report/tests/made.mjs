// Reports and results, made by the program: `ANYSCHED` is its path, `REPORTS` where they go.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
/** Where builds go. */
export const TARGET = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");
const PROGRAM = process.env.ANYSCHED ?? join(TARGET, "debug/anysched");
export const FOLDER = process.env.REPORTS ?? join(TARGET, "report");

/** What the program prints. */
export function anysched(...args) {
  return execFileSync(PROGRAM, args, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "ignore"] });
}

/** The report of an experiment, and its results as JSON from a run without one. */
export function made(file, ...args) {
  mkdirSync(FOLDER, { recursive: true });
  const name = file.split("/").at(-1).replace(".toml", "");
  const page = join(FOLDER, `${name}.html`);
  anysched("run", file, ...args, "--report", page);
  return { page, json: () => JSON.parse(anysched("run", file, ...args, "--format", "json")) };
}

/** The text of an experiment as a file. */
export function written(name, text) {
  mkdirSync(FOLDER, { recursive: true });
  const path = join(FOLDER, name);
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
  return path;
}

/** Where pictures go, to be looked at. */
export function picture(name) {
  mkdirSync(join(FOLDER, "pictures"), { recursive: true });
  return join(FOLDER, "pictures", `${name}.png`);
}
