import type { Diagnostic } from "../protocol/diagnostic.ts";
import type { GuidelineAdapter } from "./adapter.ts";
import { agentsAdapter, geminiAdapter, zedAdapter } from "./adapters/agents-adapter.ts";
import { claudeAdapter, claudeRulesAdapter } from "./adapters/claude-adapter.ts";
import { clineAdapter } from "./adapters/cline-adapter.ts";
import { copilotAdapter } from "./adapters/copilot-adapter.ts";
import { cursorRulesAdapter, cursorrulesAdapter } from "./adapters/cursor-adapter.ts";
import { kiroSteeringAdapter } from "./adapters/kiro-steering-adapter.ts";
import { windsurfAdapter } from "./adapters/windsurf-adapter.ts";
import { assignGuidelineIds, type GuidelineRecord, type Reading } from "./guideline-record.ts";

export interface GuidelineSource {
  /** The real path. */
  readonly path: string;
  readonly text: string;
  /** Other names of the file: links that lead to it. The first name that an adapter knows decides how it is read. */
  readonly aliases?: readonly string[];
}

/**
 * The guidelines of one file; none where no adapter knows one of its names.
 *
 * @example
 * import { readGuidelines } from "kit/guidelines";
 *
 * const { records } = readGuidelines({ path: "AGENTS.md", text: "# Rules\n\n## Style\n\nUse tabs.\n" });
 */
export function readGuidelines({ path, text, aliases = [] }: GuidelineSource): {
  readonly records: GuidelineRecord[];
  readonly diagnostics: readonly Diagnostic[];
} {
  const [name, ...others] = [path, ...aliases].filter((each) => guidelineAdapterFor(each) !== undefined);
  if (name === undefined) return { records: [], diagnostics: [] };
  const parsed = parse(name, text);
  const readings = others.flatMap((each) => readingOf(each, text));
  const about = {
    ...(aliases.length > 0 && { aliases }),
    ...(name !== path && { read_as: name }),
    ...(readings.length > 0 && { readings }),
  };
  return {
    records: assignGuidelineIds(path, parsed.drafts).map((record) => ({ ...record, ...about })),
    diagnostics: parsed.diagnostics.map((diagnostic) => ({ ...diagnostic, path })),
  };
}

function parse(path: string, text: string) {
  return guidelineAdapterFor(path)?.parse({ path, text }) ?? { drafts: [], diagnostics: [] };
}

function readingOf(name: string, text: string): Reading[] {
  const [first] = parse(name, text).drafts;
  if (first === undefined) return [];
  const { tool, scope, inclusion, globs } = first;
  return [{ read_as: name, tool, scope, inclusion, globs }];
}

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
