import type { SpecBlock, SpecMetadata } from "../../protocol/spec-block.ts";
import type { SpecDraft } from "../adapter.ts";

/** The fields that a draft gets from the project around it. */
export interface DraftResolution {
  readonly id: string;
  /** POSIX, relative to the project root. */
  readonly path: string;
  readonly related_specs?: readonly string[];
  readonly code_refs?: readonly string[];
  readonly test_refs?: readonly string[];
  /** Dates from the history of the file; those of the draft itself win. */
  readonly created_at?: string;
  readonly updated_at?: string;
  readonly author?: string;
}

/** A draft as a block. Lists that the file declares itself come first; empty ones are left out. */
export function toSpecBlock(draft: SpecDraft, resolution: DraftResolution): SpecBlock {
  const created = draft.created_at ?? resolution.created_at;
  const updated = draft.updated_at ?? resolution.updated_at;
  return {
    id: resolution.id,
    path: resolution.path,
    framework: draft.framework,
    spec_type: draft.spec_type,
    title: draft.title,
    content: draft.content,
    ...(draft.summary === undefined ? {} : { summary: draft.summary }),
    tags: draft.tags,
    lifecycle: draft.lifecycle,
    priority: draft.priority,
    ...(created === undefined ? {} : { created_at: created }),
    ...(updated === undefined ? {} : { updated_at: updated }),
    metadata: {
      ...draft.metadata,
      ...authorOf(draft.metadata, resolution),
      ...merged(draft.metadata, resolution, "related_specs"),
      ...merged(draft.metadata, resolution, "code_refs"),
      ...merged(draft.metadata, resolution, "test_refs"),
      source: draft.span,
    },
  };
}

/** Git's author, unless the draft names an `author` or `authors` itself. */
function authorOf(metadata: SpecMetadata, { author }: DraftResolution): SpecMetadata {
  const isStated = [metadata.author, metadata.authors].some((value: unknown) =>
    typeof value === "string" ? value.trim() !== "" : (value ?? undefined) !== undefined,
  );
  return isStated || author === undefined ? {} : { author };
}

type RefField = "related_specs" | "code_refs" | "test_refs";

function merged(metadata: SpecMetadata, resolution: DraftResolution, field: RefField): SpecMetadata {
  const declared = metadata[field];
  const refs = new Set([...(Array.isArray(declared) ? declared : []), ...(resolution[field] ?? [])]);
  return refs.size === 0 ? {} : { [field]: [...refs] };
}
