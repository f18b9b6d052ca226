import { suggest } from "../base/error-text.ts";
import { KitError } from "../base/kit-error.ts";
import type { Project } from "../project/project.ts";
import { createSpecNames } from "../project/query/spec-names.ts";
import type { ErrorCode } from "../protocol/error-code.ts";
import type { Guideline } from "../protocol/guideline.ts";
import type { SpecBlock } from "../protocol/spec-block.ts";

/**
 * The spec with this id, of this name in tables (`checkout#1`), or the only one whose id ends with it. Throws `invalid_request` with
 * the candidates of an ambiguous name, and `spec_not_found`, which suggests a similar id.
 */
export function findSpec(project: Project, id: string): SpecBlock {
  return lookUpSpec(project, id) ?? throwUnknownSpec(project, id);
}

/** The same; undefined where no spec has the name. */
export function lookUpSpec(project: Project, id: string): SpecBlock | undefined {
  const block = project.specs.get(id);
  if (block !== undefined) return block;
  const candidates = id.includes("#") ? createSpecNames(project.specs).resolve(id) : [];
  if (candidates.length > 1) {
    const more = candidates.length > mostCandidates ? ` and ${candidates.length - mostCandidates} more` : "";
    throw new KitError({
      code: "invalid_request",
      message: `'${id}' names ${candidates.length} specs: ${candidates.slice(0, mostCandidates).join(", ")}${more}.`,
      hint: "Write the id of the one that you mean.",
    });
  }
  if (candidates[0] !== undefined) return project.specs.get(candidates[0]);
  const ids = Iterator.from(project.specs.all()).map((spec) => spec.id);
  return project.specs.get(matchId(id, ids));
}

const mostCandidates = 10;

export function throwUnknownSpec(project: Project, id: string): never {
  const ids = Iterator.from(project.specs.all()).map((spec) => spec.id);
  throw unknown(
    { code: "spec_not_found", noun: "spec", list: "kit specs list --all --rules" },
    id,
    suggest(id, ids),
  );
}

/** The guideline with this id, or the only one whose id starts with it. Throws `guideline_not_found`. */
export function findGuideline(project: Project, id: string): Guideline {
  const start = id.replace(/…$/, "");
  const exact = project.guidelines.get(start);
  if (exact) return exact;
  const { guidelines } = project.guidelines.list({});
  const [first, ...otherBlocks] =
    start.length < 4 ? [] : guidelines.filter((guideline) => guideline.id.startsWith(start));
  if (first && otherBlocks.length === 0) return first;
  const ids = first ? [first.id] : guidelines.map((guideline) => guideline.id);
  throw unknown(
    { code: "guideline_not_found", noun: "guideline", list: "kit guidelines list" },
    id,
    suggest(id, ids),
  );
}

interface Kind {
  readonly code: ErrorCode;
  readonly noun: string;
  readonly list: string;
}

function unknown(
  { code, noun, list }: Kind,
  id: string,
  suggestion: string | undefined,
): KitError<ErrorCode> {
  return new KitError({
    code,
    message: `There is no ${noun} with the id '${id}'.`,
    hint:
      suggestion === undefined
        ? `'${list}' prints the ids.`
        : `Did you mean ${suggestion}? '${list}' prints all ids.`,
  });
}

/**
 * The full id for one that the user wrote: whole, or an unambiguous end of it as tables show it (`…0E60N67AXVR`). A
 * text that matches no id or several is returned as it is, so that the lookup reports it.
 */
export function matchId(written: string, ids: Iterable<string>): string {
  const end = written.replace(/^…/, "");
  const candidates = [...ids].filter((id) => id === end || (end.length >= 4 && id.endsWith(end)));
  return candidates.find((id) => id === end) ?? (candidates.length === 1 ? (candidates[0] ?? end) : end);
}
