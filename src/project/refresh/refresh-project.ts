import { readDatesUpdate } from "../scan/git/file-dates.ts";
import type { PassContext, PassCounts, PassOptions } from "./index-pass.ts";
import { refreshIndex, writeDates } from "./refresh-index.ts";

/** How long a refresh waits for Git after all files are read. Dates that arrive later are added then. */
const maxDatesWaitMs = 3000;

/** One refresh can meet a damaged index, a full disk, and temporary files that cannot be written. */
const maxAttempts = 4;

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

  /** Aborts what runs, and resolves once it has ended. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The project was closed."));
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
      // Git runs on another core meanwhile.
      const dates = readDatesUpdate(session, { root, signal: closing });
      dates.catch(() => undefined);
      const counts = await this.#onUsableIndex(() => refreshIndex(this.#context, { ...options, signal }));
      state.end();
      await this.#addDates(dates);
      return { ...counts, durationMs: performance.now() - start };
    } finally {
      state.end();
    }
  }

  /** Repeats work on a new index where the present one is damaged, or cannot be kept where it lies. */
  async #onUsableIndex<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work();
      } catch (error) {
        if (attempt === maxAttempts || !this.#context.session.rebuild(error)) throw error;
      }
    }
  }

  /** Adds the dates of commits. Where Git is slow, adds them behind the refresh. */
  async #addDates(pending: ReturnType<typeof readDatesUpdate>): Promise<void> {
    const timer = Promise.withResolvers<"late">();
    const timeout = setTimeout(() => timer.resolve("late"), maxDatesWaitMs);
    const dates = await Promise.race([pending, timer.promise]);
    clearTimeout(timeout);
    if (dates === undefined) return;
    if (dates !== "late") {
      await this.#onUsableIndex(() => writeDates(this.#context, dates));
      return;
    }
    pending
      .then(async (late) => {
        if (late !== undefined)
          await this.#enqueue(() => this.#onUsableIndex(() => writeDates(this.#context, late)));
      })
      // `close` gives up the dates.
      .catch(() => undefined);
  }
}
