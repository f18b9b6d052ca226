/**
 * Takes a picture of every screen of the console, light and dark, on a desktop, a phone and a wide screen, into `console/screenshots/`
 * (ignored by Git), against a real `kit start` with a scripted model: `npm run console:screenshots`. Names of screens after `--`
 * select single screens; `-- --docs` makes the images of the documentation, in `docs/images/`.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startDemo } from "../tests/browser/console/demo-project.ts";
import { openBrowser } from "../tests/browser/open-browser.ts";
import { build } from "./build.ts";
import { repositoryRoot } from "./files.ts";

const sizes = {
  desktop: { width: 1440, height: 900 },
  phone: { width: 390, height: 844 },
  wide: { width: 2560, height: 1300 },
};
/** The images of the documentation: their screens and colours. */
const images = {
  conversation: "light",
  trace: "dark",
  approvals: "light",
  "run-waiting": "dark",
  criteria: "light",
} as const;
const maxImageBytes = 150_000;

await build({ declarations: false });
await using demo = await startDemo();
const prompt = (id: string, message: string) => demo.send(`/agents/mender/${id}`, { message });
await prompt("ticket-1043", "The total of order 1043 is one cent short. Please mend it.");
await prompt("odd-text", "hostile").catch(() => undefined);
await demo.send("/agents/mender/refund-1043/dispatch", { input: "Please refund order 1043." });
for (const orders of [3, 12]) await demo.send("/workflows/nightly?wait=result", { orders });
const waiting = (await demo.send("/workflows/release", {})) as { readonly run_id: string };
const broken = (await demo.send("/workflows/broken", {})) as { readonly run_id: string };
await demo.send("/api/specs/results", {
  report:
    '<testsuite><testcase classname="src/cart/total.test.ts" name="adds the cents of its lines (cart#1.1)"/><testcase classname="src/cart/total.test.ts" name="keeps the cart of a declined card (checkout#1.1)"><failure message="expected 2 lines, found 0"/></testcase></testsuite>',
});
const { operations } = (await demo.send("/agents/mender/ticket-1043/operations")) as {
  readonly operations: readonly { readonly operation_id: string; readonly first_index: number }[];
};
const { events } = (await demo.send(
  `/agents/mender/ticket-1043/operations/${operations[0]?.operation_id}/events?types=turn_request`,
)) as { readonly events: readonly { readonly turn_id: string }[] };
const forked = (await demo.send(`/agents/mender/ticket-1043/turns/${events[0]?.turn_id}/fork`, {
  session: "without-rules",
  without: ["AGENTS.md"],
})) as { readonly operation_id: string };
const { specs } = (await demo.send("/api/specs?limit=1&spec_type=requirement")) as {
  readonly specs: readonly { readonly id: string }[];
};
const { features } = (await demo.send("/api/specs/features?limit=1&framework=fw_a")) as {
  readonly features: readonly { readonly feature: string }[];
};
const { guidelines } = (await demo.send("/api/guidelines?limit=1")) as {
  readonly guidelines: readonly { readonly id: string }[];
};
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
  compare: `/console/agents/mender/ticket-1043/compare?left=${operations[0]?.operation_id}&right=${forked.operation_id}`,
  approvals: "/console/approvals",
  runs: "/console/runs",
  run: `/console/runs/${broken.run_id}`,
  "run-waiting": `/console/runs/${waiting.run_id}`,
  dispatches: "/console/dispatches",
  dispatch: `/console/dispatches/${dispatches[0]?.dispatch_id}`,
  schedules: "/console/schedules",
  deliveries: "/console/deliveries",
  specs: "/console/specs",
  spec: `/console/specs/${encodeURIComponent(specs[0]?.id ?? "")}`,
  criteria: "/console/specs/criteria",
  impact: "/console/specs/impact?files=src/cart/total.ts",
  feature: `/console/specs?framework=fw_a&feature=${encodeURIComponent(features[0]?.feature ?? "")}`,
  "impact-since": "/console/specs/impact?since=HEAD",
  problems: "/console/specs/problems",
  stale: "/console/specs/stale",
  file: "/console/files?path=src/cart/total.ts&line=2",
  guidelines: "/console/guidelines",
  guideline: `/console/guidelines/${guidelines[0]?.id}`,
  explain: "/console/guidelines/explain?file=src/cart/total.ts",
  lint: "/console/guidelines/lint",
  sync: "/console/guidelines/sync",
  cluster: "/console/cluster",
  server: "/console/server",
};

/** Runs in the page. */
const toWebp = (picture: string): string => `(async () => {
  const image = new Image();
  image.src = "data:image/png;base64,${picture}";
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.82);
})()`;

const folder = join(repositoryRoot, "console/screenshots");
const chosen = process.argv.slice(2);
const browser = await openBrowser();
if (chosen.includes("--docs")) await makeImages(join(repositoryRoot, "docs/images"));
else await makeAll();
await browser.close();

async function makeAll(): Promise<void> {
  await mkdir(folder, { recursive: true });
  const pictured = Object.entries(screens).filter(([name]) => chosen.length === 0 || chosen.includes(name));
  for (const [size, viewport] of Object.entries(sizes)) {
    for (const colorScheme of ["light", "dark"] as const) {
      const context = await browser.newContext({ locale: "en-US", viewport, colorScheme });
      const page = await context.newPage();
      for (const [name, path] of pictured) {
        await page.goto(`${demo.kit.url}${path}`);
        await delay(900);
        // Graphs need more time on a busy machine.
        await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
        await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`) });
      }
      await context.close();
    }
  }
  console.log(`Pictures of ${pictured.length} screens are in console/screenshots.`);
}

/** Converts an image to WebP in the browser. */
async function makeImages(target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  for (const [name, colorScheme] of Object.entries(images)) {
    const viewport = { width: 1280, height: 800 };
    const context = await browser.newContext({ locale: "en-US", viewport, colorScheme, bypassCSP: true });
    const page = await context.newPage();
    await page.goto(`${demo.kit.url}${screens[name]}`);
    await delay(1_500);
    const picture = (await page.screenshot()).toString("base64");
    const coded = String(await page.evaluate(toWebp(picture)));
    const image = Buffer.from(coded.slice(coded.indexOf(",") + 1), "base64");
    if (image.length > maxImageBytes) throw new Error(`The image of ${name} has ${image.length} bytes.`);
    await writeFile(join(target, `console-${name}.webp`), image);
    console.log(`docs/images/console-${name}.webp: ${Math.round(image.length / 1_000)} kB`);
    await context.close();
  }
}
