import { suggest } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { textTokens } from "../../base/text-size.ts";
import type { InstructionPart, KnownRule, ProjectInstructions } from "../project-context.ts";
import { forkNote, leftOutNote, type SessionState } from "./session-state.ts";

export const noRules: ReadonlySet<string> = new Set();

/**
 * The rules that an operation leaves out: those of its agent, of the operation that started it, and those that its session began
 * without. Names are ids of rules (`AGENTS.md#money`) and files.
 */
export function rulesLeftOut(
  { notes }: Pick<SessionState, "notes">,
  ofAgent: readonly string[] = [],
  ofParent: ReadonlySet<string> = noRules,
): ReadonlySet<string> {
  const names = [...ofAgent, ...ofParent];
  for (const { name, value } of notes) {
    if (name === leftOutNote) names.push(...(value as readonly string[]));
    if (name === forkNote) names.push(...((value as { readonly without?: readonly string[] }).without ?? []));
  }
  return names.length === 0 ? noRules : new Set(names);
}

/** Whether a rule is among those that are left out, by its id or by its file. */
export function isLeftOut(
  rules: ReadonlySet<string>,
  { id, file }: { readonly id: string; readonly file?: string | undefined },
): boolean {
  return rules.has(id) || (file !== undefined && rules.has(file));
}

/**
 * Checks the names of rules to leave out: ids of rules and files. Throws `invalid_request` with the nearest names for one that is not
 * among the known rules.
 *
 * @param option The option with the names, for the error.
 */
export function checkRules(
  names: readonly string[],
  known: readonly Pick<KnownRule, "id" | "file">[],
  option: string,
): void {
  const ids = new Set(known.flatMap(({ id, file }) => [id, file]));
  for (const [index, name] of names.entries()) {
    if (ids.has(name)) continue;
    const [file] = name.split("#", 1);
    const near = suggest(name, [...ids]) ?? [...ids].filter((id) => id.startsWith(`${file}#`)).join(" or ");
    const hint = near === "" ? "" : `; did you mean ${near.slice(0, 1_000)}?`;
    throw new KitError({
      code: "invalid_request",
      message: `The project has no rule "${name.slice(0, 200)}"${hint}`,
      hint: "Name a file of rules, or a section of one: AGENTS.md#money. `kit guidelines usage` lists them.",
      meta: { issues: [{ path: `${option}.${index}`, message: `must be a rule of the project${hint}` }] },
    });
  }
}

/** Joins parts of instruction files, in their order, to the text of a prompt. */
export function joinInstructions(
  parts: readonly (Pick<InstructionPart, "id" | "path" | "line"> & { readonly text: string })[],
): Omit<ProjectInstructions, "sources"> {
  let text = "";
  const placed = parts.map(({ text: content, ...part }, index): InstructionPart => {
    // The same path again is another file: that of a session's own workspace.
    const isApart = (one = parts[index - 1], other = parts[index]): boolean =>
      one?.path !== other?.path || (one !== undefined && other !== undefined && other.line <= one.line);
    const isLast = isApart(parts[index], parts[index + 1]);
    if (isApart()) text += `${index === 0 ? "" : "\n\n"}<instructions source="${part.path}">\n`;
    const start = text.length;
    const kept = isLast ? content.trimEnd() : content;
    text += isLast ? `${kept}\n</instructions>` : kept;
    return { ...part, tokens: textTokens(kept), start, end: start + kept.length };
  });
  return { text, parts: placed };
}

/** Instructions in the note of a session's log. */
export interface KeptInstructions {
  readonly text: string;
  readonly parts?: ProjectInstructions["parts"];
  /** In notes of versions before receipts had sections. */
  readonly files?: readonly { readonly path: string; readonly tokens: number }[];
}

/** Reads instructions from a note. Those of older versions are whole files, each after its mark in the text. */
export function fromKept({
  text,
  parts,
  files = [],
}: KeptInstructions): Omit<ProjectInstructions, "sources"> {
  if (parts !== undefined) return { text, parts };
  let at = 0;
  const starts = files.map(({ path }) => {
    const mark = `<instructions source="${path}">\n`;
    at = text.indexOf(mark, at) + mark.length;
    return at;
  });
  return {
    text,
    parts: files.map(({ path, tokens }, index) => {
      const start = starts[index] ?? 0;
      const end = Math.max(start, text.lastIndexOf("\n</instructions>", starts[index + 1] ?? text.length));
      return { id: path, path, line: 1, tokens, start, end };
    }),
  };
}

/** Project instructions without the rules that are left out. Their guidelines are not listed instead. */
export function instructionsWithout<Place extends Omit<ProjectInstructions, "sources">>(
  instructions: Place,
  rules: ReadonlySet<string>,
): Place {
  const { text, parts } = instructions;
  const kept = parts.filter(({ id, path }) => !isLeftOut(rules, { id, file: path }));
  if (kept.length === parts.length) return instructions;
  const joined = joinInstructions(kept.map((part) => ({ ...part, text: text.slice(part.start, part.end) })));
  return { ...instructions, ...joined };
}
