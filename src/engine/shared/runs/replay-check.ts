import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { EngineHandlers, RunContext, RunRequest } from "../../contract.ts";
import { principalOf } from "../queue/owners.ts";
import type { ExecutionCore } from "./execution-core.ts";
import { createRunContext, loadError } from "./run-context.ts";
import { createReplay, type EntryEnd, type JournalEntry, type Replay } from "./run-journal.ts";
import { createDeliveries, createGuardedCalls, type Deliveries, type GuardedCalls } from "./run-promises.ts";
import type { RunRow } from "./run-store.ts";
import { Waits } from "./waits.ts";

/** A stored run that has not ended, and its journal entries. */
export interface OpenRun {
  readonly run: RunRow;
  readonly entries: readonly JournalEntry[];
  /** Reads a stored value. */
  load(stored: string): unknown;
}

/** Reads the open runs of an engine's store, oldest first, without writes and without a lease. */
export interface OpenRuns {
  read(): AsyncIterable<OpenRun>;
  close(): Promise<void>;
}

/**
 * `matches`: the code makes the recorded calls. `mismatch`: it makes another call at a position. `fails`: it ends with
 * another error before it has made all recorded calls. `unclear`: it waits for something that is not in the journal.
 */
export type ReplayVerdict =
  | { readonly outcome: "matches" }
  | { readonly outcome: "mismatch" | "fails"; readonly error: KitError }
  | { readonly outcome: "unclear"; readonly before: JournalEntry };

export interface ReplayCheckOptions {
  /** How long the code can make no progress before the verdict is `unclear`, in ms; default 5,000. */
  readonly patienceMs?: number | undefined;
}

/** How often the progress of the code is checked. */
const pollMs = 5;
/** The pause without a further call after which the check ends, once the code has made all recorded calls. */
const quietMs = 20;
/** The patience while the code waits in a call that is not recorded. */
const openPatienceMs = 500;
/** How long an end is held back for an earlier end that the code has not requested yet. */
const stallMs = 50;

/** Replays a run's code over its journal. No work of a step runs, and nothing is recorded. */
export async function checkReplay(
  open: OpenRun,
  perform: EngineHandlers["run"],
  options: ReplayCheckOptions = {},
): Promise<ReplayVerdict> {
  if (open.entries.length === 0) return { outcome: "matches" };
  return await new ReplayCheck(open, perform).verdict(options.patienceMs ?? 5_000);
}

const never = <Value>(): Promise<Value> => new Promise<Value>(() => undefined);

class ReplayCheck implements ExecutionCore {
  readonly host: ExecutionCore["host"] = {
    base: { clock: systemClock, time: { ...systemClock, toWall: (ms) => ms } },
    admit: never,
    awaitRun: never,
  };
  readonly run: RunRow;
  readonly journal: ExecutionCore["journal"];
  readonly handlers: EngineHandlers;
  readonly #open: OpenRun;
  readonly #controller = new AbortController();
  readonly signal: AbortSignal = this.#controller.signal;
  readonly #calls: GuardedCalls;
  readonly #deliveries: Deliveries;
  readonly #replay: Replay;
  #mismatch: unknown;
  #end: { readonly error?: unknown } | undefined;
  /** Whether the last delivered outcome was a recorded failure: if the run ends with it, the code still matches. */
  #lastFailed = false;
  /** Calls that are not recorded. */
  #unrecorded = 0;
  /** When the code last made a call or got an outcome, by `performance.now`. */
  #progressAt = performance.now();

