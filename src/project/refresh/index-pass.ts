import type { IgnoreScope } from "../../files/ignore-scope.ts";
import type { IndexingProgress } from "../../protocol/indexing.ts";
import type { Connection } from "../../sqlite/statements.ts";
import type { RefreshOptions } from "../project.ts";
import type { Candidate } from "../scan/read-folder.ts";
import type { ProjectChange } from "../scan/scan-project.ts";
import { type KnownFile, parseSource, type SourceCatalog } from "../scan/source-catalog.ts";
import type { SourceReader } from "../scan/source-reader.ts";
import { type Aliases, type Folder, setStamp } from "../scan/tree.ts";
import { contentAt } from "../store/block-row.ts";
import type { IndexSession, PassStart } from "../store/index-session.ts";
import type { FileEntry, IndexBatch, WriteResult } from "../store/index-writer.ts";
import type { IndexWriter } from "../store/threaded-writer.ts";
import { turnFromNow } from "../store/write-turn.ts";

export interface PassContext {
  /** Absolute, with links resolved. */
  readonly root: string;
  readonly catalog: SourceCatalog;
  readonly readSource: SourceReader;
  readonly session: IndexSession;
  readonly state: IndexingState;
  /** The present ignore rules from outside of the project, and a digest of them. */
  readonly rules: () => { readonly scope: IgnoreScope; readonly outerRules: string };
}

export interface PassOptions extends RefreshOptions {
  /** Scan these folders only. */
  readonly folders?: readonly string[];
}

export interface PassCounts {
  readonly parsed: number;
  readonly removed: number;
}

/** Sources per transaction: few in the first one, so that answers have content early. */
const firstBatchSize = 100;
const batchSize = 1000;
/** Characters per transaction: a batch that waits to be written uses memory. */
const maxBatchLength = 8_000_000;
/** Characters that are copied to the writer in one message. */
const maxAddedLength = 300_000;

export interface PassParts {
  readonly start: PassStart;
  readonly change: ProjectChange;
  readonly writer: IndexWriter;
  readonly outerRules: string;
  readonly isMany: boolean;
  /** The name of the pass, if it has the turn to write. */
  readonly turn: string | undefined;
}

/** Sends the entries of one pass to the index, batch by batch. */
export class IndexPass {
  readonly #context: PassContext;
  readonly #parts: PassParts;
  readonly #changed: ReadonlySet<Folder>;
  readonly #written: Promise<WriteResult>[] = [];
  #files: FileEntry[] = [];
  #added = 0;
  #length = 0;
  #addedLength = 0;
  #goneFiles: string[] = [];
  #stamped = new Set<Folder>();
  #waiting: WaitingReader[] = [];
  #batches = 0;
  #removed = 0;
  #parsed = 0;
  done = 0;

  constructor(context: PassContext, parts: PassParts) {
    this.#context = context;
    this.#parts = parts;
    this.#changed = new Set(parts.change.folders);
  }

