import type { AwaitedRun } from "../../contract.ts";
import { sleepUntil } from "../durable-time.ts";
import type { ExecutionCore } from "./execution-core.ts";
import type { BegunWait, EntryEnd, EntryHead } from "./run-journal.ts";

interface OpenWait extends BegunWait {
  end(end: EntryEnd): void;
}

/** The sleeps of a run, and its waits for signals and for the ends of other runs. */
export class Waits {
  readonly #core: ExecutionCore;
  readonly #open = new Map<number, OpenWait>();
  /** The waits for other runs. */
  readonly #runs = new Set<AbortController>();
  /** The waits among `#runs` that a signal of the run's code can end. */
  readonly #withSignal = new Set<AbortController>();
  #isChecking = false;
  /** Whether a signal may have arrived since the current check began. */
  #isStale = false;
  #closed = false;
  #timer: AbortController | undefined;

  constructor(core: ExecutionCore) {
    this.#core = core;
  }

  /** The number of open waits. */
  get size(): number {
    return this.#open.size + this.#runs.size;
  }

  /** Whether the run waits for another run. */
  get hasRuns(): boolean {
    return this.#runs.size > 0;
  }

  /** Whether the run's code can end a wait by a signal, which the process would lose with the run's memory. */
  get hasSignals(): boolean {
    return this.#withSignal.size > 0;
  }

  /** The earliest deadline of the open waits. */
  get earliest(): number | undefined {
    let first: number | undefined;
    for (const { deadline } of this.#open.values()) {
      if (deadline !== undefined && (first === undefined || deadline < first)) first = deadline;
    }
    return first;
  }

  /** Begins a wait, or continues a recorded one. Resolves with the payload of its signal. */
  async wait(
    kind: "sleep" | "wait",
    name: string,
    { ms, schema }: { readonly ms: number | undefined; readonly schema?: unknown },
  ): Promise<unknown> {
    const core = this.#core;
    const made_after = core.lastEnd;
    const { position, recorded } = core.ask(kind, name);
    const outcome = recorded?.outcome;
    if (outcome !== undefined && outcome.state !== "pending") return await core.deliver(outcome);
    const head = { position, kind, name, made_after };
    const { time } = core.host.base;
    const isNew = outcome === undefined;
    const deadline = isNew ? (ms === undefined ? undefined : Math.ceil(time.now() + ms)) : outcome.deadline;
    const ended = isNew ? await this.#begin(head, deadline, schema) : undefined;
    if (ended !== undefined) return await core.deliver(ended);
    if (this.#closed) return await new Promise<never>(() => undefined);
    const end = await new Promise<EntryEnd>((resolve) => {
      this.#open.set(position, { head, deadline, end: resolve });
      // A signal may have arrived before this wait was registered.
      this.checkWaits();
      core.checkRest();
    });
    return await core.deliver(end);
  }

  /**
   * Waits until another run has ended, or the signal fires. The wait is recorded as the open entry of the position, so that
   * the end of the other run resumes a suspended run.
   */
  async forRun(head: EntryHead, { run_id, signal }: AwaitedRun, isNew: boolean): Promise<void> {
    const { insist, host, checkRest, signal: ofRun } = this.#core;
    if (isNew) await this.#begin(head, undefined, run_id);
    const leave = new AbortController();
    const either = signal === undefined ? leave.signal : AbortSignal.any([leave.signal, signal]);
    if (!this.#closed) {
      this.#runs.add(leave);
      // The signal of the run itself ends every wait of the run anyway.
      if (signal !== undefined && signal !== ofRun) this.#withSignal.add(leave);
      checkRest();
      await insist(async () => {
        await host.awaitRun(run_id, { signal: either }).catch((error: unknown) => {
          if (!either.aborted) throw error;
        });
      });
    }
    if (this.#closed) return await new Promise<never>(() => undefined);
    this.#runs.delete(leave);
    this.#withSignal.delete(leave);
  }

  /** Ends the waits whose deadline has passed or whose signal has arrived. */
  checkWaits(): void {
    this.#isStale = true;
    if (this.#closed || this.#isChecking) return;
    this.#isChecking = true;
    void this.#check().finally(() => {
      this.#isChecking = false;
      if (this.#open.size > 0 && this.#isStale) this.checkWaits();
    });
  }

  /** Drops all open waits: their promises never settle. */
  close(): void {
    this.#closed = true;
    this.#timer?.abort();
    this.#open.clear();
    for (const leave of this.#runs) leave.abort();
    this.#runs.clear();
    this.#withSignal.clear();
  }

  async #check(): Promise<void> {
    const { journal, atWork, insist } = this.#core;
    while (this.#isStale && !this.#closed) {
      this.#isStale = false;
      if (await insist(async () => await journal.hasDue([...this.#open.values()]))) {
        await atWork(() => this.#endThoseDue());
        this.#isStale = this.#open.size > 0;
      }
    }
    this.#arm();
  }

  #arm(): void {
    this.#timer?.abort();
    this.#timer = undefined;
    const at = this.earliest;
    if (this.#closed || at === undefined) return;
    this.#timer = new AbortController();
    sleepUntil(this.#core.host.base.time, at, this.#timer.signal).then(
      () => this.checkWaits(),
      () => undefined,
    );
  }

  async #endThoseDue(): Promise<void> {
    const { journal, insist } = this.#core;
    // Sorted by position, so that the first of two waits for the same name gets the first signal.
    const candidates = [...this.#open.values()].sort(
      (wait, other) => wait.head.position - other.head.position,
    );
    for (const { position, end } of await insist(() => journal.endWaits(candidates))) {
      const wait = this.#open.get(position);
      this.#open.delete(position);
      wait?.end(end);
    }
  }

  /** Records that a wait has begun. If it ends at once, records and returns its end. */
  async #begin(
    head: EntryHead,
    deadline: number | undefined,
    schema: unknown,
  ): Promise<EntryEnd | undefined> {
    const { atWork, insist, journal, store } = this.#core;
    return await atWork(async () => {
      const stored = schema === undefined ? null : await store(schema);
      return await insist(() => journal.beginWait({ head, deadline }, stored));
    });
  }
}
