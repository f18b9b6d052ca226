import type { GuidelineRecord } from "../guidelines/guideline-record.ts";
import type { Diagnostic } from "../protocol/diagnostic.ts";
import type { IndexingProgress } from "../protocol/indexing.ts";
import type { Connection } from "../sqlite/statements.ts";
import type { Project, RefreshOptions, ScanSummary } from "./project.ts";
import type { SourceReader } from "./scan/source-reader.ts";
import type { Aliases, Tree } from "./scan/tree.ts";
import type { FileDates } from "./store/date-rows.ts";
import type { RepositoryWatch } from "./watch/repository-watch.ts";

/** The index of an open project, which the parts of a `Project` read. */
export interface ProjectIndex {
  /** Absolute, with links resolved. */
  readonly root: string;
  /**
   * Queries the index. If the index is damaged, kit rebuilds it and repeats the query, so the answer is right.
   */
  read<Result>(question: (database: Connection) => Result): Result;
  /** The answer to a question, kept under a name until anything in the index has changed. */
  cached<Result>(name: string, question: (database: Connection) => Result): Result;
  /** Changes rows that no pass writes; throws SQLITE_BUSY while another writer is at work. */
  writeRows(change: (database: Connection) => void): void;
  /** Differs from an earlier value when anything that can be read has changed. */
  generation(): number;
  tree(): Tree;
  /** Every file that is not ignored, project-relative, sorted. The same list until a file comes or goes. */
  files(): readonly string[];
  /** Whether there is a file of this name, a link's name included. */
  hasFile(path: string): boolean;
  /** The names of files that have several. */
  aliases(): Aliases;
  /** In path, then position order. The same list until a guideline changes, and the same records for a file until it changes. */
  guidelineRecords(): readonly GuidelineRecord[];
  /** Problems of reading and parsing guideline files. */
  guidelineDiagnostics(): readonly Diagnostic[];
  /** Parse, validation and reference diagnostics of the specs, in path, then line order. */
  specDiagnostics(): readonly Diagnostic[];
  /** SHA-256 of a source file's bytes, base64url; undefined for other files and unreadable ones. */
  fileHash(path: string): string | undefined;
  /** First and last commit of a file, in seconds since 1970, the last one's hash and the first one's author. */
  datesOf(path: string): FileDates | undefined;
  readonly readSource: SourceReader;
  readonly repository: RepositoryWatch;
  /** The text of any project file, decoded; undefined for one that cannot be read. Never leaves the root. */
  readText(path: string): string | undefined;
  /** Set while answers can lack files that are not indexed yet. */
  indexing(): IndexingProgress | undefined;
  /** Resolves once the index has all guidelines that can apply to a file. The pass reads them before other files. */
  ready(path: string): Promise<void>;
  refresh(options?: IndexRefreshOptions): Promise<ScanSummary>;
  close(): Promise<void>;
}

const indexes = new WeakMap<Project["specs"], ProjectIndex>();

/** Remembers the index of a project for the functions that need more than its queries. */
export function connectIndex(specs: Project["specs"], index: ProjectIndex): Project["specs"] {
  indexes.set(specs, index);
  return specs;
}

/** The index of a project that `openProject` has opened. */
export function indexOf({ specs }: Pick<Project, "specs">): ProjectIndex {
  const index = indexes.get(specs);
  if (index === undefined) throw new TypeError("Use a project as openProject returns it.");
  return index;
}

export interface IndexRefreshOptions extends RefreshOptions {
  /** Look at these folders only. */
  readonly folders?: readonly string[];
}
