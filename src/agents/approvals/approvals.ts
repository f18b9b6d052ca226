import { type Clock, elapsedOf, systemClock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";

/** Selects requests whose fields equal all given ones. */
export type ApprovalFilter = { readonly [Key in keyof SessionKey]?: SessionKey[Key] | undefined };

/** The wait of an operation for a decision. */
export interface ApprovalWait {
  /** For services: whether the operation only waits at the moment, and can be dropped from memory. */
  readonly maySuspend?: (() => boolean) | undefined;
  /**
   * Called when the call has begun to wait: from then on it can be listed and decided, and events tell of it. Without a wait, as
   * after a decision that was made before, it is not called.
   */
  readonly onWaiting?: (() => void) | undefined;
}

/**
 * Holds tool calls until a person approves or denies them. A runtime without it denies such calls at once.
 * After a crash, a resumed operation requests its approvals again under the same ids.
 *
 * @example
 * ```ts
 * import type { Approvals } from "kit";
 *
 * export async function approveAll(approvals: Approvals): Promise<void> {
 *   for (const { approval_id } of await approvals.list({ agent: "payer" }))
 *     await approvals.decide(approval_id, { approved: true, by: "ops" });
 * }
 * ```
 */
export interface Approvals {
  /** Milliseconds before a waiting call is denied; without it, calls wait without limit. */
  readonly timeoutMs?: number | undefined;
  /**
   * Resolves with the decision, or with a denial at `expires_at`. Rejects with
   * `signal.reason` and withdraws the request when the signal fires first.
   */
  request(request: ApprovalRequest, signal: AbortSignal, wait?: ApprovalWait): Promise<ApprovalDecision>;
  /**
   * Approves or denies a waiting call. Throws `not_found` if no call matches the id and `within`:
   * decided, expired, aborted or unknown. A service tells the first decision as `meta.decision`.
   */
  decide(approvalId: string, decision: ApprovalDecision, within?: ApprovalFilter): Promise<void>;
  /** Waiting requests, oldest first. */
  list(filter?: ApprovalFilter): Promise<readonly ApprovalRequest[]>;
}

export interface ApprovalsOptions {
  /** Milliseconds before an undecided call is denied; default: no limit. */
  readonly timeoutMs?: number;
  /** Calls that may wait at once; further calls are denied. Default 10,000. */
  readonly maxWaiting?: number;
}

const defaultMaxWaiting = 10_000;

/** Longest delay of a denial after the machine was asleep: timers count only while it is awake. */
const maxTimerMs = 60_000;

interface Waiting {
  readonly request: ApprovalRequest;
  /** In elapsed milliseconds, which do not change when the time of day is set. */
  readonly deadline: number;
  decide(decision: ApprovalDecision): void;
}

/**
 * Creates approvals that wait in this process's memory.
 *
 * @example
 * ```ts
 * import { createApprovals } from "kit";
 *
 * const approvals = createApprovals({ timeoutMs: 60_000 });
 * for (const { approval_id, tool } of await approvals.list())
 *   await approvals.decide(approval_id, { approved: tool === "search", reason: "only searches" });
 * ```
 */
export function createApprovals(options: ApprovalsOptions = {}): Approvals {
  return createApprovalsBy(systemClock, options);
}

/** Like `createApprovals`, with the caller's clock. */
export function createApprovalsBy(clock: Clock, options: ApprovalsOptions = {}): Approvals {
  const maxWaiting = options.maxWaiting ?? defaultMaxWaiting;
  const waiting = new Map<string, Waiting>();
  const counted = (): number => elapsedOf(clock) + (clock.asleep?.() ?? 0);
  // One timer serves all waiting calls: it fires at the earliest deadline.
  let timer: AbortController | undefined;
  let armedFor = Number.POSITIVE_INFINITY;

  function arm(deadline: number): void {
    timer?.abort();
    armedFor = deadline;
    timer = undefined;
    if (deadline === Number.POSITIVE_INFINITY) return;
    timer = new AbortController();
    clock
      .sleep(Math.min(Math.max(0, deadline - counted()), maxTimerMs), timer.signal)
      .then(expire, () => undefined);
  }

  function expire(): void {
    const now = counted();
    let next = Number.POSITIVE_INFINITY;
    for (const { request, deadline, decide } of waiting.values()) {
      if (deadline > now) next = Math.min(next, deadline);
      else {
        const what = request.kind === "question" ? "answered" : "approved";
        decide({ approved: false, reason: `It was not ${what} in time.`, unanswered: true });
      }
    }
    arm(next);
  }

  function deadlineOf({ expires_at }: ApprovalRequest): number {
    if (expires_at === undefined) return Number.POSITIVE_INFINITY;
    return counted() + Date.parse(expires_at) - clock.now();
  }

  return {
    timeoutMs: options.timeoutMs,
    async request(request, signal, { onWaiting } = {}) {
      signal.throwIfAborted();
      if (waiting.size >= maxWaiting) {
        const reason = `${maxWaiting} calls are waiting for approval already.`;
        return { approved: false, reason, unanswered: true };
      }
      return new Promise((resolve, reject) => {
        const end = (): void => {
          if (waiting.get(request.approval_id) === entry) waiting.delete(request.approval_id);
          // A timer without waiting calls must not keep the process alive.
          if (waiting.size === 0) arm(Number.POSITIVE_INFINITY);
          signal.removeEventListener("abort", leave);
        };
        const leave = (): void => {
          end();
          reject(signal.reason);
        };
        const entry: Waiting = {
          request,
          deadline: deadlineOf(request),
          decide(decision) {
            end();
            resolve(decision);
          },
        };
        signal.addEventListener("abort", leave, { once: true });
        waiting.set(request.approval_id, entry);
        if (entry.deadline < armedFor) arm(entry.deadline);
        onWaiting?.();
      });
    },
    async decide(approvalId, decision, within = {}) {
      const waitingCall = waiting.get(approvalId);
      if (waitingCall === undefined || !fits(waitingCall.request, within)) throw notWaiting();
      checkEdited(waitingCall.request, decision);
      waitingCall.decide(decision);
    },
    list: async (filter = {}) =>
      [...waiting.values()].flatMap(({ request }) => (fits(request, filter) ? [request] : [])),
  };
}

/** Whether a decision can be refused because of what it carries. A plain decision about a call that needs approval cannot. */
export function isDetailed(approvalId: string, { args, result }: ApprovalDecision): boolean {
  return args !== undefined || result !== undefined || !approvalId.startsWith("approval_");
}

/** Characters of JSON: a tool gets the whole answer, and the log keeps it. */
const maxAnswer = 65_536;

/** Throws `invalid_request` for arguments and results that this decision cannot carry. */
export function checkEdited(
  { tool, input_schema, kind = "approval" }: ApprovalRequest,
  { approved, args, result }: ApprovalDecision,
): void {
  const needsResult = kind !== "approval" && approved;
  if (needsResult !== (result !== undefined)) {
    const answered =
      kind === "question"
        ? `A question of ${tool} is answered with a \`result\` that its \`schema\` allows.`
        : `A call of ${tool} is answered with its result.`;
    const message = needsResult
      ? answered
      : `A ${approved ? "call that needs approval" : "denial"} cannot have a result.`;
    const fault = needsResult ? "is required, or `approved` must be false" : "cannot be given here";
    throw refusedPart(message, { path: "result", message: fault });
  }
  if (kind === "question" && JSON.stringify(result ?? null).length > maxAnswer)
    throw refusedPart("The answer has more than 65,536 characters of JSON.", {
      path: "result",
      message: "must be shorter",
    });
  if (args === undefined) return;
  const fault = approved
    ? input_schema === undefined &&
      `The arguments of ${tool} cannot be changed: its \`editableArguments\` is not set.`
    : "A denial cannot have arguments.";
  if (fault !== false) throw refusedPart(fault, { path: "args", message: "cannot be given here" });
}

function refusedPart(message: string, issue: { readonly path: string; readonly message: string }): KitError {
  return new KitError({ code: "invalid_request", message, meta: { issues: [issue] } });
}

function fits(request: ApprovalRequest, filter: ApprovalFilter): boolean {
  const { agent, instance_id, session } = filter;
  return (
    (agent === undefined || agent === request.agent) &&
    (instance_id === undefined || instance_id === request.instance_id) &&
    (session === undefined || session === request.session)
  );
}

/** The error for a decision about a call that does not wait; it tells the first decision, if there was one. */
export function notWaiting(first?: ApprovalDecision): KitError {
  const hint = "It was decided, has expired or was aborted. List the waiting calls.";
  if (first === undefined)
    return new KitError({
      code: "not_found",
      message: "No call with this id is waiting for approval.",
      hint,
    });
  const { approved, by, reason } = first;
  return new KitError({
    code: "not_found",
    message: `The call was ${approved ? "approved" : "denied"} already${by === undefined ? "" : ` by ${by}`}.`,
    hint: "Only the first decision counts.",
    meta: { decision: { approved, by, reason } },
  });
}
