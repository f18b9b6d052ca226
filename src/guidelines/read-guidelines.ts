import type { Diagnostic } from "../protocol/diagnostic.ts";
import type { FrontMatterKeys } from "../specs/markdown/front-matter.ts";
import type { GuidelineAdapter, GuidelineDraft } from "./adapter.ts";
import { agentsAdapter, geminiAdapter, zedAdapter } from "./adapters/agents-adapter.ts";
import { claudeAdapter, claudeRulesAdapter } from "./adapters/claude-adapter.ts";
import { clineAdapter } from "./adapters/cline-adapter.ts";
import { copilotAdapter } from "./adapters/copilot-adapter.ts";
import { cursorRulesAdapter, cursorrulesAdapter } from "./adapters/cursor-adapter.ts";
import { kiroSteeringAdapter } from "./adapters/kiro-steering-adapter.ts";
import { windsurfAdapter } from "./adapters/windsurf-adapter.ts";
import { assignGuidelineIds, type GuidelineRecord, type Reading } from "./guideline-record.ts";

interface GuidelineSource {
  /** The real path. */
  readonly path: string;
  readonly text: string;
  /** Other names of the file: links that lead to it. The first name that an adapter accepts selects the adapter. */
  readonly aliases?: readonly string[];
}

/**
 * Reads the guidelines of one file; none if no adapter accepts one of its names.
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

/** The folders of rules that tools read from the disk, whatever Git ignores. */
export const ruleFolders: readonly string[] = guidelineAdapters.flatMap(({ folders = [] }) => folders);

/** The endings of guideline file names. */
const ending = /\.(?:md|mdc|txt|cursorrules|windsurfrules|clinerules|rules)$/;

/** The keys that the tool of a rule file reads in its front matter; none for other files. */
export function guidelineKeysOf(path: string): FrontMatterKeys {
  const { folders = [], keys = {} } = guidelineAdapterFor(path) ?? {};
  return folders.some((folder) => `/${path}`.includes(`/${folder}/`)) ? keys : {};
}

/** The adapter that reads a project-relative path, by the path alone. */
export function guidelineAdapterFor(path: string): GuidelineAdapter | undefined {
  // Called for every file of a repository, so other names are ruled out first.
  if (!ending.test(path)) return undefined;
  return guidelineAdapters.find((adapter) => adapter.matches(path));
}

interface Sample {
  readonly title: string;
  readonly tags: readonly string[];
  readonly globs?: readonly string[];
  readonly lines: readonly string[];
}

const samples: readonly Sample[] = [
  {
    title: "Error messages",
    tags: ["errors"],
    lines: [
      "- Say what was expected, what was found, and what to do about it.",
      "- Name the thing by the name its user knows: the field, the file and line, the option.",
      "- Keep the original error as the cause; log it once, where it is handled.",
      "- Never show a stack trace, a secret or an absolute path to a reader outside the team.",
    ],
  },
  {
    title: "Tests",
    tags: ["testing"],
    globs: ["**/*.test.*", "**/*.spec.*", "**/test_*.py", "**/*_test.go"],
    lines: [
      "- Name a test after the behaviour it guards: `a second order with the same key is refused`.",
      "- Test through the public interface, so that a refactoring breaks no test.",
      "- One reason to fail per test. Build the data a test needs inside it; share builders, not state.",
      "- A bug is fixed together with the test that would have caught it.",
    ],
  },
  {
    title: "Functions and names",
    tags: ["style"],
    lines: [
      "- A function does one thing on one level of detail, and fits on a screen.",
      "- Names say what a thing is for. Spell words out; booleans read as statements (`isOpen`, `hasRights`).",
      "- Return early instead of nesting. No flag parameters: two names are clearer than one switch.",
      "- A comment says why; what the code does is for the code to say.",
    ],
  },
  {
    title: "TypeScript",
    tags: ["typescript"],
    globs: ["**/*.ts", "**/*.tsx"],
    lines: [
      "- `strict` is on. No `any`: take `unknown` and narrow it where data enters.",
      "- Model states as discriminated unions, so that wrong combinations cannot be written.",
      "- `readonly` by default; exported functions state their return type.",
    ],
  },
  {
    title: "Secrets and input",
    tags: ["security"],
    lines: [
      "- Secrets come from the environment. They are in no file, no log line and no error message.",
      "- Whatever comes from outside is checked against a schema once, at the edge.",
      "- Queries are parameterised, commands are lists of arguments, output is escaped for where it goes.",
      "- A new dependency needs a reason, an exact version and a look at what it pulls in.",
    ],
  },
  {
    title: "Commits",
    tags: ["git"],
    lines: [
      "- One idea per commit; every commit builds and passes its tests.",
      "- The subject is an order of at most 72 characters: `Refuse an order without items`.",
      "- The body says why, and what else was considered. The diff already says what.",
    ],
  },
];

/** The guidelines of a project without guideline files. */
export function sampleRecords(): GuidelineRecord[] {
  return assignGuidelineIds("samples.md", samples.map(toDraft));
}

function toDraft({ title, tags, globs, lines }: Sample): GuidelineDraft {
  return {
    title,
    content: lines.join("\n"),
    source_type: "sample",
    tool: "agents",
    tags,
    inclusion: globs === undefined ? "always" : "pattern",
    globs: globs ?? [],
    scope: "",
    frontmatter: {},
    span: { start_line: 1, end_line: lines.length },
    imports: [],
    whole_file: false,
  };
}

/** The guidelines of a project, or the samples if it has no guidelines. */
export function withSamples(records: readonly GuidelineRecord[]): readonly GuidelineRecord[] {
  return records.length > 0 ? records : sampleRecords();
}
