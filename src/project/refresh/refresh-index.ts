import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { KitError } from "../../base/kit-error.ts";
import { atOnce, inTurns, type Steps } from "../../base/steps.ts";
import type { IgnoreScope } from "../../files/ignore-scope.ts";
import type { IndexingProgress } from "../../protocol/indexing.ts";
import { isBusy } from "../../sqlite/database-file.ts";
import type { Connection } from "../../sqlite/statements.ts";
import { createPauses } from "../pauses.ts";
import { readDatesUpdate } from "../scan/git/file-dates.ts";
import { askAboutTracked, type NewlyTracked, newlyTracked } from "../scan/git/tracked-files.ts";
import { createIgnoreExceptions } from "../scan/ignore-exceptions.ts";
import { type ProjectChange, scanProject } from "../scan/scan-project.ts";
import type { DatesUpdate } from "../store/date-rows.ts";
import type { IndexSession, PassStart } from "../store/index-session.ts";
import type { FileEntry, IndexBatch } from "../store/index-writer.ts";
import { inMemory, parseStored, readMeta } from "../store/open-index.ts";
import type { IndexWriter } from "../store/threaded-writer.ts";
import { isTurnOfAnother } from "../store/write-turn.ts";
import {
  batchWithoutFiles,
  IndexPass,
  type PassContext,
  type PassCounts,
  type PassOptions,
  readCandidate,
  SourceQueue,
} from "./index-pass.ts";

/** How long a refresh waits for Git after all files are read. Dates that arrive later are added then. */
const maxDatesWaitMs = 3000;

/** One refresh can meet a damaged index, a full disk, and temporary files that cannot be written. */
const maxIndexes = 4;

export interface PassResult extends PassCounts {
  readonly durationMs: number;
}

/** Brings the index of a project up to date: one pass at a time, each with the dates of Git. */
export class ProjectRefresh {
  readonly #context: PassContext;
  readonly #closing = new AbortController();
  #last: Promise<unknown> = Promise.resolve();

  constructor(context: PassContext) {
    this.#context = context;
  }

  /** Runs a pass after those before it. Rejects once the caller's signal or `close` aborts it. */
  async run(options: PassOptions): Promise<PassResult> {
    return await this.#enqueue(() => this.#refresh(options));
  }

  /** Aborts the running pass, and resolves once it has ended. */
  async close(): Promise<void> {
    this.#closing.abort(projectClosed());
    await this.#last;
  }

  async #enqueue<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return await result;
  }

  async #refresh(options: PassOptions): Promise<PassResult> {
    const { root, session, state } = this.#context;
    const start = performance.now();
    const closing = this.#closing.signal;
    const signal = options.signal ? AbortSignal.any([options.signal, closing]) : closing;
    signal.throwIfAborted();
    try {
      // Git runs on another core at the same time.
      const dates = readDatesUpdate(session, { root, signal: closing });
      dates.catch(() => undefined);
      const question = askAboutTracked(session, { root, signal });
      let counts = await this.#onUsableIndex(() => refreshIndex(this.#context, { ...options, signal }));
      const tracked = await newlyTracked(question, {
        outerRules: this.#context.rules().outerRules,
        tree: session.tree(),
      });
      if (tracked !== undefined) await this.#onUsableIndex(() => writeTracked(session, tracked, signal));
      if (tracked?.areOther) {
        const { folders: _, ...everywhere } = options;
        const more = await this.#onUsableIndex(() => refreshIndex(this.#context, { ...everywhere, signal }));
        counts = { parsed: counts.parsed + more.parsed, removed: counts.removed + more.removed };
      }
      state.end();
      await this.#addDates(dates, signal);
      return { ...counts, durationMs: performance.now() - start };
    } finally {
      state.end();
    }
  }

  /** Repeats work on a new index if the present one is damaged or its place cannot be written. */
  async #onUsableIndex<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work();
      } catch (error) {
        if (attempt === maxIndexes || !this.#context.session.rebuild(error)) throw error;
      }
    }
  }

  /** Adds the dates of commits. If Git is slow, adds them after the refresh has ended. */
  async #addDates(pending: ReturnType<typeof readDatesUpdate>, signal: AbortSignal): Promise<void> {
    const timer = Promise.withResolvers<"late">();
    const timeout = setTimeout(() => timer.resolve("late"), maxDatesWaitMs);
    const dates = await Promise.race([pending, timer.promise]);
    clearTimeout(timeout);
    if (dates === undefined) return;
    if (dates !== "late") {
      await this.#onUsableIndex(() => writeDates(this.#context.session, dates, signal));
      return;
    }
    const closing = this.#closing.signal;
    pending
      .then(async (late) => {
        if (late === undefined) return;
        const write = (): Promise<void> => writeDates(this.#context.session, late, closing);
        await this.#enqueue(() => this.#onUsableIndex(write));
      })
      // `close` drops dates that arrive too late.
      .catch(() => undefined);
  }
}

