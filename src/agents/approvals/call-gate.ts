import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { ToolResultPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { needsApproval } from "../define/approval-rules.ts";
import type { ToolDefinition } from "../define/tool.ts";
import { isPutOff, PutOff } from "../log/suspension.ts";
import { taskOfPart } from "../turn/backend-work.ts";
import { type CallRecord, callNotes, type GatedCall, recordOf, type ToolGate } from "../turn/tool-gate.ts";

/**
 * Stands before the tools of one operation. What it is told goes into the session's log before anything
 * follows from it, so that a call which waited is told, after a crash, from one which may have run.
 */
export class CallGate implements ToolGate {
  readonly #harness: Harness;
  readonly #operation: Operation;
  /** Calls of the turn that have no result yet, and those of them that wait for a word. */
  #open = 0;
  #waiting = 0;

  constructor(harness: Harness, operation: Operation) {
    this.#harness = harness;
    this.#operation = operation;
  }

  begin(calls: number): void {
    this.#open += calls;
  }

  ended(): void {
    this.#open -= 1;
  }

  asks(tool: ToolDefinition, call: GatedCall): boolean | Promise<boolean> {
    return needsApproval(tool, call, this.#operation.live.profile.approvals);
  }

  record(key: string): CallRecord {
    return recordOf(this.#operation.past, key);
  }

  async word(gated: GatedCall, record: CallRecord = {}): Promise<ApprovalDecision> {
    const { signal, emit } = this.#operation;
    const { approvals } = this.#harness.runtime;
    const request = this.#toRequest(gated, record);
    const { approval_id, tool_call_id, tool, args, expires_at } = request;
    const said = (decision: ApprovalDecision): ApprovalDecision => {
      const { approved, reason, by } = decision;
      const why = { ...(reason === undefined ? {} : { reason }), ...(by === undefined ? {} : { by }) };
      emit({ type: "approval", approval_id, tool_call_id, tool, approved, ...why }, gated.turnId);
      return decision;
    };
    if (approvals === undefined) return said({ approved: false, reason: "Nobody can approve it here." });
    const key = gated.context.idempotency_key;
    const times = expires_at === undefined ? {} : { expires_at };
    if (record.request === undefined) await this.#note(callNotes.request, { key, approval_id, ...times });
    const mayRest = (): boolean => this.#open === this.#waiting && this.#operation.live.mayRest;
    this.#waiting += 1;
    const decided = approvals.request(request, signal, mayRest).finally(() => {
      this.#waiting -= 1;
    });
    emit({ type: "approval_request", approval_id, tool_call_id, tool, args, ...times }, gated.turnId);
    const decision = await decided.catch((error: unknown) => {
      throw isPutOff(signal) ? new PutOff("", { cause: error }) : error;
    });
    await this.#note(callNotes.decision, { key, ...decision });
    return said(decision);
  }

  async keep(results: ReadonlyMap<string, ToolResultPart>): Promise<void> {
    const notes = [...results].map(([key, result]) => this.#toNote(callNotes.result, { key, result }));
    const { commit, keeping } = this.#operation;
    if (notes.length > 0) await keeping(notes, commit);
  }

  #toRequest({ call, context }: GatedCall, record: CallRecord): ApprovalRequest {
    const { runtime, run_id } = this.#harness;
    const { live, id, part } = this.#operation;
    const task_id = taskOfPart(part, context.turn_id) ?? this.#operation.task_id;
    const now = runtime.clock.now();
    const timeoutMs = live.profile.approvals?.timeoutMs ?? runtime.approvals?.timeoutMs;
    const expires =
      record.request === undefined && timeoutMs !== undefined ? isoTime(now + timeoutMs) : undefined;
    const expires_at = record.request?.expires_at ?? expires;
    return {
      ...live.key,
      approval_id: record.request?.approval_id ?? createId("approval"),
      operation_id: id,
      tool_call_id: context.tool_call_id,
      tool: call.tool,
      args: call.args,
      requested_at: isoTime(now),
      ...(expires_at === undefined ? {} : { expires_at }),
      ...(run_id === undefined ? {} : { run_id }),
      ...(task_id === undefined ? {} : { task_id }),
    };
  }

  async #note(name: string, value: unknown): Promise<void> {
    await this.#operation.commit([this.#toNote(name, value)]);
  }

  #toNote(name: string, value: unknown): SessionEntry {
    const timestamp = isoTime(this.#harness.runtime.clock.now());
    return { version: 1, type: "note", name, value, timestamp, operation_id: this.#operation.id };
  }
}
