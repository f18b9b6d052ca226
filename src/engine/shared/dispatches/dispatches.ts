import type { DispatchReceipt, DispatchRecord } from "../../../protocol/dispatch.ts";
import type {
  AdmitRequest,
  DispatchFilter,
  Engine,
  LinePlace,
  Page,
  WaitOptions,
  WorkContext,
} from "../../contract.ts";
import type { EngineBase, EngineLimits } from "../engine-base.ts";
import type { DispatchCalls } from "../engine-calls.ts";
import { Ends } from "../queue/ends.ts";
import { AttachedCalls } from "./attached-calls.ts";
import { DispatchAttempts } from "./dispatch-attempts.ts";
import { type DispatchRow, type DispatchStore, toRecord, unknownDispatch } from "./dispatch-store.ts";

/** Inputs for sessions, from admission to their end. An engine adds how its inputs are accepted, and how they reach the queue. */
export abstract class Dispatches<Base extends EngineBase> implements DispatchCalls, Pick<Engine, "inLine"> {
  protected readonly base: Base;
  protected readonly calls: AttachedCalls;
  protected readonly attempts: DispatchAttempts;
  protected readonly ends: Ends<DispatchRow>;
  readonly #rows: DispatchStore;

  constructor(base: Base, rows: DispatchStore, limits: EngineLimits) {
    this.base = base;
    this.#rows = rows;
    this.calls = new AttachedCalls(base);
    this.attempts = new DispatchAttempts(base, rows, { limits, ended: (id) => this.noteEnd(id) });
    this.ends = new Ends({
      find: (id) => rows.find(id),
      hasEnded: ({ ended_at }) => ended_at !== null,
      openAmong: (ids) => rows.openAmong(ids),
    });
  }

  abstract admit(request: AdmitRequest): Promise<DispatchReceipt>;

  abstract inLine<Value>(
    session: LinePlace,
    work: (context: WorkContext) => Promise<Value>,
    options?: WaitOptions,
  ): Promise<Value>;

  /** Puts a dead letter at the end of its line. Throws `not_found`, and `conflict` if the dispatch has not failed. */
  protected abstract requeueFailed(id: string): Promise<void>;

  protected noteEnd(id: string): void {
    this.ends.wake(id);
  }

  /** Called for a cancelled dispatch that has begun: its session's worker ends it. */
  protected noteCancelled({ dispatch_id }: DispatchRow): void {
    this.attempts.cancel(dispatch_id);
  }

  /** The number of inputs that wait without being stored. */
  attached(): number {
    return this.calls.waiting();
  }

  async getDispatch(id: string): Promise<DispatchRecord | undefined> {
    return this.#toRecord(await this.#rows.find(id));
  }

  async listDispatches(filter: DispatchFilter = {}): Promise<Page<DispatchRecord>> {
    return await this.#rows.list(filter);
  }

  async listDeadLetters(filter?: Omit<DispatchFilter, "status">): Promise<Page<DispatchRecord>> {
    return await this.#rows.list({ ...filter, status: "failed" });
  }

  async awaitDispatch(id: string, options?: WaitOptions): Promise<DispatchRecord | undefined> {
    return this.#toRecord(await this.ends.wait(id, options?.signal));
  }

  async cancelDispatch(id: string): Promise<boolean> {
    const row = await this.#rows.cancel(id);
    if (row === undefined) return false;
    if (row.cancelling) this.noteCancelled(row);
    else {
      this.attempts.leave(row);
      this.noteEnd(id);
    }
    return true;
  }

  async redrive(id: string): Promise<DispatchRecord> {
    await this.requeueFailed(id);
    const record = await this.getDispatch(id);
    if (record === undefined) throw unknownDispatch();
    return record;
  }

  close(reason: unknown): void {
    this.ends.close(reason);
  }

  #toRecord(row: DispatchRow | undefined): DispatchRecord | undefined {
    return row === undefined ? undefined : toRecord(row, this.base);
  }
}
