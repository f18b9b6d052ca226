import { textTokens } from "../../base/text-size.ts";
import type { AppliedGuideline, ExplainTool, ShadowedGuideline } from "../../protocol/guideline-query.ts";
import { type FileKind, parseWholeFile } from "../adapters/whole-file.ts";
import {
  assignGuidelineIds,
  folderOf,
  type GuidelineRecord,
  nameOf,
  toGuideline,
} from "../guideline-record.ts";
import { type GuidelineMatch, type GuidelineMatcher, projectPath } from "../match/match-guidelines.ts";
import { readIndex, type ToolId, toolInfo } from "../tools/tool-table.ts";

/** GitHub Copilot: all instructions together; of AGENTS.md the nearest, CLAUDE.md and GEMINI.md only without one. */
export function explainCopilot(request: ExplainRequest, matches: readonly GuidelineMatch[]): ToolView {
  const agents = explainAgents(request, matches, "nearest");
  const others = readBy("copilot", matches).filter(({ record }) => !isNamed(record, "AGENTS.md"));
  const copilotMatches = others.filter(({ record }) => record.tool === "copilot");
  const foreign = others.filter(({ record }) => record.tool !== "copilot");
  const nearest = agents.applied[0];
  const by = {
    shadowed_by: nearest?.guideline.source_file ?? "",
    rule: "Copilot reads CLAUDE.md or GEMINI.md in place of AGENTS.md.",
  };
  const ordered = inReadingOrder(copilotMatches, byTable("copilot"));
  const isOnRequest = (match: GuidelineMatch): boolean => rankOf(match.record) > 0;
  const [first] = foreign;
  const read =
    nearest === undefined ? foreign.filter(({ record }) => record.tool === first?.record.tool) : [];
  return {
    applied: [
      ...ordered.filter((match) => !isOnRequest(match)).map(toApplied),
      ...agents.applied,
      ...read.map(toApplied),
      ...ordered.filter(isOnRequest).map(toApplied),
    ],
    shadowed: [
      ...agents.shadowed,
      ...(nearest === undefined ? [] : foreign.map((match) => ({ ...toApplied(match), ...by }))),
    ],
  };
}

/** Gemini CLI: every GEMINI.md from the root down, each followed by its imports. */
export function explainGemini(request: ExplainRequest, matches: readonly GuidelineMatch[]): ToolView {
  const view: ToolView = { applied: [], shadowed: [] };
  const chain = createImportChain(request, {
    maxHops: 5,
    relativeToFile: true,
    limitRule: "Gemini CLI follows imports over at most five files.",
    kind: { source_type: "gemini", tool: "gemini", imports: "at" },
  });
  for (const match of inReadingOrder(readBy("gemini", matches), byTable("gemini")))
    chain.add(toApplied(match), match.record, view);
  return view;
}

/** Windsurf and Cline read all files of the table, in its order; guidelines loaded on request come last. */
export function explainTogether(tool: "windsurf" | "cline", matches: readonly GuidelineMatch[]): ToolView {
  return { applied: inReadingOrder(readBy(tool, matches), byTable(tool)).map(toApplied), shadowed: [] };
}

/** Zed: the first existing file of its list, whole; the others are not read. */
export function explainZed(matches: readonly GuidelineMatch[]): ToolView {
  const ordered = inReadingOrder(readBy("zed", matches), byTable("zed"));
  const [first] = ordered;
  if (first === undefined) return { applied: [], shadowed: [] };
  const isFirst = ({ record }: GuidelineMatch): boolean => record.source_file === first.record.source_file;
  const by = { shadowed_by: nameOf(first.record), rule: "Zed reads the first file of its list only." };
  return {
    applied: ordered.filter(isFirst).map(toApplied),
    shadowed: ordered.filter((match) => !isFirst(match)).map((match) => ({ ...toApplied(match), ...by })),
  };
}

/** The guidelines of the files that a tool reads by the table, each once. */
export function readBy(tool: ToolId, matches: readonly GuidelineMatch[]): readonly GuidelineMatch[] {
  const best = new Map<string, GuidelineMatch>();
  for (const match of matches) {
    if (match.record.source_type === "sample") continue;
    const index = readIndex(tool, nameOf(match.record));
    if (index === -1) continue;
    const known = best.get(match.record.id);
    if (known === undefined || index < readIndex(tool, nameOf(known.record)))
      best.set(match.record.id, match);
  }
  return [...best.values()];
}

/** The order of the table; guidelines loaded on request come last. */
function byTable(tool: ToolId): (record: GuidelineRecord) => number {
  const { length } = toolInfo(tool).reads;
  return (record) => rankOf(record) * length + readIndex(tool, nameOf(record));
}

