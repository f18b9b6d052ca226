import type { RunJournalEntry, RunRecord } from "../../../protocol/run.ts";
import { runStream } from "../../../protocol/session-name.ts";
import type { WaitingSignal } from "../../../protocol/waiting.ts";
import type {
  Page,
  RunFilter,
  RunReceipt,
  RunRequest,
  RunSignal,
  WaitingListing,
  WaitOptions,
} from "../../contract.ts";
import type { EngineBase } from "../engine-base.ts";
import type { RunCalls } from "../engine-calls.ts";
import type { StoredEventLog } from "../events/event-log.ts";
import { Ends } from "../queue/ends.ts";
import type { Dispatcher } from "./execution-core.ts";
import { RunJobs, recordCancelled } from "./run-jobs.ts";
import type { RunJournals } from "./run-journal.ts";
import { hasEnded, lineOfRun, type RunRow, type RunStore, toRunRecord, unknownRun } from "./run-store.ts";

export interface RunsOptions {
  readonly events: StoredEventLog;
  /** Admits the inputs that a run dispatches. */
  readonly admit: Dispatcher;
}

/** Invocations of workflows, from admission to their end. An engine adds how its runs are accepted, and how they reach the queue. */
export abstract class Runs<Base extends EngineBase> implements RunCalls {
  protected readonly base: Base;
  protected readonly events: StoredEventLog;
  protected readonly jobs: RunJobs;
  protected readonly ends: Ends<RunRow>;
  readonly #store: RunStore;
  readonly #journals: RunJournals;

  constructor(
    base: Base,
    { store, journals }: { readonly store: RunStore; readonly journals: RunJournals },
    { events, admit }: RunsOptions,
  ) {
    this.base = base;
    this.events = events;
    this.#store = store;
    this.#journals = journals;
    this.ends = new Ends({
      find: (id) => store.find(id),
      hasEnded: ({ status }) => hasEnded(status),
      openAmong: (ids) => store.openAmong(ids),
    });
    this.jobs = new RunJobs(
      { base, events, journals, admit, awaitRun: (id, options) => this.awaitRun(id, options) },
      {
        store,
        ended: (runId) => this.noteEnd(runId),
        waits: () => this.armWakeUps(),
        queued: () => this.enqueueNew(),
      },
    );
    base.stopping.addEventListener("abort", () => this.leaveAll(base.stopping.reason), { once: true });
  }

  /** Accepts a run: resolves once it is on disk. */
  protected abstract accept(request: RunRequest): Promise<RunReceipt>;
  /** Queues a failed run again, in the order of newly accepted runs. Returns its row. */
  protected abstract requeueFailed(runId: string): Promise<RunRow>;
  /** Called once a queued run is on disk. */
  protected abstract announce(runId: string): void;
  /** Enqueues the queued runs of this process. */
  protected abstract enqueueNew(): void;
  /** Sets the timer to the earliest time that a run waits for. */
  protected abstract armWakeUps(): void;
  abstract listWaitingSignals(listing: WaitingListing): Promise<Page<WaitingSignal>>;
  abstract resumeHeld(): Promise<void>;
  abstract signal(runId: string, signal: RunSignal): Promise<void>;

  /** Called for a running run that was cancelled. */
  protected noteCancelled(runId: string): void {
    this.jobs.cancel(runId);
  }

  protected noteEnd(runId: string): void {
    try {
      this.events.end(runStream(runId));
    } catch {
      // Another process writes the stream now, and ends it when it notices the run's end.
    }
    this.ends.wake(runId);
  }

  async startRun(request: RunRequest): Promise<RunReceipt> {
    const receipt = await this.accept(request);
    this.announce(receipt.run_id);
    return receipt;
  }

  async getRun(runId: string): Promise<RunRecord | undefined> {
    return await this.#toRecord(await this.#store.find(runId));
  }

  async readJournal(
    runId: string,
    page: { readonly after: number; readonly limit: number },
  ): Promise<readonly RunJournalEntry[] | undefined> {
    const row = await this.#store.find(runId);
    return row === undefined ? undefined : await this.#journals.page(row.id, page);
  }

  async listRuns(filter: RunFilter = {}): Promise<Page<RunRecord>> {
    const page = await this.#store.list(filter);
    return { ...page, items: await this.#toRecords(page.items) };
  }

  async awaitRun(runId: string, { signal }: WaitOptions = {}): Promise<RunRecord | undefined> {
    return await this.#toRecord(await this.ends.wait(runId, signal));
  }

  async retryRun(runId: string): Promise<RunRecord> {
    const row = await this.requeueFailed(runId);
    this.announce(runId);
    const record = await this.#toRecord(row);
    if (record === undefined) throw unknownRun();
    return record;
  }

  async cancelRun(runId: string): Promise<boolean> {
    const cancelled = await this.#cancel(runId);
    // If this process ends in between, the one that takes its work over cancels the other children.
    if (cancelled) for (const child of await this.#store.descendants(runId)) await this.#cancel(child);
    return cancelled;
  }

  close(reason: unknown): void {
    this.ends.close(reason);
  }

  protected leaveAll(reason: unknown): void {
    for (const execution of this.jobs.executions.values()) execution.leave(reason);
  }

  /** Ends the stream of a run that ended without being executed. */
  protected async recordEnd(row: RunRow): Promise<void> {
    if (row.status === "cancelled") await recordCancelled(this.events, row, this.base.clock.now());
    this.noteEnd(row.run_id);
  }

  async #cancel(runId: string): Promise<boolean> {
    const row = await this.#store.cancel(runId);
    if (row === undefined) return false;
    if (row.status === "running") this.noteCancelled(runId);
    else {
      this.base.queue.leave({ id: runId, line: lineOfRun(row) });
      await this.recordEnd(row);
    }
    return true;
  }

  async #toRecord(row: RunRow | undefined): Promise<RunRecord | undefined> {
    return row === undefined ? undefined : (await this.#toRecords([row]))[0];
  }

  async #toRecords(rows: readonly RunRow[]): Promise<RunRecord[]> {
    const open = rows.filter(({ status }) => !hasEnded(status)).map(({ id }) => id);
    const waits = await this.#journals.waits(open);
    const counts = await this.events.counts(rows.map(({ run_id }) => runStream(run_id)));
    return rows.map((row) =>
      toRunRecord(row, this.base, {
        waits: waits.get(row.id) ?? [],
        event_count: counts.get(runStream(row.run_id)) ?? 0,
      }),
    );
  }
}