/** The reason why work of a closed project ends. */
export function projectClosed(): Error {
  return new Error("The project was closed.");
}

/** Up to this many sources are written in one batch, on the main thread. */
const fewSources = 40;
/** A pass that has lost this often to other processes waits for its turn to write. */
const maxLosses = 2;

/** Brings the index up to date with the disk, and pauses for other work of the process. */
async function refreshIndex(context: PassContext, options: PassOptions): Promise<PassCounts> {
  const { session, state } = context;
  const onIndexing = (progress: IndexingProgress): void => {
    state.progress = progress;
    options.onProgress?.({ ...progress, phase: "read" });
  };
  return await untilWritten(session, { signal: options.signal, onIndexing }, async (turn) => {
    let counts: PassCounts | undefined;
    try {
      counts = await runPass(context, options, turn);
      return counts;
    } finally {
      if (counts === undefined) session.forgetTree();
    }
  });
}

interface WaitOptions {
  readonly signal: AbortSignal | undefined;
  /** Called with the progress of another process that indexes. */
  readonly onIndexing?: (progress: IndexingProgress) => void;
}

/** Repeats work that returns undefined where another process has written. After some losses, waits for a turn and works in it. */
async function untilWritten<Result>(
  session: IndexSession,
  options: WaitOptions,
  work: (turn: string | undefined) => Promise<Result | undefined>,
): Promise<Result> {
  const turn = randomUUID();
  const start = performance.now();
  for (let losses = 0; performance.now() - start < maxWaitMs; losses += 1) {
    const hasTurn = losses >= maxLosses;
    if (hasTurn && !session.claimTurn(turn)) {
      await sleep(20);
      await waitForOthers(session, options);
      continue;
    }
    try {
      const result = await work(hasTurn ? turn : undefined);
      if (result !== undefined) return result;
    } finally {
      if (hasTurn) session.releaseTurn(turn);
    }
    await waitForOthers(session, options);
  }
  const message = "Other processes change the index of this project faster than this one can read it.";
  throw new KitError({ code: "unavailable", message });
}

/** Saves which ignored files Git tracks. */
async function writeTracked(
  session: IndexSession,
  { key, paths, isVisible }: NewlyTracked,
  signal: AbortSignal,
): Promise<void> {
  await untilWritten(session, { signal }, async (turn) => {
    const { generation } = session.begin();
    const meta = { tracked: JSON.stringify({ key, paths }) };
    const result = await ownWriter(session).write({ generation, meta, turn, isVisible });
    if (result.kind === "outdated") return undefined;
    session.committed(result.generation, {});
    return result;
  });
}

/** Fills an index synchronously, for a reader that found it damaged and cannot wait. */
export function refillIndex(context: PassContext): void {
  const { session } = context;
  const { scope, outerRules } = context.rules();
  const start = session.begin();
  const change = atOnce(scan(context, start, { scope, isStale: true }));
  const files = change.candidates
    .map((candidate) => readCandidate(candidate, { ...context, start, aliases: change.aliases }))
    .filter((entry) => typeof entry !== "string");
  const batch: IndexBatch = {
    ...batchWithoutFiles(start, change),
    files,
    meta: { indexing: undefined, outer_rules: rulesKey(outerRules, start) },
    isVisible: true,
  };
  // Where another process was faster, it has filled the index as well.
  const result = session.write(batch, { mayWait: true });
  if (result.kind === "written") session.committed(result.generation, batch);
  session.forgetTree();
}

/** Writes dates of commits; many dates on another thread. */
async function writeDates(session: IndexSession, dates: DatesUpdate, signal: AbortSignal): Promise<void> {
  const isLarge = (dates.update?.dates.size ?? 0) > 500;
  await untilWritten(session, { signal }, async (turn) => {
    const { generation, database } = session.begin();
    const writer = isLarge ? await writerOfMany(session, database) : ownWriter(session);
    try {
      const result = await writer.write({ generation, dates, turn, isVisible: false });
      if (result.kind === "outdated") return undefined;
      session.committed(result.generation, {});
      return result;
    } finally {
      await writer.close();
    }
  });
}