function rankOf(record: GuidelineRecord): number {
  return { always: 0, pattern: 0, auto: 1, manual: 2 }[record.inclusion];
}

export function isNamed(record: GuidelineRecord, file: string): boolean {
  const name = nameOf(record);
  return name === file || name.endsWith(`/${file}`);
}

/** Codex stops reading instruction files after this many bytes. */
const codexByteLimit = 32 * 1024;

/**
 * AGENTS.md under both policies in use. `nearest`: only the file closest to the edited one applies, as agents.md specifies.
 * `all`: every file from the root down applies, up to 32 KiB, as Codex reads them. Under both, a folder has at most one file, and
 * `AGENTS.override.md` replaces `AGENTS.md`.
 */
export function explainAgents(
  request: ExplainRequest,
  matches: readonly GuidelineMatch[],
  policy: "nearest" | "all",
): ToolView {
  const view: ToolView = { applied: [], shadowed: [] };
  const agentsMatches = matches.filter(
    ({ record }) => record.tool === "agents" && record.source_type !== "sample",
  );
  const byFile = Map.groupBy(agentsMatches, ({ record }) => nameOf(record));
  const files = readingFiles([...byFile.keys()], (file, override) => {
    const rule = "AGENTS.override.md takes the place of AGENTS.md in its folder.";
    shadow(view, byFile.get(file), { shadowed_by: override, rule });
  });
  const nearest = files.at(-1);
  let bytes = 0;
  for (const file of files) {
    const members = byFile.get(file) ?? [];
    if (policy === "nearest" && nearest !== undefined && file !== nearest) {
      shadow(view, members, { shadowed_by: nearest, rule: "The AGENTS.md closest to the file wins." });
      continue;
    }
    if (policy === "all" && bytes >= codexByteLimit) {
      const last = view.applied.at(-1)?.guideline.source_file ?? "";
      shadow(view, members, { shadowed_by: last, rule: "Codex stops reading after 32 KiB of instructions." });
      continue;
    }
    view.applied.push(...members.map(toApplied));
    bytes += sizeOf(request, file, members);
  }
  return view;
}

/** The files from the root down, one per folder, and those that an override replaces. */
function readingFiles(
  files: readonly string[],
  replaced: (file: string, override: string) => void,
): string[] {
  const known = new Set(files);
  const read = files.filter((file) => {
    const override = file.replace(/AGENTS\.md$/, "AGENTS.override.md");
    if (override === file || !known.has(override)) return true;
    replaced(file, override);
    return false;
  });
  return read.sort((a, b) => depthOf(folderOf(a)) - depthOf(folderOf(b)));
}

function shadow(
  view: ToolView,
  members: readonly GuidelineMatch[] | undefined,
  by: { readonly shadowed_by: string; readonly rule: string },
): void {
  for (const match of members ?? []) view.shadowed.push({ ...toApplied(match), ...by });
}

function sizeOf(request: ExplainRequest, file: string, members: readonly GuidelineMatch[]): number {
  const text = request.readText?.(file) ?? members.map(({ record }) => record.content).join("\n");
  return new TextEncoder().encode(text).length;
}

/** The input of `explainFile`. */
export interface ExplainRequest {
  /** All guidelines of the project, in the order of `compareRecords`. */
  readonly records: readonly GuidelineRecord[];
  /** Compiled from the same records. */
  readonly matcher: GuidelineMatcher;
  /** A project-relative path; it need not exist. */
  readonly file: string;
  /** Without it, the view of every tool, AGENTS.md by the nearest file. */
  readonly tool?: ExplainTool | undefined;
  /** The text of a project file, for imports; nothing where it cannot be read. */
  readonly readText?: (path: string) => string | undefined;
  /**
   * Whether Claude Code reads AGENTS.md without an import. Default: if the project has no CLAUDE.md, like Claude Code since
   * 2.1.277.
   */
  readonly claudeReadsAgents?: boolean;
  /** Returns the guidelines of the user's home folder for a tool. Default: no guidelines. */
  readonly userRecords?: (tool: ToolId) => readonly GuidelineRecord[];
}

/** The view of one tool, before it is an answer. */
export interface ToolView {
  readonly applied: AppliedGuideline[];
  readonly shadowed: ShadowedGuideline[];
}

export function toApplied(match: GuidelineMatch): AppliedGuideline {
  const { record, reason, glob } = match;
  const detail = glob ?? ignoredGlobs(record);
  return {
    guideline: toGuideline(record),
    line: record.span.start_line,
    tokens: tokensOf(record),
    reason,
    via: record.read_as,
    detail,
  };
}

