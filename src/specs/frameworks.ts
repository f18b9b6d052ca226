import { frameworks } from "../protocol/enums.ts";
import type { Framework, SpecBlock } from "../protocol/spec-block.ts";

/** The label of a framework, and the aliases of its id. */
export interface FrameworkInfo {
  readonly id: Framework;
  readonly label: string;
  readonly aliases: readonly string[];
  readonly sources: string;
}

/** One row for each id of `frameworks`, in their order: the compiler misses the row of a new one. */
const rows: Readonly<Record<Framework, Omit<FrameworkInfo, "id">>> = {
  fw_a: {
    label: "Kiro",
    aliases: ["kiro"],
    sources: ".kiro/specs/<feature>/{requirements,bugfix,design,tasks}.md",
  },
  fw_b: {
    label: "Cursor",
    aliases: ["cursor"],
    sources: ".cursorrules, .cursor/rules.json, .cursor/rules/**/*.mdc",
  },
  fw_c: {
    label: "Claude Code",
    aliases: ["claude"],
    sources: "CLAUDE.md, .claude/CLAUDE.md, .claude/rules/**/*.md",
  },
  fw_d: {
    label: "Spec Kit",
    aliases: ["speckit"],
    sources: "specs/<NNN-name>/{spec,plan,tasks}.md, .specify/memory/constitution.md",
  },
  fw_e: { label: "Tessl", aliases: ["tessl"], sources: "*.spec.md, .tessl/**" },
  custom: { label: "Custom", aliases: [], sources: "globs named in the config; OpenSpec: openspec/**" },
};

export const frameworkInfos: readonly FrameworkInfo[] = frameworks.map((id) => ({ id, ...rows[id] }));

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
  const lowered = name.toLowerCase();
  return frameworkInfos.find((info) => info.id === lowered || info.aliases.includes(lowered))?.id;
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

/** Whether a block is a rule that Cursor or Claude Code gives its model, and not a specification. */
export function isRuleBlock({ framework, spec_type }: Pick<SpecBlock, "framework" | "spec_type">): boolean {
  return spec_type === "constraint" && (framework === "fw_b" || framework === "fw_c");
}
