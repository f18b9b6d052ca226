import { suggest } from "../base/error-text.ts";
import type { ApprovalDecision } from "../protocol/approval.ts";
import { type BackendName, backendNames } from "../protocol/enums.ts";
import type { Message, ToolResultPart, Usage } from "../protocol/message.ts";
import type { Sandbox } from "../sandboxes/contract.ts";

/** A backend of kit by its name, or a custom backend. */
export type BackendChoice = BackendName | AgentBackend;

/**
 * Decides what an operation does next. Kit does the work: it calls the model, runs tools under the agent's policy and
 * approvals, stores, streams, counts, retries, compacts and repairs.
 *
 * ```ts
 * const backend: AgentBackend = {
 *   name: "plan-first",
 *   async run(operation) {
 *     const plan = await operation.turn({ system: "Write a plan.", tools: [], aside: true });
 *     for (;;) {
 *       const turn = await operation.turn({ system: `${operation.system}\n\nThe plan:\n${plan.text}` });
 *       if (turn.calls.length === 0) return;
 *       for (const { id } of turn.calls) await operation.tool(id);
 *     }
 *   },
 * };
 * ```
 */
export interface AgentBackend {
  /** The name of the backend in events and error messages. */
  readonly name: string;
  /** Default: no capabilities. */
  readonly capabilities?: Partial<BackendCapabilities>;
  /**
   * Resolves when the work is done: the newest answer is the answer of the operation. An error of `turn`, `tool` and
   * the other methods ends the operation, even if `run` catches it. Kit calls `run` again to repair an answer, and to
   * resume an interrupted operation.
   */
  run(operation: BackendOperation): Promise<void>;
}

/** Whether a value is a custom backend. */
export function isBackend(value: unknown): value is AgentBackend {
  if (typeof value !== "object" || value === null || !("name" in value) || !("run" in value)) return false;
  return typeof value.name === "string" && value.name !== "" && typeof value.run === "function";
}

function isBackendName(value: unknown): value is BackendName {
  return backendNames.some((name) => name === value);
}

/** The expectation that a backend choice fails, worded to follow "must be"; undefined for a valid choice. */
export function faultOfBackend(value: unknown): string | undefined {
  if (isBackendName(value) || isBackend(value)) return undefined;
  const near = typeof value === "string" ? suggest(value, backendNames) : undefined;
  const names = `one of ${backendNames.join(", ")}, or a backend of your own: an object with \`name\` and \`run\``;
  return near === undefined ? names : `${names}; did you mean ${near}?`;
}

/** Features of a backend beyond turns and tools; check these, never its name. */
export interface BackendCapabilities {
  /** The backend resumes from `operation.state`; other backends start again from the history. */
  readonly state: boolean;
  /** The backend asks people questions, which wait like calls that need approval. */
  readonly interrupts: boolean;
  /** The backend copies files in and out of the sandbox. */
  readonly fileTransfer: boolean;
  /** The backend has several agents that hand the work over to each other. */
  readonly handoffs: boolean;
}

