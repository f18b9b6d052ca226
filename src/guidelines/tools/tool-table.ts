import { compileGlob, type Glob } from "../../base/glob/glob.ts";
import { conversionFormats, sourceTypes } from "../../protocol/enums.ts";
import type { ConversionFormat, SourceType } from "../../protocol/guideline.ts";
import { frameworkOf } from "../../specs/frameworks.ts";
import type { GuidelineTool } from "../adapter.ts";

/** A coding tool as `explain --tool` names it. AGENTS.md is not a tool; it has two views. */
export type ToolId = Exclude<GuidelineTool, "agents"> | "codex";

/** One kind of file that a tool reads. */
interface ToolRead {
  /** A glob, relative to the folder that it is looked for in. */
  readonly files: string;
  /** `root`: in the root of the project. `any`: in every folder from the root down to that of the file at work. */
  readonly at: "root" | "any";
  /** The condition under which it is read; absent for always. */
  readonly when?: string;
  /**
   * Set where a sync writes nothing for the file, because the tool reads it itself. Lists the files that keep the tool from reading
   * it.
   */
  readonly sufficesUnless?: readonly string[];
}

/** The size above which the tool does not read on, by its vendor. */
interface ToolLimit {
  readonly files: string;
  readonly max: number;
  readonly unit: "characters" | "bytes";
  /** `file`: per file. `total`: all files together that are read for the file at work. */
  readonly per: "file" | "total";
}

/** A file of the user's home folder that a tool reads in every project. */
export interface UserFile {
  /** Below the home folder; ends in `/` for a folder of such files. */
  readonly path: string;
  /** The project file whose format it has. */
  readonly like: string;
}

interface ToolInfo {
  readonly id: ToolId;
  /** Its name on the command line. */
  readonly name: string;
  readonly label: string;
  /** The release, or the date of the documentation, that the row describes. */
  readonly version: string;
  /** The vendor's page. */
  readonly source: string;
  /** In the order in which the model sees them. */
  readonly reads: readonly ToolRead[];
  /** One sentence on how the tool combines several files. */
  readonly order: string;
  /** Whether it reads only the first existing file of its list. */
  readonly readsOne?: true;
  readonly limits: readonly ToolLimit[];
  readonly user: readonly UserFile[];
}

/**
 * The files of a repository that each tool reads today. `explain`, `lint`, `sync` and the documentation use this table; a new
 * release of a tool changes a row.
 *
 * @see decisions/2026-11-22-what-tools-read.md
 */
