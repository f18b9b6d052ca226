import type { ApprovalDecision, ApprovalRequest } from "../protocol/approval.ts";
import type { SessionKey } from "../protocol/session-entry.ts";
import type { Owned } from "./cluster.ts";
import type { WaitingListing } from "./list-contract.ts";

/** Selects the calls whose fields equal all fields of the filter. */
export type CallFilter = { readonly [Key in keyof SessionKey]?: SessionKey[Key] | undefined };

/** The work of the engine to which a call belongs. */
export interface CallWork {
  /** The instance or run whose lease the process holds. */
  readonly owned: Owned;
  /** The fence under which it holds the lease. */
  readonly fence: number;
  /**
   * The dispatch or the run, if it asks again for the same call after its process died: the call then waits as long as this
   * work is open. Otherwise the call waits as long as the process holds the lease.
   */
  readonly resumes?: string | undefined;
}

export interface WaitingCall {
  readonly request: ApprovalRequest;
  /**
   * Absent for a call outside of the engine's work, as of an agent that a program prompts: it waits as long as its process
   * lives. Without `cluster` the engine does not know which processes live: then only this process lists and decides the call,
   * and its decision is not stored.
   */
  readonly work?: CallWork | undefined;
}

/** The wait of one process for the decision about a call. */
export interface CallWait {
  /** The decision that was made while an earlier process waited; then the wait is over. */
  readonly decision?: ApprovalDecision | undefined;
  /**
   * Stores a decision of this process, such as a denial after the time limit. Returns the one that counts: an earlier one, or
   * this. Throws `lease_lost` if a newer holder of the lease waits for the call.
   */
  settle(decision: ApprovalDecision): Promise<ApprovalDecision>;
  /** Ends the wait of this process; the work will ask again. */
  leave(): void;
  /** Ends an undecided call that is not asked again. */
  withdraw(): Promise<void>;
}

/** The decision that counts. */
export interface CountedDecision {
  readonly decision: ApprovalDecision;
  /** False if it was made earlier. */
  readonly isFirst: boolean;
}

/**
 * Tool calls that wait for a decision, one stored row per call. Each process that shares the store lists and decides them, except some
 * outside of the engine's work (`WaitingCall.work`).
 *
 * The first decision counts. It stays in the row for as long as the engine keeps ended work, so that a process that resumes
 * the work finds it, and a second sender is told about it. A call ends with its work: then it is neither listed nor decided.
 */
export interface WaitingCalls {
  /**
   * Stores a call that begins to wait in this process. A call that waits again keeps `requested_at` and its decision, unless
   * its arguments are others. `onDecided` is called with a decision that is made later. Throws `lease_lost` if a newer holder of the lease
   * has asked.
   */
  add(call: WaitingCall, onDecided: (decision: ApprovalDecision) => void): Promise<CallWait>;
  /** Decides a call. `undefined` if no call with this id and these fields waits or was decided. */
  decide(
    approvalId: string,
    decision: ApprovalDecision,
    within?: CallFilter,
  ): Promise<CountedDecision | undefined>;
  /** The undecided calls of open work, oldest first. */
  list(within?: CallFilter): Promise<readonly ApprovalRequest[]>;
  /** The sessions in which these calls wait, each once; with `among`, only those that it names. Without this method, kit reads the calls. */
  sessions?(among?: readonly SessionKey[]): Promise<readonly SessionKey[]>;
  /** A page of the same calls, with their number. Without this method, kit reads all of them. */
  page?(
    listing: WaitingListing,
  ): Promise<{ readonly items: readonly ApprovalRequest[]; readonly total: number }>;
}