/** The operation that a backend runs, from the prompt to its answer. */
export interface BackendOperation {
  readonly operationId: string;
  /** The folder of the agent's project on this machine; packages are loaded from it first. */
  readonly projectRoot: string | undefined;
  /** The number of runs of the backend that ended before this one; above 0, this run repairs an answer. */
  readonly run: number;
  /** The system prompt: instructions, guidelines, role. */
  readonly system: string;
  /**
   * The active history, oldest first. It ends with a message of the user or of tools. For a backend with `state` that
   * resumes, the last message can be an answer of the model.
   */
  history(): readonly BackendMessage[];
  readonly tools: readonly BackendTool[];
  /** Fires when the operation must stop. */
  readonly signal: AbortSignal;
  /**
   * Calls the model for one answer: checks the budget, compacts if needed, retries, streams events and stores the answer.
   * First runs the calls of the previous turn that the backend has not run. If a turn calls only unknown tools, kit
   * answers the calls and asks the model again. Turns run one at a time; turns with `aside` run in parallel.
   */
  turn(request?: TurnRequest): Promise<BackendTurn>;
  /**
   * Returns the result of a call of a turn. The first call of this method runs all calls of the turn, under policy,
   * approvals and time limits, and stores their results together. The failure of a tool is a result.
   */
  tool(id: string): Promise<ToolResultPart>;
  /** Runs a tool that the model has not called: with the same policy, events and log entries as a call of the model. */
  call(tool: string, args: Readonly<Record<string, unknown>>): Promise<ToolResultPart>;
  /**
   * Waits for a decision of a person, like a tool call that needs approval: people list and decide it in the same way, it
   * expires in the same way, and it survives a restart under the same `id`.
   */
  ask(question: BackendQuestion): Promise<ApprovalDecision>;
  /** Ends the run with a text of the backend, which the log keeps after the messages of the model. */
  answer(text: string): void;
  /** State that the backend stores in addition to messages, to resume after an interruption. */
  readonly state: BackendState;
  /** Copies bytes in and out of the agent's sandbox, for code of the backend; models have no access. */
  readonly files: Pick<Sandbox, "upload" | "download">;
}

/**
 * Notes of one run in the session's log. A note has at most 1 MiB as JSON, all notes of a run 16 MiB: save only
 * changes. Throws `payload_too_large` above these limits.
 */
export interface BackendState {
  /**
   * The values that this run saved before its interruption, oldest first; empty for a new run. If the log has turns after
   * the last note, `turn` returns them and does not call the model.
   */
  load(): readonly unknown[];
  /** Resolves when the value is stored. */
  save(value: unknown): Promise<void>;
}

/** A message with an id, which stays the same after a restart. The ids of its calls are made by kit. */
export type BackendMessage = Message & { readonly id: string };

/** The request of one turn. The session supplies missing fields. */
export interface TurnRequest {
  /** Messages that replace the history. Kit sends them unchanged and does not compact them. */
  readonly messages?: readonly Message[];
  readonly system?: string;
  /** Names of `operation.tools`, and tools of the backend. */
  readonly tools?: readonly (string | OwnTool)[];
  /** Makes the model answer with JSON of this schema: `value` of the turn, if the answer contains JSON. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** The turn is no part of the conversation: kit counts and logs it, but later turns do not contain it. No tools. */
  readonly aside?: boolean;
}

/** An answer of the model. */
export interface BackendTurn {
  /** The id of its message in `history()`. */
  readonly id: string;
  /** Never empty without calls: an empty answer is a zero-width space. */
  readonly text: string;
  /** Calls of the offered tools. */
  readonly calls: readonly BackendCall[];
  readonly usage: Usage;
  /** The JSON of an answer to a request with a `schema`. */
  readonly value?: unknown;
}

export interface BackendCall {
  /** Made by kit: unique in the session, and the same after a restart. */
  readonly id: string;
  readonly tool: string;
  /** Always an object; `tool` runs the call with the arguments as the model sent them. */
  readonly args: Readonly<Record<string, unknown>>;
}

export interface BackendTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly schema: Readonly<Record<string, unknown>>;
}

/** A tool that the backend adds to a turn; kit runs it like every other tool. */
export interface OwnTool extends BackendTool {
  run(args: Readonly<Record<string, unknown>>): string | Promise<string>;
  /**
   * The name of the backend's agent that takes over after the tool has run, or a function that returns it for the call's
   * arguments. Events report the work of that agent as a task, until the next handoff or the end.
   */
  readonly handsTo?: string | ((args: Readonly<Record<string, unknown>>) => string);
}

/** The question of an approval request. */
export interface BackendQuestion {
  /** 1 to 64 letters, digits, `_` and `-`: the same question has the same id after a restart. */
  readonly id: string;
  /** Shown as the tool of an approval. */
  readonly name: string;
  /** Shown as its arguments. */
  readonly args: unknown;
}
