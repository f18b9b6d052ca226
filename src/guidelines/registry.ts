import type { GuidelineAdapter } from "./adapter.ts";
import { agentsAdapter, geminiAdapter, zedAdapter } from "./adapters/agents-adapter.ts";
import { claudeAdapter, claudeRulesAdapter } from "./adapters/claude-adapter.ts";
import { clineAdapter } from "./adapters/cline-adapter.ts";
import { copilotAdapter } from "./adapters/copilot-adapter.ts";
import { cursorRulesAdapter, cursorrulesAdapter } from "./adapters/cursor-adapter.ts";
import { kiroSteeringAdapter } from "./adapters/kiro-steering-adapter.ts";
import { windsurfAdapter } from "./adapters/windsurf-adapter.ts";

/** Every guideline format that kit reads; the first that accepts a path reads the file. */
const guidelineAdapters: readonly GuidelineAdapter[] = [
  claudeRulesAdapter,
  claudeAdapter,
  cursorrulesAdapter,
  cursorRulesAdapter,
  kiroSteeringAdapter,
  agentsAdapter,
  copilotAdapter,
  geminiAdapter,
  windsurfAdapter,
  clineAdapter,
  zedAdapter,
];

/** The endings of guideline file names. */
const ending = /\.(?:md|mdc|txt|cursorrules|windsurfrules|clinerules|rules)$/;

/** The adapter that reads a project-relative path, by the path alone. */
export function guidelineAdapterFor(path: string): GuidelineAdapter | undefined {
  // Called for every file of a repository, so other names are ruled out first.
  if (!ending.test(path)) return undefined;
  return guidelineAdapters.find((adapter) => adapter.matches(path));
}
