import type { GuidelineAdapter } from "./adapter.ts";
import { agentsAdapter } from "./adapters/agents-adapter.ts";
import { claudeAdapter } from "./adapters/claude-adapter.ts";
import { claudeRulesAdapter } from "./adapters/claude-rules-adapter.ts";
import { cursorRulesAdapter } from "./adapters/cursor-rules-adapter.ts";
import { cursorrulesAdapter } from "./adapters/cursorrules-adapter.ts";
import { kiroSteeringAdapter } from "./adapters/kiro-steering-adapter.ts";

/** Every guideline format that kit reads; the first that accepts a path reads the file. */
const guidelineAdapters: readonly GuidelineAdapter[] = [
  claudeRulesAdapter,
  claudeAdapter,
  cursorrulesAdapter,
  cursorRulesAdapter,
  kiroSteeringAdapter,
  agentsAdapter,
];

/** The adapter that reads a project-relative path, by the path alone. */
export function guidelineAdapterFor(path: string): GuidelineAdapter | undefined {
  // Asked for every file of a repository, so what cannot be a guideline leaves at once.
  if (!path.endsWith(".md") && !path.endsWith(".mdc") && !path.endsWith(".cursorrules")) return undefined;
  return guidelineAdapters.find((adapter) => adapter.matches(path));
}
