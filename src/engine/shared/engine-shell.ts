import { endsWithin, raceSignal } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import type { Engine, EngineHandlers } from "../contract.ts";
import type { Deliveries } from "./deliveries.ts";
import { alreadyStarted, closing, stopped } from "./engine-base.ts";
import { engineCalls } from "./engine-calls.ts";
import type { StoredEventLog } from "./events/event-log.ts";
import type { JobQueue } from "./queue/job-queue.ts";
import { lineOf, ownerOfInput } from "./queue/owners.ts";
import type { WaitingCallRecords } from "./waiting-calls.ts";

/** How long a drain waits for a handler that ignores its aborted signal. */
const abortPatienceMs = 2_000;
/** How long a drain waits for work that waits for an approval, which can take days. */
const approvalPatienceMs = 5_000;

/** The process or node that does the work of a store, because it holds its lease or owns some of its shards. */
export interface EngineOwnership {
  /** Throws if the store answers no calls any more. */
  checkOpen(): void;
  /** Converts an error of the store to one of kit. */
  toError(error: unknown): unknown;
  /** Begins to take work and to do it. */
  start(handlers: EngineHandlers): Promise<void>;
  /** Takes no more work, and offers what waits to others. */
  leave?(): Promise<void>;
  /** Ends what runs in the background. */
  settle?(): Promise<void>;
  closeEvents(): Promise<void>;
  /** Gives up what is still owned, and closes the store. */
  end(): Promise<void>;
}

/** The two moments of a drain, for `EngineBase.draining` and `stopping`. */
export class Stops {
  readonly draining = new AbortController();
  readonly stopping = new AbortController();
}

type Parts = Parameters<typeof engineCalls>[0];

export interface ShellParts extends Parts, Pick<Engine, "capabilities" | "load" | "mayForget"> {
  readonly clock: Clock;
  readonly queue: JobQueue;
  readonly stops: Stops;
  readonly events: StoredEventLog;
  readonly dispatches: Parts["dispatches"] & Pick<Engine, "inLine">;
  readonly deliveries: Deliveries;
  readonly waitingCalls: WaitingCallRecords;
  readonly ownership: EngineOwnership;
}

/** An engine from its start to the end of its drain, over parts that know a database. */
export class EngineShell {
  readonly #parts: ShellParts;
  readonly #started = Promise.withResolvers<void>();
  #state: "new" | "started" | "closed" = "new";
  #drained: Promise<void> | undefined;

  constructor(parts: ShellParts) {
    this.#parts = parts;
  }

  /** Whether it does work: it was started, and no drain has begun. */
  get isWorking(): boolean {
    return this.#state === "started" && !this.#parts.stops.draining.signal.aborted;
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  toEngine() {
    const { capabilities, events, deliveries, waitingCalls, dispatches, load, mayForget, queue } =
      this.#parts;
    const { ownership } = this.#parts;
    /** Wraps a call that works until the end of the drain. */
    const reading =
      <Arguments extends unknown[], Result>(read: (...args: Arguments) => Promise<Result>) =>
      async (...args: Arguments): Promise<Result> => {
        ownership.checkOpen();
        return await read(...args).catch((error: unknown) => {
          throw ownership.toError(error);
        });
      };
    /** Wraps a call that works until the drain begins. */
    const accepting =
      <Arguments extends unknown[], Result>(call: (...args: Arguments) => Promise<Result>) =>
      async (...args: Arguments): Promise<Result> => {
        this.#checkAccepting();
        return await call(...args);
      };
    return {
      capabilities,
      events,
      deliveries: {
        record: (delivery) => deliveries.record(delivery),
        list: reading((filter) => deliveries.list(filter)),
      },
      waitingCalls: {
        add: reading((call, onDecided) => waitingCalls.add(call, onDecided)),
        decide: reading((...decision) => waitingCalls.decide(...decision)),
        list: reading((within) => waitingCalls.list(within)),
        sessions: reading((among) => waitingCalls.sessions(among)),
        page: reading((listing) => waitingCalls.page(listing)),
      },
      load: reading(load),
      mayForget: reading(mayForget),
      ...engineCalls(this.#parts, { accepting, reading }),
      waitingInputs: (place) => queue.joining(() => ({ line: lineOf(place), owner: ownerOfInput(place) })),
      start: accepting((handlers) => this.#start(handlers)),
      leave: accepting(() => this.#leave()),
      drain: ({ timeoutMs = 30_000 } = {}) => {
        this.#drained ??= this.#drain(timeoutMs);
        return this.#drained;
      },
      inLine: async (place, work, how) => {
        this.#checkAccepting();
        if (this.#state === "new") {
          // The work comes after the inputs that were accepted before, so it waits until those are in line.
          await raceSignal(this.#started.promise, how?.signal);
          this.#checkAccepting();
        }
        return await dispatches.inLine(place, work, how);
      },
    } satisfies Engine;
  }

  #checkAccepting(): void {
    if (this.#state === "closed") throw closing();
  }

  async #start(handlers: EngineHandlers): Promise<void> {
    if (this.#state === "started") throw alreadyStarted();
    this.#state = "started";
    try {
      await this.#parts.ownership.start(handlers);
    } catch (error) {
      if (!this.isClosed) this.#state = "new";
      throw error;
    }
    this.#started.resolve();
  }

  async #leave(): Promise<void> {
    const { queue, stops, ownership } = this.#parts;
    if (stops.draining.signal.aborted) return;
    queue.close({ clear: true });
    stops.draining.abort(stopped());
    await ownership.leave?.();
  }

  async #drain(timeoutMs: number): Promise<void> {
    const { queue, clock, stops, deliveries, ownership } = this.#parts;
    this.#state = "closed";
    this.#started.resolve();
    // Not awaited: an unavailable store must not delay the end of the work.
    void this.#leave();
    if (await endsWithin(timeoutMs, queue.slotsFree(), clock)) {
      await endsWithin(Math.min(timeoutMs, approvalPatienceMs), queue.idle(), clock);
    }
    stops.stopping.abort(stopped());
    await endsWithin(abortPatienceMs, queue.idle(), clock);
    await ownership.settle?.();
    await deliveries.close();
    try {
      await ownership.closeEvents();
    } finally {
      await ownership.end();
    }
  }
}
