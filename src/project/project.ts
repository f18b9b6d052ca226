import type { GuidelineRecord } from "../guidelines/guideline-record.ts";
import type { Diagnostic } from "../protocol/diagnostic.ts";
import type { ConversionResult, ExportResult, Guideline, GuidelineList } from "../protocol/guideline.ts";
import type {
  ConvertRequest,
  ExplainTool,
  Explanation,
  ExportRequest,
  GuidelineQuery,
} from "../protocol/guideline-query.ts";
import type { IndexingProgress } from "../protocol/indexing.ts";
import type { Framework, SpecBlock } from "../protocol/spec-block.ts";
import type {
  OutlinePage,
  OutlineQuery,
  SpecFeaturePage,
  SpecFeatureQuery,
} from "../protocol/spec-outline.ts";
import type {
  ChangedSpec,
  ComparedSpecs,
  Impact,
  ImpactRequest,
  SpecGraph,
  SpecPage,
  SpecQuery,
} from "../protocol/spec-query.ts";
import type { SyncPlan, SyncRequest, SyncResult, SyncWrite } from "../protocol/sync.ts";
import type { ProjectConfig } from "./project-config.ts";
import type { FileDates } from "./store/date-rows.ts";

/** The result of one pass over the repository. */
export interface ScanSummary {
  /** Spec and guideline files known now. */
  readonly source_files: number;
  /** The files that this pass read and parsed; each of the others cost a stat. */
  readonly parsed_files: number;
  readonly removed_files: number;
  readonly specs: number;
  readonly guidelines: number;
  readonly diagnostics: number;
  readonly duration_ms: number;
  /** Why the index was rebuilt; set when the former one could not be used. */
  readonly rebuilt?: string;
}

/** The specs of an open project. Reads answer from the index and never touch the source files. */
export interface ProjectSpecs {
  /** Throws `invalid_request` for a cursor that is not one of ours. */
  query(query: SpecQuery): SpecPage;
  get(id: string): SpecBlock | undefined;
  /** Every block, in path, then position order. */
  all(): Iterable<SpecBlock>;
  /** Diagnostics of parsing, validation and references, in path, then line order. */
  diagnostics(): readonly Diagnostic[];
  /** The framework whose adapter reads a file; undefined for a file that is not a spec. */
  frameworkOf(path: string): Framework | undefined;
  /** The name that people know the tool of a file or feature by: the label of the adapter that reads it, or of its framework. */
  toolOf(of: Pick<SpecBlock, "framework" | "path">): string;
  /** The features by framework, then path, with the numbers of their blocks. */
  features(query?: SpecFeatureQuery): SpecFeaturePage;
  /** The blocks of a feature without their texts; empty for an unknown feature. */
  outline(query: OutlineQuery): OutlinePage;
  /**
   * Throws `spec_not_found` for an unknown id. In files that were `compared`, only the blocks that differ count as changed. `specsOfTests`
   * gives the blocks whose criteria a changed test file names.
   */
  impact(
    request: ImpactRequest,
    compared?: ComparedSpecs,
    specsOfTests?: ReadonlyMap<string, readonly string[]>,
  ): Impact;
  /** The blocks of a file that differ from those of an earlier text of the file; undefined for a file that is not a spec. */
  compare(path: string, before: string): readonly ChangedSpec[] | undefined;
  graph(): SpecGraph;
}

/** The findings that `fix` mended, and the files that it wrote. */
export interface FixResult {
  readonly fixed: readonly Diagnostic[];
  readonly written: readonly string[];
}

/** A guideline as a rule that sessions are shown, can leave out, and can be measured by. */
export interface ProjectRule {
  /** `AGENTS.md#money` for a section; the path of the file for a whole file and for what is before its first section. */
  readonly id: string;
  readonly guideline_id: string;
  readonly title: string;
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** Approximate. */
  readonly tokens: number;
}