  constructor(open: OpenRun, perform: EngineHandlers["run"]) {
    this.#open = open;
    this.run = open.run;
    this.journal = {
      entries: open.entries,
      end: never,
      beginWait: never,
      hasDue: never,
      endWaits: never,
    };
    this.handlers = { dispatch: never, run: perform };
    this.#calls = createGuardedCalls(this.signal);
    this.#deliveries = createDeliveries({
      whenStalled: (callback) => {
        const timer = setTimeout(callback, stallMs);
        return () => clearTimeout(timer);
      },
      onIdle: () => undefined,
    });
    this.#replay = createReplay(open.entries, ({ ended_as }) =>
      this.#deliveries.add(ended_as, () => undefined),
    );
  }

  get lastEnd(): number {
    return this.#deliveries.last;
  }

  async verdict(patienceMs: number): Promise<ReplayVerdict> {
    const performing = this.#perform();
    try {
      for (;;) {
        await sleep(pollMs);
        const verdict = this.#verdict(patienceMs);
        if (verdict !== undefined) return verdict;
      }
    } finally {
      this.#deliveries.close();
      this.#calls.close();
      this.#controller.abort(new KitError({ code: "aborted", message: "The check of the run is over." }));
      // Gives the handler time to close its resources.
      await Promise.race([performing, sleep(patienceMs, undefined, { ref: false })]);
    }
  }

  readonly guard: ExecutionCore["guard"] = (call) => this.#calls.guard(call);

  readonly ask: Replay["ask"] = (kind, name) => {
    this.#progressAt = performance.now();
    if (this.#mismatch !== undefined) throw this.#mismatch;
    try {
      const call = this.#replay.ask(kind, name);
      if (call.recorded === undefined) this.#unrecorded += 1;
      return call;
    } catch (error) {
      this.#mismatch = error;
      throw error;
    }
  };

  readonly patched: Replay["patched"] = (id) => {
    if (this.#mismatch !== undefined) throw this.#mismatch;
    return this.#replay.patched(id);
  };

  readonly deliver: ExecutionCore["deliver"] = ({ state, value, ended_as }: EntryEnd) =>
    new Promise((resolve, refuse) => {
      this.#deliveries.add(ended_as, () => {
        this.#progressAt = performance.now();
        this.#lastFailed = state === "failed";
        try {
          const loaded = value === null ? undefined : this.#open.load(value);
          if (state === "done") resolve(loaded);
          else refuse(loadError(loaded));
        } catch (error) {
          refuse(error);
        }
      });
    });

  /** Unrecorded calls are not executed: the code waits there until the check ends. */
  readonly atWork = never;
  readonly insist = never;
  readonly store = never;
  readonly waitForStore = never;
  readonly checkRest = (): void => undefined;

  async #perform(): Promise<void> {
    const { run } = this;
    try {
      const { workflow, owner } = run;
      const request: RunRequest = {
        workflow,
        payload: this.#open.load(run.payload),
        ...principalOf(owner),
        ...(run.idempotency_key === null ? {} : { idempotency_key: run.idempotency_key }),
      };
      await this.handlers.run(this.#createContext(), request);
      this.#replay.checkEnd();
      this.#end = {};
    } catch (error) {
      this.#end ??= { error };
    }
  }

  #createContext(): RunContext {
    return createRunContext(this, {
      waits: new Waits(this),
      fence: 0,
      releaseSlot: () => () => undefined,
      checkFence: async () => undefined,
      emit: () => undefined,
      checkResult: () => this.#replay.checkEnd(),
      hold: (problem) => problem,
    });
  }

  #verdict(patienceMs: number): ReplayVerdict | undefined {
    const before = this.#replay.next;
    if (this.#mismatch !== undefined) return failure("mismatch", this.#mismatch);
    if (this.#end !== undefined) {
      const { error } = this.#end;
      if (error === undefined || (before === undefined && this.#lastFailed)) return { outcome: "matches" };
      return failure(isMismatch(error) ? "mismatch" : "fails", error);
    }
    if (this.#deliveries.busy) return undefined;
    const silentMs = performance.now() - this.#progressAt;
    if (before === undefined) return silentMs > quietMs ? { outcome: "matches" } : undefined;
    const patience = this.#unrecorded > 0 ? Math.min(openPatienceMs, patienceMs) : patienceMs;
    return silentMs > patience ? { outcome: "unclear", before } : undefined;
  }
}

function isMismatch(error: unknown): boolean {
  return error instanceof KitError && error.code === "replay_mismatch";
}

function failure(outcome: "mismatch" | "fails", error: unknown): ReplayVerdict {
  if (error instanceof KitError) return { outcome, error };
  return {
    outcome,
    error: new KitError({ code: "internal_error", message: "The workflow failed.", cause: error }),
  };
}
