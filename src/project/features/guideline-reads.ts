import { explainFile } from "../../guidelines/explain/explain-file.ts";
import { exportGuidelines } from "../../guidelines/export-guidelines.ts";
import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import { createGuidelineMatcher, type GuidelineMatcher } from "../../guidelines/match/guideline-matcher.ts";
import { listGuidelines } from "../../guidelines/match/list-guidelines.ts";
import { withSamples } from "../../guidelines/samples.ts";
import { toGuideline } from "../../guidelines/to-guideline.ts";
import type { ProjectGuidelines } from "../project.ts";
import type { ProjectIndex } from "../project-index.ts";
import { readUserGuidelines } from "./user-guidelines.ts";

/** The guidelines of an index, ready to be asked; made anew when the index has changed. */
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
  // A project whose guidelines are not read yet has some all the same.
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
        ...(tool !== undefined && { tool }),
        readText: index.readText,
        ...(user && { userRecords: (id) => readUserGuidelines(id) }),
      }),
    export: ({ format }) => exportGuidelines(records(), format, projectName),
  };
}