export const toolTable: readonly ToolInfo[] = [
  {
    id: "kiro",
    name: "kiro",
    label: "Kiro",
    version: "IDE 1.0, CLI 3.0",
    source: "https://kiro.dev/docs/steering/",
    reads: [
      { files: ".kiro/steering/**/*.md", at: "any", when: "as its `inclusion` says" },
      { files: "AGENTS.md", at: "root", sufficesUnless: [] },
    ],
    order: "Always included, AGENTS.md, matching, then on request.",
    limits: [],
    user: [{ path: ".kiro/steering/", like: ".kiro/steering/" }],
  },
  {
    id: "cursor",
    name: "cursor",
    label: "Cursor",
    version: "documentation of 2026-11",
    source: "https://cursor.com/docs/context/rules",
    reads: [
      { files: ".cursor/rules/**/*.mdc", at: "any", when: "by its rule type" },
      { files: "AGENTS.md", at: "any", sufficesUnless: [] },
      { files: ".cursorrules", at: "any", when: "legacy" },
      // @see https://cursor.com/docs/cli/using
      { files: "CLAUDE.md", at: "root", when: "only by Cursor's command line" },
    ],
    order: "All together; nested rules and files after those above.",
    limits: [],
    user: [],
  },
  {
    id: "claude",
    name: "claude",
    label: "Claude Code",
    version: "2.1.277",
    source: "https://code.claude.com/docs/en/memory",
    reads: [
      { files: "CLAUDE.md", at: "any" },
      { files: ".claude/CLAUDE.md", at: "any" },
      { files: "CLAUDE.local.md", at: "any" },
      { files: ".claude/rules/**/*.md", at: "any", when: "always, or for its `paths`" },
      { files: "AGENTS.md", at: "any", when: "only where no CLAUDE.md is on the way" },
    ],
    order: "All from the root down, each followed by its imports.",
    limits: [],
    user: [
      { path: ".claude/CLAUDE.md", like: "CLAUDE.md" },
      { path: ".claude/rules/", like: ".claude/rules/" },
    ],
  },
  {
    id: "codex",
    name: "codex",
    label: "Codex",
    version: "documentation of 2026-11",
    source: "https://developers.openai.com/codex/guides/agents-md",
    reads: [
      { files: "AGENTS.override.md", at: "any" },
      { files: "AGENTS.md", at: "any", when: "where the folder has no override" },
    ],
    // The other names come from the user's configuration, not from the repository.
    order:
      "All from the root down, one file per folder; `project_doc_fallback_filenames` in its configuration names others.",
    limits: [{ files: "AGENTS.md", max: 32 * 1024, unit: "bytes", per: "total" }],
    user: [
      { path: ".codex/AGENTS.override.md", like: "AGENTS.override.md" },
      { path: ".codex/AGENTS.md", like: "AGENTS.md" },
    ],
  },
  {
    id: "copilot",
    name: "copilot",
    label: "GitHub Copilot",
    version: "documentation of 2026-11",
    source:
      "https://docs.github.com/en/copilot/how-tos/configure-custom-instructions/add-repository-instructions",
    reads: [
      { files: ".github/copilot-instructions.md", at: "root" },
      { files: ".github/instructions/**/*.instructions.md", at: "root", when: "for its `applyTo`" },
      { files: "AGENTS.md", at: "any", when: "the nearest", sufficesUnless: [] },
      { files: "CLAUDE.md", at: "root", when: "without an AGENTS.md", sufficesUnless: ["AGENTS.md"] },
      {
        files: "GEMINI.md",
        at: "root",
        when: "without an AGENTS.md",
        sufficesUnless: ["AGENTS.md", "CLAUDE.md"],
      },
    ],
    order: "All together; path-specific instructions weigh most.",
    limits: [],
    user: [{ path: ".copilot/copilot-instructions.md", like: ".github/copilot-instructions.md" }],
  },
  {
    id: "gemini",
    name: "gemini",
    label: "Gemini CLI",
    version: "documentation of 2026-11",
    source: "https://geminicli.com/docs/cli/gemini-md",
    reads: [{ files: "GEMINI.md", at: "any" }],
    order: "All from the root down, each followed by its imports.",
    limits: [],
    user: [{ path: ".gemini/GEMINI.md", like: "GEMINI.md" }],
  },
  {
    id: "windsurf",
    name: "windsurf",
    label: "Windsurf",
    version: "documentation of 2026-11",
    source: "https://docs.windsurf.com/windsurf/cascade/memories",
    reads: [
      { files: ".windsurf/rules/**/*.md", at: "any", when: "by its `trigger`" },
      { files: "AGENTS.md", at: "any", sufficesUnless: [] },
      { files: ".windsurfrules", at: "root", when: "legacy" },
    ],
    order: "All together, from the root down.",
    limits: [{ files: ".windsurf/rules/**/*.md", max: 12_000, unit: "characters", per: "file" }],
    user: [{ path: ".codeium/windsurf/memories/global_rules.md", like: ".windsurfrules" }],
  },
  {
    id: "cline",
    name: "cline",
    label: "Cline",
    version: "documentation of 2026-11",
    source: "https://docs.cline.bot/customization/cline-rules",
    reads: [
      { files: ".clinerules/**/*.{md,txt}", at: "root", when: "always, or for its `paths`" },
      { files: ".clinerules", at: "root" },
      { files: ".cursorrules", at: "root", sufficesUnless: [] },
      { files: ".windsurfrules", at: "root", sufficesUnless: [] },
      { files: "AGENTS.md", at: "any", sufficesUnless: [] },
    ],
    order: "All together.",
    limits: [],
    user: [
      { path: "Documents/Cline/Rules/", like: ".clinerules/" },
      { path: "Cline/Rules/", like: ".clinerules/" },
    ],
  },
  {
    id: "zed",
    name: "zed",
    label: "Zed",
    version: "documentation of 2026-11",
    source: "https://zed.dev/docs/ai/rules",
    reads: [
      { files: ".rules", at: "root" },
      { files: ".cursorrules", at: "root" },
      { files: ".windsurfrules", at: "root" },
      { files: ".clinerules", at: "root" },
      { files: ".github/copilot-instructions.md", at: "root" },
      { files: "AGENT.md", at: "root" },
      { files: "AGENTS.md", at: "root" },
      { files: "CLAUDE.md", at: "root" },
      { files: "GEMINI.md", at: "root" },
    ],
    order: "The first existing file of the list, and no other.",
    readsOne: true,
    limits: [],
    user: [],
  },
];

const infos = new Map(toolTable.map((info) => [info.id, info]));
const compiled = new Map<string, Glob>();

/** The row of a tool. */
export function toolInfo(id: ToolId): ToolInfo {
  const info = infos.get(id);
  if (info === undefined) throw new Error(`The table of tools does not know ${id}.`);
  return info;
}

/** The position of a file in the list of a tool; -1 for a file that it does not read. */
export function readIndex(id: ToolId, name: string): number {
  return toolInfo(id).reads.findIndex(({ files, at }) => matches(at === "any" ? `**/${files}` : files, name));
}

/**
 * Whether a tool reads a whole project file without a sync if the files `others` also exist: a sync then writes nothing for it.
 */
export function readsItself(id: ToolId, name: string, others: readonly string[]): boolean {
  const { reads, readsOne = false } = toolInfo(id);
  const index = readIndex(id, name);
  const read = reads[index];
  if (read === undefined) return false;
  if (readsOne)
    return !reads.slice(0, index).some(({ files }) => others.some((other) => matches(files, other)));
  const { sufficesUnless } = read;
  return (
    sufficesUnless !== undefined &&
    !sufficesUnless.some((file) => others.some((other) => matches(`**/${file}`, other)))
  );
}

export function matches(glob: string, name: string): boolean {
  let known = compiled.get(glob);
  if (known === undefined) {
    known = compileGlob(glob);
    compiled.set(glob, known);
  }
  return known.matches(name);
}

/**
 * The source type of a wire value, framework id or alias in any case: `claude` is `fw_c`, `kiro` is `steering`.
 *
 * @example
 * ```ts
 * import { sourceTypeOf } from "kit/guidelines";
 *
 * console.log(sourceTypeOf("kiro")); // steering
 * ```
 */
export function sourceTypeOf(name: string): SourceType | undefined {
  const lowered = name.toLowerCase();
  const framework = frameworkOf(lowered);
  const value = framework === "fw_a" ? "steering" : (framework ?? lowered);
  return sourceTypes.find((type) => type === value);
}

/**
 * The same for a format to convert to.
 *
 * @example
 * ```ts
 * import { conversionFormatOf } from "kit/guidelines";
 *
 * console.log(conversionFormatOf("claude")); // fw_c
 * ```
 */
export function conversionFormatOf(name: string): ConversionFormat | undefined {
  const type = sourceTypeOf(name);
  return conversionFormats.find((format) => format === type);
}
