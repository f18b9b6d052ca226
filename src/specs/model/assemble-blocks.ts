import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SpecBlock, SpecMetadata } from "../../protocol/spec-block.ts";
import type { DraftId, DraftLink, ParsedSpecs, SpecDraft, WrittenSpecs } from "../adapter.ts";
import type { SegmentParent, WritableSegment } from "../markdown/segments.ts";
import { folderOf, resolveMentions } from "./mentions.ts";

/** A file of a project, read by an adapter. */
export interface ParsedFile {
  /** POSIX, relative to the project root. */
  readonly path: string;
  readonly parsed: ParsedSpecs;
}

interface AssembledBlocks {
  /** In path, then position order. */
  readonly blocks: readonly SpecBlock[];
  /** Diagnostics of the parsers, and ids declared twice. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Converts parsed files to blocks, in memory: assigns ids over all files, resolves links to blocks, and mentions to files that
 * `exists`. The index does the same for a project on disk.
 */
export function assembleBlocks(
  files: readonly ParsedFile[],
  exists: (path: string) => boolean = () => false,
): AssembledBlocks {
  const placed = [...files]
    .sort((one, other) => (one.path < other.path ? -1 : 1))
    .flatMap(({ path, parsed }) => parsed.drafts.map((draft) => ({ path, draft })));
  const { ids, diagnostics } = assignIds(
    placed.map(({ path, draft }) => ({ id: draft.id, path, line: draft.span.start_line })),
  );
  const resolve = linkResolver(placed, ids);
  const blocks = placed.map(({ path, draft }, index): SpecBlock => {
    const id = ids[index] ?? "";
    const related = new Set(draft.links.flatMap((link) => resolve(link, path)));
    related.delete(id);
    return toSpecBlock(draft, {
      id,
      path,
      related_specs: [...related],
      ...resolveMentions(path, draft.mentions, exists),
    });
  });
  return { blocks, diagnostics: [...files.flatMap(({ parsed }) => parsed.diagnostics), ...diagnostics] };
}

/**
 * Resolves a link to the first block with the target's base in the same folder, else in the project, else to the blocks that have
 * the target as an alias in the same folder.
 */
function linkResolver(
  placed: readonly { readonly path: string; readonly draft: SpecDraft }[],
  ids: readonly string[],
): (link: DraftLink, path: string) => readonly string[] {
  const known = new Map<string, { id: string; folder: string }[]>();
  const aliased = new Map<string, string[]>();
  for (const [index, { path, draft }] of placed.entries()) {
    const id = ids[index] ?? "";
    const folder = folderOf(path);
    const base = draft.id.kind === "sequence" ? id : draft.id.value;
    const targets = known.get(base) ?? [];
    targets.push({ id, folder });
    known.set(base, targets);
    for (const alias of draft.aliases ?? []) {
      const name = `${folder}\n${alias}`;
      const same = aliased.get(name);
      if (same === undefined) aliased.set(name, [id]);
      else same.push(id);
    }
  }
  return ({ target }, path) => {
    const folder = folderOf(path);
    const targets = known.get(target);
    const nearest = targets?.find((each) => each.folder === folder) ?? targets?.[0];
    if (nearest !== undefined) return [nearest.id];
    const same = aliased.get(`${folder}\n${target}`) ?? [];
    return same.length === 1 || target.endsWith("*") ? same : [];
  };
}

/** The id that an adapter asks for, and the place of the block for a diagnostic. */
interface IdRequest {
  readonly id: DraftId;
  /** POSIX, relative to the project root. */
  readonly path: string;
  /** 1-based first line of the block. */
  readonly line: number;
}

interface AssignedIds {
  /** One id per request, in the order of the requests. */
  readonly ids: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Assigns an id to every block of a project. The requests are in path, then position order.
 *
 * - `declared` ids are kept; from the second one on, each is a `duplicate-id` error.
 * - `sequence` ids are `<prefix><n>`, n counted from zero per prefix.
 * - The first block of a base id X gets X, unless a file declares X; the others get, …, in order, without any X-k that
 *   some other block has as its base or declared id.
 *
 * So the ids of a base depend only on its own blocks and on which X-k are bases or declared, and two bases never give the same
 * id: X-k belongs only to the base X. An index can update the ids base by base.
 */
export function assignIds(requests: readonly IdRequest[]): AssignedIds {
  const groups = new Map<string, { readonly kinds: DraftId["kind"][]; readonly positions: number[] }>();
  const taken = new Set<string>();
  const firstRequests = new Map<string, IdRequest>();
  const diagnostics: Diagnostic[] = [];
  for (const [place, request] of requests.entries()) {
    const { id } = request;
    const base = id.kind === "sequence" ? id.prefix : id.value;
    const group = groups.get(base) ?? { kinds: [], positions: [] };
    group.kinds.push(id.kind);
    group.positions.push(place);
    groups.set(base, group);
    if (id.kind === "sequence") continue;
    taken.add(base);
    if (id.kind === "base") continue;
    const first = firstRequests.get(base);
    if (first === undefined) firstRequests.set(base, request);
    else diagnostics.push(duplicateId(base, request, first));
  }
  const ids = new Array<string>(requests.length).fill("");
  for (const [base, { kinds, positions }] of groups) {
    const numbers = numberGroup(base, { kinds, isTaken: (id) => taken.has(id) });
    for (const [at, place] of positions.entries()) ids[place] = toId(kinds[at], base, numbers[at] ?? 1);
  }
  return { ids, diagnostics };
}

/** The id of a block from its kind, base and number. */
export function toId(kind: DraftId["kind"] | undefined, base: string, n: number): string {
  if (kind === "sequence") return `${base}${n}`;
  return kind === "base" && n > 1 ? `${base}-${n}` : base;
}

interface IdGroup {
  /** The kinds of the ids that the blocks of one base ask for, in path, then position order. */
  readonly kinds: readonly DraftId["kind"][];
  /** Whether some block has an id as its base or declares it. */
  readonly isTaken: (id: string) => boolean;
}

/** Numbers the blocks of one base: the number is the `n` of `toId`. */
export function numberGroup(base: string, { kinds, isTaken }: IdGroup): number[] {
  let sequence = 0;
  // A declared id belongs only to its block: other blocks with this base count from 2.
  let last = kinds.includes("declared") ? 1 : 0;
  return kinds.map((kind) => {
    if (kind === "declared") return 1;
    if (kind === "sequence") {
      sequence += 1;
      return sequence - 1;
    }
    last += 1;
    while (last > 1 && isTaken(`${base}-${last}`)) last += 1;
    return last;
  });
}

/** Returns X for X-3: the base that could assign the same id. */
export function parentBaseOf(base: string): string | undefined {
  const hyphen = base.lastIndexOf("-");
  return hyphen > 0 && /^[1-9]\d*$/.test(base.slice(hyphen + 1)) ? base.slice(0, hyphen) : undefined;
}

/** The `duplicate-id` error of a block whose file declares an id that an earlier one declares. */
export function duplicateId(
  id: string,
  place: Omit<IdRequest, "id">,
  first: Omit<IdRequest, "id">,
): Diagnostic {
  return {
    severity: "error",
    rule: "duplicate-id",
    message: `The id "${id}" is already declared in ${first.path}, line ${first.line}.`,
    path: place.path,
    line: place.line,
    id,
    field: "id",
  };
}

/** The fields of a block that come from the project and not from its draft. */
interface DraftResolution {
  readonly id: string;
  /** POSIX, relative to the project root. */
  readonly path: string;
  readonly related_specs?: readonly string[];
  readonly code_refs?: readonly string[];
  readonly test_refs?: readonly string[];
  /** Dates from the history of the file; dates of the draft override them. */
  readonly created_at?: string;
  readonly updated_at?: string;
  readonly author?: string;
}

/** Converts a draft to a block. Lists start with the values that the file declares; empty lists are left out. */
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

/** Renders the blocks of each file with `contentOf`, in a format that can express all of them. */
export function renderFiles(
  blocks: readonly SpecBlock[],
  contentOf: (path: string, blocks: readonly SpecBlock[]) => string,
): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: contentOf(path, own),
  }));
  return { files, losses: [] };
}

