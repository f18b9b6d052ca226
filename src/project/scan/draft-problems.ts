import { hasAtMostCodePoints } from "../../base/code-points.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { frameworks, lifecycles, maxSummaryLength, priorities, specTypes } from "../../protocol/enums.ts";
import type { SpecDraft } from "../../specs/adapter.ts";
import { validateBlock } from "../../specs/model/validate.ts";
import { baseOf } from "../store/block-id.ts";

/** A diagnostic whose `id` is that of the block at a position, known only when it is read. */
export type StoredDiagnostic = Diagnostic & { readonly position?: number };

/** What the validation rules say about the drafts of a file. */
export function draftProblems(drafts: readonly SpecDraft[], path: string): StoredDiagnostic[] {
  const problems: StoredDiagnostic[] = [];
  for (const [position, draft] of drafts.entries()) {
    if (isPlainlyValid(draft)) continue;
    const metadata = { ...draft.metadata, source: draft.span };
    for (const problem of validateBlock({ ...draft, id: baseOf(draft.id), path, metadata }, path)) {
      problems.push({ ...problem, position });
    }
  }
  return problems;
}

const allowed: readonly ReadonlySet<string>[] = [frameworks, specTypes, lifecycles, priorities].map(
  (values) => new Set(values),
);

/** Nearly all drafts pass here, for a fraction of what the full rules cost. */
function isPlainlyValid(draft: SpecDraft): boolean {
  return (
    isText(draft.title) &&
    isText(draft.content) &&
    isText(baseOf(draft.id)) &&
    (draft.summary === undefined || hasAtMostCodePoints(draft.summary, maxSummaryLength)) &&
    draft.created_at === undefined &&
    draft.updated_at === undefined &&
    allowed[0]?.has(draft.framework) === true &&
    allowed[1]?.has(draft.spec_type) === true &&
    allowed[2]?.has(draft.lifecycle) === true &&
    allowed[3]?.has(draft.priority) === true
  );
}

function isText(value: string): boolean {
  return typeof value === "string" && /\S/.test(value);
}