/** Returns undefined if another process has written in the meantime. */
async function runPass(
  context: PassContext,
  options: PassOptions,
  turn: string | undefined,
): Promise<PassCounts | undefined> {
  const { session, state, catalog } = context;
  const pause = createPauses(pauseMs, options.signal);
  const { scope, outerRules } = context.rules();
  const start = session.begin();
  const rules = rulesKey(outerRules, start);
  const isStale = start.isUnfinished || start.outerRules !== rules;
  options.onProgress?.({ done: 0, total: 0, phase: "walk" });
  const { folders } = options;
  const change = await inTurns(scan(context, start, { scope, isStale, ...(folders && { folders }) }), pause);
  if (isNothing(change) && !isStale) return { parsed: 0, removed: 0 };

  const total = change.candidates.length;
  const isMany = total > fewSources;
  if (isMany) state.progress = { done: 0, total };
  const isGuideline = (path: string): boolean =>
    [path, ...change.aliases.namesOf(path)].some(catalog.isGuidelineFile);
  const queue = await SourceQueue.create(change.candidates, isGuideline, pause);
  const writer = isMany ? await writerOfMany(session, start.database) : ownWriter(session);
  try {
    const pass = new IndexPass(context, { start, change, writer, outerRules: rules, isMany, turn });
    for (let next = queue.next(); next !== undefined; next = queue.next()) {
      pass.read(next);
      await pause();
      pass.take(state.takeWaiting(), queue);
      if (pass.isBatchFull(queue)) {
        options.onProgress?.({ done: pass.done, total, phase: "read" });
        if (!(await pass.flush(pause))) return undefined;
      }
    }
    options.onProgress?.({ done: total, total, phase: "write" });
    return await pass.finish();
  } finally {
    await writer.close();
  }
}

/** Identifies what decides about ignored files, besides the ignore files of the project. */
function rulesKey(outerRules: string, { tracked }: PassStart): string {
  return [outerRules, ...(tracked?.paths ?? [])].join("\n");
}

function isNothing({ folders, removedFolders, candidates, haveLinksChanged }: ProjectChange): boolean {
  return folders.length + removedFolders.length + candidates.length === 0 && !haveLinksChanged;
}

function scan(
  { root, catalog }: PassContext,
  { tree, links, tracked }: PassStart,
  how: { readonly scope: IgnoreScope; readonly isStale: boolean; readonly folders?: readonly string[] },
): Steps<ProjectChange> {
  const exceptions = createIgnoreExceptions(catalog, tracked?.paths ?? []);
  return scanProject({ root, previous: tree, catalog, links, exceptions, ...how });
}

/** Writes on another thread, unless the index is in the memory of this process. */
async function writerOfMany(session: IndexSession, { inode }: Connection): Promise<IndexWriter> {
  if (session.file === inMemory) return ownWriter(session);
  // Most passes read a few sources and need no thread.
  const { createThreadedWriter } = await import("../store/threaded-writer.ts");
  return createThreadedWriter({ file: session.file, inode });
}

/** Writes on this thread. While another process writes, waits without blocking the thread. */
function ownWriter(session: IndexSession): IndexWriter {
  let files: readonly FileEntry[] = [];
  return {
    add(entries) {
      files = [...files, ...entries];
    },
    async write(batch) {
      const start = performance.now();
      for (;;) {
        try {
          return session.write({ ...batch, files });
        } catch (error) {
          if (!isBusy(error) || performance.now() - start > maxWaitMs) throw error;
        }
        await sleep(20);
      }
    },
    async close() {},
  };
}

/** The time that a pass waits for another process to write. */
const maxWaitMs = 600_000;

/** Waits for another process that indexes or has the turn to write, as long as it makes progress. */
async function waitForOthers(session: IndexSession, { signal, onIndexing }: WaitOptions): Promise<void> {
  let last: number | undefined;
  for (let since = performance.now(); performance.now() - since < 2000; ) {
    signal?.throwIfAborted();
    const { isIndexing, hasTurn, generation } = session.read((database) => ({
      isIndexing: readMeta(database, "indexing"),
      hasTurn: isTurnOfAnother(database),
      generation: readMeta(database, "generation"),
    }));
    if (isIndexing === undefined && !hasTurn) return;
    if (generation !== last) since = performance.now();
    last = generation;
    if (isIndexing !== undefined) onIndexing?.(parseStored<IndexingProgress>(isIndexing));
    await sleep(isIndexing === undefined ? 10 : 50);
  }
}

/** The longest time, in milliseconds, that a pass blocks other work of the process. */
const pauseMs = 8;
