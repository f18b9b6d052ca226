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

/** A run that has not ended, as it is stored, and what it has recorded. */
export interface OpenRun {
  readonly run: RunRow;
  readonly entries: readonly JournalEntry[];
  /** Reads a stored value. */
  load(stored: string): unknown;
}

/** The runs of an engine's store that have not ended, oldest first. Nothing is written, and no lease is taken. */
export interface OpenRuns {
  read(): AsyncIterable<OpenRun>;
  close(): Promise<void>;
}

/**
 * `matches`: the code asks for what was recorded. `mismatch`: it asks for something else at a position. `fails`: it ends with
 * another error before it gets further than what was recorded. `unclear`: it waits for something that no journal has.
 */
export type ReplayVerdict =
  | { readonly outcome: "matches" }
  | { readonly outcome: "mismatch" | "fails"; readonly error: KitError }
  | { readonly outcome: "unclear"; readonly before: JournalEntry };

export interface ReplayCheckOptions {
  /** How long the code may get no further before the verdict is `unclear`, in ms; default 5,000. */
  readonly patienceMs?: number | undefined;
}

/** How often the code is looked after. */
const lookMs = 5;
/** For how long nothing may happen once all that was recorded has been asked for. */
const quietMs = 20;
/** The same, where the code waits in a call that is not recorded. */
const openPatienceMs = 500;
/** How long an end is kept back for one before it that the code has not asked for. */
const stallMs = 50;

/** Runs the code of a run over its journal. No step's work is run, and nothing is recorded. */
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
  };
  readonly run: RunRow;
  readonly journal: ExecutionCore["journal"];
  readonly handlers: EngineHandlers;
  readonly #open: OpenRun;
  readonly #controller = new AbortController();
  readonly #calls: GuardedCalls;
  readonly #deliveries: Deliveries;
  readonly #replay: Replay;
  #mismatch: unknown;
  #end: { readonly error?: unknown } | undefined;
  /** The run ends with what a call has recorded as its failure: the code has nothing to do with it. */
  #lastFailed = false;
  /** Calls that are not recorded. */
  #unrecorded = 0;
  #heardAt = performance.now();

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

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  async verdict(patienceMs: number): Promise<ReplayVerdict> {
    const performing = this.#perform();
    try {
      for (;;) {
        await sleep(lookMs);
        const verdict = this.#verdict(patienceMs);
        if (verdict !== undefined) return verdict;
      }
    } finally {
      this.#deliveries.close();
      this.#calls.close();
      this.#controller.abort(new KitError({ code: "aborted", message: "The check of the run is over." }));
      // The handler closes what it has opened.
      await Promise.race([performing, sleep(patienceMs, undefined, { ref: false })]);
    }
  }

  readonly guard: ExecutionCore["guard"] = (call) => this.#calls.guard(call);

  readonly ask: Replay["ask"] = (kind, name) => {
    this.#heardAt = performance.now();
    if (this.#mismatch !== undefined) throw this.#mismatch;
    try {
      const asked = this.#replay.ask(kind, name);
      if (asked.recorded === undefined) this.#unrecorded += 1;
      return asked;
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
        this.#heardAt = performance.now();
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

  /** Calls that are not recorded are not done: the code waits there for as long as the check lasts. */
  readonly atWork = never;
  readonly insist = never;
  readonly store = never;
  readonly waitForStore = never;
  readonly settle = (): void => undefined;

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
    const silentMs = performance.now() - this.#heardAt;
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
