import { createHash } from "node:crypto";
import { canonical } from "../../base/json-text.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type {
  CallFilter,
  CallWait,
  CallWork,
  CountedDecision,
  WaitingCall,
  WaitingCalls,
} from "../waiting-calls-contract.ts";

/** A call for its row. */
export interface StoredCall {
  readonly request: ApprovalRequest;
  readonly work: CallWork | undefined;
  /** The request as JSON. */
  readonly text: string;
  /** Identifies the arguments: a decision holds only for those that it was made about. */
  readonly args_hash: string;
}

export interface CallRow {
  readonly requested_at: string;
  readonly request: string;
}

/** The rows of waiting calls. Decisions are JSON. */
export interface WaitingCallStore {
  /** Adds a call, or a wait for a stored one. Returns its decision, or null. Throws `lease_lost`. */
  add(call: StoredCall): Promise<string | null>;
  /**
   * Writes a decision unless there is one. Returns the one that counts; `undefined` without a row. Throws `lease_lost` if a
   * newer holder of the lease waits for the call.
   */
  settle(call: StoredCall, decision: string): Promise<string | undefined>;
  /** Removes a call that has no decision, unless a newer holder of the lease waits for it. */
  withdraw(call: StoredCall): Promise<void>;
  /** Writes the decision of a call that waits. False if none does. */
  decide(approvalId: string, decision: string, within: CallFilter): Promise<boolean>;
  /** The decision of a call; null if it has none, `undefined` without a row. */
  decisionOf(approvalId: string, within: CallFilter): Promise<string | null | undefined>;
  list(within: CallFilter): Promise<readonly CallRow[]>;
  /** The decided calls among those that this process waits for. */
  decided(
    approvalIds: readonly string[],
  ): Promise<readonly { readonly call_id: string; readonly decision: string }[]>;
}

/** The calls of an engine that wait for a decision, and the waits of this process. */
export class WaitingCallRecords implements WaitingCalls {
  readonly #store: WaitingCallStore;
  readonly #waits = new Map<string, (decision: ApprovalDecision) => void>();

  constructor(store: WaitingCallStore) {
    this.#store = store;
  }

  async add(
    { request, work }: WaitingCall,
    onDecided: (decision: ApprovalDecision) => void,
  ): Promise<CallWait> {
    const { approval_id: id } = request;
    const args_hash = createHash("sha256").update(canonical(request.args)).digest("hex");
    const call: StoredCall = { request, work, text: JSON.stringify(request), args_hash };
    const leave = (): void => {
      // A later wait for the same call may have replaced this one.
      if (this.#waits.get(id) === onDecided) this.#waits.delete(id);
    };
    // Before the row exists: it can be decided at once.
    this.#waits.set(id, onDecided);
    try {
      const decided = await this.#store.add(call);
      if (decided !== null) leave();
      return {
        ...(decided === null ? {} : { decision: toDecision(decided) }),
        leave,
        settle: async (decision) => {
          leave();
          const counted = await this.#store.settle(call, JSON.stringify(decision));
          return counted === undefined ? decision : toDecision(counted);
        },
        withdraw: async () => {
          leave();
          await this.#store.withdraw(call);
        },
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  async decide(
    approvalId: string,
    decision: ApprovalDecision,
    within: CallFilter = {},
  ): Promise<CountedDecision | undefined> {
    if (await this.#store.decide(approvalId, JSON.stringify(decision), within)) {
      this.#waits.get(approvalId)?.(decision);
      return { decision, isFirst: true };
    }
    const counted = await this.#store.decisionOf(approvalId, within);
    return typeof counted === "string" ? { decision: toDecision(counted), isFirst: false } : undefined;
  }

  async list(within: CallFilter = {}): Promise<readonly ApprovalRequest[]> {
    return (await this.#store.list(within)).map(({ request, requested_at }) => ({
      ...(JSON.parse(request) as ApprovalRequest),
      requested_at,
    }));
  }

  /** Handles the news that another process has decided a call. */
  onNews(approvalId: string): void {
    if (this.#waits.has(approvalId)) void this.check().catch(() => undefined);
  }

  /** Finds decisions that other processes have made. */
  async check(): Promise<void> {
    if (this.#waits.size === 0) return;
    for (const { call_id, decision } of await this.#store.decided([...this.#waits.keys()]))
      this.#waits.get(call_id)?.(toDecision(decision));
  }
}

function toDecision(text: string): ApprovalDecision {
  return JSON.parse(text) as ApprovalDecision;
}
