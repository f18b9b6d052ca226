import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, sep } from "node:path";
import { attempt } from "../base/attempt.ts";
import { perObject } from "../base/remember.ts";
import { textTokens } from "../base/text-size.ts";
import { exportGuidelines } from "../guidelines/convert/conversion-targets.ts";
import { explainFile } from "../guidelines/explain/explain-file.ts";
import {
  assignGuidelineIds,
  type GuidelineRecord,
  nameOf,
  ruleIdOf,
  toGuideline,
} from "../guidelines/guideline-record.ts";
import { createIgnoreList } from "../guidelines/lint/ignore-findings.ts";
import { lintGuidelines } from "../guidelines/lint/lint-guidelines.ts";
import { type GuidelineMatcher, listGuidelines, matcherOf } from "../guidelines/match/match-guidelines.ts";
import { readGuidelines, withSamples } from "../guidelines/read-guidelines.ts";
import { lintSkills } from "../guidelines/skills/skill-format.ts";
import { type ToolId, toolInfo, type UserFile } from "../guidelines/tools/tool-table.ts";
import type { Diagnostic } from "../protocol/diagnostic.ts";
import type { SyncContext } from "./features/sync-guidelines.ts";
import type { ProjectGuidelines } from "./project.ts";
import type { ProjectConfig } from "./project-config.ts";
import type { ProjectIndex } from "./project-index.ts";
import { createSourceCatalog } from "./scan/source-catalog.ts";
import { decodeText } from "./scan/source-reader.ts";

interface ProjectGuidelinesOptions {
  readonly index: ProjectIndex;
  readonly name: string;
  readonly readOnly: boolean;
  readonly config: ProjectConfig;
}

/** Creates the guidelines of a project over its index. */
export function createProjectGuidelines(options: ProjectGuidelinesOptions): ProjectGuidelines {
  const { index, name, readOnly, config } = options;
  const { isGuidelineFile } = createSourceCatalog(config);
  const reads = createGuidelineReads(index, { projectName: name, isGuidelineFile });
  const inTurn = createQueue();

  /** Refreshes the index after a write, so that the next answer has it. */
  const refreshAfter = async <Result>(
    write: () => Promise<{ result: Result; written: readonly string[] }>,
  ) => {
    const { result, written } = await write();
    if (written.length > 0) await index.refresh({ folders: foldersOf(written) });
    return result;
  };

  /** Every name of a guideline file, through linked folders too. */
  const guidelinePaths = (): readonly string[] => {
    const names = index.guidelineRecords().flatMap((record) => {
      const otherFormats = record.readings?.map(({ read_as }) => read_as) ?? [];
      return [nameOf(record), ...otherFormats];
    });
    return [...new Set([...index.files(), ...names].filter(isGuidelineFile))].sort();
  };

  const syncContext = async (): Promise<SyncContext> => {
    await index.refresh();
    const { source, targets, with: tools } = config.guidelines ?? {};
    const { realOf } = index.aliases();
    const context = { root: index.root, readOnly, realOf, paths: guidelinePaths() };
    return { ...context, source, targets, with: tools, servers: config.mcp?.servers };
  };

  const lint = (): readonly Diagnostic[] =>
    index.cached("guideline-lint", () => {
      const ignored = createIgnoreList(config.lint?.ignore);
      const { readText } = index;
      const skills = lintSkills({ files: index.files(), readText });
      const rules = lintGuidelines(reads.records(), {
        files: index.files(),
        readText,
        hasPath: (path) => existsSync(join(index.root, path)),
        synced: config.guidelines,
        ignore: config.lint?.ignore,
      });
      return [...rules, ...skills.filter((finding) => !ignored.hasFinding(finding))];
    });

  const guidelines: ProjectGuidelines = {
    list: reads.list,
    get: reads.get,
    records: () => reads.records().filter(({ source_type }) => source_type !== "sample"),
    diagnostics: () =>
      index.cached("kept-guideline-diagnostics", () => {
        const ignored = createIgnoreList(config.lint?.ignore);
        return index.guidelineDiagnostics().filter((finding) => !ignored.hasFinding(finding));
      }),
    rules: () =>
      index.cached("guideline-rules", () =>
        index
          .guidelineRecords()
          .filter(({ managed }) => managed === undefined)
          .map((record) => ({
            id: ruleIdOf(record),
            guideline_id: record.id,
            title: record.title,
            file: record.source_file,
            line: record.span.start_line,
            tokens: textTokens(record.content),
          })),
      ),
    ruleIdOf({ id, source_file }) {
      const record = reads.record(id);
      return record === undefined ? source_file : ruleIdOf(record);
    },
    explain: reads.explain,
    export: reads.export,
    lint,
    fix: () =>
      inTurn(() =>
        refreshAfter(async () => {
          const { fixProject } = await import("./features/fix-project.ts");
          const result: { fixed: Diagnostic[]; written: string[] } = { fixed: [], written: [] };
          // A finding that occurs several times in a file is reported once, and a fix can show another fault.
          for (let pass = 0; pass < maxFixPasses; pass += 1) {
            await index.refresh();
            const found = [...guidelines.diagnostics(), ...lint()];
            const { fixed, written } = await fixProject({ root: index.root, readOnly }, found);
            result.fixed.push(...fixed);
            result.written = [...new Set([...result.written, ...written])];
            if (written.length === 0) break;
          }
          return { result, written: result.written };
        }),
      ),
    // Programs that only read a project do not load the code that writes its guidelines.
    convert: (request) =>
      inTurn(async () => {
        const { convertProjectGuideline } = await import("./features/convert-project-guideline.ts");
        return await refreshAfter(() => convertProjectGuideline({ index, reads, readOnly }, request));
      }),
    planSync: (request) =>
      inTurn(async () => {
        const { planProjectSync } = await import("./features/sync-guidelines.ts");
        return await planProjectSync(await syncContext(), request);
      }),
    sync: (request) =>
      inTurn(() =>
        refreshAfter(async () => {
          const { syncProject } = await import("./features/sync-guidelines.ts");
          const result = await syncProject(await syncContext(), request);
          return { result, written: result.written };
        }),
      ),
  };
  return guidelines;
}

