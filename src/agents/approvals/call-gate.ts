import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { canonical } from "../../base/json-text.ts";
import type { AllowRule, ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { alwaysAsks, needsApproval, unwaivable } from "../define/approval-rules.ts";
import type { ToolContext, ToolDefinition } from "../define/tool.ts";
import { taskOfPart } from "../events.ts";
import { Postponed, willResume } from "../log/suspension.ts";
import { jsonSchemaOf } from "../output/typed-output.ts";
import { maskValue } from "../secrets.ts";
import type { AllowedCall } from "./allow-rules.ts";
import { kindOf, toKept } from "./call-kinds.ts";
import { type CallRecord, callNotes, openQuestions, recordOf, wasAsking } from "./call-record.ts";

/** A question of a running call. */
export interface AskedQuestion {
  readonly message: string;
  /** The JSON Schema of the answer. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly timeoutMs?: number | undefined;
  readonly isIdempotent: boolean;
}

/** A call before it is run, or one that asks a question while it runs. */
export interface GatedCall {
  readonly call: ToolCallPart;
  /** Absent for a call without a tool, such as a question of a backend. */
  readonly tool?: ToolDefinition | undefined;
  readonly turnId: string;
  /** The arguments, validated. */
  readonly input: unknown;
  readonly context: ToolContext;
  /** The arguments from the model; `call.args` differs if a hook changed them. */
  readonly modelArgs: unknown;
  readonly question?: AskedQuestion | undefined;
}

/** Decides about the tool calls of an operation before they run. */
export interface ToolGate {
  /** Whether the call needs approval. */
  needsApproval(tool: ToolDefinition, call: GatedCall): boolean | Promise<boolean>;
  /** Whether the call cannot have started without a note: of its decision, or of the rule that waived it. */
  isNotedFirst(tool: ToolDefinition, call: GatedCall): boolean;
  /** Adds the calls of a turn to the open ones; `ended` removes a call that has its result. */
  begin(calls: number): void;
  ended(): void;
  /** The logged notes of an interrupted call, by its idempotency key. */
  record(key: string): CallRecord;
  /**
   * Waits for an approval decision. Rejects with `Postponed` if the operation will be resumed later, and with the
   * reason of its signal if it was aborted.
   */
  waitForDecision(call: GatedCall, record?: CallRecord): Promise<ApprovalDecision>;
  /** Whether the call waited for the answer to a question of its own when its process ended. */
  wasAsking(key: string): boolean;
  /** Whether the logged approval request was made for the arguments that the call has now. */
  covers(call: GatedCall, record: CallRecord): boolean;
  /** The keys of the questions of a call that were not decided when its process ended. */
  openQuestions(key: string): readonly string[];
  /** Withdraws the logged request of a call that no longer has its arguments, or of a question that it no longer asks. */
  withdraw(call: GatedCall, record: CallRecord): Promise<void>;
  /** Notes that a postponed call has certainly not started: it may run when the operation resumes. */
  unstarted(key: string): void;
  /** Logs that a call starts that had not started before the interruption. */
  starts(key: string): Promise<void>;
  /** Logs the results of a turn whose other calls are postponed, by their idempotency keys, and which have not started. */
  keepResults(results: ReadonlyMap<string, ToolResultPart>): Promise<void>;
}

/** The decision about a question that its tool does not ask any more. */
const withdrawn: ApprovalDecision & { readonly reason: string } = {
  approved: false,
  reason: "The question was withdrawn.",
  unanswered: true,
};

/** A caller that has left comes back no more, and its call would wait without end. */
const callerTimeoutMs = 3_600_000;

/**
 * Decides about the tool calls of one operation. It logs each request and decision before it acts on them, so that
 * a resumed operation can tell a call that only waited from one that may have run.
 */
export class CallGate implements ToolGate {
  readonly #harness: Pick<Harness, "run_id" | "runtime">;
  readonly #operation: Operation;
  /** Calls of the turn without a result, and how many of them wait for approval. */
  #open = 0;
  #waiting = 0;
  #unstarted: Set<string> | undefined;

  constructor(harness: Pick<Harness, "run_id" | "runtime">, operation: Operation) {
    this.#harness = harness;
    this.#operation = operation;
  }

  begin(calls: number): void {
    this.#open += calls;
  }

  ended(): void {
    this.#open -= 1;
  }

  needsApproval(tool: ToolDefinition, call: GatedCall): boolean | Promise<boolean> {
    if (kindOf(tool) !== undefined) return true;
    const rules = this.#operation.live.profile.approvals;
    if (rules === undefined && tool.needsApproval === undefined) return false;
    return needsApproval(tool, call, {
      rules,
      isAllowed: async (allowed) => {
        const { isAllowed } = await import("./allow-rules.ts");
        const allows = await isAllowed(allowed, this.#toAllowed(call));
        // Without this note, the call would seem to wait for its approval after a crash.
        if (allows) await this.starts(call.context.idempotencyKey);
        return allows;
      },
    });
  }

  isNotedFirst(tool: ToolDefinition, { input }: GatedCall): boolean {
    return alwaysAsks(tool, input, this.#operation.live.profile.approvals);
  }

  record(key: string): CallRecord {
    return recordOf(this.#operation.past, key);
  }

  wasAsking(key: string): boolean {
    return wasAsking(this.#operation.past, key);
  }

  openQuestions(key: string): readonly string[] {
    return openQuestions(this.#operation.past, key);
  }

  async waitForDecision(gated: GatedCall, record: CallRecord = {}): Promise<ApprovalDecision> {
    const { question, context } = gated;
    const { emit } = this.#operation;
    const signal =
      question === undefined
        ? this.#operation.signal
        : AbortSignal.any([this.#operation.signal, context.signal]);
    const { approvals } = this.#harness.runtime;
    const request = { ...this.#toRequest(gated, record), ...(await this.#offers(gated)) };
    const { approval_id, tool_call_id, tool, args, expires_at } = request;
    const kind = request.kind === undefined ? {} : { kind: request.kind };
    const asking = question === undefined ? {} : { message: request.message, schema: request.schema };
    // A tool that can be called again leaves memory as a call does that has not started.
    const leavesMemory = question === undefined || question.isIdempotent;
    const announce = (decision: ApprovalDecision): ApprovalDecision => {
      const { approved, reason, by } = decision;
      const edited = decision.args === undefined ? {} : { args: this.#masked(decision.args) };
      const why = { reason, by };
      emit({ type: "approval", approval_id, tool_call_id, tool, approved, ...why, ...edited }, gated.turnId);
      return decision;
    };
    if (approvals === undefined)
      return announce({ approved: false, reason: "No approvals are set up here.", unanswered: true });
    const key = context.idempotencyKey;
    const times = expires_at === undefined ? {} : { expires_at };
    if (record.request === undefined) {
      const changed = gated.call.args === gated.modelArgs ? {} : { args };
      await this.#note(callNotes.request, { key, approval_id, ...times, ...changed });
    }
    const maySuspend = (): boolean =>
      leavesMemory && this.#open === this.#waiting && this.#operation.live.maySuspend;
    const asked = {
      type: "approval_request",
      approval_id,
      tool_call_id,
      tool,
      args,
      ...kind,
      ...asking,
      ...times,
    } as const;
    let isAsked = false;
    // Not before the call can be decided: a reader of the event can answer at once.
    const onWaiting = (): void => {
      isAsked = true;
      if (leavesMemory) this.#waiting += 1;
      emit(asked, gated.turnId);
    };
    const made = await approvals
      .request(request, signal, { maySuspend, onWaiting })
      .catch((error: unknown) => {
        if (signal.aborted && !this.#operation.signal.aborted) return withdrawn;
        throw willResume(signal) ? new Postponed("", { cause: error }) : error;
      })
      .finally(() => {
        if (isAsked && leavesMemory) this.#waiting -= 1;
      });
    if (!isAsked && made !== withdrawn) emit(asked, gated.turnId);
    const { result } = made;
    const kept = question === undefined ? toKept : (value: unknown) => value;
    const decision = result === undefined ? made : { ...made, result: kept(this.#masked(result)) };
    await this.#note(callNotes.decision, { key, ...decision });
    // Readers of a call that has ended need not learn of what it never came to ask.
    return !isAsked && made === withdrawn ? decision : announce(decision);
  }

  covers(gated: GatedCall, { request }: CallRecord): boolean {
    const approved = request !== undefined && "args" in request ? request.args : gated.modelArgs;
    return canonical(this.#masked(approved)) === canonical(this.#masked(gated.call.args));
  }

  async withdraw(gated: GatedCall, record: CallRecord): Promise<void> {
    const { approval_id, tool_call_id, tool, ...request } = this.#toRequest(gated, record);
    const isQuestion = gated.question !== undefined;
    const reason = isQuestion ? withdrawn.reason : "The arguments of the call have changed.";
    const { idempotencyKey: key } = gated.context;
    if (isQuestion) await this.#note(callNotes.request, { key, approval_id, is_withdrawn: true });
    const { approvals } = this.#harness.runtime;
    // An aborted signal withdraws the request, and the call always rejects.
    await approvals
      ?.request({ ...request, approval_id, tool_call_id, tool }, AbortSignal.abort(new Error(reason)))
      .catch(() => undefined);
    this.#operation.emit(
      { type: "approval", approval_id, tool_call_id, tool, approved: false, reason },
      gated.turnId,
    );
  }

  unstarted(key: string): void {
    this.#unstarted ??= new Set();
    this.#unstarted.add(key);
  }

  async starts(key: string): Promise<void> {
    await this.#note(callNotes.start, { key, is_started: true });
  }

  async keepResults(results: ReadonlyMap<string, ToolResultPart>): Promise<void> {
    const notes = [...results].map(([key, result]) => this.#toNote(callNotes.result, { key, result }));
    for (const key of this.#unstarted ?? [])
      notes.push(this.#toNote(callNotes.start, { key, is_started: false }));
    const { log } = this.#operation;
    if (notes.length > 0) await log.commit(notes, true);
  }

  /** Arguments as the approver reads them: a hook may have put a secret into them. */
  #masked(args: unknown): unknown {
    const { mask } = this.#operation;
    return mask === undefined ? args : maskValue(args, mask);
  }

  #maskedForm({ message, schema }: AskedQuestion): Pick<AskedQuestion, "message" | "schema"> {
    const { mask } = this.#operation;
    return mask === undefined ? { message, schema } : maskValue({ message, schema }, mask);
  }

  #toRequest(gated: GatedCall, record: CallRecord): ApprovalRequest {
    const { call, context, question } = gated;
    const kind = question === undefined ? kindOf(gated.tool) : "question";
    const { runtime, run_id } = this.#harness;
    const { live, id, part } = this.#operation;
    const task_id = taskOfPart(part, context.turnId) ?? this.#operation.task_id;
    const now = runtime.clock.now();
    const timeoutMs =
      question?.timeoutMs ??
      live.profile.approvals?.timeoutMs ??
      runtime.approvals?.timeoutMs ??
      (kind === "caller" ? callerTimeoutMs : undefined);
    const expires =
      record.request === undefined && timeoutMs !== undefined ? isoTime(now + timeoutMs) : undefined;
    const expires_at = record.request?.expires_at ?? expires;
    return {
      ...live.key,
      approval_id: record.request?.approval_id ?? createId(kind ?? "approval"),
      kind,
      operation_id: id,
      tool_call_id: context.toolCallId,
      tool: call.tool,
      args: this.#masked(call.args),
      ...(question && this.#maskedForm(question)),
      requested_at: isoTime(now),
      expires_at,
      run_id,
      task_id,
    };
  }

  #toAllowed({ call }: GatedCall): AllowedCall {
    const { live } = this.#operation;
    const { key, profile } = live;
    return {
      agent: key.agent,
      tool: call.tool,
      args: call.args,
      policy: profile,
      sandbox: () => live.sandbox(),
    };
  }

  /**
   * The approver sees, in addition to the arguments: the schema for changing them, the files that the call touches or changes,
   * and the rules that would let such calls run without approval.
   */
  async #offers(
    gated: GatedCall,
  ): Promise<
    Pick<ApprovalRequest, "input_schema" | "touches" | "changes" | "allow_rules" | "no_allow_rule">
  > {
    const { tool, call, input } = gated;
    if (tool === undefined || kindOf(tool) !== undefined) return {};
    // Arguments with a secret are shown masked, so a change of them would lose the secret.
    const isWhole = canonical(this.#masked(call.args)) === canonical(call.args);
    const input_schema = tool.editableArguments === true && isWhole ? jsonSchemaOf(tool.input) : undefined;
    let touches: readonly string[] = [];
    try {
      touches = tool.touches?.(input).slice(0, maxTouched) ?? [];
    } catch {
      // The tool itself reports the fault when it runs.
    }
    const choices = isWhole
      ? await this.#choices(tool, gated)
      : "Its arguments hold a secret, which a rule would show.";
    return {
      input_schema,
      ...(touches.length === 0 ? {} : { touches }),
      changes: await this.#changes(gated),
      ...(typeof choices === "string" ? { no_allow_rule: choices } : { allow_rules: choices }),
    };
  }

  async #changes({ call }: GatedCall): Promise<ApprovalRequest["changes"]> {
    const { live } = this.#operation;
    try {
      const { readChangedFile } = await import("./changed-file.ts");
      return await readChangedFile(call, {
        sandbox: () => live.sandbox(),
        projectRoot: this.#harness.runtime.projectRoot,
        mask: (text) => String(this.#masked(text)),
      });
    } catch {
      // The tool itself reports the fault when it runs.
      return undefined;
    }
  }

  async #choices(tool: ToolDefinition, gated: GatedCall): Promise<readonly AllowRule[] | string> {
    try {
      const rules = this.#operation.live.profile.approvals;
      const why = await unwaivable(tool, gated, rules);
      if (why !== undefined) return why;
      const { allowChoices } = await import("./allow-rules.ts");
      return await allowChoices(this.#toAllowed(gated));
    } catch {
      return "Whether a rule fits could not be found out.";
    }
  }

  async #note(name: string, value: unknown): Promise<void> {
    await this.#operation.log.commit([this.#toNote(name, value)]);
  }

  #toNote(name: string, value: unknown): SessionEntry {
    const timestamp = isoTime(this.#harness.runtime.clock.now());
    return { version: 1, type: "note", name, value, timestamp, operation_id: this.#operation.id };
  }
}

/** Most files that a request lists. */
const maxTouched = 50;
