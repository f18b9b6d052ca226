import { defineConfig } from "kit";
import { gherkinAdapter } from "./adapters/gherkin.ts";

export default defineConfig({
  specs: {
    // Markdown with front matter, and JSON files with spec blocks.
    custom: [{ include: "docs/decisions/*.md", tags: ["decision"] }, { include: "docs/limits.json" }],
    // A custom format: see adapters/gherkin.ts.
    adapters: [gherkinAdapter],
  },
  guidelines: {
    // A program tells whether a change keeps the rule: `kit guidelines check`, `kit specs verify`.
    check: [{ rule: "CLAUDE.md#money", files: "src/**/*.ts", run: "node tools/whole-cents.mjs {files}" }],
  },
});
