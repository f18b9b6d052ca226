import type { CommandEntry } from "./command.ts";

/** The commands of `kit specs`. */
export const specsCommands: readonly CommandEntry[] = [
  {
    name: "list",
    summary: "List spec blocks",
    load: async () => (await import("./commands/specs.ts")).specsList,
  },
  {
    name: "show",
    summary: "Show one spec block with its links and its source",
    load: async () => (await import("./commands/specs.ts")).specsShow,
  },
  {
    name: "query",
    summary: "Search the text of all specs, best match first",
    load: async () => (await import("./commands/specs.ts")).specsQuery,
  },
  {
    name: "validate",
    summary: "Check all specs: parse errors, required fields, ids, references",
    load: async () => (await import("./commands/validate-and-lint.ts")).specsValidate,
  },
  {
    name: "impact",
    summary: "Show which specs, tests and files a change affects",
    load: async () => (await import("./commands/specs-impact.ts")).specsImpact,
  },
  {
    name: "graph",
    summary: "Print how specs, tests and files are related",
    load: async () => (await import("./commands/specs-graph.ts")).specsGraph,
  },
  {
    name: "export",
    summary: "Write all specs as JSON, JSON Lines or in a framework's own files",
    load: async () => (await import("./commands/specs-export.ts")).specsExport,
  },
  {
    name: "coverage",
    summary: "Show which acceptance criteria have a test that names them",
    load: async () => (await import("./commands/specs-coverage.ts")).specsCoverage,
  },
  {
    name: "results",
    summary: "Store results of tests: JUnit XML, or the JSON of Vitest or Jest",
    load: async () => (await import("./commands/specs-results.ts")).specsResults,
  },
  {
    name: "verify",
    summary: "Judge a change by its tests: does it do what the specs say?",
    load: async () => (await import("./commands/specs-verify.ts")).specsVerify,
  },
  {
    name: "stale",
    summary: "List specs whose code changed after them",
    load: async () => (await import("./commands/specs-stale.ts")).specsStale,
  },
  {
    name: "overlap",
    summary: "List what two open changes or branches change at once",
    load: async () => (await import("./commands/specs-overlap.ts")).specsOverlap,
  },
];
