import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";

/** Which requests: those whose fields are all the same. */
export type ApprovalFilter = { readonly [Key in keyof SessionKey]?: SessionKey[Key] | undefined };

/**
 * Where tool calls wait for somebody's word. A runtime without one denies at once what needs approval.
 * What waits is asked again after a crash, under the same id, when its operation goes on.
 */
export interface Approvals {
  /** How long a call waits before it counts as denied; absent: as long as it takes. */
  readonly timeoutMs?: number;
  /**
   * Resolves with the word that was given, or with a denial at `expires_at`. Rejects with
   * `signal.reason` when the signal fires first; nobody is asked any longer then. `mayRest` is for services, which can
   * give an operation up in memory that does nothing but wait.
   */
  request(request: ApprovalRequest, signal: AbortSignal, mayRest?: () => boolean): Promise<ApprovalDecision>;
  /**
   * Gives the word. Throws `not_found` for what is not waiting, or not among what `within` describes:
   * decided, expired, aborted or unknown.
   */
  decide(approvalId: string, decision: ApprovalDecision, within?: ApprovalFilter): Promise<void>;
  /** What waits, oldest first. */
  list(filter?: ApprovalFilter): Promise<readonly ApprovalRequest[]>;
}
