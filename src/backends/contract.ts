import { suggest } from "../base/error-text.ts";
import type { ApprovalDecision } from "../protocol/approval.ts";
import { type BackendName, backendNames } from "../protocol/enums.ts";
import type { Message, ToolResultPart, Usage } from "../protocol/message.ts";
import type { Sandbox } from "../sandboxes/contract.ts";

/** A backend of kit's by name, or one of your own. */
export type BackendChoice = BackendName | AgentBackend;

/**
 * Decides what an operation does next. Whatever is done, kit does: it calls the model, runs tools under the
 * agent's policy and approvals, stores, streams, counts, retries, compacts and repairs.
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
  /** As events and messages of its own words name it. */
  readonly name: string;
  /** Default: none of them. */
  readonly capabilities?: Partial<BackendCapabilities>;
  /**
   * Resolves when nothing is left to do: the newest answer is the operation's. An error of `turn`, `tool` and the
   * others ends the operation with that error, whatever `run` makes of it. Called again for an answer that has to be
   * repaired, and for an operation that was interrupted.
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
  /** Keeps what it needs in `operation.state`, and goes on from there; the others begin anew with the history. */
  readonly state: boolean;
  /** Asks people questions of its own, which wait as calls that need approval do. */
  readonly interrupts: boolean;
  /** Copies files in and out of the sandbox. */
  readonly fileTransfer: boolean;
  /** Has several agents that hand the work over to each other. */
  readonly handoffs: boolean;
}

/** The operation that a backend runs, from the prompt to its answer. */
export interface BackendOperation {
  readonly operationId: string;
  /** The folder of the agent's project on this machine, where it has one: packages are looked for there first. */
  readonly projectRoot: string | undefined;
  /** From 0: how many times the operation ran a backend to its end before, for an answer that had to be repaired. */
  readonly run: number;
  /** The system prompt: instructions, guidelines, role. */
  readonly system: string;
  /**
   * The active history, oldest first. It ends with a message of the user or of tools; for a backend with `state` that is
   * gone on with, perhaps with one of its own answers.
   */
  history(): readonly BackendMessage[];
  readonly tools: readonly BackendTool[];
  /** Fires when the operation is to stop. */
  readonly signal: AbortSignal;
  /**
   * One answer of the model: budget checked, room made, called, retried, streamed as events, stored. Calls of the
   * turn before that the backend has not run are run first; a turn that only calls tools which are not there is
   * answered, and the model asked again. Turns run one at a time, those `aside` side by side.
   */
  turn(request?: TurnRequest): Promise<BackendTurn>;
  /**
   * The result of a call that a turn has asked for. The first one asked for runs all calls of its turn, under policy,
   * approvals and time limits, and stores them together. A tool that fails is a result.
   */
  tool(id: string): Promise<ToolResultPart>;
  /** Runs a tool that no turn has asked for, as if one had: same policy, events and place in the log. */
  call(tool: string, args: Readonly<Record<string, unknown>>): Promise<ToolResultPart>;
  /**
   * Waits for an approval decision, like a call of a tool that needs approval: listed, decided and expired in the same way,
   * and kept over a restart under the same `id`.
   */
  ask(question: BackendQuestion): Promise<ApprovalDecision>;
  /** Ends the run with words of the backend's own, which the log keeps behind those of the model. */
  answer(text: string): void;
  /** State that the backend keeps besides messages, for a resume after an interruption. */
  readonly state: BackendState;
  /** Copies bytes in and out of the agent's sandbox: for the code of a backend, never for models. */
  readonly files: Pick<Sandbox, "upload" | "download">;
}

/**
 * Notes of one run in the session's log. Each is at most 1 MiB as JSON, and all of a run 16 MiB: save what has
 * changed. Throws `payload_too_large`.
 */
export interface BackendState {
  /**
   * The values saved in this run before its interruption, oldest first; empty for a new run. Turns which the log has
   * from after the last note are given again by `turn` instead of asking the model.
   */
  load(): readonly unknown[];
  /** Resolves once it is stored. */
  save(value: unknown): Promise<void>;
}

/** A message, named: the same message has the same id over restarts. Calls have ids of kit's own. */
export type BackendMessage = Message & { readonly id: string };

/** Fields that are left out are the session's. */
export interface TurnRequest {
  /** Sent as they are, not shortened, in place of the history. */
  readonly messages?: readonly Message[];
  readonly system?: string;
  /** Names of `operation.tools`, and tools of the backend's own. */
  readonly tools?: readonly (string | OwnTool)[];
  /** Has the model answer with JSON: `value` of the turn, where the answer has any. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Not a part of the conversation: counted and kept, but not shown to later turns. Without tools. */
  readonly aside?: boolean;
}

/** An answer of the model. */
export interface BackendTurn {
  /** The id of its message in `history()`. */
  readonly id: string;
  /** Never empty where there are no calls: a zero-width space then. */
  readonly text: string;
  /** Calls of the offered tools. */
  readonly calls: readonly BackendCall[];
  readonly usage: Usage;
  /** The JSON of an answer to a request with a `schema`. */
  readonly value?: unknown;
}

export interface BackendCall {
  /** Kit's own: unique in the session, the same over restarts. */
  readonly id: string;
  readonly tool: string;
  /** An object, whatever the model has said; `tool` runs the call with what it has said. */
  readonly args: Readonly<Record<string, unknown>>;
}

export interface BackendTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly schema: Readonly<Record<string, unknown>>;
}

/** A tool that the backend brings along for a turn; kit runs it as it runs any other. */
export interface OwnTool extends BackendTool {
  run(args: Readonly<Record<string, unknown>>): string | Promise<string>;
  /**
   * The agent of the backend's that goes on with the work once the tool has run, or what names it by the call's
   * arguments: events show its part as a task, to the next one or to the end.
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
