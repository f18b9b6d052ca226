/**
 * Takes a picture of every screen of the console, light and dark, on a desktop and on a phone, into `console/screenshots/` (ignored),
 * against a real `kit start` with a model that follows a script: `npm run console:screenshots`.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startDemo } from "../tests/browser/console/demo-project.ts";
import { openBrowser } from "../tests/browser/open-browser.ts";
import { build } from "./build.ts";
import { repositoryRoot } from "./files.ts";

const sizes = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

await build({ check: false });
await using demo = await startDemo();
const prompt = (id: string, message: string) => demo.send(`/agents/mender/${id}`, { message });
await prompt("ticket-1043", "The total of order 1043 is one cent short. Please mend it.");
await prompt("odd-text", "hostile").catch(() => undefined);
await demo.send("/agents/mender/refund-1043/dispatch", { input: "Please refund order 1043." });
for (const orders of [3, 12]) await demo.send("/workflows/nightly?wait=result", { orders });
const waiting = (await demo.send("/workflows/release", {})) as { readonly run_id: string };
const broken = (await demo.send("/workflows/broken", {})) as { readonly run_id: string };
const { dispatches } = (await demo.send("/dispatches")) as {
  readonly dispatches: readonly { readonly dispatch_id: string }[];
};
await delay(1_500);

const screens: Readonly<Record<string, string>> = {
  home: "/",
  agents: "/console/agents",
  agent: "/console/agents/mender",
  conversation: "/console/agents/mender/ticket-1043",
  approval: "/console/agents/mender/refund-1043",
  hostile: "/console/agents/mender/odd-text",
  empty: "/console/agents/mender/new-one",
  trace: "/console/agents/mender/ticket-1043/trace",
  approvals: "/console/approvals",
  runs: "/console/runs",
  run: `/console/runs/${broken.run_id}`,
  "run-waiting": `/console/runs/${waiting.run_id}`,
  dispatches: "/console/dispatches",
  dispatch: `/console/dispatches/${dispatches[0]?.dispatch_id}`,
  server: "/console/server",
};

const folder = join(repositoryRoot, "console/screenshots");
await mkdir(folder, { recursive: true });
const browser = await openBrowser();
const requested = process.argv.slice(2);
for (const [size, viewport] of Object.entries(sizes)) {
  for (const colorScheme of ["light", "dark"] as const) {
    const context = await browser.newContext({ locale: "en-US", viewport, colorScheme });
    const page = await context.newPage();
    for (const [name, path] of Object.entries(screens)) {
      if (requested.length > 0 && !requested.includes(name)) continue;
      await page.goto(`${demo.kit.url}${path}`);
      await delay(700);
      await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`) });
    }
    await context.close();
  }
}
await browser.close();
console.log(`Pictures of ${Object.keys(screens).length} screens are in console/screenshots.`);
