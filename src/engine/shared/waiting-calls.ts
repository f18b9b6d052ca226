import { createHash } from "node:crypto";
import { canonical } from "../../base/json-text.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { sessionName } from "../../protocol/session-name.ts";
import type { WaitingListing } from "../list-contract.ts";
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
  /**
   * Adds a call, or a wait for a stored one. Returns its decision, or null; `undefined` if the store does not take the
   * call, because it could not tell whether the call's process lives. Throws `lease_lost`.
   */
  add(call: StoredCall): Promise<string | null | undefined>;
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
  /** The sessions of these rows, each once; with `among`, only those that it names. */
  sessions(among: readonly SessionKey[] | undefined): Promise<readonly SessionKey[]>;
  /** Up to `limit` of these rows after a place. */
  listAfter(listing: WaitingListing): Promise<readonly CallRow[]>;
  /** The number of rows that `list` returns. */
  count(): Promise<number>;
  /** The decided calls among those that this process waits for. */
  decided(
    approvalIds: readonly string[],
  ): Promise<readonly { readonly call_id: string; readonly decision: string }[]>;
}

/** The calls of an engine that wait for a decision, and the waits of this process. */
export class WaitingCallRecords implements WaitingCalls {
  readonly #store: WaitingCallStore;
  readonly #unstored = new UnstoredCalls();
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
      if (decided === undefined) {
        leave();
        return this.#unstored.add(request, onDecided);
      }
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
    const unstored = this.#unstored.decide(approvalId, decision, within);
    if (unstored !== undefined) return unstored;
    if (await this.#store.decide(approvalId, JSON.stringify(decision), within)) {
      this.#deliver(approvalId, decision);
      return { decision, isFirst: true };
    }
    const counted = await this.#store.decisionOf(approvalId, within);
    return typeof counted === "string" ? { decision: toDecision(counted), isFirst: false } : undefined;
  }

  async list(within: CallFilter = {}): Promise<readonly ApprovalRequest[]> {
    return merge((await this.#store.list(within)).map(toRequest), this.#unstored.list(within));
  }

  async sessions(among?: readonly SessionKey[]): Promise<readonly SessionKey[]> {
    const stored = await this.#store.sessions(among);
    const names = among && new Set(among.map(sessionName));
    const found = new Map(stored.map((key) => [sessionName(key), { ...key }]));
    for (const { agent, instance_id, session } of this.#unstored.list({})) {
      const key = { agent, instance_id, session };
      const name = sessionName(key);
      if (names?.has(name) !== false) found.set(name, key);
    }
    return [...found.values()];
  }

  async page(
    listing: WaitingListing,
  ): Promise<{ readonly items: readonly ApprovalRequest[]; readonly total: number }> {
    const unstored = this.#unstored.list({});
    const [rows, count] = await Promise.all([this.#store.listAfter(listing), this.#store.count()]);
    const { limit, after } = listing;
    const following = unstored.filter(
      ({ requested_at, approval_id: id }) =>
        after === undefined || requested_at > after.at || (requested_at === after.at && id > after.id),
    );
    return { items: merge(rows.map(toRequest), following).slice(0, limit), total: count + unstored.length };
  }

  /** Handles the news that another process has decided a call. */
  onNews(approvalId: string): void {
    if (this.#waits.has(approvalId)) void this.check().catch(() => undefined);
  }

  /** Finds decisions that other processes have made. */
  async check(): Promise<void> {
    if (this.#waits.size === 0) return;
    for (const { call_id, decision } of await this.#store.decided([...this.#waits.keys()]))
      this.#deliver(call_id, toDecision(decision));
  }

  /** Tells a wait its decision once: a check can find a decision that this process is just making. */
  #deliver(approvalId: string, decision: ApprovalDecision): void {
    const onDecided = this.#waits.get(approvalId);
    this.#waits.delete(approvalId);
    onDecided?.(decision);
  }
}

/** A call outside of the engine's work that waits in this process, also between its decision and the end of its wait. */
interface UnstoredCall {
  readonly request: ApprovalRequest;
  readonly onDecided: (decision: ApprovalDecision) => void;
  decision?: ApprovalDecision;
}

/** The calls that the store does not take: only this process lists and decides them. */
class UnstoredCalls {
  readonly #calls = new Map<string, UnstoredCall>();

  add(request: ApprovalRequest, onDecided: UnstoredCall["onDecided"]): CallWait {
    const call: UnstoredCall = { request, onDecided };
    const { approval_id: id } = request;
    this.#calls.set(id, call);
    const leave = (): void => {
      if (this.#calls.get(id) === call) this.#calls.delete(id);
    };
    return {
      leave,
      withdraw: async () => leave(),
      settle: async (decision) => {
        leave();
        return call.decision ?? decision;
      },
    };
  }

  decide(id: string, decision: ApprovalDecision, within: CallFilter): CountedDecision | undefined {
    const call = this.#calls.get(id);
    if (call === undefined || !isWithin(call.request, within)) return undefined;
    if (call.decision !== undefined) return { decision: call.decision, isFirst: false };
    call.decision = decision;
    call.onDecided(decision);
    return { decision, isFirst: true };
  }

  list(within: CallFilter): readonly ApprovalRequest[] {
    return [...this.#calls.values()].flatMap(({ request, decision }) =>
      decision === undefined && isWithin(request, within) ? [request] : [],
    );
  }
}

function isWithin(request: ApprovalRequest, { agent, instance_id, session }: CallFilter): boolean {
  return (
    (agent === undefined || agent === request.agent) &&
    (instance_id === undefined || instance_id === request.instance_id) &&
    (session === undefined || session === request.session)
  );
}

function toRequest({ request, requested_at }: CallRow): ApprovalRequest {
  return { ...(JSON.parse(request) as ApprovalRequest), requested_at };
}

function merge(
  stored: readonly ApprovalRequest[],
  unstored: readonly ApprovalRequest[],
): readonly ApprovalRequest[] {
  if (unstored.length === 0) return stored;
  return [...stored, ...unstored].toSorted((one, other) => (isOlder(one, other) ? -1 : 1));
}

/** The order of lists. */
function isOlder(one: ApprovalRequest, other: ApprovalRequest): boolean {
  if (one.requested_at !== other.requested_at) return one.requested_at < other.requested_at;
  return one.approval_id < other.approval_id;
}

function toDecision(text: string): ApprovalDecision {
  return JSON.parse(text) as ApprovalDecision;
}

/** The fields of a filter as values of a statement: null stands for any. */
export function fieldsOf({ agent, instance_id, session }: CallFilter): (string | null)[] {
  return [agent ?? null, instance_id ?? null, session ?? null];
}