  read(candidate: Candidate): void {
    const { start, change } = this.#parts;
    const entry = readCandidate(candidate, { ...this.#context, start, aliases: change.aliases });
    this.done += 1;
    if (this.#changed.has(candidate.folder)) this.#stamped.add(candidate.folder);
    if (entry === "gone") this.#goneFiles.push(candidate.path);
    if (typeof entry === "string") return;
    this.#files.push(entry);
    this.#length += lengthOf(entry);
    if (this.#length - this.#addedLength > maxAddedLength) this.#add();
  }

  /** Reads the files that readers wait for before the rest, and releases a reader with the batch that has the last of them. */
  take(waiting: readonly WaitingReader[], queue: SourceQueue): void {
    if (waiting.length === 0) return;
    const { aliases } = this.#parts.change;
    this.#waiting.push(...waiting);
    queue.putFirst((path) =>
      [path, ...aliases.namesOf(path)].some((name) =>
        waiting.some(({ file }) => canApplyTo(name, file) || canApplyTo(name, aliases.realOf(file))),
      ),
    );
  }

  isBatchFull(queue: SourceQueue): boolean {
    if (!this.#parts.isMany) return false;
    if (this.#waiting.length > 0 && !queue.hasUrgent) return true;
    const size = this.#batches === 0 ? firstBatchSize : batchSize;
    return this.#added + this.#files.length >= size || this.#length >= maxBatchLength;
  }

  /** Sends the entries read until now; returns false if another process has written in the meantime. */
  async flush(pause: () => Promise<void> | undefined): Promise<boolean> {
    const progress = { done: this.done, total: this.#parts.change.candidates.length };
    this.#context.state.progress = progress;
    this.#send({ indexing: JSON.stringify(progress) });
    await pause();
    // The pass reads on while one batch is written; a second waiting batch would only use memory.
    return this.#written.length < 2 || (await this.#settle());
  }

  async finish(): Promise<PassCounts | undefined> {
    const { outerRules } = this.#parts;
    this.#send({ indexing: undefined, outer_rules: outerRules }, true);
    while (this.#written.length > 0) if (!(await this.#settle())) return undefined;
    return { parsed: this.#parsed, removed: this.#removed };
  }

  #add(): void {
    this.#parts.writer.add(this.#files);
    this.#added += this.#files.length;
    this.#addedLength = this.#length;
    this.#files = [];
  }

  #send(meta: IndexBatch["meta"], isLast = false): void {
    this.#add();
    const { start, change, writer, isMany, turn } = this.#parts;
    const isFirst = this.#batches === 0;
    const base = isFirst
      ? batchWithoutFiles(start, change)
      : { folders: [...this.#stamped], removedFiles: [] };
    // Links are written last: they tell which files have other names now. After a killed pass the next one finds the old
    // links, and so those files again.
    const hasLinks = start.isEmpty ? isFirst : isLast;
    const batch: IndexBatch = {
      ...base,
      ...(hasLinks && change.haveLinksChanged && { links: [...change.links] }),
      generation: start.generation + (isMany ? this.#batches : 0),
      removedFiles: [...(base.removedFiles ?? []), ...this.#goneFiles],
      meta: { ...meta, ...(turn !== undefined && { turn: turnFromNow(turn) }) },
      turn,
      isVisible: isMany || start.isUnfinished || this.#added > 0 || isVisible(start, change),
    };
    const readers = this.#waiting;
    const written = writer.write(batch).then((result) => {
      if (result.kind === "written") {
        this.#context.session.committed(result.generation, batch);
        for (const { resolve } of readers) resolve();
      }
      return result;
    });
    // The pass handles a failure where it awaits the batch.
    written.catch(() => undefined);
    this.#written.push(written);
    this.#batches += 1;
    this.#parsed += this.#added;
    this.#added = 0;
    this.#length = 0;
    this.#addedLength = 0;
    this.#goneFiles = [];
    this.#stamped = new Set();
    this.#waiting = [];
  }

  async #settle(): Promise<boolean> {
    const result = await this.#written.shift();
    if (result?.kind !== "written") return false;
    this.#removed += result.removed;
    return true;
  }
}

function lengthOf({ guidelines, blocks }: FileEntry): number {
  // The content is in the metadata again, in parts.
  return blocks.reduce((sum, { row }) => sum + 2 * String(row[contentAt]).length, guidelines.length);
}

/** The changes of a pass that need no file to be read. */
export function batchWithoutFiles(start: PassStart, change: ProjectChange): Omit<IndexBatch, "isVisible"> {
  return {
    generation: start.generation,
    folders: change.folders,
    removedFolders: change.removedFolders,
    removedFiles: change.removed,
    ...(start.isEmpty && { links: [...change.links] }),
  };
}

/** Whether readers see more than other stamps. */
function isVisible(
  { tree }: PassStart,
  { folders, removedFolders, haveLinksChanged }: ProjectChange,
): boolean {
  if (haveLinksChanged || removedFolders.length > 0) return true;
  return folders.some(({ path, files, sources }) => {
    const before = tree.get(path);
    return before?.files !== files || before.sources !== sources;
  });
}

interface ReadContext {
  readonly readSource: SourceReader;
  readonly catalog: SourceCatalog;
  readonly aliases: Pick<Aliases, "namesOf">;
  readonly start: PassStart;
}

/** Reads a source and sets its stamp; parses it unless the index has the same content. */
export function readCandidate(
  { path, problem, folder, stampAt }: Candidate,
  { readSource, catalog, aliases, start }: ReadContext,
): FileEntry | "same" | "gone" {
  const read = problem === undefined ? readSource(path) : ({ kind: "problem", diagnostic: problem } as const);
  if (read.kind === "gone") return "gone";
  if ("seen" in read && read.seen !== undefined) setStamp(folder, stampAt, read.seen);
  const names = [path, ...aliases.namesOf(path)];
  const known = start.isEmpty ? undefined : knownFile(start.database, path);
  return parseSource(path, { read, catalog, names, ...(known && { known }) }) ?? "same";
}

function knownFile(database: Connection, path: string): KnownFile | undefined {
  const row = database.get<[hash: string, aliases: string, diagnostics: string]>(
    "SELECT hash, aliases, diagnostics FROM files WHERE path = ?",
    path,
  );
  return row && { hash: row[0], aliases: row[1], diagnostics: row[2] };
}

/** The sources that a pass reads, in the order in which it reads them. */
export class SourceQueue {
  readonly #rest: Candidate[];
  readonly #urgent: Candidate[] = [];

  private constructor(rest: Candidate[]) {
    this.#rest = rest;
  }

  /** Guideline files come first: there are few of them, and what an agent does depends on them. `pause` lets other work in between. */
  static async create(
    candidates: readonly Candidate[],
    isGuidelineFile: (path: string) => boolean,
    pause: () => Promise<void> | undefined,
  ): Promise<SourceQueue> {
    const guidelines: Candidate[] = [];
    const otherSources: Candidate[] = [];
    for (const candidate of candidates) {
      (isGuidelineFile(candidate.path) ? guidelines : otherSources).push(candidate);
      await pause();
    }
    // `next` takes from the end.
    return new SourceQueue([...guidelines, ...otherSources].reverse());
  }

  /** Puts the sources of these paths before all others. */
  putFirst(isWanted: (path: string) => boolean): void {
    const remaining = this.#rest.filter((candidate) => {
      if (!isWanted(candidate.path)) return true;
      this.#urgent.push(candidate);
      return false;
    });
    this.#rest.splice(0, this.#rest.length, ...remaining);
  }

  get hasUrgent(): boolean {
    return this.#urgent.length > 0;
  }

  next(): Candidate | undefined {
    return this.#urgent.pop() ?? this.#rest.pop();
  }
}

/** A reader that waits for the guidelines of a file. */
interface WaitingReader {
  /** Names of the file, project-relative. */
  readonly file: string;
  readonly resolve: () => void;
}

/** The progress of the pass of this process, and the readers that wait for a part of it. */
export class IndexingState {
  /** Set while answers can lack files that are not indexed yet. */
  progress: IndexingProgress | undefined = { done: 0, total: 0 };
  #waiting: WaitingReader[] = [];

  /** Resolves once the index has all guidelines that can apply to a file. */
  async wait(file: string): Promise<void> {
    if (this.progress === undefined) return;
    await new Promise<void>((resolve) => this.#waiting.push({ file, resolve }));
  }

  takeWaiting(): readonly WaitingReader[] {
    return this.#waiting.splice(0);
  }

  /** Ends the pass, failed or not, and releases its readers. */
  end(): void {
    this.progress = undefined;
    for (const { resolve } of this.takeWaiting()) resolve();
  }
}

/**
 * Whether the rules in `path` can apply to `file`: `path` is in the folder of the file or in a folder above it, or in a tool's
 * folder there (`.cursor/rules`).
 */
export function canApplyTo(path: string, file: string): boolean {
  const parts = path.split("/");
  const folders = parts.slice(0, -1);
  const toolFolder = folders.findIndex((name) => name.startsWith("."));
  const owner = (toolFolder === -1 ? folders : folders.slice(0, toolFolder)).join("/");
  return owner === "" || file.startsWith(`${owner}/`);
}