/** Its heading and its content. */
function tokensOf(record: Pick<GuidelineRecord, "title" | "content">): number {
  return textTokens(`## ${record.title}\n\n${record.content}`);
}

function ignoredGlobs(record: GuidelineRecord): string | undefined {
  if (record.inclusion !== "always" || record.globs.length === 0) return undefined;
  return `(its pattern ${record.globs.join(",")} is ignored)`;
}

/** Sorts by `rankOf`, then from the root folder down, then by file and position. */
export function inReadingOrder(
  matches: readonly GuidelineMatch[],
  rankOf: (record: GuidelineRecord) => number,
): GuidelineMatch[] {
  const ranked = matches.map((match, index) => ({ match, index, rank: rankOf(match.record) }));
  ranked.sort(
    (a, b) =>
      a.rank - b.rank || depthOf(a.match.record.scope) - depthOf(b.match.record.scope) || a.index - b.index,
  );
  return ranked.map(({ match }) => match);
}

/** The number of folders between the root and a folder. */
export function depthOf(folder: string): number {
  return folder === "" ? 0 : folder.split("/").length;
}

/** The rules by which one tool follows imports. */
interface ImportRules {
  /** The length of the longest chain of imports. */
  readonly maxHops: number;
  /** Whether paths are relative to the importing file; else to the project root. */
  readonly relativeToFile: boolean;
  readonly limitRule: string;
  readonly kind: Omit<FileKind, "scope">;
}

/** Adds guidelines to a view, each followed by the files that it imports; adds every file once. */
export function createImportChain(
  request: ExplainRequest,
  rules: ImportRules,
): { add(applied: AppliedGuideline, record: GuidelineRecord, view: ToolView): void } {
  // Computed on demand: most files have no imports.
  let byFile: Map<string, GuidelineRecord[]> | undefined;
  const seen = new Set<string>();
  const beyond = new Set<string>();

  const recordsOf = (path: string): readonly GuidelineRecord[] => {
    byFile ??= Map.groupBy(request.records, (record) => record.source_file);
    const known = byFile.get(path);
    if (known !== undefined) return known;
    const text = request.readText?.(path);
    if (text === undefined) return [];
    const kind = { ...rules.kind, scope: folderOf(path) };
    const { drafts } = parseWholeFile({ path, text }, kind, () => ({
      inclusion: "always",
      globs: [],
      tags: [],
    }));
    return assignGuidelineIds(path, drafts);
  };

  // An import of an alias is an import of the file.
  let aliases: Map<string, string> | undefined;
  const realPath = (path: string | undefined): string | undefined => {
    aliases ??= new Map(
      request.records.flatMap(({ aliases: names = [], source_file }) =>
        names.map((name) => [name, source_file]),
      ),
    );
    return path === undefined ? undefined : (aliases.get(path) ?? path);
  };

  const follow = (record: GuidelineRecord, chain: readonly string[], view: ToolView): void => {
    for (const { path: written } of record.imports) {
      const path = realPath(resolveImport(written, rules.relativeToFile ? folderOf(record.source_file) : ""));
      if (path === undefined || seen.has(path) || chain.includes(path)) continue;
      const isBeyond = chain.length > rules.maxHops;
      if (isBeyond && beyond.has(path)) continue;
      (isBeyond ? beyond : seen).add(path);
      for (const imported of recordsOf(path)) {
        const guideline = toGuideline(imported);
        const detail = chain.join(" > ");
        const line = imported.span.start_line;
        const entry = { guideline, line, tokens: tokensOf(imported), reason: "import", detail } as const;
        if (isBeyond) {
          view.shadowed.push({ ...entry, shadowed_by: record.source_file, rule: rules.limitRule });
        } else {
          view.applied.push(entry);
          follow(imported, [...chain, path], view);
        }
      }
    }
  };

  return {
    add(applied, record, view) {
      // The tool reads an imported file at the place of the import, even if it would also find the file without it.
      if (seen.has(record.source_file) && view.applied.some((each) => each.guideline.id === record.id))
        return;
      seen.add(record.source_file);
      view.applied.push(applied);
      follow(record, [record.source_file], view);
    },
  };
}

/** A project path; undefined for a path outside of the project (`~/.claude/x.md`, `../../x`). */
export function resolveImport(written: string, folder: string): string | undefined {
  if (written.startsWith("~") || written.startsWith("/")) return undefined;
  const parts = folder === "" ? [] : folder.split("/");
  for (const part of written.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return undefined;
    } else if (part !== "" && part !== ".") parts.push(part);
  }
  return projectPath(parts.join("/"));
}
