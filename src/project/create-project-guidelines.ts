import { nameOf } from "../guidelines/guideline-record.ts";
import { lintGuidelines } from "../guidelines/lint/lint-guidelines.ts";
import { createGuidelineReads } from "./features/guideline-reads.ts";
import type { SyncContext } from "./features/sync-guidelines.ts";
import type { ProjectGuidelines } from "./project.ts";
import type { ProjectConfig } from "./project-config.ts";
import type { ProjectIndex } from "./project-index.ts";
import { createSourceCatalog } from "./scan/source-catalog.ts";

export interface ProjectGuidelinesOptions {
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
      const others = record.readings?.map(({ read_as }) => read_as) ?? [];
      return [nameOf(record), ...others];
    });
    return [...new Set([...index.files(), ...names].filter(isGuidelineFile))].sort();
  };

  const syncContext = async (): Promise<SyncContext> => {
    await index.refresh();
    const { source, targets } = config.guidelines ?? {};
    const { realOf } = index.aliases();
    return { root: index.root, readOnly, realOf, paths: guidelinePaths(), source, targets };
  };

  return {
    list: reads.list,
    get: reads.get,
    diagnostics: reads.diagnostics,
    explain: reads.explain,
    export: reads.export,
    lint: () =>
      index.cached("guideline-lint", () => lintGuidelines(reads.records(), index.files(), config.guidelines)),
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
}

/** Runs writes one after the other, so that no write of this process overwrites another. */
function createQueue(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work, work);
    last = result.catch(() => undefined);
    return result;
  };
}

/** The folders of files and all their parents: each of them may be new. */
function foldersOf(paths: readonly string[]): readonly string[] {
  const folders = new Set([""]);
  for (const path of paths) {
    for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1))
      folders.add(path.slice(0, at));
  }
  return [...folders];
}
