import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { DraftLink, ParsedSpecs, SpecDraft } from "../adapter.ts";
import { assignIds } from "./assign-ids.ts";
import { resolveMentions } from "./resolve-mentions.ts";
import { toSpecBlock } from "./to-spec-block.ts";

/** A file of a project, read by an adapter. */
export interface ParsedFile {
  /** POSIX, relative to the project root. */
  readonly path: string;
  readonly parsed: ParsedSpecs;
}

export interface AssembledBlocks {
  /** In path, then position order. */
  readonly blocks: readonly SpecBlock[];
  /** Diagnostics of the parsers, and ids declared twice. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Makes one set of blocks of parsed files, in memory: ids over all of them, links to the blocks they
 * name, mentions to the files that `exists` knows. What an index does for a project on disk.
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
 * A link means the first block of its target's base in the same folder, else in the project, else what
 * has the target for an alias in the same folder.
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
    const one = targets?.find((each) => each.folder === folder) ?? targets?.[0];
    if (one !== undefined) return [one.id];
    const same = aliased.get(`${folder}\n${target}`) ?? [];
    return same.length === 1 || target.endsWith("*") ? same : [];
  };
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
