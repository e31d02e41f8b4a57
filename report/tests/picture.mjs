// The pictures of a report in the README: an answer, and a timeline. The text that is in them stands
// beside them, so that a test can tell whether they are what a report looks like today.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { look } from "./browser.mjs";
import { made, ROOT } from "./made.mjs";

const FILE = "experiments/quickstart.toml";
const PICTURES = join(ROOT, "docs/pictures");
export const TEXT = join(PICTURES, "report.txt");

/** What is not in the pictures. */
const HIDDEN = "nav, footer, main > section:not(#answer, #timeline), #timeline .controls, " +
  "#timeline .hint, #timeline .panel, #timeline .legend { display: none }";

/** Calls `use` with what is in the pictures, and returns its text. */
export async function shown(use = () => {}) {
  const options = { viewport: { width: 760, height: 900 }, colorScheme: "light" };
  return look(made(FILE).page, options, async (page) => {
    await page.selectOption("#answer select", { label: "synthetic mix, tasks of editor" });
    await page.getByRole("link", { name: "Timeline" }).click();
    await page.getByLabel("policy", { exact: true }).selectOption("rr");
    await page.evaluate(() => report.timelines.opening);
    await page.getByLabel("beside", { exact: true }).selectOption("eevdf");
    await page.evaluate(() => report.timelines.opening);
    await page.getByLabel("until", { exact: true }).fill("80ms");
    await page.getByLabel("until", { exact: true }).press("Enter");
    await page.addStyleTag({ content: HIDDEN });
    const [answer, timeline] = [page.locator("#answer"), page.locator("#timeline")];
    await use(answer, timeline);
    const texts = [await answer.innerText(), await timeline.innerText()];
    return `${texts.join("\n").replaceAll(/\n{2,}/g, "\n").trim()}\n`;
  });
}

async function write() {
  const text = await shown(async (answer, timeline) => {
    await answer.screenshot({ path: join(PICTURES, "answer.png") });
    await timeline.screenshot({ path: join(PICTURES, "timeline.png") });
  });
  writeFileSync(TEXT, text);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await write();