export interface ProjectGuidelines {
  list(query: GuidelineQuery): GuidelineList;
  get(id: string): Guideline | undefined;
  /** The guidelines as their files say them, without samples; in path, then position order. */
  records(): readonly GuidelineRecord[];
  diagnostics(): readonly Diagnostic[];
  /** The guidelines as rules: without samples and copies that a sync wrote, in order of file, then position. */
  rules(): readonly ProjectRule[];
  /** The id of a guideline as a rule: `AGENTS.md#money`; its file for one of another project. */
  ruleIdOf(guideline: Pick<Guideline, "id" | "source_file">): string;
  /** `user` adds the files of the home folder that the tool reads in every project. */
  explain(file: string, tool?: ExplainTool, options?: { readonly user?: boolean }): Explanation;
  /** Throws `guideline_not_found`, `conflict`, or `forbidden` in a read-only project. */
  convert(request: ConvertRequest): Promise<ConversionResult>;
  export(request: ExportRequest): ExportResult;
  /** Copies and drift, contradictions, globs and links that lead to no file, rules without effect. */
  lint(): readonly Diagnostic[];
  /**
   * Writes the text of every `fix` of `diagnostics` and `lint`. Throws `forbidden` in a read-only project, and `conflict` if a file
   * changes during the write.
   */
  fix(): Promise<FixResult>;
  /**
   * The plan of a sync; writes nothing. Throws `invalid_request` without a source of truth.
   */
  planSync(request?: SyncRequest): Promise<SyncPlan>;
  /**
   * Writes the plan of `planSync`; writes conflicts only with `overwrite`. Throws `forbidden` in a read-only project, and
   * `conflict` if the plan differs from `expected`.
   */
  sync(request?: SyncWrite): Promise<SyncResult>;
}

/**
 * An indexed repository. `openProject` opens it; its caller closes it.
 *
 * Several processes can open the same project; each sees what the others have indexed.
 */
export interface Project {
  /** Absolute path of the root, with links resolved. Never sent to a client. */
  readonly root: string;
  /** The folder's name: the project heading of an export. */
  readonly name: string;
  /** Every write is refused with `forbidden`. */
  readonly readOnly: boolean;
  readonly specs: ProjectSpecs;
  readonly guidelines: ProjectGuidelines;
  /** Every file of the project that is not ignored, project-relative, sorted. */
  files(): readonly string[];
  /** The real path of a name: a link inside the project is another name of the file that it leads to. */
  realPath(path: string): string;
  /** The first and last commit of a file, and the author of the first one; `undefined` if Git does not know the file. */
  datesOf(path: string): FileDates | undefined;
  /**
   * Set while answers can lack files: until the first pass ends, and during passes over many files, also of other processes.
   * Pages of specs and guidelines, impact and graph have the same field.
   */
  indexing(): IndexingProgress | undefined;
  /**
   * Why the index is not kept in `.kit`: "the disk is full". Answers are the same, and the next process reads all
   * files again. Undefined where it is kept.
   */
  indexProblem(): string | undefined;
  /**
   * With a file: resolves once the index has all guidelines that can apply to the file; the pass reads them before other files.
   * Without a file: resolves when the first pass ends, and rejects with its error.
   */
  ready(file?: string): Promise<void>;
  /** Brings the index up to date with the disk. */
  refresh(options?: RefreshOptions): Promise<ScanSummary>;
  /**
   * Keeps the index current until it is closed; Calls `onChange` after every pass that found a change. Calls `onError` once if
   * the system cannot watch (any more); from then on a pass runs every two seconds.
   */
  watch(
    onChange?: (summary: ScanSummary) => void,
    onError?: (error: unknown) => void,
  ): Promise<{ close(): Promise<void> }>;
  close(): Promise<void>;
}

export interface RefreshOptions {
  readonly signal?: AbortSignal;
  /** Called now and then during a long pass. */
  readonly onProgress?: (progress: {
    readonly done: number;
    readonly total: number;
    readonly phase: string;
  }) => void;
}

export interface OpenProjectOptions {
  readonly root: string;
  /** The index file; default `<root>/.kit/index.db`. `":memory:"` keeps no index. */
  readonly indexFile?: string;
  /** Refuses every write with `forbidden`. */
  readonly readOnly?: boolean;
  /**
   * Opens after at most 250 ms, even if the first pass still runs; `indexing()` is set until it ends. Default: opens when the
   * first pass has ended.
   */
  readonly background?: boolean;
  readonly config?: ProjectConfig;
}
