import type { CoveragePage, CoverageQuery } from "../protocol/coverage.ts";
import type { Diagnostic, DiagnosticPage, DiagnosticQuery } from "../protocol/diagnostic.ts";
import type {
  ConversionResult,
  ExportFormat,
  ExportResult,
  Guideline,
  GuidelineList,
} from "../protocol/guideline.ts";
import type {
  ConvertRequest,
  ExplainTool,
  FileExplanation,
  GuidelineQuery,
} from "../protocol/guideline-query.ts";
import type { GuidelineUsage, GuidelineUsageQuery } from "../protocol/guideline-usage.ts";
import type { FileLines, FileLinesQuery } from "../protocol/project-file.ts";
import type { SpecBlock } from "../protocol/spec-block.ts";
import type { CriterionHistory, CriterionHistoryQuery } from "../protocol/spec-history.ts";
import type {
  OutlinePage,
  OutlineQuery,
  SpecFeaturePage,
  SpecFeatureQuery,
} from "../protocol/spec-outline.ts";
import type { Impact, ImpactBody, SpecGraph, SpecPage, SpecQuery } from "../protocol/spec-query.ts";
import type { StalePage, StaleQuery } from "../protocol/stale.ts";
import type { SyncBody, SyncResult } from "../protocol/sync.ts";
import type { RecordedResults, TestReport } from "../protocol/test-results.ts";
import type { CallOptions } from "./call-options.ts";
import type { Transport } from "./transport.ts";

export interface SpecsClient {
  /** Searches specs with `q`, else lists them. */
  list(query?: SpecQuery, options?: CallOptions): Promise<SpecPage>;
  /** Throws `spec_not_found`. */
  get(specId: string, options?: CallOptions): Promise<SpecBlock>;
  diagnostics(options?: CallOptions): Promise<readonly Diagnostic[]>;
  /** Returns a page of the matching diagnostics; without `limit`, all of them. */
  diagnosticPage(query?: DiagnosticQuery, options?: CallOptions): Promise<DiagnosticPage>;
  /** Returns the features of the specs, with the numbers of their blocks. */
  features(query?: SpecFeatureQuery, options?: CallOptions): Promise<SpecFeaturePage>;
  /** Returns the blocks of a feature, without their texts. */
  outline(query: OutlineQuery, options?: CallOptions): Promise<OutlinePage>;
  /** Returns the specs that are affected by a change of files or blocks, or by all changes since a revision. */
  impact(request: ImpactBody, options?: CallOptions): Promise<Impact>;
  /** Returns the acceptance criteria and the tests that name them. */
  coverage(query?: CoverageQuery, options?: CallOptions): Promise<CoveragePage>;
  /** Returns how the tests of a criterion ended over time, newest first. */
  history(query: CriterionHistoryQuery, options?: CallOptions): Promise<CriterionHistory>;
  /** Returns the specs whose code changed after the spec. */
  stale(query?: StaleQuery, options?: CallOptions): Promise<StalePage>;
  graph(options?: CallOptions): Promise<SpecGraph>;
  /** Submits a test report: JUnit XML, or the JSON of Vitest and Jest. Throws `invalid_request` for an unreadable report. */
  recordResults(report: TestReport, options?: CallOptions): Promise<RecordedResults>;
  /** Validates blocks, which can be incomplete; stores nothing. */
  validate(
    blocks: readonly unknown[],
    options?: CallOptions,
  ): Promise<{ readonly valid: boolean; readonly diagnostics: readonly Diagnostic[] }>;
}

export function createSpecsClient({ request }: Transport): SpecsClient {
  return {
    list: (query = {}, options) => request("GET /api/specs", { query, options }),
    get: (id, options) => request("GET /api/specs/{id}", { params: { id }, options }),
    diagnostics: async (options) => (await request("GET /api/specs/diagnostics", { options })).diagnostics,
    diagnosticPage: (query = {}, options) => request("GET /api/specs/diagnostics", { query, options }),
    features: (query = {}, options) => request("GET /api/specs/features", { query, options }),
    outline: (query, options) => request("GET /api/specs/outline", { query, options }),
    impact: (body, options) => request("POST /api/specs/impact", { body, options, repeatable: true }),
    coverage: (query = {}, options) => request("GET /api/specs/coverage", { query, options }),
    recordResults: (body, options) => request("POST /api/specs/results", { body, options, repeatable: true }),
    history: (query, options) => request("GET /api/specs/history", { query, options }),
    stale: (query = {}, options) => request("GET /api/specs/stale", { query, options }),
    graph: (options) => request("GET /api/specs/graph", { options }),
    validate: (blocks, options) =>
      request("POST /api/specs/validate", { body: { blocks }, options, repeatable: true }),
  };
}

export interface GuidelinesClient {
  /** Lists guidelines by file, then position; with a file in the query, those that apply to it. */
  list(query?: GuidelineQuery, options?: CallOptions): Promise<GuidelineList>;
  /** Throws `guideline_not_found`. */
  get(guidelineId: string, options?: CallOptions): Promise<Guideline>;
  /** Converts a guideline; writes nothing unless `preview` is false. */
  convert(request: ConvertRequest, options?: CallOptions): Promise<ConversionResult>;
  /** Lists for each tool the guidelines that apply to a file, with the reasons; default: all tools. */
  explain(
    file: string,
    input?: { readonly tools?: readonly ExplainTool[] | undefined },
    options?: CallOptions,
  ): Promise<FileExplanation>;
  /** Returns contradictions, copies that differ, globs and links that lead to no file, rules without effect, and files that cannot be read. */
  lint(options?: CallOptions): Promise<readonly Diagnostic[]>;
  /** Returns the guideline files of other tools, before and after a sync; writes nothing unless `preview` is false. */
  sync(request?: SyncBody, options?: CallOptions): Promise<SyncResult>;
  /** Returns how often sessions were shown the rules of the project; default: in the last 30 days. */
  usage(query?: GuidelineUsageQuery, options?: CallOptions): Promise<GuidelineUsage>;
  /** Returns all guidelines as one file; writes nothing. */
  export(format: ExportFormat, options?: CallOptions): Promise<ExportResult>;
}

export function createGuidelinesClient({ request }: Transport): GuidelinesClient {
  return {
    list: (query = {}, options) => request("GET /api/guidelines", { query, options }),
    get: (id, options) => request("GET /api/guidelines/{id}", { params: { id }, options }),
    convert: (body, options) =>
      request("POST /api/guidelines/convert", { body, options, repeatable: body.preview !== false }),
    explain: (file, { tools } = {}, options) =>
      request("GET /api/guidelines/explain", { query: { file, tools }, options }),
    lint: async (options) => (await request("GET /api/guidelines/lint", { options })).diagnostics,
    sync: (body = {}, options) =>
      request("POST /api/guidelines/sync", { body, options, repeatable: body.preview !== false }),
    usage: (query = {}, options) => request("GET /api/guidelines/usage", { query, options }),
    export: (format, options) =>
      request("POST /api/guidelines/export", { body: { format }, options, repeatable: true }),
  };
}

/** Reads files of the repository. */
export interface FilesClient {
  /** Returns lines of a file. Throws `not_found`, also for files that Git ignores and files with keys or variables. */
  lines(query: FileLinesQuery, options?: CallOptions): Promise<FileLines>;
}

export function createFilesClient({ request }: Transport): FilesClient {
  return { lines: (query, options) => request("GET /api/files", { query, options }) };
}
