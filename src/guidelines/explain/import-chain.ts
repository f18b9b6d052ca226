import type { AppliedGuideline } from "../../protocol/guideline-query.ts";
import { type FileKind, parseWholeFile } from "../adapters/whole-file.ts";
import { folderOf } from "../folders.ts";
import { assignGuidelineIds } from "../guideline-id.ts";
import { type GuidelineRecord, toGuideline } from "../guideline-record.ts";
import { projectPath } from "../match/guideline-matcher.ts";
import { type ExplainRequest, type ToolView, tokensOf } from "./explain-request.ts";

/** The rules by which one tool follows imports. */
export interface ImportRules {
  /** The length of the longest chain of imports. */
  readonly maxHops: number;
  /** Whether paths are relative to the importing file; else to the project root. */
  readonly relativeToFile: boolean;
  readonly limitRule: string;
  readonly kind: Omit<FileKind, "scope">;
}

/** Adds guidelines to a view, each followed by the files that it imports; every file comes once. */
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

  // An import of an alias is one of the file itself.
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
      // An imported file is read where it is imported, also when the tool would find it by itself.
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
