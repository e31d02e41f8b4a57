// What axe finds in a page.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe calls serious or critical. */
export async function serious(page) {
  // The page's own rule lets no script in but what is there: axe comes by the protocol.
  await page.evaluate(AXE);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => [id, nodes.slice(0, 3).map((node) => node.html.slice(0, 160))]);
}
