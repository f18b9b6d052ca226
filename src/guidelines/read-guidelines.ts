import type { Diagnostic } from "../protocol/diagnostic.ts";
import { assignGuidelineIds } from "./guideline-id.ts";
import type { GuidelineRecord } from "./guideline-record.ts";
import { guidelineAdapterFor } from "./registry.ts";

/** The guidelines of one file; none where no adapter knows the path. */
export function readGuidelines(source: { readonly path: string; readonly text: string }): {
  readonly records: GuidelineRecord[];
  readonly diagnostics: readonly Diagnostic[];
} {
  const parsed = guidelineAdapterFor(source.path)?.parse(source) ?? { drafts: [], diagnostics: [] };
  return { records: assignGuidelineIds(source.path, parsed.drafts), diagnostics: parsed.diagnostics };
}
