import { readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, sep } from "node:path";
import { exportGuidelines } from "../../guidelines/convert/conversion-targets.ts";
import { explainFile } from "../../guidelines/explain/explain-file.ts";
import { assignGuidelineIds, type GuidelineRecord, toGuideline } from "../../guidelines/guideline-record.ts";
import { createGuidelineMatcher, type GuidelineMatcher } from "../../guidelines/match/guideline-matcher.ts";
import { listGuidelines } from "../../guidelines/match/list-guidelines.ts";
import { readGuidelines } from "../../guidelines/read-guidelines.ts";
import { withSamples } from "../../guidelines/samples.ts";
import { type ToolId, toolInfo, type UserFile } from "../../guidelines/tools/tool-table.ts";
import type { ProjectGuidelines } from "../project.ts";
import type { ProjectIndex } from "../project-index.ts";
import { decodeText } from "../scan/source-reader.ts";

/** Answers questions about guidelines from an index; what it derives is kept until the index changes. */
export interface GuidelineReads
  extends Pick<ProjectGuidelines, "list" | "get" | "diagnostics" | "explain" | "export"> {
  /** The project's own guidelines, or the samples where it has none. In path, then position order. */
  records(): readonly GuidelineRecord[];
  record(id: string): GuidelineRecord | undefined;
  matcher(): GuidelineMatcher;
}

export interface GuidelineReadsOptions {
  readonly projectName: string;
  readonly isGuidelineFile: (path: string) => boolean;
}

export function createGuidelineReads(
  index: ProjectIndex,
  { projectName, isGuidelineFile }: GuidelineReadsOptions,
): GuidelineReads {
  // While guideline files are not read yet, the project must not show the samples.
  const hasFiles = () => index.cached("has-guidelines", () => index.files().some(isGuidelineFile));
  const isIncomplete = () => index.indexing() !== undefined && (index.files().length === 0 || hasFiles());
  const records = () =>
    isIncomplete()
      ? index.guidelineRecords()
      : index.cached("guidelines-or-samples", () => withSamples(index.guidelineRecords()));
  const matcher = () => index.cached("guideline-matcher", () => createGuidelineMatcher(records()));
  const byId = () =>
    index.cached("guidelines-by-id", () => new Map(records().map((record) => [record.id, record])));
  return {
    records,
    matcher,
    record: (id) => byId().get(id),
    list(query) {
      const list = listGuidelines(records(), query, matcher());
      const indexing = index.indexing();
      return indexing === undefined ? list : { ...list, indexing };
    },
    get(id) {
      const record = byId().get(id);
      return record && toGuideline(record);
    },
    diagnostics: index.guidelineDiagnostics,
    explain: (file, tool, { user = false } = {}) =>
      explainFile({
        records: records(),
        matcher: matcher(),
        file,
        tool,
        readText: index.readText,
        ...(user && { userRecords: (id) => readUserGuidelines(id) }),
      }),
    export: ({ format }) => exportGuidelines(records(), format, projectName),
  };
}

/** Larger files are not instructions written by hand. */
const maxBytes = 1024 * 1024;

/**
 * The guidelines that a tool reads from the user's home folder, named `~/…`. Callers ask for them explicitly: they belong to the
 * user, not to the repository.
 */
export function readUserGuidelines(tool: ToolId, home: string = homedir()): readonly GuidelineRecord[] {
  const found = toolInfo(tool).user.flatMap((file) => recordsOf(file, home));
  // Codex reads the first of its two files.
  const [first] = found;
  return tool === "codex" ? found.filter(({ source_file }) => source_file === first?.source_file) : found;
}

function recordsOf(file: UserFile, home: string): GuidelineRecord[] {
  if (!file.path.endsWith("/")) return read(home, file.path, file.like);
  return listed(join(home, file.path)).flatMap((name) => read(home, file.path + name, file.like + name));
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .map((name) => name.split(sep).join("/"))
      .sort();
  } catch {
    return [];
  }
}

function read(home: string, path: string, like: string): GuidelineRecord[] {
  try {
    const stats = statSync(join(home, path));
    if (!stats.isFile() || stats.size > maxBytes) return [];
    const { text } = decodeText(readFileSync(join(home, path)), path);
    const name = `~/${path}`;
    const { records } = readGuidelines({ path: like, text });
    return assignGuidelineIds(
      name,
      records.map(({ id: _id, source_file: _file, position: _at, ...draft }) => ({ ...draft, scope: "" })),
    );
  } catch {
    return [];
  }
}
