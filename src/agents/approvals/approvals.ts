import { type Clock, elapsedOf, systemClock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
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

export interface ApprovalsOptions {
  /** Milliseconds before a call that nobody decided on is denied; default: it waits as long as it takes. */
  readonly timeoutMs?: number;
  /** Calls that may wait at once; one more is denied. Default 10,000. */
  readonly maxWaiting?: number;
}

const defaultMaxWaiting = 10_000;

/** How late a denial may come after the machine was asleep: a timer counts only while it is awake. */
const lookMs = 60_000;

interface Waiting {
  readonly request: ApprovalRequest;
  /** In the milliseconds that the clock has counted: it is the same however the time of day is set. */
  readonly deadline: number;
  decide(decision: ApprovalDecision): void;
}

/** Creates a place where calls wait in this process's memory. */
export function createApprovals(options: ApprovalsOptions = {}): Approvals {
  return createApprovalsBy(systemClock, options);
}

/** The same, by a clock of the caller's. */
export function createApprovalsBy(clock: Clock, options: ApprovalsOptions = {}): Approvals {
  const maxWaiting = options.maxWaiting ?? defaultMaxWaiting;
  const waiting = new Map<string, Waiting>();
  const counted = (): number => elapsedOf(clock) + (clock.asleep?.() ?? 0);
  // One timer for all that wait: that of the earliest deadline.
  let timer: AbortController | undefined;
  let armedFor = Number.POSITIVE_INFINITY;

  function arm(deadline: number): void {
    timer?.abort();
    armedFor = deadline;
    timer = undefined;
    if (deadline === Number.POSITIVE_INFINITY) return;
    timer = new AbortController();
    clock
      .sleep(Math.min(Math.max(0, deadline - counted()), lookMs), timer.signal)
      .then(expire, () => undefined);
  }

  function expire(): void {
    const now = counted();
    let next = Number.POSITIVE_INFINITY;
    for (const { deadline, decide } of waiting.values()) {
      if (deadline > now) next = Math.min(next, deadline);
      else decide({ approved: false, reason: "Nobody approved it in time." });
    }
    arm(next);
  }

  function deadlineOf({ expires_at }: ApprovalRequest): number {
    if (expires_at === undefined) return Number.POSITIVE_INFINITY;
    return counted() + Date.parse(expires_at) - clock.now();
  }

  return {
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    async request(request, signal) {
      signal.throwIfAborted();
      if (waiting.size >= maxWaiting) {
        return { approved: false, reason: `${maxWaiting} calls are waiting for approval already.` };
      }
      return new Promise((resolve, reject) => {
        const end = (): void => {
          if (waiting.get(request.approval_id) === own) waiting.delete(request.approval_id);
          // What nobody waits for keeps no process alive.
          if (waiting.size === 0) arm(Number.POSITIVE_INFINITY);
          signal.removeEventListener("abort", leave);
        };
        const leave = (): void => {
          end();
          reject(signal.reason);
        };
        const own: Waiting = {
          request,
          deadline: deadlineOf(request),
          decide(decision) {
            end();
            resolve(decision);
          },
        };
        signal.addEventListener("abort", leave, { once: true });
        waiting.set(request.approval_id, own);
        if (own.deadline < armedFor) arm(own.deadline);
      });
    },
    async decide(approvalId, decision, within = {}) {
      const found = waiting.get(approvalId);
      if (found === undefined || !fits(found.request, within)) throw notWaiting();
      found.decide(decision);
    },
    list: async (filter = {}) =>
      [...waiting.values()].flatMap(({ request }) => (fits(request, filter) ? [request] : [])),
  };
}

function fits(request: ApprovalRequest, filter: ApprovalFilter): boolean {
  const { agent, instance_id, session } = filter;
  return (
    (agent === undefined || agent === request.agent) &&
    (instance_id === undefined || instance_id === request.instance_id) &&
    (session === undefined || session === request.session)
  );
}

export function notWaiting(): KitError {
  return new KitError({
    code: "not_found",
    message: "There is no such call waiting for approval.",
    hint: "It was decided, has expired or was aborted: list what waits.",
  });
}
