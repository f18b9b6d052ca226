import { readGuidelines } from "../../guidelines/read-guidelines.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { ParsedSpecs, SpecAdapter, SpecSource } from "../../specs/adapter.ts";
import { statedAuthor } from "../../specs/author-name.ts";
import { readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import type { FileEntry } from "../index/file-entry.ts";
import { toBlockEntry } from "./block-entry.ts";
import { decodeText } from "./decode-text.ts";
import { draftProblems } from "./draft-problems.ts";
import type { SourceCatalog } from "./source-catalog.ts";
import type { SourceRead } from "./source-reader.ts";
import type { StoredDiagnostics } from "./stored-diagnostics.ts";

export interface ParseOptions {
  readonly read: Exclude<SourceRead, { kind: "gone" }>;
  readonly catalog: SourceCatalog;
  /** The real path of the file, then its aliases; the first that an adapter knows decides which one reads it. */
  readonly names: readonly string[];
}

/** Makes an index entry of what was read at a path: the blocks and guidelines of all its adapters. */
export function parseSource(path: string, { read, catalog, names }: ParseOptions): FileEntry {
  const specName = names.find((name) => catalog.specAdapterFor(name) !== undefined);
  const adapter = specName === undefined ? undefined : catalog.specAdapterFor(specName);
  const isGuideline = names.some(catalog.isGuidelineFile);
  const none = { path, hash: "", guidelines: "", guidelineCount: 0, blocks: [], features: [] };
  if (read.kind === "problem") {
    const diagnostics = [read.diagnostic];
    return {
      ...none,
      diagnostics: toJson({ specs: diagnostics, ...(isGuideline && { guidelines: diagnostics }) }),
    };
  }
  const { text, diagnostics } = decodeText(read.bytes, path);
  const specs =
    adapter === undefined ? undefined : asFile(parseSpecs(adapter, { path: specName ?? path, text }), names);
  const guidelines = isGuideline ? readGuidelines({ path, text, aliases: names.slice(1) }) : undefined;
  const blocks = specs?.drafts.map(toBlockEntry) ?? [];
  const features = new Set<string>();
  for (const { feature } of specs?.drafts ?? []) if (feature !== undefined) features.add(feature);
  const specProblems = specs && [...diagnostics, ...specs.diagnostics, ...draftProblems(specs.drafts, path)];
  const guidelineProblems = guidelines && [...diagnostics, ...guidelines.diagnostics];
  return {
    path,
    hash: read.hash,
    guidelines:
      guidelines === undefined || guidelines.records.length === 0 ? "" : JSON.stringify(guidelines.records),
    guidelineCount: guidelines?.records.length ?? 0,
    diagnostics: toJson({
      ...(specProblems?.length && { specs: specProblems }),
      ...(guidelineProblems?.length && { guidelines: guidelineProblems }),
    }),
    blocks,
    features: [...features],
  };
}

/** What an adapter read under one of a file's names, as what the file is. */
function asFile(
  { drafts, diagnostics }: ParsedSpecs,
  [path = "", ...aliases]: readonly string[],
): ParsedSpecs {
  if (aliases.length === 0) return { drafts, diagnostics };
  return {
    drafts: drafts.map((draft) => ({ ...draft, metadata: { ...draft.metadata, aliases } })),
    diagnostics: diagnostics.map((diagnostic) =>
      aliases.includes(diagnostic.path) ? { ...diagnostic, path } : diagnostic,
    ),
  };
}

function toJson(diagnostics: StoredDiagnostics): string {
  return diagnostics.specs === undefined && diagnostics.guidelines === undefined
    ? ""
    : JSON.stringify(diagnostics);
}

/** Gives all blocks of a file the author that its front matter names. */
function withAuthor(parsed: ParsedSpecs, { path, text }: SpecSource): ParsedSpecs {
  if (!text.startsWith("---") || !/author/i.test(text) || /\.(?:ya?ml|jsonl?)$/i.test(path)) return parsed;
  const author = statedAuthor(readFrontMatter(scanMarkdown(text)).data);
  if (author === undefined) return parsed;
  const drafts = parsed.drafts.map((draft) => ({ ...draft, metadata: { author, ...draft.metadata } }));
  return { ...parsed, drafts };
}

/** An adapter promises not to throw; one of the user's own may break that, and stops nothing. */
function parseSpecs(adapter: SpecAdapter, source: SpecSource): ParsedSpecs {
  try {
    return withAuthor(adapter.parse(source), source);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `The adapter "${adapter.name}" failed on this file: ${reason}`;
    const problem: Diagnostic = {
      severity: "error",
      rule: "structure",
      code: "adapter_failed",
      message,
      path: source.path,
    };
    return { drafts: [], diagnostics: [problem] };
  }
}
