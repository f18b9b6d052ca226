import { compileGlob } from "../../base/glob/glob.ts";
import { hasAtMostCodePoints } from "../../base/text-size.ts";
import { thrownText } from "../../base/thrown.ts";
import {
  guidelineAdapterFor,
  guidelineKeysOf,
  readGuidelines,
  ruleFolders,
} from "../../guidelines/read-guidelines.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { frameworks, lifecycles, maxSummaryLength, priorities, specTypes } from "../../protocol/enums.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource } from "../../specs/adapter.ts";
import { type FrontMatterKeys, readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import { statedAuthor } from "../../specs/model/block-title.ts";
import { isFixturePath } from "../../specs/model/mentions.ts";
import { validateBlock } from "../../specs/model/validate.ts";
import { checkedAdapter, createSpecRegistry, toolLabel } from "../../specs/registry.ts";
import { isText, type ProjectConfig } from "../project-config.ts";
import { baseOf, toBlockEntry } from "../store/block-row.ts";
import type { FileEntry } from "../store/index-writer.ts";
import { decodeText, type SourceRead } from "./source-reader.ts";

/** Decides by the path alone which files of a project are read, and by which adapter. */
export interface SourceCatalog {
  specAdapterFor(path: string): SpecAdapter | undefined;
  /** The name that people know the tool of a file or feature by. */
  toolOf(of: Pick<SpecBlock, "framework" | "path">): string;
  isGuidelineFile(path: string): boolean;
  isSource(path: string): boolean;
  /** The keys of front matter that the tools of a file read. */
  frontMatterOf(path: string): FrontMatterKeys;
  /** Whether a folder holds rules or specs that its tool reads from the disk, or is on the way to such a folder. */
  isToolFolder(path: string): boolean;
  /** Identifies the configuration that the content of an index depends on. */
  readonly fingerprint: string;
}

/** Creates the catalog of a configuration. */
export function createSourceCatalog(config: ProjectConfig = {}): SourceCatalog {
  const userAdapters = (config.specs?.adapters ?? []).map(checkedAdapter);
  const registry = createSpecRegistry({
    adapters: userAdapters,
    custom: config.specs?.custom ?? [],
  });
  const isSpecAllowed = createFilter(config.specs);
  // Spec files that the configuration names are read even if they look like fixtures.
  const readsFixtures = (config.specs?.include?.length ?? 0) > 0;
  const customNames = new Set(["custom", ...userAdapters.map(({ name }) => name)]);
  const isGuidelineAllowed = createFilter(config.guidelines);
  const specAdapterFor = (path: string): SpecAdapter | undefined => {
    const adapter = registry.adapterFor(path);
    if (adapter === undefined || !isSpecAllowed(path)) return undefined;
    return readsFixtures || customNames.has(adapter.name) || !isFixturePath(path, adapter.name)
      ? adapter
      : undefined;
  };
  const isGuidelineFile = (path: string): boolean =>
    guidelineAdapterFor(path) !== undefined && isGuidelineAllowed(path);
  return {
    specAdapterFor,
    toolOf: ({ framework, path }) =>
      userAdapters.find(
        (own) =>
          own.framework === framework &&
          (own.matches(path) || own.folders?.some((name) => `/${path}/`.includes(`/${name}/`))),
      )?.label ?? toolLabel({ framework, path }),
    isGuidelineFile,
    isSource: (path) => specAdapterFor(path) !== undefined || isGuidelineFile(path),
    frontMatterOf: (path) => ({
      ...specAdapterFor(path)?.keys,
      ...(isGuidelineFile(path) ? guidelineKeysOf(path) : {}),
    }),
    isToolFolder: createFolderTest([
      ...ruleFolders,
      ...registry.adapters.flatMap(({ folders = [] }) => folders),
    ]),
    fingerprint: JSON.stringify([
      config.specs?.include,
      config.specs?.exclude,
      config.specs?.custom,
      config.guidelines?.include,
      config.guidelines?.exclude,
      // Only its code distinguishes versions of a user's adapter.
      (config.specs?.adapters ?? []).map(({ name, folders, matches, parse }) => [
        name,
        folders,
        String(matches),
        String(parse),
      ]),
    ]),
  };
}

/** `.cursor/rules` accepts `.cursor`, `.cursor/rules` and all below, in any folder; not `.cursor/cache`. */
function createFolderTest(folders: readonly string[]): (path: string) => boolean {
  const patterns = [...new Set(folders)].map((folder) => {
    const [first = "", ...others] = folder.split("/").map((name) => name.replace(/[^\w-]/g, "\\$&"));
    const inner = others.reduceRight((rest, name) => `(?:/${name}${rest})?`, "(?:/.*)?");
    return `${first}${inner}`;
  });
  const pattern = new RegExp(`(?:^|/)(?:${patterns.join("|")})$`, "s");
  return (path) => pattern.test(path);
}

interface Globs {
  readonly include?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
}

function createFilter({ include = [], exclude = [] }: Globs = {}): (path: string) => boolean {
  const included = include.map(compileGlob);
  const excluded = exclude.map(compileGlob);
  return (path) =>
    (included.length === 0 || included.some((glob) => glob.matches(path))) &&
    !excluded.some((glob) => glob.matches(path));
}

/** Diagnostics of a file as stored: for the lists of specs, of guidelines, or of both. */
export interface StoredDiagnostics {
  readonly specs?: readonly StoredDiagnostic[];
  readonly guidelines?: readonly Diagnostic[];
}

interface ParseOptions {
  readonly read: Exclude<SourceRead, { kind: "gone" }>;
  readonly catalog: SourceCatalog;
  /** The real path of the file, then its aliases; the first name that an adapter accepts selects the adapter. */
  readonly names: readonly string[];
  /** The present entry of the index for the file. */
  readonly known?: KnownFile;
}

export type KnownFile = Pick<FileEntry, "hash" | "aliases" | "diagnostics">;

/**
 * Parses a source into its index entry: the blocks and guidelines of all its adapters. Undefined when the index has it already:
 * the same bytes under the same names, or the same problem.
 */
export function parseSource(
  path: string,
  { read, catalog, names, known }: ParseOptions,
): FileEntry | undefined {
  const aliases = names.length > 1 ? JSON.stringify(names.slice(1)) : "";
  const hash = read.kind === "bytes" ? read.hash : "";
  const isKnown = known?.hash === hash && known.aliases === aliases;
  if (isKnown && read.kind === "bytes") return undefined;
  const none = { path, hash: "", aliases, guidelines: "", guidelineCount: 0, blocks: [], features: [] };
  if (read.kind === "problem") {
    const problems = [read.diagnostic];
    const isGuideline = names.some(catalog.isGuidelineFile);
    const diagnostics = toJson({ specs: problems, ...(isGuideline && { guidelines: problems }) });
    return isKnown && known.diagnostics === diagnostics ? undefined : { ...none, diagnostics };
  }
  const { text, diagnostics } = decodeText(read.bytes, path);
  const { specs, guidelines } = readSourceText(path, { text, catalog, names });
  const blocks = specs?.drafts.map(toBlockEntry) ?? [];
  const features = new Set<string>();
  for (const { feature } of specs?.drafts ?? []) if (feature !== undefined) features.add(feature);
  const specProblems = specs && [...diagnostics, ...specs.diagnostics];
  const guidelineProblems = guidelines && [...diagnostics, ...guidelines.diagnostics];
  return {
    path,
    hash,
    aliases,
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

/** The specs and guidelines that the adapters of a file find in a text. */
export interface SourceText {
  /** Set for a spec file; its diagnostics include those of the validation rules. */
  readonly specs?: Pick<ParsedSpecs, "drafts"> & { readonly diagnostics: readonly StoredDiagnostic[] };
  /** Set for a guideline file. */
  readonly guidelines?: ReturnType<typeof readGuidelines>;
}

/** Reads a text of a file, on the disk or not, by all adapters of the file. */
export function readSourceText(
  path: string,
  { text, catalog, names }: Pick<ParseOptions, "catalog" | "names"> & { readonly text: string },
): SourceText {
  const specName = names.find((name) => catalog.specAdapterFor(name) !== undefined);
  const adapter = specName === undefined ? undefined : catalog.specAdapterFor(specName);
  const parsed = adapter && asFile(parseSpecs(adapter, { path: specName ?? path, text }), names);
  const isGuideline = names.some(catalog.isGuidelineFile);
  return {
    ...(parsed && {
      specs: {
        drafts: parsed.drafts,
        diagnostics: [...parsed.diagnostics, ...draftProblems(parsed.drafts, path)],
      },
    }),
    ...(isGuideline && { guidelines: readGuidelines({ path, text, aliases: names.slice(1) }) }),
  };
}

/** Results of an adapter under one of a file's names, moved to the real path. */
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

/** Adds the author in the front matter of a file to all its blocks. */
function withAuthor(parsed: ParsedSpecs, { path, text }: SpecSource): ParsedSpecs {
  if (!text.startsWith("---") || !/author/i.test(text) || /\.(?:ya?ml|jsonl?)$/i.test(path)) return parsed;
  const author = statedAuthor(readFrontMatter(scanMarkdown(text)).data);
  if (author === undefined) return parsed;
  const drafts = parsed.drafts.map((draft) => ({ ...draft, metadata: { author, ...draft.metadata } }));
  return { ...parsed, drafts };
}

/** Adapters must not throw. An adapter of the user's that does becomes a diagnostic. */
function parseSpecs(adapter: SpecAdapter, source: SpecSource): ParsedSpecs {
  try {
    return withAuthor(adapter.parse(source), source);
  } catch (error) {
    const reason = thrownText(error);
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

/** A diagnostic of the block at a position; its `id` is filled in when it is read. */
export type StoredDiagnostic = Diagnostic & { readonly position?: number };

/** Diagnostics of the validation rules for the drafts of a file. */
function draftProblems(drafts: readonly SpecDraft[], path: string): StoredDiagnostic[] {
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

/** A cheap check that nearly all drafts pass, so that few need the full rules. */
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