/** `fix` reads the project again this often. */
const maxFixPasses = 20;

/** Runs writes one after the other, so that no write of this process overwrites another. */
function createQueue(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work, work);
    last = result.catch(() => undefined);
    return result;
  };
}

/** The folders of files and all their parents: each of them can be new. */
function foldersOf(paths: readonly string[]): readonly string[] {
  const folders = new Set([""]);
  for (const path of paths) {
    for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1))
      folders.add(path.slice(0, at));
  }
  return [...folders];
}

/** Answers questions about guidelines from an index; what it derives is kept until the index changes. */
interface GuidelineReads extends Pick<ProjectGuidelines, "list" | "get" | "explain" | "export"> {
  /** The guidelines of the project, or the samples if it has no guidelines. In path, then position order. */
  records(): readonly GuidelineRecord[];
  record(id: string): GuidelineRecord | undefined;
  matcher(): GuidelineMatcher;
}

interface GuidelineReadsOptions {
  readonly projectName: string;
  readonly isGuidelineFile: (path: string) => boolean;
}

function createGuidelineReads(
  index: ProjectIndex,
  { projectName, isGuidelineFile }: GuidelineReadsOptions,
): GuidelineReads {
  // While guideline files are not read yet, the project must not show the samples.
  const hasFiles = () => index.cached("has-guidelines", () => index.files().some(isGuidelineFile));
  const isIncomplete = () => index.indexing() !== undefined && (index.files().length === 0 || hasFiles());
  const records = () => (isIncomplete() ? index.guidelineRecords() : samplesFor(index.guidelineRecords()));
  const matcher = () => matcherOf(records());
  const byId = () => byIdOf(records());
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

const samplesFor = perObject(withSamples);
const byIdOf = perObject(
  (records: readonly GuidelineRecord[]) => new Map(records.map((record) => [record.id, record])),
);

/** Larger files are not instructions written by hand. */
const maxBytes = 1024 * 1024;

/**
 * The guidelines that a tool reads from the user's home folder, named `~/…`. A separate function, because they belong to the user
 * and not to the repository.
 */
export function readUserGuidelines(tool: ToolId, home: string = homedir()): readonly GuidelineRecord[] {
  const records = toolInfo(tool).user.flatMap((file) => recordsOf(file, home));
  // Codex reads the first of its two files.
  const [first] = records;
  return tool === "codex" ? records.filter(({ source_file }) => source_file === first?.source_file) : records;
}

function recordsOf(file: UserFile, home: string): GuidelineRecord[] {
  if (!file.path.endsWith("/")) return read(home, file.path, file.like);
  return listed(join(home, file.path)).flatMap((name) => read(home, file.path + name, file.like + name));
}

function listed(folder: string): readonly string[] {
  return attempt(
    () =>
      readdirSync(folder, { recursive: true, encoding: "utf8" })
        .map((name) => name.split(sep).join("/"))
        .sort(),
    [],
  );
}

function read(home: string, path: string, examplePath: string): GuidelineRecord[] {
  try {
    const stats = statSync(join(home, path));
    if (!stats.isFile() || stats.size > maxBytes) return [];
    const { text } = decodeText(readFileSync(join(home, path)), path);
    const name = `~/${path}`;
    const { records } = readGuidelines({ path: examplePath, text });
    return assignGuidelineIds(
      name,
      records.map(({ id: _id, source_file: _file, position: _at, ...draft }) => ({ ...draft, scope: "" })),
    );
  } catch {
    return [];
  }
}