/** The blocks of each file, files and blocks in the order in which a project lists them. */
function blocksByPath(blocks: readonly SpecBlock[]): { path: string; blocks: SpecBlock[] }[] {
  const files = new Map<string, SpecBlock[]>();
  for (const block of blocks) {
    const file = files.get(block.path);
    if (file === undefined) files.set(block.path, [block]);
    else file.push(block);
  }
  // A search result is ranked, so blocks are sorted by their place in the source. Sorting is stable, so blocks without a place
  // keep their order.
  return [...files]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([path, own]) => ({
      path,
      blocks: own.sort((one, other) => startOf(one) - startOf(other)),
    }));
}

function startOf(block: SpecBlock): number {
  return block.metadata.source?.start_line ?? 0;
}

/**
 * Converts a block to the section it was read from: `metadata.level` (0 for text before the first heading) and
 * `metadata.parents`. A block without a level becomes a second-level section.
 */
export function toWritableSegment(block: SpecBlock): WritableSegment {
  const { level, parents } = block.metadata;
  if (level === 0) return { level: 0, parents: [], body: block.content };
  return {
    title: block.title,
    level: typeof level === "number" ? level : 2,
    parents: Array.isArray(parents) ? parents.filter(isParent) : [],
    body: block.content,
  };
}

function isParent(value: unknown): value is SegmentParent {
  if (typeof value !== "object" || value === null || !("title" in value) || !("level" in value)) return false;
  return typeof value.title === "string" && typeof value.level === "number";
}

/** Adds front matter to a text. Without front matter, adds a line break before a text that starts like it. */
export function withFrontMatter(frontMatter: unknown, body: string): string {
  if (typeof frontMatter === "string" && frontMatter !== "") {
    return body === "" ? `---\n${frontMatter}\n---\n` : `---\n${frontMatter}\n---\n\n${body}`;
  }
  return body.startsWith("---") ? `\n${body}` : body;
}
