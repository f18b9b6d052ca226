import type { Framework } from "../protocol/spec-block.ts";
import type { SpecAdapter } from "./adapter.ts";
import { claudeAdapter } from "./adapters/claude/claude-adapter.ts";
import { cursorAdapter } from "./adapters/cursor/cursor-adapter.ts";
import { type CustomSource, createCustomAdapter } from "./adapters/custom/custom-adapter.ts";
import { kiroAdapter } from "./adapters/kiro/kiro-adapter.ts";
import { openspecAdapter } from "./adapters/openspec/openspec-adapter.ts";
import { speckitAdapter } from "./adapters/speckit/speckit-adapter.ts";
import { tesslAdapter } from "./adapters/tessl/tessl-adapter.ts";

/** The adapters of a project, in the order in which they are asked. */
export interface SpecRegistry {
  readonly adapters: readonly SpecAdapter[];
  /** The first adapter that reads the file at a path, by the path alone. */
  adapterFor(path: string): SpecAdapter | undefined;
}

export interface SpecRegistryOptions {
  /** Adapters of the user's own, asked before the built-in ones. */
  readonly adapters?: readonly SpecAdapter[];
  /** Files of the user's own that hold blocks: asked where no other tool's folder or name claims them. */
  readonly custom?: readonly CustomSource[];
}

const builtIn: readonly SpecAdapter[] = [
  kiroAdapter,
  openspecAdapter,
  speckitAdapter,
  cursorAdapter,
  claudeAdapter,
];

/**
 * Creates the registry of a project. An adapter that has the name of a built-in one replaces it.
 *
 * @example
 * ```ts
 * import { createSpecRegistry } from "kit/specs";
 *
 * const adapter = createSpecRegistry().adapterFor(".kiro/specs/returns/requirements.md");
 * console.log(adapter?.name);
 * ```
 */
export function createSpecRegistry(options: SpecRegistryOptions = {}): SpecRegistry {
  const own = options.adapters ?? [];
  const custom = options.custom ?? [];
  const names = new Set(own.map((adapter) => adapter.name));
  // Tessl comes last, because it has to look at every `*.spec.md`, whoever wrote it.
  const others = [...builtIn, ...(custom.length === 0 ? [] : [createCustomAdapter(custom)]), tesslAdapter];
  const adapters = [...own, ...others.filter((adapter) => !names.has(adapter.name))];
  return { adapters, adapterFor: (path) => adapters.find((adapter) => adapter.matches(path)) };
}

/** The label of a framework, and the aliases of its id. */
export interface FrameworkInfo {
  readonly id: Framework;
  readonly label: string;
  readonly aliases: readonly string[];
  readonly sources: string;
}

export const frameworkInfos: readonly FrameworkInfo[] = [
  {
    id: "fw_a",
    label: "Kiro",
    aliases: ["kiro"],
    sources: ".kiro/specs/<feature>/{requirements,bugfix,design,tasks}.md",
  },
  {
    id: "fw_b",
    label: "Cursor",
    aliases: ["cursor"],
    sources: ".cursorrules, .cursor/rules.json, .cursor/rules/**/*.mdc",
  },
  {
    id: "fw_c",
    label: "Claude Code",
    aliases: ["claude"],
    sources: "CLAUDE.md, .claude/CLAUDE.md, .claude/rules/**/*.md",
  },
  {
    id: "fw_d",
    label: "Spec Kit",
    aliases: ["speckit"],
    sources: "specs/<NNN-name>/{spec,plan,tasks}.md, .specify/memory/constitution.md",
  },
  { id: "fw_e", label: "Tessl", aliases: ["tessl"], sources: "*.spec.md, .tessl/**" },
  { id: "custom", label: "Custom", aliases: [], sources: "globs named in the config; openspec/**" },
];

/**
 * The framework of an id or alias in any case; undefined for any other text.
 *
 * @example
 * ```ts
 * import { frameworkOf } from "kit/specs";
 *
 * console.log(frameworkOf("Kiro")); // fw_a
 * ```
 */
export function frameworkOf(name: string): Framework | undefined {
  const wanted = name.toLowerCase();
  return frameworkInfos.find((info) => info.id === wanted || info.aliases.includes(wanted))?.id;
}

/**
 * The label that people see for a framework.
 *
 * @example
 * ```ts
 * import { frameworkLabel } from "kit/specs";
 *
 * console.log(frameworkLabel("fw_a")); // Kiro
 * ```
 */
export function frameworkLabel(id: Framework): string {
  return frameworkInfos.find((info) => info.id === id)?.label ?? id;
}
