/**
 * Checks each public entry against a budget: which packages its import loads, and how much code of kit.
 *
 * A package that the check reports was imported by some module below the entry, perhaps by mistake. If the entry needs
 * it, raise the budget, so that a reviewer sees the change.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { minifySync, parseSync } from "@swc/core";
import { readEntries } from "./entries.ts";

interface Budget {
  readonly packages: readonly string[];
  readonly kilobytes: number;
  /** The size that a browser loads: minified and compressed. */
  readonly download?: number;
}

const budgets: Readonly<Record<string, Budget>> = {
  kit: { packages: [], kilobytes: 260 },
  "kit/agents": { packages: [], kilobytes: 1 },
  "kit/workflows": { packages: [], kilobytes: 1 },
  "kit/app": { packages: [], kilobytes: 2 },
  "kit/contracts": { packages: [], kilobytes: 1 },
  "kit/protocol": { packages: [], kilobytes: 20 },
  "kit/specs": { packages: ["yaml"], kilobytes: 300 },
  "kit/guidelines": { packages: ["@noble/hashes", "yaml"], kilobytes: 162 },
  "kit/project": { packages: [], kilobytes: 275 },
  "kit/client": { packages: [], kilobytes: 114, download: 19 },
  "kit/server": {
    packages: ["@hono/node-server", "hono", "ws", "zod"],
    kilobytes: 856,
  },
  "kit/engines/restate": { packages: ["croner"], kilobytes: 425 },
  "kit/mcp": { packages: ["@modelcontextprotocol/server", "yaml", "zod"], kilobytes: 560 },
  "kit/cloudflare": { packages: [], kilobytes: 12 },
  "kit/python": { packages: [], kilobytes: 80 },
  "kit/otel": { packages: ["@opentelemetry/api"], kilobytes: 52 },
  "kit/sandboxes/daytona": { packages: [], kilobytes: 6 },
  "kit/sandboxes/e2b": { packages: [], kilobytes: 6 },
  "kit/sandboxes/modal": { packages: [], kilobytes: 6 },
  "kit/sandboxes/runloop": { packages: [], kilobytes: 6 },
  "kit/backends/google-adk": { packages: [], kilobytes: 28 },
  "kit/backends/graph": { packages: [], kilobytes: 35 },
  "kit/backends/openai-agents": { packages: [], kilobytes: 21 },
  "kit/sandboxes/local": { packages: [], kilobytes: 4 },
  "kit/sandboxes/virtual": { packages: [], kilobytes: 4 },
  "kit/stores/memory": { packages: [], kilobytes: 35 },
  "kit/stores/postgres": { packages: [], kilobytes: 165 },
  "kit/stores/sqlite": { packages: [], kilobytes: 164 },
  "kit/webhooks": { packages: [], kilobytes: 40 },
  "kit/testing": { packages: [], kilobytes: 815 },
};

/** Modules that Node 20 lacks: kit loads them by `process.getBuiltinModule` when it needs them. */
const newInNode: ReadonlySet<string> = new Set(["node:sqlite"]);

for (const entry of await readEntries()) {
  const { packages, texts } = readGraph(entry.code);
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const kilobytes = Math.ceil(bytes / 1000);
  const budget = budgets[entry.name];
  const extra = packages.filter((name) => !budget?.packages.includes(name));
  console.log(`${entry.name.padEnd(16)} ${String(kilobytes).padStart(4)} kB  ${packages.join(", ")}`);
  if (budget === undefined) fail(`${entry.name} has no budget in scripts/check-entries.ts.`);
  else if (extra.length > 0) fail(`${entry.name} now loads ${extra.join(", ")}.`);
  else if (kilobytes > budget.kilobytes) {
    fail(`${entry.name} loads ${kilobytes} kB of kit; its budget is ${budget.kilobytes} kB.`);
  } else if (budget.download !== undefined) checkDownload(entry.name, texts, budget.download);
}

function checkDownload(name: string, texts: readonly string[], budget: number): void {
  const minified = texts.map((text) => minifySync(text, { module: true, compress: true, mangle: true }).code);
  const kilobytes = Math.ceil(gzipSync(minified.join("\n")).length / 100) / 10;
  console.log(`${"".padEnd(16)} ${String(kilobytes).padStart(4)} kB minified and compressed`);
  if (kilobytes > budget) fail(`${name} is a download of ${kilobytes} kB; its budget is ${budget} kB.`);
}

function fail(message: string): void {
  console.error(message);
  process.exitCode = 1;
}

/** Follows static imports, as a process that imports the entry does. */
function readGraph(entryFile: string): { packages: readonly string[]; texts: readonly string[] } {
  const packages = new Set<string>();
  const files = new Set([entryFile]);
  const texts: string[] = [];
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    texts.push(text);
    for (const specifier of staticImports(text)) {
      if (specifier.startsWith(".")) files.add(join(dirname(file), specifier));
      else if (newInNode.has(specifier))
        fail(`${entryFile} imports ${specifier}, which an older Node cannot load to be told so.`);
      else if (!specifier.startsWith("node:")) packages.add(packageOf(specifier));
    }
  }
  return { packages: [...packages].sort(), texts };
}

function staticImports(text: string): readonly string[] {
  return parseSync(text, { syntax: "ecmascript", target: "es2024" }).body.flatMap((item) =>
    "source" in item && item.source ? [item.source.value] : [],
  );
}

function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}
